"""A local server that answers as other searches do, and counts and fails as it is told to."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest


@dataclass
class Server:
    """`answer` maps (path, query parameters, body) to JSON; `failures` are statuses that come first."""

    url: str = ""
    answer: Callable[[str, dict[str, str], Any], Any] = lambda path, parameters, body: {"hits": []}
    failures: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    requests: list[tuple[str, dict[str, str], dict[str, str], Any]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            split = urlsplit(self.path)
            parameters = {name: values[0] for name, values in parse_qs(split.query).items()}
            told.requests.append((split.path, parameters, dict(self.headers.items()), body))
            status, headers = told.failures.pop(0) if told.failures else (200, {})
            answer = told.answer(split.path, parameters, body) if status == 200 else {"error": status}
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_POST = do_GET  # noqa: N815

        def log_message(self, format: str, *args: Any) -> None:
            pass

    running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    told.url = f"http://127.0.0.1:{running.server_port}"
    yield told
    running.shutdown()
    running.server_close()
    thread.join()


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
