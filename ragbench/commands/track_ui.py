"""`ragbench track ui`."""

from __future__ import annotations

import argparse
import os
import sys

from ragbench.base import console
from ragbench.base.errors import ConfigError

DESCRIPTION = """Open MLflow on the store that the runs were written to, on this machine only.

Of every arm it has the parameters, the measures, the files and the data; arms are compared side by side."""
EXAMPLES = """examples:
  ragbench track ui
  ragbench track ui --port 5005 paths.results=/data/results
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Port, and overrides that say where the store is."""
    parser.add_argument("--port", metavar="N", type=int, default=5000, help="port on 127.0.0.1 (default 5000)")
    console.add_overrides(parser)


def main(arguments: argparse.Namespace) -> int:
    """Replace this process by MLflow's server."""
    from ragbench import tracking
    from ragbench.config import composition

    if not 1 <= arguments.port <= 65_535:
        raise ConfigError(f"--port must be between 1 and 65535, got {arguments.port}")
    settings = composition.compose(arguments.overrides)
    target = tracking.target_of(settings)
    tracking.check(target)
    tracking.prepare(target, console.say)
    address = f"http://127.0.0.1:{arguments.port}"
    print(f"MLflow on {address} for {target.uri}; stop it with Ctrl-C")
    print(f"the newest comparison: {address}{tracking.comparison(target)}", flush=True)
    command = [
        sys.executable,
        "-m",
        "mlflow",
        "ui",
        "--backend-store-uri",
        target.uri,
        "--port",
        str(arguments.port),
        "--workers",
        "1",
    ]
    os.execv(sys.executable, command)
