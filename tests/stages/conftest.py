"""Small indexes with chosen texts, links and vectors, made by the real builders, and states with chosen rankings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from ragbench.base.types import Chunk, Document, Link, Query, QueryState, Ranking
from ragbench.index.chunks import ChunkTable, build_chunks
from ragbench.index.dense import DenseIndex, DenseSpec, build_dense
from ragbench.index.filters import Facets
from ragbench.index.graph import GraphIndex, build_graph
from ragbench.index.names import NoteNames
from ragbench.index.prefixes import PrefixIndex, build_prefixes
from ragbench.index.scan import ScanIndex, build_scan
from ragbench.index.trigrams import TrigramIndex, build_trigrams


@dataclass
class Page:
    """A document of the test: its chunks' texts, what it links to, and what can be filtered by. `title`: else docno."""

    docno: str
    texts: Sequence[str] = ("text",)
    links: Sequence[str] = ()
    tags: Sequence[str] = ()
    frontmatter: Mapping[str, Any] = field(default_factory=dict)
    modified: float = 0.0
    title: str | None = None
    parents: Sequence[int] = ()  # the parent of every chunk, counted within the page; makes that many parent chunks

    def document(self) -> Document:
        links = tuple(Link("wikilink", target, target) for target in self.links)
        text = "\n".join(self.texts)
        return Document(
            docno=self.docno,
            path=f"{self.docno}.md",
            title=self.named,
            text=text,
            frontmatter=self.frontmatter,
            sections=(),
            code_blocks=(),
            links=links,
            tags=tuple(self.tags),
            modified=self.modified,
            size_bytes=len(text),
            digest=self.docno,
        )

    @property
    def named(self) -> str:
        """Its title; a page without texts and title has no chunk."""
        return self.title if self.title is not None else self.docno if self.texts else ""

    def chunks(self) -> list[Chunk]:
        def chunk(name: str, text: str, **more: Any) -> Chunk:
            return Chunk(f"{self.docno}#{name}", self.docno, text, (), (), 0, len(text), **more)

        parents = list(self.parents) or [None] * len(self.texts)
        children = [
            chunk(str(n), text, parent=None if parent is None else f"{self.docno}#p{parent}")
            for n, (text, parent) in enumerate(zip(self.texts, parents, strict=True))
        ]
        sections = [chunk(f"p{n}", f"section {n}", is_parent=True) for n in sorted(set(self.parents))]
        return children + sections


@pytest.fixture(scope="session")
def page() -> type[Page]:
    return Page


class Handmade(SimpleNamespace):
    """An index whose parts are put together by hand."""

    def part(self, name: str) -> Any:
        return getattr(self, name)


@pytest.fixture
def handmade(tmp_path: Path) -> Callable[..., Handmade]:
    """A function from pages, and unit vectors of their chunks in order, to an index of them."""

    def make(pages: Sequence[Page], vectors: Any = None) -> Handmade:
        documents = [each.document() for each in pages]
        folder = tmp_path / "index"
        folder.mkdir()
        build_chunks(folder, documents, [each.chunks() for each in pages])
        table = ChunkTable(folder)
        build_graph(folder, table)
        build_trigrams(folder, table)
        build_prefixes(folder, table)
        build_scan(folder, documents)
        rows = np.zeros((table.n_retrievable, 2)) if vectors is None else np.asarray(vectors)
        (tmp_path / "dense").mkdir()
        build_dense(tmp_path / "dense", DenseSpec(), rows.astype(np.float32))
        modified = np.array([each.modified for each in pages])
        facets = Facets(table, modified)
        return Handmade(
            folder=folder,
            chunks=table,
            graph=GraphIndex(folder, table),
            trigrams=TrigramIndex(folder),
            dense=DenseIndex(tmp_path / "dense", DenseSpec()),
            prefixes=PrefixIndex(folder),
            scan=ScanIndex(folder),
            names=NoteNames(table),
            modified=modified,
            facets=facets,
            passing=facets.passing,
            allowed=lambda filters: None if filters is None else facets.passing(filters)[table.document],
        )

    return make


@pytest.fixture(scope="session")
def state() -> Callable[..., QueryState]:
    """A function that makes a state: text, fused (chunk, score) pairs, and a list of chunks for every source named."""

    def make(
        text: str = "words", fused: Sequence[tuple[int, float]] | None = None, **sources: Sequence[int]
    ) -> QueryState:
        made = QueryState(Query("q", text))
        for source, chunks in sources.items():
            made = made.with_ranking(source, Ranking.ordered(chunks, [1.0 / (n + 1) for n in range(len(chunks))]))
        if fused is None:
            return made
        ranking = Ranking.ordered([chunk for chunk, _ in fused], [score for _, score in fused])
        return QueryState(made.query, rankings=made.rankings, fused=ranking)

    return make
