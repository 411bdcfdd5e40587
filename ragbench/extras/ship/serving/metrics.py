"""The metrics of a service, in the text form of Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4

from ragbench.extras.ship.generation import Generation

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
OUTCOMES = ("answered", "refused", "busy", "late", "failed")
"""How a search can end: with hits, with bad input, without room in the queue, without time, or with an error."""

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """The metrics of one service, in a separate registry."""

    def __init__(self, waiting: Callable[[], int]) -> None:
        """`waiting` returns how many requests wait for a worker."""
        self._registry = CollectorRegistry()
        self.searches = Counter(
            "ragbench_searches", "Searches by how they ended.", ["outcome"], registry=self._registry
        )
        self.used = Counter(
            "ragbench_answers",
            "Answered searches that had hits, and that had filters.",
            ["with"],
            registry=self._registry,
        )
        self.responses = Counter(
            "ragbench_http_responses", "HTTP responses by status.", ["status"], registry=self._registry
        )
        self.reloads = Counter(
            "ragbench_reloads", "Attempts to load the bundle again.", ["outcome"], registry=self._registry
        )
        label_values = ((self.searches, OUTCOMES), (self.used, ("hits", "filters")), (self.reloads, ("done", "failed")))
        for counter, outcomes in label_values:
            for outcome in outcomes:
                counter.labels(outcome)  # shown as 0 before it happens
        self.search_seconds = Histogram(
            "ragbench_search_seconds", "Time in the pipeline.", buckets=_SECONDS, registry=self._registry
        )
        self.request_seconds = Histogram(
            "ragbench_request_seconds",
            "Time of a search from its arrival to its end, in the queue and in the pipeline.",
            buckets=_SECONDS,
            registry=self._registry,
        )
        self.documents = Gauge("ragbench_documents", "Documents that can be found.", registry=self._registry)
        self.generation = Gauge(
            "ragbench_generation", "Refreshes of the documents since the export.", registry=self._registry
        )
        self.chunks_changed = Gauge(
            "ragbench_chunks_changed", "Share of chunks that are not those measured.", registry=self._registry
        )
        self.golden_agreement = Gauge(
            "ragbench_golden_agreement", "Share of first hits of golden queries as measured.", registry=self._registry
        )
        self.kept_files = Gauge(
            "ragbench_kept_files", "Files that cannot be used, served as they were.", registry=self._registry
        )
        self.bundle = Gauge(
            "ragbench_bundle", "1 for the bundle that answers.", ["name", "version"], registry=self._registry
        )
        queue = Gauge("ragbench_queue_length", "Requests that wait for a worker.", registry=self._registry)
        queue.set_function(waiting)

    def serves(self, generation: Generation) -> None:
        """Record how far the documents have moved from those that were measured."""
        self.generation.set(generation.number)
        self.chunks_changed.set(generation.drift.chunks_changed)
        self.golden_agreement.set(generation.drift.agreement)
        self.kept_files.set(len(generation.kept))

    def text(self) -> bytes:
        """All metrics in the text form of Prometheus."""
        return generate_latest(self._registry)
