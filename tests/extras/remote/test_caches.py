"""What one machine computed another takes in, through a folder and through a real S3 protocol server."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ragbench.base.errors import IndexError_, ModelError
from ragbench.config import composition
from ragbench.experiment.run import run
from ragbench.extras.remote import segments
from ragbench.extras.remote.artefact_store import RemoteStore
from ragbench.models.cache import EmbeddingCache, ScoreCache
from ragbench.models.store import Store

DIGEST = "of some model"


def embeddings(folder: Path, **vectors: list[float]) -> EmbeddingCache:
    cache = EmbeddingCache(folder / "embeddings.sqlite")
    cache.put_many(DIGEST, {text: np.array(vector, dtype=np.float32) for text, vector in vectors.items()})
    return cache


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*.arrow"))


def test_one_machine_takes_in_what_another_computed(url: str, tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    embeddings(here, lamp=[1, 0], bulb=[0.5, 0.25])
    ScoreCache(here / "scores.sqlite").put_many(DIGEST, "a query", {"a passage": 1.5})
    RemoteStore(url).share_caches(here)
    RemoteStore(url).fetch_caches(there)
    found = EmbeddingCache(there / "embeddings.sqlite").get_many(DIGEST, ["lamp", "bulb", "socket"])
    assert {text: vector.tolist() for text, vector in found.items()} == {"lamp": [1, 0], "bulb": [0.5, 0.25]}
    assert ScoreCache(there / "scores.sqlite").get_many(DIGEST, "a query", ["a passage"]) == {"a passage": 1.5}
    assert not (there / "answers.sqlite").exists()


def test_nothing_is_given_away_twice(tmp_path: Path) -> None:
    here, there, store = tmp_path / "here", tmp_path / "there", tmp_path / "store"
    remote = RemoteStore(str(store))
    embeddings(here, lamp=[1, 0])
    for _ in range(2):
        remote.share_caches(here)
    assert len(files(store)) == 1
    remote.fetch_caches(there)
    remote.share_caches(there)
    assert len(files(store)) == 1
    embeddings(there, bulb=[0, 1])
    remote.share_caches(there)
    assert len(files(store)) == 2
    remote.fetch_caches(here)
    remote.share_caches(here)
    assert len(files(store)) == 2
    assert len(EmbeddingCache(here / "embeddings.sqlite")) == 2


def test_many_rows_travel_in_several_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(segments, "_BYTES", 80)
    cache = embeddings(tmp_path, **{f"t{number}": [number, 0] for number in range(50)})
    made = list(segments.new_segments(cache))  # of eight bytes each
    assert [len(rows) for _, _, rows in made] == [10] * 5
    other = Store(tmp_path / "other.sqlite", "embeddings")
    assert all(segments.import_segment(other, name, content) for name, content, _ in made)
    assert len(other) == 50
    assert segments.known_segments(other) == {name for name, _, _ in made}


def test_the_same_rows_make_the_same_segment_in_any_order(tmp_path: Path) -> None:
    one = embeddings(tmp_path / "one", lamp=[1, 0], bulb=[0, 1])
    other = embeddings(tmp_path / "other", bulb=[0, 1], lamp=[1, 0])
    assert [name for name, _, _ in segments.new_segments(one)] == [name for name, _, _ in segments.new_segments(other)]


def test_a_damaged_segment_is_passed_over_and_fetched_when_it_is_whole(tmp_path: Path) -> None:
    said: list[str] = []
    remote = RemoteStore(str(tmp_path / "store"), said.append)
    embeddings(tmp_path / "here", lamp=[1, 0])
    remote.share_caches(tmp_path / "here")
    (segment,) = (tmp_path / "store").rglob("*.arrow")
    whole = segment.read_bytes()
    segment.write_bytes(whole[:-10])
    remote.fetch_caches(tmp_path / "there")
    assert said == [f"{segment} is damaged or not yet complete; it is excluded"]
    assert len(EmbeddingCache(tmp_path / "there" / "embeddings.sqlite")) == 0
    segment.write_bytes(whole)
    remote.fetch_caches(tmp_path / "there")
    assert len(EmbeddingCache(tmp_path / "there" / "embeddings.sqlite")) == 1


def test_an_experiment_embeds_no_query_that_another_machine_has(benchmark_small, workplace: Path, tmp_path: Path):
    """The second run has empty folders of its own, and a model that must not be asked."""
    url = tmp_path / "store"
    words = [f"artefacts.url={url}", "latency.enabled=false", "tracking.enabled=false", "split=all"]

    def settings(name: str):
        return [composition.compose([*words, f"paths.results={tmp_path / name}"])]

    first = run(settings("first"), benchmark_small, say=lambda sentence: None)
    assert any(name.startswith("caches/embeddings/") for name in files(url))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ragbench.models.base.UnbatchedEncoder._encode", _refused)
        second = run(settings("second"), benchmark_small, say=lambda sentence: None)
    assert second.per_query.equals(first.per_query)


def _refused(*arguments: object) -> None:
    raise AssertionError("the model was asked")


@pytest.mark.parametrize("reason", [IndexError_, ModelError])
def test_a_store_that_goes_away_loses_no_result(
    benchmark_small, tmp_path: Path, monkeypatch, reason: type[Exception]
) -> None:
    said: list[str] = []
    words = [f"artefacts.url={tmp_path / 'store'}", f"paths.results={tmp_path / 'results'}", "dense=null"]
    settings = [composition.compose([*words, "latency.enabled=false", "tracking.enabled=false", "split=all"])]

    def gone(*arguments: object) -> None:
        raise reason("artefacts.url cannot be used")

    monkeypatch.setattr(RemoteStore, "share_caches", gone)
    found = run(settings, benchmark_small, say=said.append)
    assert (found.folder / "experiment.json").is_file()
    assert said[-1] == "warning: the caches were not shared: artefacts.url cannot be used"
