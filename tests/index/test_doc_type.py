"""What kind of document it is: seed 004's own examples, every further rule, and how often the authors agree."""

import pytest

from ragbench.benchmark.load import load
from ragbench.corpus.metadata import read_metadata
from ragbench.index.doc_type import _DECLARED, DOC_TYPES, _infer_doc_type, component_of, doc_type, product_of
from tests.tables import rows


@pytest.mark.parametrize(
    ("path", "text", "kind"),
    [*rows("index_doc_type", "doc_type_is_inferred"), ("a.md", "x" * 500 + "architecture", "documentation")],
)
def test_doc_type_is_inferred(path: str, text: str, kind: str) -> None:
    assert _infer_doc_type(path, text) == kind


@pytest.mark.parametrize(
    ("title", "kind"), [("Working with keys", "guide"), ("Install it", "guide"), ("String theory", "documentation")]
)
def test_doc_type_follows_titles(title: str, kind: str) -> None:
    assert _infer_doc_type("a.md", "", title) == kind


def test_doc_type_of_the_author_comes_first() -> None:
    assert doc_type("api.md", "", read_metadata({"type": "How-To"})) == "guide"
    assert doc_type("api.md", "", read_metadata({"type": "poem"})) == "api"
    assert set(_DECLARED.values()) <= set(DOC_TYPES)


def test_doc_type_follows_folders() -> None:
    assert [product_of(docno) for docno in ("a", "p/a", "p/c/a", "p/c/d/a")] == ["", "p", "p", "p"]
    assert [component_of(docno) for docno in ("a", "p/a", "p/c/a", "p/c/d/a")] == ["", "", "c", "c"]


def test_doc_type_agrees_with_authors_in_four_of_five() -> None:
    """61 of 68 documents; of the 62 of version 1, which the rules were written with in view, 55 (seed 004's: 14)."""
    declared = [
        (document, _DECLARED[kind])
        for document in load({"loader": "builtin"}, topics=False).documents
        if (kind := read_metadata(document.frontmatter).category.lower()) in _DECLARED
    ]
    agreeing = sum(_infer_doc_type(d.path, d.text, d.title) == kind for d, kind in declared)
    assert (agreeing, len(declared)) == (61, 68)  # 0.90; seed 004 asks for more than 0.8
