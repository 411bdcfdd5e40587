"""Pyserini's own classes index and search in this process, and find what our BM25 finds."""

from __future__ import annotations

import logging
import os
import sys

import numpy as np
import pytest

from ragbench.base.types import IndexError_
from ragbench.config import composition
from ragbench.extras.engines.live import RetrievePyserini
from ragbench.extras.engines.parts import pyserini
from ragbench.search.stages.retrieve import RetrieveLexical

QUERIES = ("LNT-204", "how do lamps know when the sun sets", "sixty-four masts masts", "zzz")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of what Pyserini imports
def test_pyserini_finds_the_chunks_of_our_bm25(state, index, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    handlers = list(logging.getLogger().handlers)
    for scoring in ({}, {"k1": 1.2, "b": 0.75}):
        states = [state(text) for text in QUERIES]
        theirs = RetrievePyserini(**scoring).retrieve(states, index)
        ours = RetrieveLexical(**scoring).retrieve(states, index)
        for their, our in zip(theirs, ours, strict=True):
            assert their.chunks.tolist() == our.chunks.tolist()
            assert their.scores == pytest.approx(our.scores, abs=1e-4)  # Pyserini rounds to four decimals
        assert [len(each) > 0 for each in theirs] == [True, True, True, False]
    # our index keeps titles and headings with their function words for such a query, Pyserini's has none of them
    (only,) = RetrievePyserini().retrieve([state("where to")], index)
    assert not len(only)
    allowed = np.zeros(len(index.chunks), dtype=np.bool_)
    allowed[ours[1].chunks[-2:]] = True
    assert index.part("pyserini").search(QUERIES[1], 5, 0.9, 0.4, allowed).chunks.tolist() in (
        ours[1].chunks[-2:].tolist(),
        ours[1].chunks[-2:][::-1].tolist(),
    )
    assert "OPENAI_API_KEY" not in os.environ
    assert logging.getLogger().handlers == handlers


def test_missing_pyserini_is_one_sentence(index, monkeypatch: pytest.MonkeyPatch) -> None:
    pyserini._classes.cache_clear()
    monkeypatch.setitem(sys.modules, "pyserini.search.lucene", None)
    with pytest.raises(IndexError_, match=r"pip install 'ragbench\[pyserini\]'"):
        pyserini._classes()
    pyserini._classes.cache_clear()


def test_preset_replaces_bm25f() -> None:
    stages = dict(composition.compose(["exp=pyserini", "pyserini.k1=1.2"]).pipeline)
    assert stages["pyserini"] == RetrievePyserini(k1=1.2)
    assert "lexical" not in stages
