"""The report: one HTML file that contains all it shows and makes no network request.

Text of documents, queries and configurations is escaped by the template, or embedded as JSON and shown as text nodes. A
content security policy allows only the two scripts of this package, by their digests, and no requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base.files import write_text
from ragbench.base.progress import report, track
from ragbench.boundary.json import read_json
from ragbench.evaluation.diagnosis import unit
from ragbench.evidence import areas, field, halves
from ragbench.evidence.policy import Policy
from ragbench.report import evidence, explorer, figures, methods, page, page_tables, pareto, references
from ragbench.report.cells import Table
from ragbench.results import measurements, verdicts

if TYPE_CHECKING:
    from ragbench.results.measurements import Measurements

FILE = "report.html"
_TEMPLATES = Path(__file__).resolve().parent / "templates"
STYLE = _TEMPLATES / "report.css"


def write(folder: Path, out: Path | None = None) -> Path:
    """Write the report of a results folder to `out` (default: `report.html` in the folder); returns the path."""
    report("writing the report")
    path = out or folder / FILE
    write_text(path, render(measurements.load(folder)))
    return path


def render(results: Measurements) -> str:
    """The page as text; equal results give equal text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    templates = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    # Both scripts come from packages, ragbench's and Plotly's, and contain no text of a run.
    scripts = [get_plotlyjs(), (_TEMPLATES / "report.js").read_text(encoding="utf-8")]
    return templates.get_template("report.html.j2").render(
        **contents(results),
        policy=_policy(scripts),
        style=Markup(STYLE.read_text(encoding="utf-8")),
        scripts=[Markup(script) for script in scripts],
        data=Markup(script_json({"figures": _figures(results), "explorer": explorer.explorer(results)})),
    )


def contents(results: Measurements) -> dict[str, Any]:
    """Everything the template prints, apart from scripts and style."""
    several = len(results.arms) > 1
    effects = figures.main_effects(results) if several else None
    (types, few), (by_area, few_of_area) = (page_tables.kinds(results, of) for of in ("type", "area"))
    said = methods.methods(results)
    shown = {
        **page.headline(results),
        "first": results.arms[0],
        "measure": evidence.primary(results),
        "design": evidence.design(results),
        "answers": page.answers(effects) if effects is not None else [],
        "verdicts": page_tables.verdicts(results) if effects is not None and len(effects) else None,
        "field": page_tables.field(results) if len(verdicts.field(results)) else None,
        "field_said": field.sentences(verdicts.field(results)),
        "halves": page_tables.halves(results) if len(verdicts.halves(results)) else None,
        "halves_said": halves.sentences(verdicts.halves(results)),
        "areas": page_tables.areas(results) if len(verdicts.areas(results)) else None,
        "areas_said": areas.sentences(verdicts.areas(results)),
        "look": results.look,
        "confidence": f"{100 * Policy.of(results.config(results.arms[0])).statistics.confidence:g}%",
        "arms": page_tables.arms(results),
        "timed": len(results.latency) > 0,
        "latency": page_tables.latency(results),
        "interactions": page_tables.interactions(results) if _has_interactions(results) else None,
        "losses": page_tables.losses(results) if len(evidence.fates(results)) else None,
        "unit": unit(evidence.fates(results)),
        "headroom": page_tables.headroom(results),
        "types": types if len(types.columns) > 2 else None,
        "few": few,
        "by_area": by_area if len(by_area.columns) > 2 else None,
        "few_of_area": few_of_area,
        "recipes": page.recipes(results),
        "environment": page.environment(results),
        "methods": said,
        "bibtex": references.bibliography(said.works),
    }
    return {name: _with_note(results, part) for name, part in shown.items()}


def _with_note(results: Measurements, part: Any) -> Any:
    return replace(part, caption=results.title_with_origin(part.caption)) if isinstance(part, Table) else part


def script_json(value: Any) -> str:
    """JSON for a script element: it contains no character that could begin or end a tag."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _figures(results: Measurements) -> dict[str, Any]:
    """The figures for which the run has data, by name."""
    timed = len(results.latency) > 0
    chosen = {
        "effects": (figures.plot_effects, len(results.arms) > 1 and len(figures.main_effects(results)) > 0),
        "pareto": (pareto.plot_pareto, timed and len(pareto.pareto(results)) > 0),
        "latency": (figures.plot_latency, timed),
        "interactions": (figures.plot_interactions, _has_interactions(results)),
        "losses": (figures.plot_losses, len(evidence.fates(results)) > 0),
    }
    # Plotly's JSON also handles numbers that JSON does not have.
    return {
        name: read_json(plot(results).to_json(engine="json"), own=True)
        for name, (plot, wanted) in track("figures", list(chosen.items()))
        if wanted
    }


def _has_interactions(results: Measurements) -> bool:
    return len(results.arms) > 1 and bool((evidence.effects(results)["kind"] == "interaction").any())


def _policy(scripts: list[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
