"""Dense search: exact, the same in any company, ties by chunk number, filters inside."""

from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from ragbench.base.types import ConfigError, IndexError_, ModelError
from ragbench.index import dense
from ragbench.index.dense import DenseIndex, DenseSpec, _probes_for, build_dense
from tests.naming import naming


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


def test_dense_agrees_with_a_full_sort(index: DenseIndex, vectors: np.ndarray) -> None:
    for query in vectors[:20]:
        scores = vectors @ query
        best = np.lexsort((np.arange(len(scores)), -scores))[:10]
        (ranking,) = index.search(query[None], 10)
        assert np.allclose(ranking.scores, scores[best], atol=1e-6)


def test_dense_ties_at_the_cut_off_keep_the_lowest_chunk_numbers(index: DenseIndex, vectors: np.ndarray) -> None:
    (ranking,) = index.search(vectors[7][None], 5)
    assert ranking.chunks.tolist() == [7, 100, 101, 102, 103]


def test_dense_batch_gives_what_single_queries_give(index: DenseIndex, vectors: np.ndarray) -> None:
    queries = vectors[200:300]
    together = index.search(queries, 20)
    alone = [index.search(query[None], 20)[0] for query in queries]
    assert together == alone


def test_dense_filter_restricts_the_search_itself(index: DenseIndex, vectors: np.ndarray) -> None:
    allowed = np.zeros(len(vectors), dtype=bool)
    allowed[400:450] = True
    (ranking,) = index.search(vectors[7][None], 30, allowed)
    assert len(ranking) == 30
    assert set(ranking.chunks.tolist()) <= set(range(400, 450))


def test_dense_mask_of_nothing_gives_no_hit(index: DenseIndex, vectors: np.ndarray) -> None:
    (ranking,) = index.search(vectors[:1], 5, np.zeros(len(vectors), dtype=bool))
    assert len(ranking) == 0


def test_dense_depth_may_exceed_the_collection(index: DenseIndex, vectors: np.ndarray) -> None:
    (ranking,) = index.search(vectors[:1], 10_000)
    assert sorted(ranking.chunks.tolist()) == list(range(500))


def test_hnsw_finds_nearly_all(vectors: np.ndarray, index: DenseIndex, tmp_path: Path) -> None:
    spec = DenseSpec(kind="hnsw", ef_search=256)
    build_dense(tmp_path, spec, vectors)
    approximate = DenseIndex(tmp_path, spec)
    rankings = sum(
        len(set(a.chunks.tolist()) & set(e.chunks.tolist()))
        for a, e in zip(approximate.search(vectors[200:260], 10), index.search(vectors[200:260], 10), strict=True)
    )
    assert rankings >= 0.95 * 600


@pytest.mark.parametrize("kind", ["hnsw", "ivf_sq8"])
def test_dense_index_of_other_vectors_is_refused(vectors: np.ndarray, tmp_path: Path, kind: Literal["hnsw"]) -> None:
    spec = DenseSpec(kind=kind, lists=4)
    for name, rows in (("all", vectors), ("some", vectors[:-1])):
        (tmp_path / name).mkdir()
        build_dense(tmp_path / name, spec, rows)
    (tmp_path / "all" / "vectors.npy").replace(tmp_path / "some" / "vectors.npy")
    with pytest.raises(IndexError_, check=naming(tmp_path / "some")):
        DenseIndex(tmp_path / "some", spec).search(vectors[:1], 5)


@pytest.fixture(scope="module")
def cells(vectors: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> DenseIndex:
    folder = tmp_path_factory.mktemp("cells")
    spec = DenseSpec(kind="ivf_sq8", lists=16, probes=8)
    build_dense(folder, spec, vectors)
    return DenseIndex(folder, spec)


def test_cells_find_nearly_all_and_score_exactly(cells: DenseIndex, index: DenseIndex, vectors: np.ndarray) -> None:
    queries = vectors[200:260]
    rankings = cells.search(queries, 10)
    exact = index.search(queries, 10)
    both = sum(len(set(a.chunks.tolist()) & set(e.chunks.tolist())) for a, e in zip(rankings, exact, strict=True))
    assert both >= 0.85 * 600  # vectors without any structure are the hardest
    for query, ranking in zip(queries, rankings, strict=True):
        assert np.allclose(ranking.scores, vectors[ranking.chunks] @ query, atol=1e-6)


def test_cells_answer_a_batch_as_single_queries(cells: DenseIndex, vectors: np.ndarray) -> None:
    queries = vectors[200:240]
    assert cells.search(queries, 20) == [cells.search(query[None], 20)[0] for query in queries]


def test_cells_respect_a_filter(cells: DenseIndex, vectors: np.ndarray) -> None:
    allowed = np.arange(len(vectors)) % 2 == 0
    (ranking,) = cells.search(vectors[:1], 30, allowed)
    assert len(ranking) == 30
    assert allowed[ranking.chunks].all()


@pytest.mark.parametrize("kind", ["hnsw", "ivf_sq8"])
def test_dense_same_vectors_give_the_same_bytes(kind, vectors: np.ndarray, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        build_dense(tmp_path / name, DenseSpec(kind=kind), vectors)
    assert (tmp_path / "a" / "index.faiss").read_bytes() == (tmp_path / "b" / "index.faiss").read_bytes()


def test_dense_auto_depends_on_the_number_of_vectors(vectors: np.ndarray, index: DenseIndex, tmp_path: Path) -> None:
    chosen = [DenseSpec(kind="auto").with_kind_for(n).kind for n in (0, 50_000, 50_001, 200_000, 200_001, 10**9)]
    assert chosen == ["flat", "flat", "hnsw", "hnsw", "ivf_sq8", "ivf_sq8"]
    build_dense(tmp_path, DenseSpec(kind="auto"), vectors)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["vectors.npy"]
    assert DenseIndex(tmp_path, DenseSpec(kind="auto")).search(vectors[:9], 20) == index.search(vectors[:9], 20)


@pytest.mark.parametrize("kind", ["flat", "hnsw", "ivf_sq8", "auto"])
def test_dense_index_of_every_kind_may_be_empty(kind, tmp_path: Path) -> None:
    build_dense(tmp_path, DenseSpec(kind=kind), np.zeros((0, 32), dtype=np.float32))
    assert not len(DenseIndex(tmp_path, DenseSpec(kind=kind)).search(np.ones((1, 32), dtype=np.float32), 5)[0])


@pytest.mark.parametrize(
    "parameters", [{"m": 1}, {"ef_search": 0}, {"ef_construction": 5000}, {"lists": 0}, {"probes": 0}]
)
def test_dense_spec_names_the_refused_key(parameters: dict) -> None:
    with pytest.raises(ConfigError, check=naming("DenseSpec", *parameters)):
        DenseSpec(**parameters)


def test_dense_probes_grow_with_the_number_of_cells() -> None:
    assert [_probes_for(lists) for lists in (1, 1_000, 2_560, 4_000, 12_649)] == [256, 256, 256, 400, 1264]


def test_dense_index_can_probe_every_cell(tmp_path: Path) -> None:
    """256 of fewer cells are all of them: then one byte a component, scored again, is the only difference."""
    chance = np.random.default_rng(3)
    vectors = chance.standard_normal((500, 16)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    rankings = {}
    for kind in ("flat", "ivf_sq8"):
        folder = tmp_path / kind
        folder.mkdir()
        spec = DenseSpec(kind=kind)
        build_dense(folder, spec, vectors)
        rankings[kind] = DenseIndex(folder, spec).search(vectors[:20], 10)
    assert [r.chunks.tolist() for r in rankings["ivf_sq8"]] == [r.chunks.tolist() for r in rankings["flat"]]


@pytest.mark.parametrize("depth", [1, 10, 600])
@pytest.mark.parametrize("share", [None, 0.3, 0.0])
def test_dense_gives_the_same_chunks_without_faiss(
    tmp_path: Path, monkeypatch, depth: int, share: float | None
) -> None:
    chance = np.random.default_rng(0)
    vectors = chance.normal(size=(500, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[20] = vectors[10]  # a tie
    queries = vectors[[10, 3, 7]]
    allowed = None if share is None else chance.random(500) < share
    build_dense(tmp_path, DenseSpec(), vectors)
    expected = DenseIndex(tmp_path, DenseSpec()).search(queries, depth, allowed)
    monkeypatch.setattr(dense, "_has_library", lambda: False)
    for one, other in zip(expected, DenseIndex(tmp_path, DenseSpec()).search(queries, depth, allowed), strict=True):
        assert one.chunks.tolist() == other.chunks.tolist()
        np.testing.assert_allclose(one.scores, other.scores, atol=1e-6)
    with pytest.raises(IndexError_, check=naming("pip install faiss-cpu")):
        dense._open_structure(tmp_path / "index.faiss")


def test_dense_refuses_queries_of_another_length(index: DenseIndex, vectors: np.ndarray) -> None:
    with pytest.raises(ModelError, check=naming("length 3", vectors.shape[1])):
        index.search(np.ones((1, 3), dtype=np.float32), 2)
