"""The folder boost of seed 002."""

import pytest

from ragbench.extras.systems.stages.adjust import BoostFolder


@pytest.mark.parametrize(
    ("count", "total", "uncapped", "factor"),
    [
        (2, 5, 2.00242, 1.15),  # 1 + log2(3) sqrt(0.4), capped
        (2, 2, 2.58496, 1.15),
        (3, 3, 3.0, 1.15),  # 1 + log2(4) * 1
        (2, 6, 1.0, 1.0),  # a third is less than 0.4
        (1, 1, 1.0, 1.0),  # one document is less than two
    ],
)
def test_folder_boost_factor(count: int, total: int, uncapped: float, factor: float) -> None:
    assert BoostFolder(max_factor=10.0).factor(count, total) == pytest.approx(uncapped, abs=1e-5)
    assert BoostFolder().factor(count, total) == factor


@pytest.fixture
def index(handmade, page):
    """x/a has the chunks 0 and 1, x/b 2, y/c 3, y/d 4, y/e 5, y/f 6, y/g 7, y/h 8, top 9, base 10."""
    names = ["x/b", "y/c", "y/d", "y/e", "y/f", "y/g", "y/h", "top", "base"]
    return handmade([page("x/a", ("p", "q")), *map(page, names)])


def test_documents_count_not_chunks_and_the_top_is_no_folder(state, index) -> None:
    given = state(fused=[(9, 1.0), (3, 0.9), (0, 0.8), (1, 0.8), (4, 0.7), (2, 0.6), (10, 0.5)])
    after = BoostFolder()([given], index)[0].fused
    boosted = dict(zip(after.chunks.tolist(), after.scores.tolist(), strict=True))
    assert boosted == pytest.approx({9: 1.0, 0: 0.92, 1: 0.92, 3: 0.9, 4: 0.7, 2: 0.69, 10: 0.5})
    assert list(boosted) == [9, 0, 1, 3, 4, 2, 10]


def test_folder_boost_two_chunks_of_one_document_are_not_enough(state, index) -> None:
    given = state(lexical=[0, 1])
    assert BoostFolder()([given], index)[0].rankings == given.rankings


def test_folder_boost_says_why(state, index) -> None:
    given = state(lexical=[0, 2, 3])
    assert BoostFolder().explain(given, index, 0) == {
        "folder_boost": {
            "folder": "x",
            "document_count": 2,
            "total_docs_in_folder": 2,
            "relevance_ratio": 1.0,
            "boost_factor": 1.15,
        }
    }
    assert BoostFolder().explain(given, index, 1) == BoostFolder().explain(given, index, 3) == {}


def test_folder_boost_defaults_are_those_of_the_seed() -> None:
    stage = BoostFolder()
    assert (stage.min_docs, stage.min_ratio, stage.max_factor) == (2, 0.4, 1.15)
