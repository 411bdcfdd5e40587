"""The concept vocabulary of P1: terms, their order, nearest ones, and what a change of documents costs."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragbench.base.types import ConfigError
from ragbench.corpus.links import collection_digest
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index, IndexSpec
from ragbench.index.vocabulary import (
    _STOP_WORDS,
    Vocabulary,
    VocabularySpec,
    _extract_terms,
    build_vocabulary,
    frequent_terms,
)
from ragbench.models.cache import CachedEncoder
from ragbench.models.resolve import EncoderSpec, load_encoder
from ragbench.models.store import Store
from tests.naming import naming


def test_vocabulary_terms_of_a_text() -> None:
    text = "The OAuth2 token_endpoint of a sign-in: 42 tokens, 3rd try; go on with C++ or v1.2!"
    # at least three characters, beginning with a letter, no function words; hyphens and underscores hold together
    assert _extract_terms(text) == ["oauth2", "token_endpoint", "sign-in", "tokens", "try"]
    assert _extract_terms("go to it", min_length=2) == ["go"]
    assert _extract_terms("") == []


def test_vocabulary_stop_words_are_those_of_the_seed() -> None:
    assert len(_STOP_WORDS) == 92
    assert {"the", "hers", "both", "then", "need", "why"} <= _STOP_WORDS
    assert not {"user", "about", "token"} & _STOP_WORDS


def test_vocabulary_sorts_by_falling_count_then_alphabet() -> None:
    texts = ["beta alpha beta", "gamma Beta alpha", "delta"]
    assert frequent_terms(texts, VocabularySpec()) == ["beta", "alpha", "delta", "gamma"]
    assert frequent_terms(texts, VocabularySpec(size=2)) == ["beta", "alpha"]
    assert frequent_terms(texts, VocabularySpec(min_length=5)) == ["alpha", "delta", "gamma"]
    assert (VocabularySpec().size, VocabularySpec().min_length) == (10_000, 3)


class Chosen:
    def __init__(self, vectors: dict[str, tuple[float, float]]) -> None:
        self.vectors = vectors

    def encode_passages(self, terms):
        return np.array([self.vectors[t] for t in terms], dtype=np.float32).reshape(len(terms), 2)


def vocabulary(folder: Path, vectors: dict[str, tuple[float, float]]) -> Vocabulary:
    build_vocabulary(folder, list(vectors), Chosen(vectors))
    return Vocabulary(folder)


QUERY = np.array([1, 0], dtype=np.float32)


def test_vocabulary_nearest_by_hand(tmp_path: Path) -> None:
    terms = vocabulary(tmp_path, {"far": (0, 1), "near": (0.8, 0.6), "same": (1, 0), "half": (0.6, 0.8)})
    assert terms.nearest(QUERY, 3) == [
        ("same", pytest.approx(1.0)),
        ("near", pytest.approx(0.8)),
        ("half", pytest.approx(0.6)),
    ]
    assert len(terms.nearest(QUERY, 99)) == 4
    assert len(terms) == 4


def test_vocabulary_prefers_the_frequent_of_equal_cosines(tmp_path: Path) -> None:
    vectors = {f"t{n}": (0.6, 0.8) for n in range(20)}
    assert [term for term, _ in vocabulary(tmp_path, vectors).nearest(QUERY, 3)] == ["t0", "t1", "t2"]


@given(st.integers(1, 30), st.integers(1, 10), st.integers(0, 1000))
def test_vocabulary_agrees_with_a_full_sort(n: int, top_k: int, seed: int) -> None:
    import tempfile

    rows = np.random.default_rng(seed).integers(-3, 4, size=(n, 2)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        terms = vocabulary(Path(folder), {f"t{i}": tuple(row) for i, row in enumerate(rows)}).nearest(QUERY, top_k)
    expected = sorted(range(n), key=lambda i: (-rows[i, 0], i))[:top_k]
    assert [term for term, _ in terms] == [f"t{i}" for i in expected]


def test_vocabulary_may_be_empty(tmp_path: Path) -> None:
    assert vocabulary(tmp_path, {}).nearest(QUERY, 3) == []


def test_vocabulary_change_of_documents_embeds_only_new_terms(tmp_path: Path) -> None:
    computed: list[str] = []
    bare = load_encoder(EncoderSpec())

    class Counting:
        def __getattr__(self, name):
            return getattr(bare, name)

        def encode_passages(self, terms, progress=None):
            computed.extend(terms)
            return bare.encode_passages(terms, progress)

    encoder = CachedEncoder(Counting(), Store(tmp_path / "embeddings.sqlite", "embeddings"))
    for number, texts in enumerate((["lamps and masts", "controller"], ["lamps and masts", "controller", "sirens"])):
        folder = tmp_path / str(number)
        folder.mkdir()
        build_vocabulary(folder, frequent_terms(texts, VocabularySpec()), encoder)
    assert computed == ["controller", "lamps", "masts", "sirens"]
    again = Vocabulary(tmp_path / "1")
    assert again.terms == ["controller", "lamps", "masts", "sirens"]
    assert np.allclose(np.linalg.norm(again.vectors, axis=1), 1, atol=1e-5)


def test_vocabulary_artefact_is_kept_and_loaded(make_index) -> None:
    first, second = make_index().artefact("vocabulary"), make_index().artefact("vocabulary")
    assert first.folder == second.folder
    assert not second.built


def test_vocabulary_depends_on_its_specification(make_index) -> None:
    small = make_index(IndexSpec(vocabulary=VocabularySpec(size=5)))
    assert len(small.vocabulary) == 5
    assert small.vocabulary.terms == make_index().vocabulary.terms[:5]


@pytest.mark.parametrize("name", ["size", "min_length"])
def test_vocabulary_spec_names_the_refused_key(name: str) -> None:
    with pytest.raises(ConfigError, check=naming(f"VocabularySpec.{name}", "got 0")):
        VocabularySpec(**{name: 0})


def test_vocabulary_is_embedded_by_the_model_of_the_chunks(make_index) -> None:
    fast, exact = make_index(), make_index(IndexSpec(encoder=EncoderSpec(numerics="exact")))
    assert fast.artefact("vocabulary").folder != exact.artefact("vocabulary").folder
    np.testing.assert_allclose(
        exact.vocabulary.vectors, exact.encoder.encode_passages(exact.vocabulary.terms), atol=1e-6
    )


def test_vocabulary_is_rebuilt_when_documents_change(make_index, benchmark_small, workplace: Path, models) -> None:
    before = make_index().vocabulary.terms
    fewer = benchmark_small.documents[:2]
    store = ArtefactStore(workplace / "index")
    after = Index(IndexSpec(), collection_digest(fewer), lambda: fewer, store, models).vocabulary.terms
    assert set(after) < set(before)
