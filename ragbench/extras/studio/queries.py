"""The query browser: the values of two arms for every topic, and their hits for one topic."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ragbench.base.errors import ResultsError
from ragbench.evaluation.diagnosis import BURIED, FOUND, FUSED_OUT, NEVER
from ragbench.evaluation.measures import DOCUMENT
from ragbench.report import evidence
from ragbench.report.figures import describe_outcome
from ragbench.results.measurements import Measurements
from ragbench.search.engine.snippet import highlights


@dataclass(frozen=True)
class Topic:
    """A topic with its values in both arms; NaN where it has none."""

    qid: str
    type: str
    text: str
    need: str
    left: float
    right: float

    @property
    def effect(self) -> float:
        """Right minus left."""
        return self.right - self.left


class Part(NamedTuple):
    """A piece of text, `marked` if it matches a word of the query."""

    text: str
    marked: bool


@dataclass(frozen=True)
class ShownHit:
    """A hit for the page; `other` is its rank in the other arm, 0 where it is not among the first."""

    rank: int
    docno: str
    title: tuple[Part, ...]
    headings: tuple[Part, ...]
    snippet: tuple[Part, ...]
    grade: int | None
    score: float
    other: int


@dataclass(frozen=True)
class Fate:
    """The fate of a relevant section in an arm, and a remedy, empty when it was found."""

    what: str
    rank: int
    remedy: str


@dataclass(frozen=True)
class Relevant:
    """A relevant section with its fates in both arms, None where it is unknown."""

    section: str
    grade: int
    left: Fate | None
    right: Fate | None


def topics(
    left: tuple[Measurements, str],
    right: tuple[Measurements, str],
    measure: str,
    *,
    level: str = DOCUMENT,
    kind: str = "",
    search_words: str = "",
    sort: str = "loss",
) -> list[Topic]:
    """The topics of a type (empty: any) whose text contains all words; `loss` sorts by what right loses."""
    facts = {row["qid"]: row for row in evidence.rows(right[0].topics)}
    values = [
        {str(qid): float(value) for qid, value in results.values(arm, measure, "all", level).items()}
        for results, arm in (left, right)
    ]
    wanted_words = search_words.casefold().split()
    selected = []
    for qid in sorted({*values[0], *values[1]} & set(facts)):
        row = facts[qid]
        if kind and row["type"] != kind:
            continue
        text = f"{qid} {row['text']}".casefold()
        if all(word in text for word in wanted_words):
            pair = [column.get(qid, math.nan) for column in values]
            selected.append(Topic(qid, str(row["type"] or ""), str(row["text"] or qid), str(row["need"] or ""), *pair))
    keys = {
        "loss": lambda topic: (_last(topic.effect), topic.qid),
        "gain": lambda topic: (_last(-topic.effect), topic.qid),
        "low": lambda topic: (_last(topic.right), topic.qid),
        "qid": lambda topic: (0.0, topic.qid),
    }
    return sorted(selected, key=keys.get(sort, keys["loss"]))


def types(results: Measurements) -> list[str]:
    """The types of the topics."""
    return sorted({str(kind) for kind in results.topics["type"] if kind})


def hits(results: Measurements, arm: str, qid: str, other_hits: Iterable[str] = ()) -> list[ShownHit]:
    """The first hits of a topic in an arm; `other_hits` are the ids of the other arm's hits, in their order."""
    facts = results.topics
    text = " ".join(facts.loc[facts["qid"] == qid, "text"].tolist())
    pattern = highlights(text)
    rank_of = {chunk: rank for rank, chunk in reversed(list(enumerate(other_hits, start=1)))}
    return [
        ShownHit(
            int(row["rank"]),
            str(row["docno"]),
            mark_matches(str(row["title"]), pattern),
            mark_matches(str(row["header_path"]), pattern),
            mark_matches(str(row["snippet"]), pattern),
            _grade(row),
            float(row["score"]),
            rank_of.get(row["chunk_id"], 0),
        )
        for row in _of(evidence.top_hits(results), arm, qid)
    ]


def chunk_ids(results: Measurements, arm: str, qid: str) -> list[str]:
    """The ids of the first hits of a topic in an arm."""
    return [str(row["chunk_id"]) for row in _of(evidence.top_hits(results), arm, qid)]


def relevant(left: tuple[Measurements, str], right: tuple[Measurements, str], qid: str) -> list[Relevant]:
    """The relevant sections of a topic, best grade first, with their fates in both arms."""
    sides = [{row["section"]: row for row in _of(evidence.fates(results), arm, qid)} for results, arm in (left, right)]
    sections = []
    for section in sorted({*sides[0], *sides[1]}):
        rows = [side.get(section) for side in sides]
        grade = max(int(row["grade"]) for row in rows if row is not None)
        sections.append(Relevant(section, grade, *(None if row is None else _fate(row) for row in rows)))
    return sorted(sections, key=lambda row: (-row.grade, row.section))


def topic(listed: Sequence[Topic], qid: str) -> tuple[Topic, str, str]:
    """The topic with this qid (empty: the first), and the qids before and after it, empty at the ends."""
    position = next((n for n, entry in enumerate(listed) if entry.qid == qid), None) if qid else 0
    if position is None:
        raise ResultsError(f"topic '{qid[:80]}' is not among those shown: remove the filters")
    previous = listed[position - 1].qid if position else ""
    return listed[position], previous, listed[position + 1].qid if position + 1 < len(listed) else ""


def mark_matches(text: str, pattern: Any) -> tuple[Part, ...]:
    """A text in pieces; those that match are marked."""
    parts, end = [], 0
    for match in pattern.finditer(text):
        if match.start() > end:
            parts.append(Part(text[end : match.start()], False))
        parts.append(Part(match[0], True))
        end = match.end()
    return (*parts, Part(text[end:], False)) if end < len(text) else tuple(parts)


def _fate(row: Mapping[str, Any]) -> Fate:
    outcome, stage, rank = str(row["outcome"]), str(row["stage"]), int(row["rank"])
    source, at = str(row["best_source"]), int(row["best_source_rank"])
    remedies = {
        FOUND: "",
        NEVER: "No retriever returns it: increase the depth, or match it in another way (other fields or model, "
        "expanded queries).",
        FUSED_OUT: f"Retriever {source} ranks it at {at}: give {source} more weight in fusion, or re-rank the fused "
        "results.",
        BURIED: f"Retriever {source} ranks it at {at} at best: improve that retriever, or re-rank down to rank {at}.",
        "dropped": f"Stage {stage} removes it: loosen {stage} or remove it.",
        "ranked down": f"Stage {stage} moves it out of the first ten: weaken {stage} or remove it.",
    }
    return Fate(describe_outcome(outcome, stage), rank, remedies.get(outcome, ""))


def _of(frame: Any, arm: str, qid: str) -> list[dict[str, Any]]:
    return evidence.rows(frame[(frame["arm"] == arm) & (frame["qid"] == qid)])


def _grade(row: Mapping[str, Any]) -> int | None:
    import pandas as pd

    grades = [row[name] for name in ("section_grade", "document_grade") if not pd.isna(row[name])]
    return int(grades[0]) if grades else None


def _last(value: float) -> float:
    return math.inf if math.isnan(value) else value
