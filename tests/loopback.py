"""A server on a free port of this machine that answers in JSON, for tests."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Loopback(ABC):
    """Answers one request at a time, by `respond`."""

    def __init__(self) -> None:
        served, lock = self, threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *words: object) -> None:
                pass

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                with lock:
                    status, said = served.respond(self.command, self.path, self.headers, body)
                sent = json.dumps(said).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_port
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    @abstractmethod
    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[int, Any]:
        """The status of an answer, and what it says."""

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
