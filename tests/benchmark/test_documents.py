from __future__ import annotations

import pytest

from ragbench.benchmark.documents import make_document
from ragbench.benchmark.lines import identifier
from ragbench.benchmark.names import Names
from ragbench.corpus.reader import read_vault
from tests.tables import rows


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Names:
    root = tmp_path_factory.mktemp("v")
    for path in ("a/Note One.md", "a/Twice.md", "b/Twice.md", "release.1.md", "lang/C#.md", "a/U\u0308ber.md"):
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text("# Top\n\ntext\n\n## Part 1.2\n\nx\n\n## Same\n\nx\n\n# Other\n\n## Same\n\nx\n")
    return Names(read_vault(root).documents)


@pytest.mark.parametrize(("name", "docno"), rows("benchmark_documents", "names_find_documents"))
def test_names_find_documents(names: Names, name: str, docno: str | None) -> None:
    assert names.document(name) == docno


@pytest.mark.parametrize(
    ("name", "section"),
    rows("benchmark_documents", "names_find_sections"),
)
def test_names_find_sections(names: Names, name: str, section: str | None) -> None:
    assert names.section(name) == section


def test_identifier_has_no_white_space_or_control_characters() -> None:
    assert identifier(" a\tb\u2003c\x00\ud800 ") == "a%09b%E2%80%83c%00%ED%A0%80"
    assert identifier(12) == "12"


def test_make_document_reads_metadata_as_frontmatter() -> None:
    document = make_document("d", " A\n title ", "text", {"tags": "#X, y", "date": "2024-01-02"})
    assert document.title == "A title"
    assert document.tags == ("x", "y")
    assert document.modified == 1704153600.0  # 2024-01-02 00:00 UTC
    assert make_document("d", "", "", {}).sections == ()


def test_document_digest_follows_text_title_metadata_and_form() -> None:
    made = [
        make_document("d", "t", "x", {}),
        make_document("d", "t", "y", {}),
        make_document("d", "u", "x", {}),
        make_document("d", "t", "x", {"author": "a"}),
        make_document("d", "t", "x", {}, markdown=True),
    ]
    assert len({document.digest for document in made}) == len(made)
    assert make_document("d", "t", "x", {}) == made[0]
