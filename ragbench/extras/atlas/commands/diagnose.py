"""`ragbench diagnose` (Understand a search): show at which stage relevant sections or documents were lost."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ragbench.base import console
from ragbench.base.types import ResultsError, counted
from ragbench.evaluation import contexts, diagnosis

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results import measurements

_DECISIONS = 5  # of an arm
DESCRIPTION = """Show at which stage relevant sections were lost, for all queries of a finished run or for one query.

If few queries have judged sections, it shows lost documents instead. A context is what fits into `context_tokens`; its
pollution is the share from folders, or document types, without a relevant section."""
EXAMPLES = """examples:
  ragbench diagnose                                     the newest run
  ragbench diagnose @2 --arms baseline,all              the previous run
  ragbench diagnose --query gate-07 --arms baseline,all
  ragbench diagnose --query "how do I rotate a key"
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which run, arms and query."""
    parser.add_argument("--arms", metavar="ARM,ARM", help="comma-separated arms (default: all of the run)")
    parser.add_argument(
        "--query",
        metavar="QID|TEXT",
        help="show one query, by its id or its text, with one row for each relevant section or document",
    )
    console.add_runs(parser, "?")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Read the diagnosis of the arms and print it."""
    from ragbench.report import tables
    from ragbench.results import measurements
    from ragbench.workbench.runs import named_runs, split_words

    (folder,), settings = named_runs(arguments.words, limit=1)
    loaded = measurements.load(folder)
    measurements.refuse_other_data(loaded, settings.config, split_words(arguments.words)[1])
    arm_names = loaded.arms
    arms = arguments.arms.split(",") if arguments.arms else arm_names
    for arm in arms:
        if arm not in arm_names:
            raise ResultsError(f"{folder} has no arm '{arm}'; it has {', '.join(arm_names)}")
    fates, tokens = (frame[frame["arm"].isin(arms)] for frame in (loaded.fates, loaded.delivered))
    if not len(fates):
        raise ResultsError(f"{folder} has no diagnosis: none of its topics has a relevant judgment")
    unit = diagnosis.unit(fates)
    if arguments.query:
        qid = _qid(loaded, arguments.query)
        fates, tokens = (frame[frame["qid"] == qid] for frame in (fates, tokens))
        if fates.empty:
            raise ResultsError(f"query '{arguments.query}' has no relevant {unit.removesuffix('s')} in {folder}")
        if arguments.json:
            console.print_json(fates)
            return 0
        columns = fates.drop(columns="qid").rename(columns={"section": unit.removesuffix("s")})
        console.print_table(columns, f"Query {arguments.query}", in_pipe=console.SCREEN)
    elif arguments.json:
        by_folder = contexts.polluters(tokens)
        console.print_json({"fates": fates, "contexts": contexts.shares(tokens), "polluters": by_folder})
        return 0
    else:
        lost = diagnosis.losses(fates).rename(columns={"sections": unit})
        console.print_text(*sentences(fates), *_decisions(loaded, arms), in_pipe=console.SCREEN)
        console.print_table(lost, f"Relevant {unit} by outcome", {"share": ".1%"}, console.SCREEN)
    tables.show_contexts(loaded, tokens)
    return 0


def _qid(loaded: measurements.Measurements, query: str) -> str:
    """The id of the query with this id, or this text. Raises ResultsError if the run has none, or several."""
    topics = loaded.topics
    same = topics["text"].str.strip().str.casefold() == query.strip().casefold()
    found = [query] if (topics["qid"] == query).any() else topics.loc[same, "qid"].tolist()
    if len(found) != 1:
        example = f"{loaded.folder} has {counted(len(topics), 'query')}, such as {topics['qid'].iloc[0]}"
        several = f"is the text of several queries ({', '.join(found)}): specify one by its id"
        raise ResultsError(f"'{query}' {several if found else f'is neither the id nor the text of a query: {example}'}")
    return str(found[0])


def _decisions(loaded: measurements.Measurements, arms: Sequence[str]) -> Iterator[str]:
    """What stages decided by query, and for how many of an arm's queries, the most frequent first."""
    from ragbench.boundary.yaml import read_yaml_file
    from ragbench.results import measurements

    for arm in arms:
        notes = read_yaml_file(loaded.arm_path(arm) / measurements.METADATA).get("notes") or {}
        for note, queries in sorted(notes.items(), key=lambda pair: -pair[1])[:_DECISIONS]:
            yield f"{arm}: {counted(queries, 'query')}: {note}"


def sentences(fates: pd.DataFrame) -> list[str]:
    """The losses in words: `dropped (p10): 31 of 74 relevant sections`."""
    relevant = fates.groupby("arm").size().to_dict()
    lines, relevant_units = [], f"relevant {diagnosis.unit(fates)}"
    for row in diagnosis.losses(fates).to_dict(orient="records"):
        if row["outcome"] != diagnosis.FOUND:
            change = f"{row['outcome']} ({row['stage']})"
            lines.append(f"{row['arm']}: {change}: {row['sections']} of {relevant[row['arm']]} {relevant_units}")
    return lines
