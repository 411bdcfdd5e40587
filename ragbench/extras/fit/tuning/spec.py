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
    # measures, `silence`, p95_ms; the first decides between otherwise good configurations
    objective: Annotated[tuple[Name, ...], MinLen(1)] = ("ndcg_at_10",)
    p95_ms: Positive | None = None  # the greatest p95 of a query, in milliseconds; null sets no limit
    # outer folds over groups of queries, each with its own search; 0 for none
    folds: Annotated[int, Constraint(lambda folds: folds == 0 or folds > 1, "must be 0 or at least 2")] = 5
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


def spec_of(settings: Settings) -> TuneSpec:
    """The section of a configuration."""
    return build(TuneSpec, settings.config["tune"], "tune")
