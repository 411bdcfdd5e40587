"""Modes: what a request may ask for instead of the whole pipeline (seed 004)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from ragbench.base import registry
from ragbench.base.options import Name, Validated, section
from ragbench.base.types import ConfigError
from ragbench.search.stages.stage import Stage

Mode = Literal["keyword", "semantic", "hybrid", "rerank"]
"""Which retrievers take part: lexical, dense, both, or dense and then re-ranked by keywords (seed 004)."""

Stages = tuple[tuple[str, Stage], ...]


@section("modes.keyword")
@section("modes.semantic")
@section("modes.hybrid")
@section("modes.rerank")
@dataclass(frozen=True)
class ModeSpec(Validated):
    """A mode as a composition of a pipeline's stages.

    Retrievers of neither kind always take part. `rerank` `keywords` has the parameters of the pipeline's stage
    `keywords` where it has one.
    """

    sources: Literal["words", "meaning", "all"] = "all"  # retrievers: words (lexical), meaning (dense) or all
    without: tuple[Name, ...] = ()  # entries of `order` that are skipped
    rerank: Literal["keywords"] | None = None  # keywords: 70% the retrievers' scores, 30% query-term frequency
    as_typed: bool = False  # `keywords.as_typed` if the pipeline has no such stage


def in_mode(stages: Stages, modes: Mapping[str, ModeSpec], mode: Mode) -> Stages:
    """The stages of a pipeline in a mode. ConfigError when it has no source that the mode is about."""
    if mode not in modes:
        raise ConfigError(f"mode {mode} cannot be used: this pipeline was made without a configuration of its modes")
    spec = modes[mode]
    kinds = {stage.by for _, stage in stages}
    for kind in ("words", "meaning") if spec.sources == "all" else (spec.sources,):
        if kind not in kinds:
            missing = "lexical" if kind == "words" else "dense"
            raise ConfigError(f"mode {mode} cannot be used: this pipeline has no {missing} retriever")
    kept_stages = tuple((name, stage) for name, stage in stages if _takes_part(name, stage, spec))
    if not spec.rerank:
        return kept_stages
    mode_stage = next((entry for entry in stages if entry[1].in_mode_alone), None)
    rerank = registry.required("hook", "rerank_by_keywords", f"mode {mode}")
    reranked: Stages = rerank(kept_stages, mode_stage, spec.as_typed)
    return reranked


def _takes_part(name: str, stage: Stage, spec: ModeSpec) -> bool:
    left_out = spec.sources != "all" and stage.by not in (None, spec.sources)
    return not (left_out or name in spec.without or stage.in_mode_alone)
