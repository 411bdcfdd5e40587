"""What became of the judged documents and sections of a benchmark, by names as files of judgments have them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ragbench.base.types import BenchmarkError, Document, RagbenchError
from ragbench.benchmark.benchmark import Benchmark, Qrels, best_sections, docno_of_section
from ragbench.benchmark.label_health import Followed, FollowedLabels
from ragbench.benchmark.names import Names, address
from ragbench.corpus import reader
from ragbench.extras.follow.follower import Earlier, LabelFollower
from ragbench.extras.follow.git_history import History
from ragbench.extras.follow.redirects import read_redirects


@dataclass(frozen=True)
class EarlierState:
    """How the documents were when they were judged: at the commit `since` of git, or in the folder `before`.

    Without both it is the commit when the file of judgments was last changed, where git has it.
    """

    since: str = ""
    before: Path | None = None


def follow_labels(benchmark: Benchmark) -> FollowedLabels | None:
    """What became of the judgments of a benchmark of markdown files; None for other benchmarks.

    Raises BenchmarkError if git cannot read the history.
    """
    data: Mapping[str, Any] = (benchmark.source or {}).get("data", {})
    if data.get("loader") not in ("vault", "native") or not data.get("corpus"):
        return None
    judged = [*_judged(benchmark.document_qrels, benchmark.section_qrels), *benchmark.missing]
    names = {name for _, name, _ in judged}
    files = [Path(data[key]) for key in ("queries", "qrels") if data.get(key)]
    return FollowedLabels(follow_names(names, benchmark.documents, Path(data["corpus"]), files), judged)


def without_doubtful(benchmark: Benchmark) -> Benchmark:
    """A benchmark with what became of its judgments, and without doubtful ones; itself where that is not known.

    A query whose relevant judgments are all doubtful keeps none: with irrelevant ones it would have no answer.
    """
    try:
        labels = follow_labels(benchmark)
    except (RagbenchError, OSError):  # a run says that label health is unknown
        return benchmark
    if labels is None:
        return benchmark
    quoted = {(quote.qid, quote.docno) for quote in benchmark.quotes if quote.state != "lost"}
    of_quotes = {one for one in labels.doubtful if (one[0], docno_of_section(one[1])) in quoted}  # words that are there
    labels = replace(labels, judged=[one for one in labels.judged if one[:2] not in of_quotes])
    if not (omitted := set(labels.doubtful)):
        return replace(benchmark, labels=labels)
    left_out = labels.left_out
    sections = {
        qid: {name: grade for name, grade in grades.items() if (qid, name) not in omitted}
        for qid, grades in benchmark.section_qrels.items()
        if qid not in left_out
    }
    before, now = best_sections(benchmark.section_qrels), best_sections(sections)
    documents = {
        qid: {
            name: now[qid][name] if grade == before.get(qid, {}).get(name) else grade
            for name, grade in grades.items()
            if (name in now.get(qid, {}) if name in before.get(qid, {}) else (qid, name) not in omitted)
        }
        for qid, grades in benchmark.document_qrels.items()
        if qid not in left_out
    }
    texts = {topic.qid: topic.text for topic in benchmark.topics}
    reduced = replace(
        benchmark,
        document_qrels={qid: grades for qid, grades in documents.items() if grades},
        section_qrels={qid: grades for qid, grades in sections.items() if grades},
        warnings=(*benchmark.warnings, f"{labels.sentence(texts)} (ragbench data repair lists them)"),
        labels=labels,
    )
    return reduced if benchmark.source is None else reduced.read_from(benchmark.source)


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
    history = History.of(corpus)
    targets, earlier = _earlier(known, lost, history, files, state)
    if lost:
        earlier = replace(earlier, redirects=read_redirects(corpus, history.top if history else corpus.parent))
        before = Names(earlier.documents.values())
        targets |= {name: section for name in lost if (section := before.section(targets.get(name, name)))}
    follower = LabelFollower(earlier, documents)
    return {name: follower.follow(targets.get(name, name)) for name in written}


def _earlier(
    known: Mapping[str, str], lost: Sequence[str], history: History | None, files: Sequence[Path], state: EarlierState
) -> tuple[dict[str, str], Earlier]:
    """The earlier ids by written name, and the earlier documents of them."""
    if state.before is not None:
        before = reader.read_vault(state.before).documents
        return {**known, **_by_address(lost, [page.docno for page in before])}, Earlier({d.docno: d for d in before})
    if history is None and state.since:
        raise BenchmarkError(
            f"the documents are in no git repository, so that --since {state.since} is not known there"
        )
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
