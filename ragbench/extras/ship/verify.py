"""Check that a deployed search answers on this machine as where it was measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ragbench.base.errors import ConfigError
from ragbench.export.gate import Check
from ragbench.extras.ship.checks import Options
from ragbench.extras.ship.deployment import deployment

LATENCY_TOLERANCE = 0.5
"""How much higher p95 may be than the measured one, as a share of it."""


def verify(
    folder: Path | str,
    *,
    corpus: Path | None = None,
    latency_tolerance: float = LATENCY_TOLERANCE,
    latency: bool = True,
) -> Iterator[Check]:
    """Check a bundle, or an engine by its file or address, part by part and yield each outcome.

    Raises BundleError for a folder that is not a bundle.

    `corpus`: the folder of the documents now; without it, a bundle with an index is not compared with documents that
    are missing.
    """
    if latency_tolerance < 0:
        raise ConfigError(f"--latency-tolerance must be at least 0, got {latency_tolerance:g}")
    yield from deployment(folder).check(Options(corpus, latency_tolerance if latency else None))
