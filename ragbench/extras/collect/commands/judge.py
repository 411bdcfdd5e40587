"""`ragbench judge` (Queries and judgments): grade a pool and merge the grades."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ragbench.base import console, files
from ragbench.base.types import ConfigError, ResultsError, counted
from ragbench.benchmark import native
from ragbench.extras.collect import model_options
from ragbench.extras.collect.judge import ACTS, GRADES, JudgingSession, merge_into_folder, require_pairs
from ragbench.extras.collect.pool import read_source

if TYPE_CHECKING:
    from rich.console import Console

    from ragbench.base.types import Document
    from ragbench.config.settings import Settings

DESCRIPTION = "Grade a pool with the keys 0 to 3 (you can stop and resume), or merge its grades into the judgments."
EXAMPLES = """examples:
  ragbench judge pool.csv                    keys: 0 1 2 3 grade, s skip, u undo, q quit
  ragbench judge pool.csv --endpoint http://localhost:11434/v1 --model NAME   a model grades it, you grade a sample
  ragbench judge pool.csv --merge data=vault data.corpus=notes data.queries=queries.csv data.qrels=my-qrels
  ragbench judge pool.csv --merge data=native data.corpus=notes data.qrels=my-qrels
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The pool and what to do with it; the data are those it was pooled from, unless others are named."""
    parser.add_argument("pool", help="pool file (CSV) written by ragbench data pool")
    parser.add_argument("--merge", action="store_true", help="merge the grades instead of grading")
    model_options.add(parser, "grade with a language model; queries and sections are sent to it")
    parser.add_argument(
        "--sample",
        type=int,
        default=20,
        metavar="N",
        help="number of queries for a human to grade as well, to check the model (default: 20)",
    )
    parser.add_argument("--replace", action="store_true", help="overwrite grades that the model gave before")
    parser.add_argument(
        "--overwrite", action="store_true", help="on conflict, use the pool's grades instead of other judgments"
    )
    console.add_overrides(parser)


def main(arguments: argparse.Namespace) -> int:
    """Grade, or merge."""
    from ragbench.config import composition, project
    from ragbench.config.overrides import key_of, section_of
    from ragbench.corpus.links import collection_digest

    pool = Path(arguments.pool)
    if arguments.endpoint or arguments.model:
        return _by_model(pool, arguments)
    if not arguments.merge:
        judge_in_terminal(pool)
        console.next_command(shlex.join(["judge", str(pool), "--merge", *_place(read_source(pool))]))
        return 0
    settings, source = composition.compose(arguments.overrides), read_source(pool)
    typed = [override for override in arguments.overrides if section_of(override) == "data"]
    if source and all(key_of(override) == "data.qrels" for override in typed):  # it only says where the judgments go
        qrels = {"qrels": settings.data["qrels"]} if typed else {}
        settings = settings.with_values({"data": {**source["data"], **qrels}, "topics": source["topics"]})
    folder = _folder(settings.data)
    qids, documents = _collection(settings, folder)
    if source and collection_digest(documents) != source["collection"]:
        raise ResultsError(
            f"{pool} was pooled from a run over '{source['benchmark']}', and these are other documents: name the data "
            "of that run, or pool again"
        )
    require_pairs(pool, qids, documents)
    with files.locked(folder / native.SECTIONS):
        if source and not any((folder / name).exists() for name in (native.SECTIONS, native.DOCUMENTS)):
            _begin(folder, source["data"], qids, documents)
        merged = merge_into_folder(pool, folder, arguments.overwrite)
    print(f"{merged.added} added, {merged.unchanged} known, {merged.replaced} replaced, {merged.left} open; {folder}")
    console.next_command(shlex.join(["run", *typed]))
    if typed and project.find() is not None:
        print(f"a line in {project.FILE} keeps it: {typed[-1].replace('=', ': ', 1)}")
    return 0


def _by_model(pool: Path, arguments: argparse.Namespace) -> int:
    from ragbench.base import minimums
    from ragbench.config import composition
    from ragbench.extras.collect.model_judge import grade_pool

    if arguments.sample < minimums.HUMAN_GRADED:
        raise ConfigError(
            f"--sample must be at least {minimums.HUMAN_GRADED}, got {arguments.sample}: grades of a model count only "
            "next to human grades"
        )
    settings = composition.compose(arguments.overrides)
    model = settings.models().chat(model_options.spec_of(arguments))
    with console.progress():
        graded = grade_pool(pool, model.complete, arguments.model, arguments.sample, replace=arguments.replace)
    print(f"{arguments.model} graded {graded.graded} of {counted(graded.pairs, 'pair')}, into {graded.grades}")
    print(f"grade the {counted(len(graded.sampled), 'topic')} in {graded.sample} without looking at these")
    console.next_command(f"judge {graded.sample}")
    return 0


def _place(source: Mapping[str, Any] | None) -> list[str]:
    """The words that say where the grades of a pool are merged; none where its data say it."""
    data = source["data"] if source else {}
    if data.get("loader") != "vault" or (data.get("qrels") and Path(data["qrels"]).is_dir()):
        return []
    return [f"data.qrels={'my-qrels' if Path('qrels').is_file() else 'qrels'}"]


def _begin(folder: Path, data: Mapping[str, Any], qids: set[str], documents: Sequence[Document]) -> None:
    """Write the judgments that the pooled run had in a file into the folder, so that none is lost."""
    from ragbench.benchmark import judgments, vault
    from ragbench.benchmark.names import Names

    if data["loader"] != "vault" or not data.get("qrels") or not Path(data["qrels"]).exists():
        return
    *judged_by_level, _ = vault.judgments_by_id(
        Path(data["qrels"]), Names(documents), judgments.check_grades(data.get("grades")), qids, "warn", []
    )
    for name, judged in zip((native.DOCUMENTS, native.SECTIONS), judged_by_level, strict=True):
        if judged:
            native.write_qrels(folder / name, judged)


def _folder(data: Mapping[str, Any]) -> Path:
    """The folder of the judgments. Raises ConfigError for judgments that may not be written."""
    from ragbench.base import locations
    from ragbench.benchmark import load

    if data["loader"] not in ("builtin", "native", "vault"):
        raise ConfigError(f"grades cannot be merged into data={data['loader']}: use data=native or data=vault")
    if data["loader"] == "vault" and not data["qrels"]:
        raise ConfigError("name the folder that keeps your judgments, new or not: add data.qrels=qrels")
    if data["qrels"] and Path(data["qrels"]).is_file():
        raise ConfigError(
            f"{data['qrels']} is a file, and judgments are merged into a folder: add data.qrels=my-qrels, which begins "
            "with the judgments of the file"
        )
    folder = Path(data["qrels"] or load.builtin_judgments(data.get("version", load.VERSION)))
    if folder.resolve().is_relative_to((locations.builtin() / "qrels").resolve()):
        raise ConfigError(
            "the benchmark that comes with ragbench is not changed: for your own notes add data=vault "
            "data.corpus=FOLDER data.queries=FILE data.qrels=FOLDER"
        )
    return folder


def _collection(settings: Settings, folder: Path) -> tuple[set[str], Sequence[Document]]:
    """The topics and documents that grades may be about. The judgments need not exist yet."""
    if settings.data["loader"] == "vault":
        benchmark = settings.with_values({"data.qrels": None}).benchmark()
        return {topic.qid for topic in benchmark.topics}, benchmark.documents
    return {topic.qid for topic in native.read_topics(folder / native.TOPICS)}, settings.documents().documents


_QUIT = "q"
_END = "\x04"
_INTERRUPT = "\x03"
_ESCAPE = b"\x1b"


def judge_in_terminal(
    path: Path, console: Console | None = None, read: Callable[[], str] | None = None
) -> JudgingSession:
    """Grade the pool at `path` until it is done or the judge quits; every key is saved before the next pair is shown.

    `read` gives one key at a time, `q` or the empty string to end; the default reads the keyboard, or lines when
    standard input is not a terminal.
    """
    from rich.console import Console

    console = console or Console()
    read = read or keys(sys.stdin)
    session = JudgingSession(path)
    say = ""
    while session.item is not None:
        _show(session, console, say)
        try:
            key = read().lower()
        except KeyboardInterrupt:
            key = _QUIT
        if key in ("", _QUIT, _END, _INTERRUPT):
            break
        unknown = f"'{key}' is not a key here" if key.isprintable() else ""
        say = session.act(key) if key in ACTS else unknown
    console.print(f"{session.state}; saved in {path}", markup=False)
    return session


def keys(stream: TextIO) -> Callable[[], str]:
    """A function that waits for a key: a key press of a terminal, else the first letter of a line; `""` at the end."""
    if stream.isatty():
        import termios
        import tty

        def key() -> str:
            descriptor = stream.fileno()
            settings_before = termios.tcgetattr(descriptor)
            try:
                tty.setcbreak(descriptor, termios.TCSANOW)  # the default would throw away keys pressed meanwhile
                pressed = os.read(descriptor, 1)
                if pressed == _ESCAPE:
                    # Delete sends ESC [ 3 ~, and its 3 is not a grade.
                    termios.tcflush(descriptor, termios.TCIFLUSH)
                return pressed.decode("utf-8", "replace")
            finally:
                termios.tcsetattr(descriptor, termios.TCSADRAIN, settings_before)

        return key

    lines: Iterator[str] = (line.strip() for line in stream)
    return lambda: next((line[0] for line in lines if line), "")


def _show(session: JudgingSession, console: Console, say: str) -> None:
    from rich.panel import Panel
    from rich.text import Text

    item = session.item
    if item is None:
        return
    console.clear()
    console.print(Text(f"{session.n_graded} of {len(session)} graded   {say}", style="dim"))
    query = Text(_printable(item.query), style="bold")
    if item.need:
        query.append(f"\n{_printable(item.need)}", style="not bold")
    console.print(Panel(query, title=_printable(item.qid), title_align="left"))
    title = Text(f"{_printable(item.location)}   {_printable(item.heading)}")
    console.print(Panel(Text(_printable(item.text)), title=title, title_align="left"))
    if item.note:
        console.print(Text(f"note: {_printable(item.note)}"))
    legend = "   ".join(f"{grade} {meaning}" for grade, meaning in GRADES.items())
    console.print(Text(f"{legend}\ns skip   u undo   q quit", style="dim"))


def _printable(text: str) -> str:
    """Without control characters: a document must not be able to steer the terminal."""
    return "".join(c if c in "\n\t" or c.isprintable() else "\ufffd" for c in text)
