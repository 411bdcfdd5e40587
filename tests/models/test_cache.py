from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from ragbench.models import CrossEncoder, Encoder
from ragbench.models.cache import CachedCrossEncoder, CachedEncoder
from ragbench.models.resolve import CrossEncoderSpec, EncoderSpec, Models, load_encoder
from ragbench.models.store import Store

TEXTS = ["Segments are sealed.", "A token expires.", "Segments are sealed.", ""]


class Counting:
    """The encoder or cross-encoder given, with a list of the texts it was asked for."""

    def __init__(self, model: object) -> None:
        self._model = model
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    def encode_queries(self, texts: Sequence[str]) -> np.ndarray:
        self.asked += texts
        return self._model.encode_queries(texts)

    def encode_passages(self, texts: Sequence[str], progress: Callable[[int], None] | None = None) -> np.ndarray:
        self.asked += texts
        return self._model.encode_passages(texts, progress)

    def score(self, query: str, passages: Sequence[str]) -> np.ndarray:
        self.asked += passages
        return self._model.score(query, passages)


def test_vectors_come_back_to_the_bit_and_are_computed_once(bge: Encoder, tmp_path: Path) -> None:
    path = tmp_path / "embeddings.sqlite"
    counting = Counting(bge)
    first = CachedEncoder(counting, Store(path, "embeddings")).encode_passages(TEXTS)
    assert counting.asked == ["Segments are sealed.", "A token expires.", ""]
    second = CachedEncoder(counting, Store(path, "embeddings")).encode_passages(TEXTS[::-1])[::-1]
    assert len(counting.asked) == 3
    assert first.tobytes() == second.tobytes() == bge.encode_passages(TEXTS).tobytes()
    assert second.flags.writeable


def test_cached_model_keeps_what_it_wraps_once(bge: Encoder, reranker: CrossEncoder, tmp_path: Path) -> None:
    for cached, model in (
        (CachedEncoder(bge, Store(tmp_path / "embeddings.sqlite", "embeddings")), bge),
        (CachedCrossEncoder(reranker, Store(tmp_path / "scores.sqlite", "scores")), reranker),
    ):
        assert [name for name, value in vars(cached).items() if value is model] == ["wrapped"]


def test_model_cache_many_texts_are_stored_as_they_come(bge: Encoder, tmp_path: Path) -> None:
    cache, told = Store(tmp_path / "embeddings.sqlite", "embeddings"), []
    texts = [str(number) for number in range(300)]

    def progress(n: int) -> None:
        told.append(n)
        if sum(told) == 290:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        CachedEncoder(bge, cache).encode_passages(texts, progress)
    assert len(cache) == 256, "the first group was kept"
    told.clear()
    counting = Counting(bge)
    CachedEncoder(counting, cache).encode_passages(texts, told.append)
    assert len(counting.asked) == 300 - 256
    assert told[0] == 256 and sum(told) == 300


def test_model_cache_another_prefix_never_meets_an_old_vector(bge: Encoder, tmp_path: Path) -> None:
    cache = Store(tmp_path / "embeddings.sqlite", "embeddings")
    CachedEncoder(bge, cache).encode_passages(TEXTS)
    CachedEncoder(bge, cache).encode_queries(TEXTS)
    for spec in (EncoderSpec(query_prefix="Find: "), EncoderSpec(passage_prefix="Find: "), EncoderSpec(max_tokens=4)):
        plain = load_encoder(spec)
        cached = CachedEncoder(plain, cache)
        assert cached.encode_queries(TEXTS).tobytes() == plain.encode_queries(TEXTS).tobytes()
        assert cached.encode_passages(TEXTS).tobytes() == plain.encode_passages(TEXTS).tobytes()


def test_vectors_and_scores_of_a_processor_that_rounds_differently_are_not_mixed(
    bge: Encoder, reranker: CrossEncoder, tmp_path: Path
) -> None:
    embeddings, scores = (
        Store(tmp_path / "embeddings.sqlite", "embeddings"),
        Store(tmp_path / "scores.sqlite", "scores"),
    )
    for numerics, computed in (("int8 1", 1), ("int8 2", 1), ("int8 1", 0)):
        encoder, cross_encoder = Counting(bge), Counting(reranker)
        encoder.numerics = cross_encoder.numerics = numerics
        cached = CachedEncoder(encoder, embeddings)
        cached.encode_passages(["A token expires."])
        CachedCrossEncoder(cross_encoder, scores).score("what expires", ["A token expires."])
        assert (len(encoder.asked), len(cross_encoder.asked)) == (computed, computed)
        assert cached.missing(["A token expires.", "Another."]) == ["Another."]


def test_passages_are_kept_when_only_the_query_prefix_changes(bge: Encoder, tmp_path: Path) -> None:
    cache = Store(tmp_path / "embeddings.sqlite", "embeddings")
    CachedEncoder(bge, cache).encode_passages(TEXTS)
    counting = Counting(load_encoder(EncoderSpec(query_prefix="Find: ")))
    CachedEncoder(counting, cache).encode_passages(TEXTS)
    assert counting.asked == []


def test_scores_come_back_to_the_bit_and_are_computed_once(reranker: CrossEncoder, tmp_path: Path) -> None:
    path = tmp_path / "scores.sqlite"
    counting = Counting(reranker)
    first = CachedCrossEncoder(counting, Store(path, "scores")).score("what is sealed", TEXTS)
    assert counting.asked == ["Segments are sealed.", "A token expires.", ""]
    second = CachedCrossEncoder(counting, Store(path, "scores")).score("what is sealed", TEXTS)
    assert len(counting.asked) == 3
    assert first.tobytes() == second.tobytes() == reranker.score("what is sealed", TEXTS).tobytes()
    CachedCrossEncoder(counting, Store(path, "scores")).score("another query", TEXTS)
    assert len(counting.asked) == 6


def test_model_cache_both_caches_fit_into_one_file(bge: Encoder, reranker: CrossEncoder, tmp_path: Path) -> None:
    embeddings, scores = (Store(tmp_path / "both.sqlite", table) for table in ("embeddings", "scores"))
    for computed in (2, 0):
        encoder, cross_encoder = Counting(bge), Counting(reranker)
        CachedEncoder(encoder, embeddings).encode_passages(["a", "b"])
        CachedCrossEncoder(cross_encoder, scores).score("q", ["a", "b"])
        assert (len(encoder.asked), len(cross_encoder.asked)) == (computed, computed)
    other = Counting(reranker)
    CachedCrossEncoder(other, scores).score("r", ["a"])
    assert other.asked == ["a"]
    assert (len(embeddings), len(scores)) == (2, 3)


def test_outputs_are_recorded_and_recorded_ones_are_used(tmp_path: Path) -> None:
    outputs: dict[bytes, bytes] = {}
    recording = Models(cache=tmp_path, shipped=True).recording(outputs)
    assert not recording.shipped, "vectors of another machine are not recorded as those of this one"
    encoder, reranker = recording.encoder(EncoderSpec()), recording.cross_encoder(CrossEncoderSpec())
    vector, score = encoder.encode_queries(["a lamp"]), reranker.score("a lamp", ["Lamps give light."])
    assert sorted(map(len, outputs.values())) == [4, 4 * encoder.dim]
    assert vector.tobytes() in outputs.values()
    outputs.update({key: np.zeros(len(value) // 4, "<f4").tobytes() for key, value in outputs.items()})
    assert not encoder.encode_queries(["a lamp"]).any()
    assert reranker.score("a lamp", ["Lamps give light."]) != score
