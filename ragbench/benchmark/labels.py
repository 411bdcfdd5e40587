"""The health of relevance judgments after documents changed: how many still name what was judged."""

from __future__ import annotations

from dataclasses import dataclass

from ragbench.base.console import counted


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
