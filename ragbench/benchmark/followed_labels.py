"""What became of the judged documents and sections of a benchmark, by names as files of judgments have them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragbench.base.types import Document
from ragbench.benchmark.benchmark import Benchmark, Qrels, docno_of_section
from ragbench.benchmark.follow import Earlier, Followed, LabelFollower, health
from ragbench.benchmark.git_history import History
from ragbench.benchmark.labels import LabelHealth
from ragbench.benchmark.names import Names, address
from ragbench.benchmark.native import best_sections


@dataclass(frozen=True)
class FollowedLabels:
    """What became of every judgment of a benchmark, by query and judged name."""

    by_name: Mapping[str, Followed]
    judged: Sequence[tuple[str, str, int]]
    """(qid, name, grade) of every judgment; those of documents that follow from sections are not among them."""

    @property
    def health(self) -> LabelHealth:
        """The counts of judgments."""
        return health(self.by_name[name] for _, name, _ in self.judged)

    def document_qrels(self) -> dict[str, dict[str, int]]:
        """The judgments of documents where they are now, without those that are gone or may be elsewhere."""
        qrels: dict[str, dict[str, int]] = {}
        for qid, name, grade in self.judged:
            followed = self.by_name[name]
            for target in () if followed.may_be_elsewhere else followed.targets:
                docno = docno_of_section(target) if followed.is_section else target
                grades = qrels.setdefault(qid, {})
                grades[docno] = max(grade, grades.get(docno, grade))
        return qrels

    @property
    def doubtful_queries(self) -> set[str]:
        """The qids with a judged name whose text may be elsewhere."""
        return {qid for qid, name, _ in self.judged if self.by_name[name].may_be_elsewhere}


@dataclass(frozen=True)
class EarlierState:
    """How the documents were when they were judged: at the commit `since` of git, or in the folder `before`.

    Without both it is the commit when the file of judgments was last changed, where git has it.
    """

    since: str = ""
    before: Path | None = None


def follow_labels(benchmark: Benchmark, state: EarlierState | None = None) -> FollowedLabels | None:
    """What became of the judgments of a benchmark of markdown files; None for other benchmarks.

    Raises BenchmarkError for a commit that does not exist, CorpusError for a folder without documents.
    """
    data: Mapping[str, Any] = (benchmark.source or {}).get("data", {})
    if data.get("loader") not in ("vault", "native") or not data.get("corpus"):
        return None
    judged = [*_judged(benchmark.document_qrels, benchmark.section_qrels), *benchmark.missing]
    names = {name for _, name, _ in judged}
    files = [Path(data[key]) for key in ("queries", "qrels") if data.get(key)]
    return FollowedLabels(follow_names(names, benchmark.documents, Path(data["corpus"]), files, state), judged)


def _judged(documents: Qrels, sections: Qrels) -> Iterable[tuple[str, str, int]]:
    implied = best_sections(sections)
    for qid, grades in sections.items():
        yield from ((qid, name, grade) for name, grade in grades.items())
    for qid, grades in documents.items():
        yield from ((qid, name, grade) for name, grade in grades.items() if name not in implied.get(qid, {}))


def follow_names(
    written: Collection[str],
    documents: Sequence[Document],
    corpus: Path,
    files: Sequence[Path],
    state: EarlierState | None = None,
) -> dict[str, Followed]:
    """What became of the documents and sections of these names; `files` are those that hold the judgments."""
    state, names = state or EarlierState(), Names(documents)
    found = {name: names.document(name) or names.section(name) for name in written}
    known = {name: target for name, target in found.items() if target}
    lost = [name for name in written if name not in known]
    targets, earlier = _earlier(known, lost, corpus, files, state)
    follower = LabelFollower(earlier, documents)
    return {name: follower.follow(targets.get(name, name)) for name in written}


def _earlier(
    known: Mapping[str, str], lost: Sequence[str], corpus: Path, files: Sequence[Path], state: EarlierState
) -> tuple[dict[str, str], Earlier]:
    """The earlier ids by written name, and the earlier documents of them."""
    if state.before is not None:
        from ragbench.corpus.reader import read_vault

        before = read_vault(state.before).documents
        return {**known, **_by_address(lost, [page.docno for page in before])}, Earlier({d.docno: d for d in before})
    history = History.of(corpus)
    if history is None:
        return dict(known), Earlier()
    since = history.commit(state.since) if state.since else _newest(history, files)
    judged = {docno_of_section(target) for target in known.values()} if since else set()
    for reach in dict.fromkeys((since, "")):
        events = history.events(reach) if lost or reach else []
        targets = _by_address(lost, history.earlier_docnos(events, reach))
        if len(targets) == len(lost):
            break
    docnos = {*judged, *known.values(), *targets.values(), *map(docno_of_section, targets.values())}
    return {**known, **targets}, history.earlier(docnos if since else docnos - set(known.values()), events, reach)


def _newest(history: History, files: Sequence[Path]) -> str:
    """The commit of the documents when a file of judgments was changed last; empty if that is unknown."""
    changes = [history.last_change(file) for file in files]
    return next((change for change in changes if change), "")


def _by_address(lost: Sequence[str], docnos: Collection[str]) -> dict[str, str]:
    """By written name, the earlier docno, with its anchor, whose address it is; longer ones of equal ends first."""
    places = {address(f"{docno}.md"): docno for docno in docnos}
    found = {}
    for name in lost:
        path, _, anchor = name.partition("#")
        sought = address(path.partition("://")[2].partition("/")[2] if "://" in path else path)
        fitting = [docno for place, docno in places.items() if place == sought] or [
            docno for place, docno in places.items() if place and sought and f"/{place}".endswith(f"/{sought}")
        ]
        if len(fitting) == 1:
            found[name] = f"{fitting[0]}#{anchor}" if anchor else fitting[0]
    return found
