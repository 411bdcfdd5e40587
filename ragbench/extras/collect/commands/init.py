"""`ragbench init` (Measure and compare): inspect a folder of notes and write ragbench.yaml for later commands."""

from __future__ import annotations

import argparse
import logging
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import console, files
from ragbench.base.types import BenchmarkError, ConfigError, RagbenchError, counted
from ragbench.boundary import permissions

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.extras.collect.inspect_folder import FolderSurvey

_LOG = logging.getLogger(__name__)

DESCRIPTION = """Inspect a folder of notes and its queries, print a summary, and write ragbench.yaml for later commands.

The file specifies the data, the arms that `ragbench run` measures, the latency budget and the results folder. For notes
without queries, synthetic queries are generated from their texts (topics: derived). With --live, your current search is
the baseline: ragbench sends it one query, and proposes which part of the response contains the results."""
EXAMPLES = """examples:
  ragbench init notes             asks at most three questions
  ragbench init notes --yes       asks nothing
  ragbench init notes --queries questions.csv
  ragbench init notes --queries questions.csv --live "https://docs.example.org/search.json?q={query}"
  ragbench init notes --log searches.jsonl --live http://localhost:8000/search?q={query}
then: ragbench run
"""

_READING = ("include", "exclude", "drafts", "site")
"""Keys of `data` that a second `ragbench init` keeps."""
_TOPICS = Path("topics.jsonl")
"""What --log writes, and what `data.queries` names where a live search needs queries."""
_ARMS = {"baseline": ("exp=baseline",), "recommended": ("exp=recommended",)}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The folder, answers given as options, output options."""
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="the folder of notes (default: this one)")
    parser.add_argument("--queries", type=Path, metavar="FILE", help="CSV or JSONL with the column text")
    parser.add_argument("--log", type=Path, metavar="FILE", help="search log to sample queries from")
    parser.add_argument(
        "--live",
        metavar="URL",
        help="URL of your current search, with the placeholder {query}: it becomes the baseline",
    )
    parser.add_argument("--yes", "-y", action="store_true", help="accept all suggestions without asking")
    parser.add_argument(
        "--replace", action="store_true", help="overwrite a ragbench.yaml or topics.jsonl that has other content"
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Look, ask, write, say what to type next."""
    from ragbench.config import project
    from ragbench.extras.collect.inspect_folder import queries_from, recognise
    from ragbench.extras.collect.languages import suited_to
    from ragbench.extras.collect.topics.collected import has_text

    file, refused = Path(project.FILE), ConfigError(f"{project.FILE} exists already: edit it, or add --replace")
    asks = not arguments.yes and not arguments.json and sys.stdin.isatty()
    keeps_file = file.exists() and not arguments.replace  # which a call that was killed may have written
    if keeps_file and (asks or (arguments.log is not None and not _TOPICS.exists())):
        raise refused
    kind, data = recognise(arguments.folder)
    data |= _files_read(file, data)
    has_queries = data["data"] != "vault" or "data.queries" in data
    if queries := _queries(arguments, data, asks and not has_queries):
        data.pop("data.qrels", None)
        data |= queries_from(queries)
        has_queries = True
    if arguments.live is not None and not has_queries:
        data["data.queries"] = str(_TOPICS)
    opened = _opened(arguments.folder, kind, data, has_queries)
    suited, how = suited_to(opened.languages)
    findings = [*opened.lines, *how, *_known(has_queries, suited)]
    today = {} if arguments.live is None else _today(arguments.live, data, findings)
    arms = {**today, **_ARMS}
    if not arguments.json:
        print("\n".join(findings))
    for warning in opened.warnings:
        _LOG.warning(warning)
    # Results go beside the notes; a folder among the notes would be in the way, so it is a hidden one.
    beside = ".ragbench" if arguments.folder.resolve() == Path.cwd() else "results"
    results = _ask("Where do results go?", beside) if asks else beside
    budget = _ask_budget() if asks else 50
    derived = {} if has_queries or arguments.live is not None else {"topics": "derived"}
    values = {**data, **suited, **derived, "budget.p95_ms": budget, "paths.results": results}
    text = _text_of_project(values, arms)
    if keeps_file and not has_text(file, text):
        raise refused
    files.write_text(file, text)
    can_run = opened.is_judged and (has_queries or arguments.live is None)
    with permissions.trust():  # in what this command has just written
        expected, obstacle = _expected(arguments) if can_run else ("", "")
    if arguments.json:
        named = {name: list(overrides) for name, overrides in arms.items()}
        about = {"found": findings, "arms": named, "expected": expected or obstacle}
        console.print_json({"file": str(file), **values, **about})
        return 0
    print(f"wrote {file}")
    if expected:
        print(f"ragbench run: {expected}")
    if obstacle:
        print(obstacle)
    if obstacle and derived:
        console.next_command(f"init {shlex.quote(str(arguments.folder))} --queries FILE --replace")
    elif can_run and not obstacle:
        console.next_command("run" if arguments.live is None else "run --trust")
    elif not opened.is_judged:
        print("no query has an answer yet: run without judgments, then judge the results that ragbench data pool lists")
        console.next_command(f"run allow_unjudged=true{'' if arguments.live is None else ' --trust'}")
    else:
        print("synthetic queries cannot be used with a live search: take queries from its log, or add data.queries")
        console.next_command("topics from-log FILE")
    return 0


_HEAD = """# Every ragbench command run in this folder, or below it, begins with these words; typed ones win.
# All keys: ragbench list parameters. What they make: ragbench list config
"""
_ARMS_HEAD = """# What `ragbench run` measures when no arm is typed; the first is the baseline.
"""


def _text_of_project(values: Mapping[str, Any], arms: Mapping[str, Sequence[str]]) -> str:
    import yaml

    from ragbench.config import project

    named = {project.ARMS: {name: shlex.join(overrides) for name, overrides in arms.items()}}
    words, of_arms = (
        yaml.safe_dump(part, sort_keys=False, allow_unicode=True, width=1000) for part in (dict(values), named)
    )
    return f"{_HEAD}{words}{_ARMS_HEAD}{of_arms}"


def _files_read(file: Path, data: Mapping[str, Any]) -> Mapping[str, Any]:
    """The keys of the written project that say which files of the same folder are read; it may be unreadable."""
    from ragbench.config import project

    try:
        written = project.read(file).values if file.exists() else {}
    except ConfigError:
        return {}
    same = written.get("data.corpus") == data.get("data.corpus")
    return {key: written[key] for key in map("data.{}".format, _READING) if same and key in written}


def _queries(arguments: argparse.Namespace, data: Mapping[str, Any], asks: bool) -> Path | None:
    """The file of queries that is named, made of a log, or answered. Raises ConfigError where it does not exist."""
    if arguments.log is not None:
        queries: Path | None = _from_log(arguments.log, data, arguments.replace)
    else:
        queries = arguments.queries or (_ask_file() if asks else None)
    if queries is not None and not queries.is_file():
        raise ConfigError(f"--queries {queries} is not a file: name a CSV or JSONL file with the column text")
    return queries


def _expected(arguments: argparse.Namespace) -> tuple[str, str]:
    """How long a run of the written project embeds, in words, and why it cannot begin; each may be empty."""
    from ragbench.config import composition
    from ragbench.experiment import estimate
    from ragbench.experiment.run import surveyed
    from ragbench.workbench import Experiment

    try:
        with console.progress(arguments.quiet or arguments.json):
            settings = composition.standard_arms([])
            if not settings:
                return "", ""
            experiment = Experiment(tuple(settings))
            plan = surveyed(experiment.settings_to_measure, experiment.benchmark, experiment.command)
            expected = estimate.estimate(estimate.missing_passages(plan))
            return expected.sentence if expected.chunks else "", ""
    except BenchmarkError as error:
        return "", str(error)
    except RagbenchError as error:
        _LOG.warning(f"the run time cannot be estimated: {error}")
        return "", ""


def _from_log(file: Path, data: Mapping[str, Any], replace: bool) -> Path:
    """The queries of a search log, written next to the project file."""
    from ragbench.extras.collect import search_log as log
    from ragbench.extras.collect.topics import from_log

    benchmark = _load(data, topics=False)
    topics = from_log.choose(log.read(file), from_log.LogSpec(), from_log.finder(benchmark.documents))
    topics.by_file(benchmark).write(_TOPICS, replace=replace, keep_same=True)
    return _TOPICS


def _today(url: str, data: Mapping[str, Any], lines: list[str]) -> dict[str, tuple[str, ...]]:
    """The arm `today` for a search at an address, which is asked one query. Raises LiveError, ConfigError."""
    from ragbench.config.overrides import word
    from ragbench.extras.collect.topics.from_log import finder
    from ragbench.extras.remote.live.response_mapping import infer_mapping
    from ragbench.extras.remote.live.stages import LiveHttp

    if "{query}" not in url:
        url += f"{'&' if '?' in url else '?'}q={{query}}"
    documents = _load(data, topics=False).documents
    find = finder(documents)
    query = max(documents, key=lambda document: len(document.text)).title
    search = LiveHttp(url=url, hits="@", document="@")
    proposal = infer_mapping(search.answer(query), lambda name: find(name) is not None)
    typed = ", ".join(f"live.{name}={value}" for name, value in proposal.keys.items())
    placed = f"{counted(proposal.hits, 'hit')}, {proposal.matched} of them match documents here"
    lines.append(f"queried {search.name} for '{query}': {placed} ({typed})")
    keys = {"live.url": url, **{f"live.{name}": value for name, value in proposal.keys.items()}}
    return {"today": ("live=http", *(word(key, value) for key, value in keys.items()))}


def _load(data: Mapping[str, Any], topics: bool) -> Benchmark:
    """Read the data that the project names."""
    from ragbench.benchmark import load

    options = {key.removeprefix("data."): value for key, value in data.items() if key != "data"}
    return load.load({"loader": data["data"], **options}, topics)


def _opened(folder: Path, kind: str, data: Mapping[str, Any], has_queries: bool) -> FolderSurvey:
    """What the data holds. Raises BenchmarkError, CorpusError."""
    from ragbench.corpus.file_warning import grouped_by_kind
    from ragbench.extras.collect.inspect_folder import FolderSurvey, survey

    if data["data"] != "vault":
        benchmark = _load(data, topics=True)
        counts = f"{counted(len(benchmark.documents), 'document')}, {counted(len(benchmark.topics), 'topic')}"
        lines = [f"{folder}: {kind}, {counts}"]
        return FolderSurvey(lines, grouped_by_kind(benchmark.warnings), is_judged=bool(benchmark.document_qrels))
    queries, qrels = (
        Path(data[key]) if has_queries and key in data else None for key in ("data.queries", "data.qrels")
    )
    reading = {key: data[f"data.{key}"] for key in _READING if f"data.{key}" in data}
    opened = survey(Path(data["data.corpus"]), queries, qrels, **reading)
    if "data.queries" not in data:
        opened.lines.append("no queries given: ragbench will generate synthetic queries from your notes")
    return opened


def _known(has_queries: bool, suited: Mapping[str, str]) -> list[str]:
    """What other collections let expect of the arms, in a sentence; nothing where the atlas knows too few of them."""
    from ragbench.results import measurements

    if suited:
        return []
    advice = measurements.prediction_of_change("recommended", "baseline", "people" if has_queries else "derived")
    return [advice.sentence] if advice else []


def _ask(question: str, default: str) -> str:
    return input(f"{question} [{default}] ").strip() or default


def _ask_budget() -> float:
    while True:
        answer = _ask("How many milliseconds may a change add to a slow query (p95)?", "50")
        try:
            return float(answer) if "." in answer else int(answer)
        except ValueError:
            print(f"'{answer}' is not a number")


def _ask_file() -> Path | None:
    while True:
        answer = _ask("Which file has your queries? Press Enter to generate synthetic queries.", "none")
        if answer == "none" or Path(answer).expanduser().is_file():
            return None if answer == "none" else Path(answer).expanduser()
        print(f"{answer} is not a file")
