"""Trust in files from others, for one command: `--trust` lets them name servers, programs and classes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

_TRUSTED = "RAGBENCH_TRUST"
"""The environment variable by which `--trust` reaches the processes that a command starts."""


def trusting() -> bool:
    """Return True if project files and bundles may specify servers, programs and classes (`--trust`)."""
    return os.environ.get(_TRUSTED) == "1"


@contextmanager
def trust() -> Iterator[None]:
    """Let project files and bundles specify servers, programs and classes inside the block."""
    value_before = os.environ.get(_TRUSTED)
    os.environ[_TRUSTED] = "1"
    try:
        yield
    finally:
        if value_before is None:
            del os.environ[_TRUSTED]
        else:
            os.environ[_TRUSTED] = value_before
