"""The index of Pyserini: made by its `LuceneIndexer` and searched by its `LuceneSearcher`, in this process.

Pyserini runs in the Java of ragbench, which starts first. The index is in a temporary folder: that of a few thousand
chunks takes a second, importing Pyserini eight, because it imports PyTorch.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
import weakref
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.rankings import Ranking
from ragbench.base.types import IndexError_
from ragbench.index import jvm
from ragbench.index.index import Index
from ragbench.index.parts import Part
from ragbench.index.texts import lexical_rows

_KEY = "OPENAI_API_KEY"


class PyseriniIndex:
    """The chunks of an index as Pyserini indexes them; the text is that of the field `content`."""

    def __init__(self, index: Index) -> None:
        indexer, searcher = _classes()
        folder = tempfile.mkdtemp(prefix="ragbench-pyserini-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        rows = lexical_rows(index.chunks, ("content",))
        with jvm.java_errors(IndexError_, lambda cause: f"Pyserini cannot index the collection ({cause})"):
            writer = indexer(folder, threads=1)
            # Pyserini sorts ties by id as text, so zeros stand before shorter numbers
            writer.add_batch_dict([{"id": f"{n:09d}", "contents": row["content"]} for n, row in enumerate(rows)])
            writer.close()
            self._searcher = searcher(folder)

    def search(self, query: str, depth: int, k1: float, b: float, allowed: NDArray[np.bool_] | None = None) -> Ranking:
        """The `depth` chunks that Pyserini scores highest, of those `allowed`, shape (n,)."""
        asked = depth if allowed is None else self._searcher.num_docs
        with jvm.java_errors(IndexError_, lambda cause: f"Pyserini cannot search for '{query}' ({cause})"):
            self._searcher.set_bm25(k1, b)
            hits = [(int(hit.docid), float(hit.score)) for hit in self._searcher.search(query, k=asked)]
        kept = [hit for hit in hits if allowed is None or allowed[hit[0]]][:depth]
        return Ranking.ordered([chunk for chunk, _ in kept], [score for _, score in kept])


@cache
def _classes() -> tuple[Any, Any]:
    """`LuceneIndexer` and `LuceneSearcher`. Raises IndexError_ where pyserini or PyTorch is missing."""
    warning = jvm.java("org.apache.logging.log4j.Level").WARN  # starts Java with our options, before Pyserini does
    jvm.java("org.apache.logging.log4j.core.config.Configurator").setLevel("io.anserini", warning)
    root, quiet = logging.getLogger(), logging.NullHandler()
    root.addHandler(quiet)  # else Pyserini configures the logging of this process
    unset = _KEY not in os.environ
    os.environ.setdefault(_KEY, "unused")  # importing Pyserini makes a client of OpenAI, which nothing here asks
    try:
        with jvm.LOCK:
            from pyserini.index.lucene import LuceneIndexer
            from pyserini.search.lucene import LuceneSearcher
    except ImportError as cause:
        raise IndexError_(
            f"exp=pyserini needs pyserini and PyTorch ({cause}): run `pip install 'ragbench[pyserini]'`"
        ) from None
    finally:
        root.removeHandler(quiet)
        if unset:
            del os.environ[_KEY]
    return LuceneIndexer, LuceneSearcher


PART = Part("pyserini", fingerprint=lambda index: index.collection, open=PyseriniIndex)
