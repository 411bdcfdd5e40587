"""The reference tables: presets by split and the verdicts of ablations, with where they were measured, as markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragbench.console import markdown
from ragbench.evaluation.measures import PRIMARY, SILENCE

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.experiment.results import Results

_SHOWN = ("nDCG@5", PRIMARY, "RR", "R@10", SILENCE, "Judged@10")


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
        "## Presets by split\n\n" + markdown(_rounded(presets)),
        f"## {PRIMARY} by query type, all topics\n\n" + markdown(_by_type(presets)),
        *(f"## {title}\n\n{markdown(_verdicts(frame))}" for title, frame in ablations.items()),
        "Latency is the service time of one query without caches, in milliseconds. `Silence` is the share of topics "
        "without an answer that were answered with nothing. A verdict weighs the effect (leaving out: the proposal's "
        "effect with all others on; adding: alone) with Holm's correction, the latency budget and Judged@10.",
    ]
    return "\n\n".join(parts) + "\n"


def _rounded(results: Results) -> pd.DataFrame:
    frame = results.summary(("split",))
    frame = frame[["arm", "split", "n", *(name for name in _SHOWN if name in frame.columns)]].copy()
    if len(results.latency):
        total = results.latency[results.latency["stage"] == "total"].set_index("arm")
        for column in ("p50", "p95"):
            frame[f"{column} ms"] = frame["arm"].map(total[column]).round(1)
    return frame


def _by_type(results: Results) -> pd.DataFrame:
    frame = results.per_query
    frame = frame[(frame["level"] == "document") & (frame["measure"] == PRIMARY)]
    table = frame.pivot_table(index="type", columns="arm", values="value", observed=True)[results.arms]
    table.insert(0, "n", frame.groupby("type", observed=True)["qid"].nunique())
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
