"""The frontmatter fields that retrieval uses (P9), read from scalars, lists and unusual values."""

from __future__ import annotations

import contextlib
import datetime
import email.utils
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from ragbench.base.options import Constraint

_DATE_FORMATS = ("%Y/%m/%d", "%Y-%m", "%d.%m.%Y", "%d %B %Y", "%d %b %Y", "%B %d, %Y", "%b %d, %Y", "%Y/%m/%d %H:%M")
_DATE_READERS: tuple[Callable[[str], datetime.datetime], ...] = (
    datetime.datetime.fromisoformat,
    *(lambda text, form=form: datetime.datetime.strptime(text, form) for form in _DATE_FORMATS),
    email.utils.parsedate_to_datetime,
)
_UNPUBLISHED = {
    "true": re.compile(
        "draft|unlisted|hidden|headless|noindex|search: exclude|search_exclude|excludesearch|exclude_from_search"
        "|nosearch|eleventyexcludefromcollections"
    ),
    "false": re.compile("published|publish|searchable|search|pagefind|in_search_index|permalink|_?build: render"),
    "never": re.compile("_?build: (?:render|list)"),  # of Hugo
}
_NO_PAGE = re.compile(r"(?:^|/)((?i:_drafts/|_(?:sidebar|navbar|footer)\.md$)|SUMMARY\.md$)")
"""Drafts of Jekyll; menus of Docsify, of wikis, of mdBook and GitBook."""
_MENU = re.compile(r"(?:\s*(?:#.*|(?:[-*+][ \t]+)?\[.*\]\(.*\)|[-_*]{3,})[ \t]*(?:\n|\Z))+\s*")
_HOME = re.compile("(?:hero|features|heroText|tagline|actionText)(?:: |$)")
_HOME_TEXT = re.compile("(?i)(?:^|: |hero|action|link)(?:name|text|tagline|title|details|description|alt)$")
_COMMA = re.compile(r"\s*,\s*")


@dataclass(frozen=True, slots=True)
class Metadata:
    """Frontmatter as retrieval reads it; absent fields are `""`, `()` or None. Seed 000, P9.

    `description` falls back to `summary`, `category` to `type`. `tags` are lower-case without `#`, hierarchy kept.
    `modified` is in seconds since the epoch, from the first of `modified`, `date` and `created` that holds a date.
    """

    title: str = ""
    description: str = ""
    keywords: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    authors: tuple[str, ...] = ()
    category: str = ""
    related: tuple[str, ...] = ()
    modified: float | None = None


def read_metadata(frontmatter: Mapping[str, Any]) -> Metadata:
    """The fields of a frontmatter mapping, whatever the case of their names; never raises."""
    if not frontmatter:
        return Metadata()
    taxonomies = frontmatter.get("taxonomies")  # of Zola
    frontmatter = {key.lower(): value for key, value in frontmatter.items()} | dict(frontmatter)
    frontmatter = {**(taxonomies if isinstance(taxonomies, Mapping) else {}), **frontmatter}
    dates = (timestamp(frontmatter.get(key)) for key in ("modified", "date", "created"))
    return Metadata(
        title=_first_text(frontmatter, "title"),
        description=_first_text(frontmatter, "description", "summary"),
        keywords=_entries(frontmatter, "keywords", "keyword"),
        tags=normalise_tags(_entries(frontmatter, "tags", "tag", separator=re.compile(r"\s*,\s*|\s+(?=#)"))),
        aliases=aliases_of(frontmatter),
        authors=_entries(frontmatter, "author", "authors", separator=None),
        category=_first_text(frontmatter, "category", "type", "categories"),
        related=_entries({"related": _related(frontmatter.get("related"))}, "related"),
        modified=next((date for date in dates if date is not None), None),
    )


def aliases_of(frontmatter: Mapping[str, Any]) -> tuple[str, ...]:
    """Other names of a page."""
    return _entries(frontmatter, "aliases", "alias")


def unpublished(frontmatter: Mapping[str, Any], path: str = "", text: str = "") -> str:
    """Why a page is not published, listed or searched: a field such as `draft: true`, drafts of Jekyll, menus."""
    if (found := _NO_PAGE.search(path)) and (found[1] != "SUMMARY.md" or _MENU.fullmatch(text)):
        return found[1]
    texts = ((name.lower(), str(value).lower()) for name, value in _flat(frontmatter))
    return next((f"{n}: {text}" for n, text in texts if text in _UNPUBLISHED and _UNPUBLISHED[text].fullmatch(n)), "")


def home_texts(frontmatter: Mapping[str, Any]) -> list[str]:
    """What a home page shows of its front matter: hero and features of VitePress, VuePress and Starlight."""
    texts = ((name, value) for name, value in _flat(frontmatter) if isinstance(value, str) and _HOME.match(name))
    return [" ".join(value.split()) for name, value in texts if value.strip() and _HOME_TEXT.search(name)]


def _flat(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """The values in a mapping and in what it holds, each with its path: `search: exclude`."""
    if name:
        yield name, value
    for key, inner in value.items() if isinstance(value, Mapping) else ():
        yield from _flat(inner, f"{name}: {key}" if name else str(key))
    for inner in value if isinstance(value, list) else ():
        yield from _flat(inner, name)


def normalise_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Lower-case, without `#` and outer or doubled slashes, each once, in the order of first occurrence."""
    cleaned = ("/".join(part for part in tag.lower().lstrip("#").split("/") if part.strip()).strip() for tag in tags)
    return tuple(dict.fromkeys(tag for tag in cleaned if tag))


def timestamp(value: Any) -> float | None:
    """Seconds since the epoch of a date in any usual form, in UTC when it has no time zone; None for other values.

    Reads date, datetime, ISO 8601, RFC 2822, `2026/01/05`, `5 January 2026`, `January 5, 2026`, `05.01.2026`,
    `2026-01`, the numbers 2026 (a year), 20260105, and seconds or milliseconds since the epoch.
    """
    moment = _moment(value)
    return (moment if moment.tzinfo else moment.replace(tzinfo=datetime.UTC)).timestamp() if moment else None


Date = Annotated[str, Constraint(lambda text: timestamp(text) is not None, "must be a date such as 2026-01-31")]
"""A parameter that `timestamp` reads."""


def _moment(value: Any) -> datetime.datetime | None:
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, datetime.datetime):
        return value
    if isinstance(value, datetime.date):
        return datetime.datetime(value.year, value.month, value.day)
    if isinstance(value, str):
        return _moment_of_text(value.strip())
    if isinstance(value, int | float) and not isinstance(value, bool):
        return _moment_of_number(value)
    return None


def _moment_of_number(value: int | float) -> datetime.datetime | None:
    try:
        if 1000 <= value <= 9999 and value == int(value):
            return datetime.datetime(int(value), 1, 1)
        if 10000101 <= value <= 99991231 and value == int(value):
            return datetime.datetime.strptime(str(int(value)), "%Y%m%d")
        return datetime.datetime.fromtimestamp(value / 1000 if abs(value) > 1e11 else value, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return None


def _moment_of_text(value: str) -> datetime.datetime | None:
    if value.isdecimal() and value.isascii() and len(value) <= 13:
        return _moment_of_number(int(value))
    for read in _DATE_READERS:
        with contextlib.suppress(ValueError, TypeError, IndexError, OverflowError):  # perhaps another form
            return read(value)
    return None


def _scalars(value: Any, depth: int = 0) -> Iterator[str]:
    """The scalars in a value as text; lists are flattened (`[[a]]` is a list in a list), a mapping gives its `name`."""
    if isinstance(value, list | tuple) and depth < 5:
        for entry in value:
            yield from _scalars(entry, depth + 1)
    elif isinstance(value, Mapping) and depth < 5:
        yield from _scalars(value.get("name", value.get("title")), depth + 1)
    elif isinstance(value, str | int | float | datetime.date):
        text = " ".join(str(value).split())
        if text:
            yield text


def _related(value: Any) -> Any:
    """The value of `related`, or its `links` when it has a title: `{title: Next steps, links: [...]}`."""
    return value["links"] if isinstance(value, Mapping) and "links" in value else value


def _first_text(frontmatter: Mapping[str, Any], *keys: str) -> str:
    return next((text for key in keys for text in _scalars(frontmatter.get(key))), "")


def _entries(frontmatter: Mapping[str, Any], *keys: str, separator: re.Pattern[str] | None = _COMMA) -> tuple[str, ...]:
    """The entries under the first key that holds any; a lone string is split at `separator`."""
    for key in keys:
        value = frontmatter.get(key)
        entries: Iterable[str] = _scalars(value)
        if isinstance(value, str) and separator is not None:
            entries = separator.split(" ".join(value.split()))
        if unique := tuple(dict.fromkeys(entry for entry in entries if entry)):
            return unique
    return ()
