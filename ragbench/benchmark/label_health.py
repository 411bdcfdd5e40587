"""What became of the judged documents and sections of a benchmark, as runs keep it and reports show it.

`ragbench.extras.follow` finds it; results that have it are read without that extra.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ragbench.base.types import counted
from ragbench.benchmark.benchmark import docno_of_section

Outcome = Literal["stands", "edited", "rewritten", "moved", "merged", "split", "gone"]


@dataclass(frozen=True)
class Followed:
    """What became of a judged document or section.

    `targets` has where it is now: itself, another one, the parts of a split, none if it is gone. `confidence` is
    between 0 and 1. `reason` is the evidence for it, in words. `doubtful`: too little shows where it is, so that no
    score and no repaired file has it; one that is rewritten in its place still answers for it.
    """

    target: str
    outcome: Outcome
    targets: tuple[str, ...]
    confidence: float
    reason: str
    doubtful: bool = False
    is_section: bool = False

    @property
    def is_moved(self) -> bool:
        """Whether a judgment must name something else now, and it is known what."""
        return not self.doubtful and self.targets not in ((self.target,), ())

    @property
    def places(self) -> list[tuple[str, str]]:
        """The document of each target, and `#anchor` for a section, else an empty text."""
        docnos = [docno_of_section(target) if self.is_section else target for target in self.targets]
        return [(docno, target.removeprefix(docno)) for docno, target in zip(docnos, self.targets, strict=True)]

    @property
    def health(self) -> str:
        """The field of `LabelHealth` that counts it."""
        if not self.targets:
            return "gone"
        if self.doubtful:
            return "doubtful"
        if self.outcome == "rewritten":
            return "rewritten"
        return "moved" if self.is_moved else "stand"


@dataclass(frozen=True)
class LabelHealth:
    """Judgments of a benchmark by what became of the documents and sections that they name.

    `stand`: the judged text is where it was, edited lightly at most. `moved`: it is elsewhere now, and known where.
    `doubtful`: it is elsewhere, and too little shows where. `gone`: no document has it. `rewritten`: hardly any of it
    is left where it was. A run scores judgments as they are written, but no doubtful ones; repaired files omit doubtful
    and gone ones.
    """

    stand: int = 0
    moved: int = 0
    doubtful: int = 0
    gone: int = 0
    rewritten: int = 0

    @property
    def judgments(self) -> int:
        """All of them."""
        return self.stand + self.moved + self.doubtful + self.gone + self.rewritten

    @property
    def is_sound(self) -> bool:
        """Whether all judgments stand."""
        return self.stand == self.judgments

    def sentence(self) -> str:
        """The counts in words: `label health: 84 of 90 judgments stand, 3 moved, 2 are doubtful, 1 is gone`."""
        if self.is_sound:
            only = self.judgments == 1
            return f"label health: {'the only judgment stands' if only else f'all {self.judgments:,} judgments stand'}"
        others = [f"{self.moved} moved"] if self.moved else []
        states = ((self.rewritten, "rewritten"), (self.doubtful, "doubtful"), (self.gone, "gone"))
        others += [f"{n} {_be(n)} {word}" for n, word in states if n]
        standing = f"{self.stand} of {counted(self.judgments, 'judgment')} stand"
        return f"label health: {', '.join([standing, *others])}"


def _be(number: int) -> str:
    return "is" if number == 1 else "are"


def health(followed: Iterable[Followed]) -> LabelHealth:
    """The counts of judgments, each with what became of its target."""
    return LabelHealth(**Counter(one.health for one in followed))


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
        """The judgments of documents where they are now, without doubtful ones and those that are gone."""
        qrels: dict[str, dict[str, int]] = {}
        for qid, name, grade in self.judged:
            followed = self.by_name[name]
            for docno, _ in () if followed.doubtful else followed.places:
                grades = qrels.setdefault(qid, {})
                grades[docno] = max(grade, grades.get(docno, grade))
        return qrels

    @property
    def doubtful(self) -> list[tuple[str, str]]:
        """(qid, name) of doubtful judgments, which take no part."""
        return [(qid, name) for qid, name, _ in self.judged if self.by_name[name].doubtful]

    @property
    def left_out(self) -> set[str]:
        """The qids whose relevant judgments are all doubtful."""
        certain = {qid for qid, name, grade in self.judged if grade > 0 and not self.by_name[name].doubtful}
        return {qid for qid, name, grade in self.judged if grade > 0 and self.by_name[name].doubtful} - certain

    def sentence(self, texts: Mapping[str, str]) -> str:
        """How many doubtful judgments are excluded, with an example; `texts` are of queries by qid."""
        doubtful, excluded = self.doubtful, len(self.left_out)
        qid, name = doubtful[0]
        take = f"{counted(len(doubtful), 'doubtful judgment')} {'take' if len(doubtful) > 1 else 'takes'} no part"
        be = "is" if excluded == 1 else "are"
        left = f"; {counted(excluded, 'query')} without another one {be} excluded" if excluded else ""
        return f"{take}, such as {name} for '{(texts.get(qid) or qid)[:60]}'{left}"
