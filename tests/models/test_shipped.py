"""The vectors that come with ragbench, and what happens where they do not fit."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis.extra import numpy as arrays

from ragbench.benchmark.benchmark import Benchmark
from ragbench.config import composition
from ragbench.extras.maintain.commands.index import vector_origins
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index, IndexSpec
from ragbench.models import Encoder, bundled_vectors as module
from ragbench.models.bundled_vectors import ShippedVectors, _read_arrays, _unpacked, packed, shipped
from ragbench.models.cache import CachedEncoder
from ragbench.models.resolve import Models
from ragbench.models.store import Store
from tests.models.test_cache import Counting
from tests.shipped import ARMS, Group, groups, write

TEXTS = ["Segments are sealed.", "A token expires.", ""]
AGAIN = "python -m tests.shipped writes it anew"


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> list[Group]:
    """What the file must hold."""
    return list(groups([f"paths.results={tmp_path_factory.mktemp('shipped')}"]))


@pytest.fixture
def archive(bge: Encoder, tmp_path: Path) -> ShippedVectors:
    """The vectors of two passages and of a query."""
    path = tmp_path / "vectors.npz"
    passages = Group("passages", bge.passage_digest, TEXTS[:2], bge.encode_passages)
    write(path, [passages, Group("queries", bge.digest, TEXTS[1:2], bge.encode_queries)])
    return ShippedVectors(path)


@given(arrays.arrays(np.uint32, arrays.array_shapes(min_dims=2, max_dims=2)))
def test_shipped_vectors_nothing_is_rounded(bits: np.ndarray) -> None:
    vectors = bits.view(np.float32)
    assert _unpacked(packed(vectors)).tobytes() == vectors.tobytes()


def test_shipped_vectors_file_has_the_texts_of_three_presets_and_no_others(expected: list[Group]) -> None:
    assert {group.name.partition(",")[0] for group in expected} == set(ARMS)
    for group in expected:
        assert shipped().present(group.digest, group.texts) == set(group.texts), AGAIN
    keys, ends = _read_arrays(shipped().path, "keys", "ends")
    assert len(keys) == ends[-1] == sum(len(group.texts) for group in expected), AGAIN
    assert shipped().path.stat().st_size < 9.5e6


def test_shipped_vectors_sample_is_computed_again(expected: list[Group]) -> None:
    """The bits depend on the processor, as quantised models do: texts that differ have cosines of .5 to .9."""
    for group in expected:
        sample = group.texts[:: len(group.texts) // 3]
        kept = shipped().get_many(group.digest, sample)
        cosines = (np.stack([kept[text] for text in sample]) * group.embed(sample)).sum(axis=1)
        assert cosines.min() > 0.99, AGAIN


def test_shipped_vectors_replace_computing(bge: Encoder, archive: ShippedVectors, tmp_path: Path) -> None:
    counting = Counting(bge)
    encoder = CachedEncoder(counting, Store(tmp_path / "embeddings.sqlite", "embeddings"), archive)
    assert encoder.missing(TEXTS) == [""]
    assert encoder.encode_passages(TEXTS).tobytes() == bge.encode_passages(TEXTS).tobytes()
    assert counting.asked == [""]
    assert encoder.encode_queries(TEXTS[:2]).tobytes() == bge.encode_queries(TEXTS[:2]).tobytes()
    assert counting.asked == ["", TEXTS[0]]
    assert encoder.origins == {"cache": 0, "shipped": 3, "computed": 2}
    assert len(encoder.cache) == 2  # what came is not stored again


def test_shipped_vectors_file_states_how_its_processor_rounds(archive: ShippedVectors, bge: Encoder) -> None:
    assert archive.numerics == ""  # of groups without it
    write(archive.path, [Group("passages", bge.passage_digest, TEXTS[:1], bge.encode_passages, {bge.numerics})])
    assert ShippedVectors(archive.path).numerics == bge.numerics
    assert "unknown" in shipped().numerics.split(", "), "most vectors are of the first file, which did not say"


def test_shipped_vectors_another_text_or_another_model_has_no_vector(bge: Encoder, archive: ShippedVectors) -> None:
    assert archive.present(bge.passage_digest, [*TEXTS, "A token expires"]) == set(TEXTS[:2])
    assert archive.present(bge.passage_digest + "x", TEXTS) == set()


@pytest.mark.parametrize("damage", ["missing", "cut", "one byte", "objects"])
def test_shipped_vectors_damaged_file_is_named_once_and_everything_is_computed(
    bge: Encoder, archive: ShippedVectors, damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    content = archive.path.read_bytes()
    if damage == "missing":
        archive.path.unlink()
    elif damage == "objects":
        np.savez(archive.path, keys=np.array([{}]), ends=np.array([1]))
    else:
        half = len(content) // 2
        archive.path.write_bytes(content[:half] + (b"" if damage == "cut" else b"\x00" + content[half + 1 :]))
    encoder = CachedEncoder(bge, Store(tmp_path / "embeddings.sqlite", "embeddings"), archive)
    with caplog.at_level(logging.WARNING):
        vectors = [encoder.encode_passages(TEXTS) for _ in range(2)]
    assert all(group.tobytes() == bge.encode_passages(TEXTS).tobytes() for group in vectors)
    (warning,) = caplog.messages
    assert str(archive.path) in warning


def test_shipped_vectors_index_says_whence_its_vectors_came(
    bge: Encoder, benchmark_small: Benchmark, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def index(name: str) -> Index:
        models = Models(cache=tmp_path / "cache", shipped=True)
        return Index(IndexSpec(), "x", lambda: benchmark_small.documents, ArtefactStore(tmp_path / name), models)

    passages = IndexSpec().passage.passages(index("a").chunks)
    write(tmp_path / "vectors.npz", [Group("", bge.passage_digest, passages[:2], bge.encode_passages)])
    monkeypatch.setattr(module, "shipped", lambda: ShippedVectors(tmp_path / "vectors.npz"))
    n = len(passages)
    assert vector_origins(index("a").artefact("dense")) == f"of {n}: 2 came with ragbench"
    assert index("a").artefact("dense").manifest["numerics"] == {"here": bge.numerics, "shipped": ""}
    assert vector_origins(index("b").artefact("dense")) == f"of {n}: 2 came with ragbench, {n - 2} from the cache"
    assert vector_origins(index("c").artefact("chunks")) == ""


def test_shipped_vectors_are_off_without_a_cache() -> None:
    assert composition.compose([]).models().shipped
    assert not composition.compose(["cache.shipped=off"]).models().shipped
    assert not Models(cache=Path(), shipped=True).uncached(1).shipped
