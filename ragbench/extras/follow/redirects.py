"""The redirects of a documentation site, from the files in which its tools keep them.

`_redirects` and `netlify.toml` (Netlify, Cloudflare), `redirect_maps` of MkDocs, `vercel.json`, `redirects.json`, and
the pairs written out in the configuration of Docusaurus (a function there, `createRedirects`, is not run). A rule for a
folder counts where both sides end with the rest of the path; other patterns and rewrites (status 200) do not.
"""

from __future__ import annotations

import logging
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ragbench.base.types import BenchmarkError, BoundaryError, why_unreadable
from ragbench.benchmark.names import address
from ragbench.boundary.json import read_json, read_text

_LOG = logging.getLogger(__name__)

_FOLDERS = ("", "static", "public")
_FILES = ("_redirects", "netlify.toml", "vercel.json", "redirects.json", "mkdocs.y*ml", "docusaurus.config.*")
_HOPS = 5  # redirects of redirects
_REST = re.compile(r"/(?:\*|:\w+\*?|\(\.\*\)|\$1)$")  # the rest of a path, as in `/old/* /new/:splat`
_PATTERN = re.compile(r"[*$()]|/:")
_MAPS = re.compile(r"^([ \t]*)redirect_maps:[ \t]*\n((?:\1[ \t]+.*\n|[ \t]*(?:#.*)?\n)*)", re.MULTILINE)
_MAP = re.compile(r"""^[ \t]+(['"]?)([^'"#\n]+?)\1[ \t]*:[ \t]+(['"]?)([^'"#\n]+?)\3[ \t]*(?:#.*)?$""", re.MULTILINE)
_OBJECT = re.compile(r"\{[^{}]*\}")
_TO = re.compile(r"""\bto\s*:\s*(['"`])([^'"`$]+)\1""")
_FROM = re.compile(r"""\bfrom\s*:\s*(\[[^\]]*\]|(['"`])[^'"`$]+\2)""")
_QUOTED = re.compile(r"""(['"`])([^'"`$]+)\1""")
_NAMES = (("source", "destination"), ("from", "to"), ("old", "new"))


@dataclass(frozen=True)
class Redirects:
    """Rules (old path, new path, file) of a site, the first of equal ones first."""

    rules: tuple[tuple[str, str, str], ...] = ()

    def page(self, gone: str, places: Mapping[str, str]) -> tuple[str, str] | None:
        """The docno to which the address of a page that is gone leads, and the file that says so.

        `places`: docnos by address in normal form (`ragbench.benchmark.names.address`). None where no rule, or several
        that differ, lead to one of them.
        """
        found = set(self._hits(gone, places, _HOPS))
        return found.pop() if len({docno for docno, _ in found}) == 1 else None

    def _hits(self, path: str, places: Mapping[str, str], hops: int) -> Iterator[tuple[str, str]]:
        for base, target, file in self._targets(path):
            docno = _at(target, base, places)
            if docno:
                yield docno, file
            elif hops and target:
                yield from self._hits(target, places, hops - 1)

    def _targets(self, path: str) -> Iterator[tuple[str, str, str]]:
        """(what the site has before the path, new path, file) of every rule for a path."""
        yield from self._pages.get(path, ())
        parts = path.split("/")
        for end in range(len(parts) - 1, 0, -1):
            for base, target, file in self._folders.get("/".join(parts[:end]), ()):
                yield base, "/".join(filter(None, (target, *parts[end:]))), file

    @cached_property
    def _pages(self) -> Mapping[str, list[tuple[str, str, str]]]:
        return self._index(False)

    @cached_property
    def _folders(self) -> Mapping[str, list[tuple[str, str, str]]]:
        return self._index(True)

    def _index(self, folders: bool) -> Mapping[str, list[tuple[str, str, str]]]:
        """The rules by each end of their old path, because a folder of documents is below an address of its site."""
        index: defaultdict[str, list[tuple[str, str, str]]] = defaultdict(list)
        seen: set[str] = set()
        for old, new, file in self.rules:
            plain, target = _REST.sub("", old), _REST.sub("", new)
            if (plain != old) != folders or (target != new) != folders or _PATTERN.search(plain + target):
                continue
            source = address(plain)
            if not source or source in seen:
                continue
            seen.add(source)
            parts = source.split("/")
            for first in range(len(parts)):
                entry = ("/".join(parts[:first]), address(urlsplit(target).path), file)
                index["/".join(parts[first:])].append(entry)
        return index


def _at(target: str, base: str, places: Mapping[str, str]) -> str:
    """The docno at a path of the site: below the same base, of the whole path, or of its longest end; or empty."""
    if not target:
        return ""
    parts = target.split("/")
    below = target.removeprefix(f"{base}/") if base else target
    ends = (below, *("/".join(parts[first:]) for first in range(len(parts))))
    return next((places[end] for end in ends if end in places), "")


def read_redirects(corpus: Path, top: Path) -> Redirects:
    """The redirects that files in the folder of documents have, and in its parents up to `top`.

    A file that cannot be read is named in a warning.
    """
    folders = [corpus.resolve(), *corpus.resolve().parents]
    within = folders[: folders.index(top.resolve()) + 1] if top.resolve() in folders else folders[:1]
    rules: list[tuple[str, str, str]] = []
    for file in (
        f for place in within for sub in _FOLDERS for name in _FILES for f in sorted((place / sub).glob(name))
    ):
        try:
            rules += [(old, new, file.name) for old, new in _pairs(file.name, read_text(file))]
        except (BoundaryError, OSError, ValueError, RecursionError) as error:
            reason = why_unreadable(error) if isinstance(error, OSError) else str(error)
            _LOG.warning(f"the redirects in {file} are not followed: it cannot be read ({reason})")
    return Redirects(tuple(rules))


def read_redirect_file(file: Path) -> Redirects:
    """The redirects of one file, by its name: of lines `OLD NEW` if it is none that a tool reads.

    Raises BenchmarkError for a file that cannot be read.
    """
    try:
        return Redirects(tuple((old, new, file.name) for old, new in _pairs(file.name, read_text(file))))
    except (BoundaryError, OSError, ValueError, RecursionError) as error:
        reason = why_unreadable(error) if isinstance(error, OSError) else str(error)
        raise BenchmarkError(
            f"{file} cannot be read ({reason}): name a file of redirects, or of lines `OLD NEW`"
        ) from None


def _pairs(name: str, text: str) -> Iterator[tuple[str, str]]:
    """The old and new paths of a file of this name."""
    if name.startswith("mkdocs"):
        for _, block in _MAPS.findall(f"{text}\n"):
            yield from ((old, new) for _, old, _, new in _MAP.findall(block))
    elif name.startswith("docusaurus"):
        for written in _OBJECT.findall(text) if "plugin-client-redirects" in text else ():
            to, origin = _TO.search(written), _FROM.search(written)
            if to and origin:
                yield from ((old, to[2]) for _, old in _QUOTED.findall(origin[1]))
    elif name.endswith((".toml", ".json")):
        yield from _in_objects(tomllib.loads(text) if name.endswith(".toml") else read_json(text))
    else:
        for line in text.splitlines():
            old, new, *more = [*line.partition("#")[0].split(), "", ""][:4]
            if old and new and all(word.startswith("3") for word in more if word.rstrip("!").isdigit()):
                yield old, new


def _in_objects(value: Any) -> Iterator[tuple[str, str]]:
    """The pairs of all objects with an old and a new path, and of one that has new paths by old ones."""
    if isinstance(value, list):
        for item in value:
            yield from _in_objects(item)
    elif isinstance(value, Mapping):
        named = [
            (value[a], value[b]) for a, b in _NAMES if isinstance(value.get(a), str) and isinstance(value.get(b), str)
        ]
        if named and str(value.get("status", value.get("statusCode", 301))).startswith("3"):
            yield from named
        elif not named:
            for key, item in value.items():
                if isinstance(item, str) and str(key).startswith("/"):
                    yield str(key), item
                else:
                    yield from _in_objects(item)
