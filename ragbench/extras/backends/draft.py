"""`draft`: an encoder for fast indexing, a table with one vector for each token of the bundled bge.

The method is Model2Vec (Tulkens and van Dongen, 2024): embed every token of the vocabulary alone, keep the 256
principal components, weigh tokens by smooth inverse frequency (Arora, Liang and Ma, ICLR 2017). Frequency is estimated
from the place in the vocabulary (Zipf). A text has the mean vector of its tokens: the order of words is lost.

Making the table takes about a minute of one CPU. It is made at first use and kept below `RAGBENCH_MODELS`, by
default `~/.cache/ragbench/models`.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base import files
from ragbench.base.errors import ModelError
from ragbench.base.fingerprint import short_digest
from ragbench.base.progress import ticks
from ragbench.boundary.checksummed_json import read_checksummed, write_checksummed
from ragbench.models.base import UnbatchedEncoder
from ragbench.models.bundled import DRAFT as NAME
from ragbench.models.bundled import DRAFT_SOURCE
from ragbench.models.folder import ModelFolder
from ragbench.models.onnx import OnnxGraph, backend
from ragbench.models.parallel import map_in_threads

_FOLDER = "RAGBENCH_MODELS"
_VERSION = 1
"""Increase it when the same model would give another table: it is part of every digest."""
_DIM = 256
_SMOOTHING = 1e-4
_TABLE, _SEALED = "tokens.npy", "table.json"
_LOG = logging.getLogger(__name__)


class DraftEncoder(UnbatchedEncoder):
    """The mean of token vectors, from a table distilled from the ONNX encoder in `folder`."""

    def __init__(
        self,
        folder: ModelFolder,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int = 512,
        threads: int = 1,
    ) -> None:
        super().__init__(NAME, folder, query_prefix=query_prefix, passage_prefix=passage_prefix, threads=threads)
        self.max_tokens = max_tokens
        self._graph = OnnxGraph(folder, max_tokens, output="last_hidden_state")
        self._opening = Lock()
        self._opened: NDArray[np.float16] | None = None

    def digest_inputs(self) -> list[object]:
        """The method, the library and the longest input; the weights are those of the source."""
        return [*_RECIPE, *backend(), self.max_tokens]

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self._table.shape[1])

    def pooled_vector(self, text: str) -> NDArray[Any]:
        """The mean vector of the text's tokens, or of [CLS] and [SEP] when it has none."""
        encoding = self._graph.tokenizer.encode(text)
        tokens = np.array(encoding.ids)[np.array(encoding.special_tokens_mask) == 0]
        vectors: NDArray[np.float16] = self._table[tokens if len(tokens) else encoding.ids]
        mean: NDArray[Any] = vectors.mean(axis=0, dtype=np.float64)
        return mean

    @property
    def _table(self) -> NDArray[np.float16]:
        with self._opening:
            if self._opened is None:
                self._opened = self._open_or_make()
            return self._opened

    @cached_property
    def _folder(self) -> Path:
        home = os.environ.get(_FOLDER) or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "ragbench" / "models"
        return Path(home).expanduser() / NAME / short_digest([*_RECIPE, *backend(), self.weights])

    def _open_or_make(self) -> NDArray[np.float16]:
        from filelock import FileLock

        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self._folder / ".lock"):
                try:
                    files.check_digests(self._folder, read_checksummed(self._folder / _SEALED)["files"])
                except (files.Damaged, FileNotFoundError):
                    self._make()
            return np.load(self._folder / _TABLE, mmap_mode="r", allow_pickle=False)  # type: ignore[no-any-return]
        except OSError as error:
            raise ModelError(
                f"encoder '{NAME}' cannot keep its table in {self._folder} ({error.strerror}): "
                f"set {_FOLDER} to a folder that can be written"
            ) from None

    def _make(self) -> None:
        _LOG.warning("making the encoder '%s' from %s, once: about a minute of one CPU", NAME, DRAFT_SOURCE)
        tokenizer = self._graph.tokenizer
        tokens = [str(tokenizer.id_to_token(number)) for number in range(tokenizer.get_vocab_size())]
        tick = ticks("making the encoder 'draft'", len(tokens))
        embedded = np.stack(map_in_threads(self._vector_of_token, range(len(tokens)), self._threads, tick))
        with files.atomic_write(self._folder / _TABLE) as draft, draft.open("wb") as stream:
            np.save(stream, distil(embedded, tokens), allow_pickle=False)
        write_checksummed(self._folder / _SEALED, {"files": {_TABLE: files.digest(self._folder / _TABLE)}})

    def _vector_of_token(self, token: int) -> NDArray[Any]:
        first, last = self._graph.tokenizer.encode("").ids
        mean: NDArray[Any] = self._graph.output_of_tokens([first, token, last]).mean(axis=0, dtype=np.float64)
        return mean


_RECIPE = (NAME, _VERSION, _DIM, _SMOOTHING)


def distil(embedded: NDArray[Any], tokens: Sequence[str]) -> NDArray[np.float16]:
    """The table from the vectors of all tokens: at most `_DIM` principal components, weighed by the places of words.

    Tokens in brackets (`[unused7]`) do not affect the components; they and single characters do not count as words. The
    largest entry of a component is made positive, so that the same vectors give the same table.
    """
    reserved = np.array([token[:1] == "[" and token[-1:] == "]" and len(token) > 1 for token in tokens])
    is_word = ~reserved & np.array([len(token.removeprefix("##")) > 1 for token in tokens])
    centred = embedded - embedded[~reserved].mean(axis=0)
    _, components = np.linalg.eigh(centred[~reserved].T @ centred[~reserved])
    basis = components[:, ::-1][:, :_DIM]
    basis = basis * np.sign(basis[np.abs(basis).argmax(axis=0), np.arange(basis.shape[1])])
    position = is_word.cumsum().clip(1)
    share = 1 / position / (1 / np.arange(1, len(tokens) + 1)).sum()
    table: NDArray[np.float16] = (centred @ basis * (_SMOOTHING / (_SMOOTHING + share))[:, None]).astype(np.float16)
    return table
