"""The data sheet of a learned order: what it was learned from, how, and what it gains on sites that it has not seen."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import pinned_text
from ragbench.base.console import markdown
from ragbench.base.files import write_text
from ragbench.base.fingerprint import digest
from ragbench.base.formatting import interval
from ragbench.extras.fit.ltr_multi import MODELS, Order
from ragbench.search.ranking import trees

if TYPE_CHECKING:
    import pandas as pd

_READ_MOST = 15  # features that are listed


def write(file: Path, order: Order, gains: pd.DataFrame, name: str, overrides: Sequence[str]) -> None:
    """Write the sheet of the order `name` in the pipeline of `overrides`; `gains` is the table of `order.gains`."""
    write_text(file, render(order, gains, name, overrides))


def render(order: Order, gains: pd.DataFrame, name: str, overrides: Sequence[str]) -> str:
    """The sheet in markdown."""
    import pandas as pd

    spec, grown = order.spec, trees.parse(order.model)
    facts = sorted({key for part in order.parts for key in part.collection.about})
    sources = pd.DataFrame(
        [
            {"collection": part.collection.name, **{key: part.collection.about.get(key, "") for key in facts}}
            | {"relevant": sum(len(ideal) for ideal in part.sample.ideals), "digest": part.digest[:12]}
            for part in order.parts
        ]
    )
    read = pd.DataFrame(list(order.importance.items())[:_READ_MOST], columns=["feature", "share of the gain of splits"])
    table = gains.assign(
        interval=[interval(low, high) if low == low else "" for low, high in zip(gains.low, gains.high, strict=True)]
    ).drop(columns=["low", "high"])
    arguments = [argument for argument in overrides if not argument.startswith("paths.")]
    command = shlex.join(["ragbench", "fit", "ranker", "--collections", "FILE", "--write", name, *arguments])
    lines = (
        "nDCG@10 of documents, `fused` without and `learned` with an order that was learned without the site: ",
        "each site is excluded in turn,\nwith every collection of the same documents. Intervals of a collection are ",
        "of its topics, those of a kind are of its sites, which are resampled whole. With *links hidden*\nthe same ",
        "orders see no link text and equal numbers of links, as in a vault without links; ",
        "the search under them is unchanged.",
    )
    intervals = "".join(lines)
    grew = (
        f"{len(grown)} trees of at most {spec.leaves} leaves: the mean of {MODELS} models of {spec.rounds} rounds "
        f"at rate {spec.rate:g}, at\n  least {spec.smallest} rows in a leaf, seeds {spec.seed} to "
        f"{spec.seed + MODELS - 1}; prior {spec.prior:g}, depth {spec.depth}"
    )
    learned_from = digest([part.digest for part in order.parts])[:12]
    return f"""# The order `{name}`: data sheet

Written by the command that learned it; `FILE` lists the collections below:

    {command} --sheet SHEET

- {grew}
- trees: {len(order.model):,} bytes, `{pinned_text.named(name, order.model)}`
- learned from: {learned_from} (documents, topics and judgments of all collections)

## What it gains

{intervals}

{markdown(table, {"weight": "g", "fused": ".3f", "learned": ".3f", "gain": "+.3f"})}

## What it was learned from

Texts of pages and questions are not part of ragbench; the order holds thresholds on relative features and no word.

{markdown(sources)}

## What it reads most

{markdown(read, {"share of the gain of splits": ".1%"})}
"""
