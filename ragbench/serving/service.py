"""A search service, whatever it is reached by: one queue, one bundle at a time, no detail of ours in a refusal."""

from __future__ import annotations

import asyncio
import logging
import time
from pathlib import Path

from ragbench.errors import ConfigError
from ragbench.serving.current import CurrentBundle, Opened, open_bundle
from ragbench.serving.limits import Limits
from ragbench.serving.messages import FoundHit, Health, SearchAnswer, SearchRequest
from ragbench.serving.metrics import Metrics
from ragbench.serving.workers import Busy, Workers

LOG = logging.getLogger("ragbench.serving")


class Refused(Exception):
    """A search without an answer: `status` as in HTTP, a sentence for the one who asked, seconds to wait if any."""

    def __init__(self, status: int, sentence: str, retry_after: int | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.retry_after = retry_after


class SearchService:
    """Answers searches from the bundle in `folder`. `threads` limits the threads of one call of a model.

    Raises BundleError, IndexError_ and ModelError when the bundle does not open.
    """

    def __init__(self, folder: Path, limits: Limits | None = None, threads: int | None = None) -> None:
        self.folder = folder
        self.limits = limits or Limits()
        self._threads = threads
        opened = open_bundle(folder, threads)
        self._current = CurrentBundle(opened)
        self._workers: Workers[SearchAnswer] = Workers(self.limits.workers, self.limits.queue)
        self.metrics = Metrics(lambda: len(self._workers))
        self._announce(opened)

    async def search(self, request: SearchRequest) -> SearchAnswer:
        """Hits for a request. Raises Refused: 422 bad values, 503 no room, 504 no time, 500 an error (logged)."""
        started = time.monotonic()
        try:
            answer = await self._search(request, started + self.limits.time_limit)
        except Refused as refusal:
            outcome = {422: "refused", 503: "busy", 504: "late"}.get(refusal.status, "failed")
            self.metrics.searches.labels(outcome).inc()
            raise
        finally:
            self.metrics.request_seconds.observe(time.monotonic() - started)
        self.metrics.searches.labels("answered").inc()
        return answer

    async def _search(self, request: SearchRequest, deadline: float) -> SearchAnswer:
        try:
            future = self._workers.submit(lambda: self._answer(request, deadline))
            async with asyncio.timeout(self.limits.time_limit):
                return await asyncio.wrap_future(future)
        except Busy as busy:
            raise Refused(
                503, f"too many requests wait already: try again in {busy.retry_after} s", busy.retry_after
            ) from None
        except TimeoutError:
            raise Refused(
                504, f"the search took longer than {self.limits.time_limit:g} s: ask for less, or later"
            ) from None
        except ConfigError as error:
            raise Refused(422, str(error)) from None
        except Exception:
            LOG.exception("a search failed")
            raise Refused(500, "the search failed; the log of the service says why") from None

    def _answer(self, request: SearchRequest, deadline: float) -> SearchAnswer:
        """In a worker: search."""
        if time.monotonic() > deadline:
            raise TimeoutError
        filters = request.filters.stage() if request.filters else None
        with self._current.lease() as opened:
            started = time.perf_counter()
            hits = opened.bundle.search(
                request.query, request.top_n, filters=filters, hypothesis=request.hypothesis, deadline=deadline
            )
            took = time.perf_counter() - started
            self.metrics.search_seconds.observe(took)
            return SearchAnswer.model_construct(
                hits=[FoundHit.of(hit) for hit in hits],
                bundle=opened.bundle.name,
                version=opened.version,
                took_ms=round(1e3 * took, 3),
            )

    def health(self) -> Health:
        """What is being searched now."""
        opened = self._current.opened
        chunks = opened.bundle.index.chunks
        return Health(
            status="ok",
            bundle=opened.bundle.name,
            version=opened.version,
            documents=chunks.n_documents,
            chunks=len(chunks),
            pipeline=repr(opened.bundle.pipeline),
            waiting=len(self._workers),
        )

    def reload(self) -> str:
        """Open the folder again and let the new bundle answer; the version that answers now. No request is dropped.

        When the new one does not open, the old one goes on answering and the error is raised.
        """
        try:
            opened = open_bundle(self.folder, self._threads)
        except BaseException:
            self.metrics.reloads.labels("failed").inc()
            raise
        self._current.replace(opened)
        self._announce(opened)
        self.metrics.reloads.labels("done").inc()
        return opened.version

    def close(self) -> None:
        """Answer what is being searched, refuse what waits, close the bundle."""
        self._workers.close(self.limits.time_limit)
        self._current.close()

    def _announce(self, opened: Opened) -> None:
        self.metrics.documents.set(opened.bundle.index.chunks.n_documents)
        self.metrics.bundle.clear()
        self.metrics.bundle.labels(opened.bundle.name, opened.version).set(1)
