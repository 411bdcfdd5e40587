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
# # 07 The atlas: a meta-analysis of effects on other collections
#
# The tables that `ragbench atlas` reads contain an effect and its standard error for every change and collection. This
# notebook pools them step by step and compares the result with that of the command.

# %%
from pathlib import Path

import numpy as np
from scipy import stats

import ragbench.extras.atlas
from ragbench.extras.atlas.tables import Atlas
from ragbench.extras.atlas import meta

atlas = Atlas.load(Path(ragbench.extras.atlas.__file__).parent)  # without what you added
atlas.collections[["collection", "questions", "kind", "documents", "topics"]]

# %% [markdown]
# One change. The standard errors are steadied: a change that altered no topic on a site is not known exactly there.

# %%
change = "p8"
rows = atlas.rows(change)
effects, topics = rows["effect"].to_numpy(), rows["topics"].to_numpy()
errors = meta.steadied(rows["error"].to_numpy(), topics)
rows[["collection", "topics", "effect", "error"]].assign(steadied=errors.round(4))

# %% [markdown]
# The variance between collections, the pooled mean with the interval of Hartung and Knapp, and the prediction.

# %%
tau2 = meta.between(effects, errors**2)
weights = 1 / (errors**2 + tau2)
mean = weights @ effects / weights.sum()
factor = max(1.0, weights @ (effects - mean) ** 2 / (len(effects) - 1))
error = np.sqrt(factor / weights.sum())
wide = stats.t.ppf(0.975, len(effects) - 1)
by_hand = (mean, mean - wide * error, mean + wide * error)
pooled = atlas.pooled(change)
assert np.allclose(by_hand, (pooled.effect, pooled.low, pooled.high))
print(f"{change}: {mean:+.4f} [{by_hand[1]:+.4f}, {by_hand[2]:+.4f}], tau {tau2**0.5:.4f}, I2 {pooled.i2:.2f}")
print(f"on a new collection: [{pooled.predicted_low:+.4f}, {pooled.predicted_high:+.4f}]")

# %% [markdown]
# Eight topics of your own, four of which lost: the verdict is open, and the expectation says what both together know.

# %%
own = [0.0, 0.0, -0.1, 0.0, -0.2, -0.05, 0.0, -0.1]
expected = meta.expect(pooled, own, atlas.typical_sd(change, "plain_hybrid"))
print(f"{expected.effect:+.4f} [{expected.low:+.4f}, {expected.high:+.4f}], better with {expected.better:.3f}")

# %% [markdown]
# Every change, as `ragbench atlas` prints it.

# %%
from ragbench.extras.atlas import page as atlas_page

print("\n".join(atlas_page.lines(atlas_page.effects_table(atlas))))
