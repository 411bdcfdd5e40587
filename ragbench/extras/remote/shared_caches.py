"""Embeddings, scores and answers shared between machines beside the artefacts, so that each is computed once.

    <url>/caches/<table>/<digest>.arrow     rows of a cache (`ragbench.models.segments`), never changed

An experiment first imports the values that other machines computed, and shares its own at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ragbench.extras.remote.artefact_store import RemoteStore
from ragbench.models import segments
from ragbench.models.cache import TABLES
from ragbench.models.store import Store

_PLACE = "caches"


def fetch(remote: RemoteStore, folder: Path) -> None:
    """Fetch every segment that the caches in `folder` lack. IndexError_ when the store cannot be used."""
    for table, store in _stores(folder):
        there = [name for name in remote.names(f"{_PLACE}/{table}") if name.endswith(segments.SUFFIX)]
        if not there:
            continue  # so that no empty file is made
        for name in sorted(set(there) - segments.known_segments(store)):
            if not segments.import_segment(store, name, remote.get(f"{_PLACE}/{table}/{name}")):
                remote.say(f"{remote.url}/{_PLACE}/{table}/{name} is damaged or not yet complete; it is left out")
        store.close()


def publish(remote: RemoteStore, folder: Path) -> None:
    """Upload the segments of the caches in `folder` that the store lacks. IndexError_ when the store cannot be used."""
    for table, store in _stores(folder):
        if not store.path.exists():
            continue
        for name, content, rows in segments.new_segments(store):
            remote.put(f"{_PLACE}/{table}/{name}", content)
            segments.mark_shared(store, name, rows)
        store.close()


def _stores(folder: Path) -> Iterator[tuple[str, Store]]:
    return ((table, Store(folder / f"{table}.sqlite", table)) for table in TABLES)
