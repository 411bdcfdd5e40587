from __future__ import annotations

import numpy as np
import pytest

from ragbench.base.types import ModelError
from ragbench.models.texts import minor_version, unit_vector
from tests.naming import naming


def test_unit_by_hand() -> None:
    # |(3, 4)| = 5
    assert unit_vector(np.array([3, 4]), "m").tolist() == [np.float32(0.6), np.float32(0.8)]
    assert unit_vector(np.zeros(2), "m").tolist() == [0, 0]
    assert unit_vector(np.array([1e-30, 0], dtype=np.float32), "m").tolist() == [1, 0]


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_unit_vectors_refuse_nan_and_infinity(bad: float) -> None:
    with pytest.raises(ModelError, check=naming("model m")):
        unit_vector(np.array([1.0, bad]), "m")


def test_minor_version() -> None:
    assert np.__version__.startswith(minor_version("numpy") + ".")
    assert minor_version("numpy").count(".") == 1
