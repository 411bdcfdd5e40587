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
# # 03 Error analysis: from a mean to a sentence about one query
#
# The five proposals of the first phase together are not shown to be better than the plain baseline: some topics win, some
# lose. Which lose, and which stage is to blame?

# %%
import plotly.io

from ragbench import Experiment

plotly.io.renderers.default = "plotly_mimetype"
results = Experiment.sweep("+exp=baseline,phase1", "split=train", "latency.enabled=false").run()
results.summary().round(3)

# %% [markdown]
# The per-query table is tidy: a row for every configuration, query and measure.

# %%
primary = results.per_query.query("measure == 'nDCG@10' and level == 'document'")
by_topic = primary.pivot(index="qid", columns="arm", values="value")
by_topic["difference"] = by_topic["phase1"] - by_topic["baseline"]
by_topic = by_topic.join(results.topics.set_index("qid")[["type", "text"]]).sort_values("difference")
by_topic.head(5).round(2)

# %%
by_topic.tail(3).round(2)

# %% [markdown]
# The largest loss, side by side. `section_grade` is the relevance judgment of the section, 0 to 3. If a row ends early,
# that configuration returned no more results.

# %%
worst = by_topic.index[0]
print(f"{worst}: {by_topic.loc[worst, 'text']}")
results.side_by_side(worst, depth=5)

# %% [markdown]
# The outcome of its relevant sections: `outcome` and `stage` show where each was lost.

# %%
fates = results.fates
fates[fates["qid"] == worst].drop(columns=["qid"])

# %% [markdown]
# Its section was found, and then dropped by P8, which takes a hit that is much like a better one for a repetition. The
# notes of two weekly handovers share most of their words, and one of them only is of the day asked for. Is that one
# unlucky query? Over all topics:

# %%
results.losses.groupby("arm").head(5)

# %%
results.plot_losses()

# %% [markdown]
# No: P8 takes an eighth of the relevant sections, and P10, the threshold on confidence, more than a quarter. Either they
# stay off, or their thresholds are tuned, as in notebook 04.
#
# The same from the command line: `ragbench diagnose --query QID --arms baseline,phase1`; and in the report, where the
# explorer sorts topics by their difference: `ragbench report`.
