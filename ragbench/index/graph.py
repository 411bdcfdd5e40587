"""The link graph of the documents: neighbours and communities."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from ragbench.index.chunks import ChunkTable

VERSION = 1
_EDGES, _COMMUNITY = "edges.npy", "community.npy"
_SEED = 13


def build_graph(folder: Path, table: ChunkTable) -> None:
    """Write the links between documents (wikilinks, transclusions, markdown links, `related`) and their communities.

    Louvain runs on the undirected graph with a fixed seed (networkx; Blondel et al., 2008). Communities are numbered by
    their first document; a document without links has community -1. Links to documents outside the collection were
    dropped when links were resolved.
    """
    import networkx as nx

    number = table.document_number
    edges = sorted(
        {(source, number[target]) for source, links in enumerate(table.links) for _, target in links} - _loops(table)
    )
    graph: nx.Graph[int] = nx.Graph()
    graph.add_edges_from(sorted({(min(edge), max(edge)) for edge in edges}))
    community = np.full(table.n_documents, -1, dtype=np.int32)
    if edges:
        groups = sorted(sorted(group) for group in nx.community.louvain_communities(graph, seed=_SEED))
        for label, group in enumerate(groups):
            community[group] = label
    np.save(folder / _EDGES, np.asarray(edges, dtype=np.int32).reshape(-1, 2), allow_pickle=False)
    np.save(folder / _COMMUNITY, community, allow_pickle=False)


def _loops(table: ChunkTable) -> set[tuple[int, int]]:
    return {(node, node) for node in range(table.n_documents)}


class GraphIndex:
    """Links and communities by document row."""

    def __init__(self, folder: Path, table: ChunkTable) -> None:
        """Open the artefact in `folder`; `table` gives the chunks of a document."""
        self.edges: NDArray[np.int32] = np.load(folder / _EDGES, allow_pickle=False)
        self.community: NDArray[np.int32] = np.load(folder / _COMMUNITY, allow_pickle=False)
        self._table = table

    def neighbours(self, node: int) -> frozenset[int]:
        """The documents that a document links to or is linked from."""
        return self._neighbours.get(node, frozenset())

    def linking_to(self, node: int) -> frozenset[int]:
        """The documents that link to a document."""
        return self._linking.get(node, frozenset())

    def tags_of(self, node: int) -> frozenset[str]:
        """The tags of a document."""
        return self._tags[node]

    def chunks_of(self, node: int) -> tuple[int, int]:
        """The range of a document's retrievable chunks."""
        return self._table.chunks_of(node)

    @cached_property
    def _neighbours(self) -> dict[int, frozenset[int]]:
        neighbours: dict[int, set[int]] = {}
        for source, target in self.edges.tolist():
            neighbours.setdefault(source, set()).add(target)
            neighbours.setdefault(target, set()).add(source)
        return {node: frozenset(others) for node, others in neighbours.items()}

    @cached_property
    def _linking(self) -> dict[int, frozenset[int]]:
        linking: dict[int, set[int]] = {}
        for source, target in self.edges.tolist():
            linking.setdefault(target, set()).add(source)
        return {node: frozenset(others) for node, others in linking.items()}

    @cached_property
    def _tags(self) -> list[frozenset[str]]:
        return [frozenset(tags) for tags in self._table.document_column("tags")]
