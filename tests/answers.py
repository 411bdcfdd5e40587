"""Answers as plain values, to compare with those of a server."""

from __future__ import annotations

from typing import Any

from pydantic import TypeAdapter

from ragbench.search.engine.answer import Answer


def as_mapping(answer: Answer) -> dict[str, Any]:
    plain: dict[str, Any] = TypeAdapter(Answer).dump_python(answer, mode="json")
    return plain
