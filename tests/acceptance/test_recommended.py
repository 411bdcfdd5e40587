"""The recommended search beats the baseline on topics that had no say in it: the built-in test topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.config import composition
from ragbench.workbench import Experiment

WITHOUT_TIMES = ("latency.enabled=false", "tracking.enabled=false")


@pytest.mark.slow
def test_recommended_search_is_better_on_documents_and_passages(workplace: Path) -> None:
    settings = composition.standard_arms([*WITHOUT_TIMES, f"paths.results={workplace}"])
    assert settings is not None
    experiment = Experiment(tuple(settings))
    assert list(experiment.pipelines) == ["baseline", "recommended"]
    (verdict,) = experiment.run().verdicts.to_dict(orient="records")
    assert verdict["factor"] == "recommended"
    assert verdict["ci_low"] > 0
    assert verdict["passage_ci_low"] > 0
    assert verdict["quality"] == "better"
