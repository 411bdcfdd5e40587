"""What every fit begins and ends with.

It begins with a pipeline cut where the fit comes, and its answers to training topics. It
ends with the gain on held-out queries, and with a comparison on the test topics, which is recorded.
"""

from __future__ import annotations

import logging
import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragbench.base import files, locations, minimums, options
from ragbench.base.types import BenchmarkError, ConfigError, with_interval
from ragbench.benchmark.benchmark import TEST, TRAIN, Benchmark, Topic
from ragbench.config import store
from ragbench.config.settings import ArmBuilder, Settings
from ragbench.evidence import statistics
from ragbench.evidence.arms import Policy
from ragbench.results import comparisons
from ragbench.search.engine.pipeline import Arm, Pipeline, execute
from ragbench.search.ranking import trees
from ragbench.search.stages.rank import Rank
from ragbench.search.stages.stage import QueryState, Stage

_LOG = logging.getLogger(__name__)

Stages = Sequence[tuple[str, "Stage"]]
Values = NDArray[np.float64]
Numbers = NDArray[np.int64]
_FOLDS = 5


def cut(settings: Settings, benchmark: Benchmark, stages: Stages) -> Arm:
    """The arm of the settings with these of its stages; indexes that are missing are built."""
    (arm,) = ArmBuilder.of(settings, benchmark).arms([settings])
    return Arm(arm.name, Pipeline(tuple(stages)), arm.index)


def answers(arm: Arm, topics: Iterable[Topic]) -> Sequence[QueryState]:
    """The states of the topics after the last stage of the arm."""
    (outcome,) = execute([arm], [topic.query() for topic in topics])
    return outcome.final


def compare(candidate: Values, baseline: Values, settings: Settings) -> statistics.Comparison:
    """Compare what a fit learned with its start, by query, shapes (n,)."""
    return Policy.of(settings.config).compare([candidate], [baseline])[0]


def table(measured: Mapping[str, statistics.Comparison | None]) -> pd.DataFrame:
    """A row for the gain of a fit on each kind of topics that it was measured on, as nDCG@10."""
    import pandas as pd

    rows = [
        {
            "measured on": name,
            "topics": comparison.n,
            "before": comparison.mean_baseline,
            "learned": comparison.mean_candidate,
            "gain": with_interval(comparison.difference, comparison.ci_low, comparison.ci_high, 4),
            "p": comparison.p_value,
        }
        for name, comparison in measured.items()
        if comparison is not None
    ]
    return pd.DataFrame(rows)


def record_confirmation(benchmark: Benchmark, compared: object, command: str, arm: str) -> None:
    """Record that a fit is compared with its start on the test queries, and print which comparison it is.

    `compared` identifies the measured data, as `compared` in `comparisons.record`.
    """
    queries = {topic.qid for topic in benchmark.with_answer(benchmark.select(TEST))}
    number = comparisons.record(benchmark.name, queries, [command, compared], command, [arm])
    if label := comparisons.describe(number):
        _LOG.info(f"the test on held-out queries is {label}")


def fitted_on(benchmark: Benchmark) -> tuple[Topic, ...]:
    """The topics for fitting: train, or all of fewer than `HALVES` topics without a train split.

    Use it for fits that are judged on held-out queries of the fit.
    """
    few = len(benchmark.topics) < minimums.TO_SPLIT and TRAIN not in benchmark.splits
    return benchmark.topics if few else benchmark.select(TRAIN)


def leave_out(groups: Sequence[str], refusal: str) -> Iterator[tuple[Numbers, Numbers]]:
    """The places to learn from and to test on, those of one group together, every place tested once.

    BenchmarkError with the sentence `refusal` for fewer than two groups.
    """
    from sklearn.model_selection import GroupKFold

    count = min(_FOLDS, len(set(groups)))
    if count < 2:
        raise BenchmarkError(refusal)
    yield from GroupKFold(count).split(np.zeros(len(groups)), groups=groups)


def folds(names: Sequence[str], places: Numbers, count: int, seed: int) -> list[Numbers]:
    """Places in `count` parts of similar size, those of one name together; drawn by the seed."""
    members = _by_name(names, places)
    drawn = np.random.default_rng(seed).permutation(len(members))
    order = sorted(zip(drawn.tolist(), sorted(members), strict=True))
    parts: list[list[int]] = [[] for _ in range(count)]
    for _, name in sorted(order, key=lambda pair: (-len(members[pair[1]]), pair[0])):
        min(parts, key=len).extend(members[name])
    return [np.array(sorted(part), dtype=np.int64) for part in parts if part]


def _by_name(names: Sequence[str], places: Numbers) -> dict[str, list[int]]:
    members: dict[str, list[int]] = {}
    for i in places.tolist():
        members.setdefault(names[i], []).append(i)
    return members


_RESERVED = ("on", "off")


def check(name: str | None) -> None:
    """Raise ConfigError for a `--write` that cannot name an option of the configuration, or has no place."""
    if name is not None and (not re.fullmatch(r"\w[\w-]*", name) or name in _RESERVED):
        raise ConfigError(
            f"--write must be a name of letters, digits and hyphens other than {', '.join(_RESERVED)}, got {name}"
        )
    if name is not None and locations.project() is None and locations.checkout() is None:
        raise ConfigError("--write needs a project to write to: run ragbench init FOLDER first")
    shipped = locations.configuration()
    store.register()
    declared = [option for option in options.options() if option.name == name and option.group != store.CLASS]
    if name is not None and locations.fitted() != shipped and (declared or any(shipped.glob(f"*/{name}.yaml"))):
        raise ConfigError(f"--write {name} is a built-in option: choose another name")


def write(group: str, name: str, target: type, comment: str, values: str) -> Path:
    """Write conf/<group>/<name>.yaml: the comment in lines, the class, and the YAML text `values`."""
    path = locations.fitted() / group / f"{name}.yaml"
    lines = "".join(f"# {line}\n" for line in textwrap.wrap(comment, width=110))
    try:
        files.write_text(path, f"{lines}_target_: {target.__module__}.{target.__qualname__}\n{values}")
    except OSError as error:
        raise ConfigError(f"cannot write {path} ({error.strerror}): make the folder writable") from None
    return path


def write_order(name: str, stage: Rank, comment: str) -> list[Path]:
    """Write the files of `ranker=<name>`, trees first. Returns their paths."""
    of_trees = write_trees(name, stage.trees)
    model = f"{trees.named(name, stage.trees)}   # its trees and their digest"
    option = write(trees.GROUP, name, Rank, comment, f"prior: {stage.prior}\ndepth: {stage.depth}\nmodel: {model}\n")
    return [option, of_trees]


def write_trees(name: str, text: str) -> Path:
    """Write the file of a name and its digest. ConfigError where it cannot be written."""
    file = locations.fitted() / trees.GROUP / f"{trees.named(name, text).replace('@', '-')}.txt"
    try:
        files.write_text(file, text)
    except OSError as error:
        raise ConfigError(f"cannot write {file} ({error.strerror}): make the folder writable") from None
    trees.text_of.cache_clear()
    return file
