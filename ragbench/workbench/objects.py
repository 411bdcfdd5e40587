"""What a script gives as an arm: overrides, a retriever, or results, as overrides and stages."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ragbench.base.errors import ConfigError
from ragbench.base.files import write_text
from ragbench.base.fingerprint import text_digest
from ragbench.benchmark.frames import is_run, read_run_table
from ragbench.benchmark.runs import trec_eval_order
from ragbench.config import composition
from ragbench.config.overrides import word
from ragbench.config.own_stage import FunctionStage
from ragbench.evaluation.measures import decreasing
from ragbench.results.measurements import trec
from ragbench.search.live.objects import PythonRetriever, hold, is_retriever
from ragbench.workbench.composed import Composed
from ragbench.workbench.own_stage import Own

Part = str | Own | FunctionStage


def parts(name: str, given: Any, shared: Sequence[str], held: list[object]) -> list[Part]:
    """An arm as overrides and stages, after those it shares; retrievers are added to `held`, which keeps them alive.

    Raises ConfigError for a value that is not an arm, BenchmarkError for results that cannot be read.
    """
    given = list(given.parts) if isinstance(given, Composed) else given
    several = isinstance(given, (list, tuple))
    made = [part for each in (given if several else [given]) for part in _part(name, each, shared, held, several)]
    return [*made, word("name", name)]


def _part(name: str, given: Any, shared: Sequence[str], held: list[object], several: bool) -> list[Part]:
    if isinstance(given, (str, os.PathLike)):
        text = os.fspath(given)
        if "=" not in text and not Path(text).expanduser().is_file():
            raise ConfigError(f"arm '{name}' is '{text}', which is neither a file of results nor key=value")
        if "=" not in text:
            return ["live=trec", word("live.path", text)]
        return [text] if several else list(shlex.split(text))
    if isinstance(given, (Own, FunctionStage)):
        return [given]
    if is_run(given):
        return ["live=trec", word("live.path", str(_file_of(name, given, shared)))]
    if not is_retriever(given):
        raise ConfigError(
            f"arm '{name}' is a {type(given).__name__}: give overrides, a function of (query, k), a retriever of "
            "LangChain, LlamaIndex, Haystack, PyTerrier or BM25S, a run file or a DataFrame"
        )
    made = given if isinstance(given, PythonRetriever) else hold(name, given)
    held.append(made)
    words = ["live=python", word("live.retriever", made.name)]
    words += [word("live.number", made.number)] if made.number else []
    return [*words, *([word("live.parameters", dict(made.parameters))] if made.parameters else [])]


def _file_of(name: str, table: Any, shared: Sequence[str]) -> Path:
    """The results as a run file in the results folder, so that others can measure them again."""
    found = {qid: decreasing(trec_eval_order(hits)) for qid, hits in read_run_table(table, f"arm '{name}'").items()}
    text = trec(found, "ragbench")
    path = composition.compose(shared).results / "given" / f"{text_digest(text, 16)}.trec"
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    return path.absolute()
