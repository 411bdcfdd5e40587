"""Encoders side by side in one search: quality, time to index and to ask, and verdicts.

import ragbench

ragbench.bakeoff(["bge-small-en-v1.5", "all-MiniLM-L6-v2"], "data=builtin").table
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbench.base import console
from ragbench.base.errors import ConfigError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import composition
from ragbench.config.arm_builder import ArmBuilder, Progress, Say
from ragbench.evaluation.measures import PRIMARY
from ragbench.models import bundled
from ragbench.workbench.experiment import Experiment
from ragbench.workbench.results import Results

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.search.engine.executor import Arm

_SEARCH = "exp=recommended"
"""The search that the encoders are put into unless overrides name another experiment."""
_SAMPLE = 32
"""Passages that are embedded to estimate the time for all of them."""


@dataclass(frozen=True)
class Bakeoff:
    """`results` has an arm for every encoder, judged against the first; `index_seconds` are the seconds to embed all
    passages by encoder, estimated from a sample without a cache."""

    results: Results
    index_seconds: dict[str, float]

    @property
    def table(self) -> pd.DataFrame:
        """A row for every encoder: nDCG@10, seconds to embed all passages, bytes of the index, times of a query."""
        frame = self.results.summary(())[["arm", "n", PRIMARY]].rename(columns={"arm": "encoder"})
        frame["index s"] = frame["encoder"].map(self.index_seconds)
        frame["index MB"] = frame["encoder"].map(self.results.record["index_bytes"]) / 1e6
        latency = self.results.latency
        for stage, name in (("dense", "encoder"), ("total", "query")):
            rows = latency[latency["stage"] == stage].set_index("arm")
            if len(rows):
                frame[f"{name} p95 ms"] = frame["encoder"].map(rows["p95"])
        return frame.reset_index(drop=True)


def bakeoff(
    encoders: Sequence[str] = (),
    *overrides: str,
    benchmark: Benchmark | None = None,
    progress: Progress | None = None,
    say: Say = console.say,
) -> Bakeoff:
    """Measure one search with each of several encoders.

    Args:
        encoders: Values of `index.encoder.name`: a folder, a bundled model, `draft`, `owner/model` of the hub, or an
            endpoint (`openai:MODEL`). By default all bundled encoders and `draft`.
        *overrides: The configuration of the search.
        benchmark: A benchmark instead of the one that `data` names.
        progress: Reports progress; by default a bar in notebooks and terminals.
        say: Prints sentences.

    Returns:
        Quality, indexing time, query time and bytes per encoder.

    Raises:
        ConfigError: There are fewer than two encoders.
        ModelError: A model cannot be found.
    """
    named = list(dict.fromkeys(encoders)) or bundled.names("encoder")
    if len(named) < 2:
        raise ConfigError(f"a bake-off needs two encoders, got {', '.join(named)}: name another one")
    chosen = any(override.lstrip("+").startswith("exp=") for override in overrides)
    arguments = [*([] if chosen else [_SEARCH]), *overrides]
    settings = composition.arms({name: [f'index.encoder.name="{name}"'] for name in named}, arguments)
    experiment = Experiment(tuple(settings), benchmark)
    results = experiment.run(progress, say)
    arms = ArmBuilder.of(settings[0], experiment.benchmark, None, say).arms(settings)
    return Bakeoff(results, {arm.name: _index_seconds(arm) for arm in arms})


def _index_seconds(arm: Arm) -> float:
    """The estimated seconds for all passages, from an even sample; the first passage only loads the model."""
    spec, table = arm.index.spec.vectors(""), arm.index.chunks
    passages = spec.passage.passages(table)
    sample = passages[:: max(1, len(passages) // _SAMPLE)][:_SAMPLE]
    encoder = arm.index.models.uncached(None).encoder(spec.encoder)
    encoder.encode_passages(sample[:1])
    started = time.perf_counter()
    encoder.encode_passages(sample)
    return round((time.perf_counter() - started) / len(sample) * len(passages), 1)
