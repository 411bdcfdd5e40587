"""The sections of config.yaml without `_target_`, each as a dataclass; `catalogue.SPECS` maps keys to classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from annotated_types import Interval, MinLen

from ragbench.boundary.capabilities import Capability, Needs
from ragbench.bounds import Checked, Count, Holds, Name, Natural, Positive, Weight, one_of
from ragbench.corpus.links import Dialect

SPLITS = ("train", "test", "all")
SAMPLERS = ("tpe", "nsga2", "random")
HALVING = "halving"
DESIGNS = ("leave_one_out", "add_one", "pairwise", "factorial", "fractional", "shapley")

Seed = Annotated[int, Interval(ge=0, lt=2**32)]
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
class StatisticsSpec(Checked):
    """How certain a verdict is. `draws`: sign patterns and bootstrap samples; `confidence`: of intervals and tests.

    `smallest_effect`: smaller differences do not matter, in the unit of the primary measure.
    """

    draws: Count = 10_000
    confidence: Annotated[float, Interval(gt=0.5, lt=1)] = 0.95
    smallest_effect: Weight = 0.02


@dataclass(frozen=True)
class BudgetSpec(Checked):
    """How much a change may add to the p95 of a query, in milliseconds; None sets no limit. Seed 000.

    A change that turns re-ranking on may add the larger of the two.
    """

    p95_ms: Weight | None = 50.0
    rerank_p95_ms: Weight | None = 150.0

    @property
    def of_rerank_ms(self) -> float | None:
        """The budget of a change that turns re-ranking on."""
        return None if self.p95_ms is None or self.rerank_p95_ms is None else max(self.p95_ms, self.rerank_p95_ms)


@dataclass(frozen=True)
class TuneSpec(Checked):
    """How to search for parameters; `space` gives the ranges (`ragbench.tuning.space`)."""

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


@dataclass(frozen=True)
class LatencySpec(Checked):
    """How to measure. `queries`: how many are sampled, 72 bear an interval of p95; `rounds`: how often each is asked.

    `warmup`: queries before. `arrival_qps`: rates of arrival for the open loop (`ragbench.timing.open_loop`), None to
    leave it out; `arrivals`: queries sent at each rate.
    """

    enabled: bool = True
    queries: Count = 80
    rounds: Count = 2
    warmup: Natural = 10
    threads: Count = 1
    seed: Seed = 13
    cold_start: bool = True
    arrival_qps: Positive | tuple[Positive, ...] | None = None
    arrivals: Count = 100

    @property
    def rates(self) -> tuple[float, ...]:
        """The rates of the open loop, ascending, each once."""
        given = self.arrival_qps
        return tuple(sorted(set(given))) if isinstance(given, tuple) else () if given is None else (given,)


@dataclass(frozen=True)
class ExecutionSpec(Checked):
    """Where arms are computed.

    `workers`: number of processes, one for each processor when None. `retries`: how often a failed arm is tried again.
    `memory_mb`: for the intermediate results of each worker. `address`: a running Ray cluster, such as `10.0.0.1:6379`,
    `auto` for the one on this machine; None starts one and stops it at the end.
    """

    kind: Literal["local", "joblib", "ray"] = "local"
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
