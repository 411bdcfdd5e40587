"""A search service for HTTP and MCP: one queue, one bundle at a time, refusals without internal details."""

from __future__ import annotations

import asyncio
import logging
import math
import queue
import threading
import time
from bisect import bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from zlib import crc32

from ragbench.base.errors import ConfigError
from ragbench.base.fingerprint import short_digest
from ragbench.boundary.permissions import Capability
from ragbench.extras.ship import documents
from ragbench.extras.ship.bundle import RECORD
from ragbench.extras.ship.deployment import load
from ragbench.extras.ship.documents import ListedDocument
from ragbench.extras.ship.loaded_bundle import LoadedBundle
from ragbench.extras.ship.serving import messages
from ragbench.extras.ship.serving.metrics import Metrics
from ragbench.extras.ship.serving.search_log import SearchLog
from ragbench.index import jvm
from ragbench.models.access import Models
from ragbench.search.engine.context import DEPTH, context
from ragbench.search.engine.request import RETURN_ALL, SearchOptions, adapted_pipeline

_LOG = logging.getLogger(__name__)

T = TypeVar("T")
_CHECK_S = 10.0
"""Seconds between golden queries for `health`."""
_SMOOTHING = 0.1
"""The weight of the latest task in the mean time of a task."""


class Refused(Exception):
    """A search without an answer: `status` as in HTTP, a sentence for the caller, seconds to wait or None."""

    def __init__(self, status: int, sentence: str, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.retry_after = retry_after


class Busy(Refused):
    """The queue is full; `retry_after` is the number of seconds (at least 1) until it should have room."""

    def __init__(self, retry_after: int) -> None:
        super().__init__(503, f"too many requests wait already: try again in {retry_after} s", retry_after)


class Workers:
    """`count` threads that do tasks in the order of their arrival; at most `waiting` tasks wait for one of them.

    The threads are daemons: a search that never ends cannot keep the process from ending.
    """

    def __init__(self, count: int, waiting: int) -> None:
        self._tasks: queue.Queue[tuple[Callable[[], Any], Future[Any]] | None] = queue.Queue(waiting)
        self._mean_seconds = 0.0
        self._closed = False
        self._threads = [
            threading.Thread(target=self._work, name=f"search-{number}", daemon=True) for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def __len__(self) -> int:
        """The tasks that wait."""
        return self._tasks.qsize()

    def submit(self, task: Callable[[], T]) -> Future[T]:
        """Queue a task; it is skipped if its future is cancelled before its turn. Raises Busy if the queue is full."""
        future: Future[T] = Future()
        if self._closed:
            raise Busy(1)
        try:
            self._tasks.put_nowait((task, future))
        except queue.Full:
            ahead = self._tasks.maxsize / len(self._threads)
            raise Busy(max(1, math.ceil(ahead * self._mean_seconds))) from None
        return future

    def close(self, seconds: float) -> None:
        """Take no more tasks, end those that wait with Busy, and give those that run `seconds` to end."""
        self._closed = True
        try:
            while True:
                waiting = self._tasks.get_nowait()
                if waiting is not None and waiting[1].set_running_or_notify_cancel():
                    waiting[1].set_exception(Busy(1))
        except queue.Empty:
            pass
        deadline = time.monotonic() + seconds
        try:
            for _ in self._threads:
                self._tasks.put(None, timeout=max(0.0, deadline - time.monotonic()))
        except queue.Full:  # some threads still search: they are abandoned
            pass
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (entry := self._tasks.get()) is not None:
            task, future = entry
            if not future.set_running_or_notify_cancel():
                continue
            started = time.perf_counter()
            try:
                future.set_result(task())
            except BaseException as error:  # the caller that waits for the future handles it
                future.set_exception(error)
            del task, future, entry  # so that objects of a task are freed before the next one arrives
            self._mean_seconds += _SMOOTHING * (time.perf_counter() - started - self._mean_seconds)
        jvm.detach()


@dataclass
class OpenBundle:
    """An open bundle, a name for its content, and how many use it: the service while it answers, and searches."""

    bundle: LoadedBundle
    version: str
    users: int = 1


def open_bundle(
    folder: Path | str,
    threads: int | None = None,
    models: Models | None = None,
) -> OpenBundle:
    """Open a bundle and search it once, so that no request has to wait for late loading.

    `threads` limits the threads of one call of a model; `models` shares the models of another bundle. Raises
    BundleError, IndexError_ and ModelError as `load` does.
    """
    bundle = load(folder, threads=threads, models=models)
    bundle.search("warm up", 1)
    return OpenBundle(bundle, short_digest([bundle.record, bundle.serves.collection, bundle.serves.artefacts]))


class CurrentBundle:
    """Lends the current bundle; a replaced bundle is closed when its last search has ended."""

    def __init__(self, opened: OpenBundle) -> None:
        self._lock = threading.Lock()
        self._opened = opened

    @property
    def active(self) -> OpenBundle:
        """The bundle that answers now, to inspect it; to search in it, take a lease."""
        return self._opened

    @contextmanager
    def lease(self) -> Iterator[OpenBundle]:
        """The current bundle, which stays open until the block ends."""
        with self._lock:
            opened = self._opened
            opened.users += 1
        try:
            yield opened
        finally:
            self._release(opened)

    def replace(self, successor: OpenBundle) -> None:
        """Make `successor` answer from now on; searches under way end in the earlier bundle."""
        with self._lock:
            previous, self._opened = self._opened, successor
        self._release(previous)

    def close(self) -> None:
        """Close the bundle as soon as nothing uses it."""
        self._release(self._opened)

    def _release(self, opened: OpenBundle) -> None:
        with self._lock:
            opened.users -= 1
            unused = opened.users == 0
        if unused:
            opened.bundle.close()


class SearchService:
    """Answers searches from the bundle in `folder`. `threads` limits the threads of one call of a model.

    `mode` is the default mode of searches; `log` records searches and documents that are read. Raises BundleError,
    IndexError_ and ModelError when the bundle does not open, ConfigError when its pipeline has no such mode.
    """

    def __init__(
        self,
        folder: Path | str,
        limits: messages.Limits | None = None,
        threads: int | None = None,
        mode: str | None = None,
        log: SearchLog | None = None,
    ) -> None:
        self.folder = folder
        self.leaving = False
        """Whether the service is shutting down and only answers requests that still come."""
        self.failing = False
        """Whether the latest golden query ended in an error."""
        self._checked = -_CHECK_S
        self._log = log
        self._mode = mode
        self.limits = limits or messages.Limits()
        self._threads = threads
        opened = open_bundle(folder, threads)
        self._current = CurrentBundle(opened)
        self._workers = Workers(self.limits.workers, self.limits.queue)
        self.metrics = Metrics(lambda: len(self._workers))
        adapted_pipeline(opened.bundle.pipeline, SearchOptions().in_mode(mode), 1)
        self._announce(opened)

    async def search(self, request: messages.SearchRequest, session: str = "") -> messages.SearchAnswer:
        """Hits for a request. Raises Refused: 422 bad values, 503 no room, 504 no time, 500 an error (logged).

        `session` is the name of the connection in the log of searches.
        """
        started = time.monotonic()
        try:
            answer = await self._in_queue(lambda deadline: self._answer(request, deadline))
        except Refused as refusal:
            outcome = {422: "refused", 503: "busy", 504: "late"}.get(refusal.status, "failed")
            self.metrics.searches.labels(outcome).inc()
            raise
        finally:
            self.metrics.request_seconds.observe(time.monotonic() - started)
        self.metrics.searches.labels("answered").inc()
        for kind, present in (("hits", answer.hits), ("filters", answer.filters_applied)):
            if present:
                self.metrics.used.labels(kind).inc()
        if self._log is not None:
            self._log.log_search(session, request.query, (hit.docno for hit in answer.hits))
        return answer

    async def list_documents(self, request: messages.ListRequest) -> messages.DocumentList:
        """The documents that meet the conditions. Raises Refused as `search` does."""
        return await self._in_queue(lambda _: self._list(request))

    async def all_documents(self, prefix: str = "") -> list[ListedDocument]:
        """Return all documents whose ids begin with `prefix`, sorted by id. Raises Refused as `search` does."""

        def listed(_: float) -> list[ListedDocument]:
            with self._current.lease() as opened:
                return opened.bundle.documents(prefix)

        return await self._in_queue(listed)

    async def get_document(self, request: messages.DocumentRequest, session: str = "") -> messages.DocumentAnswer:
        """A document or lines of it. Raises Refused as `search` does, and 404 where no such document."""
        answer = await self._in_queue(lambda _: self._read(request))
        if self._log is not None:
            self._log.log_read(session, request.docno)
        return answer

    async def _in_queue(self, task: Callable[[float], T]) -> T:
        """The result of a task that a worker does; the task gets its deadline (of `time.monotonic`)."""
        deadline = time.monotonic() + self.limits.time_limit

        def in_time() -> T:
            if time.monotonic() > deadline:
                raise TimeoutError
            return task(deadline)

        try:
            future = self._workers.submit(in_time)
            async with asyncio.timeout(self.limits.time_limit):
                answer: T = await asyncio.wrap_future(future)
                return answer
        except Refused:
            raise
        except TimeoutError:
            raise Refused(
                504, f"the request took longer than {self.limits.time_limit:g} s: ask for less, or later"
            ) from None
        except ConfigError as error:
            raise Refused(422, str(error)) from None
        except Exception:
            _LOG.exception("a request failed")
            raise Refused(500, "the request failed; see the log of the service") from None

    def _answer(self, request: messages.SearchRequest, deadline: float) -> messages.SearchAnswer:
        """In a worker: search."""
        filters, options = request.filters.stage() if request.filters else None, request.options().in_mode(self._mode)
        if options.return_all and self.limits.max_top < RETURN_ALL:
            raise ConfigError(f"return_all cannot be used: this service returns {self.limits.max_top} hits at most")
        with self._current.lease() as opened:
            started = time.perf_counter()
            budget = request.budget
            depth = max(request.top_n, DEPTH) if budget else request.top_n
            answer = opened.bundle.answer(
                request.query, depth, filters=filters, options=options, explain=request.explain, deadline=deadline
            )
            hits = list(answer.hits)
            markdown = context(answer.query, hits, budget).text if budget else None
            took = time.perf_counter() - started
            self.metrics.search_seconds.observe(took)
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

    def _list(self, request: messages.ListRequest) -> messages.DocumentList:
        """In a worker: list documents."""
        filters = request.stage()
        with self._current.lease() as opened:
            index = opened.bundle.index
            rows = documents.rows_of_documents(index, request.prefix, filters.conditions if filters else None)
            docnos = [index.chunks.docnos[row] for row in rows]
            first = bisect_right(docnos, request.after)
            stop = first + request.limit
            return messages.DocumentList.model_construct(
                documents=[documents.listed_document(index, row) for row in rows[first:stop]],
                total=len(rows),
                next=docnos[stop - 1] if stop < len(rows) else None,
                version=opened.version,
            )

    def _read(self, request: messages.DocumentRequest) -> messages.DocumentAnswer:
        """In a worker: read a document."""
        if request.end_line < request.start_line:
            raise ConfigError(f"end_line must be at least start_line, got {request.start_line} and {request.end_line}")
        with self._current.lease() as opened:
            document = opened.bundle.document(request.docno, (request.start_line, request.end_line))
            if document is None:
                raise Refused(404, "no such document: the list of documents has the ids there are")
            return messages.DocumentAnswer.model_construct(document=document, version=opened.version)

    def _replay(self) -> None:
        """In a worker: run a golden query, unless the search sends queries to a server."""
        try:
            with self._current.lease() as opened:
                sends = any(need is Capability.SENDS for need, _ in opened.bundle.settings.search_needs.values())
                for golden in () if sends else opened.bundle.golden()[:1]:
                    opened.bundle.answer(golden.query.text, 1)
        except Exception:
            if not self.failing:
                _LOG.exception("a golden query failed")
            self.failing = True
        else:
            self.failing = False

    def health(self) -> messages.Health:
        """Return what is being searched now; a golden query is queued for the next call if the last is 10 s old."""
        if time.monotonic() - self._checked >= _CHECK_S:
            self._checked = time.monotonic()
            with suppress(Busy):
                self._workers.submit(self._replay)
        opened = self._current.active
        chunks, serves = opened.bundle.index.chunks, opened.bundle.serves
        return messages.Health(
            status="failing" if self.failing else "ok",
            bundle=opened.bundle.name,
            version=opened.version,
            documents=chunks.n_documents,
            chunks=len(chunks),
            pipeline=repr(opened.bundle.pipeline),
            waiting=len(self._workers),
            generation=serves.number,
            refreshed=serves.made or None,
            chunks_changed=serves.drift.chunks_changed,
            golden_agreement=serves.drift.agreement,
            kept_files=len(serves.kept),
        )

    def engine_signature(self) -> tuple[tuple[str, int, int, int], ...]:
        """What a server says about its content, as `reload.signature` does of files; empty where it does not answer."""
        state = self._current.active.bundle.state()
        return () if state is None else ((RECORD, crc32(repr(state).encode()), 0, 0),)

    def reload(self) -> str:
        """Open the folder again and make the new bundle answer; returns its version. No request is dropped.

        If the new bundle does not open, the old one still answers and the error is raised.
        """
        try:
            opened = open_bundle(self.folder, self._threads, self._current.active.bundle.index.models)
        except BaseException:
            self.metrics.reloads.labels("failed").inc()
            raise
        self._current.replace(opened)
        self._announce(opened)
        self.metrics.reloads.labels("done").inc()
        return opened.version

    def close(self) -> None:
        """Finish the searches under way, refuse those that wait, close the bundle."""
        self._workers.close(self.limits.time_limit)
        self._current.close()

    def _announce(self, opened: OpenBundle) -> None:
        self.metrics.documents.set(opened.bundle.index.chunks.n_documents)
        self.metrics.serves(opened.bundle.serves)
        self.metrics.bundle.clear()
        self.metrics.bundle.labels(opened.bundle.name, opened.version).set(1)
