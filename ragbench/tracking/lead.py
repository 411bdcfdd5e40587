"""What MLflow shows first of a run: a name, the verdicts, and the parameters that are not defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from ragbench.base import console
from ragbench.base.errors import BoundaryError
from ragbench.boundary.yaml import read_yaml
from ragbench.config import catalogue
from ragbench.results import verdicts
from ragbench.results.measurements import Measurements

NOTE = "mlflow.note.content"
"""The tag that MLflow shows as a run's description."""

_SHOWN = 80
_AROUND = ("modes", "tune", "paths", "tracking", "execution", "artefacts", "name", "order")
_ROOM = 8000  # characters of a tag
_EFFECTS = ("effect", "ci_low", "ci_high", "p", "passage_effect", "latency_ms")


def name(found: Measurements) -> str:
    """The arms and what they were measured on: `baseline, rerank on notes (test)`."""
    said = ", ".join(found.arms)
    said = said if len(said) <= _SHOWN else f"{len(found.arms)} arms: {said[:_SHOWN].rstrip(', ')} ..."
    return f"{said} on {found.record['benchmark']['name']} ({found.record['split']})"


def note(found: Measurements) -> str:
    """The verdicts as a markdown table, followed by as many reasons as fit into the tag."""
    frame = verdicts.read(found)
    if frame.empty:
        return ""
    shown = console.columns(frame, ["factor", "other", "effect", "ci_low", "ci_high", "p", "latency_ms", "verdict"])
    reasons = [
        f"- **{row['factor']}**: {row['verdict']}. {row['reason']}" for _, row in frame.iterrows() if row["reason"]
    ]
    formats = {"effect": "+.3f", "ci_low": "+.3f", "ci_high": "+.3f", "p": ".3f", "latency_ms": "+.1f"}
    lines = [f"Against {found.arms[0]}:", "", console.markdown(shown, formats), ""]
    while len(reasons) > 1 and len("\n".join([*lines, *reasons])) > _ROOM:
        reasons = [*reasons[:-2], "- The others are in the report."]
    return "\n".join([*lines, *reasons])[:_ROOM]


def verdict_metrics(found: Measurements, arm: str) -> dict[str, float]:
    """The effect of an arm with its interval, p and added p95; empty for the arm that others are compared with."""
    frame = verdicts.read(found)
    rows = frame[(frame["factor"] == arm) & (frame["kind"] == "main")]
    if rows.empty:
        return {}
    return {key: float(rows.iloc[0][key]) for key in _EFFECTS if rows.iloc[0][key] == rows.iloc[0][key]}


def headline(found: Measurements, arm: str) -> dict[str, float]:
    """The metrics of an arm on the parent run: its quality, its p95 and the numbers of its verdict."""
    from ragbench.evaluation.measures import PRIMARY, metric_name

    values = found.values(arm, PRIMARY)
    p95 = found.p95_ms(arm)
    said = {metric_name(PRIMARY): float(values.mean())} if len(values) else {}
    said |= {"p95_ms": p95} if p95 is not None else {}
    return said | verdict_metrics(found, arm)


def safe(arm: str) -> str:
    """An arm's name, with characters that the name of a metric may not have replaced."""
    return re.sub(r"[^\w\-. /]", "_", arm, flags=re.ASCII)


def parameters(config: Mapping[str, Any], words: Iterable[str]) -> dict[str, Any]:
    """The values that differ from the defaults, and those of the overrides; config.yaml has the whole configuration."""
    known = catalogue.read()
    defaults = {each.key: _value(each.default) for each in known.parameters}
    switches = [group for group, option in known.defaults.items() if option == "off"]
    off = {group: known.content(group, "off") for group in switches}
    on = {group: "on" for group in switches if config.get(group, off[group]) != off[group]}
    silent = {*_AROUND, *switches} - set(on)
    differ = {
        key: value
        for key, value in flat(config).items()
        if key.split(".")[0] not in silent and key in defaults and defaults[key] != value and value is not None
    }
    typed = (word.lstrip("+").partition("=") for word in words)
    asked = {key: value for key, _, value in typed if key.split(".")[0] not in _AROUND}
    return {**on, **differ, **asked}


def _value(text: str) -> Any:
    try:
        return read_yaml(text)
    except BoundaryError:
        return text


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested mappings as one level with dotted keys."""
    found: dict[str, Any] = {}
    for key, value in config.items():
        path = f"{prefix}{key}"
        if isinstance(value, dict) and value:
            found |= flat(value, f"{path}.")
        else:
            found[path] = value
    return found
