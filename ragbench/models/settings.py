"""How to use an encoder in a folder of ONNX files, read from the configuration files next to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ragbench.base.errors import ModelError
from ragbench.models.folder import ModelFolder

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
class Settings:
    """`pooling`, one of `_POOLINGS`, makes one vector of the tokens' vectors; `max_tokens` is the longest input.

    `max_tokens` is None when no file states it.
    """

    pooling: str = "mean"
    max_tokens: int | None = None


def read_settings(folder: ModelFolder) -> Settings:
    """Settings of a folder: `ragbench.json` ({"pooling": ..., "max_tokens": ...}), else sentence-transformers' files.

    Without any of them the pooling is the mean. ModelError for a pooling or a further module that cannot be run here.
    """
    own = folder.json("ragbench.json")
    unknown = sorted(set(own) - {"pooling", "max_tokens"})
    if unknown:
        raise ModelError(f"{folder.root / 'ragbench.json'} has an unknown key '{unknown[0]}': use pooling, max_tokens")
    pooling = own["pooling"] if "pooling" in own else _pooling(folder.json("1_Pooling/config.json"))
    if pooling not in _POOLINGS:
        raise ModelError(
            f"pooling {pooling!r} of the model in {folder.root} cannot be run with onnxruntime: "
            f"use one of {', '.join(_POOLINGS)}, or the PyTorch weights of the model"
        )
    return Settings(pooling, _limit(folder, own))


def _pooling(config: dict[str, Any]) -> Any:
    if "pooling_mode" in config:
        modes = config["pooling_mode"]
        return modes[0] if isinstance(modes, list) and len(modes) == 1 else modes
    active = [mode for key, mode in _LEGACY.items() if config.get(key)]
    return "+".join(active) if active else "mean"


def _limit(folder: ModelFolder, own: dict[str, Any]) -> int | None:
    stated = own.get("max_tokens")
    if stated is not None:
        if not isinstance(stated, int) or isinstance(stated, bool) or stated < 1:
            raise ModelError(f"max_tokens in {folder.root / 'ragbench.json'} must be a whole number, got {stated!r}")
        return stated
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
    for module in folder.json_list("modules.json"):
        kind = str(module.get("type") if isinstance(module, dict) else module).rpartition(".")[2]
        if kind not in {"Transformer", "Pooling", "Normalize"}:
            raise ModelError(
                f"{folder.root / 'modules.json'} asks for a {kind} layer, which model.onnx lacks: "
                "use the PyTorch weights of the model"
            )
