"""A local server that answers as other searches do, and counts and fails as it is told to."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tests.loopback import Loopback


class Server(Loopback):
    """`answer` maps (path, query parameters, body) to JSON; `failures` are statuses that come first."""

    parallel = True

    def __init__(self) -> None:
        super().__init__()
        self.answer: Callable[[str, dict[str, str], Any], Any] = lambda path, parameters, body: {"hits": []}
        self.failures: list[tuple[int, dict[str, str]]] = []
        self.requests: list[tuple[str, dict[str, str], dict[str, str], Any]] = []

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[Any, ...]:
        split, asked = urlsplit(path), json.loads(body) if body else None
        parameters = {name: values[0] for name, values in parse_qs(split.query).items()}
        self.requests.append((split.path, parameters, dict(headers.items()), asked))
        status, more = self.failures.pop(0) if self.failures else (200, {})
        return status, self.answer(split.path, parameters, asked) if status == 200 else {"error": status}, more


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


@pytest.fixture(scope="session")
def mcp_address() -> Iterator[str]:
    """The address of `mcp_server.py` over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, str(Path(__file__).with_name("mcp_server.py")), str(port)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        for _ in range(600):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert process.poll() is None, "the server has ended"
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
        process.terminate()
