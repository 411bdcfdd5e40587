"""A first verdict on a part of a collection: its judged documents, those that lexical retrievers rank first, others.

The part has fewer wrong answers than the whole, above all of those that only dense retrieval finds. So the values of
all arms are higher than on the whole, and effects can differ: docs/research/sample.md has the measured differences.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, islice, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from ragbench.base.types import ConfigError
from ragbench.experiment.estimate import estimate, missing_passages
from ragbench.search.engine.pipeline import stage_key, start
from ragbench.search.stages.retrieve import RetrieveLexical

if TYPE_CHECKING:
    from ragbench.base.types import Document
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.experiment.run import Plan

OFF, AUTO = "off", "auto"
_SECONDS = 100.0
"""Seconds of embedding that `auto` allows a preliminary verdict; the whole must take more than twice as long."""
_SMALL = 100
"""Documents up to which a collection is quick enough."""


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
    documents, judged = plan.benchmark.documents, _judged(plan)
    order = _in_order(plan, judged, seed)
    if isinstance(sample, str):
        chosen = _affordable(plan, order, 2 * len(judged))
    else:
        chosen = frozenset(islice(order, max(sample, len(judged))))
    if len(chosen) == len(documents):
        return None
    part = [_linked_within(document, chosen) for document in documents if document.docno in chosen]
    return replace(plan.benchmark, documents=part, drawn_from=len(documents))


def _linked_within(document: Document, docnos: Container[str]) -> Document:
    """The document, whose links to other documents than these lead nowhere."""
    links = (link if link.target in docnos else replace(link, target=None) for link in document.links)
    return replace(document, links=tuple(links))


def _affordable(plan: Plan, order: Iterator[str], least: int) -> frozenset[str]:
    """As many documents as embed in `_SECONDS`, but at least `least`; all, if that saves less than half.

    Small collections are not even chunked.
    """
    documents = frozenset(document.docno for document in plan.benchmark.documents)
    if len(documents) <= _SMALL or (seconds := estimate(missing_passages(plan)).seconds) <= 2 * _SECONDS:
        return documents
    table = next(iter(plan.arms.values())).index.chunks
    sizes = dict(zip(table.docnos, np.bincount(table.document, minlength=table.n_documents).tolist(), strict=True))
    chosen, budget = set[str](), sum(sizes.values()) * _SECONDS / seconds
    for docno in order:
        budget -= sizes[docno]
        if budget < 0 and len(chosen) >= least:
            break
        chosen.add(docno)
    return frozenset(chosen) if 2 * len(chosen) <= len(documents) else documents


def _in_order(plan: Plan, judged: Mapping[str, None], seed: int) -> Iterator[str]:
    """Docnos, each once: the judged ones; then in turns one ranked first, of each query in turn, and a random one."""
    yield from judged
    docnos = [document.docno for document in plan.benchmark.documents]
    ranked = [docno for rank in zip_longest(*_rankings(plan)) for docno in rank if docno is not None]
    drawn = [docnos[number] for number in np.random.default_rng(seed).permutation(len(docnos))]
    others = dict.fromkeys(chain.from_iterable(zip_longest(dict.fromkeys(ranked), drawn)))
    yield from (docno for docno in others if docno is not None and docno not in judged)


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
