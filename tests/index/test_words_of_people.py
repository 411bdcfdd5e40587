"""Words that BM25 must find: in any form of Unicode, and where the query is one of stop words."""

import unicodedata

import pytest

from ragbench.index.lexical import LexicalIndex, LexicalSpec, build_lexical

ROWS = [
    {"title": "If", "headers": "If", "content": "# If\n\nRuns the block when the condition holds."},
    {"title": "Not", "headers": "Not", "content": "# Not\n\nTurns true into false."},
    {"title": "Fähre", "content": unicodedata.normalize("NFD", "Die Fähre fährt ins Café der Nordsee.")},
    {"title": "Harbour", "content": "The har\u00adbour mas\u200bter opens the\u00a0gate."},
]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> LexicalIndex:
    folder = tmp_path_factory.mktemp("words")
    build_lexical(folder, LexicalSpec(("content", "headers", "title")), ROWS)
    return LexicalIndex(folder, LexicalSpec(("content", "headers", "title")))


@pytest.mark.parametrize(
    ("query", "chunk"),
    [
        ("if", 0),
        ("not", 1),
        ("Café", 2),
        (unicodedata.normalize("NFD", "fährt"), 2),
        ("harbour", 3),
        ("har\u200bbour", 3),
        ("master", 3),
        ("gate", 3),
    ],
)
def test_query_finds_its_chunk_first(index: LexicalIndex, query: str, chunk: int) -> None:
    assert index.search(query, 3).chunks.tolist()[:1] == [chunk]


def test_stop_words_do_not_count_beside_other_words(index: LexicalIndex) -> None:
    assert index.search("if harbour", 3).chunks.tolist() == [3]
