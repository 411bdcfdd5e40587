"""What an engine does of a configuration: three searches, their fusion, and the learned order that goes on top."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from ragbench.boundary.json import read_json
from ragbench.config.settings import Settings
from ragbench.export.hybrid import chunk_words, document_words, require_source, retrieval
from ragbench.index.lexical import Bm25F
from ragbench.models.adapter import KEY as ADAPTER_KEY
from ragbench.search.stages.cut import Cut
from ragbench.search.stages.dense import RetrieveDense
from ragbench.search.stages.fuse import Fuse
from ragbench.search.stages.rank import Rank

FUSIONS = ("rrf", "convex/min_max")
"""The fusions that a statement of SQL has; a chunk that a source did not return has its lowest score there."""
NEAREST = (Fuse("convex", norm="min_max"), Fuse("rrf"))


@dataclass(frozen=True)
class Plan:
    """The searches by source with their weights in fusion. `words`, `wholes`: how chunks and documents are scored."""

    depths: Mapping[str, int]
    weights: Mapping[str, float]
    method: str
    k: float
    words: Bm25F | None
    wholes: Bm25F | None
    analyzer: str

    def to_json(self) -> str:
        """The plan as text."""
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text: str) -> Plan:
        """The plan of a text. Raises ValueError."""
        try:
            found = read_json(text)
            for name in ("words", "wholes"):
                each = found.pop(name)
                weights = tuple((str(field), float(weight)) for field, weight in each["weights"]) if each else ()
                found[name] = Bm25F(weights, each["k1"], each["b"]) if each else None
            return Plan(**found)
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"its plan has an unexpected structure: {error}") from None

    @staticmethod
    def of(settings: Settings, format: str) -> Plan:
        """The plan of a configuration whose fusion is one of FUSIONS. ConfigError where it has no source for it."""
        require_source(settings, format)
        dense = settings.pipeline.first(RetrieveDense)
        words = chunk_words(settings)
        wholes = document_words(settings) if words else None
        fuse = next(stage for _, stage in settings.pipeline if isinstance(stage, Fuse))
        found = {"dense": dense, "lexical": words, "documents": wholes}
        return Plan(
            {name: stage.depth for name, stage in found.items() if stage},
            {name: fuse.weights.get(stage.source, 1.0) for name, stage in found.items() if stage},
            fuse.method,
            fuse.k,
            words.scoring if words else None,
            wholes.scoring if wholes else None,
            settings.index.lexical.analyzer,
        )


def without_order(settings: Settings) -> Settings:
    """The configuration as the engine alone runs it."""
    return retrieval(settings)


def order_of(settings: Settings) -> tuple[str, Rank] | None:
    """The learned order of a configuration with its entry, None without one."""
    return next(iter(settings.pipeline.all_of(Rank).items()), None)


def with_order(settings: Settings, measured: Settings) -> Settings:
    """The configuration with the learned order of the measured one on top."""
    found = order_of(measured)
    return settings if found is None else settings.with_values({found[0]: measured.config[found[0]]})


def cut_of(settings: Settings) -> Cut:
    """The cut of a configuration, at 100 hits where it has none."""
    return settings.pipeline.first(Cut) or Cut(100)


def left_out(settings: Settings, system: str) -> list[str]:
    """A sentence for every stage that neither the engine nor the learned order on top of it does."""
    kept = {name for name, _ in with_order(without_order(settings), settings).pipeline}
    moved = f"{ADAPTER_KEY}: vectors of queries are not moved in {system}, where programs embed queries themselves"
    return ([moved] if settings.index.encoder.adapter else []) + [
        f"{name} ({stage.describe()}): neither {system} nor ragbench serve on top of it has such a step"
        for name, stage in settings.pipeline
        if name not in kept
    ]
