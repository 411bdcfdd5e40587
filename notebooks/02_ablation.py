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
# # 02 An ablation, from question to verdict
#
# The question: which optional features of `phase1` improve it? Headings in embeddings (p2), field weights (p4),
# deduplication (p8), frontmatter (p9), and a confidence threshold (p10).
#
# The design is *leave one out*: the full system against the system without each feature. A full factorial would show
# interactions as well, but takes 32 configurations.

# %%
from ragbench import Experiment

experiment = Experiment.ablate(
    "exp=phase1", "design=leave_one_out", "split=train", "latency.rounds=1", "latency.cold_start=false"
)
list(experiment.pipelines)

# %% [markdown]
# Configurations whose pipelines begin alike compute those stages once.

# %%
results = experiment.run()
results.verdicts[["factor", "effect", "ci_low", "ci_high", "p", "latency_ms", "verdict"]].round(3)

# %% [markdown]
# An effect is what the feature adds if everything else is on. `p` is corrected for multiple comparisons. If a verdict is
# *inconclusive*, `mde` is the minimum effect that this number of queries can detect.

# %%
for row in results.verdicts.itertuples():
    print(f"{row.factor}: {row.verdict}. {row.reason}")

# %%
results.plot_effects()

# %% [markdown]
# P8 is significantly worse. P4 and P9 are equivalent: they change nothing while the others are on. Where do relevant
# sections get lost? Each one has an outcome: in the top ten, below rank 10, or lost at a stage.

# %%
results.plot_losses()

# %% [markdown]
# A feature may behave differently alone. This ablation adds each one to the baseline:

# %%
added = Experiment.ablate(
    "exp=baseline", "design=add_one", "factors=[p2,p4,p8,p9,p10]", "split=train", "latency.enabled=false"
).run()
both = results.verdicts.set_index("factor")[["effect"]].rename(columns={"effect": "with the others"})
both.join(added.verdicts.set_index("factor")["effect"].rename("alone")).round(3)

# %% [markdown]
# P4 and P9 both search the titles of documents. Each of them improves the baseline alone, and adds nothing to the other.
# So run both designs before you drop a feature.

# %% [markdown]
# MLflow has both experiments: `ragbench track ui` opens the page that compares the configurations. The same table here:

# %%
import mlflow

mlflow.set_tracking_uri(f"sqlite:///{added.folder.parents[1]}/mlflow.db")
arms = mlflow.search_runs(
    experiment_names=["ragbench"], filter_string=f"tags.`mlflow.parentRunId` = '{added.tracking_run}'"
)
columns = {
    "tags.ragbench.arm": "arm",
    "metrics.ndcg_at_10": "nDCG@10",
    "metrics.mrr": "MRR",
    "metrics.effect": "effect",
}
arms[list(columns)].rename(columns=columns).sort_values("nDCG@10", ascending=False, ignore_index=True).round(3)
