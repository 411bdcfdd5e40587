"""How many topics plain BM25 over whole documents answers first, and which of version 2 are retired to train for it.

python tests/bench/easy_topics.py builtin_v21             share of topics with a useful document first, by split
python tests/bench/easy_topics.py builtin_v21 --easy      and those whose words name that document

A topic names its document if the title and the name of the file hold a third of its words (English stems, no stop
words), or title, path and headings together half. Version 2.1 has such topics of the test half of version 2 in train.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from urllib.parse import unquote

import pandas as pd

from ragbench import Experiment
from ragbench.base.types import Document
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.runs import read_run
from ragbench.index.analyzers import analyze, analyzer

WORDS = (
    "+exp=lexical_only",
    "lexical.index={unit: document, analyzer: english}",
    "split=all",
    "tracking.enabled=false",
)
"""Plain BM25 with the settings of the presets, one entry of the index for each document."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the share by split, on request the topics that name their document."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", help="builtin_v2 or builtin_v21")
    parser.add_argument("--easy", action="store_true")
    given, words = parser.parse_known_args(arguments)
    table = answered_first(f"data={given.data}", *words)
    print(table.groupby("split")["useful"].agg(["mean", "sum", "count"]).round(3).to_string())
    if given.easy:
        print(table[table["names"]].to_string(columns=["qid", "split", "text"], index=False))


def answered_first(*words: str) -> pd.DataFrame:
    """A row for each answerable topic: split, whether a useful document is first, whether the topic names it."""
    experiment = Experiment.single(*WORDS, *words)
    benchmark = experiment.benchmark
    run = read_run(next((experiment.run().folder / "arms").glob("*/run.trec")))
    documents = {document.docno: document for document in benchmark.documents}
    rows = []
    for topic in benchmark.topics:
        if useful := _useful(benchmark, topic.qid):
            first = next((documents[docno] for docno, _ in run.get(topic.qid, ())), None)
            hit = first is not None and first.docno in useful
            rows.append(
                (topic.qid, topic.split, topic.text, hit, hit and first is not None and names(topic.text, first))
            )
    return pd.DataFrame(rows, columns=["qid", "split", "text", "useful", "names"])


def names(text: str, document: Document) -> bool:
    """Whether a question says so many words of a document's title, file name or headings that they name it."""
    english = analyzer("english")
    words = set(analyze(english, text))
    path = re.sub(r"[-/_]", " ", unquote(document.docno))
    title = set(analyze(english, document.title))
    short = title | set(analyze(english, unquote(document.docno.rpartition("/")[2]).replace("-", " ")))
    headings = " ".join(heading for section in document.sections for heading in section.path)
    long = title | set(analyze(english, path)) | set(analyze(english, headings))
    return bool(words) and (3 * len(words & short) >= len(words) or 2 * len(words & long) >= len(words))


def _useful(benchmark: Benchmark, qid: str) -> set[str]:
    return {docno for docno, grade in benchmark.document_qrels.get(qid, {}).items() if grade > 0}


if __name__ == "__main__":
    main()
