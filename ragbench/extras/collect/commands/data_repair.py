"""`ragbench data repair`: give judgments the names that their pages have now, after documents moved."""

from __future__ import annotations

import argparse
import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import console
from ragbench.base.types import ConfigError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragbench.benchmark.label_health import Followed

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Find where judged pages and sections are after documents changed, and print what became of each.

Evidence is the history of git, addresses in the frontmatter (aliases, redirect_from), the text of the pages, the folder
to which their neighbours moved, and the redirects of the site (such as _redirects, or redirect_maps of MkDocs). With
--write, repaired copies are written next to the files, which stay. Doubtful and lost judgments are listed and omitted;
rewritten pages keep theirs.
"""
EXAMPLES = """examples:
  ragbench data repair data=vault data.corpus=notes data.queries=queries.csv
  ragbench data repair data=vault data.corpus=notes data.queries=queries.csv --write
  ragbench data repair data=vault data.corpus=docs data.queries=queries.csv --since v2.0
  ragbench data repair data=vault data.corpus=docs --golden golden.json --before ../docs-of-last-year
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The data, the earlier state, whether to write, output options."""
    console.add_overrides(parser)
    parser.add_argument(
        "--since",
        default="",
        metavar="COMMIT",
        help="commit whose documents were judged (default: the last commit that changed the judgments)",
    )
    parser.add_argument("--before", metavar="FOLDER", help="folder with the documents that were judged, without git")
    parser.add_argument("--golden", metavar="FILE", help="repair this golden file of ragbench gate instead")
    parser.add_argument("--write", action="store_true", help="write repaired copies; the old files stay")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Follow every name and print the report; with --write, write the copies."""
    from ragbench.benchmark.label_health import health
    from ragbench.config import composition
    from ragbench.config.benchmark import documents
    from ragbench.extras.collect import repair
    from ragbench.extras.follow.followed_labels import EarlierState, follow_names

    if arguments.since and arguments.before:
        raise ConfigError("--since and --before both say what was judged: use one of them")
    data = composition.compose(arguments.overrides).config["data"]
    paths = _paths(data, arguments.golden)
    sources = [file for path in paths for file in repair.judgment_files(path)]
    pages = documents(data).documents
    names = {name: None for file in sources for name in repair.written_names(file)}
    if not names:
        raise ConfigError(f"{', '.join(map(str, sources or paths))}: no judgment names a document or section")
    state = EarlierState(arguments.since, Path(arguments.before) if arguments.before else None)
    followed = follow_names(names, pages, Path(data["corpus"]), sources, state)
    report = [one for one in followed.items() if one[1].outcome != "stands"]
    found = health(followed.values())
    fixes = repair.Repair(followed, {page.docno: page for page in pages})
    if arguments.json:
        shown = {name: replace(one, target=name, targets=tuple(fixes.styled(name))) for name, one in followed.items()}
        console.print_json({"health": found, "followed": shown})
    else:
        print(f"{found.sentence().replace('judgment', 'judged name')}")
        for name, one in sorted(report, key=lambda item: (item[1].outcome, item[0])):
            print(_line(name, one, fixes.styled(name)))
    if not arguments.write:
        if not arguments.json and not found.is_sound:
            print("nothing is written: add --write for repaired copies of " + ", ".join(map(str, paths)))
        return 0
    for path in paths:
        _LOG.info(f"wrote {repair.write(path, fixes)}; {path} is unchanged")
    return 0


def _paths(data: Any, golden: str | None) -> list[Path]:
    """The files and folders that hold judgments. Raises ConfigError without any."""
    if not data.get("corpus"):
        raise ConfigError("data.corpus is not set: specify the folder of the documents, such as data.corpus=notes")
    keys = ("queries", "qrels") if data["loader"] == "vault" else ("qrels",)
    paths = [Path(golden)] if golden else [Path(data[key]) for key in keys if data.get(key)]
    if not paths:
        raise ConfigError("no file of judgments is set: specify data.queries, data.qrels or --golden")
    for path in paths:
        if not path.exists():
            raise ConfigError(f"{path} does not exist: specify a file or folder of judgments")
    return paths


def _line(name: str, one: Followed, targets: Sequence[str]) -> str:
    """A name in the report."""
    where = f" -> {', '.join(targets)}" if one.targets and one.targets != (one.target,) else ""
    said = " (doubtful: omitted)" if one.doubtful else " (omitted)" if not one.targets else ""
    said = " (kept: check that it still answers)" if one.outcome == "rewritten" else said
    return f"{one.outcome:9} {name}{where}, confidence {one.confidence:.2f}: {one.reason}{said}"
