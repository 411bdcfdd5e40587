"""Train the ranker that is shipped, with a ranker without each site and a data sheet.

    python -m research.shared_ranker sites.yaml exp=recommended ranker=off --write questions --sheet SHEET

Writes `questions`, `questions-without-SITE` for the atlas, and a data sheet: what the ranker was trained on, how, and
what it gains on sites that it has not seen. sites.yaml lists collections; paths are relative to it:

    - name: uv-docs
      words: data=vault data.corpus=uv/vault data.queries=uv/queries.jsonl data.qrels=uv/qrels/test.tsv
      weight: 1          # weight of each query; also kind, site, split
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import console
from ragbench.base.console import markdown
from ragbench.base.files import write_text
from ragbench.base.fingerprint import digest
from ragbench.base.types import BAD_INPUT, RagbenchError, interval
from ragbench.extras.atlas.changes import WITHOUT
from ragbench.extras.fit import training
from ragbench.search.ranking import trees
from research import ltr_multi
from research.ltr_multi import MODELS, SPEC, Order

if TYPE_CHECKING:
    import pandas as pd

_READ_MOST = 15  # features that are listed


def main(given: list[str] | None = None) -> int:
    """Train, write the options and the sheet."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collections", type=Path, metavar="FILE", help="YAML list of judged collections")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    parser.add_argument("--write", required=True, metavar="NAME", help="the name of the ranker")
    parser.add_argument("--rounds", type=int, default=SPEC.rounds, metavar="N", help="number of trees of each model")
    parser.add_argument("--sheet", type=Path, required=True, metavar="FILE", help="the data sheet in markdown")
    arguments = parser.parse_intermixed_args(given)
    try:
        _train(arguments)
    except RagbenchError as error:
        print(error, file=sys.stderr)
        return BAD_INPUT
    return 0


def _train(arguments: argparse.Namespace) -> None:
    collections = ltr_multi.read(arguments.collections)
    spec = replace(SPEC, rounds=arguments.rounds)
    with console.progress(False):
        order, table = ltr_multi.learn_from(collections, arguments.overrides, spec)
    training.write_order(arguments.write, order.stage, order.comment)
    for site, model in order.without.items():
        name = arguments.write + WITHOUT + re.sub(r"[^\w-]", "-", site)
        training.write_order(name, replace(order, model=model).stage, f"{order.comment} Here without {site}.")
    write(arguments.sheet, order, table, arguments.write, arguments.overrides)


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
    command = shlex.join(["python", "-m", "research.shared_ranker", "FILE", "--write", name, *arguments])
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
- trees: {len(order.model):,} bytes, `{trees.named(name, order.model)}`
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


if __name__ == "__main__":
    sys.exit(main())
