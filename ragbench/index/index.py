"""The index of one collection under one specification: every artefact, built when first needed and opened once.

Stages read from it; they never see files. `prepare` builds ahead of time what a pipeline needs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ragbench.corpus.chunking import Chunker, HeaderChunker
from ragbench.errors import ConfigError
from ragbench.fingerprint import digest, short
from ragbench.index import (
    chunks,
    code,
    dense,
    graph,
    lexical,
    prefixes,
    scan,
    sharded,
    synonyms,
    trigrams,
    vocabulary,
)
from ragbench.index.artefacts import Artefact, ArtefactStore
from ragbench.index.dense import DenseSpec
from ragbench.index.filters import Facets
from ragbench.index.lexical import LexicalSpec
from ragbench.index.names import NoteNames
from ragbench.index.shards import Sharding, Shards
from ragbench.index.texts import FIELDS, lexical_rows, passages_of
from ragbench.index.vocabulary import VocabularySpec
from ragbench.models.access import Models
from ragbench.models.resolve import CrossEncoderSpec, EncoderSpec

if TYPE_CHECKING:
    from ragbench.index.chunks import ChunkTable
    from ragbench.index.code import CodeIndex
    from ragbench.index.dense import DenseIndex
    from ragbench.index.graph import GraphIndex
    from ragbench.index.lexical import LexicalIndex
    from ragbench.index.prefixes import PrefixIndex
    from ragbench.index.scan import ScanIndex
    from ragbench.index.synonyms import Synonyms
    from ragbench.index.trigrams import TrigramIndex
    from ragbench.index.vocabulary import Vocabulary
    from ragbench.models import CrossEncoder, Encoder
    from ragbench.models.chat import ChatModel, ChatSpec
    from ragbench.types import Document, Filters

Progress = Callable[[str, int, int], None]

_T = TypeVar("_T")

# Answers for this many different filters are remembered, a byte a document each.
_FILTERS_KEPT = 64


@dataclass(frozen=True)
class IndexSpec:
    """All that shapes an index: chunking, lexical fields, dense passages and the model that embeds them.

    `headings`: put the header path and a blank line before a chunk's text when it is embedded (P2).
    """

    chunker: Chunker = field(default_factory=HeaderChunker)
    lexical: LexicalSpec = field(default_factory=LexicalSpec)
    dense: DenseSpec = field(default_factory=DenseSpec)
    encoder: EncoderSpec = field(default_factory=EncoderSpec)
    vocabulary: VocabularySpec = field(default_factory=VocabularySpec)
    headings: bool = False

    def __post_init__(self) -> None:
        for name, _ in self.lexical.fields:
            if name not in FIELDS:
                raise ConfigError(f"index.lexical.fields has no field '{name}'; known fields: {', '.join(FIELDS)}")


class Index:
    """Artefacts of one collection. `documents` is only called when an artefact must be built."""

    def __init__(
        self,
        spec: IndexSpec,
        collection: str,
        documents: Callable[[], Sequence[Document]],
        store: ArtefactStore,
        models: Models,
        progress: Progress | None = None,
        sharding: Sharding | None = None,
        opened: MutableMapping[Hashable, Any] | None = None,
    ) -> None:
        """`collection` is a digest over all documents: with `spec` it names every artefact.

        Indexes that are given the same `opened` share what reads the artefacts they have in common.
        """
        self.spec = spec
        self.collection = collection
        self.store = store
        self.models = models
        self._documents = documents
        self._progress = progress
        self._sharding = sharding or Sharding()
        self._opened = {} if opened is None else opened

    def __repr__(self) -> str:
        return f"Index({self.collection[:8]}, {short(self.spec)})"

    def prepare(self, needs: Iterable[str]) -> None:
        """Build or open the named artefacts and models now."""
        for need in sorted(set(needs) | {"chunks"}):
            if not isinstance(getattr(type(self), need, None), cached_property):
                raise ConfigError(f"a stage needs '{need}', which no index provides")
            getattr(self, need)

    def with_models(self, models: Models) -> Index:
        """The same artefacts, already open, with other models: how latency is measured past the caches."""
        twin = Index(self.spec, self.collection, self._documents, self.store, models, self._progress, self._sharding)
        twin.__dict__.update(
            {name: value for name, value in self.__dict__.items() if name not in {"models", "encoder"}}
        )
        return twin

    def fingerprints(self, needs: Iterable[str]) -> dict[str, str]:
        """A name for each part of the index that a stage reads, opening what is not open yet."""
        return {need: self._fingerprint(need) for need in sorted(needs)}

    def _fingerprint(self, need: str) -> str:
        if need == "encoder":
            return self.encoder.digest
        if need in ("facets", "modified", "names"):
            return self.collection
        artefact: Artefact = getattr(self, f"{need}_artefact")
        return artefact.fingerprint

    def artefacts(self, needs: Iterable[str] | None = None) -> list[Artefact]:
        """The artefacts of the named parts, sorted; of all opened so far, in the order they were opened, when None."""
        if needs is None:
            return [value for name, value in self.__dict__.items() if name.endswith("_artefact")]
        names = [f"{need}_artefact" for need in sorted(set(needs) | {"chunks"})]
        return [getattr(self, name) for name in names if hasattr(type(self), name)]

    # chunks -----------------------------------------------------------------------------------------------------

    @cached_property
    def chunks_artefact(self) -> Artefact:
        """The chunk table's artefact."""
        inputs = [self.collection, chunks.VERSION, self.spec.chunker.version, self.spec.chunker]

        def build(folder: Path, shards: Shards) -> None:
            documents = self._documents()
            if self._large(len(documents)):
                tick = self._ticks("chunking", len(documents))
                sharded.build_chunks(folder, documents, self.spec.chunker, shards, tick)
            else:
                chunked = (self.spec.chunker.chunk(document) for document in documents)
                chunks.build_chunks(folder, documents, self._counted("chunking", chunked, len(documents)))

        return self._get("chunks", inputs, build)

    @cached_property
    def chunks(self) -> ChunkTable:
        """The chunk table."""
        return self._open(chunks.ChunkTable, self.chunks_artefact)

    @cached_property
    def modified(self) -> NDArray[np.float64]:
        """When each document was modified, seconds since the epoch, shape (n_documents,); not part of any artefact."""
        times = {document.docno: document.modified for document in self._documents()}
        return np.array([times[docno] for docno in self.chunks.docnos], dtype=np.float64)

    @cached_property
    def facets(self) -> Facets:
        """What documents can be filtered by."""
        return Facets(self.chunks, self.modified)

    def allowed(self, filters: Filters | None) -> NDArray[np.bool_] | None:
        """Which chunks meet the filters, or lie in documents that do, shape (n_chunks,); None without filters."""
        if filters is None:
            return None
        allowed = self.passing(filters)[self.chunks.document]
        return allowed & self.facets.under_headings(filters.heading_levels) if filters.heading_levels else allowed

    @cached_property
    def passing(self) -> Callable[[Filters], NDArray[np.bool_]]:
        """Whether each document meets filters, shape (n_documents,); the latest answers are remembered."""
        return lru_cache(maxsize=_FILTERS_KEPT)(self.facets.passing)

    # lexical ----------------------------------------------------------------------------------------------------

    @cached_property
    def lexical_artefact(self) -> Artefact:
        """The Lucene index's artefact."""
        inputs = [self.chunks_artefact.fingerprint, lexical.VERSION, self.spec.lexical]

        def build(folder: Path, shards: Shards) -> None:
            if self._large(self.chunks.n_documents):
                tick = self._ticks("indexing words", self.chunks.n_retrievable)
                sharded.build_lexical(folder, self.spec.lexical, self.chunks_artefact.folder, shards, tick)
            else:
                names = [name for name, _ in self.spec.lexical.fields]
                rows = self._counted("indexing words", lexical_rows(self.chunks, names), self.chunks.n_retrievable)
                lexical.build_lexical(folder, self.spec.lexical, rows)

        return self._get("lexical", inputs, build)

    @cached_property
    def lexical(self) -> LexicalIndex:
        """Words, scored by BM25F."""
        return self._open(lexical.LexicalIndex, self.lexical_artefact, self.spec.lexical)

    # dense ------------------------------------------------------------------------------------------------------

    @cached_property
    def dense_artefact(self) -> Artefact:
        """The vectors' artefact."""
        inputs = [
            self.chunks_artefact.fingerprint,
            dense.VERSION,
            self.spec.dense.chosen(self.chunks.n_retrievable),
            self.encoder.passage_digest,
            self.spec.headings,
        ]

        def build(folder: Path, shards: Shards) -> None:
            if self._large(self.chunks.n_documents):
                encoder = (self.models, self.spec.encoder)
                tick = self._ticks("embedding", self.chunks.n_retrievable)
                source, headings = self.chunks_artefact.folder, self.spec.headings
                sharded.build_dense(folder, self.spec.dense, source, headings, encoder, shards, tick)
            else:
                passages = passages_of(self.chunks, self.spec.headings)
                vectors = self.encoder.encode_passages(passages, self._ticks("embedding", len(passages)))
                dense.build_dense(folder, self.spec.dense, vectors)

        return self._get("dense", inputs, build)

    @cached_property
    def dense(self) -> DenseIndex:
        """Unit vectors, searched by inner product."""
        return self._open(dense.DenseIndex, self.dense_artefact, self.spec.dense)

    # code -------------------------------------------------------------------------------------------------------

    @cached_property
    def code_artefact(self) -> Artefact:
        """The code index's artefact."""
        inputs = [self.chunks_artefact.fingerprint, code.VERSION]

        def build(folder: Path) -> None:
            blocks = self.chunks.blocks.select(["code", "language"]).to_pylist()
            code.build_code(folder, ((n, block["code"], block["language"]) for n, block in enumerate(blocks)))

        return self.store.get("code", inputs, build)

    @cached_property
    def code(self) -> CodeIndex:
        """Code blocks, by identifiers and their parts."""
        return self._open(code.CodeIndex, self.code_artefact)

    @cached_property
    def chunk_of_block(self) -> NDArray[np.int32]:
        """The chunk that holds each code block."""
        return np.asarray(self.chunks.blocks["chunk"].to_numpy(), dtype=np.int32)

    # lexical search v3 --------------------------------------------------------------------------------------------

    @cached_property
    def scan_artefact(self) -> Artefact:
        """The artefact of paths and contents, as they are scanned."""
        inputs = [self.chunks_artefact.fingerprint, scan.VERSION]
        return self.store.get("scan", inputs, lambda folder: scan.build_scan(folder, self._documents()))

    @cached_property
    def scan(self) -> ScanIndex:
        """Substrings of paths and contents."""
        return self._open(scan.ScanIndex, self.scan_artefact)

    @cached_property
    def prefixes_artefact(self) -> Artefact:
        """The artefact of terms in five fields, in order."""
        inputs = [self.chunks_artefact.fingerprint, prefixes.VERSION]
        return self.store.get("prefixes", inputs, lambda folder: prefixes.build_prefixes(folder, self.chunks))

    @cached_property
    def prefixes(self) -> PrefixIndex:
        """Terms and their beginnings, scored by BM25+ among candidates."""
        return self._open(prefixes.PrefixIndex, self.prefixes_artefact)

    @cached_property
    def names(self) -> NoteNames:
        """What documents can be called."""
        return NoteNames(self.chunks)

    # links ------------------------------------------------------------------------------------------------------

    @cached_property
    def graph_artefact(self) -> Artefact:
        """The link graph's artefact."""
        inputs = [self.chunks_artefact.fingerprint, graph.VERSION]
        return self.store.get("graph", inputs, lambda folder: graph.build_graph(folder, self.chunks))

    @cached_property
    def graph(self) -> GraphIndex:
        """Links between documents and their communities."""
        return self._open(graph.GraphIndex, self.graph_artefact, self.chunks)

    # words ------------------------------------------------------------------------------------------------------

    @cached_property
    def trigrams_artefact(self) -> Artefact:
        """The trigrams' artefact."""
        inputs = [self.chunks_artefact.fingerprint, trigrams.VERSION]
        return self.store.get("trigrams", inputs, lambda folder: trigrams.build_trigrams(folder, self.chunks))

    @cached_property
    def trigrams(self) -> TrigramIndex:
        """The overlap of chunks."""
        return self._open(trigrams.TrigramIndex, self.trigrams_artefact)

    @cached_property
    def vocabulary_artefact(self) -> Artefact:
        """The concept vocabulary's artefact."""
        inputs = [
            self.chunks_artefact.fingerprint,
            vocabulary.VERSION,
            self.spec.vocabulary,
            self.encoder.passage_digest,
        ]

        def build(folder: Path) -> None:
            texts = self.chunks.texts(0, self.chunks.n_retrievable)
            vocabulary.build_vocabulary(folder, vocabulary.frequent_terms(texts, self.spec.vocabulary), self.encoder)

        return self.store.get("vocabulary", inputs, build)

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """The collection's words and their vectors."""
        return self._open(vocabulary.Vocabulary, self.vocabulary_artefact)

    @cached_property
    def synonyms_artefact(self) -> Artefact:
        """WordNet's artefact, the same for every collection."""
        return self.store.get("synonyms", [synonyms.VERSION, synonyms.source_version()], synonyms.build_synonyms)

    @cached_property
    def synonyms(self) -> Synonyms:
        """WordNet's synonyms."""
        return self._open(synonyms.Synonyms, self.synonyms_artefact)

    # models -----------------------------------------------------------------------------------------------------

    @cached_property
    def encoder(self) -> Encoder:
        """The model that embeds queries and passages."""
        return self.models.encoder(self.spec.encoder)

    def cross_encoder(self, spec: CrossEncoderSpec) -> CrossEncoder:
        """A model that scores a query and a passage together."""
        return self.models.cross_encoder(spec)

    def chat(self, spec: ChatSpec) -> ChatModel:
        """A model that writes text."""
        return self.models.chat(spec)

    # large collections ------------------------------------------------------------------------------------------

    def _large(self, n_documents: int) -> bool:
        return n_documents > self._sharding.shard_documents

    def _get(self, kind: str, inputs: list[Any], build: Callable[[Path, Shards], None]) -> Artefact:
        """An artefact that is built in shards when the collection is large; they outlive a build that is killed."""
        place = self.store.root / "shards" / short([kind, inputs, self._sharding.shard_documents])
        shards = Shards(place, self._sharding)
        artefact = self.store.get(kind, inputs, lambda folder: build(folder, shards))
        shards.discard()
        return artefact

    def _open(self, part: Callable[..., _T], artefact: Artefact, *given: Hashable) -> _T:
        """What reads an artefact, opened once."""
        key = (part, artefact.folder, *given)
        if key not in self._opened:
            self._opened[key] = part(artefact.folder, *given)
        found: _T = self._opened[key]
        return found

    # progress ---------------------------------------------------------------------------------------------------

    def _ticks(self, task: str, total: int) -> Callable[[int], None]:
        done = 0

        def tick(n: int) -> None:
            nonlocal done
            done += n
            if self._progress is not None:
                self._progress(task, done, total)

        return tick

    def _counted(self, task: str, items: Iterable[Any], total: int) -> Iterable[Any]:
        tick = self._ticks(task, total)
        for item in items:
            yield item
            tick(1)


def collection_digest(documents: Iterable[Document]) -> str:
    """One digest over the docnos and contents of documents; times do not count, a checkout changes them."""
    return digest(sorted([d.docno, d.digest] for d in documents))
