from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from ragbench.base.types import ModelError
from ragbench.models import folder as module
from ragbench.models.folder import ModelFolder, find_model
from tests.naming import naming
from tests.tables import rows


def make(root: Path, *names: str) -> Path:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(name)
    return root


@pytest.mark.parametrize(
    ("names", "backend"),
    rows("models_folder", "model_folder_chooses_its_back_end"),
)
def test_model_folder_chooses_its_back_end(tmp_path: Path, names: list[str], backend: str | None) -> None:
    model = find_model(make(tmp_path, *names))
    assert (model.backend if model else None) == backend


def test_model_folder_no_folder_is_no_model(tmp_path: Path) -> None:
    assert find_model(tmp_path / "missing") is None
    assert find_model(make(tmp_path, "file") / "file") is None


def test_weights_are_the_files_that_shape_the_output(tmp_path: Path) -> None:
    shaping = ["model.onnx", "model.onnx_data", "tokenizer.json", "config.json", "1_Pooling/config.json"]
    others = [
        "README.md",
        "LICENSE",
        ".gitattributes",
        ".cache/x",
        "model.safetensors",
        "model_fp16.onnx",
        "openvino/m.xml",
    ]
    model = find_model(make(tmp_path, *shaping, *others))
    assert model is not None
    assert model.weights == {name: hashlib.sha256(name.encode()).hexdigest() for name in sorted(shaping)}
    assert model.graph == tmp_path / "model.onnx"

    both = find_model(make(tmp_path / "torch", "config.json", "model.safetensors", "onnx/model.onnx", "vocab.txt"))
    assert both is not None and set(both.weights) == {"config.json", "model.safetensors", "vocab.txt"}


def test_model_folder_changed_file_is_read_again_and_an_unchanged_one_is_not(tmp_path: Path) -> None:
    make(tmp_path, "model.onnx", "tokenizer.json")

    def weights() -> dict[str, str]:
        model = find_model(tmp_path)
        assert model is not None
        return model.weights

    first, read = weights(), module._sha256.cache_info().misses
    assert weights() == first
    assert module._sha256.cache_info().misses == read
    (tmp_path / "model.onnx").write_text("MODEL.ONNX")
    os.utime(tmp_path / "model.onnx", ns=(1, 1))
    assert weights()["model.onnx"] == hashlib.sha256(b"MODEL.ONNX").hexdigest()


def test_model_folder_pinned_file_must_have_its_digest(tmp_path: Path) -> None:
    make(tmp_path, "model.onnx")
    pinned = {"model.onnx": hashlib.sha256(b"another").hexdigest()}
    with pytest.raises(ModelError, check=naming("model.onnx", "SHA-256", "reinstall it")):
        _ = ModelFolder(tmp_path, "onnx", ("model.onnx",), pinned, "reinstall it").weights
    with pytest.raises(ModelError, check=naming("gone.onnx")):
        _ = ModelFolder(tmp_path, "onnx", ("gone.onnx",)).weights


def test_json_of_the_wrong_shape_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\x00")
    model = ModelFolder(tmp_path, "onnx", ())
    assert model.json("missing.json") == {}
    assert model.json("list.json", list) == [1]
    for name in ("broken.json", "binary.json"):
        with pytest.raises(ModelError, check=naming(name)):
            model.json(name)
    with pytest.raises(ModelError, check=naming("list.json")):
        model.json("list.json")
