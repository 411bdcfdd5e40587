"""The link graph: neighbours and Louvain communities."""

from pathlib import Path

import numpy as np
import pytest

from ragbench.corpus.reader import read_vault
from ragbench.index.chunks import ChunkTable, build_chunks
from ragbench.index.graph import GraphIndex, build_graph


def graph_of(folder: Path, files: dict[str, str]) -> tuple[GraphIndex, dict[str, int]]:
    (folder / "vault").mkdir()
    for name, text in files.items():
        (folder / "vault" / f"{name}.md").write_text(text, encoding="utf-8")
    documents = read_vault(folder / "vault").documents
    from ragbench.index.chunking import HeaderChunker

    build_chunks(folder, documents, [HeaderChunker().chunk(document) for document in documents])
    table = ChunkTable(folder)
    build_graph(folder, table)
    return GraphIndex(folder), dict(table.document_number)


def test_graph_has_an_edge_for_every_kind_of_link(tmp_path: Path) -> None:
    graph, number = graph_of(
        tmp_path,
        {
            "a": "See [[b]] and [[nowhere]], [the web](https://example.org) and [d](d.md).",
            "b": "![[c]]",
            "c": "---\nrelated: [a, ghost]\n---\nText.",
            "d": "Me: [[d]].",
        },
    )
    edges = {tuple(edge) for edge in graph.edges.tolist()}
    named = {(x, y) for x in number for y in number if (number[x], number[y]) in edges}
    assert named == {("a", "b"), ("a", "d"), ("b", "c"), ("c", "a")}


def test_graph_neighbours_are_linked_either_way(tmp_path: Path) -> None:
    graph, number = graph_of(tmp_path, {"a": "[[b]]", "b": "[[c]]", "c": "x", "d": "y"})
    assert graph.neighbours(number["b"]) == {number["a"], number["c"]}
    assert graph.neighbours(number["d"]) == frozenset()


def test_graph_gives_chunks_of_a_document(tmp_path: Path) -> None:
    long = "\n\n".join(f"# Part {n}\n\n" + "words and more words " * 60 for n in range(3))
    _, number = graph_of(tmp_path, {"a": "x", "b": long, "c": "---\ntitle: C\n---\n", "d": "z"})
    table = ChunkTable(tmp_path)
    first, last = table.chunks_of(number["b"])
    assert (first, last) == (1, 4)
    assert table.chunks_of(number["a"]) == (0, 1)
    assert table.chunks_of(number["c"]) == (4, 5)  # its title stands for its text
    assert table.chunks_of(number["d"]) == (5, 6)


@pytest.fixture
def two_rings() -> dict[str, str]:
    """Two rings of four, one link between them, and a document on its own."""
    rings = {f"{r}{n}": f"[[{r}{(n + 1) % 4}]] [[{r}{(n + 2) % 4}]]" for r in "ab" for n in range(4)}
    return {**rings, "a0": rings["a0"] + " [[b0]]", "lonely": "Nothing."}


def test_graph_communities(tmp_path: Path, two_rings: dict[str, str]) -> None:
    graph, number = graph_of(tmp_path, two_rings)
    of = {name: int(graph.community[row]) for name, row in number.items()}
    assert of == {**{f"a{n}": 0 for n in range(4)}, **{f"b{n}": 1 for n in range(4)}, "lonely": -1}


def test_graph_without_links_has_no_communities(tmp_path: Path) -> None:
    graph, _ = graph_of(tmp_path, {"a": "x", "b": "y"})
    assert graph.edges.shape == (0, 2)
    assert graph.community.tolist() == [-1, -1]


def test_graph_same_links_give_the_same_bytes(tmp_path: Path, two_rings: dict[str, str]) -> None:
    for name, files in (("one", two_rings), ("two", dict(reversed(two_rings.items())))):
        (tmp_path / name).mkdir()
        graph_of(tmp_path / name, files)
    for name in ("edges.npy", "community.npy"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
    assert np.load(tmp_path / "one" / "community.npy").dtype == np.int32
