"""The sections of config.yaml without `_target_`, each as a dataclass; `catalogue.SPECS` maps keys to classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from annotated_types import MinLen

from ragbench.base.bounds import Checked, Count, Holds, Name, Natural, Positive, Seed, Weight, one_of
from ragbench.boundary.capabilities import Capability, Needs
from ragbench.corpus.links import Dialect

SPLITS = ("train", "test", "all")
SAMPLERS = ("tpe", "nsga2", "random")
HALVING = "halving"
DESIGNS = ("leave_one_out", "add_one", "pairwise", "factorial", "fractional", "shapley")

Names = Annotated[tuple[Name, ...], MinLen(1)]
Place = Annotated[Name, Needs(Capability.WRITES)]


def _need_of_store(address: str) -> Capability:
    """A store in a file or folder is written; any other gets what is recorded."""
    local = "://" not in address or address.startswith(("sqlite://", "file://"))
    return Capability.WRITES if local else Capability.SENDS


@dataclass(frozen=True)
class Basics(Checked):
    """The keys of config.yaml that belong to no section."""

    order: Names
    measures: Names
    name: Name | None = None
    split: Annotated[str, one_of(*SPLITS)] = "test"
    seed: Seed = 13
    primary: Name | None = None
    context_tokens: Count = 2_000
    design: Annotated[str, one_of(*DESIGNS)] = "leave_one_out"
    factors: tuple[Name, ...] | None = None
    design_options: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class LinksSpec(Checked):
    """How links are read; see `ragbench.corpus.links`."""

    dialect: Dialect = "auto"


@dataclass(frozen=True)
class Headings(Checked):
    """Switch P2: whether the header path is embedded with a chunk."""

    headings: bool = False


@dataclass(frozen=True)
class FieldWeights(Checked):
    """Switches P4 and P9: the weights of fields in BM25F."""

    fields: Mapping[str, Weight] = field(default_factory=dict)


@dataclass(frozen=True)
class TuneSpec(Checked):
    """How to search for parameters; `space` gives the ranges (`ragbench.fit.tuning.space`)."""

    trials: Count = 200
    objective: Names = ("ndcg_at_10",)
    p95_ms: Positive | None = None
    folds: Annotated[int, Holds(lambda folds: folds == 0 or folds > 1, "must be 0 or at least 2")] = 5
    repeats: Count | None = None
    fold_trials: Count | None = None
    seed: Seed = 13
    sampler: Annotated[str, one_of(*SAMPLERS)] | None = None
    processes: Count = 1
    candidates: Count = 8
    storage: Annotated[Name, Needs(Capability.WRITES)] | None = None
    memory_mb: Count = 512
    fidelity: Annotated[str, one_of(HALVING)] | None = None
    starts: tuple[str, ...] = ()
    index_variants: Count | None = None
    switches: tuple[str, ...] = ()
    space: Mapping[str, Any] = field(default_factory=dict)


LOCAL = "local"
"""The execution in this process."""


def _is_execution(kind: str) -> bool:
    from ragbench.base import parts

    return kind == LOCAL or kind in parts.names("ragbench.executions")


@dataclass(frozen=True)
class ExecutionSpec(Checked):
    """Where arms are computed.

    `kind`: local, joblib, ray, or that of another package. `workers`: number of processes, one for each processor when
    None. `retries`: how often a failed arm is tried again. `memory_mb`: for the intermediate results of each worker.
    `address`: a running Ray cluster, such as `10.0.0.1:6379`, `auto` for the one on this machine; None starts one and
    stops it at the end.
    """

    kind: Annotated[str, Holds(_is_execution, "must be local, joblib, ray, or that of an installed package")] = LOCAL
    workers: Count | None = None
    retries: Natural = 2
    memory_mb: Count = 512
    address: Annotated[Name, Needs(Capability.EXECUTES)] | None = None


@dataclass(frozen=True)
class TrackingSpec(Checked):
    """Where runs are recorded: `uri` of the MLflow store, the name of the `experiment`."""

    enabled: bool = True
    uri: Annotated[Name, Needs(_need_of_store)] | None = None
    experiment: Name = "ragbench"


@dataclass(frozen=True)
class PathsSpec(Checked):
    """The folders for results, index artefacts and caches."""

    results: Place | None = None
    index: Place | None = None
    cache: Place | None = None


@dataclass(frozen=True)
class ArtefactsSpec(Checked):
    """Where machines share artefacts and caches."""

    url: Annotated[Name, Needs(_need_of_store)] | None = None
