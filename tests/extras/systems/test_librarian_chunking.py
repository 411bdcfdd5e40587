"""The chunkers of seed 004: its examples, its sizes, and that they come to an end where its own loop does not."""

from itertools import pairwise

import pytest
from hypothesis import given, settings, strategies as st

from ragbench.base.types import ConfigError, Document
from ragbench.corpus.reader import parse_document
from ragbench.extras.systems.librarian_chunking import LibrarianFixedChunker, LibrarianSemanticChunker, pieces

SIZES = st.tuples(st.integers(1, 120), st.integers(0, 119)).filter(lambda pair: pair[1] < pair[0])
TEXTS = st.text(st.sampled_from(list("ab. \n#!?`")), max_size=900)


def document(text: str) -> Document:
    return parse_document("doc", "doc.md", text.encode(), 0.0)[0]


def test_librarian_chunker_512_tokens_of_four_characters_and_50_repeated() -> None:
    # 2048 characters, then from 2048 - 200 = 1848 on to 3896, then from 3696 on
    assert list(pieces("x" * 5000, 0, 5000, 512, 50)) == [(0, 2048), (1848, 3896), (3696, 5000)]


def test_librarian_chunker_sentence_that_ends_in_the_last_200_characters_ends_the_piece() -> None:
    # of 400 characters: the full stop at 249 is in reach, the one at 150 of the second text is not
    near = "x" * 249 + ". " + "y" * 400
    assert list(pieces(near, 0, len(near), 100, 10))[:2] == [(0, 250), (210, 610)]
    far = "x" * 150 + ". " + "y" * 400
    assert list(pieces(far, 0, len(far), 100, 10))[:1] == [(0, 400)]


@pytest.mark.parametrize("ending", [". ", "! ", "? "])
def test_librarian_chunker_all_three_sentence_ends(ending: str) -> None:
    text = "x" * 299 + ending + "y" * 300
    assert next(iter(pieces(text, 0, len(text), 100, 10))) == (0, 300)


def test_librarian_chunker_sentence_end_that_would_stand_still_is_passed_over() -> None:
    # 240 characters with 200 repeated: ending at 181 would begin the next piece at -19, where the seed never ends
    text = "x" * 180 + ". " + "y" * 300
    assert list(pieces(text, 0, len(text), 60, 50))[:2] == [(0, 240), (40, 280)]


@given(text=TEXTS, sizes=SIZES)
@settings(max_examples=150)
def test_pieces_end_and_begin_ever_later_and_leave_nothing_out(text: str, sizes: tuple[int, int]) -> None:
    size, overlap = sizes
    spans = list(pieces(text, 0, len(text), size, overlap))
    assert all(before[0] < after[0] <= before[1] for before, after in pairwise(spans))
    assert all(stop - start <= 4 * size for start, stop in spans)
    assert [spans[0][0], spans[-1][1]] == [0, len(text)] if text else spans == []


@pytest.mark.parametrize("chunker", [LibrarianFixedChunker, LibrarianSemanticChunker])
@given(text=TEXTS, sizes=SIZES)
@settings(max_examples=80)
def test_librarian_chunker_every_character_that_is_not_blank_is_in_a_chunk(
    chunker, text: str, sizes: tuple[int, int]
) -> None:
    parsed = document(text)
    chunks = chunker(*sizes).chunk(parsed)
    covered = {offset for chunk in chunks for offset in range(chunk.start, chunk.end)}
    assert {offset for offset, character in enumerate(parsed.text) if not character.isspace()} <= covered
    assert [chunk.chunk_id for chunk in chunks] == [f"doc#{number}" for number in range(len(chunks))]
    assert all(chunk.text == parsed.text[chunk.start : chunk.end] and chunk.docno == "doc" for chunk in chunks)


def test_librarian_chunker_seeds_examples() -> None:
    (whole,) = LibrarianSemanticChunker().chunk(document("Small document."))
    assert whole.text == "Small document."
    (whole,) = LibrarianSemanticChunker().chunk(document(SECTIONS))  # also with headings
    assert whole.text == SECTIONS.strip()
    first, second, *_ = LibrarianFixedChunker(128, 20).chunk(document("word " * 500))
    assert first.text[-50:] in second.text[:100]


SECTIONS = (
    "# Title\n\nIntro.\n\n## One\n\nFirst.\n\n### Deep\n\nIn it.\n\n#### Deeper\n\nStill in it.\n\n## Two\n\nSecond.\n"
)


def test_librarian_chunker_chunk_for_every_heading_of_level_two_and_three() -> None:
    chunks = LibrarianSemanticChunker(chunk_size=12, chunk_overlap=0).chunk(document(SECTIONS))
    assert [chunk.text.split("\n")[0] for chunk in chunks] == ["# Title", "## One", "### Deep", "## Two"]
    assert [chunk.header_path[-1] for chunk in chunks] == ["Title", "One", "Deep", "Two"]
    assert "Still in it." in chunks[2].text


def test_librarian_chunker_section_of_more_than_twice_the_size_is_cut() -> None:
    # 40 characters a piece: 80 stay whole, 81 are cut into 40, 40 and 1
    for length, n_chunks in ((80, 2), (81, 4)):
        text = f"Intro.\n\n## Two\n\n{'z' * (length - 8)}"
        assert len(LibrarianSemanticChunker(chunk_size=10, chunk_overlap=0).chunk(document(text))) == n_chunks


def test_librarian_chunker_without_headings_pieces_of_fixed_size() -> None:
    text = "# Only a title\n\n" + "word " * 300
    given_ = document(text)
    assert LibrarianSemanticChunker(64, 8).chunk(given_) == LibrarianFixedChunker(64, 8).chunk(given_)


def test_librarian_chunker_line_of_code_is_no_heading() -> None:
    text = "## One\n\n```sh\n## not a heading\n```\n\n## Two\n\nText.\n"
    chunks = LibrarianSemanticChunker(chunk_size=5, chunk_overlap=0).chunk(document(text))
    assert [chunk.header_path for chunk in chunks] == [("One",), ("Two",)]


@pytest.mark.parametrize("chunker", [LibrarianFixedChunker, LibrarianSemanticChunker])
@pytest.mark.parametrize(
    ("sizes", "reason"),
    [((0, 0), "chunk_size must be at least 1"), ((50, 50), "below chunk_size 50, got 50"), ((5, -1), "got -1")],
)
def test_librarian_chunker_senseless_sizes_are_refused(chunker, sizes: tuple[int, int], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        chunker(*sizes)
