"""The part of a configuration that search engines can express: dense search, lexical search, and their fusion.

A file for an engine is JSON: sentences on where it comes from and on what it cannot express, how documents must be cut
and embedded before they are sent, and the requests to send. `{query}` stands for the text of a query, `{vector}` for
its vector.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ragbench.base.errors import ConfigError
from ragbench.base.types import QueryState, Ranking
from ragbench.config.settings import Settings
from ragbench.export.translation import Reading, flat_index
from ragbench.index.lexical import Bm25F
from ragbench.models.adapter import KEY as ADAPTER_KEY
from ragbench.models.resolve import EncoderSpec, load_encoder
from ragbench.search.stages.cut import Cut
from ragbench.search.stages.fuse import Fuse
from ragbench.search.stages.retrieve import RetrieveDense, RetrieveLexical

if TYPE_CHECKING:
    from ragbench.index.index import Index

NAME = "ragbench"
"""The name of the index, the collection and the pipeline in a file; it may be changed before sending."""

QUERY, VECTOR = "{query}", "{vector}"

_KNOWN = (RetrieveDense, RetrieveLexical, Fuse, Cut)
ADAPTER = ADAPTER_KEY.removeprefix("index.")
"""The parameter of the index that moves vectors of queries, which an engine that embeds queries itself cannot do."""
DOCUMENTS = "documents"
"""The source that searches whole documents."""


@dataclass(frozen=True)
class Hybrid:
    """The part of a configuration that an engine can express; `weights` by source, where two are fused."""

    dense: RetrieveDense | None
    lexical: RetrieveLexical | None
    documents: RetrieveLexical | None
    fuse: Fuse | None
    weights: Mapping[str, float]
    top_n: int
    index: Mapping[str, Any]
    encoder: EncoderSpec
    dimension: int

    @property
    def window(self) -> int:
        """Hits of each search that are fused."""
        return max([self.top_n, *(stage.depth for stage in self.sources)])

    @property
    def sources(self) -> list[RetrieveDense | RetrieveLexical]:
        """The searches that it has, in the order of the requests."""
        return [stage for stage in (self.dense, self.lexical, self.documents) if stage]

    @property
    def bm25(self) -> Bm25F:
        """How words are scored."""
        assert self.lexical is not None
        return Bm25F(tuple(self.lexical.fields.items()), self.lexical.k1, self.lexical.b)

    @property
    def analyzer(self) -> str:
        """The analyzer of the words."""
        return str(self.index["lexical.analyzer"])


def translate(settings: Settings, system: str, format: str, fusions: Collection[str]) -> tuple[Hybrid, list[str]]:
    """The part that an engine can express, and a sentence for everything else.

    `fusions` are its methods, with the norm where scores are fused, such as `convex/min_max`. Raises ConfigError when
    it lacks the fusion of the configuration, and when it can express no source of it.
    """
    reading = Reading(settings)
    require_source(settings, format)
    dense, lexical, fuse = reading.stage(RetrieveDense), chunk_words(settings), reading.stage(Fuse)
    documents = document_words(settings) if lexical else None
    sources = [stage for stage in (dense, lexical, documents) if stage]
    several = len(sources) > 1 and fuse is not None
    missing = []
    if several and fuse:
        if not expresses(settings, fusions):
            raise ConfigError(
                f"--format {format} cannot fuse by {wanted_fusion(fuse)}, only by {', '.join(sorted(fusions))}: "
                "export another arm, or a bundle"
            )
        missing = _fusion_sentences(fuse, system)
    for cls, names in _EXPRESSED.items():
        for name in names:
            reading.value(cls, name, None)
    flat = flat_index(reading.index)
    for key in flat:
        part = key.partition(".")[0]
        if part in ("chunker", "encoder", "passage", "dense", "lexical") and key != ADAPTER:
            reading.index_value(key)
    cut = reading.stage(Cut)
    hybrid = Hybrid(
        dense,
        lexical,
        documents,
        fuse if several else None,
        {stage.source: fuse.weights.get(stage.source, 1.0) for stage in sources} if several and fuse else {},
        cut.top_n if cut else 100,
        flat,
        reading.index.encoder,
        load_encoder(reading.index.encoder).dim if dense else 0,
    )
    left = reading.left_over(_KNOWN, {}, system)
    if documents is not None:
        left = [sentence for sentence in left if not sentence.startswith(f"{DOCUMENTS} (")]
    return hybrid, missing + left + reading.out_of_order(_KNOWN, system)


def require_source(settings: Settings, format: str) -> None:
    """Raise ConfigError for a configuration that searches neither by vectors nor by BM25."""
    if settings.pipeline.first(RetrieveDense) is None and chunk_words(settings) is None:
        raise ConfigError(
            f"--format {format} cannot express this arm, which searches neither by vectors nor by BM25: "
            "export another arm, or a bundle"
        )


def chunk_words(settings: Settings) -> RetrieveLexical | None:
    """The search for chunks by their words, None without one."""
    found = settings.pipeline.all_of(RetrieveLexical).values()
    return next((stage for stage in found if stage.index is None or stage.index.unit == "chunk"), None)


def document_words(settings: Settings) -> RetrieveLexical | None:
    """The search for whole documents by the same words as the chunks, None without one."""
    found = settings.pipeline.all_of(RetrieveLexical).values()
    return next((stage for stage in found if stage.index and stage.index.unit == "document"), None)


def fusion_of(settings: Settings) -> str:
    """The fusion of the configuration in words."""
    fuse = settings.pipeline.first(Fuse)
    return "nothing" if fuse is None else wanted_fusion(fuse)


def wanted_fusion(fuse: Fuse) -> str:
    """The method of a fusion, with its norms where scores are fused."""
    return "convex/" + "+".join({fuse.norm, *fuse.norms.values()}) if fuse.method == "convex" else fuse.method


def expresses(settings: Settings, fusions: Collection[str]) -> bool:
    """Whether the fusion of the configuration is among `fusions`."""
    fuse = settings.pipeline.first(Fuse)
    return fuse is None or wanted_fusion(fuse) in fusions


def retrieval(settings: Settings) -> Settings:
    """The configuration with nothing but the searches by vectors and BM25, their fusion and the cut."""
    kept = {id(stage) for stage in (settings.pipeline.first(RetrieveDense), chunk_words(settings))}
    kept.add(id(document_words(settings)))
    off: dict[str, Any] = {
        name: {} for name, stage in settings.pipeline if not isinstance(stage, (Fuse, Cut)) and id(stage) not in kept
    }
    return settings.with_values(off | {ADAPTER_KEY: ""})


def with_one_window(settings: Settings) -> Settings:
    """`retrieval` as an engine runs it that fuses equally many chunks of every source, those of documents too."""
    plain = retrieval(settings)
    stages = [(name, stage) for name, stage in plain.pipeline if isinstance(stage, (RetrieveDense, RetrieveLexical))]
    cut = plain.pipeline.first(Cut) or Cut(100)
    window = max([cut.top_n, *(stage.depth for _, stage in stages)])
    changes: dict[str, Any] = {f"{name}.depth": window for name, _ in stages} if len(stages) > 1 else {}
    for name, stage in stages:
        if stage is document_words(plain):
            changes[f"{name}._target_"] = f"{FirstChunks.__module__}.{FirstChunks.__qualname__}"
    return plain.with_values(changes)


@dataclass(frozen=True)
class FirstChunks(RetrieveLexical):
    """Documents as an engine finds them that knows chunks only: the first `depth` chunks, each with a rank of its own.

    Every chunk has the score of its document.
    """

    def retrieve(self, states: Sequence[QueryState], index: Index) -> list[Ranking]:
        """The first chunks of the best documents."""
        return [replace(each.head(self.depth), of_documents=False) for each in super().retrieve(states, index)]


_EXPRESSED: Mapping[type[Any], tuple[str, ...]] = {
    RetrieveDense: ("depth",),
    RetrieveLexical: ("depth", "k1", "b", "fields"),
    Fuse: ("method", "k", "weights", "norm", "norms", "least", "missing"),
    Cut: ("top_n",),
}
"""Parameters that are in a file, or that a sentence of this module or of a format is about."""


def _fusion_sentences(fuse: Fuse, system: str) -> list[str]:
    wanted, missing = wanted_fusion(fuse), []
    if fuse.method == "rrf" and not float(fuse.k).is_integer():
        missing.append(f"fuse.k = {fuse.k:g}: {system} has whole numbers only, so {round(fuse.k)} is written")
    if fuse.method != "rrf" and (fuse.missing == "exact" or (fuse.missing, wanted) == ("lowest", "convex/theoretical")):
        missing.append(f"fuse.missing = {fuse.missing}: in {system} a source gives 0 to what it did not return")
    if fuse.method == "dbsf" and fuse.missing != "nothing":
        missing.append(f"fuse.missing = {fuse.missing}: in {system} a source gives 0 to what it did not return")
    if fuse.method == "convex" and fuse.least not in ({}, {"dense": -1.0}):
        missing.append(f"fuse.least = {dict(fuse.least)}: {system} counts from -1 for cosines and from 0 for BM25")
    return missing


def shares(weights: Mapping[str, float]) -> list[float]:
    """The weights divided by their sum; rankings stay the same."""
    total = sum(weights.values()) or 1.0
    return [round(weight / total, 9) for weight in weights.values()]


def same_window(hybrid: Hybrid, system: str) -> list[str]:
    """A sentence for every source whose depth differs from the one that the engine uses for all sources."""
    return [
        f"{stage.source}.depth = {stage.depth}: {system} fuses the first {hybrid.window} of every source"
        for stage in hybrid.sources
        if hybrid.fuse and stage.depth != hybrid.window
    ]


def file(
    hybrid: Hybrid,
    origin: Sequence[str],
    missing: Sequence[str],
    requests: Sequence[tuple[str, str, Any]],
    more: Mapping[str, Any] | None = None,
) -> str:
    """The file; `requests` are (method, path, body), `more` what else stands in it."""

    def of(part: str) -> dict[str, Any]:
        return {
            key.partition(".")[2]: value
            for key, value in hybrid.index.items()
            if key.startswith(f"{part}.") and key != ADAPTER
        }

    before = {"chunks": {"class": hybrid.index["chunker"], **of("chunker")}}
    if hybrid.dense:
        prefixes = hybrid.encoder.prefixes(hybrid.encoder.name)  # including those that follow from the model's name
        before |= {"vectors": {**of("encoder"), **prefixes, "dimension": hybrid.dimension}, "passages": of("passage")}
    if hybrid.lexical:
        before["words"] = {"fields": sorted(hybrid.lexical.fields)}
    sent = [{"method": method, "path": path, "body": body} for method, path, body in requests]
    content = {"about": list(origin), "not_expressed": list(missing), "before_indexing": before, "requests": sent}
    return json.dumps({**content, **(more or {})}, indent=1, ensure_ascii=True) + "\n"
