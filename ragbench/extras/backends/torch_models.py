"""Encoders and cross-encoders run by sentence-transformers on PyTorch, one text per call.

Importing these libraries takes seconds, so only the first use of a model does it. PyTorch sums in another order when
the number of its threads changes, so it gets one thread per text, and texts are shared among Python threads.
"""

from __future__ import annotations

from functools import cached_property
from importlib.metadata import PackageNotFoundError
from threading import Lock
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from ragbench.base.types import ModelError
from ragbench.models import base, texts
from ragbench.models.folder import ModelFolder

if TYPE_CHECKING:
    import sentence_transformers

# Increase it when a change of this module changes vectors or scores: it is part of every digest.
_VERSION = 1

_CLASSIFIER = "ForSequenceClassification"


class TorchModel:
    """A model of sentence-transformers, read when first used; safe to call from several threads at once."""

    def __init__(self, folder: ModelFolder, max_tokens: int, *, cross: bool) -> None:
        self.folder = folder
        self.max_tokens = max_tokens
        self._cross = cross
        self._loading, self._tokenizing = Lock(), Lock()
        self._loaded: Any = None

    def __call__(self, text: str | tuple[str, str], output: str) -> NDArray[Any]:
        """The named output for one text, or for a pair, without its batch axis."""
        import torch

        model = self.transformer
        with self._tokenizing:  # a tokenizer of transformers keeps its truncation as state
            features = model.preprocess([text])
        torch.set_num_threads(1)  # a setting of the calling thread
        with torch.inference_mode():
            numbers: NDArray[Any] = model(features)[output][0].float().numpy()
        return numbers

    @property
    def transformer(self) -> Any:
        """The model of sentence-transformers."""
        if self._loaded is None:
            with self._loading:
                if self._loaded is None:
                    self._loaded = self._load()
        return self._loaded

    def _load(self) -> sentence_transformers.SentenceTransformer | sentence_transformers.CrossEncoder:
        _ = self.folder.weights  # refuses weights that differ from the pinned ones
        self._check_kind()
        import sentence_transformers
        from transformers.utils import logging as progress

        kind = sentence_transformers.CrossEncoder if self._cross else sentence_transformers.SentenceTransformer
        bar_enabled = progress.is_progress_bar_enabled()
        progress.disable_progress_bar()  # type: ignore[no-untyped-call]  # it has no annotations
        try:
            model = kind(str(self.folder.root), device="cpu", local_files_only=True, trust_remote_code=False)
        except Exception as reason:  # the libraries below raise nothing narrower
            raise ModelError(
                f"model {self.folder.root} cannot be loaded ({texts.one_line(reason)}): replace the folder"
            ) from reason
        finally:
            if bar_enabled:
                progress.enable_progress_bar()  # type: ignore[no-untyped-call]  # it has no annotations
        limit = model.max_seq_length
        model.max_seq_length = self.max_tokens if limit is None else min(self.max_tokens, limit)
        model.eval()
        return model

    def _check_kind(self) -> None:
        # sentence-transformers would give a model of the wrong kind a random head or a pooling, and only warn.
        architectures = [str(name) for name in self.folder.json("config.json").get("architectures") or []]
        classifies = any(name.endswith(_CLASSIFIER) for name in architectures)
        if classifies and not self._cross:
            raise ModelError(f"{self.folder.root} holds a cross-encoder ({architectures[0]}): use an encoder here")
        if architectures and not classifies and self._cross:
            raise ModelError(f"{self.folder.root} holds {architectures[0]}, not a cross-encoder: use a cross-encoder")


class SentenceTransformerEncoder(base.UnbatchedEncoder):
    """An encoder in a folder of sentence-transformers. Prompts of its configuration are ignored; prefixes count."""

    def __init__(
        self,
        name: str,
        folder: ModelFolder,
        *,
        query_prefix: str = "",
        passage_prefix: str = "",
        max_tokens: int = 512,
        threads: int = 1,
    ) -> None:
        super().__init__(name, folder, query_prefix=query_prefix, passage_prefix=passage_prefix, threads=threads)
        self._requested = max_tokens
        self._model = TorchModel(folder, max_tokens, cross=False)

    def digest_inputs(self) -> list[object]:
        """The libraries and the requested longest input; pooling and the limit of the model are files of `weights`."""
        return [*backend(), self._requested]

    @cached_property
    def dim(self) -> int:
        """Length of a vector."""
        return len(self.pooled_vector(""))

    @property
    def max_tokens(self) -> int:
        """Tokens after which a text is cut: the requested limit or that of the model, whichever is smaller."""
        return int(self._model.transformer.max_seq_length)

    def pooled_vector(self, text: str) -> NDArray[Any]:
        """The vector of a text before it is scaled, shape (dim,)."""
        return self._model(text, "sentence_embedding")


class SentenceTransformerCrossEncoder(base.UnbatchedCrossEncoder):
    """A cross-encoder in a folder of transformers with a head of one logit, whose activation is not applied."""

    def __init__(self, name: str, folder: ModelFolder, *, max_length: int = 512, threads: int = 1) -> None:
        super().__init__(name, folder, threads=threads)
        self._requested = max_length
        self._model = TorchModel(folder, max_length, cross=True)

    def digest_inputs(self) -> list[object]:
        """The libraries and the requested longest input."""
        return [*backend(), self._requested]

    @property
    def max_length(self) -> int:
        """Tokens after which a pair is cut: the requested limit or that of the model, whichever is smaller."""
        return int(self._model.transformer.max_seq_length)

    def logits(self, query: str, passage: str) -> NDArray[Any]:
        """The output of the model for a pair."""
        return self._model((query, passage), "scores")


def backend() -> list[object]:
    """Names and versions of the libraries: results can change between their minor versions."""
    packages = ("torch", "transformers", "sentence-transformers")
    try:
        return ["torch", _VERSION, *(texts.minor_version(package) for package in packages)]
    except PackageNotFoundError as error:
        raise ModelError(
            f"a model with PyTorch weights needs the package {error.name}, which is not installed: run pip install "
            "'ragbench[torch]' (make install in a checkout)"
        ) from None
