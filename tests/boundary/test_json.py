"""JSON from outside."""

from __future__ import annotations

import itertools
import json
import math
import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from ragbench.base.types import BoundaryError
from ragbench.boundary.json import _depth_of, read_bytes, read_json, read_json_file, read_json_lines
from tests.boundary.mutations import json_texts
from tests.naming import naming
from tests.tables import rows

_NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
_SCALARS = st.none() | st.booleans() | _NUMBERS | st.text()
VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4)
)


@given(VALUES)
@settings(deadline=None)
def test_json_values_come_back(value: Any) -> None:
    assert read_json(json.dumps(value).encode()) == value
    assert read_json(json.dumps(value, ensure_ascii=False)) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *rows("boundary_json", "json_refusal_is_one_reason"),
        (b"\n\xff", "not valid UTF-8 at line 2"),
        ("[" * 200_000, "nested deeper than 64 levels"),
        ('{"a":' * 65 + "1" + "}" * 65, "nested deeper than 64 levels"),
        ("1" * 5000, f"the number {'1' * 40}... does not fit in 64 bits"),
        (b"\xef\xbb\xbf[1]", None),
    ],
)
def test_json_refusal_is_one_reason(text: str | bytes, reason: str | None) -> None:
    if reason is None:
        read_json(text)
        return
    with pytest.raises(BoundaryError) as refused:
        read_json(text)
    assert str(refused.value) == reason


def test_json_limits_are_those_of_the_call() -> None:
    assert read_json(b"[[1]]", max_bytes=5, max_depth=2) == [[1]]
    with pytest.raises(BoundaryError, check=naming("4 bytes")):
        read_json(b"[[1]]", max_bytes=4)
    with pytest.raises(BoundaryError, check=naming("1 levels")):
        read_json(b"[[1]]", max_depth=1)


def test_json_lines_name_the_broken_line() -> None:
    assert list(read_json_lines('{"a": 1}\n\n[2]\n')) == [{"a": 1}, [2]]
    with pytest.raises(BoundaryError, check=naming("line 3")):
        list(read_json_lines("1\n2\n{\n"))
    with pytest.raises(BoundaryError, check=naming("'a'", "line 2")):
        list(read_json_lines('1\n{"a": 1, "a": 2}'))


def test_json_is_read_from_regular_files_only(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("[1]")
    assert read_json_file(tmp_path / "good") == [1]
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(BoundaryError, match="not a regular file"):
        read_json_file(tmp_path / "pipe")
    with pytest.raises(BoundaryError, match="a folder, not a file"):
        read_json_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        read_json_file(tmp_path / "missing")
    with pytest.raises(BoundaryError, check=naming("2 bytes")):
        read_bytes(tmp_path / "good", max_bytes=2)


def test_json_depth_is_that_of_the_deepest_part() -> None:
    assert [_depth_of(value) for value in (1, [], [[1]], {"a": [{}]}, [1, [2, [3]]])] == [0, 1, 2, 3, 3]
    assert _depth_of([[[[]]]]) == 4


def test_json_mutations_are_refused_or_equal() -> None:
    """What is taken is plain: it can be written again as strict JSON, and reads the same."""
    whole = {
        "name": "a",
        "rows": [{"id": 1, "score": 0.5, "text": "é"}, {"id": 2, "score": -1.0, "text": ""}],
        "on": True,
    }
    refused = 0
    for content in itertools.islice(json_texts(whole, random.Random(7)), 2000):
        try:
            value = read_json(content)
        except BoundaryError as error:
            refused += 1
            assert "\n" not in str(error) and len(str(error)) < 200
            continue
        again = json.dumps(value, allow_nan=False, ensure_ascii=False).encode()
        assert read_json(again) == value
        assert not any(isinstance(leaf, float) and math.isinf(leaf) for leaf in _leaves(value))
    assert refused > 800


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for inner in value.values() for leaf in _leaves(inner)]
    return [leaf for inner in value for leaf in _leaves(inner)] if isinstance(value, list) else [value]
