"""A server on a free port of this machine, for tests."""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import nullcontext, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, NamedTuple


class Answer(NamedTuple):
    """`content`: bytes, pieces of them one by one, or a value to send as JSON."""

    status: int
    content: Any
    headers: Mapping[str, str] = {}


class Loopback(ABC):
    """Answers requests by `respond`; one at a time, unless they are `parallel`."""

    parallel: ClassVar[bool] = False

    def __init__(self) -> None:
        served, lock = self, nullcontext() if self.parallel else threading.Lock()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else a body waits 40 ms for the answer to its headers

            def log_message(self, *arguments: object) -> None:
                pass

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length", 0)))
                with lock:
                    status, content, headers = Answer(*served.respond(self.command, self.path, self.headers, body))
                with suppress(OSError):  # the client has hung up
                    self.send(status, content, headers)

            def send(self, status: int, content: Any, headers: Mapping[str, str]) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                if isinstance(content, Iterator):
                    self.send_header("connection", "close")
                    pieces = content
                else:
                    sent = content if isinstance(content, bytes) else json.dumps(content).encode()
                    self.send_header("content-length", str(len(sent)))
                    pieces = iter([sent])
                self.end_headers()
                for piece in pieces if self.command != "HEAD" else ():
                    self.wfile.write(piece)

            do_HEAD = do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.http.server_port
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @abstractmethod
    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[Any, ...]:
        """The fields of an `Answer`."""

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        self.http.shutdown()
        self.http.server_close()
