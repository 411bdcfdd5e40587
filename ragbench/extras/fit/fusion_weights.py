"""Learn the weights of fusion from judged queries: the mixture of the sources' rankings with the best results.

Seed 001 names it as future work ("Learned fusion"). With two to four sources a fixed set of mixtures drawn from the
whole simplex finds what finer searches find. As every mixture is measured on every query, cross-validation needs no
further work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from ragbench.base.errors import BenchmarkError
from ragbench.base.progress import report
from ragbench.base.types import QueryState, Ranking
from ragbench.benchmark.benchmark import Benchmark
from ragbench.evaluation.measures import PRIMARY, document_run, evaluate
from ragbench.extras.fit import training
from ragbench.index.chunks import ChunkTable
from ragbench.index.index import Index
from ragbench.search.stages.fuse import Fuse

Gain = Callable[[Sequence[Ranking]], NDArray[np.float64]]
"""The measure to raise: one value for every query's fused ranking, in the order of the states."""


@dataclass(frozen=True)
class Learned:
    """The best weights by source, and the measure of every query with several weights.

    `before` is with the configured weights, `after` with `weights`, `held_out` with weights learned from the other
    folds: the gain to expect on new queries is that of `held_out`, not of `after`.
    """

    weights: Mapping[str, float]
    before: NDArray[np.float64]
    after: NDArray[np.float64]
    held_out: NDArray[np.float64]


def learn(
    states: Sequence[QueryState],
    groups: Sequence[str],
    fuse: Fuse,
    index: Index,
    gain: Gain,
    *,
    draws: int = 100,
    seed: int = 13,
) -> Learned:
    """Choose among the configured weights and `draws` mixtures, drawn evenly from all (Dirichlet), by the mean gain.

    `groups` has one entry a query; queries of a group share a fold. All mixtures have the sum of the configured
    weights, so that fused scores keep their size for calibration. Equal gains go to the mixture nearest to the
    configured one.
    """
    sources = sorted({source for state in states for source, ranking in state.rankings.items() if len(ranking)})
    if len(sources) < 2:
        raise BenchmarkError(
            f"weights need at least two sources, and only {', '.join(sources) or 'none'} found anything: turn one on"
        )
    parts = list(training.leave_out(groups, "weights can only be learned from queries of at least two groups"))
    mixtures = _mixtures(np.array([fuse.weights.get(source, 1.0) for source in sources]), draws, seed)
    values = np.empty((len(mixtures), len(states)))
    for number, mixture in enumerate(mixtures):
        weighted = replace(fuse, weights=dict(zip(sources, mixture.tolist(), strict=True)))
        values[number] = gain([weighted.fuse(state, index) for state in states])
        if not ((values[number] >= 0) & (values[number] <= 1)).all():
            raise BenchmarkError(f"the measure to raise must be between 0 and 1, got {values[number].max():g}")
        report("trying weights", number + 1, len(mixtures))
    held_out = np.empty(len(states))
    for others, test in parts:
        held_out[test] = values[_best(values[:, others]), test]
    best = _best(values)
    weights = {source: round(float(weight), 3) for source, weight in zip(sources, mixtures[best], strict=True)}
    return Learned(weights, before=values[0], after=values[best], held_out=held_out)


def document_gain(states: Sequence[QueryState], table: ChunkTable, benchmark: Benchmark) -> Gain:
    """What gives the primary measure of rankings, one for each state, by the best chunk of each document."""

    def gain(rankings: Sequence[Ranking]) -> NDArray[np.float64]:
        run = document_run([replace(s, fused=r) for s, r in zip(states, rankings, strict=True)], table)
        frame = evaluate(run, benchmark.document_qrels, [PRIMARY])
        rows = frame[frame["measure"] == PRIMARY]
        values = dict(zip(rows["qid"], rows["value"], strict=True))
        return np.array([values[state.query.qid] for state in states], dtype=np.float64)

    return gain


def _mixtures(configured: NDArray[np.float64], draws: int, seed: int) -> NDArray[np.float64]:
    """The configured weights, then drawn ones by their distance from them, shape (draws + 1, sources)."""
    drawn = np.random.default_rng(seed).dirichlet(np.ones(len(configured)), size=draws) * configured.sum()
    order = np.argsort(np.abs(drawn - configured).sum(axis=1), kind="stable")
    return np.vstack([configured, drawn[order]])


def _best(values: NDArray[np.float64]) -> int:
    """The first row of highest mean; differences as small as rounding errors of a sum do not count."""
    return int(np.argmax(np.round(values.mean(axis=1), 9)))
