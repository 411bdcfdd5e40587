"""Bounds are types: what they refuse, in which words, and that they cost a search nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import pytest
from annotated_types import Interval, MinLen

from ragbench.base import options
from ragbench.base.options import Count, Name, Prompt, Refused, Share, Validated, Weight, as_options, one_of
from ragbench.base.types import ConfigError, shown
from tests.tables import rows


@dataclass(frozen=True)
class Lamp(Validated):
    """Something with a field of every kind."""

    watts: Count = 40
    hours: Count | None = None
    dim: Share = 0.5
    angle: Annotated[float, Interval(gt=0, le=90)] = 45.0
    colour: Literal["warm", "cold"] = "warm"
    maker: Name = "Lantern"
    prompt: Prompt = "{query}"
    on: bool = True
    socket: Annotated[str, one_of("E14", "E27")] = "E27"
    wires: tuple[str, ...] = ("red",)
    places: Annotated[tuple[int, ...], MinLen(1)] = (1,)
    steps: tuple[tuple[Weight, Weight], ...] = ()
    weights: Mapping[str, Weight] = field(default_factory=dict)
    by_room: Mapping[Literal["hall", "attic"], Share] = field(default_factory=dict)
    rate: Count | tuple[Count, ...] | None = None
    floors: Mapping[int, str] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.hours is not None and self.hours > self.watts:
            raise self.refused("hours", f"must be at most watts {self.watts}, got {self.hours}")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        *rows("bounds", "refused_names_key_and_reason"),
        ({"dim": float("nan")}, "dim must be between 0 and 1, got nan"),
        ({"steps": [[1, float("inf")]]}, "steps[0][1] must be finite and at least 0, got inf"),
    ],
)
def test_refused_names_key_and_reason(values: dict, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Lamp(**values)
    assert str(caught.value) == f"Lamp.{message}"


def test_validated_values_take_the_form_of_their_type() -> None:
    lamp = Lamp(dim=1, wires=["red", "blue"], steps=[[1, 2]], rate=[3])  # type: ignore[arg-type]
    assert (lamp.dim, lamp.wires, lamp.steps, lamp.rate) == (1.0, ("red", "blue"), ((1.0, 2.0),), (3,))
    assert isinstance(lamp.dim, float)
    with pytest.raises(Refused, match="watts must be at least 1, got -2"):
        replace(lamp, watts=-2)


def test_validated_caller_names_the_field_otherwise() -> None:
    with pytest.raises(ConfigError) as caught, as_options():
        Lamp(watts=0)
    assert str(caught.value) == "--watts must be at least 1, got 0"
    with pytest.raises(Refused) as refusal:
        options.check_field(Lamp, "weights", {"red": "x"})
    assert (refusal.value.key, refusal.value.reason) == ("weights.red", "must be a number of at least 0, got 'x'")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "null"),
        (False, "false"),
        ("a\nb", "'a b'"),
        ("x" * 70, f"'{'x' * 60}...'"),
        ([1, "a", None], "[1, 'a', null]"),
        (list(range(9)), "[0, 1, 2, 3, 4, ...]"),
        ({"a": [True]}, "{a: [true]}"),
        (Path("x/y"), "x/y"),
    ],
)
def test_shown_values_look_as_in_a_file(value: object, message: str) -> None:
    assert shown(value) == message


def test_search_checks_no_value_again(monkeypatch: pytest.MonkeyPatch, make_index) -> None:
    """Parameters are checked when an arm is composed, not once more for every query."""
    from ragbench.base.types import Query
    from ragbench.config import composition
    from ragbench.search.engine.pipeline import Arm, execute

    settings = composition.compose(["+exp=all", "p6=off"])
    arm = Arm("all", settings.pipeline, make_index(settings.index))
    list(execute([arm], [Query("warm", "where are keys kept")]))
    made: list[str] = []
    monkeypatch.setattr(Validated, "__post_init__", lambda self: made.append(type(self).__name__))
    list(execute([arm], [Query(f"q{n}", f"how do I rotate key {n}") for n in range(5)]))
    assert made == []
