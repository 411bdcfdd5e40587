"""The whole benchmark in Qdrant, asked for real: the core of Qdrant Edge behind the requests that a server takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.benchmark.load import load as load_benchmark
from ragbench.config import composition
from ragbench.experiment.run import run
from ragbench.export.write import write


@pytest.mark.slow
def test_the_built_in_topics_lose_nothing(tmp_path: Path, workplace: Path) -> None:
    """All 257 test topics over all documents, whose vectors come with ragbench."""
    pytest.importorskip("qdrant_edge", reason="install qdrant-edge-py: a core of Qdrant to test with")
    pytest.importorskip("qdrant_client", reason="install qdrant-client: its models check every request")
    from tests.extras.engines.qdrant_server import QdrantServer

    around = ["split=test", f"paths.results={workplace}", "latency.enabled=false", "tracking.enabled=false"]
    settings = composition.compose(["+exp=recommended", *around])
    found = run([settings], load_benchmark(settings.config["data"]))
    server = QdrantServer(tmp_path)
    try:
        written = write(found.folder, format="qdrant", load=f"{server.address}/builtin")
    finally:
        server.close()
    assert written.replay.topics > 200
    assert written.replay.loss <= 0.005
