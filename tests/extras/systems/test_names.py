"""What documents are called, and what a query calls them."""

from pathlib import Path

import pytest

from ragbench.corpus.reader import read_vault
from ragbench.extras.systems.parts.names import TitleIndex, mentions, tags_in
from ragbench.index.chunking import HeaderChunker
from ragbench.index.chunks import ChunkTable, build_chunks
from tests.tables import rows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("see [[Alpha]] and [[b/beta|Beta]]", ("Alpha", "b/beta")),
        ("[[Alpha#Part]] [[ Alpha ]]", ("Alpha",)),
        ("[[]] [[|x]] [[#x]] [x] none", ()),
        ("[[[odd]]]", ("odd",)),
    ],
)
def test_note_names_mentions(text: str, expected: tuple[str, ...]) -> None:
    assert mentions(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#project notes on #Project/Alpha", ("project", "project/alpha")),
        ("issue #42 in C# or a&#b; page.html#part", ()),
        ("#2026-goals (#a)", ("2026-goals", "a")),
        ("", ()),
    ],
)
def test_note_names_tags(text: str, expected: tuple[str, ...]) -> None:
    assert tags_in(text) == expected


@pytest.fixture
def names(tmp_path: Path) -> tuple[TitleIndex, list[str]]:
    files = {
        "alpha": "# The Alpha",
        "b/beta": "---\naliases: [second one]\n---\n# Beta",
        "c/beta": "# Beta",
        "c/My Note": "# Other",
        "d/2026-01-14": "# Wednesday",
        "d/two": "---\ntitle: 2026-01-15\n---\n",
        "d/2026-13-99": "# No day",
    }
    for name, text in files.items():
        path = tmp_path / "vault" / f"{name}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    documents = read_vault(tmp_path / "vault").documents
    build_chunks(tmp_path, documents, [HeaderChunker().chunk(document) for document in documents])
    table = ChunkTable(tmp_path)
    return TitleIndex(table), table.docnos


@pytest.mark.parametrize(
    ("name", "called"),
    rows("systems_names", "note_names_called"),
)
def test_note_names_called(names, name: str, called: list[str]) -> None:
    note_names, docnos = names
    assert [docnos[row] for row in note_names.rows_named(name)] == called


def test_daily_notes_by_file_name_and_title(names) -> None:
    note_names, docnos = names
    # 2026-01-14 is 20467 days after 1970-01-01
    assert [(docnos[row], day / 86_400) for row, day in note_names.days] == [("d/2026-01-14", 20467), ("d/two", 20468)]
