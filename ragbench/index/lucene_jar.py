"""The jar with Lucene: that of the `pyserini` wheel (170 MB) if it is installed, else `lucene.jar`, the part used here.

The part (19 MB) is in the wheel, so that an installation needs neither pyserini nor the PyTorch that pyserini requires.
It has Lucene's licence and notices. In a checkout `tools/lucene_part.py` writes it.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from ragbench.base.errors import JavaError

PART = Path(__file__).with_name("lucene.jar")


def find() -> Path:
    """Return the jar to start Java with. Raises JavaError without any."""
    found = whole() or PART
    if not found.is_file():
        raise JavaError(
            "Lucene is missing: run `pip install --no-deps pyserini==1.6.0`, or install ragbench from its wheel"
        )
    return found


def whole() -> Path | None:
    """The jar of the installed pyserini, which also has Anserini, or None; a bundle must not contain one."""
    try:
        folder = Path(str(distribution("pyserini").locate_file("pyserini/resources/jars")))
    except PackageNotFoundError:
        return None
    return max(folder.glob("anserini-*-fatjar.jar"), default=None)
