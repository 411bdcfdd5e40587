"""The reference tables: presets by split and the verdicts of ablations, with where they were measured, as markdown."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ragbench.console import markdown
from ragbench.evaluation.measures import ANSWERED, PRIMARY

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.experiment.results import Results

_SHOWN = ("nDCG@5", PRIMARY, "RR", "R@10", *ANSWERED, "Judged@10")
_FORMATS = {"p50 ms": ".1f", "p95 ms": ".1f", "effect": "+.3f", "latency_ms": "+.1f", "p_holm": ".3f"}


def document(presets: Results, ablations: Mapping[str, pd.DataFrame], commands: Sequence[str]) -> str:
    """The whole file; `ablations` holds a verdict table by its title."""
    record = presets.record
    environment = record["environment"]
    git = environment["git"] or {}
    parts = [
        "# Reference results",
        "Generated, not written by hand. The commands:\n\n```\n" + "\n".join(commands) + "\n```",
        f"Benchmark {record['benchmark']['name']} ({record['benchmark']['documents']} documents, "
        f"{record['topics']} topics, digest {record['benchmark']['digest'][:12]}), commit {str(git.get('commit'))[:12]}"
        f"{' with changes' if git.get('dirty') else ''}, {environment['processor']}, {environment['cpus']} processors, "
        f"Python {environment['python']}, {record['latency']['threads']} thread per query.",
        "## Presets by split\n\n" + markdown(_presets(presets), _FORMATS),
        *(
            f"## {PRIMARY} by query type (topics), {split} split\n\n{markdown(_by_type(presets, split), _FORMATS)}"
            for split in sorted(set(presets.per_query["split"]))
        ),
        *(f"## {title}\n\n{markdown(_verdicts(frame), _FORMATS)}" for title, frame in ablations.items()),
        "Latency is the service time of one query without caches, in milliseconds. `Silence` is the share of topics "
        "without an answer that were answered with nothing, `FalseSilence` that of topics with one, `Hits@10` the "
        "documents among the first ten of a query. A verdict weighs the effect (leaving out: the proposal's "
        "effect with all others on; adding: alone) with Holm's correction, the latency budget and unjudged hits.",
    ]
    return "\n\n".join(parts) + "\n"


def with_effects(page: str, leave_one_out: pd.DataFrame, add_one: pd.DataFrame) -> str:
    """A page of the documentation with the measured effects below its marks `<!-- effect: p6 -->`."""

    def told(mark: re.Match[str]) -> str:
        sentences = [
            f"{where} {_told(frame[frame['factor'] == mark[1]].iloc[0])}"
            for where, frame in (("With everything else on:", leave_one_out), ("Alone on the baseline:", add_one))
            if mark[1] in set(frame["factor"])
        ]
        return "\n".join([f"<!-- effect: {mark[1]} -->", *([" ".join(sentences)] if sentences else []), ""])

    return re.sub(r"<!-- effect: (\w+) -->\n(?:[^\n]+\n)*", told, page)


def _told(effect: pd.Series) -> str:
    measured = f"{PRIMARY} {effect['effect']:+.3f} [{effect['ci_low']:+.3f}, {effect['ci_high']:+.3f}]"
    cost = "" if np.isnan(effect["latency_ms"]) else f" {effect['latency_ms']:+.1f} ms on p95,"
    return f"{measured},{cost} **{effect['verdict']}**."


def _presets(results: Results) -> pd.DataFrame:
    frame = results.summary(("split",))
    frame = frame[["arm", "split", "n", *(name for name in _SHOWN if name in frame.columns)]].copy()
    if len(results.latency):
        total = results.latency[results.latency["stage"] == "total"].set_index("arm")
        for column in ("p50", "p95"):
            frame[f"{column} ms"] = frame["arm"].map(total[column])
    return frame


def _by_type(results: Results, split: str) -> pd.DataFrame:
    frame = results.per_query
    frame = frame[(frame["level"] == "document") & (frame["measure"] == PRIMARY) & (frame["split"] == split)]
    counts = frame.groupby("type", observed=True)["qid"].nunique()
    table = frame.pivot_table(index="arm", columns="type", values="value", observed=True).loc[results.arms]
    table.columns = [f"{name} ({counts[name]})" for name in table.columns]
    return table.reset_index()


def _verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    names = [
        "factor",
        "effect",
        "ci_low",
        "ci_high",
        "p_holm",
        "wins",
        "ties",
        "losses",
        "mde",
        "latency_ms",
        "verdict",
    ]
    return frame[names]
