"""Grading a pool: a session that can be stopped and continued, and merging its grades into the judgments.

All state is in the pool's CSV: the column `grade` holds 0-3, `s` for skipped, or nothing yet.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path

from ragbench.base import files, minimums
from ragbench.base.types import BenchmarkError, Document, counted
from ragbench.benchmark import judgments, native
from ragbench.benchmark.benchmark import Qrels, best_sections, docno_of_section
from ragbench.extras.collect.pool import PoolFile, read_pool

SKIPPED, UNDO = "s", "u"
GRADES = {
    0: "not useful",
    1: "on the topic, helps a little",
    2: "answers an important part",
    3: "answers fully, or is what was looked for",
}


ACTS = {**{str(grade): meaning for grade, meaning in GRADES.items()}, SKIPPED: "skip", UNDO: "undo"}
"""What a judge can do with a pair, by the key of the terminal and the studio."""
_LONGEST_SECONDS = 300.0  # a longer time between two grades is a pause and does not count


@dataclass(frozen=True)
class Item:
    """A pair to grade, as a judge sees it."""

    qid: str
    query: str
    need: str
    section: str
    heading: str
    text: str
    note: str
    path: str = ""

    @property
    def location(self) -> str:
        """The path of the document's file; the section's id in a pool without paths."""
        return self.path or self.section


@dataclass
class JudgingSession:
    """Goes through the ungraded pairs in the order of the file, then once through the skipped ones.

    Every `grade`, `skip` and `undo` saves the file before it returns, so a killed process loses nothing. The terminal,
    the notebook and the studio show `item` and `state`, and pass on what the judge does to `act`.
    """

    path: Path
    _pool: PoolFile = field(init=False)
    _queue: list[int] = field(init=False)
    _place: int = field(init=False, default=0)
    _done: list[tuple[int, int, str, bool]] = field(init=False, default_factory=list)
    _seconds: list[float] = field(init=False, default_factory=list)
    _graded_at: float = field(init=False, default=-math.inf)

    def __post_init__(self) -> None:
        self._pool = read_pool(self.path)
        for row, line in zip(self._pool.rows, self._pool.lines, strict=True):
            row["grade"] = _clean(row["grade"], f"{self.path}:{line}")
        open_ = [number for number, row in enumerate(self._pool.rows) if not row["grade"]]
        skipped = [number for number, row in enumerate(self._pool.rows) if row["grade"] == SKIPPED]
        self._queue = open_ + skipped

    def __len__(self) -> int:
        return len(self._pool.rows)

    @property
    def n_graded(self) -> int:
        """How many pairs have a grade."""
        return sum(row["grade"] not in ("", SKIPPED) for row in self._pool.rows)

    @property
    def n_skipped(self) -> int:
        """How many pairs are skipped for now."""
        return sum(row["grade"] == SKIPPED for row in self._pool.rows)

    @property
    def item(self) -> Item | None:
        """The pair to grade next, None at the end."""
        if self._place >= len(self._queue):
            return None
        row = self._pool.rows[self._queue[self._place]]
        return Item(**{field.name: row[field.name] for field in fields(Item)})

    @property
    def state(self) -> str:
        """How far the judge is, in words."""
        return f"{self.n_graded} of {len(self)} graded, {self.n_skipped} skipped"

    @property
    def seconds_left(self) -> float:
        """How long the rest takes at the median time of this session's grades; NaN for too few of them."""
        if len(self._seconds) < minimums.GRADES:
            return math.nan
        return (len(self) - self.n_graded) * statistics.median(self._seconds)

    def act(self, key: str, pair: tuple[str, str] | None = None, note: str | None = None) -> str:
        """Do what a key of `ACTS` says, and return what was done. BenchmarkError for another key.

        `pair` is the topic and section that the judge saw: a grade for one that is no longer the current one, by a
        second click or from another page, is ignored.
        """
        if key not in ACTS:
            raise BenchmarkError(f"'{key[:20]}' is not a grade: 0 to 3 grade, s skips, u undoes")
        if key == UNDO:
            return "taken back" if self.undo() else "nothing to take back"
        item = self.item
        if item is None or pair not in (None, (item.qid, item.section)):
            return "this pair was not the current one"
        if note is not None and note != item.note:
            self.note(note)
        if key == SKIPPED:
            self.skip()
            return "skipped"
        self.grade(int(key))
        current_time = time.monotonic()
        if current_time - self._graded_at < _LONGEST_SECONDS:
            self._seconds.append(current_time - self._graded_at)
        self._graded_at = current_time
        return f"graded {key}"

    def grade(self, grade: int) -> None:
        """Grade the current pair 0-3 and go on to the next."""
        if grade not in GRADES:
            raise BenchmarkError(f"a grade is one of {', '.join(map(str, GRADES))}, got {grade}")
        self._set(str(grade), requeue=False)

    def skip(self) -> None:
        """Postpone the current pair: it returns at the end, and in the next session."""
        already = self._pool.rows[self._queue[self._place]]["grade"] == SKIPPED if self.item else False
        self._set(SKIPPED, requeue=not already)

    def note(self, text: str) -> None:
        """Keep a note with the current pair; saved with its grade."""
        if self.item is not None:
            self._pool.rows[self._queue[self._place]]["note"] = " ".join(text.split())

    def undo(self) -> bool:
        """Take back the last grade or skip of this session and return to its pair; False when there is none."""
        if not self._done:
            return False
        self._place, number, grade_before, requeued = self._done.pop()
        self._pool.rows[number]["grade"] = grade_before
        if requeued:
            self._queue.pop()
        self._save(number)
        return True

    def _set(self, grade: str, requeue: bool) -> None:
        if self.item is None:
            raise BenchmarkError(f"{self.path} has nothing left to grade: merge it into the judgments")
        number = self._queue[self._place]
        row = self._pool.rows[number]
        self._done.append((self._place, number, row["grade"], requeue))
        row["grade"] = grade
        if requeue:
            self._queue.append(number)
        self._place += 1
        self._save(number)

    def _save(self, changed: int) -> None:
        """Write the pair that this session has changed, and read what other sessions have changed."""
        with files.locked(self.path):
            theirs = {_pair(row): row for row in read_pool(self.path).rows} if self.path.exists() else {}
            for number, row in enumerate(self._pool.rows):
                if number != changed and (newer := theirs.get(_pair(row))):
                    grade = _clean(newer["grade"], str(self.path))
                    row |= {"grade": grade, "note": newer["note"] or row["note"]}
            self._pool.write(self.path, self._pool.rows)
        open_ = ("", SKIPPED)
        while self._place < len(self._queue) and self._pool.rows[self._queue[self._place]]["grade"] not in open_:
            self._place += 1


@dataclass(frozen=True)
class Merged:
    """Merged judgments (`qrels`, by qid and section id), and how many pairs of the pool had which effect.

    `added` pairs are new, `unchanged` had the same grade, `replaced` another one; `left` have no grade in the pool.
    """

    qrels: Mapping[str, Mapping[str, int]]
    added: int
    unchanged: int
    replaced: int
    left: int


def require_pairs(pool: Path, qids: Collection[str], documents: Sequence[Document]) -> None:
    """Raise BenchmarkError when a pool grades topics or sections that are not those of the collection."""
    sections = {f"{document.docno}#{section.anchor}" for document in documents for section in document.sections}
    rows, _ = _read_grades(pool)
    unknown = [f"{qid} {section}" for qid, section, _ in rows if qid not in qids or section not in sections]
    if unknown:
        raise BenchmarkError(
            f"{pool} grades {counted(len(unknown), 'pair')} whose topic or section is not in this collection "
            f"({_join(unknown)}): name the collection that it was pooled from with data=..., nothing was merged"
        )


def merge(pool: Path, qrels: Qrels, overwrite: bool = False) -> Merged:
    """Judgments with the grades of a pool added.

    BenchmarkError names all pairs with conflicting grades, and nothing is merged; `overwrite` takes the grades of the
    pool instead. Pairs without a grade, or skipped, are excluded.
    """
    merged = {qid: dict(grades) for qid, grades in qrels.items()}
    rows, ungraded = _read_grades(pool)
    added = unchanged = 0
    contradictions: list[str] = []
    for qid, section, grade in rows:
        grades = merged.setdefault(qid, {})
        if section not in grades:
            added += 1
        elif grades[section] == grade:
            unchanged += 1
        else:
            contradictions.append(f"{qid} {section} ({grades[section]} and {grade})")
        grades[section] = grade
    if contradictions and not overwrite:
        raise BenchmarkError(
            f"{pool} contradicts {counted(len(contradictions), 'judgment')}: {_join(contradictions)}; "
            "correct it, or overwrite"
        )
    return Merged(merged, added, unchanged, len(contradictions), ungraded)


def merge_into_folder(pool: Path, folder: Path, overwrite: bool = False) -> Merged:
    """Merge a pool into a folder: its grades into `sections.qrels`, the best of each document into `documents.qrels`.

    Judgments of documents without judged sections stay. A document judged higher than its best section is a
    contradiction too.
    """
    if "judge" in read_pool(pool).columns:
        raise BenchmarkError(
            f"{pool} holds grades of a model, which are not judgments: merge the sample that you have graded"
        )
    with files.locked(folder / native.SECTIONS):
        return _merge_into(pool, folder / native.SECTIONS, folder / native.DOCUMENTS, overwrite)


def _merge_into(pool: Path, sections: Path, documents: Path, overwrite: bool) -> Merged:
    merged = merge(pool, judgments.read_judgments(sections) if sections.exists() else {}, overwrite)
    judged = judgments.read_judgments(documents) if documents.exists() else {}
    touched = {(qid, docno_of_section(section)) for qid, section, _ in _read_grades(pool)[0]}
    lowered = []
    for qid, best in best_sections(merged.qrels).items():
        for docno, grade in best.items():
            existing = judged.setdefault(qid, {}).get(docno)
            if existing is not None and (qid, docno) not in touched:
                continue
            if existing is not None and existing > grade:
                lowered.append(f"{qid} {docno} (judged {existing}, its best section {grade})")
            judged[qid][docno] = grade
    if lowered and not overwrite:
        raise BenchmarkError(f"{pool} contradicts {documents}: {_join(lowered)}; correct one of them, or overwrite")
    native.write_qrels(sections, merged.qrels)
    native.write_qrels(documents, judged)
    return merged


def grades_of(pool: Path) -> dict[str, dict[str, int]]:
    """The grades of a pool as judgments."""
    grades: dict[str, dict[str, int]] = {}
    for qid, section, grade in _read_grades(pool)[0]:
        grades.setdefault(qid, {})[section] = grade
    return grades


def _read_grades(pool: Path) -> tuple[list[tuple[str, str, int]], int]:
    """(qid, section id, grade) of the graded rows, and how many have none."""
    file = read_pool(pool)
    rows = []
    for row, line in zip(file.rows, file.lines, strict=True):
        text = _clean(row["grade"], f"{pool}:{line}")
        if text not in ("", SKIPPED):
            rows.append((row["qid"].strip(), row["section"].strip(), int(text)))
    return rows, len(file.rows) - len(rows)


def _clean(grade: str, location: str) -> str:
    """The grade as the file should hold it; a spreadsheet may have made `3.0` of 3."""
    text = grade.strip().lower().removesuffix(".0")
    if text not in ("", SKIPPED, *map(str, GRADES)):
        raise BenchmarkError(f"{location}: grade '{grade}' must be 0, 1, 2, 3, s (skipped) or empty")
    return text


def _pair(row: Mapping[str, str]) -> tuple[str, str]:
    return row["qid"], row["section"]


def _join(names: list[str]) -> str:
    return "; ".join(names[:10]) + (f"; and {len(names) - 10} more" if len(names) > 10 else "")
