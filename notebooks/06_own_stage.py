# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # 06 A stage of your own, in a cell
#
# The idea to test: release notes mention every word once, and answer few questions. Hits in changelogs should count
# less. A stage is a frozen dataclass: parameters, four declarations, and one method from states to states.

# %%
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ragbench import Experiment, Own
from ragbench.stages.stage import fused
from ragbench.types import Ranking


@dataclass(frozen=True)
class DemoteChangelogs:
    """Multiply by `factor` the scores of hits whose path contains `changelog`."""

    factor: float = 0.5

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})  # parts of the index it reads
    requires: ClassVar[frozenset[str]] = frozenset({"fused"})  # what must have happened before
    provides: ClassVar[frozenset[str]] = frozenset()  # what it adds for later stages
    forbids: ClassVar[Mapping[str, str]] = {"cut": "it would come too late"}

    def __call__(self, states, index):
        return [replace(state, fused=self._demoted(fused(state), index)) for state in states]

    def _demoted(self, ranking, index):
        old = np.array(["changelog" in index.chunks.docno(chunk) for chunk in ranking.chunks], dtype=bool)
        return Ranking.of(ranking.chunks, np.where(old, ranking.scores * np.float32(self.factor), ranking.scores))

    def describe(self):
        return f"demote changelogs x{self.factor:g}"


# %% [markdown]
# `Own` gives it a name and a place in the order. From then on it is a switch like any other: its parameters are in the
# written configuration, an impossible place is refused.

# %%
stage = Own("changelogs", DemoteChangelogs(), before="cut")
around = ["split=train", "latency.queries=10", "latency.rounds=1", "latency.cold_start=false"]
experiment = Experiment.arms({"baseline": ["+exp=baseline", *around], "demoted": ["+exp=baseline", *around, stage]})
experiment.pipelines["demoted"]

# %%
results = experiment.run()
results.verdicts[["factor", "effect", "ci_low", "ci_high", "p", "wins", "ties", "losses", "verdict"]].round(3)

# %% [markdown]
# It moves few topics, some up and some down. Does it depend on field weights
# (P4), which let titles count more? A two-by-two factorial answers with an interaction.

# %%
both = Experiment.ablate(
    "+exp=baseline", *around, "design=factorial", "factors=[changelogs,p4]", own=[stage]
).run()
both.verdicts[["kind", "factor", "other", "effect", "ci_low", "ci_high", "verdict"]].round(3)

# %% [markdown]
# The strength is a parameter; three of them side by side, compared with the first:

# %%
strengths = Experiment.arms(
    {
        f"factor {factor:g}": ["+exp=baseline", *around, Own("changelogs", DemoteChangelogs(factor), before="cut")]
        for factor in (1.0, 0.7, 0.3)
    }
).run()
strengths.verdicts[["factor", "effect", "ci_low", "ci_high", "p_holm", "verdict"]].round(3)

# %% [markdown]
# The stronger, the worse: some questions are about releases, and their answers stand in changelogs. The idea does not pay
# on this benchmark. Had it paid, the test split would have the last word, for the best of several on the topics that
# chose it looks better than it is; and `CONTRIBUTING.md` shows the three files that make a stage part of the package.
