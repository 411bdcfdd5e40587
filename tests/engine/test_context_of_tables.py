"""Passages for agents repeat the header of a table that they cut."""

from pathlib import Path

from ragbench.corpus.reader import read_vault
from ragbench.index.chunking import HeaderChunker
from ragbench.index.chunks import ChunkTable, build_chunks
from ragbench.index.texts import PassageTemplate

ROWS = "".join(f"| relay-{n:03} | {n % 7} A | {n} V |\n" for n in range(200))
HEADER = "| relay | rated current | rated voltage |\n| --- | --- | --- |\n"


def test_passages_of_a_long_table_have_its_header(tmp_path: Path) -> None:
    (tmp_path / "relays.md").write_text(f"# Relays\n\n{HEADER}{ROWS}")
    documents = read_vault(tmp_path).documents
    folder = tmp_path / "table"
    folder.mkdir()
    build_chunks(folder, documents, [HeaderChunker().chunk(document) for document in documents])
    table = ChunkTable(folder)
    passages = PassageTemplate().passages(table)
    assert len(passages) > 3 and all(HEADER in passage for passage in passages)
    assert passages == [PassageTemplate().passage(table, chunk) for chunk in range(len(passages))]
