"""Dense search: exact, the same in any company, ties by chunk number, filters inside."""

from pathlib import Path

import numpy as np
import pytest

from ragbench.errors import ConfigError
from ragbench.index.dense import DenseIndex, DenseSpec, build_dense


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    chance = np.random.default_rng(5)
    rows = unit(chance.standard_normal((500, 32)))
    rows[100:160] = rows[7]  # sixty copies of one text
    return rows


@pytest.fixture(scope="module")
def index(vectors: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> DenseIndex:
    folder = tmp_path_factory.mktemp("dense")
    build_dense(folder, DenseSpec(), vectors)
    return DenseIndex(folder, DenseSpec())


def test_agrees_with_a_full_sort(index: DenseIndex, vectors: np.ndarray) -> None:
    for query in vectors[:20]:
        scores = vectors @ query
        best = np.lexsort((np.arange(len(scores)), -scores))[:10]
        (ranking,) = index.search(query[None], 10)
        assert np.allclose(ranking.scores, scores[best], atol=1e-6)


def test_ties_at_the_cut_off_keep_the_lowest_chunk_numbers(index: DenseIndex, vectors: np.ndarray) -> None:
    (ranking,) = index.search(vectors[7][None], 5)
    assert ranking.chunks.tolist() == [7, 100, 101, 102, 103]


def test_a_batch_gives_what_single_queries_give(index: DenseIndex, vectors: np.ndarray) -> None:
    queries = vectors[200:300]
    together = index.search(queries, 20)
    alone = [index.search(query[None], 20)[0] for query in queries]
    assert together == alone


def test_a_filter_restricts_the_search_itself(index: DenseIndex, vectors: np.ndarray) -> None:
    allowed = np.zeros(len(vectors), dtype=bool)
    allowed[400:450] = True
    (ranking,) = index.search(vectors[7][None], 30, allowed)
    assert len(ranking) == 30
    assert set(ranking.chunks.tolist()) <= set(range(400, 450))


def test_nothing_allowed_is_nothing_found(index: DenseIndex, vectors: np.ndarray) -> None:
    (ranking,) = index.search(vectors[:1], 5, np.zeros(len(vectors), dtype=bool))
    assert len(ranking) == 0


def test_more_than_there_is(index: DenseIndex, vectors: np.ndarray) -> None:
    (ranking,) = index.search(vectors[:1], 10_000)
    assert sorted(ranking.chunks.tolist()) == list(range(500))


def test_hnsw_finds_nearly_all(vectors: np.ndarray, index: DenseIndex, tmp_path: Path) -> None:
    spec = DenseSpec(kind="hnsw", ef_search=256)
    build_dense(tmp_path, spec, vectors)
    approximate = DenseIndex(tmp_path, spec)
    found = sum(
        len(set(a.chunks.tolist()) & set(e.chunks.tolist()))
        for a, e in zip(approximate.search(vectors[200:260], 10), index.search(vectors[200:260], 10), strict=True)
    )
    assert found >= 0.95 * 600


def test_an_empty_collection(tmp_path: Path) -> None:
    build_dense(tmp_path, DenseSpec(), np.zeros((0, 32), dtype=np.float32))
    assert len(DenseIndex(tmp_path, DenseSpec()).search(np.ones((1, 32), dtype=np.float32), 5)[0]) == 0


@pytest.mark.parametrize("parameters", [{"m": 1}, {"ef_search": 0}, {"ef_construction": 5000}])
def test_bad_parameters_are_named(parameters: dict) -> None:
    with pytest.raises(ConfigError, match=f"index.dense.{next(iter(parameters))}"):
        DenseSpec(**parameters)
