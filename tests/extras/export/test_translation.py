"""What is translated, what is left over."""

from __future__ import annotations

import pytest

from ragbench.extras.export.translation import Reading, flat_index
from ragbench.search.stages.cut import Cut
from ragbench.search.stages.fuse import Fuse
from ragbench.search.stages.redundancy import Diversify
from ragbench.search.stages.retrieve import RetrieveDense


@pytest.fixture
def read(composed) -> Reading:
    return Reading(composed("+exp=dense_only", "calibration=off"))


def test_left_over_lists_what_was_not_read(read: Reading) -> None:
    assert read.value(RetrieveDense, "depth", 7) == 100
    assert read.value(Diversify, "lambda_", 0.7) == 0.7  # it is off
    assert read.index_value("encoder.name") == "bge-small-en-v1.5"
    assert read.index_value("chunker.parent_max") is None
    fixed = {("Fuse", "k"): 61.0, ("Fuse", "weights"): {}, ("Cut", "top_n"): 100, ("index", "passage.headings"): False}
    left = read.left_over([RetrieveDense, Fuse, Cut], fixed, "It")
    assert "fuse.k = 60.0: It always has 61.0" in left
    assert any(sentence.startswith("fuse.weights = {") for sentence in left)
    expressed = ("dense.depth", "cut", "index.passage.headings", "index.encoder.name")
    assert not any(sentence.startswith(expressed) for sentence in left)


def test_left_over_skips_unused_index_parts(read: Reading) -> None:
    left = read.left_over([], {}, "It")
    assert any(sentence.startswith("index.encoder.max_tokens") for sentence in left)
    assert not any(sentence.startswith(("index.lexical", "index.vocabulary")) for sentence in left)


def test_left_over_lists_missing_stages_with_parameters(read: Reading) -> None:
    assert "cut (keep 100): It has no such step; top_n=100" in read.left_over([RetrieveDense, Fuse], {}, "It")


def test_out_of_order_names_both_stages(read: Reading) -> None:
    assert read.out_of_order([RetrieveDense, Cut, Fuse], "It") == ["order: fuse runs before cut here; It runs it after"]
    assert read.out_of_order([RetrieveDense, Fuse, Cut], "It") == []


def test_flat_index_omits_graph_parameters(composed) -> None:
    flat, hnsw = (flat_index(composed(f"index.dense.kind={kind}").index) for kind in ("flat", "hnsw"))
    assert "dense.m" not in flat
    assert hnsw["dense.m"] == 32
    assert flat["chunker"] == "HeaderChunker"
