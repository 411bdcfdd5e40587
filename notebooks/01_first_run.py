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
# # 01 A first run, and what the numbers mean
#
# Three cells lead to a verdict: is `recommended` a better search than `baseline` (BM25 and vectors, fused by rank), and
# what does it cost? The built-in benchmark is the documentation of an invented product family, with graded relevance
# judgments.

# %%
import ragbench
from ragbench import Experiment, load_benchmark

benchmark = load_benchmark()
print(f"{len(benchmark.documents)} documents, {len(benchmark.topics)} queries, splits {', '.join(benchmark.splits)}")

# %% [markdown]
# `run` measures quality first and latency afterwards, one query at a time and without caches. The test queries decide,
# because the ranker of `recommended` has seen the training queries.

# %%
arms = {"baseline": "exp=baseline", "recommended": "exp=recommended"}
results = Experiment.arms(arms, benchmark, "split=test").run()
results

# %%
verdict = results.verdicts.iloc[0]
print(f"{verdict['effect']:+.3f} [{verdict['ci_low']:+.3f}, {verdict['ci_high']:+.3f}], p = {verdict['p']:.3f}")
print(f"{verdict['verdict']}: {verdict['reason']}")

# %% [markdown]
# *Adopt* needs both answers: quality is significantly better, because the whole confidence interval is above 0, and the
# added latency is within its budget. The measures of the table:
#
# * **nDCG@10** is the primary measure: are the most relevant documents at the top? 1 is an ideal ranking.
# * **RR** is one over the rank of the first relevant document; **R@10** is the share of relevant documents in the top ten.
# * **Judged@10** is the share of the first ten results that have a judgment. If it is far below 1, do not trust the mean.
# * **Silence** is the abstention rate: how often a query without an answer gets no result.

# %%
results.plot_pareto()

# %% [markdown]
# The mean by query type shows where the gain comes from:

# %%
results.by_type

# %% [markdown]
# A configuration is a value, and `with_` returns a changed one. Its `overrides` are the same on the command line.

# %%
reranked = ragbench.pipeline("exp=baseline").with_(p6=True)
print("ragbench run", *reranked.overrides)
reranked

# %% [markdown]
# An experiment compares configurations. Nothing is computed before `run`, but each configuration is checked. To explore,
# measure the training queries; `quick=True` leaves latency out, so that quality alone decides.

# %%
explored = Experiment.arms({"baseline": "exp=baseline", "reranked": reranked}, benchmark, "split=train", quick=True)
explored

# %%
verdict = explored.run().verdicts.iloc[0]
print(f"{verdict['verdict']}: {verdict['reason']}")

# %% [markdown]
# The results of one query in one configuration. `found by` names the retrievers and their ranks.

# %%
explored.search("how do I rotate an api key", arm="reranked", top=3)

# %% [markdown]
# Everything above is also in files: configuration, TREC runs, per-query tables, latency samples, and one HTML report.

# %%
sorted(path.name for path in results.folder.iterdir())
