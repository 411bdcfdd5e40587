"""What became of expected pages of a golden file that a search finds no more: a page with a new name is not lost."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ragbench.base.types import CorpusError
from ragbench.corpus import reader
from ragbench.extras.export import moves
from ragbench.extras.follow.followed_labels import follow_names
from ragbench.extras.follow.git_history import History
from ragbench.extras.remote.golden import is_same


@dataclass(frozen=True)
class NewName:
    """The files in which an expected page is now, and the evidence; `doubtful`: too little of it to count them."""

    page: str
    files: tuple[str, ...]
    reason: str
    doubtful: bool

    @property
    def sentence(self) -> str:
        """What became of the page."""
        return f"{'may be' if self.doubtful else 'is'} {', '.join(self.files)} now ({self.reason})"


def new_names(pages: Collection[str], golden: Path) -> dict[str, NewName]:
    """The new names of pages in the repository or folder of a golden file, as `ragbench data repair` finds them.

    A page that stands or is gone has none. BenchmarkError if git cannot read the history.
    """
    history = History.of(golden.resolve().parent)
    folder = history.top if history else golden.resolve().parent
    try:
        documents = reader.read_vault(folder).documents
    except CorpusError:  # the pages are elsewhere
        return {}
    files = {document.docno: document.path for document in documents}
    found = {}
    for page, one in follow_names(pages, documents, folder, [golden]).items():
        now = tuple(files[docno] + anchor for docno, anchor in one.places)
        if now and (one.doubtful or not any(is_same(page, file) for file in now)):
            reason = one.reason if one.is_moved or one.doubtful else "its frontmatter or title has this name"
            found[page] = NewName(page, now, reason, one.doubtful)
    return found


def lost_pages(before: moves.Answers, now: moves.Answers) -> Iterator[str]:
    """The pages that had a rank and have none."""
    for query, ranks in before.items():
        yield from (page for page, rank in ranks.items() if rank and not now[query][page])


def all_names(names: Mapping[str, NewName], page: str) -> tuple[str, ...]:
    """The names of a page by which a hit is it: its own, and new ones that are certain."""
    return (page, *names[page].files) if page in names and not names[page].doubtful else (page,)
