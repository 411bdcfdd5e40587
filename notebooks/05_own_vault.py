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
# # 05 Your own notes
#
# From a folder of markdown to a verdict: load it, write queries, compare configurations, judge unjudged results, run
# again. A folder of six notes represents yours.

# %%
import tempfile
from pathlib import Path

place = Path(tempfile.mkdtemp())
notes = {
    "kitchen/sourdough": "# Sourdough\n\n## Feeding\n\nFeed the starter every morning with equal parts of flour and water.\n\n"
    "## Baking\n\nHeat the oven to 240 degrees with a pot inside. Bake 25 minutes closed, 20 minutes open.\n",
    "kitchen/coffee": "# Coffee\n\nEighteen grams in, thirty-six out, in half a minute. Grind finer when it runs too fast.\n",
    "garden/tomatoes": "# Tomatoes\n\n## Blight\n\nBrown spots that spread after rain. Remove the leaves, water the soil only.\n",
    "garden/compost": "# Compost\n\nLayers of green and brown. Turn it when it smells: it wants air.\n",
    "house/boiler": "# Boiler\n\n## Error E4\n\nPressure below one bar. Open the filling loop until the needle stands at 1.5.\n",
    "house/wifi": "# Wi-Fi\n\nThe guest network is called `meadow`. Restart the router by holding the button for ten seconds.\n",
}
for docno, text in notes.items():
    file = place / "notes" / f"{docno}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)

# %% [markdown]
# Write queries from needs that you really had, before you look at any result. Specify the note that answers each one, if
# you know it.

# %%
questions = place / "questions.csv"
_ = questions.write_text(
    "text,relevant\n"
    "E4,house/boiler.md\n"
    "how hot must the oven be for bread,kitchen/sourdough.md\n"
    "espresso comes out too quickly,kitchen/coffee.md\n"
    "spots on the leaves,garden/tomatoes.md\n"
    "heap stinks,garden/compost.md\n"
    "password for visitors,house/wifi.md\n"
)

# %%
from ragbench import Experiment, load_benchmark

benchmark = load_benchmark("vault", corpus=place / "notes", queries=questions)
arms = {"lexical": "exp=lexical_only", "dense": "exp=dense_only", "hybrid": "exp=baseline"}
results = Experiment.arms(arms, benchmark, quick=True).run()
results.summary().round(2)

# %%
for row in results.verdicts.itertuples():
    print(f"{row.factor}: {row.verdict}. {row.reason}")

# %% [markdown]
# Six queries can detect only very large effects, as the verdict states. `mde` is the minimum effect that this number of
# queries detects with 80% power.

# %%
results.verdicts[["factor", "effect", "n", "mde"]].round(3)

# %% [markdown]
# Which results have no judgment yet? The pool is a table for an annotator: it shows neither system nor rank.

# %%
from ragbench.extras.collect.pool import pool, write_pool

runs = {arm: results.run(arm, "sections.trec") for arm in results.arms}
rows = pool(runs, benchmark.section_qrels, depth=3, by_topic=True)
write_pool(place / "pool.csv", rows, benchmark)
print(f"{len(rows)} pairs of question and section")

# %% [markdown]
# `ragbench judge pool.csv` shows the pairs one by one in a terminal, and the studio in a browser. Both need a person, so
# here the first two are graded by a session without either.

# %%
from ragbench.extras.collect.judge import JudgingSession, merge_into_folder

session = JudgingSession(place / "pool.csv")
for _ in range(2):
    item = session.item
    print(item.query, "->", item.section)
    session.grade(3 if "blight" in item.section else 0)
merged = merge_into_folder(place / "pool.csv", place / "qrels")
print(f"{merged.added} judgments added, {merged.left} pairs still open")

# %% [markdown]
# The next run reads them with `data.qrels=<that folder>`. `ragbench data check` finds what would make numbers wrong.
