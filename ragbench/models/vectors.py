"""Scaling and checking the output of models, and the versions of libraries for digests."""

from __future__ import annotations

import importlib.metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.errors import ModelError


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
