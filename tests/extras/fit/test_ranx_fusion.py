"""`fuse.method=ranx:NAME`: the fusions of ranx, against ranx itself; compiled, which takes long, for one method."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from typing import Any

import numpy as np
import pytest

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import ConfigError, Query
from ragbench.config import composition
from ragbench.extras.fit import ranx_fusion
from ragbench.search.stages.fuse import Fuse
from tests.naming import naming
from tests.tables import rows

INDEX: Any = None  # methods of ranx read none
PARAMS = {"gmnz": {"gamma": 1.5}, "rbc": {"phi": 0.8}}


def state(**rankings: dict[int, float]) -> QueryState:
    return QueryState(
        Query("q", ""), rankings={name: Ranking.of([*hits], [*hits.values()]) for name, hits in rankings.items()}
    )


def drawn_state(number: int) -> QueryState:
    """A query with distinct scores from two or three retrievers, chunk numbers of one to three digits."""
    draw = np.random.default_rng(number)
    names = ("dense", "documents", "lexical")[: 2 + number % 2]
    return state(
        **{
            name: dict(zip(draw.choice(200, 6, replace=False).tolist(), draw.random(6).round(3).tolist(), strict=True))
            for name in names
        }
    )


def by_ranx(query: QueryState, method: str, norm: str, params: dict[str, Any]) -> dict[int, float]:
    import ranx

    runs = [
        ranx.Run({"q": {f"chunk{chunk:04}": float(s) for chunk, s in zip(r.chunks, r.scores, strict=True)}})
        for _, r in sorted(query.rankings.items())
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fused = ranx.fuse(runs, norm=None if norm == "none" else norm, method=method, params=params).to_dict()["q"]
    return {int(name.removeprefix("chunk")): score for name, score in fused.items()}


def methods_and_norms() -> list[tuple[str, str]]:
    rows = [(method, "min_max") for method in sorted(ranx_fusion.METHODS)]
    return rows + [("mnz", norm) for norm in ranx_fusion.NORMS[1:]]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "norm"), methods_and_norms())
def test_ranx_methods_give_the_scores_of_ranx(method: str, norm: str) -> None:
    weights = {"dense": 0.5, "lexical": 2.0}
    stage = Fuse(method=f"ranx:{method}", norm=norm, k=10.0, weights=weights, params=PARAMS.get(method, {}))
    queries = [drawn_state(number) for number in range(4)]
    fused = [after.fused for after in stage(queries, INDEX)]
    for query, ranking in zip(queries, fused, strict=True):
        params: dict[str, Any] = dict(PARAMS.get(method, {}))
        if method in ranx_fusion.WEIGHTED:
            params["weights"] = [weights.get(source, 1.0) for source in sorted(query.rankings)]
        if method == "rrf":
            params["k"] = 10
        expected = by_ranx(query, method, norm, params)
        scores = dict(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True))
        assert scores == pytest.approx(expected, rel=1e-5)
        order = sorted(expected, key=lambda chunk: (-np.float32(expected[chunk]), chunk))
        assert ranking.chunks.tolist() == order
        assert stage.fuse(query, INDEX) == ranking  # a batch gives what single queries give


@pytest.mark.slow
def test_ranx_methods_are_the_same_compiled() -> None:
    test = f"{__file__}::{test_ranx_methods_give_the_scores_of_ranx.__name__}[mnz-min_max]"
    command = [sys.executable, "-m", "pytest", "-m", "", "-p", "no:cacheprovider", test]
    compiled = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run(command, env=compiled, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_ranx_fusion_breaks_ties_by_chunk_number() -> None:
    query = state(dense={9: 0.5, 4: 0.5}, lexical={30: 2.0, 7: 2.0})
    assert Fuse(method="ranx:rrf").fuse(query, INDEX).chunks.tolist() == [4, 7, 9, 30]


@pytest.mark.slow
def test_ranx_fusion_agrees_with_our_reciprocal_ranks() -> None:
    queries = [drawn_state(number) for number in range(6)]
    ours, theirs = (Fuse(method=method)(queries, INDEX) for method in ("rrf", "ranx:rrf"))
    assert [after.fused for after in ours] == [after.fused for after in theirs]


@pytest.mark.parametrize("method", ["ranx:mnz", "ranx:wsum"])
def test_ranx_fusion_keeps_the_ranking_of_a_lone_retriever(method: str) -> None:
    stage = Fuse(method=method, weights={"lexical": 0.0})
    alone = state(dense={1: 0.9, 2: 0.1}, lexical={3: 5.0}, code={})
    assert stage.fuse(alone, INDEX) == alone.rankings["dense"]
    assert len(stage.fuse(state(), INDEX)) == 0


def test_ranx_fusion_is_composed_and_described() -> None:
    settings = composition.compose(["fuse.method=ranx:wmnz", "fuse.norm=zmuv", "fuse.weights.lexical=0.5"])
    stage = dict(settings.pipeline)["fuse"]
    assert (stage.method, stage.norm) == ("ranx:wmnz", "zmuv")
    assert stage.describe() == "fuse by ranx:wmnz (zmuv, lexical x0.5)"
    assert stage.unanimous(state(dense={1: 0.5})) == 0.0


@pytest.mark.parametrize(
    ("overrides", "message"),
    rows("fit_ranx_fusion", "ranx_fusion_refuses_wrong_options"),
)
def test_ranx_fusion_refuses_wrong_options(overrides: list[str], message: str) -> None:
    with pytest.raises(ConfigError, check=naming(message)):
        _ = composition.compose(overrides).pipeline


def test_ranx_fusion_without_ranx_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ranx", None)
    with pytest.raises(ConfigError, check=naming("ragbench[fusion]")):
        Fuse(method="ranx:mnz").fuse(state(dense={1: 0.9}, lexical={2: 1.0}), INDEX)
