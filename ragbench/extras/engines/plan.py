"""What an engine does of a configuration: three searches, their fusion, and the learned order that goes on top."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, cast

from ragbench.base.options import Count, Validated, Weight, build
from ragbench.base.types import ConfigError
from ragbench.boundary.json import read_json
from ragbench.config.settings import Settings
from ragbench.index import analyzers
from ragbench.index.lexical import Bm25F
from ragbench.search.stages import cut, fuse, retrieve
from ragbench.search.stages.rank import Rank

FUSIONS = ("rrf", "convex/min_max")
"""The fusions that a statement of SQL has; a chunk that a source did not return has its lowest score there."""
NEAREST = fuse.Fuse("convex", norm="min_max")
"""What is taken instead of another one."""


@dataclass(frozen=True)
class SearchPlan(Validated):
    """The searches by source with their weights in fusion. `words`, `wholes`: how chunks and documents are scored."""

    depths: dict[str, Count]
    weights: dict[str, Weight]
    method: Literal["rrf", "convex"]
    k: Weight
    words: Bm25F | None
    wholes: Bm25F | None
    analyzer: str

    def to_json(self) -> str:
        """The plan as text."""
        return json.dumps(asdict(self))

    def __post_init__(self) -> None:
        """Check every field, since statements are made of it. Raises ConfigError."""
        super().__post_init__()
        scored = {"dense": "dense" in self.depths, "lexical": self.words, "documents": self.wholes}
        sources = {source for source, scoring in scored.items() if scoring}
        if set(self.depths) != sources or set(self.weights) != sources:
            raise self.refused("depths", f"must have the retrievers {', '.join(sorted(sources))}")

    @staticmethod
    def from_json(text: str) -> SearchPlan:
        """Return the plan of a text. Raises ValueError."""
        try:
            return build(SearchPlan, read_json(text), "plan")
        except (TypeError, AttributeError, ConfigError) as error:
            raise ValueError(f"its plan has an unexpected structure: {error}") from None

    @staticmethod
    def of(settings: Settings, format: str) -> SearchPlan:
        """The plan of a configuration whose fusion is one of FUSIONS. ConfigError where it has no source for it."""
        dense, lexical = settings.pipeline.first(retrieve.RetrieveDense), chunk_words(settings)
        if dense is None and lexical is None:
            raise ConfigError(
                f"--format {format} cannot express this arm, which searches neither by vectors nor by BM25: "
                "export another arm, or a bundle"
            )
        analyzer = settings.index.lexical.analyzer
        if lexical and len(analyzers.analyzers(analyzer)) > 1:
            raise ConfigError(
                f"--format {format} analyses all documents alike, but this arm has index.lexical.analyzer={analyzer}: "
                "export a bundle, or an arm with one analyzer"
            )
        wholes = document_words(settings) if lexical else None
        fusion = next(stage for _, stage in settings.pipeline if isinstance(stage, fuse.Fuse))
        stages = {"dense": dense, "lexical": lexical, "documents": wholes}
        return SearchPlan(
            {name: stage.depth for name, stage in stages.items() if stage},
            {name: fusion.weights.get(stage.source, 1.0) for name, stage in stages.items() if stage},
            cast(Literal["rrf", "convex"], fusion.method),
            fusion.k,
            lexical.scoring if lexical else None,
            wholes.scoring if wholes else None,
            analyzer,
        )


def chunk_words(settings: Settings) -> retrieve.RetrieveLexical | None:
    """The search for chunks by their words, None without one."""
    retrievers = settings.pipeline.all_of(retrieve.RetrieveLexical).values()
    return next((stage for stage in retrievers if stage.index is None or stage.index.unit == "chunk"), None)


def document_words(settings: Settings) -> retrieve.RetrieveLexical | None:
    """The search for whole documents by the same words as the chunks, None without one."""
    retrievers = settings.pipeline.all_of(retrieve.RetrieveLexical).values()
    return next((stage for stage in retrievers if stage.index and stage.index.unit == "document"), None)


def fusion_of(settings: Settings) -> str:
    """The fusion of the configuration in words."""
    fusion = settings.pipeline.first(fuse.Fuse)
    if fusion is None:
        return "nothing"
    return f"convex/{fusion.norm}" if fusion.method == "convex" else fusion.method


def has_fusion(settings: Settings) -> bool:
    """Whether an engine fuses as the configuration does."""
    return settings.pipeline.first(fuse.Fuse) is None or fusion_of(settings) in FUSIONS


def without_ranker(settings: Settings) -> Settings:
    """The configuration as the engine alone runs it: the searches by vectors and BM25, their fusion and the cut."""
    kept_stages = {id(stage) for stage in (settings.pipeline.first(retrieve.RetrieveDense), chunk_words(settings))}
    kept_stages.add(id(document_words(settings)))
    off = {
        name: dict[str, Any]()
        for name, stage in settings.pipeline
        if not isinstance(stage, (fuse.Fuse, cut.Cut)) and id(stage) not in kept_stages
    }
    return settings.with_values(off)


def ranker_of(settings: Settings) -> tuple[str, Rank] | None:
    """The learned order of a configuration with its entry, None without one."""
    return next(iter(settings.pipeline.all_of(Rank).items()), None)


def with_ranker(settings: Settings, measured: Settings) -> Settings:
    """The configuration with the learned order of the measured one on top."""
    order = ranker_of(measured)
    return settings if order is None else settings.with_values({order[0]: measured.value(order[0])})


def cut_of(settings: Settings) -> cut.Cut:
    """The cut of a configuration, at 100 hits where it has none."""
    return settings.pipeline.first(cut.Cut) or cut.Cut(100)


def left_out(settings: Settings, system: str) -> list[str]:
    """A sentence for every stage that neither the engine nor the learned order on top of it does."""
    kept_names = {name for name, _ in with_ranker(without_ranker(settings), settings).pipeline}
    return [
        f"{name} ({stage.describe()}): neither {system} nor ragbench serve on top of it has such a step"
        for name, stage in settings.pipeline
        if name not in kept_names
    ]
