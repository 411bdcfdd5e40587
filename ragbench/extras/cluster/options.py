"""The option `execution=dask`."""

from __future__ import annotations

from ragbench.base.options import option
from ragbench.config.sections import ExecutionSpec

option(
    "execution=dask",
    "Dask workers embed texts and compute arms, with the same results; latency is measured here.",
    plain=True,
    kind="dask",
)(ExecutionSpec)
