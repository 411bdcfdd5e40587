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
from ragbench.extras.studio.link import link


def test_other_machines_need_a_proxy(capsys) -> None:
    assert cli.main(["studio", "--host", "0.0.0.0", "--port", "0"]) == 2
    assert "put a proxy with TLS in front and add --behind-proxy" in capsys.readouterr().err


@pytest.mark.slow
def test_it_prints_an_address_answers_there_and_ends_on_request(project: Path) -> None:
    command = [sys.executable, "-m", "ragbench", "studio", "--port", "0", f"paths.results={project}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline()  # type: ignore[union-attr]
            address = re.search(r"http://127\.0\.0\.1:\d+/\?token=\S+", line)[0]
            with httpx.Client(follow_redirects=True, timeout=60) as browser:
                assert browser.get(address.partition("?")[0]).status_code == 403
                assert "3 runs" in browser.get(address).text
                run = next((project / "runs").iterdir())
                found = link(run)
                assert found.address == address.replace("/?", f"/runs/{run.name}?")
                assert "open in the studio" in found._repr_html_()
                assert (project / "studio" / "address").stat().st_mode & 0o077 == 0
        finally:
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
    assert not (project / "studio" / "address").exists()
    assert link(run).address == ""
    assert f"ragbench studio paths.results={project}" in repr(link(run))
