"""Terms of documents for the learned ranking."""

from pathlib import Path

import pytest

from ragbench.index.terms import TermIndex, build_terms


@pytest.mark.parametrize(("query", "known"), [("子路径", 2), ("getUserById的路径", 4), ("データ", 0)])
def test_terms_of_unspaced_text_are_its_pairs(handmade, page, tmp_path: Path, query: str, known: int) -> None:
    """A question shares pairs of characters with a page that does not hold it as one run."""
    table = handmade([page("部署在子路径下 getUserById 的")]).chunks
    build_terms(tmp_path, table, "cjk")
    terms = TermIndex(tmp_path, table, "cjk").of(query)
    assert (terms >= 0).sum() == known
