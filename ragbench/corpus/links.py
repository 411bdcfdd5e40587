"""Finds the documents that links lead to: by id, relative path, alias, or the end of a path."""

from __future__ import annotations

import posixpath
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal
from urllib.parse import unquote

from ragbench.base.fingerprint import digest
from ragbench.base.types import Document, Link
from ragbench.corpus.file_warning import FileWarning
from ragbench.corpus.folder import SUFFIXES
from ragbench.corpus.metadata import aliases_of
from ragbench.corpus.searched import normalised

Dialect = Literal["auto", "obsidian", "dendron"]
"""`[[a|b]]` in obsidian is a link to `a` shown as `b`, in dendron the reverse; auto takes what finds more targets."""

_EXTENSIONS = (*SUFFIXES, ".html")
# `02-guides`: a place in a menu, not in an address; and the id of a page that Notion exports.
_NUMBER = re.compile(r"^\d{1,3}[-_. ]+(?=[^\W\d_])|(?<=\S) [0-9a-f]{32}$")
_FOLDER_PAGES = ("index", "_index", "readme")
_SITE_DEPTH = 3  # folders in the address of a site
_SITE_LINKS = 3  # that must lead below it
_WRONG_LINKS = {
    "link-escapes": "out of the folder; link to documents inside it.",
    "ambiguous-link": "to several documents; write more of the path.",
}
_SITE_ROOT = re.compile("^@(?:site)?(?=/)")  # of Docusaurus and Zola
_DENDRON_VAULT = re.compile(r"^dendron://[^/]*/")


def related_links(entries: Sequence[str]) -> tuple[Link, ...]:
    """Links of kind `related` for the entries of a frontmatter field: ids, file names or wikilinks."""
    return tuple(Link("related", entry, None, _destination(entry)[1]) for entry in entries)


def resolve_links(
    documents: Sequence[Document], dialect: Dialect = "auto"
) -> tuple[tuple[Document, ...], list[FileWarning]]:
    """The documents with a target for every link that has one among them, and a warning per file with wrong links.

    Wikilinks, transclusions and `related` are tried as a docno, then relative to their document, then as an alias, then
    as the last parts of exactly one docno (as Obsidian does); markdown links relative to their document, then from the
    root. Extensions `.md` and `.markdown` may be omitted, letter case only decides between names that differ in
    nothing else, and a folder means its `index`, `_index` or `README`. A link without a target so far is tried as the
    address of a page: without the numbers that order files and folders (`/guides/setup` is `02-guides/01-setup`), and
    below the address under which the site serves the folder (`_site`). A link that fits nothing keeps the target None;
    this gives no warning. The `dialect` `auto` reads wikilinks with a bar as Dendron does when more of them then have a
    target, and adds a warning.
    """
    names = _Names.of(documents)
    resolved: list[Document] = []
    warnings: list[FileWarning] = []
    if dialect == "auto":
        dialect, dialect_warnings = _detect_dialect(documents, names)
        warnings += dialect_warnings
    names = replace(names, site=_site(documents, names))
    for document in documents:
        links: list[Link] = []
        wrong: dict[str, list[str]] = {}
        for written in document.links:
            link = _read_in_dialect(written, dialect)
            try:
                target = names.resolve(link, posixpath.dirname(document.docno), dialect)
            except _NoTargetError as error:
                target = None
                wrong.setdefault(str(error), []).append(link.text)
            links.append(replace(link, target=target))
        resolved.append(replace(document, links=tuple(links)))
        for name, (first, *others) in sorted(wrong.items(), reverse=True):
            more = f" (and {len(others)} more)" if others else ""
            warnings.append(FileWarning(document.path, name, f"the link {first}{more} leads {_WRONG_LINKS[name]}"))
    return tuple(resolved), warnings


def _detect_dialect(documents: Sequence[Document], names: _Names) -> tuple[Dialect, list[FileWarning]]:
    """The reading that gives more of the wikilinks with a bar a target; obsidian when equal."""
    barred = [(document, link) for document in documents for link in document.links if _has_bar(link)]
    counts = {
        reading: sum(names.has_target(link, document, reading) for document, link in barred) for reading in _READINGS
    }
    if counts["dendron"] <= counts["obsidian"]:
        return "obsidian", []
    message = (
        f"of {len(barred)} links {counts['dendron']} have a target as [[label|target]] and {counts['obsidian']} as "
        "[[target|label]], so they are read as Dendron does; set links.dialect=obsidian to read them the other way."
    )
    return "dendron", [FileWarning("*", "link-dialect", message)]


def _site(documents: Sequence[Document], names: _Names) -> str:
    """The address under which a site serves the folder, such as `/docs/`; `/` where no links tell.

    Of the links that begin at the root and have no target there, most, and at least three, must have one below it.
    """
    below: dict[str, Counter[bool]] = defaultdict(Counter)
    for document in documents:
        for link in document.links:
            if link.kind != "markdown" or not link.text.startswith("/") or names.has_target(link, document, "obsidian"):
                continue
            parts = _path_of_href(link.text).strip("/").split("/")
            for depth in range(1, min(len(parts), _SITE_DEPTH + 1)):
                exists = names.at("/".join(parts[depth:])) is not None
                below[f"/{'/'.join(parts[:depth])}/"][exists] += 1
    sites = {site: counts for site, counts in below.items() if counts[True] >= max(_SITE_LINKS, counts[False])}
    return max(sites, key=lambda site: (sites[site][True], -len(site), site), default="/")


_READINGS: tuple[Dialect, ...] = ("obsidian", "dendron")


def collection_digest(documents: Iterable[Document]) -> str:
    """One digest over documents with resolved links, in any order: their docnos and contents, and the links' dialect.

    It does not depend on times, which a checkout changes.
    """
    documents = list(documents)
    contents = sorted([document.docno, document.digest] for document in documents)
    dendron = any(_is_read_as_dendron(link) for document in documents for link in document.links)
    return digest([*contents, "dendron"] if dendron else contents)


def _is_read_as_dendron(link: Link) -> bool:
    return _has_bar(link) and link.label == _destination(link.text, "dendron")[2] != _destination(link.text)[2]


def _has_bar(link: Link) -> bool:
    return link.kind != "markdown" and "|" in link.text


def _read_in_dialect(link: Link, dialect: Dialect) -> Link:
    """The link with the heading and the label that its text has in the dialect."""
    if not _has_bar(link):
        return link
    _, heading, label = _destination(link.text, dialect)
    return replace(link, heading=heading, label="" if link.kind == "transclusion" else label)


class _NoTargetError(Exception):
    """A link leads nowhere: its text is a key of `_WRONG_LINKS`."""


@dataclass(frozen=True, slots=True)
class _Names:
    """What a document can be called: docnos by exact text, folded text, address, folded last part and folded alias."""

    exact: frozenset[str]
    folded: dict[str, list[str]]
    addresses: dict[str, list[str]]
    last_parts: dict[str, list[str]]
    aliases: dict[str, list[str]]
    site: str = "/"

    @staticmethod
    def of(documents: Sequence[Document]) -> _Names:
        folded: dict[str, list[str]] = {}
        addresses: dict[str, list[str]] = {}
        last_parts: dict[str, list[str]] = {}
        aliases: dict[str, list[str]] = {}
        for document in documents:
            key = fold(unquote(document.docno))
            folded.setdefault(key, []).append(document.docno)
            addresses.setdefault(unnumbered(key), []).append(document.docno)
            last_parts.setdefault(key.rpartition("/")[2], []).append(document.docno)
            for alias in dict.fromkeys(map(fold, aliases_of(document.frontmatter))):
                aliases.setdefault(alias, []).append(document.docno)
        return _Names(frozenset(document.docno for document in documents), folded, addresses, last_parts, aliases)

    def resolve(self, link: Link, folder: str, dialect: Dialect = "obsidian") -> str | None:
        """The docno that a link leads to; `folder` is that of the document with the link."""
        path = _destination(link.text, dialect)[0] if link.kind != "markdown" else _path_of_href(link.text)
        if not path:
            return None
        relative, absolute = _join(unquote(folder), path), _join("", path)
        if link.kind == "markdown" or path.startswith(("./", "../")):
            places: tuple[str | None, ...] = (absolute,) if path.startswith("/") else (relative, absolute)
            if f"{path}/".startswith(self.site) and self.site != "/":
                places += (_join("", path[len(self.site) :]),)
            if relative is None and not path.startswith("/"):
                raise _NoTargetError("link-escapes")
        else:
            places = (absolute, relative)
            if absolute is None and relative is None:
                raise _NoTargetError("link-escapes")
        for candidate in places:
            if candidate is not None and (docno := self.at(candidate)):
                return docno
        return None if link.kind == "markdown" else self._by_alias_or_ending(path)

    def has_target(self, link: Link, source: Document, dialect: Dialect) -> bool:
        """Whether a link in the document `source` leads to exactly one document."""
        try:
            return self.resolve(link, posixpath.dirname(source.docno), dialect) is not None
        except _NoTargetError:
            return False

    def at(self, path: str) -> str | None:
        """The document at a path, or the page of the folder at it."""
        for name in (path, *(posixpath.join(path, page) for page in _FOLDER_PAGES)):
            for candidate in dict.fromkeys((name, _without_extension(name))):
                if candidate in self.exact:
                    return candidate
                if docno := self.folded.get(fold(candidate)):
                    return docno[0]
                if len(docno := self.addresses.get(unnumbered(fold(candidate)), [])) == 1:
                    return docno[0]
        return None

    def _by_alias_or_ending(self, path: str) -> str | None:
        """The one document with this alias, else the one whose docno ends with the path."""
        tail = fold(_without_extension(path.strip("/")))
        ending = [d for d in self.last_parts.get(tail.rpartition("/")[2], []) if fold(unquote(d)).endswith(f"/{tail}")]
        for docnos in (self.aliases.get(fold(path), []), ending):
            if len(docnos) > 1:
                raise _NoTargetError("ambiguous-link")
            if docnos:
                return docnos[0]
        return None


def _destination(written: str, dialect: Dialect = "obsidian") -> tuple[str, str | None, str]:
    """Path, heading and label of a wikilink's text, with or without its brackets: `a/b#c|d` -> (`a/b`, `c`, `d`)."""
    inner = written.strip().removeprefix("!").removeprefix("[[").removesuffix("]]")
    target, _, label = inner.partition("|")
    if dialect == "dendron" and label:
        target, label = _DENDRON_VAULT.sub("", label.strip()), target
    path, _, heading = target.rstrip("\\ ").partition("#")
    return path.strip().replace("\\", "/"), heading.strip() or None, label.strip("\\ ")


def _path_of_href(href: str) -> str:
    path = unquote(href.partition("#")[0].partition("?")[0]).replace("\\", "/")
    return _SITE_ROOT.sub("", path)


def _join(folder: str, path: str) -> str | None:
    """The path below the root, None when it leads out of it."""
    joined = posixpath.normpath(path.lstrip("/") if path.startswith("/") else posixpath.join(folder, path))
    if joined == ".." or joined.startswith("../"):
        return None
    return "" if joined == "." else joined.lstrip("/")


def _without_extension(path: str) -> str:
    return next((path[: -len(ending)] for ending in _EXTENSIONS if path.lower().endswith(ending)), path)


def unnumbered(path: str) -> str:
    """A path without what order its parts in a menu (`02-guides`) and without ids of Notion."""
    return "/".join(_NUMBER.sub("", part) for part in path.split("/"))


def fold(name: str) -> str:
    """Return a name in the form in which names are compared: normalised Unicode, without case."""
    return normalised(name).casefold()
