"""How far a preliminary verdict (`data.sample`) is from that on the whole collection, for every preset and collection.

    python research/sample_bias.py out.csv --arm baseline="" --arm recommended="exp=recommended" \
        builtin="data=builtin" mine="data=vault data.corpus=notes data.queries=queries.csv" -- paths.results=work

The first arm is the baseline. Each collection is measured whole, then on parts of it (`--shares`, of all documents),
with all its queries, without latency. A row of the table: collection, share, documents, arm, the values of the
baseline, the effects and their 95% CIs on the whole and on the part. Collections that the table has are not measured
again.
"""

from __future__ import annotations

import argparse
import csv
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from ragbench.workbench import Experiment, Results

_QUALITY_ONLY = ("latency.enabled=false", "tracking.enabled=false", "split=all")


@dataclass(frozen=True)
class Row:
    """An arm's effect on the whole collection and on a part of it."""

    collection: str
    share: float
    documents: int
    of: int
    queries: int
    arm: str
    whole_baseline: float
    part_baseline: float
    whole: float
    whole_low: float
    whole_high: float
    part: float
    part_low: float
    part_high: float


_KINDS: dict[str, Callable[[str], Any]] = {
    field.name: {"str": str, "int": int, "float": float}[str(field.type)] for field in fields(Row)
}


def main() -> None:
    """Measure, and append to the table after every collection."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", type=Path)
    parser.add_argument("collections", nargs="*", help='NAME="OVERRIDES"; words after -- are for all')
    parser.add_argument("--arm", action="append", default=[], help='NAME="OVERRIDES"')
    parser.add_argument("--shares", default="0.1,0.25,0.5")
    parser.add_argument("--show", action="store_true", help="print what the table says, and measure nothing")
    arguments = parser.parse_intermixed_args()
    if arguments.show:
        print(summary(read(arguments.table)))
        return
    shared = [word for word in arguments.collections if word.partition("=")[0].partition(".")[0] == "paths"]
    shares = [float(share) for share in arguments.shares.split(",")]
    done = {row.collection for row in read(arguments.table)}
    for name, overrides in _named(word for word in arguments.collections if word not in shared):
        if name not in done:
            append(arguments.table, list(measure(name, [*overrides, *shared], dict(_named(arguments.arm)), shares)))


def measure(
    name: str, data: Sequence[str], arms: Mapping[str, Sequence[str]], shares: Sequence[float]
) -> Iterator[Row]:
    """The rows of one collection."""
    whole = Experiment.arms(arms, None, *data, *_QUALITY_ONLY, "data.sample=off")
    results, size = whole.run(), len(whole.benchmark.documents)
    sizes = set[int]()
    for share in shares:
        sample = f"data.sample={max(1, round(share * size))}"
        part = Experiment.arms(arms, whole.benchmark, *data, *_QUALITY_ONLY, sample).preliminary()
        if part is not None and (count := int(part.record["benchmark"]["documents"])) not in sizes:
            sizes.add(count)  # a small share gives the judged documents alone
            yield from _rows(name, share, results, part)


def _rows(name: str, share: float, whole: Results, part: Results) -> Iterator[Row]:
    sizes = part.record["benchmark"]
    on_part = {row["arm"]: row for row in part.verdicts.rename(columns={"factor": "arm"}).to_dict("records")}
    for row in whole.verdicts.rename(columns={"factor": "arm"}).to_dict("records"):
        other = on_part[row["arm"]]
        yield Row(
            *(name, share, sizes["documents"], sizes["drawn_from"], int(row["n"]), str(row["arm"])),
            *(row["baseline"], other["baseline"], row["effect"], row["ci_low"], row["ci_high"]),
            *(other["effect"], other["ci_low"], other["ci_high"]),
        )


def _named(words: Iterator[str] | Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    return ((name, shlex.split(overrides)) for name, _, overrides in (word.partition("=") for word in words))


def read(table: Path) -> list[Row]:
    """The rows that a table has."""
    if not table.is_file():
        return []
    with table.open(newline="", encoding="utf-8") as file:
        return [Row(**{key: _KINDS[key](value) for key, value in row.items()}) for row in csv.DictReader(file)]


def append(table: Path, rows: Sequence[Row]) -> None:
    """Add rows to a table."""
    new = not table.is_file()
    with table.open("a", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(_KINDS), lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def summary(rows: Sequence[Row]) -> str:
    """By arm and share: agreement of significant signs, and the mean and the largest difference of effects."""
    lines = [
        "| share | arm | rows | significant on the whole | same sign | opposite, significant on both "
        "| mean difference | largest |"
    ]
    lines.append("|---|---|" + "---:|" * 6)
    for share in sorted({row.share for row in rows}):
        for arm in [*dict.fromkeys(row.arm for row in rows), "all"]:
            chosen = [row for row in rows if row.share == share and arm in (row.arm, "all")]
            significant = [row for row in chosen if row.whole_low > 0 or row.whole_high < 0]
            same = [row for row in significant if row.part * row.whole > 0]
            wrong = [row for row in significant if (row.part_low > 0 > row.whole) or (row.part_high < 0 < row.whole)]
            gaps = [row.part - row.whole for row in chosen]
            lines.append(
                f"| {share:g} | {arm} | {len(chosen)} | {len(significant)} | {len(same)} | {len(wrong)} "
                f"| {sum(gaps) / max(1, len(gaps)):+.3f} | {max(gaps, key=abs, default=0):+.3f} |"
            )
    return "\n".join(lines)


if __name__ == "__main__":
    main()
