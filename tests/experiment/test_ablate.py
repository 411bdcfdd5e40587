"""Ablations: which arms a design asks for, and what their results say about every factor."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ragbench import app
from ragbench.comparison import statistics
from ragbench.configuration import Settings
from ragbench.errors import ConfigError
from ragbench.experiment import ablate
from ragbench.experiment.ablate import Ablation
from ragbench.experiment.results import PER_QUERY_COLUMNS, Results

N = 40


def planned(*overrides: str) -> Ablation:
    base = app.compose(list(overrides))
    return ablate.plan(base, app.compose)


def stages(settings: Settings) -> set[str]:
    return {name for name, _ in settings.pipeline}


@pytest.fixture(scope="module")
def added() -> Ablation:
    return planned("+exp=baseline", "design=add_one", "factors=[p6,p10]", "statistics.resamples=500")


def results_of(ablation: Ablation, values: dict[str, np.ndarray], p95: dict[str, float], unjudged: dict[str, float]):
    """What a run would have measured: nDCG@10 by arm over N queries, all of them timed."""
    rows = [
        (arm, "document", "test", "x", f"q{n:02}", name, value)
        for arm in values
        for n in range(N)
        for name, value in (("nDCG@10", values[arm][n]), ("Unjudged@10", unjudged.get(arm, 0.0)))
    ]
    latency = pd.DataFrame(
        [{"arm": arm, "stage": "total", "p95": ms, "p95_low": ms - 1, "p95_high": ms + 1} for arm, ms in p95.items()]
        or {"arm": [], "stage": []}
    )
    record = {"arms": list(values)}
    return Results(Path("nowhere"), record, pd.DataFrame(rows, columns=list(PER_QUERY_COLUMNS)), latency)


@pytest.mark.parametrize(
    ("words", "factors"),
    [
        (("+exp=librarian_rerank",), {"average", "context", "keywords"}),
        (
            ("+exp=lexical_v3",),
            {
                "expansion",
                "recall",
                "rank_v3",
                "folder_boost",
                "graph_boost",
                "normalise",
                "diverse",
                "merge",
                "guarantee",
            },
        ),
        (("p6=on", "recency=on", "hyde=on"), {"p6"}),
        (("+exp=phase1", "design=add_one"), {*(f"p{n}" for n in (1, 3, 5, 6, 7, 11, 12, 13)), "graph", "community"}),
    ],
)
def test_without_factors_the_switches_of_the_catalogue_are_varied(words: tuple[str, ...], factors: set[str]) -> None:
    found = set(planned(*words).design.factors)
    assert found >= factors
    assert "add_one" in words[-1] or found == factors


@pytest.mark.parametrize("words", [("+exp=all", "design=leave_one_out"), ("+exp=baseline", "design=add_one")])
def test_the_arms_are_those_their_overrides_compose(words: tuple[str, ...]) -> None:
    for arm in planned(*words, "factors=[p1,p8,p11,p13,graph,dynamic_weights]").settings[::3]:
        assert app.compose(arm.overrides).config == arm.config


def test_parameters_of_a_factor_go_with_it(added: Ablation) -> None:
    left = planned("+exp=all", "p6.depth=20", "factors=[p6,p12]")
    by_name = {each.name: each for each in left.settings}
    assert [dict(each.pipeline.stages)["p6"].depth for name, each in by_name.items() if "p6" in stages(each)] == [
        20,
        20,
    ]
    without = next(each for each in by_name.values() if "p6" not in stages(each))
    assert "p6.depth=20" not in without.overrides
    assert app.compose(without.overrides).config == without.config


def test_each_arm_differs_from_the_base_by_its_factor(added: Ablation) -> None:
    by_name = {each.name: each for each in added.settings}
    assert list(by_name) == ["none", "p6", "p10"]
    assert stages(by_name["p6"]) - stages(by_name["none"]) == {"p6"}
    assert stages(by_name["p10"]) - stages(by_name["none"]) == {"p10"}
    left = planned("+exp=all", "factors=[p6,p13]")
    by_name = {each.name: each for each in left.settings}
    # Without p6 there is p13 left, and the other way round.
    assert stages(by_name["all"]) - stages(by_name["p13"]) == {"p6"}
    assert by_name["p6"].index.chunker != by_name["all"].index.chunker


def test_factors_by_default_are_those_on_and_for_add_one_those_off() -> None:
    on, off = planned("+exp=phase1").design.factors, planned("+exp=phase1", "design=add_one").design.factors
    assert set(on) == {"p2", "p4", "p8", "p9", "p10"}
    assert set(off) == {*(f"p{n}" for n in (1, 3, 5, 6, 7, 11, 12, 13)), "graph", "community", "dynamic_weights"}


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (("factors=[p99]",), "factor 'p99' is no switch; switches: p1"),
        (("factors=p6",), r"factors must be a list such as \[p1,p6\], got p6"),
        (("design=sideways", "factors=[p6]"), "sideways"),
        (("+exp=baseline",), "finds no switch to vary"),
    ],
)
def test_what_cannot_be_varied_is_named(overrides, said) -> None:
    with pytest.raises(ConfigError, match=said):
        planned(*overrides)


def test_verdicts_weigh_effect_latency_and_judgments(added: Ablation) -> None:
    chance = np.random.default_rng(1)
    base = chance.uniform(0.3, 0.6, N)
    values = {"none": base, "p6": base + chance.normal(0.1, 0.02, N), "p10": base - chance.normal(0.1, 0.02, N)}
    timed = {"none": 20.0, "p6": 100.0, "p10": 21.0}
    # p10 returns less: fewer of its hits are unjudged, and it loses all the same.
    found = ablate.verdicts(added, results_of(added, values, timed, {"none": 0.3, "p6": 0.3, "p10": 0.1}))
    by_factor = found.set_index("factor")
    assert by_factor["verdict"].to_dict() == {"p6": "adopt", "p10": "reject"}
    assert by_factor["latency_ms"].to_dict() == pytest.approx({"p6": 80.0, "p10": 1.0})
    assert by_factor["budget_ms"].to_dict() == {"p6": 150.0, "p10": 50.0}
    expected = statistics.compare_all(
        np.stack([values["p6"], values["p10"]]), np.stack([base, base]), seed=13, resamples=500
    )
    assert by_factor["effect"].tolist() == pytest.approx([each.difference for each in expected])
    assert by_factor["p_holm"].tolist() == pytest.approx(statistics.holm([each.p_value for each in expected]))

    undervalued = ablate.verdicts(added, results_of(added, values, timed, {"none": 0.0, "p6": 0.0, "p10": 0.2}))
    assert undervalued.set_index("factor")["verdict"].to_dict() == {"p6": "adopt", "p10": "inconclusive"}
    slow = ablate.verdicts(added, results_of(added, values, timed | {"p6": 200.0}, {}))
    assert slow.set_index("factor")["verdict"]["p6"] == "reject"
    untimed = ablate.verdicts(added, results_of(added, values, {}, {}))
    assert untimed["latency_ms"].isna().all()
    assert "its latency was not measured" in untimed["reason"][0]


def test_latency_intervals_add_in_quadrature(added: Ablation) -> None:
    base = np.linspace(0, 1, N)
    values = {"none": base, "p6": base + 0.05, "p10": base}
    found = ablate.verdicts(added, results_of(added, values, {"none": 20.0, "p6": 169.5, "p10": 20.0}, {}))
    # 149.5 ms, give or take sqrt(2): below and above the budget of 150
    assert found.set_index("factor")["verdict"]["p6"] == "inconclusive"
    assert "[+148, +151]" in found["reason"][0]


def test_interactions_have_an_effect_and_no_verdict() -> None:
    pairs = planned("+exp=baseline", "design=pairwise", "factors=[p6,p10]", "statistics.resamples=100")
    base = np.linspace(0, 1, N)
    values = {"none": base, "p6": base, "p10": base, "p6+p10": base + 0.2}
    names = [each.name for each in pairs.settings]
    by_name = dict(zip(names, values.values(), strict=True))
    found = ablate.verdicts(pairs, results_of(pairs, by_name, {}, {}))
    assert found["kind"].tolist() == ["main", "main", "interaction"]
    assert found["verdict"].tolist()[-1] == ""
    assert found["effect"].tolist()[-1] == pytest.approx(0.2)


def test_the_conclusion_is_written_beside_the_results(added: Ablation, tmp_path: Path) -> None:
    base = np.linspace(0, 1, N)
    found = results_of(added, {"none": base, "p6": base, "p10": base}, {}, {})
    ablate.conclude(added, replace(found, folder=tmp_path))
    written = pd.read_csv(tmp_path / "verdicts.csv", keep_default_na=False)
    assert written["factor"].tolist() == ["p6", "p10"]
    assert "equal on all 40 queries" in written["reason"][0]
    assert (tmp_path / "design.txt").read_text() == f"{added.design.describe()}\n"
    assert json.dumps(written["verdict"].tolist()) == '["inconclusive", "inconclusive"]'
