"""The earlier texts and the renames of documents, from the history of the git repository that their folder is in."""

from __future__ import annotations

import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ragbench.base import git
from ragbench.base.types import BenchmarkError
from ragbench.corpus import reader
from ragbench.corpus.folder import SUFFIXES
from ragbench.extras.follow.follower import Earlier

_MARK = "\x01"
_LIMIT_S = 300.0  # for one command of git


@dataclass(frozen=True)
class Event:
    """A file of the folder that a commit renamed, to `new`, or deleted (`new` is empty). Paths are below the folder."""

    commit: str
    old: str
    new: str = ""


@dataclass(frozen=True)
class History:
    """A folder in a git repository; `top` is the repository, `prefix` the folder in it, with a slash at its end."""

    top: Path
    prefix: str = ""
    head: str = "HEAD"

    @staticmethod
    def of(folder: Path) -> History | None:
        """The history of a folder; None if it is in no repository, or git is missing."""
        try:
            top, prefix = _run(folder, "rev-parse", "--show-toplevel", "--show-prefix").split("\n")[:2]
        except BenchmarkError:
            return None
        return History(Path(top), prefix)

    def commit(self, name: str) -> str:
        """The id of a commit. Raises BenchmarkError for a name that git does not know."""
        try:
            return self._git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()
        except BenchmarkError:
            raise BenchmarkError(
                f"{self.top} has no commit '{name}': specify a revision of git, or a folder with the earlier documents"
            ) from None

    def last_change(self, file: Path) -> str:
        """The newest commit of this repository when a file was committed last; empty for a file with other changes."""
        try:
            top = _run(file.parent, "rev-parse", "--show-toplevel").strip()
            commit, date = _run(file.parent, "log", "-1", "--format=%H %cI", "--", file.name).split()
            changed = _run(file.parent, "status", "--porcelain", "--", file.name).strip()
        except (BenchmarkError, ValueError):
            return ""
        if changed:
            return ""
        if Path(top) == self.top:
            return commit
        return self._git("rev-list", "-1", "--first-parent", f"--before={date}", self.head).strip()

    def events(self, since: str = "") -> list[Event]:
        """Renames and deletions of files of the folder after the commit `since`, newest first."""
        reach = f"{since}..{self.head}" if since else self.head
        printed = self._git(
            *("-c", "diff.renameLimit=5000", "log", "--first-parent", "-m", "-M50%", "--diff-filter=DR"),
            *(f"--format={_MARK}%H", "--name-status", "-z", reach, "--"),
            *(f"{self.prefix}*{suffix}" for suffix in SUFFIXES),
        )
        return list(self._parsed(printed))

    def _parsed(self, printed: str) -> Iterator[Event]:
        commit, fields = "", iter(printed.replace("\n", "\0").split("\0"))
        for field in fields:
            if field.startswith(_MARK):
                commit = field[1:]
            elif field:
                old, new = self._below(next(fields)), self._below(next(fields)) if field.startswith("R") else ""
                if old.lower().endswith(SUFFIXES):
                    yield Event(commit, old, new)

    def _below(self, path: str) -> str:
        return path.removeprefix(self.prefix) if path.startswith(self.prefix) else f"/{path}"

    def earlier_docnos(self, events: Sequence[Event], since: str = "") -> set[str]:
        """The docnos at the commit `since`, and those that were renamed or deleted."""
        paths = [*(self.files(since) if since else ()), *(event.old for event in events)]
        return set(map(reader.docno_of, paths))

    def earlier(self, docnos: Collection[str], events: Sequence[Event], since: str = "") -> Earlier:
        """These documents as they were at the commit `since`, or before their names disappeared; and their renames."""
        named = {reader.docno_of(event.old): event for event in reversed(events)}  # the newest of a name
        renames = {docno: new for docno in docnos if (new := _final(docno, events))}
        places = {docno: (f"{named[docno].commit}^", named[docno].old) for docno in docnos if docno in named}
        files = {reader.docno_of(path): path for path in self.files(since)} if since else {}
        if since:
            places |= {docno: (since, files[docno]) for docno in docnos if docno in files}
        texts = self.texts(places).items()
        documents = {docno: reader.parse_document(docno, *text, 0.0)[0] for docno, text in texts}
        return Earlier(documents, renames, others=files.keys())

    def files(self, commit: str) -> list[str]:
        """The paths of the pages of the folder in a commit, below the folder."""
        names = self._git("ls-tree", "-r", "-z", "--name-only", commit, "--", self.prefix or ".").split("\0")
        return [self._below(name) for name in names if name.lower().endswith(SUFFIXES)]

    def texts(self, places: Mapping[str, tuple[str, str]]) -> dict[str, tuple[str, bytes]]:
        """Path and content of (commit, path below the folder), by docno; those that git does not have are missing."""
        asked = "".join(f"{commit}:{self.prefix}{path}\n" for commit, path in places.values())
        printed = io.BytesIO(_printed(self.top, ("cat-file", "--batch"), asked.encode()))
        texts = {}
        for docno, (_, path) in places.items():
            header = printed.readline().rstrip()
            if header.endswith(b" missing"):
                continue
            texts[docno] = path, printed.read(int(header.rpartition(b" ")[2]))
            printed.readline()  # the line break after a content
        return texts

    def _git(self, *arguments: str) -> str:
        return _run(self.top, *arguments)


def _final(docno: str, events: Sequence[Event]) -> str:
    """The docno at the end of the renames of a document; empty for one that was not renamed."""
    name = docno
    for event in reversed(events):  # the oldest first
        if event.new and reader.docno_of(event.old) == name:
            name = reader.docno_of(event.new)
    return name if name != docno else ""


def _run(folder: Path, *arguments: str) -> str:
    return _printed(folder, arguments).decode("utf-8", "replace")


def _printed(folder: Path, arguments: Sequence[str], given: bytes = b"") -> bytes:
    """What git prints. Raises BenchmarkError if it fails or takes longer than `_LIMIT_S`."""
    try:
        return git.git(folder, *arguments, given=given, limit_s=_LIMIT_S)
    except git.GitError as error:
        reason = f"git cannot read the history of {folder} ({error})"
        raise BenchmarkError(f"{reason}: specify the earlier pages with --before") from None
