"""What values of the configuration need, and who may have it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from ragbench.base.errors import ConfigError
from ragbench.boundary.permissions import EVERYTHING, NOTHING, Capability, granted, granting
from ragbench.config import catalogue, composition
from ragbench.config.registry import _is_catalogued, class_named

READS, WRITES, SENDS, EXECUTES = Capability
LIVE = ("live=command", "live.program=[touch,x]", "live.hits=hits", "live.text=text")


def test_pure_configurations_need_nothing() -> None:
    for preset in ("baseline", "recommended", "phase3", "all"):
        assert composition.compose([f"exp={preset}"]).needs == {}, preset


@pytest.mark.parametrize(
    ("words", "key", "need"),
    [
        (("hyde=on", "hyde.endpoint=http://x/v1", "hyde.model=m"), "hyde.endpoint", SENDS),
        (("hyde=on", "hyde.endpoint=http://x/v1", "hyde.model=m", "hyde.key_variable=K"), "hyde.key_variable", SENDS),
        (LIVE, "live.program", EXECUTES),
        (("index.encoder.name=openai:m",), "index.encoder.name", SENDS),
        (("index.encoder.name=/models/mine",), "index.encoder.name", READS),
        (("p6=on", "p6.model=./mine"), "p6.model", READS),
        (("paths.results=/tmp/x",), "paths.results", WRITES),
        (("tracking.uri=sqlite:////tmp/x.db",), "tracking.uri", WRITES),
        (("tracking.uri=http://x",), "tracking.uri", SENDS),
        (("data=vault", "data.corpus=/etc", "topics=derived"), "data.corpus", READS),
    ],
)
def test_a_value_needs_what_its_field_declares(words: tuple[str, ...], key: str, need: Capability) -> None:
    found: dict[str, Capability] = {}

    class Seen(Exception):
        pass

    def inspect(settings) -> None:
        found.update({name: what for name, (what, _) in settings.needs.items()})
        raise Seen  # before models and folders are looked for

    with pytest.raises(Seen):
        composition.compose(words, inspect=inspect)
    assert found[key] == need


def test_classes_come_from_the_catalogue_where_executing_is_not_granted() -> None:
    known = catalogue.read()
    targets = {target for group in known.groups for option in group.options for target in option.targets}
    assert len(targets) > 30 and all(map(_is_catalogued, targets))
    with granting(NOTHING):
        assert granted() == NOTHING
        for target in targets:
            class_named(target, "x")
        with pytest.raises(ConfigError, match=r"x names this\.X, which is not a class of the configuration"):
            class_named("this.X", "x")
        with granting(EVERYTHING):  # nobody gets more inside than outside
            assert granted() == NOTHING
    assert granted() == EVERYTHING
    assert "this" not in sys.modules


def test_a_class_of_ones_own_works_where_it_is_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_to_type.py").write_text(
        "from dataclasses import dataclass\nfrom ragbench.search.stages.cut import Cut\n\n"
        "@dataclass(frozen=True)\nclass Mine(Cut):\n    pass\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert composition.compose(["cut._target_=mine_to_type.Mine"]).config["cut"]["_target_"] == "mine_to_type.Mine"
