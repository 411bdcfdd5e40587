"""Indexes that Anserini or Pyserini built, searched as Pyserini's `LuceneSearcher` searches them.

That class wraps `SimpleSearcher` of Anserini, which is in the jar of the `pyserini` wheel and is called here without
the wrapper: importing it takes ten seconds, and fails where no key of OpenAI is set.
"""

from __future__ import annotations

import io
import socket
import tarfile
import zlib
from collections.abc import Callable, Iterable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ragbench.base import progress
from ragbench.base.errors import BoundaryError, LiveError
from ragbench.base.suggestions import nearest
from ragbench.boundary.json import read_json
from ragbench.extras.remote.live.hit_matching import LiveHit
from ragbench.index import jvm
from ragbench.index.jvm import LOCK, java, java_errors, start_jvm

SAMPLE = 200
"""Documents of an index that are looked at to see whether it is of the collection."""
_CHECKED = 256 * 2**20
"""Bytes of an index up to which all its digests are compared when it is opened; Lucene compares few by itself."""
_SECONDS = 30.0  # a server that downloads nothing for so long is not there
_TEXTS = ("contents", "text", "body")


@dataclass(frozen=True)
class Scoring:
    """How an index is searched; the fields are those of `LiveAnserini`."""

    k1: float
    b: float
    fields: tuple[tuple[str, float], ...]
    feedback: str | None
    language: str | None


@lru_cache(maxsize=8)
def open_searcher(index: str, scoring: Scoring) -> Searcher:
    """The searcher of a folder or of a prebuilt index, one for this process. Raises LiveError."""
    return Searcher(index, _folder(index), scoring)


class Searcher:
    """A `SimpleSearcher` of Anserini over an index. Raises LiveError for what cannot be opened or asked."""

    def __init__(self, index: str, folder: Path, scoring: Scoring) -> None:
        self._index, self._folder = index, folder
        _require_pyserini()
        with self._errors():
            directory = java("org.apache.lucene.store.FSDirectory").open(
                java("java.io.File")(str(folder)).toPath()  # the overload with more arguments needs a lock factory
            )
            readers = java("org.apache.lucene.index.DirectoryReader")
            is_index = readers.indexExists(directory)
            if is_index and sum(file.stat().st_size for file in folder.iterdir()) <= _CHECKED:
                reader = readers.open(directory)
                for leaf in reader.leaves().toArray():
                    leaf.reader().checkIntegrity()
                reader.close()
            directory.close()
        if not is_index:
            raise LiveError(f"{folder} is not an index of Lucene: name the folder that Anserini or Pyserini wrote")
        with self._errors():
            self._searcher = java("io.anserini.search.SimpleSearcher")(str(folder))
            self._size = int(self._searcher.get_total_num_docs())
        if not self._size:
            raise LiveError(f"{folder} is an index without documents: build it again")
        if not self._hit(0)[0]:
            raise LiveError(f"the documents of {folder} have no field 'id', which Anserini and Pyserini write")
        with self._errors():
            self._configure(scoring)

    def _configure(self, scoring: Scoring) -> None:
        if scoring.language:
            self._searcher.set_language(scoring.language)
        self._searcher.set_bm25(scoring.k1, scoring.b)
        self._fields = None
        if scoring.fields:
            self._fields = java("java.util.HashMap")()
            for name, weight in scoring.fields:
                self._fields.put(name, java("java.lang.Float")(weight))
        if scoring.feedback:
            reader = java("io.anserini.index.IndexReaderUtils").getReader(str(self._folder))
            vectors = reader.termVectors().get(0)
            reader.close()
            if vectors is None:
                raise LiveError(
                    f"{self._index} has no document vectors, which live.feedback={scoring.feedback} reads: build it "
                    "with -storeDocvectors, or omit live.feedback"
                )
            (self._searcher.set_rm3 if scoring.feedback == "rm3" else self._searcher.set_rocchio)()

    def search(self, query: str, depth: int, is_known: Callable[[str], bool]) -> list[LiveHit]:
        """The best `depth` hits; an id that is not `is_known` comes with its stored text, to match it by text."""
        with self._errors():
            if self._fields is None:
                hits = self._searcher.search(query, depth)
            else:
                hits = self._searcher.search_fields(query, self._fields, depth)
            return [
                LiveHit(
                    hit.docid, text="" if is_known(hit.docid) else _text(hit.lucene_document), score=float(hit.score)
                )
                for hit in hits or ()
            ]

    def sample(self) -> list[LiveHit]:
        """Up to `SAMPLE` documents of the index, evenly spaced."""
        step = max(1, self._size // SAMPLE)
        return [LiveHit(*self._hit(number)) for number in range(0, self._size, step)]

    def holds(self, docnos: Iterable[str]) -> bool:
        """Whether the index has a document of any of these ids."""
        with self._errors():
            return any(self._searcher.doc(docno) is not None for docno in docnos)

    def _hit(self, number: int) -> tuple[str, str, str]:
        """Id, no section, and text of the document with a number of Lucene."""
        with self._errors():
            document = self._searcher.doc(number)
            return (document.get("id") or "", "", _text(document)) if document is not None else ("", "", "")

    def _errors(self) -> Any:
        return java_errors(LiveError, lambda cause: f"{self._index} cannot be searched with Anserini ({cause})")


def _text(document: Any) -> str:
    """The text that a document of Lucene holds: its contents, or those in the JSON it was made of; else empty."""
    raw = document.get("raw") if document is not None else None
    stored = document.get("contents") if document is not None else None
    if stored or not raw:
        return stored or ""
    try:
        record = read_json(raw)
    except BoundaryError:
        return str(raw)
    texts = (record.get(name) for name in _TEXTS) if isinstance(record, dict) else ()
    return next((text for text in texts if isinstance(text, str)), str(raw))


def _require_pyserini() -> None:
    if jvm.whole_jar() is None:
        raise LiveError(
            "live=pyserini needs the package pyserini: run `pip install --no-deps pyserini==1.6.0`; without "
            "--no-deps it also installs PyTorch"
        )


def _folder(index: str) -> Path:
    """The folder of an index: the one named, or that of the prebuilt index of this name, downloaded when missing."""
    path = Path(index).expanduser().resolve()  # Java keeps the working directory that it was started in
    if path.is_dir():
        return path
    _require_pyserini()
    start_jvm()  # with our options, before Pyserini starts it with its own
    with LOCK:
        from pyserini import prebuilt_index_info as prebuilt
    entry = prebuilt.TF_INDEX_INFO.get(index)
    if entry is not None:
        return _prebuilt(index, str(entry["urls"][0]), int(entry["size compressed (bytes)"]))
    others = (prebuilt.IMPACT_INDEX_INFO, prebuilt.LUCENE_HNSW_INDEX_INFO, prebuilt.LUCENE_FLAT_INDEX_INFO)
    if any(index in index_info for index_info in (*others, prebuilt.FAISS_INDEX_INFO)):
        raise LiveError(
            f"{index} is a prebuilt index that LuceneSearcher does not read: name one of the kind 'TF', or write a run "
            "file with Pyserini and measure it with live=trec"
        )
    near = nearest(index, prebuilt.TF_INDEX_INFO)
    hint = f"did you mean {near[0]}?" if near else "write the path of a folder, or a name of Pyserini's list"
    raise LiveError(
        f"live.index={index} is neither a folder nor one of the {len(prebuilt.TF_INDEX_INFO)} prebuilt indexes: {hint}"
    )


def _prebuilt(index: str, url: str, size: int) -> Path:
    """The folder of a prebuilt index in Pyserini's cache (`PYSERINI_CACHE`); Pyserini downloads it when missing."""
    from pyserini.util import download_prebuilt_index

    progress.report(f"looking for the prebuilt index {index} ({size / 1e6:,.0f} MB)")
    timeout_before = socket.getdefaulttimeout()
    socket.setdefaulttimeout(_SECONDS)
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
            return Path(download_prebuilt_index(index, verbose=False))
    # It says by ValueError that nothing was downloaded, by an assertion that the digest differs.
    except (OSError, ValueError, AssertionError, tarfile.TarError, EOFError, zlib.error) as error:
        reason = "its digest differs" if isinstance(error, AssertionError) else "no answer"
        raise LiveError(
            f"the prebuilt index {index} ({size / 1e6:,.0f} MB) could not be downloaded from {urlsplit(url).hostname} "
            f"({reason}): check the network, or unpack {url} by hand and name its folder with live.index"
        ) from None
    finally:
        socket.setdefaulttimeout(timeout_before)
