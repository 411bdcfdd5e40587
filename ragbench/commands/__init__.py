"""The commands, one module each: `DESCRIPTION`, `EXAMPLES`, `add_arguments(parser)`, `main(arguments)`.

`GROUPS` is what `ragbench --help` shows. A command of `WORDS` also takes sub-commands, in modules of their own:
`ragbench fit ranker` is `fit_ranker`. A module is imported only when its command is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ragbench.base import plugins

_GROUPS: Mapping[str, Mapping[str, str]] = {
    "Find out which ideas help": {
        "init": "look at a folder of notes and write ragbench.yaml, which later commands read",
        "run": "measure one configuration, or a sweep of them, on a benchmark",
        "ablate": "run the arms of a design and judge every proposal",
        "compare": "compare finished runs, also of other systems; encoders; ways to fuse",
        "atlas": "what is known of every change from other collections, and what to expect on yours",
        "report": "write a finished run as one HTML file that opens offline",
        "studio": "open the workbench in a browser: runs, queries, judgments, searches, experiments",
    },
    "Understand a search": {
        "search": "search the collection and see why each hit is there",
        "diagnose": "say at which stage relevant sections or documents were lost, and what could still be gained",
        "agents": "tokens and calls that a search saves an agent, by simulated policies",
        "advise": "say what is worth trying next on a finished run, with the commands",
        "list": "show experiments, switches, parameters, data and models; a configuration, terms",
    },
    "Improve it": {
        "tune": "search for better parameters on the training queries, confirm them once on the test queries",
        "fit": "learn from judged topics: calibration, the weights of fusion, an order of the hits",
    },
    "Ship it": {
        "export": "write a measured configuration for another system, or as a bundle that runs elsewhere",
        "refresh": "re-index changed files in a bundle and report drift",
        "rollback": "make a bundle answer again as before its latest refresh",
        "verify": "check on this machine that a bundle still does what was measured",
        "gate": "compare two runs and fail when the newer one is worse",
        "serve": "answer searches from a bundle: over HTTP, to editors and agents over MCP",
    },
    "Topics and judgments": {
        "data": "check a benchmark, split it, compare two judges, pool what is not judged",
        "topics": "derive topics from the documents, and show which kinds are short",
        "judge": "grade a pool and merge the grades",
    },
    "Keep house": {
        "index": "build the index artefacts and inspect them",
        "track": "write finished runs to MLflow from their folders, and open it",
        "doctor": "check Java, models, Lucene, FAISS, MLflow, disk",
        "completion": "make the shell complete commands, options and overrides",
    },
}


def _is_there(name: str) -> bool:
    return plugins.module("commands", name) is not None


GROUPS: Mapping[str, Mapping[str, str]] = {
    title: {name: line for name, line in group.items() if _is_there(name)} for title, group in _GROUPS.items()
}
"""The commands by task, each with one line."""

SUMMARY: Mapping[str, str] = {name: line for group in GROUPS.values() for name, line in group.items()}

WORDS: Mapping[str, Mapping[str, str]] = {
    "compare": {
        "encoders": "several encoders in the same search: quality, time to index and to ask, bytes",
        "fusions": "ways to fuse the sources of a finished run",
        "canary": "two bundles by user searches, from the log of ragbench serve --canary",
    },
    "data": {"pool": "write the unjudged pairs of runs as a table to fill"},
    "fit": {
        "adapter": "a map of the vectors of queries, kept only where questions gain",
        "calibration": "isotonic calibration on the training queries",
        "weights": "the weights of fusion on the training queries",
        "ranker": "a ranker, from your own judged queries or for collections without judgments",
    },
    "list": {
        "config": "print the composed configuration and the pipeline as a sentence",
        "terms": "the terms of the collection that are nearest to a text (P1)",
    },
    "serve": {"mcp": "answer searches of editors and agents over MCP from a bundle"},
    "track": {"ui": "open MLflow on the store the runs were written to"},
}
"""The sub-commands of a command, each with one line."""

OLD: Mapping[str, tuple[str, ...]] = {
    "bakeoff": ("compare", "encoders"),
    "calibrate": ("fit", "calibration"),
    "config": ("list", "config"),
    "fit order": ("fit", "ranker"),
    "fusion": ("compare", "fusions"),
    "learn-ranker": ("fit", "ranker", "--from-fusion"),
    "learn-weights": ("fit", "weights"),
    "mcp": ("serve", "mcp"),
    "pool": ("data", "pool"),
    "ui": ("track", "ui"),
    "vocabulary": ("list", "terms"),
}
"""Old names, in one word or two, that still work and are not shown."""


@dataclass(frozen=True)
class Call:
    """A command as it is called: its name in one or two words, the words that follow, the module that runs it."""

    name: str
    rest: tuple[str, ...]
    module: str


def call(words: Sequence[str]) -> Call | None:
    """Return the command that the arguments after `ragbench` call; None if the first is not a command."""
    first, *rest = words
    two = f"{first} {rest[0]}" if rest else ""
    found = [*OLD[two], *rest[1:]] if two in OLD else [*OLD.get(first, (first,)), *rest]
    if found[0] not in SUMMARY:
        return _of_another_package(first, rest)
    size = 2 if found[1:2] and found[1] in WORDS.get(found[0], {}) else 1
    return Call(" ".join(found[:size]), tuple(found[size:]), plugins.module("commands", "_".join(found[:size])) or "")


def _of_another_package(name: str, rest: Sequence[str]) -> Call | None:
    """The call of a command that an entry point of the group `ragbench.commands` names."""
    from ragbench.base import plugins  # late: reading entry points takes as long as all of `--help`

    if name not in plugins.names("ragbench.commands"):
        return None
    return Call(name, tuple(rest), plugins.load("ragbench.commands", name, "command").__name__)


def everything() -> tuple[str, ...]:
    """The names of all commands and sub-commands."""
    return tuple(SUMMARY) + tuple(f"{name} {word}" for name, words in WORDS.items() for word in words)
