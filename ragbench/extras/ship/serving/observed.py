"""Records of requests in addition to the metrics, if asked for: a line of JSON, a span of a trace.

Neither contains the text of a query or a token.
"""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ragbench.base.errors import ConfigError

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import SpanProcessor

_MISSING = "{option} needs a package that is not installed ({name}): pip install ragbench[ops]"


@dataclass(frozen=True)
class EndedRequest:
    """A request that has ended: times in nanoseconds since 1970, `caller` as the guard names it."""

    method: str
    path: str
    route: str
    status: int
    started: int
    ended: int
    caller: str
    headers: Mapping[str, str]
    stage_ms: Mapping[str, float]


Sink = Callable[[EndedRequest], None]


class RequestObserver:
    """ASGI middleware: calls its sinks with every request."""

    def __init__(self, app: ASGIApp, sinks: Sequence[Sink]) -> None:
        self._app = app
        self._sinks = sinks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, then call the sinks."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        status, started = 500, time.time_ns()

        async def ended(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, ended)
        finally:
            state, route = scope.get("state", {}), getattr(scope.get("route"), "path", "")
            headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
            details = (state.get("caller", ""), headers, state.get("stage_ms", {}))
            request = EndedRequest(scope["method"], scope["path"], route, status, started, time.time_ns(), *details)
            for sink in self._sinks:
                sink(request)


def json_log() -> Sink:
    """Write log messages, warnings and uncaught errors as JSON on standard error, and a line for every request.

    Raises ConfigError without structlog.
    """
    try:
        import structlog
    except ImportError:
        raise ConfigError(_MISSING.format(option="--json-log", name="structlog")) from None

    stamped: list[Any] = [structlog.stdlib.add_log_level, structlog.processors.TimeStamper(fmt="iso", utc=True)]
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=stamped,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.dict_tracebacks,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    everything, ours = logging.getLogger(), logging.getLogger("ragbench")
    everything.handlers = ours.handlers = [handler]
    ours.propagate = False
    ours.setLevel(logging.INFO)
    logging.captureWarnings(True)
    sys.excepthook = lambda kind, error, trace: ours.critical("ended by an error", exc_info=(kind, error, trace))
    threading.excepthook = lambda event: ours.critical("a thread was ended by an error", exc_info=event.exc_value)
    log = structlog.wrap_logger(
        logging.getLogger("ragbench.requests"),
        processors=[*stamped, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
    )

    def tell(request: EndedRequest) -> None:
        ms = round((request.ended - request.started) / 1e6, 3)
        stages = {"stage_ms": dict(request.stage_ms)} if request.stage_ms else {}
        named = {
            "method": request.method,
            "path": request.path,
            "status": request.status,
            "ms": ms,
            "caller": request.caller,
        }
        log.info("request", **named, **stages)

    return tell


def traces(processor: SpanProcessor | None = None) -> tuple[Sink, Callable[[], None]]:
    """A sink that makes a span for every request, in the trace of its `traceparent`; and a function to call at the end.

    Spans go where the variables OTEL_* say (OTLP over HTTP, by default to this machine), or to the argument
    `processor`. Raises ConfigError without OpenTelemetry."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.trace import SpanKind
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
    except ImportError as error:
        raise ConfigError(_MISSING.format(option="--traces", name=error.name)) from None

    named = Resource({SERVICE_NAME: "ragbench"}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=named)
    provider.add_span_processor(processor or BatchSpanProcessor(OTLPSpanExporter()))
    tracer, propagator = provider.get_tracer("ragbench"), TraceContextTextMapPropagator()

    def tell(request: EndedRequest) -> None:
        attributes: dict[str, str | int | float] = {
            "http.request.method": request.method,
            "http.route": request.route,
            "http.response.status_code": request.status,
            "enduser.id": request.caller,
            **{f"ragbench.stage_ms.{name}": ms for name, ms in request.stage_ms.items()},
        }
        span = tracer.start_span(
            f"{request.method} {request.route}".strip(),
            context=propagator.extract(request.headers),
            kind=SpanKind.SERVER,
            attributes=attributes,
            start_time=request.started,
        )
        span.end(end_time=request.ended)

    return tell, provider.shutdown
