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

from ragbench import Experiment, load_benchmark

plotly.io.renderers.default = "plotly_mimetype"  # stores the data of a figure, not the library that draws it
benchmark = load_benchmark(name="builtin_v1", version=1)
print(f"{len(benchmark.documents)} documents, {len(benchmark.topics)} topics, splits {', '.join(benchmark.splits)}")
topic = benchmark.topics[0]
print(f"{topic.qid} ({topic.type}): {topic.text!r}")
print(f"the need behind it: {topic.need}")

# %% [markdown]
# An experiment is a value. Nothing is computed yet, but every configuration is checked, and you can read the pipelines.

# %%
experiment = Experiment.arms(
    {
        "baseline": ["+exp=baseline", "split=train", "latency.queries=10", "latency.rounds=1"],
        "reranked": ["+exp=baseline", "split=train", "p6=on"],
    },
    benchmark,
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
