"""Follow judged documents and sections to where they are after an edit of the documentation.

Evidence, in this order: the name still has most of its text; an address of the page in the frontmatter of another
(`aliases`, `redirect_from`); a rename in the history of git; the text itself, by the runs of words that it shares with
the documents of today, and the folder to which other pages of its folder moved; where all of these leave it in doubt, a
redirect of the site. The thresholds are tuned on the histories of some documentation sites and measured on others
(`research/label_replay.py`).
"""

from __future__ import annotations

import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Literal
from urllib.parse import urlsplit

from ragbench.base.types import Document
from ragbench.benchmark.benchmark import docno_of_section
from ragbench.benchmark.label_health import Followed
from ragbench.benchmark.names import LANGUAGE_FOLDER, address, addresses
from ragbench.benchmark.phrases import words
from ragbench.extras.follow.redirects import Redirects

# Shares of the runs of a judged text, 0 to 1.
_KEPT = 0.3  # of a page that stands, edited or not; below, it is rewritten
_FOUND = 0.5  # of a page whose text is elsewhere
_NAMED = 0.25  # the same where the file name or the title is equal
_LEAD = 0.15  # over the second best place
_PART = 0.2  # of one page of several that have the text now
_TRACE = 0.12  # below, the text is gone
_RUN = 4  # words of a run
_COMMON = 12  # documents from which a run of words is boilerplate
_LOST = "no document has its text"
_SAME_FILE, _SAME_TITLE = 0.2, 0.15  # likeness
_SAME_NAMES = _SAME_FILE + _SAME_TITLE
_SIBLINGS = 0.3  # likeness of a page where the other pages of its folder moved
_SHORT = 8  # runs, with fewer of which a text cannot be told from others
_VOTES = 2  # other pages that moved in the same way
_SHARE = 0.6  # of the pages of a folder whose move is known


@dataclass(frozen=True)
class Earlier:
    """The judged documents as they were, and what is known of their names since.

    `documents`: by docno, where a text is known. `renames`: docnos of today by earlier ones, from git. `redirects`: of
    the site. `others`: docnos of documents without judgments, where they are known.
    """

    documents: Mapping[str, Document] = field(default_factory=dict)
    renames: Mapping[str, str] = field(default_factory=dict)
    redirects: Redirects = field(default_factory=Redirects)
    others: Collection[str] = frozenset()


def runs_of(text: str) -> frozenset[int]:
    """The digests of all runs of four words of a text; of a shorter text, one of all its words."""
    listed = words(text)
    starts = range(max(1, len(listed) - _RUN + 1)) if listed else ()
    return frozenset(zlib.crc32(" ".join(listed[start : start + _RUN]).encode()) for start in starts)


class LabelFollower:
    """Finds the documents and sections of today that judged ones became."""

    def __init__(self, earlier: Earlier, documents: Sequence[Document]) -> None:
        self._earlier = earlier
        self._documents = {document.docno: document for document in documents}
        self._page = cache(self._followed_page)
        self._old_runs = cache(lambda docno: runs_of(earlier.documents[docno].text))
        self._old_shares = cache(lambda docno: self._shares(self._old_runs(docno)))
        self._section_runs = cache(self._new_section_runs)

    def follow(self, target: str) -> Followed:
        """What became of `docno` or `docno#anchor`."""
        docno = target if target in self._known else docno_of_section(target)
        page = self._page(docno)
        return page if docno == target else replace(self._section(target, page), is_section=True)

    def _shown(self, target: str) -> str:
        """A document or section of today by the path of its file."""
        docno = target if target in self._documents else docno_of_section(target)
        return self._documents[docno].path + target.removeprefix(docno)

    @cached_property
    def _known(self) -> Collection[str]:
        return {*self._documents, *self._earlier.documents, *self._earlier.renames}

    def _followed_page(self, docno: str) -> Followed:
        old, new = self._earlier.documents.get(docno), self._documents.get(docno)
        if new is not None and (old is None or old.text == new.text):
            return Followed(docno, "stands", (docno,), 1.0, "same name" if old is None else "same text")
        if new is not None:
            return self._edited_page(docno)
        found = self._declared(docno) or self._renamed(docno, old) or self._found(docno, old)
        return found if found.is_moved else self._redirected(docno, old, found)

    def _edited_page(self, docno: str) -> Followed:
        """A page whose name exists and whose text changed: it stands unless its text went elsewhere."""
        shares = self._old_shares(docno)
        kept = shares.get(docno, 0.0)
        best, share = max(shares.items(), key=lambda item: item[1], default=(docno, 0.0))
        reason = f"{kept:.0%} of its text is left"
        if kept >= _KEPT or len(self._old_runs(docno)) < _SHORT:
            return Followed(docno, "edited", (docno,), max(kept, 0.5), reason)
        if share >= _FOUND + _LEAD and best != docno:
            return Followed(
                docno, "moved", (best,), share, f"{reason}, {share:.0%} is in {self._shown(best)}", doubtful=True
            )
        return Followed(docno, "rewritten", (docno,), kept, reason)

    def _declared(self, docno: str) -> Followed | None:
        """By an address that one page of today has in its frontmatter."""
        claimed = self._addresses.get(address(f"{docno}.md"), set())
        if len(claimed) != 1:
            return None
        return Followed(docno, self._kind(docno, *claimed), tuple(claimed), 0.99, "address in the frontmatter")

    @cached_property
    def _addresses(self) -> dict[str, set[str]]:
        claimed: defaultdict[str, set[str]] = defaultdict(set)
        for docno, document in self._documents.items():
            for name in addresses(docno, document.frontmatter):
                claimed[name].add(docno)
        return claimed

    def _renamed(self, docno: str, old: Document | None) -> Followed | None:
        """By a rename in git, unless most of the text is clearly in another document."""
        new = self._earlier.renames.get(docno)
        if new not in self._documents or new is None:
            return None
        shares = self._old_shares(docno) if old is not None else {new: 1.0}
        share, best = shares.get(new, 0.0), max(shares.values(), default=0.0)
        doubtful = share < _TRACE or best - share > _FOUND
        confidence = 0.5 if doubtful else 0.9 + share / 10
        return Followed(docno, self._kind(docno, new), (new,), confidence, "renamed in git", doubtful)

    def _redirected(self, docno: str, old: Document | None, found: Followed) -> Followed:
        """By a redirect: sure where the page that it leads to has some of the text, or was found without it.

        Sites send readers of a deleted page to the nearest topic, so that one without the text is doubtful.
        """
        is_known = old is not None or docno in self._earlier.renames
        written = urlsplit(docno).path if "://" in docno else docno  # the name in the file of judgments
        hit = self._earlier.redirects.page(address(f"{docno}.md" if is_known else written), self._by_address)
        if hit is None:
            return found
        new, reason = hit[0], f"redirect in {hit[1]}"
        share = 1.0 if old is None else self._old_shares(docno).get(new, 0.0)
        if share >= _TRACE or found.targets == (new,):
            return Followed(docno, self._kind(docno, new), (new,), 0.9, reason)
        if found.targets:
            return found
        return Followed(docno, "moved", (new,), share, f"{reason}, {share:.0%} of its text is there", doubtful=True)

    @cached_property
    def _by_address(self) -> dict[str, str]:
        """The documents of today by address, those of their frontmatter where only one has it."""
        given = {name: next(iter(docnos)) for name, docnos in self._addresses.items() if len(docnos) == 1}
        return {**given, **{address(f"{docno}.md"): docno for docno in self._documents}}

    def _found(self, docno: str, old: Document | None) -> Followed:
        """By the text, and by the folder to which the other pages of its folder moved."""
        if old is None:
            return Followed(docno, "gone", (), 1.0, "no document has its name, and its earlier text is not known")
        return self._by_text(docno, old, next(filter(self._is_new, self._folder_moves.targets(docno)), ""))

    def _is_new(self, docno: str) -> bool:
        return docno in self._documents and docno not in self._earlier.documents and docno not in self._earlier.others

    @cached_property
    def _folder_moves(self) -> FolderMoves:
        """By the moves that the text alone or git shows."""
        gone = {name: old for name, old in self._earlier.documents.items() if name not in self._documents}
        found = [self._by_text(name, old) for name, old in gone.items()]
        renames = {old: new for old, new in self._earlier.renames.items() if new in self._documents}
        return FolderMoves({**{one.target: one.targets[0] for one in found if one.is_moved}, **renames})

    def _by_text(self, docno: str, old: Document, expected: str = "") -> Followed:
        """By the text; `expected` is where the other pages of its folder moved."""
        runs, shares = self._old_runs(docno), self._old_shares(docno)
        most = max(shares.values(), default=0.0)
        likeness = {name: self._likeness(old, name) + _SIBLINGS * (name == expected) for name in shares}
        ranked = sorted(shares, key=lambda name: (-shares[name] - likeness[name], name))
        lost = not ranked or shares[ranked[0]] < _TRACE or len(runs) < _SHORT
        if lost or (expected and most < _FOUND and shares.get(expected, 0.0) < _TRACE):
            named = self._namesake(old, expected)
            return named or Followed(docno, "gone", (), 1.0 - most, _LOST)
        best, others = ranked[0], ranked[1:]
        share, bonus = shares[best], likeness[best]
        second = max((shares[name] + likeness[name] for name in others), default=0.0)
        least = _TRACE if best == expected else _NAMED if bonus else _FOUND
        clear = share >= least and share + bonus - second >= _LEAD
        clear = clear and (best == expected or not _changes_language(docno, best))
        if _file_name(docno) != _file_name(best):
            clear = clear and self._own_share(docno, best) >= least
        reason = f"{share:.0%} of its text is in {self._shown(best)}"
        if clear:
            return Followed(docno, self._kind(docno, best), (best,), share, reason)
        parts = tuple(name for name in ranked if shares[name] >= _PART)
        if len(parts) > 1 and share < _FOUND:
            return Followed(
                docno, "split", parts, share, f"its text is in {', '.join(map(self._shown, parts[:3]))}", doubtful=True
            )
        return Followed(docno, self._kind(docno, best), (best,), share, reason, doubtful=True)

    def _own_share(self, docno: str, new: str) -> float:
        """The share of the runs that no other earlier document has, which are in a new one; 0 for hardly any such runs.

        Pages of one form, such as those of the commands of a program, share most of their text.
        """
        own = {run for run in self._old_runs(docno) if self._earlier_counts[run] == 1}
        return len(own & self._new_runs[new]) / len(own) if len(own) >= _SHORT else 0.0

    @cached_property
    def _earlier_counts(self) -> Counter[int]:
        """The number of earlier documents by run."""
        return Counter(run for docno in self._earlier.documents for run in self._old_runs(docno))

    def _namesake(self, old: Document, expected: str) -> Followed | None:
        """The only new page with its title and file name, or the one where the other pages of its folder moved.

        Sure for both, and for a page of hardly any text in a folder of that name.
        """
        alike = [
            docno for docno in self._documents if self._is_new(docno) and self._likeness(old, docno) >= _SAME_NAMES
        ]
        short = len(self._old_runs(old.docno)) < _SHORT
        if len(alike) == 1 and short and len(self._new_runs[alike[0]]) < 2 * _SHORT:
            return Followed(old.docno, "moved", (alike[0],), 0.8, "same title and file name, other text")
        if expected:
            reason = f"the other pages of its folder moved to that of {self._shown(expected)}, other text"
            doubtful = expected not in alike
            return Followed(old.docno, "moved", (expected,), 0.3 if doubtful else 0.8, reason, doubtful)
        if len(alike) != 1:
            return None
        return Followed(old.docno, "moved", (alike[0],), 0.3, "same title and file name, other text", doubtful=True)

    def _kind(self, docno: str, new: str) -> Literal["merged", "moved"]:
        """`merged` into a page that has mostly other text, else `moved`."""
        if docno not in self._earlier.documents:
            return "moved"
        return "merged" if len(self._new_runs[new]) > 2 * max(1, len(self._old_runs(docno))) else "moved"

    def _likeness(self, old: Document, docno: str) -> float:
        """A bonus for an equal file name and an equal title."""
        new = self._documents[docno]
        same_file = _file_name(old.docno) == _file_name(docno)
        return _SAME_FILE * same_file + _SAME_TITLE * (old.title.casefold() == new.title.casefold())

    def _section(self, target: str, page: Followed) -> Followed:
        """A section of a page that was followed."""
        docno = docno_of_section(target)
        anchor = target.removeprefix(f"{docno}#")
        old = self._earlier.documents.get(docno)
        text = None if old is None else _texts(old).get(anchor)
        if len(page.targets) == 1 and not page.doubtful:
            (new,) = page.targets
            same, name = _texts(self._documents[new]).get(anchor), f"{new}#{anchor}"
            if same is not None and (text is None or text == same):
                outcome = "stands" if new == docno else page.outcome
                return Followed(target, outcome, (name,), page.confidence, page.reason)
            if same is not None and text is not None and (kept := _kept(text, same)) >= _KEPT:
                outcome = "edited" if new == docno else page.outcome
                return Followed(target, outcome, (name,), kept, "edited")
            if same is not None and text is not None:
                return self._rewritten_section(target, text, page, name)
        if text is None:
            return Followed(target, "gone", (), 1.0, "no such section, and its earlier text is not known")
        return self._found_section(target, text, page)

    def _rewritten_section(self, target: str, text: str, page: Followed, same: str) -> Followed:
        """One whose name still exists, and hardly any of its text: it stands unless its text went elsewhere."""
        found = self._found_section(target, text, page)
        clear = found.confidence >= _FOUND + _LEAD and found.targets != (same,)
        if found.is_moved or (found.doubtful and clear):
            return found
        kept = 1 - found.confidence if not found.targets else found.confidence
        return Followed(target, "rewritten", (same,), kept, f"{kept:.0%} of its text is left")

    def _found_section(self, target: str, text: str, page: Followed) -> Followed:
        """A section by its text, in the pages of its page first."""
        runs = runs_of(text)
        heading = _heading(target)
        shares = {
            f"{docno}#{anchor}": len(runs & section_runs) / max(1, len(runs))
            for docno in (page.targets or sorted(self._shares(runs)))
            for anchor, section_runs in self._section_runs(docno).items()
        }
        named = {name: share + 0.2 * (_heading(name) == heading) for name, share in shares.items()}
        best = max(named, key=lambda name: named[name], default="")
        share = shares.get(best, 0.0)
        second = max((value for name, value in named.items() if name != best), default=0.0)
        if share < _TRACE or (len(runs) < _SHORT and _heading(best) != heading):
            return Followed(target, "gone", (), 1.0 - share, "no section has its text")
        clear = share >= _FOUND and named[best] - second >= _LEAD
        return Followed(
            target, "moved", (best,), share, f"{share:.0%} of its text is in {self._shown(best)}", not clear
        )

    def _new_section_runs(self, docno: str) -> Mapping[str, frozenset[int]]:
        texts = _texts(self._documents[docno]) if docno in self._documents else {}
        return {anchor: runs_of(text) for anchor, text in texts.items()}

    @cached_property
    def _new_runs(self) -> dict[str, frozenset[int]]:
        return {docno: runs_of(document.text) for docno, document in self._documents.items()}

    @cached_property
    def _places(self) -> Mapping[int, Sequence[str]]:
        """The documents of today by their runs of words."""
        places: defaultdict[int, list[str]] = defaultdict(list)
        for docno, runs in self._new_runs.items():
            for run in runs:
                places[run].append(docno)
        return places

    def _shares(self, runs: Collection[int]) -> dict[str, float]:
        """By document of today, the share of these runs that it has; runs in many documents do not count."""
        telling = [run for run in runs if len(self._places.get(run, ())) < _COMMON]
        counts = Counter(docno for run in telling for docno in self._places.get(run, ()))
        return {docno: count / len(telling) for docno, count in counts.items()}


def _kept(old: str, new: str) -> float:
    """The share of the runs of a text that another has."""
    runs = runs_of(old)
    return len(runs & runs_of(new)) / max(1, len(runs))


def _file_name(docno: str) -> str:
    """The last part of a docno that names a page: the folder of an index page."""
    return address(f"{docno}.md").rpartition("/")[2]


def _changes_language(old: str, new: str) -> bool:
    """Whether two docnos are in folders of different languages (`de/keys`, `en/keys`), which may hold equal text."""
    languages = [{part for part in docno.split("/")[:-1] if LANGUAGE_FOLDER.fullmatch(part)} for docno in (old, new)]
    return all(languages) and languages[0].isdisjoint(languages[1])


def _heading(section: str) -> str:
    """The last heading of the anchor of a section."""
    return section.rpartition("#")[2].rpartition("/")[2]


def _texts(document: Document) -> dict[str, str]:
    """The texts of the sections by anchor."""
    return {section.anchor: document.text[section.start : section.end] for section in document.sections}


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
