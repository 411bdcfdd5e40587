"""Ways to fuse stored rankings, with numbers worked by hand."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from ragbench.evaluation import headroom
from ragbench.extras.fit import fusions
from ragbench.search.stages.fuse import Fuse

RUNS = {
    "dense": {"q1": {"a": 0.9, "b": 0.8, "c": 0.1}, "q2": {"a": 0.5}},
    "lexical": {"q1": {"b": 9.0, "c": 3.0}, "q2": {}},
}
QRELS = {"q1": {"a": 1}, "q2": {"a": 1, "z": 1}}


@pytest.fixture
def ways(monkeypatch: pytest.MonkeyPatch) -> dict[str, fusions.Fused]:
    monkeypatch.setattr(fusions, "has_ranx", lambda: False)
    found = fusions.measure(RUNS, QRELS, ["q1", "q2"], Fuse())
    assert found[0].home == "configured"
    return {f"{way.home} {way.method} {way.norm}".strip(): way for way in found}


def test_every_way_is_measured_over_all_topics(ways: dict[str, fusions.Fused]) -> None:
    assert {frozenset(way.values) for way in ways.values()} == {frozenset({"q1", "q2"})}
    assert ways["configured rrf"].values == ways["fuse rrf (k 60)"].values


def test_values_by_hand(ways: dict[str, fusions.Fused]) -> None:
    # q1, k 60: b = 1/62 + 1/61, c = 1/63 + 1/62, a = 1/61: a is third.
    assert ways["fuse rrf (k 60)"].values["q1"] == pytest.approx(1 / math.log2(4))
    # Min-max: a = 1, b = 7/8 + 1, c = 0: a is second.
    assert ways["fuse convex (missing lowest) min_max"].values["q1"] == pytest.approx(1 / math.log2(3))
    # q2: a alone, of two relevant ones.
    assert ways["fuse rrf (k 1)"].values["q2"] == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert ways["fuse rrf (k 1)"].words == "fuse.method=rrf fuse.k=1"


def test_stored_rankings_come_back() -> None:
    rows = [(qid, source, d, s) for source, run in RUNS.items() for qid, hits in run.items() for d, s in hits.items()]
    frame = pd.DataFrame(rows, columns=list(headroom._SOURCE_COLUMNS)).astype({"qid": "category", "source": "category"})
    found = fusions.read_source_frame(frame)
    assert found["dense"] == RUNS["dense"]
    assert found["lexical"] == {"q1": RUNS["lexical"]["q1"]}  # nothing found is no row
