"""Where the pages of a folder moved together, from those pages whose move is known."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping

_VOTES = 2  # other pages that moved in the same way
_SHARE = 0.6  # of the pages of a folder whose move is known


class FolderMoves:
    """The folders to which the pages of folders moved; `moves` has docnos of today by earlier ones."""

    def __init__(self, moves: Mapping[str, str]) -> None:
        self._moves = moves
        self._votes: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._moved = Counter(folder for old in moves for folder in _folders(old))
        for old, new in moves.items():
            for before, after in _pairs(old, new):
                self._votes[before][after] += 1

    def targets(self, docno: str) -> Iterator[str]:
        """The docnos that a page has if it moved as most other pages of its folders did, the innermost folder first."""
        own = dict(_pairs(docno, self._moves[docno])) if docno in self._moves else {}
        for folder in _folders(docno):
            moved = self._moved[folder] - (docno in self._moves)
            for after, count in self._votes.get(folder, {}).items():
                votes = count - (own.get(folder) == after)
                if votes >= max(_VOTES, _SHARE * moved):
                    yield f"{after}{docno.removeprefix(folder)}"


def _folders(docno: str) -> Iterator[str]:
    """The folders of a docno, the innermost first, each with a slash at its end, and the empty one."""
    parts = docno.split("/")[:-1]
    for end in range(len(parts), -1, -1):
        yield "".join(f"{part}/" for part in parts[:end])


def _pairs(old: str, new: str) -> Iterator[tuple[str, str]]:
    """The folders before and after whose exchange turns one docno into the other; of a new file name, the innermost."""
    before, after = list(_folders(old)), list(_folders(new))
    yield before[0], after[0]
    for one, other in zip(before[1:], after[1:], strict=False):
        if old.removeprefix(one) != new.removeprefix(other):
            return
        yield one, other
