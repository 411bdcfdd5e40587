"""The texts that models accept, the texts of their errors, and their vectors: scaled and checked."""

from __future__ import annotations

import importlib.metadata
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.types import ModelError

WORD_OR_SIGN = re.compile(r"\w+|[^\w\s]")
"""What counts as a token for a model without a tokenizer."""


def one_line(error: Exception) -> str:
    """The text of a library's error in one line of at most 200 characters."""
    return " ".join(str(error).split())[:200]


def check_texts(texts: Sequence[str]) -> list[str]:
    """The texts as a list; TypeError for one string instead of a sequence and for an item that is not a string.

    Halves of surrogate pairs, which come from damaged files and which no tokenizer accepts, become U+FFFD.
    """
    if isinstance(texts, (str, bytes)):
        raise TypeError(f"a model takes a sequence of strings, got {type(texts).__name__}: put the text in a list")
    return [_check_text(number, text) for number, text in enumerate(texts)]


def _check_text(number: int, text: object) -> str:
    if not isinstance(text, str):
        raise TypeError(f"a model takes a sequence of strings, got {type(text).__name__} at position {number}")
    try:
        text.encode()
    except UnicodeEncodeError:
        # UTF-16 joins two halves that belong together.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return str(text)


def unit_vector(vector: NDArray[Any], name: str) -> NDArray[np.float32]:
    """The vector scaled to length 1 in double precision; a zero vector stays zero. ModelError unless it is finite."""
    values = check_finite(vector, name).astype(np.float64)
    if not 1e-150 < (largest := float(np.abs(values).max(initial=0))) < 1e150:  # whose squares have no double
        values = values / (largest or 1.0)
    length = float(np.sqrt(values @ values))
    return (values / (length or 1.0)).astype(np.float32)


def check_finite(numbers: NDArray[Any], name: str) -> NDArray[Any]:
    """The numbers unchanged; ModelError when one is not finite, before it can be stored or ranked."""
    if not np.isfinite(numbers).all():
        raise ModelError(f"model {name} gives numbers that are not finite: replace its weights")
    return numbers


def minor_version(package: str) -> str:
    """`1.31` for version 1.31.1 of an installed package."""
    return ".".join(importlib.metadata.version(package).split(".")[:2])
