"""The settings of an index: how documents are chunked, how words are analysed, what is embedded and by which model."""

from __future__ import annotations

from dataclasses import dataclass, field

from ragbench.base.errors import ConfigError
from ragbench.index.chunking import Chunker, HeaderChunker
from ragbench.index.dense import DenseSpec
from ragbench.index.filters import MetadataSpec
from ragbench.index.lexical import LexicalSpec
from ragbench.index.texts import PassageTemplate
from ragbench.index.vocabulary import VocabularySpec
from ragbench.models.resolve import EncoderSpec


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
