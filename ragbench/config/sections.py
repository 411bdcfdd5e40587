"""The sections of config.yaml without `_target_`, each as a dataclass; `@section` names the key of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Annotated, Any

from annotated_types import MinLen

from ragbench.base.options import (
    Constraint,
    Count,
    Name,
    Seed,
    Validated,
    Weight,
    build,
    one_of,
    option,
    section,
    values_option,
)
from ragbench.base.types import without_secret
from ragbench.corpus.links import Dialect

_SPLITS = ("train", "test", "all")
AROUND = ("name", "modes", "tune", "paths", "tracking", "execution", "artefacts")
"""Sections and keys that have no part in what is measured."""
_DESIGNS = ("leave_one_out", "add_one", "factorial", "shapley")

_Names = Annotated[tuple[Name, ...], MinLen(1)]
_StoreAddress = Annotated[
    Name,
    Constraint(without_secret, "must hold no password: write env:NAME for a variable with one"),
]


@section("")
@dataclass(frozen=True)
class Basics(Validated):
    """The keys of config.yaml that belong to no section."""

    order: _Names  # the stages in the order they run
    measures: _Names  # what is computed: any of ir_measures, and those of docs/concepts.md
    name: Name | None = None  # name of the run; the experiment's name, or the overrides, when null
    split: Annotated[str, one_of(*_SPLITS)] = "test"  # queries to evaluate: train, test or all
    seed: Seed = 13  # random seed of all that is drawn
    # the measure of the verdicts, of documents and passages: any of ir_measures, or Recall@2000tokens (recall within so
    # many tokens); nDCG@10, or the first of `measures` when null
    primary: Name | None = None
    # run without relevance judgments: measures latency and collects results for `ragbench data pool`
    allow_unjudged: bool = False
    context_tokens: Count = 2_000  # recall of passages is measured within this many tokens
    # leave_one_out, add_one, factorial or shapley
    design: Annotated[str, one_of(*_DESIGNS)] = "leave_one_out"
    factors: tuple[Name, ...] | None = None  # switches to vary; those that are on (add_one: off) when null
    design_options: Mapping[str, Any] = field(default_factory=dict)  # such as {orders: 20} for shapley
    # additional retrievers by name, such as {minilm: {kind: dense, index: {encoder: {name: all-MiniLM-L6-v2}}}}
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Basics:
        """Those of a whole configuration. Raises Refused for a value that its field cannot have."""
        return build(cls, {item.name: config[item.name] for item in fields(cls) if item.name in config}, "")


@section("links")
@dataclass(frozen=True)
class LinksSpec(Validated):
    """How links are read; see `ragbench.corpus.links`."""

    # of [[a|b]]: obsidian (a shown as b), dendron (b shown as a), auto: the reading that resolves more links
    dialect: Dialect = "auto"


@option("p2", "Embed the heading path, a blank line and the content (source 000 P2).", plain=True)
@dataclass(frozen=True)
class Headings(Validated):
    """Switch P2: whether the header path is embedded with a chunk."""

    headings: bool = True  # embed the heading path with a chunk


@option(
    "p4",
    "BM25F weights for the fields of every document (source 000 P4, weights of source 001).",
    plain=True,
    fields={"title": 3.0, "headers": 2.5, "tags": 2.0},
)
@option(
    "p9",
    "Index frontmatter with field weights (sources 000 P9, 001); `related` always adds links to the graph.",
    plain=True,
    fields={"title": 3.0, "description": 2.0, "keywords": 2.5, "tags": 2.0, "aliases": 1.5, "author": 1.0},
)
@dataclass(frozen=True)
class FieldWeights(Validated):
    """Switches P4 and P9: the weights of fields in BM25F."""

    fields: Mapping[str, Weight] = field(default_factory=dict)  # weights of fields in BM25F, by name


values_option("p2=off", "Off: chunks are embedded without headings.", {"headings": False}, package="p2")
values_option("p4=off", "Off: no further weights of fields.", {"fields": {}}, package="p4")
values_option("p9=off", "Off: no weights of frontmatter.", {"fields": {}}, package="p9")
values_option("documents=off", "Off: no third retriever.", {}, package="documents")
values_option("ranker=off", "Off: no learned order.", {}, package="ranker")
values_option("live=off", "Off: the stages of this configuration search.", {}, package="live")
values_option("topics=given", "The queries of the collection.", {"kind": "given"}, package="topics")


LOCAL = "local"
"""The execution in this process."""


def _is_execution(kind: str) -> bool:
    from ragbench.base import registry

    return kind == LOCAL or kind in registry.names("execution")


@option("execution=local", "Arms are computed in this process.", plain=True)
@dataclass(frozen=True)
class ExecutionSpec(Validated):
    """Where arms are computed: `local` is this process; entry points `execution.NAME` add others."""

    kind: Annotated[str, Constraint(_is_execution, "must be local, or that of an installed package")] = LOCAL
    workers: Count = 2  # with execution=dask: processes to start on this machine without an address
    # with execution=dask: a scheduler such as tcp://10.0.0.5:8786, or its scheduler file (.json)
    address: Name | None = None


@section("tracking")
@dataclass(frozen=True)
class TrackingSpec(Validated):
    """MLflow: the `uri` of the store and the name of the `experiment`."""

    enabled: bool = True  # write runs to MLflow
    # the MLflow store, or env:NAME for one with a password; a SQLite file in paths.results when null
    uri: _StoreAddress | None = None
    experiment: Name = "ragbench"  # name of the experiment in MLflow


@section("paths")
@dataclass(frozen=True)
class PathsSpec(Validated):
    """The folders for results, index artefacts and caches."""

    # everything that a run writes; null: `results` in the project, else in the working directory
    results: Name | None = None
    index: Name | None = None  # index artefacts; <results>/index when null
    cache: Name | None = None  # embeddings and re-ranking scores; <results>/cache when null


@section("artefacts")
@dataclass(frozen=True)
class ArtefactsSpec(Validated):
    """Where machines share finished index artefacts; credentials come from the environment alone."""

    # an address of fsspec, such as s3://bucket/ragbench or file:///mnt/shared: each artefact is uploaded once, and
    # downloaded instead of built; needs ragbench[cluster]
    url: _StoreAddress | None = None


@section("cache")
@dataclass(frozen=True)
class CacheSpec(Validated):
    """Caches: those of `paths.cache`, and the embeddings bundled with ragbench."""

    # use the bundled embeddings of the built-in benchmark; latency is measured without them
    shipped: bool = True
