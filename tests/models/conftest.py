"""Models of every back end, loaded once for the session, and folders that hold models."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ragbench.models import CrossEncoder, Encoder, bundled
from ragbench.models.cache import CachedCrossEncoder, CachedEncoder
from ragbench.models.resolve import CrossEncoderSpec, EncoderSpec, load_cross_encoder, load_encoder
from ragbench.models.store import Store


def _files_of(name: str) -> Path:
    model = bundled.find(name)
    assert model is not None
    folder = model.locate()
    assert folder is not None
    return folder.root


@pytest.fixture(scope="session")
def files_of() -> Callable[[str], Path]:
    """A function from the name of a bundled model to its folder."""
    return _files_of


@pytest.fixture(scope="session")
def run() -> Callable[..., subprocess.CompletedProcess[str]]:
    """A function that runs code in a new process whose hub cache is the folder `home`.

    The hub cannot be reached from there unless the environment variables given say otherwise.
    """

    def run_code(code: str, home: Path, **environment: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "HUGGINGFACE_"))}
        settings = {"HF_HOME": str(home), "HF_ENDPOINT": "http://127.0.0.1:9", **environment}
        return subprocess.run(
            [sys.executable, "-c", code], env=kept | settings, capture_output=True, text=True, check=False
        )

    return run_code


@pytest.fixture(scope="session")
def bge() -> Encoder:
    return load_encoder(EncoderSpec(), threads=2)


@pytest.fixture(scope="session")
def minilm() -> Encoder:
    return load_encoder(EncoderSpec("all-MiniLM-L6-v2"), threads=2)


@pytest.fixture(scope="session")
def reranker() -> CrossEncoder:
    return load_cross_encoder(CrossEncoderSpec(), threads=2)


@pytest.fixture(scope="session")
def make_folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """A function that makes a folder with a bundled ONNX graph and tokenizer and further JSON files."""

    def make(graph_of: str = "bge-small-en-v1.5", graph: str = "model.onnx", **files: object) -> Path:
        root = tmp_path_factory.mktemp("folder")
        source = _files_of(graph_of)
        (root / graph).parent.mkdir(exist_ok=True)
        (root / graph).symlink_to(source / "model.onnx")
        shutil.copy(source / "tokenizer.json", root)
        for name, content in files.items():
            path = root / (name.replace("__", "/") + ".json")
            path.parent.mkdir(exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
        return root

    return make


@pytest.fixture(scope="session")
def torch_cross_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cross-encoder of 1 layer with random weights and 64 positions."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification

    root = tmp_path_factory.mktemp("torch-cross")
    torch.manual_seed(7)
    config = BertConfig(
        vocab_size=30522,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        num_labels=1,
        max_position_embeddings=64,
        initializer_range=0.5,
    )
    BertForSequenceClassification(config).save_pretrained(root)
    for name in ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "special_tokens_map.json"):
        shutil.copy(_files_of("all-MiniLM-L6-v2") / name, root)
    return root


@pytest.fixture(scope="session")
def encoders(
    bge: Encoder, minilm: Encoder, make_folder: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Encoder]:
    """One encoder of every kind."""
    cache = Store(tmp_path_factory.mktemp("cache") / "embeddings.sqlite", "embeddings")
    return {
        "onnx": bge,
        "torch": minilm,
        "local": load_encoder(EncoderSpec(str(make_folder()), max_tokens=64), threads=2),
        "cached": CachedEncoder(bge, cache),
    }


@pytest.fixture(scope="session")
def cross_encoders(
    reranker: CrossEncoder, torch_cross_folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, CrossEncoder]:
    """One cross-encoder of every kind."""
    cache = Store(tmp_path_factory.mktemp("cache") / "scores.sqlite", "scores")
    return {
        "onnx": reranker,
        "torch": load_cross_encoder(CrossEncoderSpec(str(torch_cross_folder), max_length=48), threads=2),
        "cached": CachedCrossEncoder(reranker, cache),
    }
