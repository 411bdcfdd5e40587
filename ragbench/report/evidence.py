"""What the report says, read from the files of a run: comparisons, effects, losses, topics, top hits.

Every function takes `Results` and answers with a table; one that a run did not write (no section judgments, a run of an
older version) is an empty table with the same columns, and the report then says what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ragbench.comparison.by_type import types, warning
from ragbench.comparison.statistics import bootstrap_intervals, compare_all, holm
from ragbench.comparison.verdict import LatencyCost, judge, latency_budget_ms, undervalues_the_worse
from ragbench.errors import ResultsError
from ragbench.evaluation import diagnosis
from ragbench.evaluation.measures import PRIMARY, UNJUDGED
from ragbench.experiment.results import DIAGNOSIS, TOP, TOPICS
from ragbench.experiment.top_hits import COLUMNS as TOP_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.experiment.results import Results

JUDGED = "Judged@10"
TOPIC_COLUMNS = ("qid", "split", "type", "text", "need")
_RENAMED = ("mean_candidate", "mean_baseline", "p_value")
EFFECT_COLUMNS = (
    *("kind", "factor", "other", "effect", "ci_low", "ci_high", "p", "p_holm", "n", "wins", "ties", "losses", "mde"),
    *("standard_error", "aliases", "latency_ms", "budget_ms", "verdict", "reason"),
)


def rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as mappings from column to value."""
    names = [str(name) for name in frame.columns]
    # Column by column, which takes a third of the time of `to_dict(orient="records")`.
    columns = [frame[name].tolist() for name in frame.columns]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def config(results: Results, arm: str) -> Mapping[str, Any]:
    """The configuration of an arm."""
    import yaml

    path = results.arm_path(arm) / "config.yaml"
    try:
        return _loaded(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ResultsError(f"{path} cannot be read ({str(error).splitlines()[0]}): run the experiment again") from None


@lru_cache(64)
def _loaded(text: str) -> Mapping[str, Any]:
    """A configuration; every part of the report asks for it again."""
    import yaml

    # The C loader reads the same ten times as fast.
    return dict(yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)))


def primary(results: Results) -> str:
    """The measure the report is about: nDCG@10, or the first that was measured where that was not."""
    measured = config(results, results.arms[0])["measures"]
    return PRIMARY if PRIMARY in measured else str(measured[0])


def pipeline(results: Results, arm: str) -> str:
    """An arm's pipeline as a sentence, empty when it was not written."""
    path = results.arm_path(arm) / "pipeline.txt"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def design(results: Results) -> str:
    """The sentence that describes the design of an ablation, empty for other runs."""
    path = results.folder / "design.txt"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def topics(results: Results) -> pd.DataFrame:
    """qid, split, type, text, need of every topic, sorted by qid."""
    import pandas as pd

    path = results.folder / TOPICS
    if path.is_file():
        return pd.read_parquet(path).sort_values("qid", ignore_index=True)
    known = results.per_query[["qid", "split", "type"]].drop_duplicates("qid").sort_values("qid", ignore_index=True)
    return known.assign(text="", need="")[list(TOPIC_COLUMNS)]


def top_hits(results: Results) -> pd.DataFrame:
    """The first hits of every arm for every query: arm and the columns of `experiment.top_hits`."""
    return results.of_arms(TOP, ("arm", *TOP_COLUMNS))


def fates(results: Results) -> pd.DataFrame:
    """What became of every relevant section in every arm: the columns of `evaluation.diagnosis`."""
    return results.of_arms(DIAGNOSIS, diagnosis.COLUMNS)


def losses(results: Results) -> pd.DataFrame:
    """Relevant sections by arm, outcome and stage, in the order of the arms: sections, share."""
    frame = diagnosis.losses(fates(results))
    place = {arm: n for n, arm in enumerate(results.arms)}
    return frame.sort_values(["arm", "sections"], key=lambda c: c.map(place) if c.name == "arm" else -c, kind="stable")


def effects(results: Results) -> pd.DataFrame:
    """The effects with verdicts that an ablation wrote; for any other run, every arm against the first as an effect."""
    import pandas as pd

    path = results.folder / "verdicts.csv"
    if not path.is_file():
        return against_first(results).rename(columns={"arm": "factor", "difference": "effect"})
    words = ("kind", "factor", "other", "aliases", "verdict", "reason")
    frame = pd.read_csv(path, dtype=dict.fromkeys(words, "str"))
    return frame.fillna(dict.fromkeys(words, ""))


def against_first(results: Results, measure: str | None = None) -> pd.DataFrame:
    """One row for every arm after the first, compared with it over the topics both answered.

    Columns: arm, kind, other, mean, baseline, difference, ci_low, ci_high, p, p_holm, n, wins, ties, losses, mde,
    latency_ms with latency_low and latency_high, budget_ms, unjudged (its Unjudged@10 minus the first's), verdict,
    reason.
    """
    import pandas as pd

    first, *others = results.arms
    measure = measure or primary(results)
    reference = results.values(first, measure)
    if not others or not len(reference):
        columns = [name for name in EFFECT_COLUMNS if name not in ("factor", "effect")]
        return pd.DataFrame({name: [] for name in (*columns, "arm", "difference", "mean", "baseline", "unjudged")})
    settings = config(results, first)
    statistics: dict[str, Any] = {
        name: settings["statistics"][name] for name in ("resamples", "permutations", "confidence")
    }
    stacked = np.stack([_aligned(results, arm, measure, reference) for arm in others])
    compared = compare_all(
        stacked,
        np.broadcast_to(reference.to_numpy(dtype=np.float64), stacked.shape),
        seed=settings["seed"],
        **statistics,
    )
    lines = []
    for arm, each, p_holm in zip(others, compared, holm([c.p_value for c in compared]), strict=True):
        cost, gap = latency_cost(results, arm, first), unjudged_gap(results, arm, first)
        factor = "p6" if _reranks(config(results, arm)) and not _reranks(settings) else arm
        budget = latency_budget_ms(factor, settings["budget"]["p95_ms"])
        verdict = judge(
            each, p_holm=float(p_holm), budget_ms=budget, latency=cost, unjudged_difference=gap, measure=measure
        )
        low, high = cost.bounds if cost else (np.nan, np.nan)
        lines.append(
            {
                "arm": arm,
                "kind": "main",
                "other": "",
                "mean": each.mean_candidate,
                "baseline": each.mean_baseline,
                **{name: value for name, value in asdict(each).items() if name not in _RENAMED},
                "p": each.p_value,
                "p_holm": float(p_holm),
                "standard_error": np.nan,
                "aliases": "",
                "latency_ms": cost.p95_ms if cost else np.nan,
                "latency_low": low,
                "latency_high": high,
                "budget_ms": budget,
                "unjudged": np.nan if gap is None else gap,
                "verdict": verdict.outcome,
                "reason": verdict.reason,
            }
        )
    return pd.DataFrame(lines)


def latency_cost(results: Results, arm: str, first: str) -> LatencyCost | None:
    """What an arm adds to the first's p95; the interval adds the half-widths of both in quadrature."""
    if not len(results.latency):
        return None
    total = {row["arm"]: row for row in rows(results.latency) if row["stage"] == "total"}
    if arm not in total or first not in total:
        return None
    difference = float(total[arm]["p95"] - total[first]["p95"])
    widths = [total[name]["p95_high"] - total[name]["p95_low"] for name in (arm, first)]
    half = float(np.hypot(*widths)) / 2
    return LatencyCost(difference, difference - half, difference + half)


def unjudged_gap(results: Results, arm: str, first: str) -> float | None:
    """An arm's Unjudged@10 minus the first's, as a share; None where it was not measured."""
    ours, theirs = results.values(arm, UNJUDGED), results.values(first, UNJUDGED)
    return float(ours.mean() - theirs.mean()) if len(ours) and len(theirs) else None


def judged_notes(results: Results) -> list[str]:
    """A sentence for every arm that cannot be told from the first: the worse of the two has too many unjudged hits."""
    first, measure = results.arms[0], primary(results)
    reference = float(results.values(first, measure).mean())
    notes = []
    for arm in results.arms[1:]:
        gap = unjudged_gap(results, arm, first)
        if undervalues_the_worse(float(results.values(arm, measure).mean()) - reference, gap):
            notes.append(f"'{arm}': Unjudged@10 is {100 * (gap or 0):+.1f} points from that of '{first}'.")
    return notes


def by_type(results: Results, measure: str | None = None) -> pd.DataFrame:
    """Every query type and arm: kind, n, warning, arm, mean, difference from the first arm with its interval."""
    import pandas as pd

    first = results.arms[0]
    measure = measure or primary(results)
    reference = results.values(first, measure)
    if not len(reference):
        return pd.DataFrame({name: [] for name in ("kind", "n", "warning", "arm", "mean", "difference", "low", "high")})
    settings = config(results, first)
    statistics = settings["statistics"]
    kinds = topics(results).set_index("qid")["type"].reindex(reference.index)
    intervals = partial(
        bootstrap_intervals,
        seed=settings["seed"],
        resamples=statistics["resamples"],
        confidence=statistics["confidence"],
    )
    values = np.stack([_aligned(results, arm, measure, reference) for arm in results.arms])
    lines = []
    for kind, mask in types(list(kinds)).items():
        differences = values[:, mask] - values[0, mask]
        lows, highs = intervals(differences)
        for place, arm in enumerate(results.arms):
            lines.append(
                {
                    "kind": kind,
                    "n": int(mask.sum()),
                    "warning": warning(kind, int(mask.sum())),
                    "arm": arm,
                    "mean": float(values[place, mask].mean()),
                    "difference": float(differences[place].mean()),
                    "low": float(lows[place]),
                    "high": float(highs[place]),
                }
            )
    return pd.DataFrame(lines)


def _aligned(results: Results, arm: str, measure: str, reference: pd.Series) -> Any:
    return results.values(arm, measure).reindex(reference.index).to_numpy(dtype=np.float64)


def _reranks(settings: Mapping[str, Any]) -> bool:
    return "_target_" in (settings.get("p6") or {})
