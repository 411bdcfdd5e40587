"""A search for better parameters as one call, for notebooks and the command.

import ragbench

tuning = ragbench.tune("exp=phase1", "tune=[fuse]", "tune.trials=50")
tuning.parameters
tuning.results.export("bundle", arm="tuned")
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Sequence

from ragbench.base import console, registry
from ragbench.base.progress import Report
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import composition
from ragbench.config.overrides import word
from ragbench.config.settings import Settings
from ragbench.extras.fit.tuning import report, search
from ragbench.extras.fit.tuning.report import Tuning
from ragbench.extras.fit.tuning.space import spec_of
from ragbench.workbench import experiment

_LOG = logging.getLogger(__name__)


def tune(
    *overrides: str,
    starts: Sequence[str] = (),
    benchmark: Benchmark | None = None,
    progress: Report | None = None,
) -> Tuning:
    """Search for better parameters on the train split and measure the winner once on the test split.

    The files are written first, then MLflow.

    Args:
        *overrides: As for `ragbench tune`.
        starts: Starting points in addition to `tune.starts`, each some overrides separated by spaces.
        benchmark: A benchmark instead of the one that `data` names.
        progress: Called with the name of a task, the rows done and all rows; by default a bar is shown.

    Returns:
        The trials, the winner and its evaluation on the test split.

    Raises:
        ConfigError: The settings cannot be searched.
    """
    with console.progress_to(progress):
        return _tune(overrides, starts, benchmark)


def _tune(overrides: Sequence[str], starts: Sequence[str], benchmark: Benchmark | None) -> Tuning:
    from ragbench.extras.fit.tuning.objective import searchable
    from ragbench.extras.tracking import store, write

    def compose(overrides: Sequence[str]) -> Settings:
        return record(composition.compose(overrides))

    record = (lambda settings: settings) if benchmark is None else composition.recorder(benchmark)
    base = compose(overrides)
    if starts:
        base = compose([*overrides, word("tune.starts", [*spec_of(base).starts, *starts])])
    rules = search.rules_of(base, compose)
    tracked = base.tracking.enabled
    if tracked:
        store.check(store.target_of(base))
    whole = benchmark or base.benchmark()
    train, held_out = searchable(whole)
    for sentence in experiment.first_lines(base, has_benchmark=benchmark is not None):
        _LOG.info(sentence)
    if held_out:
        search.check(base, whole)
    else:
        _LOG.info(
            f"'{whole.name}' has {len(whole.topics)} queries, too few for a test split: nested folds over all judge"
        )
    tuned = search.tune(base, rules, train, held_out_topics=held_out)
    confirmation = None
    if held_out and not tuned.unchanged:
        confirmation = search.confirm(tuned, whole)
    tuning = Tuning(tuned, confirmation)
    report.write(tuning)
    if confirmation is not None and (page := registry.find("hook", "report")):
        page.write(confirmation.results)
    if tracked:
        run_id = write.log(store.target_of(base), tuned.folder)
        tuning = dataclasses.replace(tuning, tracking_run=run_id)
    return tuning
