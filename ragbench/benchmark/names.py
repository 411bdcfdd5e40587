"""Finds documents and sections by the names that people and tools use for them."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from ragbench.base.types import BenchmarkError, Document, Section
from ragbench.benchmark.lines import identifier
from ragbench.corpus.file_warning import LEFT_OUT, FileWarning
from ragbench.corpus.folder import SUFFIXES
from ragbench.corpus.links import fold, unnumbered
from ragbench.corpus.reader import decoded, docno_of
from ragbench.corpus.searched import IGNORED, normalised
from ragbench.corpus.sections import slug

_OTHERS = (".txt", ".docx", ".html", ".htm", ".rst", ".adoc", ".org", ".ipynb")
_SUFFIX = re.compile(f"(?:{'|'.join(map(re.escape, (*SUFFIXES, *_OTHERS)))})$", re.IGNORECASE)
_FOLDER_PAGE = re.compile(r"(?:^|/)(?:index|_index|readme)$")
_ADDRESSES = ("url", "slug", "permalink", "aliases", "redirect_from")
_LINK = re.compile(r"\[[^\[\]]*\]\(([^()\s]+)\)|<([^<>\s]+)>")
_FRAGMENT = re.compile(r"#?:~:.*")  # words of a page that a browser marks
_ROUTE = re.compile(r"^(https?://[^#]*?)/?#/([^?]*)(\?id=)?")  # of Docsify
_OF_OBSIDIAN = re.compile(r"obsidian://.*[?&](?:file|path|filepath)=([^&]+)", re.IGNORECASE)
_DATED = re.compile(r"(?:(?<=/)|^)(?:_posts/)?(\d{4})-(\d\d)-(\d\d)-(?=[^/]+$)")  # a post of Jekyll or Docusaurus
_LINE = re.compile(r"L(\d+)\b.*")  # `#L12-L20` of GitHub
_LINES = re.compile(r":(\d+)(?:[-:]\d+)*$")  # `page.md:12` of editors, `page.md#Heading:1-47` of `ragbench search`
_SEPARATOR = re.compile(r"\s*[,|\s]\s*")
_LANGUAGES = (  # of ISO 639-1, without those that name something else in paths, such as `ts`, `os` and `kv`
    "ar az be bg bn bs ca cs cy da de el en eo es et eu fa fi fr ga gl gu he hi hr hu hy id is it ja ka kk km kn ko ky "
    "lt lv mk mn mr ms my nb ne nl nn no pa pl pt ro ru si sk sl sq sr sv sw ta te th tl tr uk ur uz vi zh"
)
LANGUAGE_FOLDER = re.compile(rf"(?:{'|'.join(_LANGUAGES.split())})(?:[-_][a-z]{{2,4}})?", re.IGNORECASE)
"""The name of a folder with the pages of one language: `de`, `pt-BR`, `zh_Hans`."""
TRANSLATED = re.compile(rf"^(.+)\.({LANGUAGE_FOLDER.pattern})$", re.IGNORECASE)
"""The path of a translation, without its extension, as Hugo and MkDocs name it: `page.de`."""
_COMPARED = 2000
_SHOWN = 5  # anchors
_SITE_DEPTH = 4  # folders in the address of a site
_SITE_PAGES = 2  # that answers must name below it


def address(path: str) -> str:
    """A path in normal form: lower-case, without extension, outer slashes and the file name of an index page."""
    plain = unquote(path.strip().replace("\\", "/")).casefold().strip("/")
    return _FOLDER_PAGE.sub("", _SUFFIX.sub("", posixpath.normpath(plain))) if plain else ""


def addresses(docno: str, frontmatter: Mapping[str, Any]) -> list[str]:
    """The addresses, in normal form, that the frontmatter gives to a page; relative ones are below its folder, too."""
    values = [frontmatter.get(name) for name in _ADDRESSES]
    flat = [item for value in values for item in (value if isinstance(value, list) else [value])]
    paths = [urlsplit(item).path for item in flat if isinstance(item, str) and item.strip("/ ")]
    relative = [*paths, *(value for value in [frontmatter.get("id")] if isinstance(value, str))]  # Docusaurus
    below = [posixpath.join(docno.rpartition("/")[0], path) for path in relative]
    return [key for key in dict.fromkeys(map(address, (*paths, *below))) if key]


def derived_addresses(docno: str) -> list[str]:
    """The addresses, in normal form, that sites make of a file's name: without numbers, with its date as folders.

    Blanks and punctuation are as Hugo, Astro and Quartz write them, or `+` as in Obsidian Publish.
    """
    key = address(f"{docno}.md")
    forms = (unnumbered(key), _DATED.sub(r"\1/\2/\3/", key), address(TRANSLATED.sub(r"\2/\1", key)))
    names = [key, *forms] if key else []
    return [*names, *("/".join(map(slug, name.split("/"))) for name in names), key.replace(" ", "+")]


class Names:
    """Finds documents by docno, path, file name, wikilink, address on the site, or title; and their sections."""

    def __init__(
        self, documents: Iterable[Document], site: str = "", left_out: Iterable[FileWarning] = (), folder: str = ""
    ) -> None:
        """The names of these documents; `site` is the address under which the `folder` of this name is served.

        `left_out` is what the folder holds and the collection excludes, for `hint`.
        """
        self._documents = {document.docno: document for document in documents}
        self._site, self._folder = site, folder.casefold()
        self._left_out = {
            left.path: LEFT_OUT[left.name] for left in left_out if docno_of(left.path) not in self._documents
        }
        self._anchors: dict[str, dict[str, str]] = {}
        self._sites: list[str] = []

    def find_sites(self, urls: Iterable[str]) -> None:
        """Take addresses for those of the folder on a site if most URLs below them, and two pages, are pages of it."""
        found: dict[str, dict[str, str | None]] = {}
        for url in filter(None, {_without_scheme(_unbracketed(url)) for url in urls}):
            parts = url.split("/")
            for depth in range(1, min(len(parts), 2 + _SITE_DEPTH)):
                page = self._by_address.get(address("/".join(parts[depth:])))
                found.setdefault("/".join([*parts[:depth], ""]), {})[url] = page
        for site, pages in found.items():
            known = [page for page in pages.values() if page is not None]
            if len(set(known)) >= _SITE_PAGES and 2 * len(known) > len(pages):
                self._sites.append(site)

    def document(self, name: str) -> str | None:
        """The docno of a document that only one name fits, else None."""
        return next((docno for _, docno in self._candidates(name) if docno is not None), None)

    def kind(self, name: str) -> str:
        """By what a name finds its document: path, file name, URL or title; empty if it finds none."""
        return next((kind for kind, docno in self._candidates(name) if docno is not None), "")

    def section(self, name: str) -> str | None:
        """The section id of `document#anchor` or `document#Heading`; None when there is none."""
        found = self._section(name)
        return f"{found[0]}#{found[1]}" if found and found[1] is not None else None

    def section_kind(self, name: str) -> str:
        """By what a name finds its section; empty if it finds none."""
        found = self._section(name)
        if found is None or found[1] is None:
            return ""
        docno, _, written = found
        exact = any(section.anchor == written for section in self._documents[docno].sections)
        return "section" if exact else "anchor of the site"

    def hint(self, name: str) -> str:
        """The end of a sentence about an unknown name: the anchors of its document, else the most similar documents.

        If the collection excludes the file of that name, the reason.

        A comparison takes about 20 microseconds, so names are not compared with more than 2,000 documents.
        """
        if found := self._section(name):
            docno, _, written = found
            anchors = [section.anchor for section in self._documents[docno].sections if section.anchor]
            near = [anchor for anchor in anchors if anchor.rpartition("/")[2] == slug(written)]
            near = near or get_close_matches(written, anchors, n=1, cutoff=0.6) or anchors[:_SHOWN]
            meant = f": did you mean #{', #'.join(near)}?" if near else " nor any other"
            return f"; {self._documents[docno].path} has no section '{written}'{meant}"
        parts = [part for part in _SEPARATOR.split(name) if part]
        if len(parts) > 1 and all(self.document(part) or self.section(part) for part in parts):
            return "; separate its answers by ';'"
        path = urlsplit(_unbracketed(name).partition("#")[0].strip()).path
        sought = _SUFFIX.sub("", path.strip("/")).casefold()
        for left, reason in self._left_out.items():
            known = _SUFFIX.sub("", left).casefold()
            if f"/{known}".endswith(f"/{sought}") or (left.endswith("/") and sought.startswith(known)):
                return f"; {left} is excluded: {reason}"
        near = [docno for docno in self._documents if docno.casefold().rpartition("/")[2] == sought.rpartition("/")[2]]
        if not near and len(self._documents) <= _COMPARED:
            near = get_close_matches(sought, self._documents, n=1, cutoff=0.7)
        return f"; did you mean {' or '.join(self._documents[docno].path for docno in near[:3])}?" if near else ""

    def _candidates(self, name: str) -> Iterator[tuple[str, str | None]]:
        text = _unbracketed(name).strip().replace("\\", "/")
        path = text.removeprefix("./").lstrip("/")
        for candidate in (identifier(path), self._by_path.get(path), identifier(_SUFFIX.sub("", path))):
            yield "path", candidate if candidate in self._documents else None
        last = fold(identifier(_SUFFIX.sub("", path)))
        yield "path", self._by_lower_case.get(last)
        yield "file name", self._by_file_name.get(last)
        yield "URL", self._by_url(text)
        yield "title", self._by_title.get(fold(text))

    def _by_url(self, text: str) -> str | None:
        """The document at an address of the site, or at a path on it: the whole path, else an end that is unique."""
        host = urlsplit(self._site).netloc.casefold()
        url = urlsplit(f"//{text}" if host and text.casefold().startswith(f"{host}/") else text)
        if url.fragment or "#" in text or not ("/" in text or _SUFFIX.search(text)):
            return None
        path = url.path
        if self._site and (url.netloc or text.startswith("/")):
            site = urlsplit(self._site)
            below = f"{path}/".startswith(f"{site.path.rstrip('/')}/")
            if url.netloc and (not below or (url.hostname, url.port) != (site.hostname, site.port)):
                return None
            path = path[len(site.path.rstrip("/")) :] if below else path
        key = address(path)
        if key in self._by_address or not key:
            return None if url.query and not key else self._by_address.get(key)  # `/?p=7` is not a home page
        if key in self._by_end:
            return self._by_end[key]
        parts = key.split("/")  # a file name alone is not enough: a page elsewhere may have the same
        tails = ["/".join(parts[n:]) for n in range(1, len(parts)) if parts[n - 1] == self._folder]
        if url.netloc or text.startswith("/"):
            tails += ["/".join(parts[first:]) for first in range(1, len(parts) - 1)]
        whole = f"{_without_scheme(text)}/"
        tails += [address(whole[len(site) :]) for site in self._sites if whole.startswith(site)]
        return next((self._by_address[tail] for tail in tails if tail in self._by_address), None)

    def _section(self, name: str) -> tuple[str, str | None, str] | None:
        """Document, anchor and what was written for it; None if no part of the name is a document."""
        text, unknown = _unbracketed(name), None
        if lines := _LINES.search(text):
            text = text[: lines.start()] + ("" if "#" in text else f"#L{lines[1]}")
        # Names and headings may contain `#`: try every one as the separator.
        for position in (position for position, character in enumerate(text) if character == "#"):
            docno, written = self.document(text[:position]), normalised(unquote(text[position + 1 :])).strip()
            if docno is not None:
                anchor = self._anchor(docno, written)
                if anchor is not None:
                    return docno, anchor, written
                unknown = docno, None, written
        return unknown

    def _anchor(self, docno: str, written: str) -> str | None:
        if docno not in self._anchors:
            self._anchors[docno] = site_anchors(self._documents[docno].sections)
        anchors = self._anchors[docno]
        as_path = "/".join(map(slug, re.split("[#/]", written)))  # `Part#Chapter` is Obsidian's
        shown = written.removeprefix("user-content-").removeprefix("markdown-header-")  # of GitHub, Bitbucket
        keys = (written, shown, f"#{slug(written)}", f"#{as_path}") if written else ("",)
        line = _LINE.fullmatch(written)
        return next((anchors[key] for key in keys if key in anchors), self._anchor_of_line(docno, line))

    def _anchor_of_line(self, docno: str, match: re.Match[str] | None) -> str | None:
        """The section that holds a line of the file."""
        page = self._documents[docno]
        breaks = int(match[1]) - page.first_line if match else -1
        if not 0 <= breaks <= page.text.count("\n"):
            return None
        starts = (section for section in page.sections if page.text.count("\n", 0, section.start) <= breaks)
        return next((section.anchor for section in reversed(list(starts))), None)

    @cached_property
    def _by_path(self) -> dict[str, str]:
        return {document.path: docno for docno, document in self._documents.items()}

    @cached_property
    def _by_lower_case(self) -> dict[str, str]:
        return _unique((fold(docno), docno) for docno in self._documents)

    @cached_property
    def _by_file_name(self) -> dict[str, str]:
        names = [(fold(docno.rpartition("/")[2]), docno) for docno in self._documents]
        return _unique((fold(unnumbered(unquote(name))), docno) for name, docno in names) | _unique(names)

    @cached_property
    def _by_title(self) -> dict[str, str]:
        return _unique((fold(document.title), docno) for docno, document in self._documents.items())

    @cached_property
    def _by_address(self) -> dict[str, str]:
        """Docnos by address: of the folder, without the numbers that order pages, and of the frontmatter."""
        pairs, derived = [], []
        for docno, document in self._documents.items():
            pairs.append((address(f"{docno}.md"), docno))
            derived += [(key, docno) for key in derived_addresses(docno)]
            given = addresses(docno, document.frontmatter)
            pairs += [(key, docno) for written in given for key in (written, unnumbered(written))]
        return _unique(dict.fromkeys(derived)) | _unique(dict.fromkeys(pairs))

    @cached_property
    def _by_end(self) -> dict[str, str]:
        """Docnos by the ends of addresses, of two parts or more, that one page alone has."""
        parts = ((known.split("/"), docno) for known, docno in self._by_address.items())
        return _unique({("/".join(p[first:]), docno) for p, docno in parts for first in range(1, len(p) - 1)})


def page_and_file(documents: Iterable[Document], name: str, folder: str | None) -> tuple[Document, str]:
    """The document of a name and the text of its file in a folder, without one that of the document.

    Raises BenchmarkError for a name that fits none.
    """
    by_docno = {document.docno: document for document in documents}
    names = Names(by_docno.values())
    docno = names.document(name)
    if docno is None:
        raise BenchmarkError(f"no page is named '{name}'{names.hint(name) or ': name one by its path or title'}")
    page = by_docno[docno]
    file = Path(folder).expanduser() / page.path if folder else None
    return page, decoded(page.path, file.read_bytes())[0] if file and file.is_file() else page.text


def _without_scheme(url: str) -> str:
    """Host and path of a URL; empty for a path."""
    parts = urlsplit(url.strip())
    return f"{parts.netloc.casefold()}{parts.path}" if parts.netloc else ""


def _unbracketed(name: str) -> str:
    """What a wikilink, a link of markdown (`[label](page.md)`, `<url>`) or an address with a quote leads to."""
    if link := _LINK.fullmatch(name.strip()):
        return link[1] or link[2]
    inner = IGNORED.sub("", name).strip().strip("`").removeprefix("!").removeprefix("[[").removesuffix("]]")
    if note := _OF_OBSIDIAN.match(inner):
        return unquote(note[1])
    inner = _ROUTE.sub(lambda route: f"{route[1]}/{route[2]}{'#' * bool(route[3])}", _FRAGMENT.sub("", inner))
    return inner.split("|", 1)[0] if "[[" in name else inner


def site_anchors(sections: Iterable[Section]) -> dict[str, str]:
    """Our anchors by those that sites make: ids of the author, GitHub's, mdBook's, MkDocs', VitePress', Pandoc's.

    Docusaurus makes those of GitHub. Of repeated headings the first has no number: `limits`, `limits-1` (MkDocs:
    `limits_1`). A heading, or the last ones of its path, begins with `#` here; it must be the only one of its name.
    """
    sections = [section for section in sections if section.path]
    anchors = {section.anchor: section.anchor for section in sections} | {"": ""}
    for section in sections:
        anchors |= {name: section.anchor for name in section.ids if name not in anchors}
    for slug_of, joint in ((_github, "-"), (slug, "-"), (_mkdocs, "_"), (_vitepress, "-"), (_pandoc, "-")):
        seen = Counter({"": 0} if joint == "_" else {})  # MkDocs begins with `_1` where no letter is left
        for section in sections:
            name = unique = slug_of(section.path[-1])
            while unique in seen:  # `Limits`, `Limits 1`, `Limits`
                seen[name] += 1
                unique = f"{name}{joint}{seen[name]}"
            seen[unique] = 0
            anchors.setdefault(unique, section.anchor)
    ends = ((f"#{'/'.join(map(slug, s.path[first:]))}", s.anchor) for s in sections for first in range(len(s.path)))
    return {normalised(name): anchor for name, anchor in (anchors | _unique(ends)).items()}


def _github(heading: str) -> str:
    kept = (c for c in heading.strip().lower() if c.isalnum() or c in "-_ " or unicodedata.category(c)[0] == "M")
    return "".join(kept).replace(" ", "-")


def _pandoc(heading: str) -> str:
    return re.sub(r"\A[\W\d_]+", "", _github(heading))


def _mkdocs(heading: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", ascii_only).strip().lower())


def _vitepress(heading: str) -> str:
    letters = (c for c in unicodedata.normalize("NFKD", heading) if not unicodedata.combining(c))
    name = (
        re.sub(r"[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:\"'\u201c\u201d\u2018\u2019<>,.?/]+", "-", "".join(letters))
        .strip("-")
        .lower()
    )
    return re.sub(r"^(?=\d)", "_", name)


def _unique(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    listed = list(pairs)
    counts = Counter(key for key, _ in listed)
    return {key: value for key, value in listed if counts[key] == 1}
