"""The commands, one module each: `DESCRIPTION`, `EXAMPLES`, `add_arguments(parser)`, `main(arguments)`.

`GROUPS` is what `ragbench --help` shows. A command of `WORDS` also takes sub-commands, in modules of their own:
`ragbench fit ranker` is `fit_ranker`. A module is imported only when its command is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragbench.base import plugins

_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Measure and compare": {
        "init": "inspect a folder of notes and write ragbench.yaml for later commands",
        "run": "measure one or more configurations on a benchmark",
        "ablate": "measure the effect of each option with an ablation design",
        "compare": "compare finished runs, TREC run files of other systems, or fusion methods",
        "report": "write a finished run as one HTML file that opens offline",
        "studio": "judge results in a browser, and compare the results of one query",
    },
    "Understand a search": {
        "search": "search the collection and explain each result",
        "diagnose": "show at which stage relevant sections or documents were lost",
        "agents": "measure the tokens and calls that a search saves simulated agents",
        "advise": "suggest the next changes for a finished run, with their commands",
        "list": "list presets, options, parameters, data and models; print a configuration",
    },
    "Improve it": {
        "tune": "tune hyperparameters on the training queries, confirm them once on the test queries",
        "fit": "train a calibration or a ranker on judged queries",
    },
    "Ship it": {
        "export": "write a measured configuration for another system, or as a bundle that runs elsewhere",
        "refresh": "re-index changed files in a bundle and report drift",
        "verify": "check that a bundle returns the measured results on this machine",
        "gate": "compare a run with a reference, and fail if it is worse",
        "serve": "serve a bundle over HTTP, or to editors and agents over MCP",
    },
    "Queries and judgments": {
        "data": "check a benchmark, or pool unjudged results",
        "topics": "generate queries from documents or logs, and count them by type",
        "judge": "grade a pool and merge the grades",
    },
    "Maintain the installation": {
        "index": "build the index artefacts and inspect them",
        "track": "write finished runs to MLflow, and open MLflow",
        "doctor": "check Java, models, Lucene, FAISS, MLflow, disk",
    },
}


GROUPS: Mapping[str, Mapping[str, str]] = {
    title: {name: line for name, line in group.items() if plugins.module("commands", name)}
    for title, group in _GROUPS.items()
}
"""The commands by task, each with one line."""

SUMMARY: Mapping[str, str] = {name: line for group in GROUPS.values() for name, line in group.items()}

WORDS: Mapping[str, Mapping[str, str]] = {
    "data": {
        "check": "errors in queries and judgments that distort results",
        "power": "the smallest difference that a finished run can detect",
        "pool": "the unjudged results of runs as a table to fill in",
        "comparisons": "earlier comparisons on these queries, and the unused queries",
    },
    "fit": {
        "calibration": "isotonic calibration on the training queries",
        "ranker": "a ranker, from your own judged queries",
    },
    "list": {
        "config": "print the composed configuration and the pipeline as a sentence",
    },
    "serve": {"mcp": "answer searches of editors and agents over MCP from a bundle"},
    "topics": {
        "derive": "generate synthetic queries from the documents",
        "draft": "let a language model draft queries about the documents",
        "from-log": "sample user queries from a search log",
        "threads": "take user questions from an issue tracker or forum",
        "threads-reviewed": "keep the questions of a review sheet",
    },
    "track": {"ui": "open MLflow with the store that the runs were written to"},
}
"""The sub-commands of a command, each with one line."""


@dataclass(frozen=True)
class Call:
    """A command as it is called: its name in one or two words, the words that follow, the module that runs it."""

    name: str
    rest: tuple[str, ...]
    module: str


def call(arguments: Sequence[str]) -> Call | None:
    """Return the command that the arguments after `ragbench` call; None if the first is not a command."""
    first, *rest = arguments
    if first not in SUMMARY:
        if first not in plugins.names("ragbench.commands"):
            return None
        return Call(first, tuple(rest), plugins.load("ragbench.commands", first, "command").__name__)
    size = 2 if rest and rest[0] in WORDS.get(first, {}) else 1
    return Call(
        " ".join(arguments[:size]),
        tuple(arguments[size:]),
        plugins.module("commands", "_".join(arguments[:size]).replace("-", "_")) or "",
    )


def everything() -> tuple[str, ...]:
    """The names of all commands and sub-commands."""
    return tuple(SUMMARY) + tuple(f"{name} {word}" for name, words in WORDS.items() for word in words)
