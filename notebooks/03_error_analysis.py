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
# The five features of `phase1` together are not significantly better than the baseline: some queries improve, others get
# worse. Which ones get worse, and at which stage?

# %%
from ragbench import Experiment

results = Experiment.arms({"baseline": "exp=baseline", "phase1": "exp=phase1"}, None, "split=train", quick=True).run()
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
# Its section was retrieved, and then dropped by P8 (deduplication) as a near-duplicate of a better hit. The notes of two
# weekly handovers share most of their text, but only one is from the right day. Is this one unlucky query? Over all
# queries:

# %%
results.losses.groupby("arm").head(5)

# %%
results.plot_losses()

# %% [markdown]
# No: P8 drops an eighth of the relevant sections (`p8.semantic` and `p8.limit` are its parts), and P10, the confidence
# threshold, more than a quarter. Leave them off, or tune their thresholds, as in notebook 04.
#
# On the command line, use `ragbench diagnose --query QID --arms baseline,phase1`. The report (`ragbench report`) sorts
# queries by their difference.
