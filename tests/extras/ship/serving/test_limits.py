import pytest

from ragbench.base.errors import ConfigError
from ragbench.extras.ship.serving.messages import Limits


@pytest.mark.parametrize(
    ("name", "value"), [("max_top", 0), ("time_limit", -1.0), ("time_limit", float("inf")), ("queue", float("nan"))]
)
def test_a_limit_is_above_0_and_finite(name: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"Limits.{name} must be .*(above 0|at least 1)"):
        Limits(**{name: value})
