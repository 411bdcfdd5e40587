"""The chunk table: what is written is what is read, parents last, blocks with their chunk."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from ragbench.corpus.reader import read_vault
from ragbench.index.chunking import HeaderChunker, ParentChildChunker
from ragbench.index.chunks import ChunkTable, _array, build_chunks

VAULT = Path(__file__).parent.parent / "data" / "vault"


def table_of(folder: Path, vault: Path, chunker=None) -> tuple[ChunkTable, list, list]:
    documents = read_vault(vault).documents
    chunks = [(chunker or HeaderChunker()).chunk(document) for document in documents]
    folder.mkdir(exist_ok=True)
    build_chunks(folder, documents, chunks)
    return ChunkTable(folder), list(documents), [chunk for of_document in chunks for chunk in of_document]


@pytest.fixture(scope="module")
def flat(tmp_path_factory: pytest.TempPathFactory):
    return table_of(tmp_path_factory.mktemp("flat"), VAULT)


@pytest.fixture(scope="module")
def two_levels(tmp_path_factory: pytest.TempPathFactory):
    root = tmp_path_factory.mktemp("levels")
    vault = root / "vault"
    vault.mkdir()
    sections = (f"# Part {n}\n\n" + f"Sentence {n} about lamps and masts. " * 70 for n in range(3))
    (vault / "long.md").write_text("\n\n".join(sections))
    (vault / "short.md").write_text("# Short\n\nA few words.")
    return table_of(root / "index", vault, ParentChildChunker())


def test_chunk_table_keeps_every_chunk(flat) -> None:
    table, _, chunks = flat
    assert len(table) == table.n_retrievable == len(chunks)
    assert table.chunk_ids == [chunk.chunk_id for chunk in chunks]
    assert table.texts() == [chunk.text for chunk in chunks]
    for number, chunk in enumerate(chunks):
        assert table.docno(number) == chunk.docno
        assert table.text(number) == chunk.text
        assert table.header_path(number) == chunk.header_path
        assert table.span(number) == (chunk.start, chunk.end)
        assert tuple(table.sections[number]) == chunk.sections
        assert table.parent[number] == -1


def test_chunk_table_keeps_every_document(flat) -> None:
    table, documents, _ = flat
    assert table.docnos == [document.docno for document in documents]
    assert table.titles == [document.title for document in documents]
    assert table.document_column("tags") == [list(document.tags) for document in documents]
    assert table.document_number["guides/schedules"] == table.docnos.index("guides/schedules")
    limits = table.document_number["reference/limits"]
    assert table.frontmatter[limits]["author"] == ["Ada Quist", "Bo Lind"]
    first_lamp = table.links[table.document_number["guides/first-lamp"]]
    assert ("related", "guides/schedules") in first_lamp


def test_chunk_table_names_the_sections_a_chunk_overlaps(flat) -> None:
    table, documents, chunks = flat
    for number, chunk in enumerate(chunks):
        document = next(d for d in documents if d.docno == chunk.docno)
        assert table.section_ids[number] == tuple(
            f"{chunk.docno}#{document.sections[n].anchor}" for n in chunk.sections
        )


def test_chunk_table_digests_equal_texts_equally(flat) -> None:
    table, _, chunks = flat
    digests = table.content_hash
    assert digests.dtype == np.uint64
    assert len(set(digests.tolist())) == len({chunk.text for chunk in chunks})


def test_code_block_belongs_to_the_chunk_that_holds_it(flat) -> None:
    table, documents, _ = flat
    blocks = table.blocks.to_pylist()
    assert len(blocks) == sum(len(document.code_blocks) for document in documents)
    for block in blocks:
        assert block["code"].strip() in table.text(block["chunk"])
    assert {block["language"] for block in blocks} == {"bash", "cpp", "python"}


def test_chunk_table_has_parents_after_their_children(two_levels) -> None:
    table, _, chunks = two_levels
    parents = [chunk for chunk in chunks if chunk.is_parent]
    assert table.n_retrievable == len(chunks) - len(parents)
    assert parents
    assert {table.chunk_ids[n] for n in range(table.n_retrievable, len(table))} == {p.chunk_id for p in parents}
    for child in range(table.n_retrievable):
        parent = int(table.parent[child])
        assert parent >= table.n_retrievable
        (start, end), (outer_start, outer_end) = table.span(child), table.span(parent)
        assert outer_start <= start < end <= outer_end
        assert table.docno(parent) == table.docno(child)


def test_chunk_table_keeps_ids_and_sizes_of_children(two_levels) -> None:
    _, _, chunks = two_levels
    children = [chunk for chunk in chunks if not chunk.is_parent]
    assert [c.chunk_id for c in children if c.docno == "long"] == [
        f"long#{n}" for n in range(sum(c.docno == "long" for c in children))
    ]
    assert all(len(c.text) <= 600 for c in children)
    assert all(len(c.text) <= 2000 for c in chunks)


def test_chunk_table_may_be_empty(tmp_path: Path) -> None:
    build_chunks(tmp_path, [], [])
    table = ChunkTable(tmp_path)
    assert (len(table), table.n_documents, table.n_retrievable, table.texts()) == (0, 0, 0, [])


def test_chunk_table_same_documents_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        table_of(tmp_path / name, VAULT)
    for path in (tmp_path / "a").glob("*.arrow"):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def test_part_of_a_chunk_table_counts_from_zero(flat) -> None:
    table = flat[0]
    part = table.part(2, 5)
    start, stop = table.chunks_of(2)[0], table.chunks_of(4)[1]
    assert part.docnos == table.docnos[2:5]
    assert part.texts() == table.texts(start, stop)
    assert part.document.tolist() == (table.document[start:stop] - 2).tolist()
    assert part.n_retrievable == len(part) == stop - start
    assert part.part(1, 2).docnos == table.docnos[3:4]


def test_columns_equal_those_of_pyarrow() -> None:
    link = pa.struct([("text", pa.string()), ("target", pa.string())])
    values = {
        pa.string(): ["a", None, "ü\0"],
        pa.large_string(): [],
        pa.bool_(): [True, False, True] * 5,
        pa.uint64(): [2**63 + 1, 0],
        pa.list_(pa.int32()): [[1, 2], [], [3]],
        pa.list_(link): [[{"text": "x", "target": None}], [], [{"text": "", "target": "é"}]],
    }
    for kind, column in values.items():
        made = _array(column, kind)
        made.validate(full=True)
        assert made.equals(pa.array(column, kind)) and made.type == kind
