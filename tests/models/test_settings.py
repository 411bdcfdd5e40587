from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench.base.types import ModelError
from ragbench.models.folder import FolderSettings, ModelFolder, read_settings
from tests.naming import naming


def settings(root: Path, **files: object) -> FolderSettings:
    for name, content in files.items():
        path = root / (name.replace("__", "/") + ".json")
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content), encoding="utf-8")
    return read_settings(ModelFolder(root, "onnx", ()))


def test_model_settings_without_files_the_mean(tmp_path: Path) -> None:
    assert settings(tmp_path) == FolderSettings("mean", None)


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode": "lasttoken"}, "lasttoken"),
        ({"pooling_mode": ["max"]}, "max"),
        ({}, "mean"),
    ],
)
def test_model_settings_pooling_in_both_spellings(tmp_path: Path, config: object, pooling: str) -> None:
    assert settings(tmp_path, **{"1_Pooling__config": config}).pooling == pooling


@pytest.mark.parametrize(
    "config",
    [
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
        {"pooling_mode": ["cls", "mean"]},
        {"pooling_mode": "weightedmean"},
        {"pooling_mode": None},
    ],
)
def test_model_settings_other_poolings_are_refused(tmp_path: Path, config: object) -> None:
    with pytest.raises(ModelError, check=naming("cls, mean, max, lasttoken")):
        settings(tmp_path, **{"1_Pooling__config": config})


def test_model_settings_lowest_stated_limit(tmp_path: Path) -> None:
    stated = settings(
        tmp_path,
        config={"max_position_embeddings": 512},
        sentence_bert_config={"max_seq_length": 256},
        tokenizer_config={"model_max_length": 1e30},
    )
    assert stated.max_tokens == 256
