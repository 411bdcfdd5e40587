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
# The built-in benchmark is the documentation of an invented product family with graded judgments; version 1 of it is
# small, and quick. Here two pipelines answer its training topics: the plain baseline, and the baseline with a
# cross-encoder on top.

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
# An experiment is a value. Nothing is computed yet, but every mistake in a configuration is already found, and the
# pipelines can be read.

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
# `run` measures quality first and time afterwards. Quality shares work between the arms: both search once, and only the
# second re-ranks. Time shares nothing: one query at a time, through no cache.

# %%
results = experiment.run()
results

# %% [markdown]
# * **nDCG@10** is the primary measure: are the best-graded documents at the top? 1 is an ideal order.
# * **RR** is one over the rank of the first relevant document; **R@10** the share of the relevant ones among ten.
# * **Judged@10** says how many of the shown hits a judge has seen. Far below 1, a number is a guess.
# * **Silence** is for topics without an answer: how often the pipeline had the grace to return nothing.
#
# A mean hides where it comes from:

# %%
results.by_type

# %% [markdown]
# Is the difference more than luck? Every comparison is paired over topics, with an interval, a test and a verdict, and
# the verdict weighs the time it costs.

# %%
verdict = results.verdicts.iloc[0]
print(f"{verdict['effect']:+.3f} [{verdict['ci_low']:+.3f}, {verdict['ci_high']:+.3f}], p = {verdict['p']:.3f}")
print(f"{verdict['verdict']}: {verdict['reason']}")

# %%
results.plot_pareto()

# %% [markdown]
# One query, seen through the second pipeline. `found by` names the retrievers and the rank they gave.

# %%
experiment.search("how do I rotate an api key", arm="reranked", top=3)

# %% [markdown]
# Everything above is also in files: configuration, TREC runs, per-query tables, latency samples, and one HTML report.

# %%
sorted(path.name for path in results.folder.iterdir())
