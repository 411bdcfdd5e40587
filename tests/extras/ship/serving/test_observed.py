"""Lines and spans of requests."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
import threading
from collections.abc import Iterator

import httpx
import pytest

from ragbench.commands import cli
from ragbench.extras.ship.serving import listen, observed
from ragbench.extras.ship.serving.http import create_app


@pytest.fixture
def loggers(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loggers and hooks as they were."""
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    kept = [logging.getLogger(name) for name in ("", "ragbench", "uvicorn", "uvicorn.error")]
    before = [(each, each.handlers, each.propagate, each.level) for each in kept]
    for each in kept[2:]:  # another test may have let uvicorn configure them
        each.handlers, each.propagate = [], True
        each.setLevel(logging.NOTSET)
    yield
    logging.captureWarnings(False)
    for each, handlers, propagate, level in before:
        each.handlers, each.propagate = handlers, propagate
        each.setLevel(level)


def talk(service, sinks, **headers: str) -> None:
    async def session() -> None:
        transport = httpx.ASGITransport(create_app(service, sinks=sinks))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", headers=headers) as client:
            await client.post("/search", json={"query": "a secret question"})
            await client.get("/documents/nowhere")
            await client.get("/health", headers={"host": "evil.example"})

    asyncio.run(session())


def test_every_request_is_a_line_of_json(service, loggers, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("structlog", reason="install ragbench[ops]")
    sink = observed.json_log()
    logging.getLogger("ragbench.extras.ship.serving").warning("said by %s", "the service")
    try:
        raise OSError("broken")
    except OSError:
        logging.getLogger("ragbench.extras.ship.serving").exception("failed")
    talk(service, [sink])
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"] for line in lines] == ["said by the service", "failed", "request", "request", "request"]
    assert lines[1]["exception"][0]["exc_value"] == "broken"
    search, missing, refused = lines[2:]
    assert (search["method"], search["path"], search["status"], search["level"]) == ("POST", "/search", 200, "info")
    assert search["stage_ms"]["fuse"] >= 0
    assert search["ms"] > 0
    assert (missing["path"], missing["status"]) == ("/documents/nowhere", 404)
    assert (refused["status"], refused["caller"]) == (400, "")
    assert "secret" not in json.dumps(lines)


def test_whatever_is_said_is_json(loggers, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("structlog", reason="install ragbench[ops]")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(listen, "bind", interrupted)
    assert cli.main(["serve", "nowhere", "--json-log"]) == 130
    monkeypatch.undo()
    assert cli.main(["serve", "nowhere", "--json-log", "--host", "no.such.host.invalid"]) == 2
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    logging.getLogger("some.library").error("broken")
    thread = threading.Thread(target=lambda: 1 / 0)
    thread.start()
    thread.join()
    sys.excepthook(OSError, OSError("disk full"), None)
    lines = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    assert [line["event"].partition(";")[0].partition(" is no")[0] for line in lines] == [
        "interrupted",
        "--host no.such.host.invalid",
        "Invalid HTTP request received.",
        "broken",
        "a thread was ended by an error",
        "ended by an error",
    ]
    assert [line["exception"][0]["exc_type"] for line in lines[-2:]] == ["ZeroDivisionError", "OSError"]


def test_every_request_is_a_span_of_its_trace(service) -> None:
    pytest.importorskip("opentelemetry.exporter.otlp", reason="install ragbench[ops]")
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    exported = InMemorySpanExporter()
    sink, close = observed.traces(SimpleSpanProcessor(exported))
    trace, parent = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
    talk(service, [sink], traceparent=f"00-{trace}-{parent}-01")
    close()
    search, missing, _ = exported.get_finished_spans()
    assert (search.name, search.attributes["http.response.status_code"]) == ("POST /search", 200)
    assert format(search.context.trace_id, "032x") == trace
    assert format(search.parent.span_id, "016x") == parent
    assert "ragbench.stage_ms.fuse" in search.attributes
    assert missing.name == "GET /documents/{docno:path}"
    assert search.resource.attributes["service.name"] == "ragbench"
