"""Exchanges with real servers on this machine."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ragbench.base.types import BoundaryError
from ragbench.extras.remote.http import Client, HttpError, origin
from tests.naming import naming
from tests.tables import rows

KEY = {"Authorization": "Bearer secret"}


class Raw:
    """A server that gives the same bytes to everybody, or lets `talk` write them; `heard` are the requests."""

    def __init__(self, answer: bytes | Callable[[socket.socket], None]) -> None:
        self.heard: list[bytes] = []
        self._answer = answer
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                talk, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._talk, args=(talk,), daemon=True).start()

    def _talk(self, talk: socket.socket) -> None:
        with talk:
            try:
                heard = talk.recv(65536)
                while b'"q"' not in heard and heard.startswith(b"POST"):
                    heard += talk.recv(65536)  # the body comes in a packet of its own
                self.heard.append(heard)
                if callable(self._answer):
                    self._answer(talk)
                else:
                    talk.sendall(self._answer)
            except OSError:
                pass  # the client has hung up, as the test wants

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()


@contextmanager
def serving(answer: bytes | Callable[[socket.socket], None]) -> Iterator[Raw]:
    server = Raw(answer)
    try:
        yield server
    finally:
        server.close()


def _whole(body: bytes, head: bytes = b"", status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.1 %s\r\nContent-Length: %d\r\nConnection: close\r\n%s\r\n%s" % (status, len(body), head, body)


def _ask(server: Raw, **more: float) -> object:
    return (
        Client(server.url, KEY, timeout_s=more.pop("timeout_s", 20.0), **more).send("POST", server.url, {"q": 1}).json()
    )  # type: ignore[arg-type]


def test_client_returns_the_answer_and_sends_the_key() -> None:
    with serving(_whole(b'{"hits": [1]}')) as server:
        assert _ask(server) == {"hits": [1]}
    assert b"Bearer secret" in server.heard[0] and b'{"q": 1}' in server.heard[0]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_redirection_is_not_followed(status: int) -> None:
    with serving(_whole(b'{"hits": []}')) as other:
        head = b"Location: %s/x\r\n" % other.url.encode()
        moved, reason = _whole(b"", head, b"%d Moved" % status), f"status {status}, a redirection, which is not"
        with serving(moved) as server, pytest.raises(HttpError, match=reason) as refused:
            _ask(server)
    assert not refused.value.again
    assert other.heard == []


def test_client_sends_nothing_to_another_origin() -> None:
    with serving(_whole(b"1")) as server, serving(_whole(b"1")) as other:
        client = Client(server.url, KEY, timeout_s=20)
        for address in (other.url, server.url.replace("127.0.0.1", "localhost"), server.url.replace("http", "https")):
            with pytest.raises(HttpError, check=naming("another host")):
                client.send("GET", address)
    assert server.heard == other.heard == []


@pytest.mark.parametrize("address", rows("remote_http", "unusable_addresses_are_refused"))
def test_unusable_addresses_are_refused(address: str) -> None:
    with pytest.raises(BoundaryError) as refused:
        Client(address, timeout_s=1)
    assert "\n" not in str(refused.value)
    assert "a:b" not in str(refused.value)


def test_origin_has_scheme_host_and_port() -> None:
    assert origin("http://X/") == origin("http://x:80") == ("http", "x", 80)
    assert origin("https://x") == ("https", "x", 443)
    assert origin("http://[::1]:8080/a") == ("http", "::1", 8080)


def test_unsendable_key_is_refused_and_not_shown() -> None:
    for key in ("Bearer a\nb", "Bearer ü"):
        with pytest.raises(HttpError) as refused:
            Client("http://localhost", {"Authorization": key}, timeout_s=1)
        assert "Authorization" in str(refused.value)
        assert "Bearer" not in str(refused.value)


def _drip(head: bytes) -> Callable[[socket.socket], None]:
    def talk(to: socket.socket) -> None:
        to.sendall(head)
        while True:
            to.sendall(b"x")
            time.sleep(0.05)

    return talk


@pytest.mark.parametrize("head", [b"", b"HTTP/1.1 200 OK\r\nA: ", b"HTTP/1.1 200 OK\r\n\r\n"])
def test_timeout_bounds_the_whole_exchange(head: bytes) -> None:
    with serving(_drip(head)) as server, pytest.raises(HttpError) as refused:
        _ask(server, timeout_s=0.5)
    assert "within" in str(refused.value)
    assert refused.value.again


def test_answer_above_the_limit_is_refused() -> None:
    with serving(_whole(b" " * 2000)) as server, pytest.raises(HttpError, check=naming("larger")):
        _ask(server, max_bytes=1000)


def test_compressed_answer_is_refused() -> None:
    packed = gzip.compress(b" " * 10**6)
    answer = _whole(packed, b"Content-Encoding: gzip\r\n")
    with serving(answer) as server, pytest.raises(HttpError, check=naming("compressed")):
        _ask(server)


@pytest.mark.parametrize(
    "body", [b"[" * 200_000, b"1e999", b'"\\ud800"', b"{", b"\xff", b'{"a": 1, "a": 2}', b"NaN", b"9" * 5000]
)
def test_answer_without_plain_json_is_one_error(body: bytes) -> None:
    with serving(_whole(body)) as server, pytest.raises(BoundaryError):
        _ask(server)


@pytest.mark.parametrize(
    "answer", [b"", b"\x00\xff\x00", b"HTTP/1.1 999999 X\r\n\r\n", b"SSH-2.0\r\n", b"HTTP/1.1 200"]
)
def test_answer_without_http_is_one_error(answer: bytes) -> None:
    with serving(answer) as server, pytest.raises(HttpError) as refused:
        _ask(server)
    assert str(refused.value)


def test_refusal_says_whether_to_try_again() -> None:
    busy = _whole(b"slow\ndown", b"Retry-After: 7\r\n", b"429 Busy")
    with serving(busy) as server, pytest.raises(HttpError) as refused:
        _ask(server)
    error = refused.value
    assert (str(error), error.again, error.after_s, error.status, error.body) == (
        "status 429",
        True,
        7.0,
        429,
        "slow down",
    )
    with serving(_whole(b"", b"", b"404 No")) as server, pytest.raises(HttpError) as refused:
        _ask(server)
    assert not refused.value.again


def test_missing_server_is_one_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(HttpError) as refused:
        Client(f"http://127.0.0.1:{port}", timeout_s=5).send("GET", f"http://127.0.0.1:{port}/")
    assert refused.value.again
