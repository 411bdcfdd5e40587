"""A log of searches, with the column names of common tools: who asked what, what was shown, what was opened."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from ragbench.base.types import BenchmarkError, shown
from ragbench.benchmark import lines, quotes
from ragbench.boundary.json import read_json

_COLUMNS: Mapping[str, tuple[str, ...]] = {
    "query": ("query", "text", "q", "search", "search term", "search_term", "keyword", "keywords", "top queries"),
    "time": ("time", "timestamp", "date", "datetime", "@timestamp"),
    "session": ("session", "session_id", "user", "user_id", "visitor"),
    "shown": ("shown", "results", "documents", "impressions_list"),
    "clicked": ("clicked", "opened", "click", "clicked_document"),
    "count": ("count", "frequency", "searches", "impressions", "total"),
}

_TYPING_S = 10.0  # a query that the next one of its session continues within this time was not finished


@dataclass
class LoggedSearch:
    """One search, or `count` equal ones: the query as typed, the documents shown, in order, and those opened, by name.

    `time`: seconds since 1970, None where the log has none. `session`: empty where the log does not say who asked.
    """

    query: str
    session: str = ""
    time: float | None = None
    shown: tuple[str, ...] = ()
    clicked: set[str] = field(default_factory=set)
    count: int = 1


@dataclass(frozen=True)
class Log:
    """The searches of a log in order of time, and how many rows were skipped, by reason."""

    searches: tuple[LoggedSearch, ...]
    skipped: Mapping[str, int]

    @property
    def has_clicks(self) -> bool:
        """Whether the log says what was opened."""
        return any(search.clicked for search in self.searches)


def read(path: Path) -> Log:
    """Read a CSV, TSV, JSONL or NDJSON file with a column for the query; `_COLUMNS` lists the names.

    A row without a query says what was opened after the latest search of its session. Rows with personal data are
    omitted, and so are lines that are not JSON and queries that the next one of the session continues. Raises
    BenchmarkError with file and line.
    """
    broken: list[int] = []  # a service on a full disk, or killed, leaves half a line
    rows = [_row(row, f"{path}:{number}") for number, row in lines.read_rows(path, broken)]
    if not any(row["query"] for row in rows):
        raise BenchmarkError(f"{path} holds no query: name its column {', '.join(_COLUMNS['query'][:4])} or the like")
    if all(row["time"] is not None for row in rows):
        rows.sort(key=lambda row: row["time"])
    skipped: Counter[str] = Counter({"not JSON": len(broken)})
    searches = list(_searches(rows, skipped))
    unfinished = _unfinished_searches(searches)
    finished = [search for search in searches if id(search) not in unfinished]
    skipped["unfinished"] += len(searches) - len(finished)
    return Log(tuple(finished), {reason: count for reason, count in skipped.items() if count})


def normal_form(query: str) -> str:
    """A query in normal form: without differences in case, width, white space and closing marks."""
    return " ".join(unicodedata.normalize("NFKC", query).casefold().split()).strip(" .,;:!?\"'")


def _searches(rows: Iterable[Mapping[str, Any]], skipped: Counter[str]) -> Iterator[LoggedSearch]:
    latest: dict[str, LoggedSearch] = {}
    for row in rows:
        if not row["query"]:
            previous = latest.get(row["session"]) if row["session"] else None
            if previous is None:
                skipped["opened without a search"] += 1
            else:
                previous.clicked |= row["clicked"]
        elif kind := personal(row["query"]):
            skipped[f"with {kind}"] += row["count"]
            latest.pop(row["session"], None)
        elif not normal_form(row["query"]):
            skipped["without a word"] += row["count"]
        else:
            latest[row["session"]] = LoggedSearch(**row)
            yield latest[row["session"]]


def _unfinished_searches(searches: Iterable[LoggedSearch]) -> set[int]:
    """The `id` of every search whose query the next one of its session continues: a search as you type logs these."""
    sessions: dict[str, list[LoggedSearch]] = defaultdict(list)
    for search in searches:
        if search.session:
            sessions[search.session].append(search)
    return {
        id(one)
        for searches_of_session in sessions.values()
        for one, following in pairwise(searches_of_session)
        if not one.clicked and _continues(one, following)
    }


def _continues(one: LoggedSearch, following: LoggedSearch) -> bool:
    if one.time is not None and following.time is not None and following.time - one.time > _TYPING_S:
        return False
    first, second = normal_form(one.query), normal_form(following.query)
    return second.startswith(first) and second != first


def _row(row: Mapping[str, Any], location: str) -> dict[str, Any]:
    values = {key: value for key, value in row.items() if value not in (None, "")}
    cells = {name: next((values[name] for name in names if name in values), None) for name, names in _COLUMNS.items()}
    query = cells["query"] or ""
    if not isinstance(query, str):
        raise BenchmarkError(f"{location}: the query must be a text, got {shown(query)}")
    clicked = set(_names(cells["clicked"], f"{location}: column 'clicked'"))
    if not query.strip() and not clicked:
        raise BenchmarkError(f"{location} has neither a query nor what was opened: remove the row or name its columns")
    return {
        "query": " ".join(query.split()),
        "session": str(cells["session"] or "").strip(),
        "time": _time(cells["time"], location),
        "shown": tuple(dict.fromkeys(_names(cells["shown"], f"{location}: column 'shown'"))),
        "clicked": clicked,
        "count": _count(cells["count"], location),
    }


def _names(cell: Any, location: str) -> list[str]:
    """Names of documents: a list, a list in JSON, or a text with `;` between them."""
    if isinstance(cell, str) and cell.lstrip().startswith("["):
        try:
            cell = read_json(cell)
        except ValueError:
            raise BenchmarkError(f"{location} is not a list in JSON: write names with ; between them") from None
    listed = quotes.entries(cell) if isinstance(cell, str) else cell or []
    if not isinstance(listed, list) or not all(isinstance(item, str) for item in listed):
        raise BenchmarkError(f"{location} must be a list of names, or a text with ; between them")
    return [item.strip() for item in listed if item.strip()]


def _time(cell: Any, location: str) -> float | None:
    if cell is None:
        return None
    try:
        seconds = float(cell)
        return seconds / 1000 if seconds > 1e11 else seconds  # milliseconds
    except (TypeError, ValueError):
        pass
    try:
        moment = datetime.fromisoformat(str(cell).strip())
    except ValueError:
        raise BenchmarkError(
            f"{location}: the time '{str(cell)[:40]}' cannot be read: write 2026-01-31T12:00:00, or seconds since 1970"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _count(cell: Any, location: str) -> int:
    try:
        count = 1 if cell is None else int(str(cell).replace(",", ""))
    except ValueError:
        count = 0
    if count < 1:
        raise BenchmarkError(f"{location}: the count must be a whole number of at least 1, got '{str(cell)[:40]}'")
    return count


_FORMS = {
    "a mail address": re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]*\w"),
    "a token": re.compile(
        r"\b(?:sk|pk|rk|ghp|gho|ghs|github_pat|glpat|hf|xox[abpr])[-_][\w-]{12,}|\bA(?:KI|SI)A[0-9A-Z]{12,}"
        r"|\beyJ[\w-]{8,}\.[\w-]+|\bbearer\s+[\w.~+/-]{12,}"
        r"|\b(?:password|passwd|pwd|secret|api[-_ ]?key|token)\s*[=:]\s*\S{4,}"
        r"|-----BEGIN [A-Z ]*PRIVATE KEY|://[^\s/:@]+:[^\s/@]+@",
        re.IGNORECASE,
    ),
    "an IP address": re.compile(r"(?<![\d.])(?!127\.|0\.|10\.|192\.168\.)(?:\d{1,3}\.){3}\d{1,3}(?![\d.])"),
    "a long number": re.compile(r"(?<![\w.])\+?(?:\d[ ()-]{0,2}){10,}(?![\w:.])"),  # telephone, account, card
}

_RUN = re.compile(r"[A-Za-z0-9+/_-]{24,}")


def personal(text: str) -> str:
    """The kind of personal data in a text (`a mail address`, `a token` ...), empty when none is recognised."""
    for name, form in _FORMS.items():
        if form.search(text):
            return name
    return "a token" if any(_random(run) for run in _RUN.findall(text)) else ""


def _random(run: str) -> bool:
    """Whether a long run of characters looks random: digits between its letters in many places."""
    changes = sum(one.isdigit() != second.isdigit() for one, second in pairwise(run))
    return changes >= len(run) / 6
