"""Golden files: queries and the pages that must answer them, and the ranks of these pages, kept in a small baseline."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ragbench.base.types import BenchmarkError, BoundaryError, counted, why_unreadable
from ragbench.benchmark import judgments, lines
from ragbench.benchmark.names import address
from ragbench.benchmark.query_filter import QueryFilter, read_filter
from ragbench.boundary.json import read_json_file
from ragbench.extras.export import moves


@dataclass(frozen=True)
class Case:
    """A query, and the ids, paths or addresses of the pages that answer it; `filter` is sent with it."""

    query: str
    expected: tuple[str, ...]
    filter: QueryFilter = field(default_factory=dict)

    def ranks(
        self, hits: Sequence[str], depth: int, names_of: Callable[[str], Sequence[str]] = lambda page: (page,)
    ) -> dict[str, int | None]:
        """The ranks of the expected pages among the first `depth` different hits; `names_of` has all names of one."""
        listed = list(enumerate(dict.fromkeys(hits), start=1))[:depth]
        return {
            page: next((rank for rank, hit in listed if any(is_same(name, hit) for name in names_of(page))), None)
            for page in self.expected
        }


def is_same(one: str, other: str) -> bool:
    """Whether two names are of one page: equal, or paths of which one is the end of the other.

    Host, extension, `index` and capitals do not count, and an anchor does only where both have one. The name of a file
    without a folder is the end of no path.
    """
    if one == other:
        return True
    (path, anchor), (other_path, other_anchor) = _parts(one), _parts(other)
    if not path or not other_path or (anchor and other_anchor and anchor != other_anchor):
        return False
    short, long = sorted((path, other_path), key=len)
    return short == long or ("/" in short and long.endswith(f"/{short}"))


def _parts(name: str) -> tuple[str, str]:
    """The path of a name in normal form, with the parameters of an address, and its anchor."""
    plain, _, anchor = name.partition("#")
    url = urlsplit(plain) if "://" in plain else None
    return (address(plain) if url is None else f"{address(url.path)}?{url.query}".rstrip("?")), anchor


def read_cases(path: Path) -> tuple[list[Case], list[str]]:
    """The cases of a file in JSON, JSON Lines, YAML or CSV, and those without a query or page, which take no part.

    They are cases of something else, or `ragbench data repair` left them when their page was gone. Raises
    BenchmarkError with the place of a wrong one, and for a file without a case that takes part.
    """
    cases: dict[str, Case] = {}
    without: list[str] = []
    first = ""
    for location, row in lines.read_rows_of_cases(path):
        query = next((row[name] for name in lines.QUERY if isinstance(row.get(name), str) and row[name].strip()), None)
        expected = next((row[name] for name in lines.EXPECTED if row.get(name)), None)
        pages = tuple(dict.fromkeys(name for name, grade in judgments.graded_names(expected, location) if grade > 0))
        if query is None or not pages:
            without.append(query or location)
            first = first or f": {location} has the fields {', '.join(row)}, and"
            continue
        if query in cases:
            raise BenchmarkError(f"{location} has the query '{query[:60]}' again: keep one case of each query")
        cases[query] = Case(query, pages, read_filter(row.get("filter"), location))
    if not cases:
        raise BenchmarkError(
            f"{path} has no case with a query and an expected page{first or ':'} a case needs one of "
            f"{', '.join(lines.QUERY)} and one of {', '.join(lines.EXPECTED)}"
        )
    return list(cases.values()), without


@dataclass(frozen=True)
class Baseline:
    """The ranks of a search by query, and by query the names of its hits outside the filter, where it has any."""

    ranks: moves.Answers
    leaks: Mapping[str, Sequence[str]] = field(default_factory=dict)


def write_baseline(path: Path, surfaces: Mapping[str, Baseline], depth: int) -> None:
    """Write the ranks of every surface, a line for each query. Raises BenchmarkError where that cannot be."""
    tables = ",\n".join(
        f"  {_json(name)}: [\n"
        + ",\n".join(f"   {_json(_row(query, ranks, of.leaks))}" for query, ranks in of.ranks.items())
        + "\n  ]"
        for name, of in surfaces.items()
    )
    lines.write_atomically(path, f'{{\n "depth": {depth},\n "surfaces": {{\n{tables}\n }}\n}}\n')


def _row(query: str, ranks: Any, leaks: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    return {"query": query, "ranks": ranks, **({"leaks": leaks[query]} if query in leaks else {})}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def read_baseline(
    path: Path, cases: Sequence[Case], without: Collection[str], names: Iterable[str], depth: int
) -> dict[str, Baseline]:
    """The baseline by surface, without the queries that take no part. BenchmarkError where one of the others differs.

    It must have these surfaces, and enough hits.
    """
    wanted = {case.query: set(case.expected) for case in cases}
    again = "write a new baseline with --write-baseline"
    try:
        value = read_json_file(path)
        surfaces = {
            name: Baseline(
                {row["query"]: dict(row["ranks"]) for row in rows if row["query"] not in without},
                {row["query"]: list(row["leaks"]) for row in rows if row.get("leaks")},
            )
            for name, rows in value["surfaces"].items()
        }
        ranks = [rank for of in surfaces.values() for of_query in of.ranks.values() for rank in of_query.values()]
        if not all(rank is None or type(rank) is int for rank in (value["depth"], *ranks)):
            raise TypeError
    except OSError as error:
        raise BenchmarkError(f"the baseline {path} cannot be read ({why_unreadable(error)}): {again}") from None
    except BoundaryError as error:
        raise BenchmarkError(f"{path} cannot be read ({error}): {again}") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        raise BenchmarkError(f"{path} is not a baseline of ragbench gate --golden: {again}") from None
    for name in names:
        if name not in surfaces:
            raise BenchmarkError(f"{path} has no ranks of '{name}', only of {', '.join(surfaces)}: {again}")
        kept = surfaces[name].ranks
        changed = [q for q in {**wanted, **kept} if q not in kept or wanted.get(q) != set(kept[q])]
        if changed:
            raise BenchmarkError(
                f"{path} has other labels than the golden file for {counted(len(changed), 'query')}, such as "
                f"'{changed[0][:60]}', so nothing can be compared: {again}"
            )
    if value["depth"] is None or value["depth"] < depth:
        raise BenchmarkError(f"{path} has {value['depth']} hits of a query and the measures need {depth}: {again}")
    return surfaces
