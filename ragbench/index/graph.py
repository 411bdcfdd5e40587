"""The link graph of the documents: neighbours and communities."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragbench.index.chunks import ChunkTable
from ragbench.index.parts import StoredPart

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

    edges = edges_of(table)
    graph: nx.Graph[int] = nx.Graph()
    graph.add_edges_from(sorted({(min(edge), max(edge)) for edge in edges}))
    community = np.full(table.n_documents, -1, dtype=np.int32)
    if edges:
        groups = sorted(sorted(group) for group in nx.community.louvain_communities(graph, seed=_SEED))
        for label, group in enumerate(groups):
            community[group] = label
    np.save(folder / _EDGES, np.asarray(edges, dtype=np.int32).reshape(-1, 2), allow_pickle=False)
    np.save(folder / _COMMUNITY, community, allow_pickle=False)


def edges_of(table: ChunkTable) -> list[tuple[int, int]]:
    """The pairs of different documents of which the first links to the second, sorted."""
    number = table.document_number
    pairs = {(row, number[target]) for row, links in enumerate(table.links) for _, target in links}
    return sorted((row, target) for row, target in pairs if row != target)


class GraphIndex:
    """Links and communities by document row."""

    def __init__(self, folder: Path) -> None:
        """Open the artefact in `folder`."""
        self.edges: NDArray[np.int32] = np.load(folder / _EDGES, allow_pickle=False)
        self.community: NDArray[np.int32] = np.load(folder / _COMMUNITY, allow_pickle=False)

    def neighbours(self, node: int) -> frozenset[int]:
        """The documents that a document links to or is linked from."""
        return self._neighbours.get(node, frozenset())

    def linking_to(self, node: int) -> frozenset[int]:
        """The documents that link to a document."""
        return self._linking.get(node, frozenset())

    @cached_property
    def _neighbours(self) -> dict[int, frozenset[int]]:
        return _others_by_node(np.concatenate([self.edges, self.edges[:, ::-1]]))

    @cached_property
    def _linking(self) -> dict[int, frozenset[int]]:
        return _others_by_node(self.edges[:, ::-1])


def _others_by_node(pairs: NDArray[np.int32]) -> dict[int, frozenset[int]]:
    """The second nodes of pairs by the first, shape (n, 2)."""
    others: dict[int, set[int]] = {}
    for node, other in pairs.tolist():
        others.setdefault(node, set()).add(other)
    return {node: frozenset(of_node) for node, of_node in others.items()}


PART = StoredPart(
    "graph",
    inputs=lambda index: [index.fingerprint("chunks"), VERSION],
    build=lambda folder, index: build_graph(folder, index.chunks),
    open=lambda folder, index: GraphIndex(folder),
)
