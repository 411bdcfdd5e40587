"""The report of a search: its warnings, tables and files.

trials.csv      every trial of every search: objectives, estimated and measured p95, values
front.csv       the Pareto front of the candidates, and the preset
folds.csv       the choice of every fold, and its value inside and outside the fold
parameters.csv  preset, winner, agreement of the folds, importance
overrides.txt   the winner as overrides
report.md
report.json     all of it, sealed, with digests of the other files
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ragbench.base import files
from ragbench.base.console import markdown
from ragbench.base.files import write_text
from ragbench.base.formatting import interval
from ragbench.boundary.checksummed_json import write_checksummed
from ragbench.extras.fit.tuning.confirm import Confirmation, judge_by_folds
from ragbench.extras.fit.tuning.outcome import PRESET, Tuned
from ragbench.extras.fit.tuning.space import Parameter, Values, overrides, value_of
from ragbench.extras.fit.tuning.study import Trial
from ragbench.extras.fit.tuning.tracking import RECORD

if TYPE_CHECKING:
    import pandas as pd

FILES = ("trials.csv", "front.csv", "folds.csv", "parameters.csv", "overrides.txt", "report.md", RECORD)


def warnings(tuned: Tuned, confirmation: Confirmation | None) -> list[str]:
    """What users must know before they use the winner, one sentence each."""
    warned = []
    limit, winner = tuned.spec.p95_ms, tuned.winner
    if limit is not None and (winner.p95_ms or 0.0) > limit:
        warned.append(
            f"no candidate stays within {limit:g} ms: the fastest of the best has a p95 of {winner.p95_ms:.1f} ms"
        )
    if tuned.folds:
        gain = tuned.held_out_gain()
        if not tuned.unchanged and gain.ci_low <= 0:
            warned.append(
                f"on held-out training topics tuning changed the value by {gain.difference:+.4f} "
                f"{interval(gain.ci_low, gain.ci_high, 4)} ({gain.n} topics): a gain is not shown, keep the preset"
            )
    if confirmation is None and not tuned.held_out_topics:
        if tuned.unchanged:
            return [*warned, "nothing is better than the configured values"]
        outcome = judge_by_folds(tuned).verdict.outcome
        if outcome not in ("adopt", "confirm"):
            warned.append(f"the verdict of the nested folds is '{outcome}': keep the preset")
        return [*warned, "no topics are held out: a run of the winner on these topics shows too good a value"]
    if confirmation is None:
        return [*warned, "nothing is better than the configured values; the test topics were not used"]
    if confirmation.unbeaten == PRESET:
        warned.append(f"the verdict on the test topics is '{confirmation.verdict.outcome}': keep the preset")
    elif confirmation.unbeaten:
        warned.append(
            "the winner is not shown to beat a plain hybrid (exp=plain_hybrid) on the test topics: "
            "keep what you have, or take the plain hybrid"
        )
    results = confirmation.results
    if results.exploratory:
        warned.append(f"the test on the winner is {results.exploratory}")
    return warned


def agreement(parameter: Parameter, chosen: Sequence[Values]) -> float | None:
    """How much the folds agree on a parameter, 0 to 1; None where it applies in fewer than two of them.

    Numbers: 1 minus the distance from the least to the greatest, as a share of the range that is searched. Choices: the
    share of the most frequent.
    """
    values = [values[parameter.key] for values in chosen if parameter.key in values]
    if len(values) < 2:
        return None
    if parameter.choices:
        return Counter(map(str, values)).most_common(1)[0][1] / len(values)
    places = [parameter.normalized(value) for value in values]
    return round(1 - (max(places) - min(places)), 6)


def parameters(tuned: Tuned) -> pd.DataFrame:
    """One row per parameter: preset, winner, what the folds chose, their agreement, importance by objective."""
    import pandas as pd

    rows = []
    for parameter in tuned.rules.parameters:
        chosen = [fold.values for fold in tuned.folds]
        rows.append(
            {
                "parameter": parameter.key,
                "preset": _text(
                    tuned.preset.values.get(parameter.key)
                    if parameter.is_switch
                    else value_of(tuned.base, parameter.key)
                ),
                "winner": _text(tuned.winner.values.get(parameter.key)),
                "folds": " ".join(_text(values.get(parameter.key)) or "-" for values in chosen),
                "agreement": agreement(parameter, chosen),
                **{f"importance {name}": shares.get(parameter.key, 0.0) for name, shares in tuned.importances.items()},
            }
        )
    frame = pd.DataFrame(rows)
    return frame.assign(agreement=frame["agreement"].astype(float))


def folds(tuned: Tuned) -> pd.DataFrame:
    """One row per fold: the number of held-out topics, then values of winner and preset on the others and on these."""
    import pandas as pd

    rows = []
    for fold in tuned.folds:
        outside, preset = ([pair[i] for pair in fold.pairs.values()] for i in (0, 1))
        rows.append(
            {
                "fold": fold.number,
                "held out": len(fold.pairs),
                "train": fold.inner,
                "train preset": fold.inner_preset,
                "held-out": _mean(outside),
                "held-out preset": _mean(preset),
            }
        )
    return pd.DataFrame(rows)


def trials(tuned: Tuned) -> pd.DataFrame:
    """Every trial of every search."""
    import pandas as pd

    frames = [
        {"search": name, **_row(trial, tuned), "guessed_p95_ms": trial.p95_ms, "seconds": trial.seconds, **trial.values}
        for name, trials_of_search in tuned.trials.items()
        for trial in trials_of_search
    ]
    return pd.DataFrame(frames)


def front(tuned: Tuned) -> pd.DataFrame:
    """The Pareto front, best first, and the preset."""
    import pandas as pd

    named = {trial.number: "" for trial in tuned.front}
    visible = [*tuned.front, *([] if tuned.preset.number in named else [tuned.preset])]
    rows = []
    for trial in visible:
        kind = (
            "preset" if trial.number == tuned.preset.number else "winner" if trial.number == tuned.winner.number else ""
        )
        percentiles = tuned.timed.get(trial.number, {})
        times = {f"{name}_ms": percentiles[name] for name in ("p50", "p95", "p99") if name in percentiles}
        rows.append({"what": kind, **_row(trial, tuned), **times, **trial.values})
    return pd.DataFrame(rows)


def summary(tuned: Tuned, confirmation: Confirmation | None) -> dict[str, Any]:
    """The whole report as plain values."""
    folded: dict[str, Any] | None = None
    if tuned.folds:
        folded = {
            "folds": len(tuned.folds),
            "train": tuned.inner,
            "held_out": tuned.held_out,
            "optimism": tuned.optimism,
            "gain": asdict(tuned.held_out_gain()),
            "repeats": tuned.repeats,
        }
        if not tuned.held_out_topics:
            verdict = judge_by_folds(tuned).verdict
            folded |= {"verdict": verdict.outcome, "reason": verdict.reason}
    test: dict[str, Any] | None = None
    if confirmation is not None:
        test = {
            "folder": str(confirmation.results.folder),
            "verdict": confirmation.verdict.outcome,
            "reason": confirmation.verdict.reason,
            "evaluations": confirmation.evaluations,
            "keep": confirmation.unbeaten,
            "plain_hybrid": asdict(confirmation.plain.verdict) if confirmation.plain is not None else None,
            **{level: asdict(level_result.comparison) for level, level_result in confirmation.judged.levels.items()},
        }
    return {
        "folder": str(tuned.folder),
        "measure": tuned.measure,
        "objectives": [objective.name for objective in tuned.rules.objectives],
        "sampler": tuned.rules.sampler,
        "topics": tuned.topics,
        "trials": {name: len(trials) for name, trials in tuned.trials.items()},
        "preset": _plain(tuned.preset, tuned),
        "winner": {**_plain(tuned.winner, tuned), "values": dict(tuned.winner.values)},
        "overrides": overrides(tuned.changes),
        "nested": folded,
        "parameters": parameters(tuned).astype(object).to_dict(orient="records"),
        "front": [_plain(trial, tuned) for trial in tuned.front],
        "test": test,
        "warnings": warnings(tuned, confirmation),
    }


def sentences(tuned: Tuned, confirmation: Confirmation | None) -> list[str]:
    """The outcome in words."""
    measure = tuned.rules.objectives[tuned.objective_index].name
    better, previous = tuned.winner.objectives[tuned.objective_index], tuned.preset.objectives[tuned.objective_index]
    lines = [f"{measure} on {tuned.topics} training topics: preset {previous:.4f}, winner {better:.4f}"]
    if tuned.folds:
        gain = tuned.held_out_gain()
        lines.append(
            f"nested over {len(tuned.folds)} folds{_repeats(tuned)}: {tuned.inner:.4f} where searched, "
            f"{tuned.held_out:.4f} held out "
            f"(preset {gain.mean_baseline:.4f}); optimism {tuned.optimism:+.4f}"
        )
    if not tuned.unchanged:
        lines.append(f"winner: {' '.join(overrides(tuned.changes))}")
    if not tuned.held_out_topics and not tuned.unchanged:
        verdict = judge_by_folds(tuned).verdict
        lines.append(f"too few topics for test topics, judged by the folds: {verdict.outcome}. {verdict.reason}")
    if confirmation is not None:
        lines.append(f"on the test topics: {confirmation.verdict.outcome}. {confirmation.verdict.reason}")
        if confirmation.plain is not None:
            verdict = confirmation.plain.verdict
            lines.append(f"against a plain hybrid: {verdict.outcome}. {verdict.reason}")
    return lines


def _repeats(tuned: Tuned) -> str:
    return f", {tuned.repeats} times {len(tuned.folds) // tuned.repeats}" if tuned.repeats > 1 else ""


def tables(tuned: Tuned) -> dict[str, pd.DataFrame]:
    """The tables to print, by title."""
    sections = {"Parameters": parameters(tuned)}
    if tuned.folds:
        sections["Folds"] = folds(tuned)
    if len(tuned.rules.objectives) > 1:
        names = ["what", "trial", *(objective.name for objective in tuned.rules.objectives)]
        frame = front(tuned)
        sections["Pareto front"] = frame[[*names, *(name for name in ("p50_ms", "p99_ms") if name in frame)]]
    return sections


def write(tuned: Tuned, confirmation: Confirmation | None) -> None:
    """Write the files into the folder of the search."""
    (tuned.folder / RECORD).unlink(missing_ok=True)  # from an earlier search with fewer trials
    frames = {"trials": trials(tuned), "front": front(tuned), "parameters": parameters(tuned)}
    if tuned.folds:
        frames["folds"] = folds(tuned)
    for name, frame in frames.items():
        write_text(tuned.folder / f"{name}.csv", frame.to_csv(index=False))
    write_text(tuned.folder / "overrides.txt", f"{' '.join(overrides(tuned.changes))}\n")
    lines = [f"# Search over {tuned.base.name}", *sentences(tuned, confirmation)]
    lines += [f"Warning: {sentence}." for sentence in warnings(tuned, confirmation)]
    lines += [f"## {title}\n\n{markdown(frame)}" for title, frame in tables(tuned).items()]
    write_text(tuned.folder / "report.md", "\n\n".join(lines) + "\n")
    names = [*(f"{name}.csv" for name in frames), "overrides.txt", "report.md"]
    record = {"name": tuned.base.name, "tune": tuned.base.config["tune"], **summary(tuned, confirmation)}
    record["files"] = {name: files.digest(tuned.folder / name) for name in names}
    write_checksummed(tuned.folder / RECORD, record)


def _row(trial: Trial, tuned: Tuned) -> dict[str, Any]:
    reached = zip(tuned.rules.objectives, trial.objectives, strict=True)
    return {"trial": trial.number, **{objective.name: value for objective, value in reached}}


def _plain(trial: Trial, tuned: Tuned) -> Mapping[str, Any]:
    times = tuned.timed.get(trial.number)
    return _row(trial, tuned) | ({"p95_ms": times["p95"]} if times else {})


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else float("nan")


def _text(value: Any) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)
