"""The fit of `calibration=evidence`: what it separates, and which queries it may see."""

from __future__ import annotations

import numpy as np
import pytest

from research import evidence


def made(n: int = 60) -> evidence.SignSample:
    """Answered searches are near and covered, near misses less so; each topic has one of both."""
    rng = np.random.default_rng(13)
    answered = np.column_stack([rng.normal(5, 1, n), rng.uniform(0.6, 1, n), rng.uniform(0, 1, n)])
    missed = np.column_stack([rng.normal(2, 1, n), rng.uniform(0, 0.6, n), rng.uniform(0, 1, n)])
    kinds = np.array([evidence.ANSWERED] * n + [evidence.NEAR_MISS] * n)
    return evidence.SignSample(np.vstack([answered, missed]), kinds, np.array([f"g{i}" for i in range(n)] * 2))


def test_evidence_fit_finds_what_separates_and_counts_both_errors() -> None:
    sample = made()
    fitted = evidence.fit_evidence(sample)
    assert fitted.weights["nearness"] > 0 and fitted.weights["coverage"] > 0
    assert abs(fitted.weights["agreement"]) < fitted.weights["coverage"]
    counted = evidence.silences(np.array([0.9] * 45 + [0.1] * 15 + [0.4] * 6 + [0.1] * 54), sample, 0.3)
    assert counted["false silence"] == pytest.approx(0.25)
    assert counted["missed silence, near miss"] == pytest.approx(0.1)
    assert np.isnan(counted["missed silence, no answer"])


def test_evidence_no_topic_is_judged_by_a_fit_that_saw_it(monkeypatch) -> None:
    sample, seen = made(), []
    real = evidence.fit_evidence
    monkeypatch.setattr(evidence, "fit_evidence", lambda part: seen.append(set(part.group.tolist())) or real(part))
    assert len(evidence.held_out_probabilities(sample)) == 120
    assert set.intersection(*seen) == set() and all(len(part) == 48 for part in seen)
