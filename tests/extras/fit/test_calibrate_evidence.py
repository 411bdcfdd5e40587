"""Absolute confidence: what speaks for an answer, on a small index and by hand."""

from __future__ import annotations

from math import exp

import numpy as np
import pytest

from ragbench.base.types import ConfigError, Query
from ragbench.config import composition
from ragbench.extras.fit.stages.calibrate_evidence import SIGNS, CalibrateByEvidence
from ragbench.search.engine.answer import SearchOptions, adapted_pipeline
from tests.naming import naming

ON = ("+exp=recommended", "calibration=evidence")


@pytest.fixture(scope="module")
def ask(make_index):
    """The state that `recommended` ends with, with confidences or with other words."""
    index = make_index(composition.compose([*ON]).index)

    def run(text: str, *words: str):
        return composition.compose([*ON, *words]).pipeline([Query("q", text)], index)[0]

    return run


def stage(**changes) -> CalibrateByEvidence:
    values = {"nearness": 1.0, "coverage": 2.0, "agreement": 0.0}
    return CalibrateByEvidence(**{"bias": 0.5, "weights": values, "typical": dict.fromkeys(values, 0.5), **changes})


def test_evidence_probability_by_hand() -> None:
    # 0.5 + 1 * (2 - 0.5) + 2 * (0.25 - 0.5) = 1.5; without the coverage 2.0
    assert stage().probability({"nearness": 2.0, "coverage": 0.25}) == pytest.approx(1 / (1 + exp(-1.5)))
    assert stage().probability({"nearness": 2.0}) == pytest.approx(1 / (1 + exp(-2.0)))
    assert stage().probability({}) == pytest.approx(1 / (1 + exp(-0.5)))


def test_evidence_nonsense_has_no_confidence_and_the_order_stays(ask) -> None:
    good, bad = ask("error codes"), ask("zzz qqq")
    raw = ask("error codes", "calibration=off")
    assert good.fused.chunks.tolist() == raw.fused.chunks.tolist()
    assert good.fused.scores[0] > 0.5 > 0.2 > bad.fused.scores[0]
    assert np.allclose(good.fused.scores / good.fused.scores[0], raw.fused.scores / raw.fused.scores[0], atol=1e-5)
    assert not len(ask("zzz qqq", "p10=on").fused) and len(ask("error codes", "p10=on").fused)


def test_evidence_sign_that_a_mode_leaves_out_is_typical(make_index) -> None:
    settings = composition.compose([*ON])
    index, calibrate = make_index(settings.index), dict(settings.pipeline)["calibration"]
    assert calibrate.needs == {"chunks", "terms", "noise", "encoder"}
    for mode, signs in (("keyword", {"coverage"}), ("semantic", {"coverage", "nearness"}), ("hybrid", set(SIGNS))):
        (state,) = adapted_pipeline(settings.pipeline, SearchOptions(mode=mode), 10)([Query("q", "error codes")], index)
        assert set(calibrate.signs(state, index)) == signs
        assert 0.5 < state.fused.scores[0] < 1


def test_evidence_refuses_unfit_searches() -> None:
    with pytest.raises(ConfigError, check=naming("calibration=evidence", "dense")):
        composition.compose(["dense=null", "calibration=evidence"])
    with pytest.raises(ConfigError, check=naming("weights", "lacks agreement")):
        stage(weights={"nearness": 1.0, "coverage": 1.0})
