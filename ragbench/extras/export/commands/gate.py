"""`ragbench gate` (Ship it): compare a run with a reference, and fail if it is worse."""

from __future__ import annotations

import argparse
import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import console, files, registry
from ragbench.base.options import as_options
from ragbench.base.types import ConfigError, RagbenchError, ResultsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ragbench.config.settings import Settings
    from ragbench.extras.export.gate import Limits
    from ragbench.extras.export.measured_arm import MeasuredArm

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Compare a run with a pinned reference: exit code 1 if it is worse, 3 if the result is inconclusive.

It passes if documents and passages both lose less than the margin, and p95 stays within the budget. It fails if one is
significantly worse. With too few queries for either, it prints how many more are needed. The reference is pinned in the
project, because small losses against the previous run would add up.

With --base, it measures the notes before and after a change and lists the queries that were lost and won.

With --golden and --search, it asks any search for the queries of a file, and fails if one is lost, or if a measure
drops significantly. It needs no run, no index and no configuration."""
EXAMPLES = """examples:
  ragbench gate --pin @3/recommended                    later runs are compared with this arm
  ragbench gate                                         check the arm of that name in the newest run
  ragbench gate @2/phase1 @1/phase1                     two arms
  ragbench gate results/runs/A results/runs/B --margin 0.01 --latency-tolerance 0.5
  ragbench gate --base origin/main exp=recommended --markdown gate.md
  ragbench gate --max-pollution 0.3                     fails if over 30% of a context is from the wrong folders
  ragbench gate --golden golden.json --search "https://docs.example.org/search.json?q={query}" --write-baseline
  ragbench gate --golden golden.json --search "https://docs.example.org/search.json?q={query}"
  ragbench gate --golden golden.yaml --search "mcp:npx some-server" --tool search_docs --tool search_api
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Both runs, the limits, overrides and output options."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="run|key=value",
        help="the reference (default: the pinned run) and the run to check (default: @1), "
        "each a folder, a part of its name, @2 or @2/ARM; settings",
    )
    parser.add_argument(
        "--pin", metavar="RUN", help="store this run or arm in the project as the reference of later gates"
    )
    parser.add_argument(
        "--base",
        metavar="COMMIT",
        help="measure the settings on this folder at a commit of Git, such as origin/main, and as it is; compare both",
    )
    parser.add_argument(
        "--measure",
        metavar="NAME",
        help="measure at document level (default: that of the reference); with --golden, some, such as R@1,R@10,RR",
    )
    parser.add_argument(
        "--margin",
        type=float,
        metavar="X",
        help="largest nDCG@10 loss that passes (default: half of statistics.smallest_effect). With 0, only a "
        "significant loss fails",
    )
    parser.add_argument(
        "--latency-tolerance",
        type=float,
        metavar="SHARE",
        help="how much higher p95 may be, as a share (default: the recorded budget in milliseconds)",
    )
    parser.add_argument(
        "--confidence",
        metavar="SHARE",
        type=float,
        help="confidence level of the test (default: the reference's)",
    )
    parser.add_argument(
        "--max-pollution",
        type=float,
        metavar="SHARE",
        help="largest share of a context that may come from folders, or from document types, without a relevant "
        "section (default: not checked)",
    )
    parser.add_argument(
        "--changed-data", action="store_true", help="compare although documents, queries or judgments changed"
    )
    parser.add_argument(
        "--markdown", metavar="FILE", help="also write the outcome as markdown, for a comment on the pull request"
    )
    golden = parser.add_argument_group("any search, with a golden file")
    golden.add_argument("--golden", metavar="FILE", help="queries with expected pages: JSON, JSON Lines, YAML or CSV")
    golden.add_argument(
        "--search",
        metavar="URL|PROGRAM|mcp:...",
        help="the search: a URL or program with {query}, a program that reads and prints JSON Lines, or mcp: and the "
        "URL or program of an MCP server",
    )
    golden.add_argument("--write-baseline", action="store_true", help="write the ranks of now as the baseline")
    golden.add_argument(
        "--baseline", metavar="FILE", help="file of ranks (default: next to the golden file, FILE.baseline.json)"
    )
    golden.add_argument(
        "--tool", action="append", metavar="NAME", help="tool of the MCP server (repeatable; default: search)"
    )
    golden.add_argument(
        "--arguments", metavar="JSON", help="arguments of the tool, or a body to POST, with {query} and {depth}"
    )
    golden.add_argument("--hits", metavar="PATH", help="where the hits are in an answer (JMESPath; default: inferred)")
    golden.add_argument("--document", metavar="PATH", help="where a hit has its id, path or URL (default: inferred)")
    golden.add_argument("--token", metavar="VARIABLE", help="environment variable with a bearer token for the URL")
    golden.add_argument(
        "--allow-lost", type=int, default=0, metavar="N", help="number of lost queries that pass (default: 0)"
    )
    golden.add_argument(
        "--max-drop",
        type=float,
        metavar="X",
        help="drop of a measure that fails, significant or not (default: only a significant one)",
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Compare and print; 1 when the candidate is worse, 3 when too little is known to say."""
    try:
        return _compare(arguments)
    except RagbenchError as error:
        if arguments.markdown:
            from ragbench.extras.export.gate_page import refused

            files.write_text(Path(arguments.markdown), refused(str(error)))
        raise


def _compare(arguments: argparse.Namespace) -> int:
    if arguments.golden or arguments.search:
        if not arguments.golden:
            raise ConfigError("--search needs --golden: a file of queries with the pages that answer them")
        return int(registry.required("hook", "golden_gate", "--golden")(arguments))
    from ragbench.config import composition
    from ragbench.extras.export import measured_arm
    from ragbench.extras.export.gate import Limits
    from ragbench.workbench.runs import find, split_words

    with as_options():
        limits = Limits(
            arguments.measure,
            arguments.margin,
            arguments.latency_tolerance,
            arguments.confidence,
            arguments.changed_data,
            arguments.max_pollution,
        )
    named, overrides = split_words(arguments.words)
    if arguments.base:
        return _since(arguments, limits, named, overrides)
    if len(named) > 2:
        raise ConfigError(f"two runs are compared, got {', '.join(named)}: ragbench gate OLD NEW")
    settings = composition.compose(overrides)
    if arguments.pin:
        if named:
            raise ConfigError("--pin names the run to keep: ragbench gate --pin @1, then ragbench gate")
        pinned = measured_arm.find(find(arguments.pin, settings))
        file = measured_arm.pin(pinned.folder)
        _LOG.info(f"pinned in {file}: {pinned.name} of {pinned.results.folder.name}")
        return 0
    first, second = [*(named or [_pinned(settings)]), "@1"][:2]
    baseline = measured_arm.find(find(first, settings))
    candidate = measured_arm.find(find(second, settings), like=baseline.name)
    return _show(arguments, limits, baseline, candidate)


def _since(arguments: argparse.Namespace, limits: Limits, named: Sequence[str], overrides: Sequence[str]) -> int:
    """Measure the files of a commit and those of now, and compare."""
    from ragbench.extras.export import commits, measured_arm

    if named or arguments.pin:
        raise ConfigError("--base measures both sides: omit runs and --pin, and give settings such as exp=recommended")
    with commits.measured(arguments.base, overrides, arguments.trust) as folders:
        baseline, candidate = map(measured_arm.find, folders)
        return _show(arguments, replace(limits, changed_data=True), baseline, candidate)


def _show(arguments: argparse.Namespace, limits: Limits, baseline: MeasuredArm, candidate: MeasuredArm) -> int:
    from ragbench.extras.export.gate import exit_code, gate, markdown, show

    checks = gate(baseline, candidate, limits)
    if arguments.markdown:
        text = markdown(checks, exit_code(checks), baseline, candidate)
        files.write_text(Path(arguments.markdown), text)
    return show(checks, arguments.json)


def _pinned(settings: Settings) -> str:
    """Return the folder of the pinned run. ConfigError if none is pinned, ResultsError if it or every run is gone."""
    from ragbench.config import project
    from ragbench.results import store

    project_file = project.find()
    if project_file is None or project_file.gate is None:
        newest = store.latest(settings.results)
        if len(store.finished_runs(settings.results)) == 1:
            raise ConfigError(
                f"{newest.name} is the only run: pin it with ragbench gate --pin @1, then gate a later run"
            )
        raise ConfigError("no run is pinned to compare with: ragbench gate --pin @2, or name it: ragbench gate @2 @1")
    if not project_file.gate.exists():
        raise ResultsError(
            f"the run pinned in {project_file.file} is gone ({project_file.gate}): ragbench gate --pin RUN"
        )
    return str(project_file.gate)
