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
# The built-in benchmark is the documentation of an invented product family with graded relevance judgments; its
# version 1 is small. This notebook compares two configurations on the training queries: the baseline, and the baseline
# with a cross-encoder.

# %%
import plotly.io

import ragbench
from ragbench import Experiment, load_benchmark

plotly.io.renderers.default = "plotly_mimetype"  # stores the data of a figure, not the library that draws it
benchmark = load_benchmark(name="builtin_v1", version=1)
print(f"{len(benchmark.documents)} documents, {len(benchmark.topics)} topics, splits {', '.join(benchmark.splits)}")
topic = benchmark.topics[0]
print(f"{topic.qid} ({topic.type}): {topic.text!r}")
print(f"the need behind it: {topic.need}")

# %% [markdown]
# A configuration is a value, and `with_` returns a changed one. Its `overrides` are the same on the command line.

# %%
baseline = ragbench.pipeline("exp=baseline")
reranked = baseline.with_(p6=True)
print("ragbench run", *reranked.overrides)
reranked

# %% [markdown]
# An experiment compares configurations. Nothing is computed yet, but each one is checked.

# %%
experiment = Experiment.arms(
    {"baseline": baseline, "reranked": reranked}, benchmark, "split=train", "latency.queries=10", "latency.rounds=1"
)
experiment

# %% [markdown]
# `run` measures quality first and latency afterwards. For quality, the configurations share work: both search once, and
# only the second re-ranks. Latency is measured one query at a time, without caches.

# %%
results = experiment.run()
results

# %% [markdown]
# * **nDCG@10** is the primary measure: are the most relevant documents at the top? 1 is an ideal ranking.
# * **RR** is one over the rank of the first relevant document; **R@10** is the share of relevant documents in the top ten.
# * **Judged@10** is the share of the first ten results that have a judgment. If it is far below 1, do not trust the mean.
# * **Silence** is the abstention rate: how often a query without an answer gets no result.
#
# The mean by query type:

# %%
results.by_type

# %% [markdown]
# Is the difference significant? Every comparison is paired over queries, with a confidence interval, a test and a
# verdict, which also considers latency.

# %%
verdict = results.verdicts.iloc[0]
print(f"{verdict['effect']:+.3f} [{verdict['ci_low']:+.3f}, {verdict['ci_high']:+.3f}], p = {verdict['p']:.3f}")
print(f"{verdict['verdict']}: {verdict['reason']}")

# %%
results.plot_pareto()

# %% [markdown]
# The results of one query in the second configuration. `found by` names the retrievers and their ranks.

# %%
experiment.search("how do I rotate an api key", arm="reranked", top=3)

# %% [markdown]
# Everything above is also in files: configuration, TREC runs, per-query tables, latency samples, and one HTML report.

# %%
sorted(path.name for path in results.folder.iterdir())
