from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

from ragbench.base import registry
from ragbench.base.types import ConfigError
from ragbench.benchmark.load import load, load_benchmark
from ragbench.config import composition
from tests.tables import rows

ROOT = Path(__file__).resolve().parents[2]
TEA = ROOT / "tests" / "data" / "tea"


@pytest.mark.parametrize(("spec", "message"), rows("benchmark_load", "load_refuses_wrong_options"))
def test_load_refuses_wrong_options(spec: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as raised:
        load(spec)
    assert "\n" not in str(raised.value)


def test_load_expands_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(TEA))
    assert load({"loader": "beir", "folder": "~/beir"}).name == "beir"


def test_grades_mapping_takes_json_keys() -> None:
    spec = {"loader": "beir", "folder": TEA / "beir"}
    grades = {0: 0, 1: None, 2: 1, 3: 2}
    plain = load({**spec, "grades": grades})
    quoted = load({**spec, "grades": {str(grade): value for grade, value in grades.items()}})
    assert quoted.document_qrels == plain.document_qrels != load(spec).document_qrels


def test_load_benchmark_takes_keywords() -> None:
    benchmark = load_benchmark("vault", corpus=TEA / "vault", queries=TEA / "vault.csv", qrels=TEA / "qrels")
    assert benchmark.name == "vault" and len(benchmark.topics) == 3


def test_resplit_draws_new_halves() -> None:
    spec = {"loader": "native", "corpus": TEA / "vault", "qrels": TEA / "qrels"}
    halves = load(spec | {"resplit": 3})
    assert {topic.qid for topic in halves.topics} == {"q1", "q2", "q3"}
    assert halves.splits == ("test", "train")
    assert load(spec | {"resplit": 3}).topics == halves.topics
    assert load(spec | {"resplit": 3}, topics=False).topics == ()


@pytest.mark.parametrize("name", registry.entries("loader"))
def test_loaders_have_configuration_of_every_option(name: str) -> None:
    import inspect

    from ragbench.config import available

    config = available.read().option("data", name).content
    assert config.pop("loader") == name
    assert config.pop("resplit") is None and config.pop("sample") == "auto"
    parameters = {k: p for k, p in inspect.signature(registry.find("loader", name)).parameters.items() if k != "topics"}
    assert set(config) == set(parameters)
    for key, value in config.items():
        default = parameters[key].default
        expected = None if default is inspect.Parameter.empty else default
        if "${" not in str(value):
            assert value == (list(expected) if isinstance(expected, tuple) else expected), key


def test_builtin_default_is_version_2() -> None:
    default, version_1, version_2 = (
        load(composition.compose(overrides).config["data"])
        for overrides in ([], ["data=builtin_v1"], ["data=builtin_v2"])
    )
    assert (default.name, version_1.name, version_2.name) == ("builtin", "builtin_v1", "builtin_v2")
    assert default.digest == version_2.digest
    assert default.warnings == (), "the mistakes of its documents are meant"
    newest = max(document.modified for document in default.documents)
    assert newest < datetime.datetime(2026, 6, 1, tzinfo=datetime.UTC).timestamp(), "no time of a file of this copy"
    assert version_1.digest == "dc0baf0ac06ea53b8ad8bc97eae789e0ab33de50be457b1b784bd14fcc93826f"
