"""Which arms are compared: weighted arms against weighted arms."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Contrast:
    """Weighted arms against weighted arms: an arm against its base, the effect of a factor, an interaction of two.

    `plus` and `minus` are weights by arm. `aliases` are effects that the design cannot separate from this one: the
    estimate is the sum of all of them.
    """

    factors: tuple[str, ...]
    plus: Mapping[str, float]
    minus: Mapping[str, float]
    aliases: tuple[tuple[str, ...], ...] = ()

    @staticmethod
    def of(arm: str, base: str) -> Contrast:
        """One arm against another."""
        return Contrast((arm,), {arm: 1.0}, {base: 1.0})

    @property
    def weights(self) -> dict[str, float]:
        """The weight of every arm: the one in `plus` minus the one in `minus`."""
        found = dict(self.plus)
        for arm, weight in self.minus.items():
            found[arm] = found.get(arm, 0.0) - weight
        return found

    def difference(self, by_arm: Mapping[str, float]) -> float:
        """The weighted sum of a number of every arm, such as the bytes of its index."""
        return sum(weight * by_arm[arm] for arm, weight in self.weights.items())
