"""Whether an effect hangs on one area of the collection."""

from __future__ import annotations

import numpy as np
import pytest

from ragbench.config import composition
from ragbench.evidence.arms import Arm, Arms
from ragbench.evidence.cluster_bootstrap import COLUMNS, areas, reach, sentences
from ragbench.evidence.policy import Policy

QIDS = [f"q{n:03}" for n in range(120)]
AREA = {qid: "abcdef"[n // 20] for n, qid in enumerate(QIDS)}


def arms(*effects: np.ndarray) -> Arms:
    policy = Policy.of(composition.compose(["statistics.draws=1000"]).config)
    base = np.full(len(QIDS), 0.5)
    values = {"base": base, **{f"arm{n}": base + effect for n, effect in enumerate(effects)}}
    return Arms({name: Arm({"document": dict(zip(QIDS, each, strict=True))}) for name, each in values.items()}, policy)


def found(*effects: np.ndarray, area_of: dict[str, str] = AREA):
    given = arms(*effects)
    return areas(given, given.against(), area_of)


NOISE = np.random.default_rng(4).normal(0, 0.02, len(QIDS))


def test_an_effect_of_one_area_is_said_to_hang_on_it() -> None:
    everywhere, one = np.full(120, 0.1), np.repeat([0, 0, 0.5, 0, 0, 0], 20)
    frame = found(everywhere + NOISE, one + NOISE)
    assert list(frame.columns) == list(COLUMNS)
    assert (frame["areas"] == 6).all() and (frame["low"] > 0).all()
    assert frame["area_low"].iloc[0] > 0 > frame["area_low"].iloc[1]
    assert frame["weakest"].iloc[1] == "c"
    assert frame["without"].iloc[1] == pytest.approx(np.delete(NOISE, range(40, 60)).mean())
    (said,) = sentences(frame)
    assert said.startswith("arm1: the effect on documents (+0.0") and "without c it is " in said


def test_a_loss_hangs_on_the_area_that_loses_most() -> None:
    frame = found(np.repeat([0, -0.5, 0, 0, 0, 0.1], 20) + NOISE)
    assert frame["weakest"].tolist() == ["b"] and frame["without"].iloc[0] > 0


def test_few_areas_say_nothing() -> None:
    frame = found(NOISE, area_of={qid: "ab"[n % 2] for n, qid in enumerate(QIDS)})
    assert frame.empty and sentences(frame) == []


def test_an_arm_that_changes_nothing_has_no_width() -> None:
    frame = found(np.zeros(120), NOISE)
    assert frame["area_low"].iloc[0] == frame["area_high"].iloc[0] == 0


@pytest.mark.parametrize(("n_areas", "rows"), [(5, 1), (5, 6), (10, 1), (10, 6)])
def test_intervals_of_a_table_hold_the_truth_together(n_areas: int, rows: int) -> None:
    generator = np.random.default_rng(11)
    held = []
    for seed in range(300):
        topics = generator.integers(10, 60, n_areas).astype(np.float64)
        of_area = generator.normal(0, 0.05, (rows, n_areas))
        sums = topics * (of_area + generator.normal(0, 0.2, (rows, n_areas)) / np.sqrt(topics))
        counts = np.tile(topics, (rows, 1))
        half = reach(sums, counts, seed, 400, 0.95)
        held.append((np.abs(sums.sum(axis=1) / counts.sum(axis=1)) <= half).all())
    assert np.mean(held) > 0.9
