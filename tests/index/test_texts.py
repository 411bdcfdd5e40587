"""The texts that other artefacts and models take in."""

from pathlib import Path

import pytest

from ragbench.corpus.links import resolve_links
from ragbench.corpus.reader import parse_document
from ragbench.index.chunking import HeaderChunker
from ragbench.index.chunks import ChunkTable, build_chunks
from ragbench.index.texts import FIELDS, PassageTemplate, lexical_rows, without_destinations

FILES = {
    "ops/rotateKeys": "---\ntitle: Rotating keys\naliases: [key rotation]\ntags: [auth/tokens]\n---\n"
    "# Rotating keys\n\nFirst text.\n\n## When\n\nEvery month, see [the limits](../a3f9c21.md).\n",
    "a3f9c21": "Limits. See [[ops/rotateKeys|how to rotate]] and [[ops/rotateKeys|how to rotate]].\n",
    "gone": "---\ntitle: Moved pages\ndescription: Where they went\n---\n",
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> ChunkTable:
    folder = tmp_path_factory.mktemp("chunks")
    parsed = [parse_document(docno, f"{docno}.md", text.encode(), 0.0)[0] for docno, text in sorted(FILES.items())]
    documents, _ = resolve_links(parsed)
    build_chunks(folder, documents, (HeaderChunker(10, 60, 0).chunk(document) for document in documents))
    return ChunkTable(folder)


def test_texts_template_adds_what_it_names_once(table: ChunkTable) -> None:
    assert table.docnos == ["a3f9c21", "gone", "ops/rotateKeys"]
    chunk = table.chunks_of(2)[0] + 1  # the section below `When`
    text = table.text(chunk)
    read = {
        (): text,
        ("headings",): f"Rotating keys > When\n\n{text}",
        ("title", "headings"): f"Rotating keys > When\n\n{text}",
        ("path",): f"ops rotateKeys rotate Keys\n\n{text}",
        ("title", "path", "headings"): f"Rotating keys > ops rotateKeys rotate Keys > When\n\n{text}",
    }
    for names, expected in read.items():
        template = PassageTemplate(**dict.fromkeys(names, True))
        assert template.passage(table, chunk) == expected
        assert template.passages(table)[chunk] == expected


def test_texts_leave_out_names_drawn_by_a_machine(table: ChunkTable) -> None:
    everything = PassageTemplate(title=True, path=True, headings=True)
    assert table.titles[0] == "a3f9c21"
    assert everything.passages(table)[0] == table.text(0)


def test_texts_of_an_empty_note_are_title_and_description(table: ChunkTable) -> None:
    assert table.text(table.chunks_of(1)[0]) == "Moved pages\n\nWhere they went"


def test_texts_of_lexical_fields(table: ChunkTable) -> None:
    rows = list(lexical_rows(table, FIELDS))
    last = rows[-1]
    assert last["headers"].splitlines() == ["Rotating keys ", "When"]
    assert last["path"] == "ops rotateKeys rotate Keys"
    assert last["anchors"] == "how to rotate"
    assert last["aliases"] == "key rotation"
    assert last["tags"] == "auth tokens"
    assert rows[0]["path"] == ""
    assert rows[0]["anchors"] == "the limits"
    assert [row["content"] for row in rows] == [without_destinations(text) for text in table.texts()]
    assert rows[0]["content"].endswith("See how to rotate") and "|how to rotate]]" in table.texts()[0]


def test_texts_headers_are_those_above_a_chunk_and_in_it_of_every_level(tmp_path: Path) -> None:
    text = b"# Keys\n\n## Rotate\n\nMonthly.\n\n### Steps\n\nTwo.\n\n#### By hand\n\nTurn it.\n"
    documents, _ = resolve_links([parse_document("keys", "keys.md", text, 0.0)[0]])
    build_chunks(tmp_path, documents, (HeaderChunker(200, 1500, 0).chunk(document) for document in documents))
    (row,) = lexical_rows(ChunkTable(tmp_path), ["headers"])
    assert [heading.strip() for heading in row["headers"].splitlines()] == ["Keys", "Rotate", "Steps", "By hand"]


def test_texts_of_whole_documents(table: ChunkTable) -> None:
    rows = list(lexical_rows(table, FIELDS, "document"))
    assert len(rows) == 3
    assert "First text." in rows[2]["content"]
    assert "Every month" in rows[2]["content"]
    assert rows[2]["headers"] == "Rotating keys \nWhen"
