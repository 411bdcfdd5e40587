"""The sections of config.yaml without `_target_`, each as a dataclass; `catalogue.SPECS` maps keys to classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal, get_args

from annotated_types import Interval, MinLen

from ragbench.base.bounds import Checked, Count, Holds, Name, Natural, Positive, Seed, Share, Weight, one_of
from ragbench.base.errors import without_secret
from ragbench.boundary.capabilities import Capability, Needs
from ragbench.corpus.links import Dialect

_SPLITS = ("train", "test", "all")
SAMPLERS = ("tpe", "nsga2", "random")
AROUND = ("name", "modes", "tune", "paths", "tracking", "execution", "artefacts")
"""Sections and keys that have no part in what is measured."""
_HALVING = "halving"
_DESIGNS = ("leave_one_out", "add_one", "pairwise", "factorial", "fractional", "shapley")

_Names = Annotated[tuple[Name, ...], MinLen(1)]
_Place = Annotated[Name, Needs(Capability.WRITES)]


def _need_of_store(address: str) -> Capability:
    """A store in a file or folder is written; any other gets what is recorded."""
    local = (not address.startswith("env:") and "://" not in address) or address.startswith(("sqlite://", "file://"))
    return Capability.WRITES if local else Capability.SENDS


_StoreAddress = Annotated[
    Name,
    Holds(without_secret, "must hold no password: write env:NAME for a variable with one"),
    Needs(_need_of_store),
]


@dataclass(frozen=True)
class Basics(Checked):
    """The keys of config.yaml that belong to no section."""

    order: _Names
    measures: _Names
    name: Name | None = None  # name of the run; the experiment's name, or the overrides, when null
    split: Annotated[str, one_of(*_SPLITS)] = "test"  # queries to evaluate: train, test or all
    seed: Seed = 13
    # the document measure of the verdicts; nDCG@10, or the first of `measures` when null
    primary: Name | None = None
    # run although no query has a relevance judgment: it measures times, and collects hits for `ragbench data pool`
    allow_unjudged: bool = False
    context_tokens: Count = 2_000  # recall of passages is measured within this many tokens
    # leave_one_out, add_one, pairwise, factorial, fractional or shapley
    design: Annotated[str, one_of(*_DESIGNS)] = "leave_one_out"
    factors: tuple[Name, ...] | None = None  # switches to vary; those that are on (add_one: off) when null
    design_options: Mapping[str, Any] = field(default_factory=dict)  # such as {orders: 20} for shapley
    # further retrievers by name, such as {minilm: {kind: dense, index: {encoder: {name: all-MiniLM-L6-v2}}}}
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class LinksSpec(Checked):
    """How links are read; see `ragbench.corpus.links`."""

    # of [[a|b]]: obsidian (a shown as b), dendron (b shown as a), auto: the reading that resolves more links
    dialect: Dialect = "auto"


@dataclass(frozen=True)
class Headings(Checked):
    """Switch P2: whether the header path is embedded with a chunk."""

    headings: bool = False


@dataclass(frozen=True)
class FieldWeights(Checked):
    """Switches P4 and P9: the weights of fields in BM25F."""

    fields: Mapping[str, Weight] = field(default_factory=dict)


_Usual = Literal["description", "alias", "link", "question", "first_sentence"]
Kind = Literal[_Usual, "how_to", "faq", "symptom", "message"]
EVERY: tuple[Kind, ...] = get_args(Kind)
KINDS: tuple[Kind, ...] = get_args(_Usual)
"""The kinds of topics that are derived where none are named."""


@dataclass(frozen=True)
class DeriveSpec(Checked):
    """Which topics to derive.

    `kinds`: the sources; `limit`: the total number; `per_document`: at most this many topics with the same answer.
    `least_words`, `most_words`: of a query. `overlap`: the greatest share of a query's words, common ones aside, that
    the answer also has elsewhere than in the source. `shares`: topics of a kind for one of another (default 1).
    `train`: share of the topics for tuning. `kind`: `given` derives none and uses the topics of the data.
    """

    kinds: Annotated[tuple[Kind, ...], MinLen(1)] = KINDS
    limit: Count = 300  # maximum number of queries
    per_document: Count = 3  # maximum number of queries with the same answer
    least_words: Count = 2  # minimum length of a query
    most_words: Count = 24
    overlap: Share = 1.0  # maximum share of informative words that the answer has outside the source
    # queries of a kind for one of another kind; 1 by default
    shares: Mapping[Kind, Positive] = field(default_factory=dict)
    train: Annotated[float, Interval(gt=0, lt=1)] = 0.5  # share of the queries in the train split
    seed: Natural = 13
    kind: Literal["given", "derived"] = "derived"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.most_words < self.least_words:
            raise self.refused(
                "most_words", f"must be at least least_words ({self.least_words}), got {self.most_words}"
            )


@dataclass(frozen=True)
class TuneSpec(Checked):
    """Settings of a hyperparameter search; `space` gives the ranges (`ragbench.extras.fit.tuning.space`)."""

    trials: Count = 200
    objective: _Names = (
        "ndcg_at_10",
    )  # measures, `silence`, p95_ms; the first decides between otherwise good configurations
    p95_ms: Positive | None = None  # the greatest p95 of a query, in milliseconds; null sets no limit
    # outer folds over groups of queries, each with its own search; 0 for none
    folds: Annotated[int, Holds(lambda folds: folds == 0 or folds > 1, "must be 0 or at least 2")] = 5
    # repetitions of all folds with other groups; null: 1, or 3 where no topics can be held out
    repeats: Count | None = None
    fold_trials: Count | None = None  # trials of each of them; as many as `trials` when null
    seed: Seed = 13
    # tpe, nsga2 or random; tpe for one objective and nsga2 for several when null
    sampler: Annotated[str, one_of(*SAMPLERS)] | None = None
    processes: Count = 1  # processes that search in parallel, each with its own Java
    candidates: Count = 8  # the greatest number of configurations timed at the end
    # the journal of trials; journal.log in the folder of the search when null
    storage: Annotated[Name, Needs(Capability.WRITES)] | None = None
    memory_mb: Count = 512  # for intermediate results, of each process
    # halving: a trial continues with more topics only while it is among the best third so far; all topics when null
    fidelity: Annotated[str, one_of(_HALVING)] | None = None
    starts: tuple[str, ...] = ()  # overrides to begin from, besides the preset; each index they need is built once
    # starts with values of tune.space.index are added up to this number of indexes; null adds none
    index_variants: Count | None = None
    switches: tuple[
        str, ...
    ] = ()  # that a trial turns on and off, such as [p6, p8, graph]; they do not shape the index
    space: Mapping[str, Any] = field(default_factory=dict)  # the values to try, by key: from the options of `tune`


LOCAL = "local"
"""The execution in this process."""


def _is_execution(kind: str) -> bool:
    from ragbench.base import plugins

    return kind == LOCAL or kind in plugins.names("ragbench.executions")


@dataclass(frozen=True)
class ExecutionSpec(Checked):
    """Where arms are computed: `local` is this process; `joblib` is `workers` processes of this machine.

    Installed packages may add others (entry points of `ragbench.executions`).
    """

    workers: Count | None = None  # the number of CPUs when null
    retries: Natural = 2  # how often an arm that failed, or whose process died, is tried again
    memory_mb: Count = 512  # for intermediate results, of each worker; Java takes another 512
    kind: Annotated[str, Holds(_is_execution, "must be local, joblib, or that of an installed package")] = LOCAL


@dataclass(frozen=True)
class TrackingSpec(Checked):
    """MLflow: the `uri` of the store and the name of the `experiment`."""

    enabled: bool = True
    # the MLflow store, or env:NAME for one with a password; a SQLite file in paths.results when null
    uri: _StoreAddress | None = None
    experiment: Name = "ragbench"


@dataclass(frozen=True)
class PathsSpec(Checked):
    """The folders for results, index artefacts and caches."""

    # everything a run writes; `results` of the project, else of the working directory, when null
    results: _Place | None = None
    index: _Place | None = None  # index artefacts; <results>/index when null
    cache: _Place | None = None  # embeddings and re-ranking scores; <results>/cache when null


@dataclass(frozen=True)
class CacheSpec(Checked):
    """Caches: those of `paths.cache`, and the embeddings bundled with ragbench."""

    # take the vectors of the built-in benchmark that come with ragbench; times are measured without them
    shipped: bool = True


@dataclass(frozen=True)
class ArtefactsSpec(Checked):
    """A store of artefacts and caches that several machines share."""

    # shared store of artefacts and caches: a folder, s3://bucket/prefix or env:NAME; nowhere when null
    url: _StoreAddress | None = None
