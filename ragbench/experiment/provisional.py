"""A first answer early: the first arms on a sample of the topics among a part of the documents, while a long run works.

What it embeds goes into the cache, so that the run does not embed it again. It is shown beside the progress and kept
nowhere: the measurement itself uses all topics and documents.
"""

from __future__ import annotations

import random
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import fewest
from ragbench.base.numbers import interval
from ragbench.base.progress import note, track
from ragbench.config.arm_builder import ArmBuilder, Progress
from ragbench.evaluation import measures
from ragbench.evaluation.levels import DOCUMENT
from ragbench.evidence.policy import Policy
from ragbench.index.artefacts import ArtefactStore
from ragbench.search.engine import executor

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.base.types import Document
    from ragbench.benchmark.benchmark import Benchmark, Topic
    from ragbench.config.settings import Settings
    from ragbench.index.index import Index

TOPICS, ARMS = 40, 3
"""The most topics and arms of a first answer."""
SHARE = 0.12
"""The share of the chunks among which it searches."""
WORTH = 30.0
"""Seconds that a run must take for a first answer to be worth its time."""
_DEPTH = 20


@dataclass(frozen=True)
class Answers:
    """Values of the primary measure by arm and qid, and among how many of all documents."""

    values: Mapping[str, Mapping[str, float]]
    documents: int
    of_documents: int

    def sentence(self, policy: Policy) -> str:
        """`provisional, nDCG@10 of 40 topics among 80 of 537 documents: a 0.71, b 0.78 (+0.07 [+0.01, +0.13])`."""
        (first, base), *others = self.values.items()
        part = self.documents < self.of_documents
        where = f" among {self.documents:,} of {self.of_documents:,} documents" if part else ""
        said = [f"{first} {sum(base.values()) / len(base):.2f}"]
        qids = sorted(base)
        for name, values in others:
            (found,) = policy.compare([[values[qid] for qid in qids]], [[base[qid] for qid in qids]])
            change = f"{found.difference:+.2f} {_ends(found.ci_low, found.ci_high)}"
            said.append(f"{name} {found.mean_candidate:.2f} ({change})")
        return f"provisional, {policy.measure} of {len(qids)} topics{where}: {', '.join(said)}"


def show(
    settings: Sequence[Settings], benchmark: Benchmark, topics: Sequence[Topic], builder: ArmBuilder, index: Index
) -> Answers | None:
    """Measure the first arms on a sample, and show them; None where too few topics have an answer to be found.

    `index` is that of the first arm; its words choose the documents among which is searched.
    """
    few = settings[:ARMS]
    part = sample(benchmark, topics, index, int(few[0].config["seed"]))
    if len(part.topics) < fewest.SAMPLED:
        return None
    policy = Policy.of(few[0].config)
    values: dict[str, dict[str, float]] = {}
    with tempfile.TemporaryDirectory(prefix="ragbench-") as folder:
        of_part = ArmBuilder(part, ArtefactStore(Path(folder)), builder.models, _renamed(builder.progress))
        arms = of_part.arms(few)
        queries = [topic.query() for topic in part.topics]
        for outcome in executor.execute(arms, queries, _renamed(builder.progress)):
            table = next(arm for arm in arms if arm.name == outcome.arm).index.chunks
            found = measures.evaluate(
                measures.document_run(outcome.final, table), part.document_qrels, [policy.measure], part.unanswerable
            )
            rows = found[found["measure"] == policy.measure]
            values[outcome.arm] = dict(zip(rows["qid"], rows["value"].astype(float), strict=True))
        for arm in arms:
            arm.index.close()
    in_order = {each.name: values[each.name] for each in few}
    answers = Answers(in_order, len(part.documents), len(benchmark.documents))
    note(answers.sentence(policy))
    return answers


def refine(shared: Settings, benchmark: Benchmark, frames: Mapping[str, pd.DataFrame]) -> None:
    """Show the arms that are measured on all topics, in place of the first answer, once there are two."""
    policy, everything = Policy.of(shared.config), len(benchmark.documents)
    of_arm = {
        name: frame[(frame["level"] == DOCUMENT) & (frame["measure"] == policy.measure)]
        for name, frame in frames.items()
    }
    values = {name: dict(zip(rows["qid"], rows["value"], strict=True)) for name, rows in of_arm.items() if len(rows)}
    if len(values) > 1:
        note(Answers(values, everything, everything).sentence(policy))


def sample(benchmark: Benchmark, topics: Sequence[Topic], index: Index, seed: int) -> Benchmark:
    """Some topics, of every type in proportion, and the documents that answer them or have most of their words."""
    table = index.chunks
    room = SHARE * table.n_retrievable
    sizes = {docno: max(1, _size(index, docno)) for docno in table.docnos}
    chosen: list[Topic] = []
    kept: dict[str, None] = {}
    spent = 0
    for topic in _stratified(topics, benchmark, seed):
        needed = [docno for docno, grade in benchmark.document_qrels[topic.qid].items() if grade > 0 and docno in sizes]
        more = sum(sizes[docno] for docno in needed if docno not in kept)
        if needed and spent + more <= 2 / 3 * room:
            chosen.append(topic)
            kept |= dict.fromkeys(needed)
            spent += more
        if len(chosen) == TOPICS:
            break
    for docno in _rivals(index, [topic.text for topic in chosen]):
        if docno not in kept and spent + sizes[docno] <= room:
            kept[docno] = None
            spent += sizes[docno]
    qids = {topic.qid for topic in chosen}
    documents = tuple(_among(document, kept) for document in benchmark.documents if document.docno in kept)
    qrels = {
        qid: {docno: grade for docno, grade in grades.items() if docno in kept}
        for qid, grades in benchmark.document_qrels.items()
        if qid in qids
    }
    if not documents:
        return replace(benchmark, topics=(), quotes=(), section_qrels={})
    return replace(
        benchmark, documents=documents, topics=tuple(chosen), document_qrels=qrels, section_qrels={}, quotes=()
    )


def _stratified(topics: Sequence[Topic], benchmark: Benchmark, seed: int) -> Iterator[Topic]:
    """The topics with a relevant document, those of each type spread evenly, in an order that the seed decides."""
    chance = random.Random(seed)
    answered = [t for t in topics if max(benchmark.document_qrels.get(t.qid, {}).values(), default=0) > 0]
    places: list[tuple[float, str, Topic]] = []
    for kind in sorted({topic.type for topic in answered}):
        of_kind = [topic for topic in answered if topic.type == kind]
        chance.shuffle(of_kind)
        places += [((n + chance.random()) / len(of_kind), topic.qid, topic) for n, topic in enumerate(of_kind)]
    return (topic for _, _, topic in sorted(places, key=lambda place: place[:2]))


def _rivals(index: Index, texts: Sequence[str]) -> Iterator[str]:
    """The documents with most of the words of the texts: the best of every text, then the second best ..."""
    table = index.chunks
    rankings = (index.lexical.search(text, _DEPTH) for text in track("choosing documents", texts))
    found = [list(dict.fromkeys(table.docno(int(chunk)) for chunk in ranking.chunks)) for ranking in rankings]
    for rank in range(max(map(len, found), default=0)):
        yield from (docnos[rank] for docnos in found if rank < len(docnos))


def _size(index: Index, docno: str) -> int:
    first, last = index.chunks.chunks_of(index.chunks.document_number[docno])
    return last - first


def _among(document: Document, kept: Mapping[str, None]) -> Document:
    """The document with its links to the documents that are kept."""
    return replace(document, links=tuple(link for link in document.links if link.target is None or link.target in kept))


def _renamed(progress: Progress | None) -> Progress | None:
    """Progress of a first answer, apart from that of the run."""
    if progress is None:
        return None
    return lambda task, done, total: progress(f"preview: {task}", done, total)


def _ends(low: float, high: float) -> str:
    return interval(low, high, 2) if low == low else "[too few topics]"
