"""Derived topics: known-item queries from a collection's own structure, for collections without queries.

Seeded and stratified: equal numbers from all sources where possible, each in proportion to the areas of the collection.
The text that a topic was made from is masked in the indexed documents (`ragbench.extras.collect.masked`).
"""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from ragbench.base.fingerprint import plain, shuffle_key, text_digest
from ragbench.base.options import build
from ragbench.base.types import BenchmarkError, Document, Query
from ragbench.benchmark.benchmark import Benchmark, Topic, area, best_sections, with_splits
from ragbench.benchmark.phrases import Finder, words
from ragbench.extras.collect.masked import WIDE, without_sources
from ragbench.extras.collect.similarity import near_duplicates
from ragbench.extras.collect.topics.candidates import Candidate, candidates, n_words
from ragbench.extras.collect.topics.collected import CollectedTopics
from ragbench.extras.collect.topics.spec import EVERY, DeriveSpec

DERIVED = "derived"
_LEFT = 20  # words that an answer must keep
_COMMON = 0.25  # a word in a larger share of the documents tells little
_TELLING = {"alias": 1, "question": 2, "how_to": 2}  # words of a query that are not common; three of other kinds
_LIKENESS = 0.7  # share of common words from which two queries count as one


def derive(benchmark: Benchmark, spec: DeriveSpec | None = None) -> Benchmark:
    """The benchmark with derived topics instead of its topics, their sources masked in its documents."""
    spec = spec or DeriveSpec()
    topics = choose(benchmark.documents, spec, benchmark.name)
    return without_sources(
        replace(
            benchmark,
            topics=topics.topics,
            document_qrels=topics.document_qrels,
            section_qrels=topics.section_qrels,
        )
    )


def of_options(benchmark: Benchmark, options: Mapping[str, Any]) -> Benchmark:
    """`derive` with the options of a configuration."""
    return derive(benchmark, build(DeriveSpec, options, "topics"))


def queries(documents: Sequence[Document], limit: int, name: str) -> list[Query]:
    """At most `limit` derived queries, for which nothing is masked; none where the documents give none."""
    try:
        return [topic.query() for topic in choose(documents, DeriveSpec(limit=limit), name).topics]
    except BenchmarkError:
        return []


def choose(documents: Sequence[Document], spec: DeriveSpec, name: str = "the collection") -> CollectedTopics:
    """Choose the topics, before anything is masked. BenchmarkError when the documents give none."""
    dropped: Counter[str] = Counter()
    usable = list(_usable(list(candidates(documents, spec.kinds)), documents, spec, dropped))
    chosen = list(_take_in_turn(_distinct(usable, dropped), spec))
    if not chosen:
        reasons = (
            ", ".join(f"{count} {reason}" for reason, count in dropped.most_common() if count)
            or "nothing reads like one"
        )
        unused = [kind for kind in EVERY if kind not in spec.kinds]
        others = {each.kind for each in _usable(list(candidates(documents, unused)), documents, spec, Counter())}
        add = f", or add {', '.join(kind for kind in unused if kind in others)} to topics.kinds" if others else ""
        raise BenchmarkError(f"no queries can be derived from '{name}' ({reasons}): write queries{add}")
    topics = {f"d-{text_digest(f'{candidate.target} {candidate.text}', 10)}": candidate for candidate in chosen}
    sections = {qid: {candidate.target: 1} for qid, candidate in topics.items() if candidate.target != candidate.docno}
    judged = best_sections(sections) | {qid: {candidate.docno: 1} for qid, candidate in topics.items()}
    listed = [
        Topic(qid, candidate.text, candidate.kind, group=candidate.docno, provenance=DERIVED, masked=candidate.masked)
        for qid, candidate in sorted(topics.items())
    ]
    return CollectedTopics(with_splits(listed, judged, spec.seed, spec.train), judged, sections, dict(dropped))


def _usable(
    candidates: Sequence[Candidate], documents: Sequence[Document], spec: DeriveSpec, dropped: Counter[str]
) -> Iterator[Candidate]:
    """Candidates of suitable length whose only answer keeps enough text and does not contain the query elsewhere."""
    by_docno = {document.docno: document for document in documents}
    texts = Counter(document.text.strip() for document in documents)
    link_words = _link_words(documents)
    frequency = Counter(word for document in documents for word in {*words(document.text)})
    common = {word for word, count in frequency.items() if count > max(2, _COMMON * len(documents))}
    for candidate in candidates:
        answer = by_docno[candidate.docno]
        length = n_words(candidate.text)
        if length < spec.least_words:
            dropped["too short"] += 1
        elif length > spec.most_words:
            dropped["too long"] += 1
        elif len(telling := {*words(candidate.text)} - common) < _TELLING.get(candidate.kind, 3):
            dropped["of common words only"] += 1
        elif spec.overlap < 1 and _shared(telling, answer, candidate) > spec.overlap:
            dropped["with more words of the answer than topics.overlap"] += 1
        elif texts[answer.text.strip()] > 1:
            dropped["answered by several copies"] += 1
        elif n_words(answer.text) - n_words(candidate.masked) < _LEFT:
            dropped["with a short answer"] += 1
        elif _tells(answer, candidate, link_words[candidate.docno]):
            dropped["given away by title, path or text of the answer"] += 1
        else:
            yield candidate


def _shared(telling: Collection[str], answer: Document, candidate: Candidate) -> float:
    """The share of the words that the answer has outside the source of the topic."""
    counts = Counter(words(f"{answer.title}\n{answer.text}"))
    if answer.text in Finder([words(candidate.masked)]):  # not in frontmatter or another document
        counts -= Counter(words(candidate.masked))
    return sum(counts[word] > 0 for word in telling) / len(telling)


def _link_words(documents: Sequence[Document]) -> Mapping[str, str]:
    """The texts of all links to a document, by its docno."""
    by_docno: dict[str, list[str]] = defaultdict(list)
    for document in documents:
        for link in document.links:
            if link.target is not None:
                by_docno[link.target].append(link.text)
    return defaultdict(str, {docno: "\n\n".join(texts) for docno, texts in by_docno.items()})


def _tells(answer: Document, candidate: Candidate, link_words: str) -> bool:
    """Whether the answer still contains the query verbatim after its source is masked."""
    finder = Finder([words(candidate.text)])
    if any(text in finder for text in (answer.title, answer.docno, link_words)):
        return True
    if n_words(candidate.text) >= WIDE:
        return False  # it is masked in all documents
    fields = [str(value) for value in answer.frontmatter.values()]
    places = sum(len(finder.spans(text)) for text in (answer.text, *fields))
    return places > (candidate.kind != "link")  # the source of a link is in another document


def _distinct(candidates: Sequence[Candidate], dropped: Counter[str]) -> list[Candidate]:
    """The candidates without near-duplicate queries: one remains if their answers are the same, else none."""
    removed: set[int] = set()
    for one, second, _ in near_duplicates([candidate.text for candidate in candidates], _LIKENESS):
        removed |= {second} if candidates[one].docno == candidates[second].docno else {one, second}
    dropped["near-duplicates"] += len(removed)
    return [candidate for number, candidate in enumerate(candidates) if number not in removed]


def _take_in_turn(candidates: Iterable[Candidate], spec: DeriveSpec) -> Iterator[Candidate]:
    """Up to `limit` candidates: kinds by shares in turn, areas in proportion, at most `per_document` per answer."""
    queues = {
        kind: _by_area([candidate for candidate in candidates if candidate.kind == kind], spec.seed)
        for kind in spec.kinds
    }
    answers: Counter[str] = Counter()
    counts = dict.fromkeys(queues, 0)
    for _ in range(spec.limit):
        for queue in queues.values():
            while queue and answers[queue[0].docno] >= spec.per_document:
                queue.popleft()
        waiting = [kind for kind, queue in queues.items() if queue]
        if not waiting:
            return
        kind = min(waiting, key=lambda kind: (counts[kind] + 1) / spec.shares.get(kind, 1.0))
        counts[kind] += 1
        chosen = queues[kind].popleft()
        answers[chosen.docno] += 1
        yield chosen


def _by_area(candidates: Iterable[Candidate], seed: int) -> deque[Candidate]:
    """The candidates in a seeded order in which every prefix has the areas in their proportions."""
    areas: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        areas[area(candidate.docno)].append(candidate)
    for members in areas.values():
        members.sort(key=lambda candidate: _draw(seed, candidate))
    return deque(interleave(areas, lambda _, candidate: _draw(seed, candidate)))


def _draw(seed: int, candidate: Candidate) -> str:
    return shuffle_key(seed, str(plain(candidate)))


T = TypeVar("T")


def interleave(groups: Mapping[str, Sequence[T]], tie: Callable[[str, T], str]) -> list[T]:
    """All members, in the given order within their group; `tie` gives the key that orders members at equal places."""
    placed = [
        ((i + 0.5) / len(members), tie(name, member), member)
        for name, members in groups.items()
        for i, member in enumerate(members)
    ]
    return [member for _, _, member in sorted(placed, key=lambda item: item[:2])]
