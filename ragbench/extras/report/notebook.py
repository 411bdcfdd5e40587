"""Verdicts as a notebook shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base.columns import records
from ragbench.base.html import templates
from ragbench.config.names import label
from ragbench.evidence import verdict
from ragbench.extras.report import figures
from ragbench.report import tables
from ragbench.results import measurements

if TYPE_CHECKING:
    import pandas as pd

_TEMPLATES = Path(__file__).resolve().parent / "templates"


def table(frame: pd.DataFrame, means: pd.DataFrame, title: str, notes: Sequence[str] = ()) -> str:
    """Verdicts with their confidence intervals as bars, then the means: without scripts, as a notebook shows it."""
    from markupsafe import Markup

    main = frame[(frame["kind"] == "main") & frame["effect"].notna()]
    reach = max([0.01, *(abs(bound) for name in ("ci_low", "ci_high", "effect") for bound in main[name].dropna())])
    template = templates(_TEMPLATES).get_template("verdicts.html.j2")
    shown_means = Markup(means.to_html(index=False, float_format="{:.4f}".format, na_rep=""))
    rows = [_for_notebook(row, reach) for row in records(main)]
    return template.render(title=title, rows=rows, means=shown_means, notes=notes)


def _for_notebook(row: Mapping[str, Any], reach: float) -> dict[str, Any]:
    return {
        "reason": row["reason"],
        "change": label(str(row["factor"])),
        "effect": tables.effect(row, ""),
        "bar": _bar(row, reach),
        "p": f"{row['p']:.3f}",
        "quality": verdict.QUALITY.get(str(row["quality"]), ""),
        "latency": verdict.LATENCY.get(str(row["cost"]), ""),
        "verdict": measurements.labelled(row),
    }


_BAR_PX = 160


def _bar(row: Mapping[str, Any], reach: float) -> dict[str, Any]:
    """A confidence interval as a bar around 0 and its effect as a dot, in pixels; the colours are those of verdicts."""

    def position(value: float) -> float:
        return round(_BAR_PX / 2 + value / reach * (_BAR_PX / 2 - 5), 1)

    ends = {end: row[f"ci_{end}"] if row[f"ci_{end}"] == row[f"ci_{end}"] else row["effect"] for end in ("low", "high")}
    positions = {name: position(value) for name, value in {**ends, "effect": row["effect"]}.items()}
    return {"width": _BAR_PX, "color": figures.VERDICTS.get(str(row["verdict"]), ("#888888", ""))[0], **positions}
