"""Turn fused scores into confidences by what speaks for an answer, whatever fusion made the scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar

import numpy as np

from ragbench.base.options import one_of, option
from ragbench.base.types import ConfigError
from ragbench.search.stages import agreement
from ragbench.search.stages.stage import Index, QueryState, Ranking, Reorder, Retriever, StateProperty, fused

SIGNS = ("nearness", "coverage", "agreement")
_NAMES = ("title", "path", "headings")
_FIRST = 5  # documents of each list that may agree

_Sign = Annotated[str, one_of(*SIGNS)]


# Fitted on the training queries of builtin and unanswerable variants of them.
@option(
    "calibration=evidence",
    "Absolute confidence for any fusion: similarity compared with off-topic queries, query terms in the first result, "
    "agreement of retrievers.",
    bias=1.021,
    weights={"nearness": 0.293, "coverage": 3.829, "agreement": 1.775},
    typical={"nearness": 5.209, "coverage": 0.738, "agreement": 0.477},
)
@dataclass(frozen=True)
class CalibrateByEvidence(Reorder):
    """Give the first hit the probability that there is an answer, and every other hit its share of it by score.

    Normalised scores say nothing of a query: the first hit of nonsense has 1. The probability is 1 / (1 + exp(-s)), s
    being `bias` plus for each sign its weight in `weights` times (its value - that in `typical`). `nearness`: standard
    deviations by which the best cosine exceeds those of everyday questions (`index.background`). `coverage`: the
    share of the query's idf that the first hit's text, title, path and headings hold, 0 to 1. `agreement`: the
    share of the first five documents of dense search that are among the first five of another list, 0 to 1. A sign
    that a search cannot have, because a mode omits its lists, counts as typical. The
    numbers were fitted on topics and their near misses. `noise` is that of `Calibrate`.
    """

    bias: float  # log-odds of an answer with typical signs
    weights: Mapping[_Sign, float]  # log-odds for each unit of a sign
    typical: Mapping[_Sign, float]  # the value of each sign that changes nothing
    noise: Mapping[str, str] = field(default_factory=dict, metadata={"made by": "the pipeline"})

    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.CALIBRATED})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.CALIBRATED: "scores have been calibrated already"}

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("weights", "typical"):
            absent = set(SIGNS) - set(getattr(self, name))
            if absent:
                raise self.refused(name, f"must hold {', '.join(SIGNS)}, but lacks {min(absent)}")

    @property
    def needs(self) -> frozenset[str]:
        """The terms of documents, and what says which cosines stand out."""
        return agreement.needs(self.noise) | {"chunks", "terms"}

    def among(self, sources: Sequence[Retriever]) -> CalibrateByEvidence:
        """This stage in a pipeline with these sources. ConfigError without dense retrieval."""
        noise = agreement.noise_parts(sources)
        if not noise:
            raise ConfigError("calibration=evidence needs dense retrieval: take calibration=on, or turn on dense")
        return replace(self, noise=noise)

    def reorder(self, state: QueryState, index: Index) -> Ranking:
        """Map the scores; the order is kept."""
        ranking = fused(state)
        if not len(ranking):
            return ranking
        scores = ranking.scores.astype(np.float64)
        shares = np.clip(scores / scores[0], 0.0, 1.0) if scores[0] > 0 else np.ones_like(scores)
        return replace(
            Ranking.ordered(ranking.chunks, self.probability(self.signs(state, index)) * shares),
            of_documents=ranking.of_documents,
        )

    def probability(self, signs: Mapping[str, float]) -> float:
        """The probability that there is an answer, by the signs there are."""
        score = self.bias + sum(self.weights[name] * (value - self.typical[name]) for name, value in signs.items())
        return float(1.0 / (1.0 + np.exp(np.clip(-score, -700, 700))))

    def signs(self, state: QueryState, index: Index) -> dict[str, float]:
        """The signs of a state with at least one fused hit, as far as its lists can have them."""
        signs = {"coverage": _coverage(state, index)}
        near = [
            agreement.z_score(state, index, *noise_part)
            for noise_part in self.noise.items()
            if len(_list(state, noise_part[0]))
        ]
        if near:
            signs["nearness"] = max(near)
        meaning = [source for source in self.noise if source in state.rankings]
        others = [source for source in state.rankings if source not in agreement.FOLLOWERS and source not in self.noise]
        if meaning and others:
            first = _first_documents(state, meaning[0], index)
            signs["agreement"] = (
                max(len(first & _first_documents(state, retriever, index)) for retriever in others) / _FIRST
            )
        return signs

    def describe(self) -> str:
        return "calibrate by what speaks for an answer"


def _list(state: QueryState, source: str) -> Ranking:
    return state.rankings.get(source, Ranking.empty())


def _first_documents(state: QueryState, source: str, index: Index) -> set[int]:
    """The first documents of a source, by their best chunks."""
    documents = index.chunks.document[_list(state, source).chunks].tolist()
    return set(list(dict.fromkeys(documents))[:_FIRST])


def _coverage(state: QueryState, index: Index) -> float:
    """The share of the query's idf that the first hit holds; 0 for a query without terms."""
    from ragbench.index.terms import FIELDS

    terms = index.part("terms")
    query = np.array(list(dict.fromkeys(terms.of(state.query.text).tolist())), dtype=np.int64)
    idf = terms.idf(query)
    if not idf.sum() > 0:
        return 0.0
    lead = fused(state).chunks[:1].astype(np.int64)
    sets, _ = terms.fields(index.chunks.document[lead].astype(np.int64), lead, query)
    held = sets[[FIELDS.index(name) for name in _NAMES], 0].any(axis=0)
    held[terms.matches(lead, query, apart=1)[2]] = True
    return float(idf @ held / idf.sum())
