"""Values of the seeds that the composed presets have: a change of one fails here."""

from __future__ import annotations

from typing import Any

import pytest

from ragbench.config import composition
from tests.composed import composed

METADATA = {"title": 3.0, "description": 2.0, "keywords": 2.5, "tags": 2.0, "aliases": 1.5, "author": 1.0}


def stage(preset: str, name: str) -> Any:
    return dict(composed(f"+exp={preset}").pipeline)[name]


def test_phase_searches_metadata_with_the_weights_of_the_seed() -> None:
    fields = dict(stage("phase1", "lexical").fields)  # 000 P9
    assert {name: fields[name] for name in METADATA} == METADATA


@pytest.mark.parametrize(
    ("preset", "name"),
    [("phase1", "bge-small-en-v1.5"), ("ragdocs_full", "bge-small-en-v1.5"), ("librarian_hybrid", "all-MiniLM-L6-v2")],
)
def test_encoder_is_that_of_the_seed(preset: str, name: str) -> None:
    assert composed(f"+exp={preset}").index.encoder.name == name  # 000 2.1, 004


@pytest.mark.parametrize("preset", ["phase3", "ragdocs_full"])
def test_fusion_weighs_each_retriever_alike(preset: str) -> None:
    weights = stage(preset, "fuse").weights  # 000 P7, 001
    assert {weights[name] for name in ("dense", "lexical", "code", "graph")} == {1.0}


def test_runs_report_the_measures_of_the_seed() -> None:
    measures = composed("+exp=phase1").value("measures")  # 000 appendix A
    assert {"nDCG@5", "nDCG@10", "RR", "R@10", "P@5"} <= set(measures)


def test_ragdocs_runs_its_steps_in_the_order_of_the_seed() -> None:
    names = [name for name, _ in composed("+exp=ragdocs_full").pipeline]  # 001
    steps = ["p3", "p1", "dense", "lexical", "p7", "graph", "dynamic_weights", "fuse", "community", "recency"]
    assert names[: len(steps)] == steps and names[len(steps)] == "calibration"


def test_lexical_v3_boosts_can_be_turned_off() -> None:
    boosts = {"folder_boost", "graph_boost"}  # 002, enableLexicalBoosts
    with_boosts, without = (
        {name for name, _ in composition.compose(["+exp=lexical_v3", *off]).pipeline}
        for off in ((), [f"{boost}=off" for boost in boosts])
    )
    assert with_boosts - without == boosts and without < with_boosts


def test_librarian_has_the_sizes_of_the_seed() -> None:
    settings = composed("+exp=librarian_hybrid")  # 004 F2
    chunker = settings.index.chunker
    assert (chunker.chunk_size, chunker.chunk_overlap) == (512, 50)
    assert {settings.value(f"{source}.depth") for source in ("dense", "lexical")} == {3 * settings.value("cut.top_n")}
