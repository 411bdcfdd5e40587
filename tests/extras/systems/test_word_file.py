"""Word documents, written by the library that reads them."""

from __future__ import annotations

import zipfile
from io import BytesIO
from pathlib import Path

import docx
import pytest

from ragbench.base.errors import CorpusError
from ragbench.corpus import reader
from ragbench.corpus.reader import read_vault
from ragbench.extras.systems import word_file
from ragbench.extras.systems.word_file import NotWord, to_markdown


def written() -> bytes:
    document = docx.Document()
    properties = document.core_properties
    properties.title, properties.author, properties.keywords = 'Tea: "green"', "Ada Quist", "leaves, water"
    document.add_heading("Brewing", 1)
    document.add_paragraph("Pour water of 80 degrees.")
    document.add_paragraph("# of cups: two")
    document.add_heading("Steps", 2)
    document.add_paragraph("Heat", style="List Bullet")
    document.add_paragraph("Pour", style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(table._cells, ("leaf", "minutes", "sencha | fine", "2"), strict=True):
        cell.text = text
    saved = BytesIO()
    document.save(saved)
    return saved.getvalue()


def test_without_python_docx_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tea.docx").write_bytes(written())
    (tmp_path / "cup.md").write_text("# Cup\n\nGreen.\n", encoding="utf-8")
    monkeypatch.setattr(reader, "find_spec", lambda name: None)
    with pytest.raises(CorpusError, match=r"tea\.docx.* it is a Word document: run pip install 'ragbench\[word\]'"):
        read_vault(tmp_path, include=("**/*.md", "**/*.docx"), on_error="fail")


def test_headings_lists_and_tables_become_markdown() -> None:
    assert to_markdown(written()) == (
        '---\ntitle: "Tea: \\"green\\""\nauthor: "Ada Quist"\nkeywords: "leaves, water"\n---\n'
        "# Brewing\n\nPour water of 80 degrees.\n\n\\# of cups: two\n\n## Steps\n\n- Heat\n- Pour\n\n"
        "| leaf | minutes |\n| --- | --- |\n| sencha \\| fine | 2 |\n"
    )


def test_a_folder_with_word_documents_and_texts(tmp_path: Path) -> None:
    (tmp_path / "tea.docx").write_bytes(written())
    (tmp_path / "notes.txt").write_text("Water boils at 100 degrees.", encoding="utf-8")
    (tmp_path / "index.md").write_text("See [[tea]].", encoding="utf-8")
    (tmp_path / "broken.docx").write_bytes(b"no archive")
    vault = read_vault(tmp_path, include=["**/*.md", "**/*.txt", "**/*.docx"])
    assert [document.docno for document in vault.documents] == ["index", "notes", "tea"]
    tea = vault.documents[2]
    assert (tea.title, tea.path, [section.path for section in tea.sections]) == (
        'Tea: "green"',
        "tea.docx",
        [("Brewing",), ("Brewing", "Steps")],
    )
    assert tea.size_bytes == (tmp_path / "tea.docx").stat().st_size
    assert vault.documents[0].links[0].target == "tea"
    (warning,) = vault.warnings
    assert (warning.path, warning.name) == ("broken.docx", "unreadable")
    assert "is not a Word document" in warning.message
    assert len(read_vault(tmp_path).documents) == 1, "markdown alone unless told"


def test_what_is_no_word_document(monkeypatch: pytest.MonkeyPatch) -> None:
    other = BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("a.txt", "a")
    for raw in (b"", b"PK", other.getvalue(), written()[:-100], written().replace(b"word/document", b"word/documens")):
        with pytest.raises(NotWord, match="is not a Word document"):
            to_markdown(raw)
    monkeypatch.setattr(word_file, "_MOST_BYTES", 1000)
    with pytest.raises(NotWord, match="unpacks to more than"):
        to_markdown(written())
