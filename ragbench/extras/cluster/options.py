"""The choice `execution=dask`."""

from __future__ import annotations

from ragbench.base.options import choice

choice(
    "execution=dask",
    "Dask workers embed texts and compute arms, with the same results; latency is measured here.",
    {"kind": "dask"},
    package="execution",
)
