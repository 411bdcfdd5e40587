"""The part of a configuration that search engines can express: a search by meaning, one by words, and their fusion.

A file for an engine is JSON: sentences on where it comes from and on what it cannot express, how documents must be cut
and embedded before they are sent, and the requests to send. `{query}` stands for the text of a query, `{vector}` for
its vector.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ragbench.base.errors import ConfigError
from ragbench.config.settings import Settings
from ragbench.export.translation import Reading, flat_index
from ragbench.index.lexical import Bm25F
from ragbench.models.resolve import EncoderSpec, load_encoder
from ragbench.search.stages.cut import Cut
from ragbench.search.stages.dense import RetrieveDense
from ragbench.search.stages.fuse import Fuse
from ragbench.search.stages.lexical import RetrieveLexical

NAME = "ragbench"
"""The name of the index, the collection and the pipeline in a file; it may be changed before sending."""

QUERY, VECTOR = "{query}", "{vector}"

_KNOWN = (RetrieveDense, RetrieveLexical, Fuse, Cut)


@dataclass(frozen=True)
class Hybrid:
    """The part of a configuration that an engine can express; `weights` by source, where two are fused."""

    dense: RetrieveDense | None
    lexical: RetrieveLexical | None
    fuse: Fuse | None
    weights: Mapping[str, float]
    top_n: int
    index: Mapping[str, Any]
    encoder: EncoderSpec
    dimension: int

    @property
    def window(self) -> int:
        """Hits of each search that are fused."""
        return max([self.top_n, *(stage.depth for stage in (self.dense, self.lexical) if stage)])

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
    dense, lexical, fuse = reading.stage(RetrieveDense), reading.stage(RetrieveLexical), reading.stage(Fuse)
    if dense is None and lexical is None:
        raise ConfigError(
            f"--format {format} cannot express this arm, which searches neither by vectors nor by BM25: "
            "export another arm, or a bundle"
        )
    both = dense is not None and lexical is not None
    missing = _fusion(reading, fuse, system, format, fusions) if both and fuse else []
    for cls, names in _EXPRESSED.items():
        for name in names:
            reading.value(cls, name, None)
    flat = flat_index(reading.index)
    for key in flat:
        if key.partition(".")[0] in ("chunker", "encoder", "passage", "dense") or key == "lexical.analyzer":
            reading.index_value(key)
    cut = reading.stage(Cut)
    given = {stage.source: fuse.weights.get(stage.source, 1.0) for stage in (dense, lexical) if stage and both and fuse}
    hybrid = Hybrid(
        dense,
        lexical,
        fuse if both else None,
        given,
        cut.top_n if cut else 100,
        flat,
        reading.index.encoder,
        load_encoder(reading.index.encoder).dim if dense else 0,
    )
    return hybrid, missing + reading.left_over(_KNOWN, {}, system) + reading.out_of_order(_KNOWN, system)


_EXPRESSED: Mapping[type[Any], tuple[str, ...]] = {
    RetrieveDense: ("depth",),
    RetrieveLexical: ("depth", "k1", "b", "fields"),
    Fuse: ("method", "k", "weights", "norm", "norms", "least", "missing"),
    Cut: ("top_n",),
}
"""Parameters that are in a file, or that a sentence of this module or of a format is about."""


def _fusion(reading: Reading, fuse: Fuse, system: str, format: str, fusions: Collection[str]) -> list[str]:
    wanted = "convex/" + "+".join({fuse.norm, *fuse.norms.values()}) if fuse.method == "convex" else fuse.method
    if wanted not in fusions:
        raise ConfigError(
            f"--format {format} cannot fuse by {wanted}, only by {', '.join(sorted(fusions))}: "
            "export another arm, or a bundle"
        )
    missing = []
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
        for stage in (hybrid.dense, hybrid.lexical)
        if stage and hybrid.fuse and stage.depth != hybrid.window
    ]


def file(
    hybrid: Hybrid, origin: Sequence[str], missing: Sequence[str], requests: Sequence[tuple[str, str, Any]]
) -> str:
    """The file; `requests` are (method, path, body)."""

    def of(part: str) -> dict[str, Any]:
        return {key.partition(".")[2]: value for key, value in hybrid.index.items() if key.startswith(f"{part}.")}

    before = {"chunks": {"class": hybrid.index["chunker"], **of("chunker")}}
    if hybrid.dense:
        prefixes = hybrid.encoder.prefixes(hybrid.encoder.name)  # including those that follow from the model's name
        before |= {"vectors": {**of("encoder"), **prefixes, "dimension": hybrid.dimension}, "passages": of("passage")}
    if hybrid.lexical:
        before["words"] = {"fields": sorted(hybrid.lexical.fields)}
    sent = [{"method": method, "path": path, "body": body} for method, path, body in requests]
    content = {"about": list(origin), "not_expressed": list(missing), "before_indexing": before, "requests": sent}
    return json.dumps(content, indent=1, ensure_ascii=True) + "\n"
