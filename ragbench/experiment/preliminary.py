"""A first verdict on a part of a collection: its judged documents, those that lexical retrievers rank first, others.

The part has fewer wrong answers than the whole, above all of those that only dense retrieval finds. So the values of
all arms are higher than on the whole, and effects can differ: docs/research/sample.md has the measured differences.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from ragbench.base.errors import ConfigError
from ragbench.experiment.estimate import estimate, missing_passages
from ragbench.search.engine.executor import stage_key
from ragbench.search.engine.pipeline import start
from ragbench.search.stages.retrieve import RetrieveLexical

if TYPE_CHECKING:
    from ragbench.base.types import Document
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.experiment.plan import Plan

OFF, AUTO = "off", "auto"
_SECONDS = 100.0
"""Seconds of embedding that `auto` allows a preliminary verdict; the whole must take more than twice as long."""
_ROUNDED = 50
"""`auto` gives a multiple of these documents, so that small differences in speed draw the same ones."""
_RANKED = 0.5
"""The share of documents without judgments that lexical retrievers choose; the others are random."""


def draw(plan: Plan, sample: str | int, seed: int) -> Benchmark | None:
    """The benchmark with a part of its documents; None if a verdict on the whole does not take much longer.

    `sample`: off, auto, or the number of documents, to which all judged ones belong. Raises ConfigError for a number if
    an arm searches elsewhere.
    """
    elsewhere = next((arm.name for arm in plan.arms.values() if arm.pipeline.live or arm.pipeline.recorded), None)
    if sample == OFF or (elsewhere and sample == AUTO):
        return None
    if elsewhere:
        raise ConfigError(f"data.sample={sample} cannot limit what arm '{elsewhere}' searches: set data.sample=off")
    count = _affordable(plan) if isinstance(sample, str) else sample
    documents = plan.benchmark.documents
    if count >= len(documents):
        return None
    chosen = frozenset(islice(_in_order(plan, count, seed), max(count, len(_judged(plan)))))
    part = [_linked_within(document, chosen) for document in documents if document.docno in chosen]
    return None if len(part) == len(documents) else replace(plan.benchmark, documents=part, drawn_from=len(documents))


def _linked_within(document: Document, docnos: Container[str]) -> Document:
    """The document, whose links to other documents than these lead nowhere."""
    links = (link if link.target in docnos else replace(link, target=None) for link in document.links)
    return replace(document, links=tuple(links))


def _affordable(plan: Plan) -> int:
    """As many documents as embed in `_SECONDS`, but at least twice the judged ones; all, if that saves less than half.

    Small collections are not even chunked.
    """
    count = len(plan.benchmark.documents)
    if count <= 2 * _ROUNDED:
        return count
    seconds = estimate(missing_passages(plan)).seconds
    if seconds <= 2 * _SECONDS:
        return count
    part = max(_ROUNDED * math.ceil(count * _SECONDS / seconds / _ROUNDED), 2 * len(_judged(plan)))
    return part if 2 * part <= count else count


def _in_order(plan: Plan, count: int, seed: int) -> Iterator[str]:
    """Docnos, each once: the judged ones, then those ranked first in turn for every query, then random ones."""
    judged = _judged(plan)
    docnos = [document.docno for document in plan.benchmark.documents]
    by_rank = dict.fromkeys(docno for rank in zip_longest(*_rankings(plan)) for docno in rank if docno is not None)
    ranked = islice(
        (docno for docno in by_rank if docno not in judged), math.ceil(_RANKED * max(0, count - len(judged)))
    )
    others = np.random.default_rng(seed).permutation(len(docnos))
    yield from dict.fromkeys(chain(judged, ranked, (docnos[number] for number in others)))


def _judged(plan: Plan) -> dict[str, None]:
    """The docnos of the collection that are judged for the queries of the plan, in the order of the collection."""
    grades = plan.benchmark.document_qrels
    judged = {docno for topic in plan.topics for docno in grades.get(topic.qid, ())}
    return dict.fromkeys(document.docno for document in plan.benchmark.documents if document.docno in judged)


def _rankings(plan: Plan) -> Iterator[Sequence[str]]:
    """Docnos, best first, of each query by each lexical retriever of the arms, or by plain BM25 if they have none."""
    stages = {
        stage_key(stage, arm.index): (stage, arm.index)
        for arm in plan.arms.values()
        for stage in [stage for _, stage in arm.pipeline if isinstance(stage, RetrieveLexical)] or [RetrieveLexical()]
    }
    for stage, index in stages.values():
        index.prepare(stage.needs)
        table = index.chunks
        for state in stage(start(plan.queries), index):
            rows = table.document[state.rankings[stage.source].chunks].tolist()
            yield list(dict.fromkeys(table.docnos[row] for row in rows))
