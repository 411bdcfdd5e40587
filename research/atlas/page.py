"""The atlas as pages of the documentation, with forest plots; every number comes from its tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import files, minimums
from ragbench.base.console import markdown
from ragbench.base.formatting import interval, with_interval
from ragbench.config.catalogue.names import ALIASES
from ragbench.extras.atlas import changes, tables
from ragbench.extras.atlas.changes import BASE
from ragbench.extras.atlas.page import by_collection, effects_table
from ragbench.extras.atlas.tables import QUESTIONS, WORDS, Atlas
from ragbench.report.figures import BLUE, GREY
from research.atlas.svg import GRID, Scale, document, line, mark, text
from tools import pages

if TYPE_CHECKING:
    import pandas as pd

PAGE, MARK = Path("research", "atlas.md"), "atlas"
_PROPOSALS = tuple(f"p{number}" for number in range(1, 14))
_ROW, _TOP = 20.0, 28.0  # pixels


def people(atlas: Atlas, base: str = BASE) -> pd.DataFrame:
    """Changes on real user questions: sites, topics, the pooled effect with sites as groups, and the sites."""
    import pandas as pd

    rows = []
    for change in atlas.changes(base):
        by_change = atlas.rows(change, base, "people", learned=True)
        if len(by_change) < 2:
            continue
        pooled = tables.pooled(by_change)
        direction = "" if pooled.low <= 0 <= pooled.high else ("helps" if pooled.effect > 0 else "harms")
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
                "change of nDCG@10": with_interval(pooled.effect, pooled.low, pooled.high),
                "better": int(by_change["better"].sum()),
                "worse": int(by_change["worse"].sum()),
                "helps": f"{pooled.helps} of {len(by_change)}",
                "by site": ends,
                "": direction,
            }
        )
    return pd.DataFrame(rows)


def _people_by_site(atlas: Atlas, named: Sequence[str], base: str = BASE) -> pd.DataFrame:
    """The effects of changes on real user questions: a row for every site, a column for every change."""
    import pandas as pd

    columns = {
        change: atlas.rows(change, base, "people", learned=True).set_index("collection")["effect"] for change in named
    }
    frame = pd.DataFrame({change: column for change, column in columns.items() if len(column)})
    table = frame.sort_index().map(lambda value: "" if value != value else f"{value:+.3f}")
    return table.reset_index(names="site")


def write(atlas: Atlas, docs: Path) -> list[Path]:
    """Write `research/atlas.md`, its figures and the tables between the marks of other pages; return the paths.

    Raises ConfigError where a page has lost its marks.
    """
    pictures = docs / "images"
    written = []
    for name, picture in _pictures(atlas).items():
        files.write_text(pictures / name, picture)
        written.append(pictures / name)
    files.write_text(docs / PAGE, page(atlas))
    written.append(docs / PAGE)
    for path, tables_of in (
        (docs / "research" / "proposals.md", proposals(atlas)),
        (docs / "findings.md", findings(atlas)),
    ):
        if path.is_file():
            pages.write_between(path, MARK, tables_of)
            written.append(path)
    return written


def _pictures(atlas: Atlas) -> dict[str, str]:
    frame = effects_table(atlas)
    rows = [
        Line(row["change"], row["effect"], row["low"], row["high"], (row["new_low"], row["new_high"]))
        for row in frame.to_dict(orient="records")
        if row["collections"] >= minimums.COLLECTIONS
    ]
    images = {"atlas.svg": svg(rows, "Change of nDCG@10 on plain_hybrid: mean [.95], and a new collection (thin)")}
    for change in _pictured(atlas):
        lines = [
            Line(str(row["collection"]), row["effect"], row["low"], row["high"], None, _size(row["topics"]))
            for row in by_collection(atlas, change).to_dict(orient="records")
            if not row[""]
        ]
        images[f"atlas-{change}.svg"] = svg(lines, f"{change} on plain_hybrid: change of nDCG@10 by collection")
    return images


def _pictured(atlas: Atlas) -> list[str]:
    """The changes that get a figure of their own: known from enough collections, and not without any effect."""
    ideas = ("recommended", "recommended-rank", *_PROPOSALS, "graph", "community")
    rows = {change: atlas.rows(change) for change in ideas}
    return [change for change, frame in rows.items() if len(frame) >= minimums.COLLECTIONS and frame["effect"].any()]


def _size(topics: float) -> float:
    return float(min(8.0, 2.0 + topics**0.5 / 3))


def findings(atlas: Atlas) -> str:
    """Return the short table of docs/findings.md: the thirteen on user questions."""
    frame = people(atlas)
    frame = frame[frame["change"].isin([f"`{name}`" for name in (*_PROPOSALS, "graph", "community")])]
    table = frame[["change", "sites", "questions", "change of nDCG@10", "helps", ""]]
    names = {f"`{number}`": f"`{number}` ({name})" for number, name in ALIASES.items()}
    return markdown(table.assign(change=table["change"].replace(names)))


def proposals(atlas: Atlas) -> str:
    """Return the tables of docs/research/proposals.md: each switch and preset on user questions, pooled and by site."""
    return "\n\n".join(
        [markdown(people(atlas)), "By site:", markdown(_people_by_site(atlas, [*_PROPOSALS, "graph", "community"]))]
    )


def page(atlas: Atlas) -> str:
    """The page docs/research/atlas.md."""
    facts = atlas.collections
    counts = facts.groupby("questions").agg(collections=("collection", "size"), topics=("topics", "sum"))
    counted = "; ".join(
        f"{int(row['collections'])} with {WORDS[str(kind)]} ({int(row['topics'])})" for kind, row in counts.iterrows()
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
        ),
        "![Every change: the mean and what to expect on a new collection](../images/atlas.svg)",
        "## Every change on `plain_hybrid`",
        _table(effects_table(atlas)),
        f"By collection: {', '.join(f'[{change}](../images/atlas-{change}.svg)' for change in _pictured(atlas))}.",
        "## By the kind of topics",
        *(
            f"### {WORDS[kind].capitalize()}\n\n{_table(effects_table(atlas, questions=kind))}"
            for kind in QUESTIONS
            if len(effects_table(atlas, questions=kind))
        ),
        "## Presets against `baseline`",
        _table(effects_table(atlas, "baseline")),
        "## What is added to `recommended`, or taken from it",
        _table(effects_table(atlas, "recommended")),
        "## What effects vary with",
        _moderators(atlas),
        "## Real user questions",
        "Every switch and preset, by site: [the proposals](proposals.md#which-of-them-pay-for-people).",
        "## The collections",
        _collections(atlas),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


_HEAD = """# The atlas of effects

Generated by `python -m research.atlas page` from the tables that `ragbench atlas` reads; do not edit it.

What is known of every change from {collections} collections: {counted}. Kinds of documents: {kinds}; languages:
{languages}; {least} to {most} documents; {other} of them not about software. The effect is the change of nDCG@10 of
documents, each collection weighs by the certainty of its own effect (random effects, intervals of Hartung and Knapp).
*New collection* is where the effect on one that was not measured is expected, with probability .95. Nothing is
claimed from fewer than ten collections. Times are not in the atlas: the machine was shared while it was measured.

- `ragbench atlas` prints it on one screen, `ragbench atlas show p7` a change by collection.
- After a run with fewer than 100 topics the screen prints the *predicted effect*: the prior is the prediction for a new
  collection, your topics are the likelihood, both normal. That is advice and never a verdict.
  `export --accept-predicted` writes it into the bundle.
- `ragbench atlas add @1` adds your own run to later predictions. It stays on your machine.
- `python -m research.atlas fetch` and `python -m research.atlas measure` repeat the measurement, in a checkout;
  [methods](methods.md#the-atlas) reports how well it predicts.

The order in `recommended` was learned from questions on fourteen of the sites. Where only one of two searches has
that order, these sites do not count (`learned` below): its gain there is measured with
that site held out ([order](order-questions.md#what-it-gains)). Topics that are derived from documents flatter what
reads names."""


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
                "collections": row["collections"],
                "topics": row["topics"],
                "helps": row["helps"],
                "mean": mean if enough else "-",
                "new collection": interval(row["new_low"], row["new_high"]) if enough else "-",
                "tau": f"{row['tau']:.3f}" if enough else "-",
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
        for change in atlas.changes()
        for moderator in atlas.moderators(change)
        if moderator.low > 0 or moderator.high < 0
    ]
    note = (
        "The change of the effect for one standard deviation more of a property, shrunk to 0; only slopes whose "
        "interval of .95 lies on one side of 0. Properties were chosen before measuring: documents, median words and "
        "links per document (logarithms), share of code, words of a query, real user questions."
    )
    return f"{note}\n\n{markdown(pd.DataFrame(rows))}" if rows else f"{note} None does."


def _collections(atlas: Atlas) -> str:
    columns = ["collection", "questions", "kind", "language", "documents", "topics", "median_words", "code_share"]
    frame = atlas.collections.sort_values(["questions", "collection"])[
        [*columns, "learned", "source", "licence", "digest"]
    ]
    versions = ", ".join(
        f"`{version}`" for version in sorted(set(", ".join(atlas.collections["version"].astype(str)).split(", ")))
    )
    frame = frame.assign(digest=frame["digest"].str[:12], source=frame["source"].fillna(""))
    frame = frame.rename(columns=lambda name: str(name).replace("_", " "))
    note = f"Measured with ragbench {versions} (version and commit).{_other_languages(atlas)}"
    return f"{note}\n\n{markdown(frame, {'median words': '.0f', 'code share': '.2f'})}"


def _other_languages(atlas: Atlas) -> str:
    """The collections in other languages with what all their searches had instead of the English model and stems."""
    others = atlas.collections[atlas.collections["language"] != "en"].sort_values("collection")
    described = [
        f"`{row['collection']}` {' '.join(f'`{key}`' for key in str(row['command']).split() if 'index.' in key)}"
        for row in others.to_dict(orient="records")
    ]
    return (
        f" In all searches of collections in other languages, as `ragbench init` proposes: {'; '.join(described)}."
        if described
        else ""
    )


@dataclass(frozen=True)
class Line:
    """A row: the effect, its interval, and optionally the wider one of a prediction; `size` is that of the mark."""

    name: str
    effect: float
    low: float
    high: float
    predicted: tuple[float, float] | None = None
    size: float = 5.0


def svg(lines: Sequence[Line], title: str) -> str:
    """Rows from top to bottom around a line at 0; the interval is thick, the prediction thin."""
    ends = [0.0, *(end for row in lines for end in (row.low, row.high, *(row.predicted or ())))]
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
        if row.predicted:
            shapes.append(line(x(row.predicted[0]), y, x(row.predicted[1]), y, GREY))
        shapes += [line(x(row.low), y, x(row.high), y, BLUE, 3), mark(x(row.effect), y, row.size, BLUE)]
    return document(bottom + 28, shapes)
