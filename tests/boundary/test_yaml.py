"""YAML from outside."""

from __future__ import annotations

import datetime
import itertools
import random
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings, strategies as st

from ragbench.base.types import BoundaryError
from ragbench.boundary.yaml import read_yaml, read_yaml_file
from tests.boundary.mutations import yaml_texts
from tests.tables import rows

_TEXTS = st.text(st.characters(blacklist_categories=("Cs", "Cc")))
_SCALARS = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | _TEXTS
VALUES = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_TEXTS, inner, max_size=4))


@given(VALUES)
@settings(deadline=None)
def test_yaml_values_come_back(value: Any) -> None:
    assert read_yaml(yaml.safe_dump(value, allow_unicode=True).encode(), aliases=True) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *rows("boundary_yaml", "yaml_refusal_names_the_line"),
        ("[" * 200_000, "nested deeper than 32 levels at line 1"),
        ("a: " + "9" * 6000, "the value at line 1 cannot be read: put it into quotes"),
        (b"a: 1\nb: \xff", "not valid UTF-8 at line 2"),
    ],
)
def test_yaml_refusal_names_the_line(text: str | bytes, reason: str) -> None:
    with pytest.raises(BoundaryError) as refused:
        read_yaml(text)
    assert str(refused.value) == reason


@pytest.mark.parametrize("text", ["a: [1", "a: 'b", "a: b: c", "\ta: 1", "a: !!python/object/apply:os.system [x]"])
def test_yaml_errors_name_the_line(text: str) -> None:
    with pytest.raises(BoundaryError, match=r"^invalid YAML at line [12]: "):
        read_yaml(text)


def test_yaml_gives_plain_values() -> None:
    assert read_yaml("a: 1\nb: [x, 2.5, true, ~]\nc: 2026-02-03\n") == {
        "a": 1,
        "b": ["x", 2.5, True, None],
        "c": datetime.date(2026, 2, 3),
    }
    assert read_yaml("") is None
    assert read_yaml("a: &x [1]\nb: *x", aliases=True) == {"a": [1], "b": [1]}
    assert read_yaml("a: &x {k: 1}\nb: {<<: *x, l: 2}", aliases=True) == {"a": {"k": 1}, "b": {"k": 1, "l": 2}}
    with pytest.raises(BoundaryError, match="contains itself at line 1"):
        read_yaml("a: &x [1, *x]", aliases=True)


def test_yaml_is_read_from_files(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: 1\n")
    assert read_yaml_file(tmp_path / "a.yaml") == {"a": 1}
    with pytest.raises(BoundaryError, match="a folder"):
        read_yaml_file(tmp_path)


def test_yaml_mutations_are_refused_or_plain() -> None:
    """Every mutation of a project file is refused in one line, or is what PyYAML reads, without a key dropped."""
    text = "# words\ndata: vault\ndata.corpus: notes\ntop: 3\narms:\n  baseline: exp=baseline\n  rerank: rerank=on\n"
    refused = 0
    for content in itertools.islice(yaml_texts(text, random.Random(7)), 2000):
        try:
            value = read_yaml(content)
        except BoundaryError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 250
        else:
            assert value == yaml.load(content.decode("utf-8-sig"), Loader=yaml.CSafeLoader)
    assert refused > 800
