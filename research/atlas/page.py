"""The atlas as pages of the documentation, with forest plots; every number comes from its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import files, minimums
from ragbench.base.console import markdown
from ragbench.base.types import interval, with_interval
from ragbench.config.names import ALIASES
from ragbench.extras.atlas import changes, meta, tables
from ragbench.extras.atlas.changes import BASE
from ragbench.extras.atlas.tables import QUESTIONS, Atlas
from ragbench.extras.report.figures import BLUE, GREY
from research.atlas import statistics
from research.atlas.svg import GRID, Scale, document, line, mark, text
from tools import pages

if TYPE_CHECKING:
    import pandas as pd

PAGE, MARK, PICTURE = Path("research", "atlas.md"), "atlas", Path("images", "atlas.svg")
_PROPOSALS = tuple(f"p{number}" for number in range(1, 14))
_ROW, _TOP = 20.0, 28.0  # pixels


def changes_of(atlas: Atlas, base: str = BASE) -> list[str]:
    """The changes that were measured against a base, in the order of `changes.yaml`, others last."""
    names = {change for group_base, change in atlas.by_change if group_base == base}
    order = [name for name in changes.changes() if name in names]
    return [*order, *sorted(names - set(order))]


def effects_table(atlas: Atlas, base: str = BASE, questions: str | None = None) -> pd.DataFrame:
    """A row for every change: how many collections, where it helped, the pooled effect and the prediction."""
    import pandas as pd

    rows = []
    for change in changes_of(atlas, base):
        pooled = atlas.pooled(change, base, questions)
        if pooled is None:
            continue
        by_change = atlas.rows(change, base, questions)
        errors = meta.steadied(by_change["error"].to_numpy(), by_change["topics"].to_numpy())
        new = statistics.interval(pooled, pooled.sd) if pooled.has_enough_collections else (None, None)
        counts = (pooled.collections, int(by_change["topics"].sum()), int((by_change["effect"] > 0).sum()))
        i2 = statistics.i2(by_change["effect"].to_numpy(), errors)
        effect = (pooled.effect, *statistics.interval(pooled, pooled.error), pooled.tau, i2)
        rows.append((change, *counts, *effect, *new))
    columns = ("change", "collections", "topics", "helps", "effect", "low", "high", "tau", "i2", "new_low", "new_high")
    return pd.DataFrame(rows, columns=list(columns))


def people(atlas: Atlas, base: str = BASE) -> pd.DataFrame:
    """Changes on real user questions: sites, topics, the pooled effect with sites as groups, and the sites."""
    import pandas as pd

    rows = []
    for change in changes_of(atlas, base):
        by_change = atlas.rows(change, base, "people", learned=True)
        if len(by_change) < 2:
            continue
        pooled = tables.pooled(by_change)
        low, high = statistics.interval(pooled, pooled.error)
        direction = "" if low <= 0 <= high else ("helps" if pooled.effect > 0 else "harms")
        if changes.has_ranker(change) != changes.has_ranker(base):
            direction = "learned on these sites"
        if not pooled.has_enough_collections:
            direction = "no claim"
        ends = f"{by_change['effect'].min():+.3f} to {by_change['effect'].max():+.3f}"
        rows.append(
            {
                "change": f"`{change}`",
                "sites": len(by_change),
                "questions": int(by_change["topics"].sum()),
                "change of nDCG@10": with_interval(pooled.effect, low, high),
                "better": int(by_change["better"].sum()),
                "worse": int(by_change["worse"].sum()),
                "helps": f"{int((by_change['effect'] > 0).sum())} of {len(by_change)}",
                "by site": ends,
                "": direction,
            }
        )
    return pd.DataFrame(rows)


_COLUMNS = ["change", "change of nDCG@10", "helps", "by site", ""]


def write(atlas: Atlas, docs: Path) -> list[Path]:
    """Write `research/atlas.md`, its figure and the tables between the marks of other pages; return the paths.

    Raises ConfigError where a page has lost its marks.
    """
    files.write_text(docs / PICTURE, picture(atlas))
    files.write_text(docs / PAGE, page(atlas))
    written = [docs / PICTURE, docs / PAGE]
    path = docs / "findings.md"
    if path.is_file():
        pages.write_between(path, MARK, findings(atlas))
        written.append(path)
    return written


def main_changes(atlas: Atlas) -> pd.DataFrame:
    """The effects of presets, switches and proposals with their own names, without variants of their parameters."""
    groups = changes.groups()
    named = {*groups["first"], *groups["switches"], *_PROPOSALS}
    frame = effects_table(atlas)
    return frame[frame["change"].isin(named)]


def picture(atlas: Atlas) -> str:
    """The figure of all changes, as SVG."""
    rows = [
        Line(row["change"], row["effect"], row["low"], row["high"], (row["new_low"], row["new_high"]))
        for row in main_changes(atlas).to_dict(orient="records")
        if row["collections"] >= minimums.COLLECTIONS
    ]
    return svg(rows, "Change of nDCG@10 on plain_hybrid: mean [.95], and a new collection (thin)")


def findings(atlas: Atlas) -> str:
    """Return the short table of docs/findings.md: the thirteen on user questions."""
    frame = people(atlas)
    table = frame.loc[frame["change"].isin(_alone()), _COLUMNS]
    names = {f"`{number}`": f"`{number}` ({name})" for number, name in ALIASES.items()}
    return markdown(table.assign(change=table["change"].replace(names)))


def _alone() -> list[str]:
    return [f"`{name}`" for name in (*_PROPOSALS, "graph", "community")]


def page(atlas: Atlas) -> str:
    """The page docs/research/atlas.md."""
    facts = atlas.collections
    counts = facts.groupby("questions").agg(collections=("collection", "size"), topics=("topics", "sum"))
    counted = "; ".join(
        f"{int(row['collections'])} with {QUESTIONS[str(kind)]} ({int(row['topics'])})"
        for kind, row in counts.iterrows()
    )
    parts = [
        _HEAD.format(
            collections=len(facts),
            counted=counted,
            kinds=", ".join(sorted(facts["kind"].unique())),
            languages=", ".join(sorted(facts["language"].unique())),
            least=int(facts["documents"].min()),
            most=int(facts["documents"].max()),
            other=int((facts["software"] == 0).sum()),
            learned=int(facts["learned"].sum()),
        ),
        "![Every change: the mean and what to expect on a new collection](../images/atlas.svg)",
        "## Every change on `plain_hybrid`",
        _table(main_changes(atlas)),
        "## Presets against `baseline`",
        _table(effects_table(atlas, "baseline")),
        "## What effects vary with",
        _moderators(atlas),
        "## The collections",
        _collections(atlas),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


_HEAD = """# The atlas of effects

Generated by `python -m research.atlas page` from the tables in `ragbench/extras/atlas`; do not edit it.

The effect of each change on {collections} collections: {counted}. Kinds of documents: {kinds}; languages: {languages};
{least} to {most} documents; {other} of them not about software. The effect is the change of nDCG@10 of documents. Each
collection weighs by the certainty of its own effect (random effects, intervals of Hartung and Knapp). *New collection*
is the 95% prediction interval for a collection that was not measured. Nothing is claimed from fewer than ten
collections, and latency is not in the atlas, because the machine was shared.

After a run with fewer than 100 queries, `ragbench run` prints the *predicted effect*: the prior is the prediction for a
new collection, your queries are the likelihood, both normal. That is advice and never a verdict;
`export --accept-predicted` writes it into the bundle. [Methods](methods.md#the-atlas) reports how well it predicts.
`python -m research.atlas fetch` and `measure` repeat the measurement in a checkout.

The ranker in `recommended` was trained on queries of {learned} of these collections (`learned` below), so they do not
count where only one of two searches has it. Queries that are derived from documents favour features that read names."""


def _table(frame: pd.DataFrame) -> str:
    """The rows of `effects_table` as markdown; no number where there are too few collections."""
    import pandas as pd

    rows = []
    for row in frame.to_dict(orient="records"):
        enough = row["collections"] >= minimums.COLLECTIONS
        mean = with_interval(row["effect"], row["low"], row["high"])
        rows.append(
            {
                "change": f"`{row['change']}`",
                "helps": f"{row['helps']} of {row['collections']}",
                "mean": mean if enough else "-",
                "new collection": interval(row["new_low"], row["new_high"]) if enough else "-",
                "I2": f"{row['i2']:.2f}" if enough else "-",
            }
        )
    return markdown(pd.DataFrame(rows)) if rows else ""


def _moderators(atlas: Atlas) -> str:
    import pandas as pd

    rows = [
        {
            "change": f"`{change}`",
            "property": moderator.name.replace("_", " "),
            "slope": with_interval(moderator.slope, moderator.low, moderator.high),
        }
        for change in main_changes(atlas)["change"]
        for moderator in statistics.moderators(atlas, change)
        if moderator.low > 0 or moderator.high < 0
    ]
    note = (
        "The change of the effect for one standard deviation more of a property, shrunk to 0; only slopes whose "
        "interval of .95 lies on one side of 0. Properties were chosen before measuring: documents, median words and "
        "links per document (logarithms), share of code, words of a query, real user questions."
    )
    return f"{note}\n\n{markdown(pd.DataFrame(rows))}" if rows else f"{note} None does."


def _collections(atlas: Atlas) -> str:
    columns = ["collection", "questions", "language", "documents", "topics", "learned", "source", "licence"]
    frame = atlas.collections.sort_values(["questions", "collection"])[columns]
    frame = frame.assign(source=frame["source"].fillna(""))
    return "\n\n".join(filter(None, (_other_languages(atlas), markdown(frame))))


def _other_languages(atlas: Atlas) -> str:
    """The collections in other languages with what all their searches had instead of the English model and stems."""
    others = atlas.collections[atlas.collections["language"] != "en"].sort_values("collection")
    described = [
        f"`{row['collection']}` {' '.join(f'`{key}`' for key in str(row['command']).split() if 'index.' in key)}"
        for row in others.to_dict(orient="records")
    ]
    return (
        f"In all searches of collections in other languages, as `ragbench init` proposes: {'; '.join(described)}."
        if described
        else ""
    )


@dataclass(frozen=True)
class Line:
    """A row: the effect, its interval, and the wider one of a prediction."""

    name: str
    effect: float
    low: float
    high: float
    predicted: tuple[float, float]


def svg(lines: Sequence[Line], title: str) -> str:
    """Rows from top to bottom around a line at 0; the interval is thick, the prediction thin."""
    ends = [0.0, *(end for row in lines for end in (row.low, row.high, *row.predicted))]
    margin = 0.05 * (max(ends) - min(ends))
    x = Scale(min(ends) - margin, max(ends) + margin, 20 + 6.5 * max((len(row.name) for row in lines), default=0), 700)
    bottom = _TOP + _ROW * len(lines)
    shapes = [text(12, 18, title, "start")]
    for tick in x.ticks():
        shapes += [line(x(tick), _TOP, x(tick), bottom, GRID), text(x(tick), bottom + 18, f"{tick:.3g}")]
    shapes.append(line(x(0.0), _TOP, x(0.0), bottom, GREY))
    for number, row in enumerate(lines):
        y = _TOP + _ROW * (number + 0.5)
        shapes.append(text(x.start - 8, y + 4, row.name, "end"))
        shapes.append(line(x(row.predicted[0]), y, x(row.predicted[1]), y, GREY))
        shapes += [line(x(row.low), y, x(row.high), y, BLUE, 3), mark(x(row.effect), y, 5.0, BLUE)]
    return document(bottom + 28, shapes)
