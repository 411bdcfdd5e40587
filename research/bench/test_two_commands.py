"""From 500 notes without queries to a verdict and a report: two commands, in a fresh process each.

python -m pytest research/bench/test_two_commands.py --benchmark-only -s
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from ragbench.results import store
from tests.notes import write_vault

LIMIT_S = 240
DATA = ["data=vault", "data.corpus=notes", "paths.results=results"]
COMMANDS = (
    ["topics", "derive", *DATA],
    ["run", "-m", "+exp=lexical_only,baseline", *DATA, "topics=derived"],
)


def test_two_commands_take_less_than_four_minutes(benchmark, tmp_path: Path) -> None:
    write_vault(tmp_path / "notes", 500)
    said: list[str] = []

    def both() -> None:
        for words in COMMANDS:
            command = [sys.executable, "-m", "ragbench", *words]
            path = os.pathsep.join([str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")])
            env = {**os.environ, "PYTHONPATH": path}
            done = subprocess.run(command, cwd=tmp_path, env=env, check=True, capture_output=True, text=True)
            said.append(done.stdout)

    benchmark.pedantic(both, rounds=1)
    assert "300 synthetic queries from 500 documents" in said[0]
    assert (store.latest(tmp_path / "results") / "report.html").is_file() and "baseline" in said[1]
    assert benchmark.stats["max"] < LIMIT_S
