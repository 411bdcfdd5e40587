"""The report: one HTML file that contains all it shows and makes no network request.

A part of it that cannot be made is named in a sentence; all others stand.

Text of documents, queries and configurations is escaped by the template, or embedded as JSON and shown as text nodes. A
content security policy allows only the two scripts of this package, by their digests, and no requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import files, progress
from ragbench.base.columns import records
from ragbench.base.document_names import readable
from ragbench.base.html import templates
from ragbench.base.types import RagbenchError, with_interval
from ragbench.boundary.json import read_json
from ragbench.config.overrides import changes, section_of
from ragbench.evaluation import diagnosis
from ragbench.evidence.arms import Policy, disturbed
from ragbench.extras.report import figures, page_tables
from ragbench.report import cells, screen
from ragbench.results import store
from ragbench.search.engine import snippet

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

_LOG = logging.getLogger(__name__)

_TEMPLATES = Path(__file__).resolve().parent / "templates"

STYLE = _TEMPLATES / "report.css"

_CAN_FAIL = (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError, RagbenchError)
"""What a part of the page can raise on an unforeseen run; the rest of the page is made without it."""


@dataclass(frozen=True)
class Parts:
    """Makes the parts of a page; `missing` has a sentence for each that failed."""

    missing: dict[str, str] = field(default_factory=dict)

    def make(self, name: str, part: Callable[[], Any], instead: Any) -> Any:
        """The part; `instead` where it fails, with the error in the log."""
        progress.part(name)
        try:
            return part()
        except _CAN_FAIL as error:
            _LOG.debug("a part of the report failed: %s", name, exc_info=True)
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            self.missing[name] = f"The part '{name}' could not be made ({reason}). What was measured is complete."
            return instead


def write(results: Measurements, out: Path | None = None) -> Path:
    """Write the report of a run to `out` (default: `report.html` in its folder); returns the path.

    A part that cannot be made is replaced by its error, and a warning is logged.
    """
    progress.report("writing the report")
    path, parts = out or results.folder / store.REPORT, Parts()
    files.write_text(path, render(results, parts))
    for sentence in parts.missing.values():
        _LOG.warning(f"report: {sentence}")
    return path


def render(results: Measurements, parts: Parts | None = None) -> str:
    """The page as text; equal results give equal text."""
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    parts = Parts() if parts is None else parts
    # Both scripts come from packages, ragbench's and Plotly's, and contain no text of a run.
    scripts = [get_plotlyjs(), (_TEMPLATES / "report.js").read_text(encoding="utf-8")]
    nothing = {"arms": results.arms, "measures": [results.primary], "queries": [], "texts": 0}
    context = _contents(results, parts)
    plots = _figures(results, parts)
    explored = parts.make("query by query", lambda: explorer(results), nothing)
    return (
        templates(_TEMPLATES)
        .get_template("report.html.j2")
        .render(
            **context,
            missing=list(parts.missing.values()),
            figures=list(plots),
            policy=_policy(scripts),
            style=Markup(STYLE.read_text(encoding="utf-8")),
            scripts=[Markup(script) for script in scripts],
            data=Markup(_script_json({"figures": plots, "explorer": explored})),
        )
    )


def _contents(results: Measurements, parts: Parts) -> dict[str, Any]:
    """Everything the template prints, apart from scripts and style."""
    context: dict[str, Any] = {
        "first": results.arms[0],
        "measure": results.primary,
        "timed": len(results.latency) > 0,
        "interval": results.interval,
        "confidence": f"{100 * Policy.of(results.shared_config).statistics.confidence:g}%",
    }
    for name, part in _PARTS.items():
        context |= parts.make(name, partial(_made, results, part), dict.fromkeys(part, ""))
    return {name: _with_note(results, value) for name, value in context.items()}


def verdict_sentence(results: Measurements) -> str:
    """The verdict on the second of two arms as a sentence with its interval; empty for other runs."""
    if not (row := screen.only_row(results)):
        return ""
    base, arm = results.arms
    change = f"{row['effect']:+.3f}"
    if row["ci_low"] == row["ci_low"]:
        change = f"{with_interval(row['effect'], row['ci_low'], row['ci_high'])}, {results.interval} CI"
    means = f"{row['baseline']:.3f} to {row['mean']:.3f}"
    why = screen.sentence(results, row, bool(disturbed(results.record)))
    word = str(row["verdict"]).capitalize()
    subject = {"adopt": f"Adopt {arm} instead of {base}", "reject": f"Reject {arm}, keep {base}"}
    start = subject.get(str(row["verdict"]), f"{word}: {arm} against {base}")
    return f"{start}: {why}. {results.primary} of documents {means}: {change}."


def _made(results: Measurements, part: Mapping[str, Callable[[Measurements], Any]]) -> dict[str, Any]:
    return {name: make(results) for name, make in part.items()}


_PARTS: Mapping[str, Mapping[str, Callable[[Measurements], Any]]] = {
    "title": {
        "name": lambda results: results.record["name"],
        "title": lambda results: title(results),
        "lede": lambda results: _lede(results),
        "started": lambda results: start_time(results),
        "design": lambda results: results.design,
        "exploratory": lambda results: results.exploratory,
        "without_answers": lambda results: results.without_answers,
        "labels": lambda results: screen.label_sentences(results),
    },
    "verdicts": {
        "sentence": lambda results: verdict_sentence(results),
        "answers": lambda results: _answers(figures.main_effects(results)),
        "verdicts": lambda results: page_tables.verdicts(results),
    },
    "best arm": {"best_arm": lambda results: cells.best_configuration(results.best_arm, results.primary)},
    "configurations": {"arms": lambda results: cells.arms(results)},
    "contexts": {
        "contexts": lambda results: cells.context_shares(results, results.delivered),
        "polluters": lambda results: cells.polluters(results.delivered),
    },
    "time by stage": {"latency": lambda results: cells.latency(results)},
    "interactions": {"interactions": lambda results: page_tables.interactions(results)},
    "losses": {
        "losses": lambda results: page_tables.losses(results),
        "unit": lambda results: diagnosis.unit(results.fates),
    },
    "query types": {"types": lambda results: cells.kinds(results, "type")},
    "areas": {"by_area": lambda results: cells.kinds(results, "area")},
    "recipes": {"recipes": lambda results: _recipes(results)},
    "environment": {"environment": lambda results: environment(results)},
}
"""By part, what the template prints under a name; an empty text where the part fails."""


def _with_note(results: Measurements, part: Any) -> Any:
    return replace(part, caption=results.title_with_origin(part.caption)) if isinstance(part, cells.Table) else part


def start_time(results: Measurements) -> str:
    """The time when the run began, in UTC."""
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(results.record["started"]))


def _script_json(value: Any) -> str:
    """JSON for a script element: it contains no character that could begin or end a tag."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _figures(results: Measurements, parts: Parts) -> dict[str, Any]:
    """The figures for which the run has data, by name."""
    drawn = {
        name: parts.make(f"figure of {name}", partial(_figure, results, *part), None) for name, part in _FIGURES.items()
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def _figure(results: Measurements, has_data: Callable[[Measurements], Any], plot: Callable[[Measurements], Any]) -> Any:
    # Plotly's JSON also handles numbers that JSON does not have.
    return read_json(plot(results).to_json(engine="json"), own=True) if has_data(results) else None


_FIGURES: Mapping[str, tuple[Callable[[Measurements], Any], Callable[[Measurements], Any]]] = {
    "effects": (lambda results: len(figures.main_effects(results)), figures.plot_effects),
    "pareto": (
        lambda results: len(results.latency) and len(figures.pareto(results)),
        lambda results: figures.plot_pareto(results),
    ),
    "latency": (lambda results: len(results.latency), figures.plot_latency),
    "interactions": (
        lambda results: (results.verdicts["kind"] == "interaction").any(),
        figures.plot_interactions,
    ),
    "losses": (lambda results: len(results.fates), figures.plot_losses),
}
"""By name, whether a run has data for a figure, and what draws it."""


def _policy(scripts: list[str]) -> str:
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


_MOST_TEXTS = 400
"""The most topics whose hits are embedded: with more, the file would open slowly."""


def explorer(results: Measurements, limit: int = _MOST_TEXTS) -> dict[str, Any]:
    """The data as values for JSON.

    `arms`; `measures` (names, the primary first); `queries`: qid, text, need, type, stems, `values` by measure and arm
    (None where the query has no value) and, for those that keep texts, `passages` ([docno, title, headings, snippet,
    document grade, section grade]), `hits` by arm ([passage, score]) and `lost` ([section, grade, fate by arm]).
    """
    arms, measures, values = _values(results)
    hits_of, fates_of = _by_query(results.top_hits), _by_query(results.fates)
    topics = results.topics
    telling = sorted(topics["qid"], key=lambda qid: (-_spread(values.get(qid, [[]])[0]), qid))
    selected = set([qid for qid in telling if qid in hits_of][:limit])
    queries = []
    for topic in records(topics):
        qid = topic["qid"]
        query = {
            "qid": qid,
            "text": topic["text"] or qid,
            "need": topic["need"] or "",
            "type": topic["type"] or "",
            "stems": snippet.stems(topic["text"]),
            "values": values.get(qid, [[None] * len(arms) for _ in measures]),
        }
        if qid in selected:
            query |= _passages(hits_of[qid], arms, results.file_names)
        if qid in fates_of:
            query["lost"] = _losses_by_text(fates_of[qid], arms)
        queries.append(query)
    return {"arms": arms, "measures": measures, "queries": queries, "texts": len(selected)}


def _by_query(frame: pd.DataFrame) -> dict[Any, list[dict[str, Any]]]:
    return {qid: records(rows) for qid, rows in frame.groupby("qid", sort=False)}


def _values(results: Measurements) -> tuple[list[str], list[str], dict[str, list[list[float | None]]]]:
    """Arms, measures, and by qid the values of shape (measures, arms)."""
    frame = results.per_query
    levels = {level: "" if level == "document" else f"{level} " for level in frame["level"].unique()}
    named = (frame["level"].map(levels) + frame["measure"]).tolist()
    primary = results.primary
    measures = sorted(set(named), key=lambda name: (name != primary, name.startswith("section "), name))
    arms = results.arms
    order = {name: n for n, name in enumerate(measures)}
    column = {arm: n for n, arm in enumerate(arms)}
    values: dict[str, list[list[float | None]]] = {}
    columns = (frame[name].tolist() for name in ("qid", "arm", "value"))
    for name, qid, arm, value in zip(named, *columns, strict=True):
        cells = values.setdefault(qid, [[None] * len(arms) for _ in measures])
        cells[order[name]][column[arm]] = round(value, 4)
    return arms, measures, values


def _spread(values: list[float | None]) -> float:
    present = [value for value in values if value is not None]
    return max(present) - min(present) if present else 0.0


def _passages(rows: list[dict[str, Any]], arms: list[str], names: Mapping[str, str]) -> dict[str, Any]:
    numbers: dict[tuple[str, str], int] = {}
    passages: list[list[Any]] = []
    hits: dict[str, list[list[Any]]] = {arm: [] for arm in arms}
    for row in rows:
        # Arms may chunk differently, so a passage is identified by its id and its words.
        number = numbers.setdefault((row["chunk_id"], row["snippet"]), len(passages))
        if number == len(passages):
            grades = (_grade(row[f"{level}_grade"]) for level in ("document", "section"))
            name = readable(names.get(row["docno"], str(row["docno"])))
            cells = [name, *(row[part] for part in ("title", "header_path", "snippet"))]
            passages.append([*cells, *grades])
        hits[row["arm"]].append([number, float(f"{row['score']:.4g}")])
    return {"passages": passages, "hits": list(hits.values())}


def _grade(value: Any) -> int | None:
    import pandas as pd

    return None if pd.isna(value) else int(value)


def _losses_by_text(rows: list[dict[str, Any]], arms: list[str]) -> list[list[Any]]:
    """[section, grade, its fate in every arm] for every relevant section, best grade first."""
    losses: dict[str, list[Any]] = {}
    order = {arm: n for n, arm in enumerate(arms)}
    for row in rows:
        entry = losses.setdefault(row["section"], [readable(row["section"]), int(row["grade"]), [""] * len(arms)])
        rank = f" at {row['rank']}" if row["rank"] else ""
        entry[2][order[row["arm"]]] = figures.describe_outcome(row["outcome"], row["stage"]) + rank
    return sorted(losses.values(), key=lambda entry: (-entry[1], entry[0]))


_NAMED = 5  # arms or factors that a title names one by one


def _lede(results: Measurements) -> str:
    """The facts under the title."""
    record, origin = results.record, results.topics_origin
    arms = f"{len(results.arms)} configurations" if len(results.arms) > 1 else "One configuration"
    return (
        f"{arms} on the benchmark '{record['benchmark']['name']}': {record['benchmark']['documents']} documents, "
        f"{record['topics']} queries of the split '{record['split']}'{f' ({origin})' if origin else ''}."
    )


def title(results: Measurements) -> str:
    """The question of the run in words."""
    names = results.arms
    if results.design:
        factors = [str(name) for name in figures.main_effects(results)["factor"]]
        return (
            f"Which of {cells.join_names(sorted(factors, key=_natural))} pay for themselves?"
            if len(factors) <= _NAMED
            else f"Which of {len(factors)} proposals pay for themselves?"
        )
    if len(names) == 1:
        return f"'{names[0]}' measured on {results.record['benchmark']['name']}"
    return f"{cells.join_names(names)} compared" if len(names) <= _NAMED else f"{len(names)} configurations compared"


def _natural(name: str) -> tuple[str, int]:
    head = name.rstrip("0123456789")
    return head, int(name[len(head) :] or 0)


def _answers(effects: pd.DataFrame) -> list[tuple[str, list[str]]]:
    """The verdicts that proposals have, with these, ordered from acceptance to rejection."""
    factors = {verdict: effects.loc[effects["verdict"] == verdict, "factor"].tolist() for verdict in page_tables.MARKS}
    return [(verdict, names) for verdict, names in factors.items() if names]


def _recipes(results: Measurements) -> cells.Table:
    """How every arm was configured, what its pipeline does, and what differs from the first, also in the index."""
    overrides = {arm: _shareable(results.record["overrides"][arm]) for arm in results.arms}
    base = results.arms[0]
    rows = []
    for arm in results.arms:
        changed = changes(overrides[base], overrides[arm])
        sentences = [results.pipeline(arm), f"Differs from {base} in: {changed}." if changed else ""]
        code = cells.Cell(" ".join(overrides[arm]) or "(defaults)", "", "code")
        rows.append((cells.Cell(arm), code, cells.Cell(" ".join(filter(None, sentences)), "", "prose")))
    return cells.Table("Configurations", (("Configuration", ""), ("ragbench run …", ""), ("Pipeline", "")), tuple(rows))


def environment(results: Measurements) -> list[tuple[str, str]]:
    """What the numbers depend on in addition to their inputs, as (name, value)."""
    record, described = results.record, results.record["environment"]
    git = described["git"]
    models = sorted({(name, digest) for digests in record["models"].values() for name, digest in digests.items()})
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
        ("CPU", f"{described['processor']}, {described['cpus']} cores"),
        (
            "Memory",
            f"{described['memory_bytes'] / 2**30:.0f} GiB, peak use {record['peak_memory_bytes'] / 2**20:.0f} MiB",
        ),
        ("System", described["platform"]),
        ("Hash seed", str(described["hash_seed"])),
    ]


def _shareable(overrides: Iterable[str]) -> list[str]:
    """Overrides without those that name folders of one machine."""
    return [override for override in overrides if section_of(override) not in ("paths", "tracking")]
