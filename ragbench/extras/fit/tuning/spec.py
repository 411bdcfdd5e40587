"""The section `tune` of a configuration: how `ragbench tune` searches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any

from annotated_types import MinLen

from ragbench.base.bounds import Constraint, Count, Name, Positive, Seed, Validated, one_of
from ragbench.base.build import build
from ragbench.boundary.permissions import Capability, Needs

if TYPE_CHECKING:
    from ragbench.config.settings import Settings

SAMPLERS = ("tpe", "nsga2", "random")

_HALVING = "halving"


@dataclass(frozen=True)
class TuneSpec(Validated):
    """Settings of a hyperparameter search; `space` gives the ranges (`ragbench.extras.fit.tuning.space`)."""

    trials: Count = 200
    # measures, `silence`, p95_ms; the first one decides between Pareto-optimal configurations
    objective: Annotated[tuple[Name, ...], MinLen(1)] = ("ndcg_at_10",)
    p95_ms: Positive | None = None  # maximum p95 latency in milliseconds; null: no limit
    # outer cross-validation folds over groups of queries; 0: none
    folds: Annotated[int, Constraint(lambda folds: folds == 0 or folds > 1, "must be 0 or at least 2")] = 5
    # repetitions of the cross-validation; null: 1, or 3 without test queries
    repeats: Count | None = None
    fold_trials: Count | None = None  # trials in each fold; null: as many as `trials`
    seed: Seed = 13
    # tpe, nsga2 or random; tpe for one objective and nsga2 for several when null
    sampler: Annotated[str, one_of(*SAMPLERS)] | None = None
    processes: Count = 1  # parallel processes, each with its own Java
    candidates: Count = 8  # maximum number of configurations that are timed at the end
    # journal of the trials; null: journal.log in the folder of the study
    storage: Annotated[Name, Needs(Capability.WRITES)] | None = None
    memory_mb: Count = 512  # memory of each process for intermediate results
    # halving: a trial continues with more queries only while it is in the best third; null: always all queries
    fidelity: Annotated[str, one_of(_HALVING)] | None = None
    starts: tuple[str, ...] = ()  # additional starting points; each index that they need is built once
    # starts with values of tune.space.index are added up to this number of indexes; null adds none
    index_variants: Count | None = None
    switches: tuple[
        str, ...
    ] = ()  # options that a trial turns on and off, such as [p6, p8, graph]; none may change the index
    space: Mapping[str, Any] = field(default_factory=dict)  # values to try, by key


def spec_of(settings: Settings) -> TuneSpec:
    """The section of a configuration."""
    return build(TuneSpec, settings.config["tune"], "tune")
