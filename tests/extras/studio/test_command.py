"""`ragbench studio` as a process."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from ragbench.commands import cli


@pytest.mark.slow
def test_studio_prints_an_address_answers_there_and_ends_on_sigterm(project: Path) -> None:
    command = [sys.executable, "-m", "ragbench", "studio", "--port", "0", f"paths.results={project}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()  # type: ignore[union-attr]
            address = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)[0]
            with httpx.Client(follow_redirects=True, timeout=60) as browser:
                assert browser.get(address.partition("?")[0]).status_code == 403
                assert "New pool" in browser.get(address).text
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0


def test_studio_listens_on_this_machine_only(capsys) -> None:
    assert cli.main(["studio", "--host", "0.0.0.0"]) == 2
    assert "--host" in capsys.readouterr().err
