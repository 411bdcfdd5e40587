"""The text of the page around figures and tables: headline, answers, environment. No HTML is made here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbench.config.overrides import changes, section_of
from ragbench.report import evidence
from ragbench.report.cells import MARKS, Cell, Table, join_names
from ragbench.report.figures import main_effects
from ragbench.report.methods import start_time

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

_NAMED = 5  # arms or factors that a title names one by one


@dataclass(frozen=True)
class _Answer:
    """A verdict and the names of the proposals that have it."""

    verdict: str
    names: tuple[str, ...]


def headline(results: Measurements) -> dict[str, str]:
    """Title and the facts under it."""
    record = results.record
    benchmark = record["benchmark"]
    arms = f"{len(results.arms)} configurations" if len(results.arms) > 1 else "one configuration"
    return {
        "name": str(record["name"]),
        "title": _question(results),
        "lede": f"{arms[0].upper()}{arms[1:]} on the benchmark '{benchmark['name']}': {benchmark['documents']} "
        f"documents, {record['topics']} topics of the split '{record['split']}'"
        f"{f' ({results.topics_origin})' if results.topics_origin else ''}.",
        "started": start_time(results),
    }


def _question(results: Measurements) -> str:
    """The title: the question of the run in words."""
    names = results.arms
    if evidence.design(results):
        factors = [str(name) for name in main_effects(results)["factor"]]
        return (
            f"Which of {join_names(sorted(factors, key=_natural))} pay for themselves?"
            if len(factors) <= _NAMED
            else f"Which of {len(factors)} proposals pay for themselves?"
        )
    if len(names) == 1:
        return f"'{names[0]}' measured on {results.record['benchmark']['name']}"
    return f"{join_names(names)} compared" if len(names) <= _NAMED else f"{len(names)} configurations compared"


def _natural(name: str) -> tuple[str, int]:
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0)


def answers(effects: pd.DataFrame) -> list[_Answer]:
    """The verdicts with their proposals, ordered from acceptance to rejection."""
    by_verdict = {verdict: effects[effects["verdict"] == verdict]["factor"] for verdict in MARKS}
    return [_Answer(verdict, tuple(map(str, names))) for verdict, names in by_verdict.items()]


def recipes(results: Measurements) -> Table:
    """How every arm was configured, what its pipeline does, and what differs from the first, also in the index."""
    words = {arm: _shareable(results.record["overrides"][arm]) for arm in results.arms}
    base = results.arms[0]
    rows = []
    for arm in results.arms:
        changed = changes(words[base], words[arm])
        sentences = [evidence.pipeline(results, arm), f"Differs from {base} in: {changed}." if changed else ""]
        code = Cell(" ".join(words[arm]) or "(defaults)", "", "code")
        rows.append((Cell(arm), code, Cell(" ".join(filter(None, sentences)), "", "prose")))
    return Table("Configurations", (("Configuration", ""), ("ragbench run …", ""), ("Pipeline", "")), tuple(rows))


def environment(results: Measurements) -> list[tuple[str, str]]:
    """What the numbers depend on in addition to their inputs, as (name, value)."""
    record, described = results.record, results.record["environment"]
    git = described["git"]
    models = sorted({(name, digest) for each in record["models"].values() for name, digest in each.items()})
    return [
        ("Run", f"{record['name']}, {start_time(results)}, {record['seconds']:.0f} s"),
        ("Benchmark", f"{record['benchmark']['name']}, digest {record['benchmark']['digest']}"),
        (
            "ragbench",
            described["ragbench"] + (f", commit {git['commit']}{' (changed)' if git['dirty'] else ''}" if git else ""),
        ),
        ("Python", described["python"]),
        ("Packages", ", ".join(f"{name} {version}" for name, version in sorted(described["packages"].items()))),
        *[("Model", f"{name}, SHA-256 {digest}") for name, digest in models],
        ("Processor", f"{described['processor']}, {described['cpus']} cores"),
        (
            "Memory",
            f"{described['memory_bytes'] / 2**30:.0f} GiB, peak use {record['peak_memory_bytes'] / 2**20:.0f} MiB",
        ),
        ("System", described["platform"]),
        ("Hash seed", str(described["hash_seed"])),
    ]


def _shareable(overrides: Iterable[str]) -> list[str]:
    """Overrides without those that name folders of one machine."""
    return [each for each in overrides if section_of(each) not in ("paths", "tracking")]
