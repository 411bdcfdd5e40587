"""The index of one collection under one specification: its parts, each built when first needed and opened once.

Stages read parts as attributes (`index.chunks`); they never see files. `prepare` builds the parts of a pipeline ahead
of time. `ragbench.index.parts` lists the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, MutableMapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.fingerprint import short_digest
from ragbench.base.query_cache import QueryCache
from ragbench.base.types import ConfigError
from ragbench.index.artefacts import Artefact, ArtefactStore, fingerprint_of
from ragbench.index.chunking import Chunker, HeaderChunker
from ragbench.index.dense import DenseSpec
from ragbench.index.filters import MetadataSpec
from ragbench.index.lexical import LexicalSpec
from ragbench.index.parts import AnyPart, StoredPart, find
from ragbench.index.texts import PassageTemplate
from ragbench.index.vocabulary import VocabularySpec
from ragbench.models.resolve import EncoderSpec, Models

if TYPE_CHECKING:
    from pathlib import Path

    from ragbench.base.types import Document, Filters
    from ragbench.index.chunks import ChunkTable
    from ragbench.index.code import CodeIndex
    from ragbench.index.dense import DenseIndex
    from ragbench.index.filters import Facets
    from ragbench.index.graph import GraphIndex
    from ragbench.index.lexical import LexicalIndex
    from ragbench.index.synonyms import Synonyms
    from ragbench.index.trigrams import TrigramIndex
    from ragbench.index.vocabulary import Vocabulary
    from ragbench.models import Encoder


_FILTERS_KEPT = 64  # results, each of one byte per document


class Index:
    """The parts of one collection. `documents` is called only when a part must be built."""

    # The types of parts that stages read; parts not listed here are attributes, too.
    chunks: ChunkTable
    lexical: LexicalIndex
    dense: DenseIndex
    code: CodeIndex
    facets: Facets
    modified: NDArray[np.float64]
    graph: GraphIndex
    trigrams: TrigramIndex
    vocabulary: Vocabulary
    synonyms: Synonyms
    encoder: Encoder

    def __init__(
        self,
        spec: IndexSpec,
        collection: str,
        documents: Callable[[], Sequence[Document]],
        store: ArtefactStore,
        models: Models,
        opened: MutableMapping[Hashable, Any] | None = None,
        times: Callable[[], Mapping[str, float]] | None = None,
        builders: Mapping[str, Callable[[str, Path, Index], None]] | None = None,
    ) -> None:
        """`collection` is a digest over all documents: with `spec` it names every artefact.

        Indexes with the same `opened` share the open readers of common artefacts. `times` has the modification time of
        each docno; None takes those of the documents. `builders` build the parts of a kind, such as `lexical`, by name.
        """
        self.spec: IndexSpec = spec
        self.collection: str = collection
        self.store = store
        self.models = models
        self._documents = documents
        self._opened = {} if opened is None else opened
        self._times = times
        self._builders = builders or {}
        self._artefacts: dict[str, Artefact] = {}
        self._parts: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"Index({self.collection[:8]}, {short_digest(self.spec)})"

    def __getattr__(self, name: str) -> Any:
        """The part of a name, opened when first read."""
        if name.startswith("_"):
            raise AttributeError(name)
        return self.part(name)

    def part(self, name: str) -> Any:
        """The part of a name such as `dense` or `dense:minilm`, opened when first read."""
        if name not in self._parts:
            self._parts[name] = self._part(name)
        return self._parts[name]

    def _part(self, name: str) -> Any:
        part = self._known(name)
        if not isinstance(part, StoredPart):
            return part.open(self)
        folder = self.artefact(name).folder
        if (name, folder) not in self._opened:
            self._opened[name, folder] = part.open(folder, self)
        return self._opened[name, folder]

    def prepare(self, needs: Iterable[str]) -> None:
        """Build or open the named parts now."""
        for need in sorted(set(needs) | {"chunks"}):
            self.part(need)

    def with_models(self, models: Models) -> Index:
        """The same open parts with other models, to measure latency without caches."""
        twin = copy(self)
        twin.models = models
        twin._parts = {name: part for name, part in self._parts.items() if name.partition(":")[0] != "encoder"}
        return twin

    def close(self) -> None:
        """Close the opened parts that hold files or Java objects."""
        for part in self._parts.values():
            if hasattr(part, "close"):
                part.close()

    @property
    def documents(self) -> Sequence[Document]:
        """The documents of the collection, to build parts from."""
        return self._documents()

    def times(self) -> Mapping[str, float]:
        """The time of the last change of each docno, in seconds since the epoch."""
        return (
            {document.docno: document.modified for document in self.documents} if self._times is None else self._times()
        )

    # artefacts --------------------------------------------------------------------------------------------------

    def artefact(self, name: str) -> Artefact:
        """The artefact of a stored part, built when it does not exist yet."""
        if name not in self._artefacts:
            part = self._known(name)
            if not isinstance(part, StoredPart):
                raise ConfigError(f"the part '{name}' of an index is made in memory and has no artefact")
            inputs = part.inputs(self)
            builder = self._builders.get(kind := _kind(name))
            build = part.build if builder is None else partial(builder, name)
            self._artefacts[name] = self.store.get(kind, inputs, lambda folder: build(folder, self))
        return self._artefacts[name]

    def fingerprint(self, name: str) -> str:
        """The fingerprint of a part: a digest of everything that it is made from."""
        part = self._known(name)
        if not isinstance(part, StoredPart):
            return part.fingerprint(self)
        return fingerprint_of(_kind(name), part.inputs(self))  # known before it is built

    def fingerprints(self, needs: Iterable[str]) -> dict[str, str]:
        """The fingerprints of several parts by name, sorted."""
        return {need: self.fingerprint(need) for need in sorted(needs)}

    def artefacts(self, needs: Iterable[str] | None = None) -> list[Artefact]:
        """The artefacts of the named parts, sorted by name; None gives all opened so far, in the order of opening."""
        if needs is None:
            return list(self._artefacts.values())
        names = sorted(set(needs) | {"chunks"})
        return [self.artefact(name) for name in names if isinstance(self._known(name), StoredPart)]

    def _known(self, name: str) -> AnyPart:
        part = find(name)
        if part is None:
            raise ConfigError(f"a stage needs '{name}', which no index provides")
        return part

    # filters ----------------------------------------------------------------------------------------------------

    @cached_property
    def passing(self) -> Callable[[Filters], NDArray[np.bool_]]:
        """Which documents meet the filters, shape (n_documents,); kept, because all queries share it."""
        return lru_cache(_FILTERS_KEPT)(self.facets.passing)

    def allowed(self, filters: Filters | None) -> NDArray[np.bool_] | None:
        """Which chunks meet the filters, or belong to documents that do, shape (n_chunks,); None without filters."""
        if filters is None:
            return None
        allowed = self.passing(filters)[self.chunks.document]
        return allowed & self.facets.under_headings(filters.heading_levels) if filters.heading_levels else allowed

    # models -----------------------------------------------------------------------------------------------------

    @property
    def memory(self) -> QueryCache:
        """The memory of earlier queries, of models and parts."""
        return self.models.memory


def _kind(name: str) -> str:
    """The kind of the artefact of a part such as `dense:minilm`."""
    return name.partition(":")[0]


@dataclass(frozen=True)
class VectorsSpec:
    """The settings of a source's vectors: the model, the texts that are embedded, and the search structure."""

    encoder: EncoderSpec = field(default_factory=EncoderSpec)
    passage: PassageTemplate = field(default_factory=PassageTemplate)
    dense: DenseSpec = field(default_factory=DenseSpec)


@dataclass(frozen=True)
class IndexSpec:
    """The settings of an index: chunking, the analysis of words, the texts that are embedded, the model, and metadata.

    `sources` are further sources by name, each with its own settings.
    """

    chunker: Chunker = field(default_factory=HeaderChunker)
    lexical: LexicalSpec = field(default_factory=LexicalSpec)
    dense: DenseSpec = field(default_factory=DenseSpec)
    encoder: EncoderSpec = field(default_factory=EncoderSpec)
    passage: PassageTemplate = field(default_factory=PassageTemplate)
    vocabulary: VocabularySpec = field(default_factory=VocabularySpec)
    metadata: MetadataSpec = field(default_factory=MetadataSpec)
    sources: tuple[tuple[str, LexicalSpec | VectorsSpec], ...] = ()

    def words(self, source: str) -> LexicalSpec:
        """How the words of a source are indexed; `""` is the source of the index itself."""
        spec = dict(self.sources)[source] if source else self.lexical
        if not isinstance(spec, LexicalSpec):
            raise ConfigError(f"source '{source}' is one of vectors and has no words")
        return spec

    def vectors(self, source: str) -> VectorsSpec:
        """The settings of a source's vectors; `""` is the source of the index itself."""
        spec = dict(self.sources)[source] if source else VectorsSpec(self.encoder, self.passage, self.dense)
        if not isinstance(spec, VectorsSpec):
            raise ConfigError(f"source '{source}' is one of words and has no vectors")
        return spec
