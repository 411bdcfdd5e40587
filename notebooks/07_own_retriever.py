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
# # 07 Your own retriever
#
# You have a search in Python and want to know whether it beats the baseline. A retriever is a function of a query and
# `k`. This one counts the words of the query in each document.
#
# On Colab, which has Python 3.13, the first cell installs ragbench; elsewhere it does nothing.

# %%
import importlib.util
import subprocess
import sys

if "google.colab" in sys.modules and not importlib.util.find_spec("ragbench"):
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "ragbench", "langchain-core"], check=True)

# %%
import ragbench
from ragbench import Experiment, load_benchmark

benchmark = load_benchmark(name="builtin_v1", version=1)
texts = {each.docno: each.text.lower() for each in benchmark.documents}


@ragbench.retriever
def counted(query, k, longest: int = 1_000_000):
    """Documents by occurrences of the query's words; long documents are cut."""
    words = query.lower().split()
    scores = {docno: sum(text[:longest].count(word) for word in words) for docno, text in texts.items()}
    return sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))[:k]


# %% [markdown]
# `quick=True` measures quality only. The result is the table of verdicts, with confidence intervals as bars.

# %%
arms = {"lexical": "exp=lexical_only", "recommended": "exp=recommended", "counted": counted}
results = Experiment.arms(arms, benchmark, "split=train", quick=True).run()
results.verdicts[["factor", "effect", "ci_low", "ci_high", "p", "verdict"]].round(3)

# %%
results.plot()

# %% [markdown]
# Objects of LangChain, LlamaIndex, Haystack, PyTerrier and BM25S are configurations in the same way, and so are the
# results of a run that has finished, as a file or a data frame. This cell needs `langchain-core`.

# %%
from langchain_core.documents import Document
from langchain_core.runnables import RunnableLambda


def search(query: str) -> list[Document]:
    """The hits as LangChain gives them."""
    return [Document(page_content=texts[docno], metadata={"source": docno}) for docno, _ in counted(query, 100)]


others = {
    "function": counted,
    "LangChain": RunnableLambda(search),
    "run file": results.arm_path("counted") / "run.trec",
}
same = Experiment.arms(others, benchmark, "split=train", quick=True).run()
same.summary()[["arm", "nDCG@10", "RR", "R@100"]].round(4)

# %% [markdown]
# All three are the same. ranx reads and writes these run files, so a fusion by ranx is an arm as well:

# %%
import tempfile
from pathlib import Path

from ranx import Run, fuse

lists = [Run.from_file(str(results.arm_path(arm) / "run.trec"), kind="trec") for arm in ("lexical", "counted")]
fused_file = Path(tempfile.mkdtemp()) / "fused.trec"
fuse(lists, norm="min-max", method="sum").save(str(fused_file), kind="trec")
fused = Experiment.arms({"lexical": "exp=lexical_only", "ranx": fused_file}, benchmark, "split=train", quick=True).run()
print(fused.verdicts["verdict"][0], fused.verdicts["reason"][0])

# %% [markdown]
# Pyserini is a reference for BM25: `exp=pyserini` indexes the same texts with its `LuceneIndexer` and searches with its
# `LuceneSearcher` (extra `pyserini`). A row is a query whose first ten documents differ. There can be two reasons:
# Pyserini rounds scores to four decimals, which makes ties, and it finds nothing for a query of function words alone.

# %%
bm25 = {"ragbench": "exp=lexical_only", "Pyserini": "exp=pyserini"}
reference = Experiment.arms(bm25, benchmark, "split=train", quick=True).run()
ours, theirs = (Run.from_file(str(reference.arm_path(arm) / "run.trec"), kind="trec").to_dict() for arm in bm25)
change = reference.values("Pyserini", "nDCG@10") - reference.values("ragbench", "nDCG@10")
differs = [qid for qid in ours if list(ours[qid])[:10] != list(theirs.get(qid, {}))[:10]]
print(f"{len(differs)} of {len(ours)} queries differ; nDCG@10 changes by at most {change.abs().max():.4f}")
change.reindex(differs)

# %% [markdown]
# The parameter of the function can be varied: is the beginning of a document enough?

# %%
ablation = Experiment.ablate(
    *("source=python:counted", "split=train", "latency.enabled=false", "tracking.enabled=false"),
    candidates={f"first_{n}": [f"live.parameters.longest={n}"] for n in (300, 1_000, 3_000)},
    benchmark=benchmark,
).run()
ablation.verdicts[["factor", "effect", "ci_low", "ci_high", "verdict"]].round(3)

# %% [markdown]
# Latency is measured when you ask for it, with queries that your function has not seen. Then the run can be recorded:
# `timed.to_mlflow()`.

# %%
timed = results.time()
timed.summary()[["arm", "nDCG@10", "p50_ms", "p95_ms"]].round(2)
