"""Start and end of the server."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer

import pytest
import uvicorn
from fastapi import FastAPI

from ragbench.extras.ship.serving import server


def test_signal_before_it_listens_to_signals_ends_it(monkeypatch: pytest.MonkeyPatch) -> None:
    capture = uvicorn.Server.capture_signals

    @contextmanager
    def late(self: uvicorn.Server) -> Iterator[None]:
        os.kill(os.getpid(), signal.SIGINT)
        with capture(self):
            yield

    monkeypatch.setattr(uvicorn.Server, "capture_signals", late)
    again = Timer(20, os.kill, (os.getpid(), signal.SIGINT))
    again.start()
    try:
        with server.bind("127.0.0.1", 0) as bound:
            bound.listen()
            server.run(FastAPI(), bound, seconds=1)
        assert again.is_alive()
    finally:
        again.cancel()
