"""Worker processes on this machine."""

from __future__ import annotations

from ragbench.base.pools import LocalPool
from ragbench.config.executions import Execution

EXECUTION = Execution(lambda count, begin, spec: LocalPool(count, begin))
