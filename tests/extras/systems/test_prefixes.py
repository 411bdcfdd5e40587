"""BM25+ with prefixes: scores worked by hand from the formula of the module."""

from pathlib import Path

import numpy as np
import pytest

from ragbench.base.types import Chunk, Document
from ragbench.extras.systems.parts.prefixes import (
    DISTANCE_WEIGHT,
    K1,
    PREFIX_WEIGHT,
    B,
    D,
    PrefixIndex,
    build_prefixes,
    tag_forms,
    tokens,
)
from ragbench.index.chunks import ChunkTable, build_chunks

BODY = {"body": 1.0}


@pytest.fixture
def made(tmp_path: Path):
    """A function from (docno, body, tags, frontmatter, header path) to an index with a chunk for each."""

    def make(*rows: tuple) -> PrefixIndex:
        documents, chunks = [], []
        for docno, text, tags, frontmatter, path in rows:
            documents.append(
                Document(docno, f"{docno}.md", docno, text, frontmatter, (), (), (), tags, 0.0, len(text), docno)
            )
            chunks.append([Chunk(f"{docno}#0", docno, text, path, (), 0, len(text))])
        build_chunks(tmp_path, documents, chunks)
        build_prefixes(tmp_path, ChunkTable(tmp_path))
        return PrefixIndex(tmp_path)

    return make


def scores_of(index: PrefixIndex, text: str, weights=BODY, candidates=None) -> dict[int, float]:
    ranking = index.search(text, 10, weights, candidates)
    return dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))


@pytest.fixture
def lamps(made) -> PrefixIndex:
    """Distinct terms 2, 2 and 1: on average 5/3."""
    return made(("a", "lamp lamp dusk", (), {}, ()), ("b", "lamps sea", (), {}, ()), ("c", "sea", (), {}, ()))


def test_prefix_index_constants() -> None:
    assert (K1, B, D, PREFIX_WEIGHT, DISTANCE_WEIGHT) == (1.2, 0.7, 0.5, 0.375, 0.3)


def test_prefix_index_term_and_one_that_begins_with_it(lamps: PrefixIndex) -> None:
    # idf = ln(1 + 2.5/1.5) = 0.98083; k1 (1 - b + b 2/(5/3)) = 1.368
    # a: 0.98083 (0.5 + 2*2.2/3.368) = 1.77178;  b: near 0.375*5/5.3 = 0.35377, 0.98083 (0.5 + 2.2/2.368) near = 0.49587
    assert scores_of(lamps, "lamp") == pytest.approx({0: 1.77178, 1: 0.49587}, abs=1e-4)


def test_prefix_index_sum_is_multiplied_by_the_matching_terms(lamps: PrefixIndex) -> None:
    # sea: idf = ln(1 + 1.5/2.5) = 0.47000; b 0.47 * 1.42905 = 0.67166, c 0.47 (0.5 + 2.2/1.864) = 0.78973
    assert scores_of(lamps, "lamp sea sea") == pytest.approx(
        {1: 2 * (0.49587 + 0.67166), 0: 1.77178, 2: 0.78973}, abs=1e-4
    )


def test_prefix_index_statistics_are_those_of_the_candidates(lamps: PrefixIndex) -> None:
    # of a and b alone: idf = ln 2, mean length 2, so 0.69315 (0.5 + 4.4/3.2)
    some = np.array([True, True, False])
    assert scores_of(lamps, "lamp", candidates=some)[0] == pytest.approx(1.29965, abs=1e-4)
    assert scores_of(lamps, "sea", candidates=~some).keys() == {2}
    assert scores_of(lamps, "sea", candidates=np.zeros(3, np.bool_)) == {}


@pytest.mark.parametrize("text", ["", "zebra", "... !", "ea"])
def test_prefix_index_nothing_is_found_for_what_no_term_begins_with(lamps: PrefixIndex, text: str) -> None:
    assert scores_of(lamps, text) == {}


def test_fields_and_their_weights(made) -> None:
    index = made(
        ("gate", "x", ("auth/tokens",), {"owner": "Ada", "n": 7, "deep": {"no": "hidden"}}, ("Sign in",)),
        ("door", "gate", (), {}, ()),
    )
    weights = {"title": 5.0, "tags": 4.0, "heading": 2.5, "path": 1.5, "body": 1.0}
    matched = {
        text: index.matches(text, 0, weights) for text in ("gate", "tokens", "#auth", "sig", "ada", "7", "hidden")
    }
    assert matched == {
        "gate": (("title", "gate", 5.0), ("path", "gate", 1.5)),
        "tokens": (("tags", "tokens", 4.0),),
        "#auth": (("tags", "#auth", 4.0), ("tags", "auth", 4.0)),
        "sig": (("heading", "sig", 2.5),),
        "ada": (("body", "ada", 1.0),),
        "7": (("body", "7", 1.0),),
        "hidden": (),
    }
    # equal statistics in every field: title and path together 6.5 times the body's share
    assert scores_of(index, "gate", {"title": 5.0, "path": 1.5, "body": 0.0})[0] == pytest.approx(
        6.5 * scores_of(index, "gate", {"title": 1.0})[0], rel=1e-5
    )
    assert index.chunks_with_tag("auth").tolist() == [True, False]
    assert index.chunks_with_tag("tok door").tolist() == [True, False]


def test_tags_with_and_without_hash_above_and_in_parts() -> None:
    assert tag_forms(["a/b"]) == ("#a", "a", "#a/b", "a/b", "b")


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Ab, c-d", ["ab", "c", "d"]),
        ("#Auth/Tokens x", ["#auth/tokens", "auth", "tokens", "x"]),
        ("検索語", ["検索", "索語"]),
        ("検索", ["検索"]),
        ("", []),
    ],
)
def test_prefix_index_tokens(text: str, terms: list[str]) -> None:
    assert tokens(text) == terms


def test_prefix_index_no_chunks_no_hits(made) -> None:
    index = made()
    assert len(index) == 0
    assert scores_of(index, "lamp") == {}
