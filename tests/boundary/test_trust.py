"""What a configuration of a stranger does beyond choosing and computing: one list of keys."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

from ragbench.base import options
from ragbench.base.types import ConfigError
from ragbench.boundary.permissions import trust, trusting
from ragbench.config import available, composition
from ragbench.config.trust import EXECUTES, IMPORTS, SENDS, beyond_plain

ENDPOINT = ("hyde=on", "hyde.endpoint=http://x/v1", "hyde.model=m")
PROGRAM = ("live=command", "live.program=[touch,x]", "live.hits=hits", "live.text=text")


@pytest.mark.parametrize("preset", ["baseline", "recommended", "phase3", "all"])
def test_presets_are_plain(preset: str) -> None:
    assert beyond_plain(composition.compose([f"exp={preset}"]).config) == {}


@pytest.mark.parametrize(
    ("typed", "words", "key", "effect"),
    [
        ((), ENDPOINT, "hyde.endpoint", SENDS),
        (ENDPOINT, ("hyde.key_variable=K",), "hyde.key_variable", SENDS),
        ((), PROGRAM, "live.program", EXECUTES),
        (("live=http", "live.url=http://x/?q={query}"), ("live.headers={a: env:B}",), "live.headers", SENDS),
        ((), ("index.encoder.name=openai:m",), "index.encoder.name", SENDS),
        ((), ("index.encoder.name=owner/model",), "index.encoder.name", SENDS),
        (
            (),
            ("sources={other: {kind: dense, index: {encoder: {name: openai:m}}}}",),
            "sources.other.index.encoder.name",
            SENDS,
        ),
        ((), ("p6=on", "p6.model=rerank:http://x"), "p6.model", SENDS),
        ((), ("tracking.uri=http://x",), "tracking.uri", SENDS),
        ((), ("tracking.uri=env:X",), "tracking.uri", SENDS),
    ],
)
def test_keys_that_send_or_execute_are_listed(
    typed: tuple[str, ...],
    words: tuple[str, ...],
    key: str,
    effect: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "ragbench.yaml").write_text(json.dumps({"arms": {"theirs": shlex.join(words)}}), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError) as refused:
        composition.compose([*typed, "exp=theirs"])
    assert f"sets {key}, which {effect} (" in str(refused.value)


@pytest.mark.parametrize(
    "word", ["index.encoder.name=bge-small-en-v1.5", "paths.results=/tmp/x", "tracking.uri=sqlite:////tmp/x.db"]
)
def test_local_values_are_plain(word: str) -> None:
    assert beyond_plain(composition.compose([word]).config) == {}


def test_foreign_classes_are_not_plain() -> None:
    known = available.read()
    contents = [options.flat(option.content) for group in known.groups for option in group.options]
    targets = {value for content in contents for key, value in content.items() if key.endswith(options.TARGET)}
    assert len(targets) > 30 and all(map(options.named, targets))
    assert beyond_plain({"cut": {"_target_": "this.X"}}) == {"cut._target_": (IMPORTS, "this.X")}
    assert "this" not in sys.modules


def test_trust_ends_with_its_block() -> None:
    assert not trusting()
    with trust():
        assert trusting()
    assert not trusting()


def test_typed_class_is_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_to_type.py").write_text(
        "from dataclasses import dataclass\nfrom ragbench.search.stages.cut import Cut\n\n"
        "@dataclass(frozen=True)\nclass Mine(Cut):\n    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert composition.compose(["cut._target_=mine_to_type.Mine"]).config["cut"]["_target_"] == "mine_to_type.Mine"
