"""The metrics of a service, in the text form of Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

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
        counter, gauge = partial(Counter, registry=self._registry), partial(Gauge, registry=self._registry)
        histogram = partial(Histogram, buckets=_SECONDS, registry=self._registry)
        self.searches = counter("ragbench_searches", "Searches by how they ended.", ["outcome"])
        self.used = counter("ragbench_answers", "Answered searches that had hits, and that had filters.", ["with"])
        self.responses = counter("ragbench_http_responses", "HTTP responses by status.", ["status"])
        self.reloads = counter("ragbench_reloads", "Attempts to load the bundle again.", ["outcome"])
        label_values = ((self.searches, OUTCOMES), (self.used, ("hits", "filters")), (self.reloads, ("done", "failed")))
        for labelled, outcomes in label_values:
            for outcome in outcomes:
                labelled.labels(outcome)  # shown as 0 before it happens
        self.search_seconds = histogram("ragbench_search_seconds", "Time in the pipeline.")
        self.request_seconds = histogram(
            "ragbench_request_seconds",
            "Time of a search from its arrival to its end, in the queue and in the pipeline.",
        )
        self.documents = gauge("ragbench_documents", "Documents that can be found.")
        self.generation = gauge("ragbench_generation", "Refreshes of the documents since the export.")
        self.chunks_changed = gauge("ragbench_chunks_changed", "Share of chunks that are not those measured.")
        self.golden_agreement = gauge("ragbench_golden_agreement", "Share of first hits of golden queries as measured.")
        self.kept_files = gauge("ragbench_kept_files", "Files that cannot be used, served as they were.")
        self.bundle = gauge("ragbench_bundle", "1 for the bundle that answers.", ["name", "version"])
        gauge("ragbench_queue_length", "Requests that wait for a worker.").set_function(waiting)

    def serves(self, generation: Generation) -> None:
        """Record how far the documents have moved from those that were measured."""
        self.generation.set(generation.number)
        self.chunks_changed.set(generation.drift.chunks_changed)
        self.golden_agreement.set(generation.drift.agreement)
        self.kept_files.set(len(generation.kept))

    def text(self) -> bytes:
        """All metrics in the text form of Prometheus."""
        return generate_latest(self._registry)
