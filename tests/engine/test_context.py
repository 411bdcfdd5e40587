"""Contexts within a token budget: what is chosen, how it is cut and how it is cited."""

from __future__ import annotations

import pytest

from ragbench.base.types import ConfigError, DocumentMetadata, Hit
from ragbench.search.engine.context import context, count_tokens, pieces
from tests.naming import naming

FENCE = "```sh\nkeyctl rotate a\nkeyctl list. Done\n```"
PROSE = "# Keys\n\nKeys are long. Rotate a key each month.\nThen log in.\n\n- first item\n- second item"
TEXT = f"{PROSE}\n\n{FENCE}\n\nThe end."


def hit(rank: int, text: str, start: int = 0, line: int = 1, path: str = "a.md", headings: tuple[str, ...] = ("Keys",)):
    end = start + len(text)
    metadata = DocumentMetadata.__new__(DocumentMetadata)
    lines = line, line + text.count("\n")
    return Hit(
        rank,
        1 / rank,
        f"{path}#{rank}",
        path,
        path,
        "A",
        headings,
        1,
        start,
        end,
        *lines,
        text,
        None,
        (),
        False,
        metadata,
    )


def test_context_tokens_are_counted_as_the_docs_state() -> None:
    assert count_tokens("") == 0
    assert count_tokens("rotating a key.") == 5  # rotati, ng, a, key, .


def test_context_pieces_are_sentences_items_and_whole_code_blocks() -> None:
    assert [TEXT[start:end] for start, end in pieces(TEXT)] == [
        *("# Keys", "Keys are long.", " Rotate a key each month.", "Then log in."),
        *("- first item", "- second item", FENCE, "The end."),
    ]
    unclosed = "Text.\n\n~~~\ncode. more\n\nmore"
    assert [unclosed[start:end] for start, end in pieces(unclosed)] == ["Text.", unclosed[7:]]


def test_context_cites_a_hit_that_fits_as_a_whole() -> None:
    made = context("key", [hit(1, TEXT, line=3)], 2000)
    assert made.text == f"[1] a.md#Keys:3-16\n{TEXT}"
    assert made.tokens == count_tokens(made.text)


def test_context_cuts_a_hit_that_does_not_fit_to_its_best_sentences() -> None:
    (passage,) = context("rotate month", [hit(1, TEXT, line=3)], 30).passages
    assert "Rotate a key each month." in passage.text and FENCE not in passage.text
    assert passage.text == TEXT[passage.start : passage.end].rstrip()
    assert (passage.start_line, passage.end_line) == (5, 8)


def test_context_begins_with_whole_passages() -> None:
    """Each hit has 96 tokens, its citation 12. 220 tokens: 96 + 12, then 70% of 96 (66) + 12, then the other 34."""
    texts = [f"{'Alpha beta gamma delta. Other new old word. ' * 9}Alpha keys rotate {n} ok." for n in "abc"]
    made = context("rotate", [hit(n, text, path=f"{n}.md") for n, text in enumerate(texts, 1)], 220)
    assert [count_tokens(passage.text) for passage in made.passages] == [96, 66, 21]
    assert all(passage.text.endswith(f"rotate {n} ok.") for passage, n in zip(made.passages, "abc", strict=True))


def test_context_joins_neighbours_and_repeats_nothing() -> None:
    whole = "One two.\n\nThree four.\n\nFive six."
    hits = [hit(2, whole[10:21], 10, 3), hit(1, whole[:8]), hit(3, whole[12:], 12, 3), hit(4, whole[:8], path="b.md")]
    (passage,) = context("one", hits, 500).passages
    assert passage.text == whole and passage.citation == "[1] a.md#Keys:1-5"


@pytest.mark.parametrize("budget", [1, 12, 25, 60, 100, 400])
def test_context_budget_is_never_exceeded(budget: int) -> None:
    hits = [hit(rank, TEXT.replace("month", f"week {rank}"), path=f"{rank}.md") for rank in range(1, 9)]
    made = context("rotate", hits, budget)
    assert count_tokens(made.text) <= budget
    assert bool(made.passages) == (budget > 12)


@pytest.mark.parametrize("budget", [0, -1, 10**9])
def test_context_impossible_budgets_are_rejected(budget: int) -> None:
    with pytest.raises(ConfigError, check=naming("max_tokens", "100,000")):
        context("a", [], budget)
