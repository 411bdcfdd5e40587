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
# # 06 An idea of your own, in a cell
#
# The idea to test: release notes mention every term once and answer few queries, so results in changelogs should count
# less. A function does that: it receives the query and the hits, and returns a score for each hit.

# %%
import ragbench
from ragbench import Experiment


@ragbench.stage(before="cut")
def changelogs(query, hits, factor: float = 0.5):
    """Hits in changelogs count less."""
    return [hit.score * (factor if "changelog" in hit.path else 1) for hit in hits]


# %% [markdown]
# It is now an option like any other: its parameters are in the saved configuration, an impossible position is rejected,
# and a changed function is measured again.

# %%
baseline = ragbench.pipeline("exp=baseline")
demoted = ragbench.pipeline("exp=baseline", changelogs())
around = ["split=train", "latency.enabled=false"]  # quality alone decides
experiment = Experiment.arms({"baseline": baseline, "demoted": demoted}, None, *around)
demoted

# %%
results = experiment.run()
results.verdicts[["factor", "effect", "ci_low", "ci_high", "p", "wins", "ties", "losses", "verdict"]].round(3)

# %% [markdown]
# It changes few queries, and more get worse than better. Does it depend on field weights (P4), which give titles more
# weight? A two-by-two factorial design estimates the interaction.

# %%
both = Experiment.ablate(
    "+exp=baseline", *around, "design=factorial", "factors=[changelogs,p4]", "changelogs=on"
).run()
both.verdicts[["kind", "factor", "other", "effect", "ci_low", "ci_high", "verdict"]].round(3)

# %% [markdown]
# The strength is a parameter; three of them side by side, compared with the first:

# %%
strengths = Experiment.arms(
    {f"factor {factor:g}": ragbench.pipeline("exp=baseline", changelogs(factor=factor)) for factor in (1.0, 0.7, 0.3)},
    None,
    *around,
).run()
strengths.verdicts[["factor", "effect", "ci_low", "ci_high", "p", "verdict"]].round(3)

# %% [markdown]
# The stronger, the worse: some queries are about releases, and changelogs answer them. The idea does not help on this
# benchmark. If it had, you would confirm it on the test split: the best of several looks better than it is on the queries
# that selected it.
#
# An encoder, a re-ranker and a measure can be functions as well. These three are too simple to be good, as the numbers
# show.


# %%
@ragbench.encoder
def letters(texts):
    """How often each of eight letters occurs."""
    return [[text.lower().count(letter) for letter in "aeinorst"] for text in texts]


@ragbench.reranker
def shared_words(query, passages):
    """How many words of the query a passage has."""
    return [len(set(query.lower().split()) & set(passage.lower().split())) for passage in passages]


@ragbench.measure
def found_first(ranked, grades):
    """1 where the first hit is relevant, else 0."""
    return float(bool(ranked) and grades.get(ranked[0], 0) > 0)


simple = Experiment.arms(
    {
        "baseline": baseline,
        "letters": baseline.with_("index.encoder.name=letters"),
        "shared words": baseline.with_("p6.model=shared_words", p6=True),
    },
    None,
    *("split=train", "measures=[nDCG@10,found_first]"),
    quick=True,
).run()
simple.summary().round(3)

# %% [markdown]
# If a stage needs more than scores, for example new candidates, write a class: see `docs/extending.md`. `CONTRIBUTING.md`
# shows how to add a stage to the package.
