"""Trigrams and their overlap, with the texts of seeds 000 and 001."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragbench.base.types import Chunk, Document, IndexError_
from ragbench.index.chunks import ChunkTable, build_chunks
from ragbench.index.trigrams import TrigramIndex, _character_trigrams, _word_trigrams, build_trigrams


def test_trigrams_ignore_case_and_spaces() -> None:
    assert _character_trigrams("Hello World") == {"hel", "ell", "llo", "low", "owo", "wor", "orl", "rld"}
    assert _character_trigrams("a b c") == {"abc"}
    assert _character_trigrams("ab") == set()
    assert _character_trigrams("") == set()


def test_trigrams_of_words() -> None:
    assert _word_trigrams("Put it in\nthe file") == {"put it in", "it in the", "in the file"}
    assert _word_trigrams("two words") == set()


def index_of(texts: list[str], folder: Path) -> TrigramIndex:
    chunks = [Chunk(f"d#{n}", "d", text, (), (), 0, len(text)) for n, text in enumerate(texts)]
    build_chunks(folder, [Document("d", "d.md", "d", "", {}, (), (), (), (), 0.0, 0, "")], [chunks])
    build_trigrams(folder, ChunkTable(folder))
    return TrigramIndex(folder)


def overlap(texts: list[str], folder: Path, unit="character") -> np.ndarray:
    return index_of(texts, folder).jaccard(np.arange(len(texts), dtype=np.int32), unit)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("values", lambda array: np.append(array[:-1], np.int32(2**31 - 1))),  # 16 GiB of counts
        ("values", lambda array: np.append(array[:-1], np.int32(-1))),
        ("starts", lambda array: np.append(array[:-1], 2**31)),
        ("starts", lambda array: array[::-1]),
        ("starts", lambda array: array[:0]),
    ],
)
def test_trigrams_refuse_changed_numbers_before_memory_fills(tmp_path: Path, name: str, change) -> None:
    index = index_of(["sunset schedules", "schedules of lamps"], tmp_path)
    file = tmp_path / f"character-{name}.npy"
    np.save(file, change(np.load(file)))
    with pytest.raises(IndexError_, match="contains numbers that do not fit: export the bundle again"):
        index.jaccard(np.arange(2, dtype=np.int32))


def test_trigrams_texts_of_seed_001(tmp_path: Path) -> None:
    # 40 and 44 trigrams, 35 in common, so 35 of 49: at 0.714 above the threshold. The seed prints 41/59 = 0.69, counts
    # that these texts give neither with spaces nor without.
    a = "Configure the authentication settings in config.toml"
    b = "Configure authentication settings in the config.toml file"
    assert len(_character_trigrams(a)) == 40
    assert len(_character_trigrams(b)) == 44
    assert overlap([a, b], tmp_path)[0, 1] == pytest.approx(35 / 49)


def test_trigrams_overlap_by_hand(tmp_path: Path) -> None:
    overlaps = overlap(["abcdef", "ABC DEF", "uvwxyz", "abcxyz", "ab", ""], tmp_path)
    assert overlaps[0, 1] == 1.0
    assert overlaps[0, 2] == 0.0
    assert overlaps[0, 3] == pytest.approx(1 / 7)  # abc of 4 + 4 - 1
    assert overlaps[2, 3] == pytest.approx(1 / 7)
    assert (overlaps[4] == 0).all()
    assert (overlaps[5] == 0).all()
    assert (np.diag(overlaps)[:4] == 1).all()


def test_trigrams_of_words_overlap_apart(tmp_path: Path) -> None:
    overlaps = overlap(["put it in the file now", "put it in the file"], tmp_path, "word")
    assert overlaps[0, 1] == pytest.approx(3 / 4)


def test_trigrams_take_chunks_in_any_order(tmp_path: Path) -> None:
    index = index_of(["abcdef", "uvwxyz", "abcdefg"], tmp_path)
    overlaps = index.jaccard(np.array([2, 0], dtype=np.int32))
    assert overlaps[0, 1] == pytest.approx(4 / 5)
    assert index.jaccard(np.empty(0, dtype=np.int32)).shape == (0, 0)


@given(texts=st.lists(st.text("abc d", max_size=30), min_size=1, max_size=6))
def test_trigrams_agree_with_sets(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("trigrams")
    overlaps = overlap(texts, folder)
    grams = [_character_trigrams(text) for text in texts]
    for i, a in enumerate(grams):
        for j, b in enumerate(grams):
            assert overlaps[i, j] == pytest.approx(len(a & b) / len(a | b) if a and b else 0.0)


def test_trigrams_same_texts_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        index_of(["some text that", "shares trigrams with text", ""], tmp_path / name)
    files = sorted(p.name for p in (tmp_path / "a").glob("*.npy"))
    assert files
    for name in files:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
