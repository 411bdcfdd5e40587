"""A vault of any size, and a local chat endpoint whose answers a test decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests import notes


@pytest.fixture(scope="session")
def write_vault() -> Callable[[Path, int], Path]:
    """A function that writes a vault of so many notes in three folders, the same each time."""
    return notes.write_vault


@dataclass
class ChatServer:
    """`answer` maps a prompt to a text; `prompts` and `keys` are what was asked, and with which key."""

    answer: Callable[[str], str] = lambda prompt: "yes"
    prompts: list[str] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    endpoint: str = ""

    def start(self) -> Callable[[], None]:
        """Listen; what is returned stops it."""
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                prompt = asked["messages"][0]["content"]
                told.prompts.append(prompt)
                told.keys.append(self.headers.get("Authorization"))
                content = json.dumps({"choices": [{"message": {"content": told.answer(prompt)}}]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        self.endpoint = f"http://127.0.0.1:{running.server_port}/v1"

        def stop() -> None:
            running.shutdown()
            running.server_close()
            thread.join()

        return stop


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    made = ChatServer()
    stop = made.start()
    yield made
    stop()
