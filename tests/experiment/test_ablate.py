"""Ablations: which arms a design asks for, and what their results say about every factor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ragbench.base.options import option
from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import ConfigError, ResultsError
from ragbench.config import composition
from ragbench.config.settings import Settings
from ragbench.evidence import statistics
from ragbench.evidence.arms import verdict_table
from ragbench.experiment import ablate
from ragbench.experiment.ablate import Ablation
from ragbench.index.index import Index
from ragbench.results.measurements import PER_QUERY_COLUMNS, Measurements
from ragbench.search.stages.stage import Reorder, fused
from ragbench.workbench import Experiment
from tests.naming import naming

N = 40


def planned(*overrides: str, candidates: ablate._Candidates | None = None) -> Ablation:
    base = composition.compose(list(overrides))
    return ablate.plan(base, composition.compose, candidates)


def test_ablation_of_a_preset_names_arms_after_it() -> None:
    kept = planned("exp=phase1", "factors=[p2,p4,p8]")
    assert [arm.name for arm in kept.settings] == ["phase1", "phase1-p2", "phase1-p4", "phase1-p8"]
    added = planned("exp=phase1", "factors=[p2,p6]", "design=factorial")  # p6 is off in phase1: another search
    assert [arm.name for arm in added.settings] == ["none", "p6", "p2", "all"]


def stages(settings: Settings) -> set[str]:
    return {name for name, _ in settings.pipeline}


@pytest.fixture(scope="module")
def added() -> Ablation:
    return planned("+exp=baseline", "design=add_one", "factors=[p6,p10]", "statistics.draws=500")


@dataclass(frozen=True)
class Made(Measurements):
    """Measurements of arms that never ran: configurations and samples of time as given."""

    configs: dict[str, Mapping[str, Any]] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)

    def config(self, arm: str) -> Mapping[str, Any]:
        return self.configs[arm]

    def arm_tables(self, name: str, columns: Sequence[str], others: bool = False) -> pd.DataFrame:
        rows = [(arm, f"q{n}", ms) for arm, ms in self.times.items() for n in range(80)]
        return pd.DataFrame(rows, columns=["arm", "qid", "total"])[list(columns)]


def results_of(
    ablation: Ablation,
    values: dict[str, np.ndarray],
    p95: dict[str, float],
    *,
    passages: dict[str, np.ndarray] | None = None,
    useful: dict[str, np.ndarray] | None = None,
) -> Measurements:
    """What a run would have measured: nDCG@10 by arm over N queries, all of them timed."""
    measured = {
        ("document", "nDCG@10"): values,
        ("document", "nDCG@10 if useful"): useful or {},
        ("passage", "nDCG@10"): passages or {},
    }
    rows = [
        (arm, level, "test", "x", f"q{n:02}", name, of_arm[n])
        for (level, name), of_arms in measured.items()
        for arm, of_arm in of_arms.items()
        for n in range(N)
    ]
    configs = {setting.name: setting.config for setting in ablation.settings}
    frame = pd.DataFrame(rows, columns=list(PER_QUERY_COLUMNS))
    return Made(Path("nowhere"), {"arms": list(values)}, frame, pd.DataFrame({"arm": []}), configs, p95)


@pytest.mark.parametrize("words", [("+exp=all", "design=leave_one_out"), ("+exp=baseline", "design=add_one")])
def test_ablate_arms_are_those_their_overrides_compose(words: tuple[str, ...]) -> None:
    for arm in planned(*words, "factors=[p1,p8,p11,p13,graph,dynamic_weights]").settings[::3]:
        assert composition.compose(arm.overrides).config == arm.config


def test_ablate_parameters_of_a_factor_go_with_it(added: Ablation) -> None:
    left = planned("+exp=all", "p6.depth=20", "factors=[p6,p12]")
    by_name = {item.name: item for item in left.settings}
    assert [dict(item.pipeline.stages)["p6"].depth for name, item in by_name.items() if "p6" in stages(item)] == [
        20,
        20,
    ]
    without = next(item for item in by_name.values() if "p6" not in stages(item))
    assert "p6.depth=20" not in without.overrides
    assert composition.compose(without.overrides).config == without.config


def test_ablate_each_arm_differs_from_the_base_by_its_factor(added: Ablation) -> None:
    by_name = {setting.name: setting for setting in added.settings}
    assert list(by_name) == ["none", "p6", "p10"]
    assert stages(by_name["p6"]) - stages(by_name["none"]) == {"p6"}
    assert stages(by_name["p10"]) - stages(by_name["none"]) == {"p10"}
    left = planned("+exp=all", "factors=[p6,p13]")
    by_name = {setting.name: setting for setting in left.settings}
    # Without p6 there is p13 left, and the other way round.
    assert stages(by_name["all"]) - stages(by_name["p13"]) == {"p6"}
    assert by_name["p6"].index.chunker != by_name["all"].index.chunker


@pytest.mark.slow
def test_ablate_arms_of_ones_own_are_factors_like_switches() -> None:
    candidates = {"deep": ["p6=on", "p6.depth=50"], "wide": ["cut.top_n=200"]}
    crossed = planned("+exp=baseline", "design=factorial", "factors=[p10]", candidates=candidates)
    by_name = {setting.name: setting for setting in crossed.settings}
    assert set(crossed.design.factors) == {"p10", "deep", "wide"} and len(by_name) == 8
    everything = by_name[crossed.settings[-1].name]
    assert dict(everything.pipeline.stages)["p6"].depth == 50 and everything.config["cut"]["top_n"] == 200
    assert "p10" in stages(everything)
    assert composition.compose(everything.overrides).config == everything.config
    added = {setting.name: setting for setting in Experiment.ablate("+exp=baseline", candidates=candidates).settings}
    assert list(added) == ["none", "deep", "wide"] and "p6" in stages(added["deep"])
    with pytest.raises(ConfigError, check=naming("--arm p6")):
        planned("+exp=baseline", candidates={"p6": ["p6=on"]})


def test_ablate_factor_that_needs_another_switch_turns_on_both_and_says_so() -> None:
    words = ("+exp=plain_hybrid", "design=add_one")
    added = planned(*words, f"factors=[{','.join(f'p{n}' for n in range(1, 14))}]")
    arms = {setting.name: setting for setting in added.settings}
    assert list(arms) == ["none", *(f"p{n}" for n in range(1, 10)), "p10_with_calibration", "p11", "p12", "p13"]
    assert stages(arms["p10_with_calibration"]) - stages(arms["none"]) == {"p10", "calibration"}
    assert "calibration" not in stages(arms["p11"])
    (note,) = added.notes
    assert "p10_with_calibration is p10=on calibration=on" in note
    assert planned(*words, "factors=[p10]", "calibration=table").notes == ()
    for base in ("plain_hybrid", "baseline"):
        with pytest.raises(ConfigError, check=naming("same design")):
            planned(f"+exp={base}", "design=add_one", "factors=[p10,calibration]")
    with pytest.raises(ConfigError, check=naming("add calibration=on")):
        composition.compose(["+exp=plain_hybrid", "p10=on"])


def test_ablate_factors_by_default_are_those_on_and_for_add_one_those_off() -> None:
    on, off = planned("+exp=phase1").design.factors, planned("+exp=phase1", "design=add_one").design.factors
    assert set(on) == {"p2", "p4", "p8", "p9", "p10"}
    assert set(off) == {*(f"p{n}" for n in (1, 3, 5, 6, 7, 11, 12, 13)), "graph", "community", "dynamic_weights"}


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (("factors=[p99]",), "factor 'p99' is not a switch; switches: p1"),
        (("factors=p6",), r"factors must be a list of texts, or null, got 'p6'"),
        (("design=sideways", "factors=[p6]"), "sideways"),
        (("+exp=baseline",), "finds no switch to vary"),
    ],
)
def test_ablate_what_cannot_be_varied_is_named(overrides, message) -> None:
    with pytest.raises(ConfigError, match=message):
        planned(*overrides)


def judged(ablation: Ablation, results: Measurements) -> pd.DataFrame:
    return verdict_table(ablate.judge(ablation, results)).set_index("factor")


def test_ablate_verdicts_weigh_effects_at_both_levels_and_latency(added: Ablation) -> None:
    chance = np.random.default_rng(1)
    base = chance.uniform(0.3, 0.6, N)
    up, down = base + chance.normal(0.1, 0.02, N), base - chance.normal(0.1, 0.02, N)
    values = {"none": base, "p6": up, "p10": down}
    timed = {"none": 20.0, "p6": 100.0, "p10": 21.0}
    result = judged(added, results_of(added, values, timed))
    assert result["verdict"].to_dict() == {"p6": "adopt", "p10": "reject"}
    assert result["latency_ms"].to_dict() == pytest.approx({"p6": 80.0, "p10": 1.0})
    assert result["budget_ms"].to_dict() == {"p6": 150.0, "p10": 50.0}
    expected = statistics.compare_all(np.stack([up, down]), np.stack([base, base]), seed=13, draws=500)
    assert result["effect"].tolist() == pytest.approx([item.difference for item in expected])
    assert result["p"].tolist() == pytest.approx([item.p_value for item in expected])

    worse_passages = judged(added, results_of(added, values, timed, passages={"none": base, "p6": down, "p10": base}))
    assert worse_passages["quality"].to_dict() == {"p6": "worse", "p10": "worse"}
    assert worse_passages["verdict"].to_dict() == {"p6": "reject", "p10": "reject"}
    slow = judged(added, results_of(added, values, timed | {"p6": 200.0}))
    assert (slow["quality"]["p6"], slow["cost"]["p6"], slow["verdict"]["p6"]) == ("better", "over", "reject")
    untimed = judged(added, results_of(added, values, {}))
    assert untimed["latency_ms"].isna().all()
    assert (untimed["quality"]["p6"], untimed["cost"]["p6"], untimed["verdict"]["p6"]) == (
        "better",
        "open",
        "inconclusive",
    )
    assert "latency was not measured" in untimed["reason"]["p6"]


def test_ablate_is_inconclusive_if_unjudged_hits_matter(added: Ablation) -> None:
    chance = np.random.default_rng(1)
    base = chance.uniform(0.3, 0.6, N)
    values = {"none": base, "p6": base, "p10": base - chance.normal(0.1, 0.02, N)}
    for gain, quality in ((0.05, "worse"), (0.15, "open")):
        useful = {"none": base, "p6": base, "p10": values["p10"] + gain}
        result = judged(added, results_of(added, values, {}, useful=useful))
        assert result["quality"]["p10"] == quality
        assert result["useful"]["p10"] == pytest.approx(float(np.mean(useful["p10"] - base)))


def test_ablate_effects_of_a_design_are_one_family_and_its_interactions_another() -> None:
    pairs = planned("+exp=baseline", "design=factorial", "factors=[p6,p10]", "statistics.draws=400")
    chance = np.random.default_rng(3)
    base = chance.uniform(0.3, 0.6, N)
    values = {name: base + chance.normal(0, 0.1, N) for name in pairs.design.arms()}
    frame = verdict_table(ablate.judge(pairs, results_of(pairs, values, {})))
    assert frame["kind"].tolist() == ["main", "main", "interaction"]
    assert frame["verdict"].tolist()[-1] == frame["reason"].tolist()[-1] == ""
    both, alone = values["all"] + values["none"], values["p6"] + values["p10"]
    by_hand = statistics.compare(both, alone, seed=13, draws=400)
    assert frame["effect"].tolist()[-1] == by_hand.difference
    assert frame["p"].tolist()[-1] == by_hand.p_value


def test_ablate_averaging_arms_leaves_no_wins_that_are_rounding() -> None:
    """In a factorial 0.1 + 0.2 and 0.3 meet; queries the factor never changed must be ties."""
    planned_ = planned("+exp=baseline", "design=factorial", "factors=[p6,p8,p10,p12]", "statistics.draws=50")
    values = {arm: np.resize(np.array([0.1, 0.2, 0.3]) * 1.1, N) for arm in planned_.design.arms()}
    for item in ablate.judge(planned_, results_of(planned_, values, {})):
        assert item.levels["document"].comparison.ties == N


def test_ablate_arm_that_never_ran_has_no_score(added: Ablation) -> None:
    base = np.linspace(0, 1, N)
    result = results_of(added, {"none": base, "p6": base, "p10": base}, {})
    missing = replace(result, per_query=result.per_query[result.per_query["arm"] != "p10"])
    with pytest.raises(ResultsError, check=naming("'p10'")):
        ablate.judge(added, missing)


def test_ablate_conclusion_is_written_beside_the_results(added: Ablation, tmp_path: Path) -> None:
    base = np.linspace(0, 1, N)
    result = results_of(added, {"none": base, "p6": base, "p10": base}, dict.fromkeys(("none", "p6", "p10"), 20.0))
    ablate.conclude(added, replace(result, folder=tmp_path))
    written = pd.read_csv(tmp_path / "verdicts.csv", keep_default_na=False)
    assert written["factor"].tolist() == ["p6", "p10"]
    assert "none of 40 queries changed" in written["reason"][0]
    assert (tmp_path / "design.txt").read_text() == f"{added.design.describe()}\n"
    assert written["verdict"].tolist() == ["inconclusive", "inconclusive"]  # 40 queries do not rule out a loss of .02


@option("last_half", before="cut")
@dataclass(frozen=True)
class LastHalf(Reorder):
    """A switch that config.yaml does not name, as one of a plug-in."""

    def reorder(self, state: QueryState, index: Index) -> Ranking:
        ranking = fused(state)
        return Ranking.of(ranking.chunks[::2], ranking.scores[::2])


@pytest.mark.parametrize(
    ("words", "without"), [(("design=add_one",), "none"), (("design=leave_one_out", "last_half=on", "p6=on"), "p6")]
)
def test_ablate_takes_a_switch_that_order_does_not_name(words: tuple[str, ...], without: str) -> None:
    ablation = planned("exp=baseline", *words, "factors=[last_half,p6]")
    by_name = {settings.name: settings for settings in ablation.settings}
    names = [name for name, _ in by_name["last_half"].pipeline]
    assert names.index("last_half") == names.index("cut") - 1
    assert "last_half" not in stages(by_name[without])
    assert all(composition.compose(arm.overrides).pipeline == arm.pipeline for arm in ablation.settings)
