"""A benchmark: documents, topics, judgments and splits, in one immutable value."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ragbench.base import minimums
from ragbench.base.fingerprint import ASIDE, digest, shuffle_key
from ragbench.base.types import BenchmarkError, ConfigError, Query, counted
from ragbench.benchmark.query_filter import QueryFilter
from ragbench.benchmark.quotes import Quote
from ragbench.corpus.links import collection_digest

if TYPE_CHECKING:
    from ragbench.base.types import Document
    from ragbench.benchmark.label_health import FollowedLabels

Qrels = Mapping[str, Mapping[str, int]]
"""Grades (0-3, or those of the collection) by qid and by docno or section id; absent pairs are unjudged."""

NO_ANSWER = "no_answer"
_MADE = {"": "human-written", "derived": "synthetic"}


@dataclass(frozen=True)
class Topic:
    """An information need and the query that a user would type for it.

    `type`: factual, navigational, exploratory, vocabulary, code, multi_document or no_answer in the built-in benchmark,
    anything in others. `split`: train or test. Topics of one `group` paraphrase one need and share a split.
    `provenance` says how it was made (derived, log, model), empty if an annotator wrote it; `masked` is its source
    text, if the documents must not contain it (`ragbench.extras.collect.masked`).

    `salient_terms` are words of the text, separated by `;`, that say what is looked for. Who picked them saw nothing
    but the text. Lexical search v3 ranks by them; the digest of a benchmark does not cover them. `filter` has the
    conditions that documents must meet to be found, such as `{"version": "3.2"}` (`ragbench.benchmark.query_filter`).
    """

    qid: str
    text: str
    type: str = "unknown"
    split: str = "test"
    need: str = ""
    hypothesis: str | None = None
    group: str = ""
    provenance: str = ""
    masked: str = ""
    salient_terms: str = field(default="", metadata=ASIDE)
    filter: QueryFilter = field(default_factory=dict, hash=False, metadata=ASIDE)

    @property
    def cluster(self) -> str:
        """Its group, or the topic alone: topics of one cluster are excluded together."""
        return self.group or self.qid

    def query(self) -> Query:
        """The part that the pipeline sees."""
        terms = tuple(term.strip() for term in self.salient_terms.split(";") if term.strip())
        return Query(self.qid, self.text, self.hypothesis, self.type, () if terms else None, terms, self.filter)


@dataclass(frozen=True)
class Benchmark:
    """Documents with queries and judgments, which experiments measure.

    Attributes:
        name: The name in results and MLflow.
        documents: The documents of the collection, in the order of the collection.
        topics: The queries with their ids, splits and types.
        document_qrels: Grades by qid and docno.
        section_qrels: Grades by qid and section; empty where only documents were judged.
        warnings: Sentences of the loader about unusual data.
        version: Conventions of the source, such as the meaning of grades.
        quotes: Passages that answer queries; the documents and sections that contain them are judged as well.
        notes: Sentences on what was excluded from the documents, by kind, and how names of answers were understood.
        drawn_from: The number of documents of which these are a part, for a preliminary verdict; None if they are all.
        missing: (qid, name, grade) of excluded judgments: their document or section is not in the collection.
        labels: What became of the judged documents, of which the judgments here exclude doubtful ones; None if unknown.
    """

    name: str
    documents: Sequence[Document]
    topics: tuple[Topic, ...]
    document_qrels: Qrels
    section_qrels: Qrels = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    version: str = ""
    quotes: tuple[Quote, ...] = ()
    notes: tuple[str, ...] = field(default=(), compare=False)
    drawn_from: int | None = None
    missing: tuple[tuple[str, str, int], ...] = field(default=(), compare=False)
    labels: FollowedLabels | None = field(default=None, compare=False, repr=False)
    _read: tuple[Mapping[str, Any], tuple[Any, ...]] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.documents:
            raise BenchmarkError(f"benchmark '{self.name}' has no documents")
        _refuse_repeated(self.name, "document", [document.docno for document in self.documents])
        _refuse_repeated(self.name, "topic", [topic.qid for topic in self.topics])

    @classmethod
    def from_frames(
        cls, documents: Any, queries: Any = None, qrels: Any = None, name: str = "frames", markdown: bool = False
    ) -> Benchmark:
        """Build a benchmark from tables, or from a dataset of PyTerrier or ir_datasets.

        Args:
            documents: A DataFrame, a list of dicts or a mapping by id, with columns docno, text and optionally title;
                or a dataset that has documents, queries and judgments.
            queries: A table with columns qid, query and optionally split.
            qrels: A table with columns qid, docno, label. Column names of ranx, BEIR and ir_datasets are accepted.
            name: The name of the benchmark.
            markdown: Read texts as markdown, with headings and links.

        Returns:
            The benchmark. It exists only in memory: `save_benchmark` writes it.

        Raises:
            BenchmarkError: A table has no such column, or a row cannot be used; the message names both.

        Example:
            >>> from ragbench import Benchmark
            >>> pages = [{"docno": "keys", "text": "Rotate an API key."}, {"docno": "logs", "text": "Read the log."}]
            >>> benchmark = Benchmark.from_frames(pages, {"q1": "rotate a key"}, {"q1": {"keys": 1}})
            >>> len(benchmark.documents), benchmark.document_qrels
            (2, {'q1': {'keys': 1}})
        """
        from ragbench.benchmark import frames  # late, because it makes benchmarks

        return frames.from_frames(documents, queries, qrels, name, markdown)

    def read_from(self, source: Mapping[str, Any]) -> Benchmark:
        """The same benchmark, which `ragbench.config.benchmark.load` reads from the nodes `data` and `topics`."""
        return replace(self, _read=(source, self._parts))

    @property
    def source(self) -> Mapping[str, Any] | None:
        """Its source; None if it was built in memory, or one of its parts replaced since."""
        return self._source_of(len(self._parts))

    @property
    def documents_source(self) -> Mapping[str, Any] | None:
        """The source of its documents; None if they were built in memory, or replaced since."""
        return self._source_of(1)

    def _source_of(self, parts: int) -> Mapping[str, Any] | None:
        if self._read is None:
            return None
        source, read = self._read
        unchanged = (new is old for new, old in zip(self._parts[:parts], read[:parts], strict=True))
        return source if all(unchanged) else None

    @property
    def _parts(self) -> tuple[Any, ...]:
        return self.documents, self.topics, self.document_qrels, self.section_qrels, self.quotes

    @property
    def by_section(self) -> bool:
        """Whether sections were judged for at least half of the topics with judgments; else use documents."""
        return len(self.section_qrels) * 2 >= max(1, len(self.document_qrels))

    def __repr__(self) -> str:
        judged = sum(map(len, self.document_qrels.values()))
        sizes = ((len(self.documents), "document"), (len(self.topics), "topic"), (judged, "judgment"))
        return f"Benchmark('{self.name}': {', '.join(counted(*size) for size in sizes)})"

    @property
    def splits(self) -> tuple[str, ...]:
        """The names of its splits, sorted."""
        return tuple(sorted({topic.split for topic in self.topics}))

    def select(self, split: str = "all") -> tuple[Topic, ...]:
        """The topics of one split, or all topics."""
        chosen = tuple(topic for topic in self.topics if split in ("all", topic.split))
        if not chosen:
            raise BenchmarkError(
                f"benchmark '{self.name}' has no queries in split '{split}'; it has {', '.join(self.splits) or 'none'}"
                + (": add data.resplit=13 to split them into train and test" if split in ("train", "test") else "")
            )
        return chosen

    def with_answer(self, topics: Iterable[Topic]) -> tuple[Topic, ...]:
        """Those of the topics with a relevant document."""
        qrels = self.document_qrels
        return tuple(topic for topic in topics if any(grade > 0 for grade in qrels.get(topic.qid, {}).values()))

    @cached_property
    def unanswerable(self) -> frozenset[str]:
        """Topics known to have no answer: by their type, or because all their judgments are irrelevant."""
        judged = {qid for qid, grades in self.document_qrels.items() if grades and max(grades.values()) <= 0}
        typed = {topic.qid for topic in self.topics if topic.type == NO_ANSWER}
        answered = {qid for qid, grades in self.document_qrels.items() if grades and max(grades.values()) > 0}
        return frozenset((judged | typed) - answered)

    @property
    def provenance(self) -> str:
        """How the topics were made, for tables that use them; empty when annotators wrote all of them."""
        counts = Counter(topic.provenance for topic in self.topics)
        if set(counts) <= {""}:
            return ""
        named = sorted((_MADE.get(name, name), count) for name, count in counts.items())
        if len(named) == 1:
            return f"{named[0][0]} queries"
        return f"{' and '.join(f'{count} {name}' for name, count in named)} queries"

    @cached_property
    def collection(self) -> str:
        """A digest over the documents."""
        return collection_digest(self.documents)

    @cached_property
    def questions(self) -> str:
        """A digest over the topics."""
        return digest([self.topics, self._filters] if self._filters else self.topics)

    @cached_property
    def digest(self) -> str:
        """A digest over documents, topics and judgments."""
        more = [part for part in (self.quotes, self._filters) if part]
        return digest([self.collection, self.topics, self.document_qrels, self.section_qrels, *more])

    @property
    def _filters(self) -> dict[str, QueryFilter]:
        """The filters by qid; benchmarks without filters keep the digests that they had before there were any."""
        return {topic.qid: topic.filter for topic in self.topics if topic.filter}

    @property
    def quotes_by_topic(self) -> dict[str, tuple[Quote, ...]]:
        """The quotes that were found, by qid."""
        by_topic: dict[str, tuple[Quote, ...]] = {}
        for quote in self.quotes:
            if quote.state != "lost":
                by_topic[quote.qid] = (*by_topic.get(quote.qid, ()), quote)
        return by_topic


def area(docno: str) -> str:
    """The part of a collection a document belongs to: its first folder, `""` at the root."""
    first, slash, _ = docno.partition("/")
    return first if slash else ""


def docno_of_section(section_id: str) -> str:
    """The docno of a section id `docno#anchor`. A docno may contain `#` (`kit/c#`), an anchor cannot."""
    return section_id.rpartition("#")[0] or section_id


def best_sections(section_qrels: Qrels) -> dict[str, dict[str, int]]:
    """Document judgments from section judgments: the best grade of a document's sections."""
    documents: dict[str, dict[str, int]] = {}
    for qid, grades in section_qrels.items():
        best = documents.setdefault(qid, {})
        for target, grade in grades.items():
            docno = docno_of_section(target)
            best[docno] = max(grade, best.get(docno, grade))
    return documents


def topic_area(grades: Mapping[str, int]) -> str:
    """The area with most of a topic's best-graded documents, the first by name of equals; `""` without any."""
    best = max(grades.values(), default=0)
    areas = Counter(area(docno) for docno, grade in grades.items() if grade == best and grade > 0)
    return min(areas, key=lambda name: (-areas[name], name), default="")


def _refuse_repeated(name: str, kind: str, ids: Sequence[str]) -> None:
    if len(set(ids)) < len(ids):
        repeated = next(name for name, n in Counter(ids).items() if n > 1)
        raise BenchmarkError(f"benchmark '{name}' has {kind} '{repeated}' more than once")


TRAIN, TEST = "train", "test"


# The cost of an imbalance in each respect. Types cost most, since they are reported one by one.
_COST = {"type": 8.0, "all": 4.0, "stratum": 2.0, "area": 2.0}


def split(topics: Iterable[Topic], qrels: Qrels, seed: int = 13, share: float = 0.5) -> dict[str, str]:
    """`train` or `test` for every qid. `share` (between 0 and 1) of the topics is train.

    Strata are type x area, the area of a topic being that of its best documents. Each group goes to the side where it
    leaves the least imbalance (squared difference from the share, over types, strata, areas and all), large groups
    first, the rest in an order drawn by hashing the seed with the qid: the result depends neither on the order of
    topics nor on the random numbers of a library.
    """
    if not 0 < share < 1:
        raise ConfigError(f"share must lie between 0 and 1, got {share}")
    units: dict[str, list[Topic]] = {}
    for topic in topics:
        units.setdefault(f"group {topic.group}" if topic.group else f"topic {topic.qid}", []).append(topic)
    marks = {name: _marks(unit, qrels) for name, unit in units.items()}
    excess: dict[tuple[str, str], float] = defaultdict(
        float
    )  # topics in train beyond its share, for every type, stratum and area
    sides: dict[str, str] = {}
    for name in sorted(
        units, key=lambda name: (-len(units[name]), _stratum(units[name], qrels), shuffle_key(seed, name))
    ):
        into_train = _cost(excess, marks[name], 1 - share)
        into_test = _cost(excess, marks[name], -share)
        if into_train != into_test:
            side = TRAIN if into_train < into_test else TEST
        else:
            side = TRAIN if int(shuffle_key(seed, f"side {name}"), 16) % 2 else TEST
        for mark, n in marks[name].items():
            excess[mark] += n * (1 - share if side == TRAIN else -share)
        sides.update((topic.qid, side) for topic in units[name])
    return sides


def has_halves(topics: Sequence[Topic]) -> bool:
    """Whether there are topics to explore on and others to confirm on: both splits, and `HALVES` topics or more."""
    return len(topics) >= minimums.TO_SPLIT and {TRAIN, TEST} <= {topic.split for topic in topics}


def resplit(benchmark: Benchmark, seed: int = 13, share: float = 0.5) -> Benchmark:
    """The same benchmark with its topics split again."""
    return replace(benchmark, topics=with_splits(benchmark.topics, benchmark.document_qrels, seed, share))


def with_splits(topics: Sequence[Topic], qrels: Qrels, seed: int = 13, share: float = 0.5) -> tuple[Topic, ...]:
    """The topics with the splits that `split` gives them."""
    sides = split(topics, qrels, seed, share)
    return tuple(replace(topic, split=sides[topic.qid]) for topic in topics)


def _marks(unit: Sequence[Topic], qrels: Qrels) -> Counter[tuple[str, str]]:
    marks: Counter[tuple[str, str]] = Counter()
    for topic in unit:
        area = topic_area(qrels.get(topic.qid, {}))
        marks.update([("type", topic.type), ("area", area), ("stratum", f"{topic.type}\t{area}"), ("all", "")])
    return marks


def _stratum(unit: Sequence[Topic], qrels: Qrels) -> tuple[str, str]:
    first = min(unit, key=lambda topic: topic.qid)
    return first.type, topic_area(qrels.get(first.qid, {}))


def _cost(excess: Mapping[tuple[str, str], float], marks: Mapping[tuple[str, str], int], step: float) -> float:
    """The imbalance cost after a unit is assigned to a side; rounded, so that equal costs compare equal."""
    return round(sum(_COST[mark[0]] * (excess.get(mark, 0.0) + n * step) ** 2 for mark, n in marks.items()), 9)
