"""A search service for HTTP and MCP: one search at a time, one bundle at a time, refusals without internal details."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import anyio
from anyio import to_thread
from starlette.exceptions import HTTPException

from ragbench.base.fingerprint import short_digest
from ragbench.base.types import ConfigError
from ragbench.extras.ship.deployment import load
from ragbench.extras.ship.documents import ListedDocument
from ragbench.extras.ship.loaded_bundle import LoadedBundle
from ragbench.extras.ship.serving import messages
from ragbench.extras.ship.serving.search_log import SearchLog
from ragbench.index import jvm
from ragbench.models import resolve
from ragbench.search.engine import context
from ragbench.search.engine.answer import RETURN_ALL, SearchOptions, adapted_pipeline

_LOG = logging.getLogger(__name__)

T = TypeVar("T")
WAITING = 64
"""The most requests that wait for the one under way; the next one is refused, so that memory stays bounded."""
_LOOK_S = 0.5
"""Seconds between two looks whether another bundle or generation is there."""
_AGAIN_S = 5.0
"""Seconds until a bundle that did not open is tried again."""


class _Opened(NamedTuple):
    """An open bundle, and a name for its content."""

    bundle: LoadedBundle
    version: str


class SearchService:
    """Answers searches from the bundle in `folder`.

    `mode` is the default mode of searches; `log` records searches and documents that are read. Requests that search or
    read raise HTTPException with a sentence: 404 no such document, 422 bad values, 503 too many requests wait, 504 no
    time, 500 an error (logged).

    Raises BundleError, IndexError_ and ModelError when the bundle does not open, ConfigError when its pipeline has no
    such mode.
    """

    def __init__(
        self,
        folder: Path | str,
        limits: messages.MessageLimits | None = None,
        mode: str | None = None,
        log: SearchLog | None = None,
    ) -> None:
        self.folder = folder
        self.limits = limits or messages.MessageLimits()
        self._mode = mode
        self._log = log
        self._turn = anyio.CapacityLimiter(1)  # Java takes one thread at a time, and the models use all CPUs
        self._requests = 0
        self._opened = self._open()
        adapted_pipeline(self._opened.bundle.pipeline, SearchOptions().in_mode(mode), 1)

    async def search(self, request: messages.SearchRequest, session: str = "") -> messages.SearchAnswer:
        """Hits for a request; `session` is the name of the connection in the log of searches."""
        answer = await self._in_turn(lambda deadline: self._answer(request, deadline))
        if self._log is not None:
            self._log.log_search(session, request.query, (hit.docno for hit in answer.hits))
        return answer

    async def documents(self, prefix: str = "") -> list[ListedDocument]:
        """All documents whose ids begin with `prefix`, sorted by id."""
        return await self._in_turn(lambda _: self._opened.bundle.documents(prefix))

    async def document(self, request: messages.DocumentRequest, session: str = "") -> messages.DocumentAnswer:
        """A document or lines of it."""
        answer = await self._in_turn(lambda _: self._read(request))
        if self._log is not None:
            self._log.log_read(session, request.docno)
        return answer

    def health(self) -> messages.Health:
        """What is being searched now."""
        opened = self._opened
        chunks, serves = opened.bundle.index.chunks, opened.bundle.serves
        return messages.Health(
            status="ok",
            bundle=opened.bundle.name,
            version=opened.version,
            documents=chunks.n_documents,
            chunks=len(chunks),
            pipeline=repr(opened.bundle.pipeline),
            generation=serves.number,
            refreshed=serves.made or None,
            chunks_changed=serves.drift.chunks_changed,
            golden_agreement=serves.drift.agreement,
            kept_files=len(serves.kept),
        )

    async def follow(self) -> None:
        """Open each bundle or generation that replaces the one that answers, until this is cancelled."""
        refused: object = None
        while True:
            await anyio.sleep(_LOOK_S)
            bundle = self._opened.bundle
            state = await to_thread.run_sync(bundle.state, limiter=self._turn)
            if state is None or state == bundle.opened_as:
                continue
            try:
                version = await self.reload()
            except Exception as error:
                if state != refused:
                    _LOG.error("the bundle was not reloaded, the earlier one still answers (%s)", error)
                refused = state
                await anyio.sleep(_AGAIN_S)
            else:
                _LOG.info("the bundle was reloaded, version %s answers now", version)

    async def reload(self) -> str:
        """Open the folder again and make the new bundle answer; returns its version. No request is dropped.

        If the new bundle does not open, the old one still answers and the error is raised.
        """
        models = self._opened.bundle.index.models
        opened = await to_thread.run_sync(self._open, models)
        previous, self._opened = self._opened, opened
        # In its turn, so that no search is under way in it.
        await to_thread.run_sync(previous.bundle.close, limiter=self._turn)
        return opened.version

    def close(self) -> None:
        """Close the bundle; requests fail from now on."""
        self._opened.bundle.close()

    def _open(self, models: resolve.Models | None = None) -> _Opened:
        """Open the bundle and search it once, so that no request has to wait for late loading."""
        try:
            bundle = load(self.folder, models=models)
            bundle.search("warm up", 1)
        finally:
            jvm.detach()  # the thread that reloads ends soon; the one that searches is used again
        return _Opened(bundle, short_digest([bundle.record, bundle.serves.collection, bundle.serves.artefacts]))

    async def _in_turn(self, task: Callable[[float], T]) -> T:
        """The result of a task, which gets its deadline (of `time.monotonic`) and runs in a thread in its turn.

        A task that is too late is not waited for. It keeps its place until its thread has ended: cancelling it would
        free the place for a second thread.
        """
        if self._requests > WAITING:
            raise HTTPException(503, "too many requests wait already: try again in 1 s", {"Retry-After": "1"})
        deadline = time.monotonic() + self.limits.time_limit

        def in_time() -> T:
            if time.monotonic() > deadline:
                raise TimeoutError
            return task(deadline)

        running = asyncio.ensure_future(to_thread.run_sync(in_time, limiter=self._turn))
        self._requests += 1
        running.add_done_callback(self._end)
        try:
            async with asyncio.timeout(self.limits.time_limit):
                return await asyncio.shield(running)
        except HTTPException:
            raise
        except TimeoutError:
            sentence = f"the request took longer than {self.limits.time_limit:g} s: ask for less, or later"
            raise HTTPException(504, sentence) from None
        except ConfigError as error:
            raise HTTPException(422, str(error)) from None
        except Exception:
            _LOG.exception("a request failed")
            raise HTTPException(500, "the request failed; see the log of the service") from None

    def _end(self, running: asyncio.Future[Any]) -> None:
        self._requests -= 1
        if not running.cancelled():
            running.exception()  # else asyncio reports that nobody has waited for it

    def _answer(self, request: messages.SearchRequest, deadline: float) -> messages.SearchAnswer:
        """In a thread: search."""
        filters, options = request.filters.stage() if request.filters else None, request.options().in_mode(self._mode)
        if options.return_all and self.limits.max_top < RETURN_ALL:
            raise ConfigError(f"return_all cannot be used: this service returns {self.limits.max_top} hits at most")
        opened = self._opened
        started = time.perf_counter()
        budget = request.budget
        depth = max(request.top_n, context.DEPTH) if budget else request.top_n
        answer = opened.bundle.answer(
            request.query, depth, filters=filters, options=options, explain=request.explain, deadline=deadline
        )
        hits = list(answer.hits)
        markdown = context.context(answer.query, hits, budget).text if budget else None
        took = time.perf_counter() - started
        return messages.SearchAnswer.model_construct(
            hits=hits if options.return_all else hits[: answer.filter_results + request.top_n],
            filter_results=answer.filter_results,
            total=answer.total,
            filters_applied=answer.filters_applied,
            notes=list(answer.notes),
            context=answer.xml if request.format == "xml" else markdown,
            bundle=opened.bundle.name,
            version=opened.version,
            stage_ms=answer.stage_ms,
            took_ms=round(1e3 * took, 3),
        )

    def _read(self, request: messages.DocumentRequest) -> messages.DocumentAnswer:
        """In a thread: read a document."""
        if request.end_line < request.start_line:
            raise ConfigError(f"end_line must be at least start_line, got {request.start_line} and {request.end_line}")
        opened = self._opened
        document = opened.bundle.document(request.docno, (request.start_line, request.end_line))
        if document is None:
            raise HTTPException(404, "no such document")
        return messages.DocumentAnswer.model_construct(document=document, version=opened.version)
