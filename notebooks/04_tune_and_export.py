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
# # 04 Tuning, and taking the winner home
#
# A search selects the best of many configurations on its queries, and part of that gain is chance. So it uses the
# training queries only; nested cross-validation estimates the part that is chance; and the winner is measured once on
# the held-out test queries.
#
# Varied here: the fusion constant, the weight of the lexical ranking, and the confidence below which hits are dropped.
# `tune.space` has their limits. Thirty trials on the small version 1 of the built-in benchmark keep this notebook
# fast. The default is 200 trials.

# %%
import tempfile
from pathlib import Path

import ragbench

place = Path(tempfile.mkdtemp())
tuning = ragbench.tune(
    "exp=phase1",
    "data=builtin_v1",
    "tune=[fuse,p10]",
    "tune.trials=30",
    "tune.folds=3",
    "latency.enabled=false",
    "tracking.enabled=false",
)
tuning.parameters.round(3)

# %% [markdown]
# `folds` are the values that three searches chose, each without a third of the topics. A parameter that matters little
# is chosen nearly at random.

# %%
tuning.folds.round(3)

# %% [markdown]
# Train minus held-out is the *optimism* of the search.

# %%
print("\n".join(tuning.sentences))
print("\n".join(f"warning: {sentence}" for sentence in tuning.warnings))

# %% [markdown]
# The arms `preset` and `tuned` on the test topics are an ordinary result. Where the interval of the gain reaches below
# zero, the gain may be chance. *Silence* tells how often a question without an answer got nothing.

# %%
tuning.results.summary(("split",)).round(3)

# %% [markdown]
# Export the winner as a bundle that runs wherever ragbench is installed, or as the configuration of another system.
# ragbench refuses a gain that is not significant; the evidence in the bundle records the verdict.

# %%
written = tuning.results.export(place / "bundle", arm="tuned")
print(written.evidence.sentence)
sorted(path.name for path in written.out.iterdir())

# %% [markdown]
# The bundle in an application:

# %%
bundle = ragbench.load(written.out)
for hit in bundle.search("how do I rotate an api key", top_n=3):
    print(f"{hit.score:.3f}  {hit.docno}  {' > '.join(hit.header_path)}")

# %% [markdown]
# Does it do on this machine what was measured on that one? `ragbench verify bundle` asks the same before a deployment, and
# checks the time of queries too.

# %%
from ragbench.extras.ship.deployment import verify

for check in verify(written.out, latency=False):
    print(f"{check.outcome:12} {check.part:25} {check.message}")

# %% [markdown]
# The files of two other systems cannot express everything, so that they lose quality: ragbench emulates them and refuses a
# loss, unless you say `force=True`. What is missing is listed here and in the file.

# %%
for format, name in {"ragdocs": "config.toml", "librarian": "config.json"}.items():
    other = tuning.results.export(place / name, arm="tuned", format=format, force=True)
    print(f"{name}: {len(other.missing)} things it cannot say, such as: {other.missing[0]}")

# %%
print("\n".join(line for line in (place / "config.toml").read_text().splitlines() if not line.startswith("#")))
