"""Replay the histories of public documentation sites: labels of a year earlier, carried to the end of each year.

    git clone --bare https://github.com/astral-sh/uv clones/astral-sh/uv     # and the others of SITES
    python -m research.label_replay clones --sites tuning
    python -m research.label_replay clones --sites measured

Every page of a site is a label, and so is every section of a page that changed. Two truths, neither of which the
followed evidence includes:

- git: the page to which git follows the file, commit by commit, against following by the text alone, from the text of a
  year earlier. A file that git says is deleted has no truth: its text may be in another page.
- addresses: where the site sends readers of the old address (`_redirects`, `redirect_maps`, `aliases`), against
  following by git and text.

The truth of a section is the section of the true page that has most of its unchanged lines (difflib).
"""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

from ragbench.base.types import Document
from ragbench.benchmark.label_health import Followed
from ragbench.benchmark.names import address, addresses
from ragbench.corpus.reader import docno_of, parse_document
from ragbench.extras.follow.follower import Earlier, LabelFollower
from ragbench.extras.follow.git_history import History

YEAR = 365 * 86_400
SITES = {
    "tuning": {
        "withastro/docs": "src/content/docs/en/",
        "grafana/k6-docs": "docs/sources/k6/next/",
        "argoproj/argo-cd": "docs/",
        "traefik/traefik": "docs/content/",
        "denoland/docs": "",
        "prometheus/docs": "",
    },
    "measured": {
        "astral-sh/uv": "docs/",
        "gohugoio/hugoDocs": "content/en/",
        "cert-manager/website": "content/docs/",
        "evcc-io/docs": "",
        "fastapi/fastapi": "docs/en/docs/",
        "hyperledger/firefly": "doc-site/",
        "pnpm/pnpm.io": "docs/",
        "pydantic/pydantic": "docs/",
        "rust-lang/cargo": "",
        "squidfunk/mkdocs-material": "docs/",
        "typescript-eslint/typescript-eslint": "docs/",
        "vitejs/vite": "docs/",
        "kubernetes-sigs/gateway-api": "",
        "electron/electron": "docs/",
        "reactjs/react.dev": "src/content/",
        "nuxt/nuxt": "docs/",
    },
}
"""Sites with the folder of their pages; thresholds are chosen on the first group only."""
_REDIRECT_FILES = re.compile(r"(?:^|/)(?:_redirects|mkdocs[\w.-]*\.ya?ml|vercel\.json)$")
_PAIRS = (
    re.compile(r"^\s*(/\S+)\s+(/\S+)", re.MULTILINE),
    re.compile(r"^\s+['\"]?([\w./-]+\.md)['\"]?:\s*['\"]?([\w./-]+\.md)", re.MULTILINE),
    re.compile(r'"source":\s*"([^"]+)",\s*"destination":\s*"([^"]+)"'),
)


@dataclass(frozen=True)
class Window:
    """A site at the beginning and the end of a year, and the renames between by git."""

    site: str
    before: Mapping[str, Document]
    after: Mapping[str, Document]
    renames: Mapping[str, str]
    redirects: Mapping[str, str]

    @property
    def truth(self) -> dict[str, str]:
        """By docno of then, the docno of git at the end; pages that were deleted are missing."""
        own = {docno: docno for docno in self.before if docno in self.after}
        return own | {old: new for old, new in self.renames.items() if new in self.after and old not in self.after}


def windows(clones: Path, sites: Mapping[str, str], years: int) -> Iterator[Window]:
    """The years of every site, the newest first; years without pages or without a removed name are left out."""
    for site, folder in sites.items():
        head = History(clones / site, folder).commit("HEAD")
        now = int(History(clones / site)._git("log", "-1", "--format=%ct", head))
        ends = [_commit_before(clones / site, head, now - year * YEAR) for year in range(years + 1)]
        for end, start in pairwise(ends):
            if start and (window := _window(site, History(clones / site, folder, end), start)):
                yield window


def _commit_before(clone: Path, head: str, moment: int) -> str:
    return History(clone)._git("rev-list", "-1", "--first-parent", f"--before={moment}", head).strip()


def _window(site: str, history: History, start: str) -> Window | None:
    before, after = (_read(history, name) for name in (start, history.head))
    if not before or not set(before) - set(after):
        return None
    renames = history.earlier(list(before), history.events(start), start).renames
    return Window(site, before, after, renames, _redirects(history, before, after))


def _read(history: History, commit: str) -> dict[str, Document]:
    texts = history.texts({docno_of(path): (commit, path) for path in sorted(history.files(commit))})
    return {docno: _parsed(docno, *text) for docno, text in texts.items()}


@cache
def _parsed(docno: str, path: str, raw: bytes) -> Document:
    return parse_document(docno, path, raw, 0.0)[0]


def _redirects(history: History, before: Mapping[str, Document], after: Mapping[str, Document]) -> dict[str, str]:
    """By docno of then that is gone, the docno to which the site sends its readers."""
    places = {address(f"{docno}.md"): docno for docno in after}
    pairs = {old: docno for docno, page in after.items() for old in addresses(docno, page.frontmatter)}
    for path in history._git("ls-tree", "-r", "--name-only", history.head).split("\n"):
        if _REDIRECT_FILES.search(path):
            text = history._git("show", f"{history.head}:{path}")
            for old, new in (pair for pattern in _PAIRS for pair in pattern.findall(text)):
                target = _at(address(new.partition("#")[0]), places)
                if target:
                    pairs[address(old)] = target
    gone = {address(f"{docno}.md"): docno for docno in before if docno not in after}
    found = {_at(old, gone): target for old, target in pairs.items()}
    return {docno: target for docno, target in found.items() if docno}


def _at(sought: str, places: Mapping[str, str]) -> str:
    """The docno at an address; of a longer one, where only one docno's address is its end, or the other way round."""
    if sought in places:
        return places[sought]
    fitting = {docno for known, docno in places.items() if known and (sought.endswith(f"/{known}"))}
    return fitting.pop() if len(fitting) == 1 else ""


def outcome(followed: Followed, truth: str) -> str:
    """One of right, doubtful, missed and wrong."""
    if followed.doubtful:
        return "doubtful"
    if not followed.targets:
        return "missed"
    return "right" if followed.targets == (truth,) else "wrong"


def pages(window: Window, examples: list[str]) -> tuple[Counter[str], Counter[str]]:
    """The outcomes by (kind, outcome): against git by the text alone, against addresses by git and the text."""
    plain = [replace(page, frontmatter={}) for page in window.after.values()]
    by_text = LabelFollower(Earlier(window.before), plain)
    by_git = LabelFollower(Earlier(window.before, window.renames), plain)
    of_git, of_addresses = Counter[str](), Counter[str]()
    truth = window.truth
    for docno in window.before:
        followed = by_text.follow(docno)
        if docno in truth:
            kind = "stays" if truth[docno] == docno else "moved"
            of_git[f"{kind} {outcome(followed, truth[docno])}"] += 1
            if outcome(followed, truth[docno]) in ("wrong", "missed"):
                examples.append(f"{window.site} git {docno} -> {truth[docno]}: {followed}")
        else:
            of_git[f"deleted {'followed' if followed.is_moved else 'doubtful' if followed.doubtful else 'gone'}"] += 1
        if docno in window.redirects:
            told = by_git.follow(docno)
            result = outcome(told, window.redirects[docno])
            of_addresses[f"redirected {result}"] += 1
            if result == "wrong":
                examples.append(f"{window.site} url {docno} -> {window.redirects[docno]}: {told}")
    return of_git, of_addresses


def sections(window: Window) -> Counter[str]:
    """The outcomes of sections of changed pages, by the text alone, against the lines that did not change."""
    follower = LabelFollower(Earlier(window.before), [replace(page, frontmatter={}) for page in window.after.values()])
    counts = Counter[str]()
    for docno, new in window.truth.items():
        old_page, new_page = window.before[docno], window.after[new]
        if old_page.text == new_page.text and docno == new:
            continue
        for anchor, true in _aligned(old_page, new_page).items():
            kind = "section stays" if (docno, anchor) == (new, true) else "section moved"
            counts[f"{kind} {outcome(follower.follow(f'{docno}#{anchor}'), f'{new}#{true}')}"] += 1
    return counts


def _aligned(old: Document, new: Document) -> dict[str, str]:
    """By anchor of the old page, that of the section of the new one with most of its unchanged lines, at least half."""
    first, second = old.text.split("\n"), new.text.split("\n")
    places = {
        a + k: b + k
        for a, b, size in difflib.SequenceMatcher(None, first, second, autojunk=False).get_matching_blocks()
        for k in range(size)
    }
    lines_of = {section.anchor: _lines(old, section) for section in old.sections if section.anchor}
    home = {line: section.anchor for section in new.sections for line in _lines(new, section)}
    aligned = {}
    for anchor, lines in lines_of.items():
        kept = [line for line in lines if first[line].strip()]
        votes = Counter(home[places[line]] for line in kept if line in places and places[line] in home)
        if votes and votes.most_common(1)[0][1] * 2 >= len(kept):
            aligned[anchor] = votes.most_common(1)[0][0]
    return aligned


def _lines(document: Document, section: object) -> range:
    start, end = section.start, section.end  # type: ignore[attr-defined]
    return range(document.text.count("\n", 0, start), document.text.count("\n", 0, end))


def table(counts: Mapping[str, Counter[str]]) -> list[str]:
    """A row for every site and one of all: moved labels, right, doubtful, missed, wrong; and stays that moved."""
    total = Counter[str]()
    for counted in counts.values():
        total += counted
    return [_row(site, counted) for site, counted in {**counts, "all": total}.items()]


def _row(site: str, counts: Counter[str]) -> str:
    cells = []
    for kind in ("moved", "redirected", "section moved", "stays", "section stays"):
        n = [counts[f"{kind} {name}"] for name in ("right", "doubtful", "missed", "wrong")]
        cells.append(f"{sum(n)}: {' / '.join(map(str, n))}")
    deleted = [counts[f"deleted {name}"] for name in ("gone", "doubtful", "followed")]
    return f"| {site} | {' | '.join(cells)} | {' / '.join(map(str, deleted))} |"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table of a group of sites, and with --examples the labels that went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--sites", choices=SITES, default="measured")
    parser.add_argument("--years", type=int, default=5)
    parser.add_argument("--examples", action="store_true")
    given = parser.parse_args(arguments)
    counts: dict[str, Counter[str]] = {}
    examples: list[str] = []
    for window in windows(given.clones, SITES[given.sites], given.years):
        of_git, of_addresses = pages(window, examples)
        counts.setdefault(window.site, Counter()).update(of_git + of_addresses + sections(window))
        print(window.site, len(window.before), file=sys.stderr, flush=True)
    print(
        "| site | moved pages: right / doubtful / missed / wrong | redirected | moved sections | pages that stay |",
        end="",
    )
    print(" sections that stay | deleted: gone / doubtful / followed |\n| --- |" + " --- |" * 6)
    print("\n".join(table(counts)))
    if given.examples:
        print("\n".join(examples))


if __name__ == "__main__":
    main()
