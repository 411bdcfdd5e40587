"""The effects on train and on test topics."""

from __future__ import annotations

import numpy as np
import pytest

from ragbench.config import composition
from ragbench.evidence.arms import Arm, Arms
from ragbench.evidence.policy import Policy
from ragbench.evidence.split_consistency import _heterogeneity, halves, sentences
from ragbench.evidence.statistics import Contrast

QIDS = [f"q{n:02}" for n in range(60)]
SPLITS = {qid: "train" if n < 30 else "test" for n, qid in enumerate(QIDS)}


def arms(*effects: np.ndarray) -> Arms:
    policy = Policy.of(composition.compose(["statistics.draws=2000"]).config)
    base = np.full(60, 0.5)
    values = {"base": base, **{f"arm{n}": base + effect for n, effect in enumerate(effects)}}
    return Arms({name: Arm({"document": dict(zip(QIDS, each, strict=True))}) for name, each in values.items()}, policy)


def found(*effects: np.ndarray):
    return halves(arms(*effects), [Contrast.of(f"arm{n}", "base") for n in range(len(effects))], SPLITS)


def test_an_effect_on_one_half_alone_is_shown() -> None:
    generator = np.random.default_rng(4)
    noise = generator.normal(0, 0.1, 60)
    frame = found(noise + np.repeat([0.107, -0.007], 30), noise[::-1])
    assert frame["factor"].tolist() == ["arm0", "arm1"]
    assert frame["train"].iloc[0] == pytest.approx(noise[:30].mean() + 0.107)
    assert frame["test"].iloc[0] == pytest.approx(noise[30:].mean() - 0.007)
    assert frame["p"].iloc[0] < 0.01 < 0.2 < frame["p"].iloc[1]
    (said,) = sentences(frame)
    assert said.startswith("arm0: documents +0.093 on train and -0.010 on test topics")
    assert "the halves disagree" in said


def test_chance_alone_is_called_unlike_in_one_of_twenty() -> None:
    generator, in_train = np.random.default_rng(5), np.arange(60) < 30
    p = [
        _heterogeneity(generator.exponential(1, (1, 60)), np.ones((1, 60), dtype=bool), in_train, seed, 199)[0]
        for seed in range(300)
    ]
    assert 0.02 < np.mean(np.array(p) <= 0.05) < 0.09


def test_one_half_says_nothing_of_the_other() -> None:
    frame = halves(arms(np.zeros(60)), [Contrast.of("arm0", "base")], dict.fromkeys(QIDS, "test"))
    assert frame.empty
    assert sentences(frame) == []


def test_a_level_that_one_half_lacks_is_left_out() -> None:
    policy = Policy.of(composition.compose(["statistics.draws=200"]).config)
    documents = {qid: 0.5 + n / 100 for n, qid in enumerate(QIDS)}
    passages = {qid: value for qid, value in documents.items() if SPLITS[qid] == "test"}
    both = Arms({name: Arm({"document": documents, "passage": passages}) for name in ("base", "arm")}, policy)
    frame = halves(both, [Contrast.of("arm", "base")], SPLITS)
    assert frame["level"].tolist() == ["document"]
