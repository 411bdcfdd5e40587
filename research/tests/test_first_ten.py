"""Trials of the first ten: features by hand, and trials on made queries where one feature is the answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragbench.base.rankings import Ranking
from ragbench.index.terms import TermIndex, build_terms
from research import candidate_features, first_ten
from research.candidate_features import Site
from research.first_ten import Outcome, Questions, Trial
from research.ltr_multi import Collection, Part
from research.tests.test_shared_ranker import made

_HALF = 0.5**0.5
QUICK = {"rounds": 20, "models": 1, "parameters": {"min_data_in_leaf": 5}}


class Overlap:
    """A cross-encoder by the words of the query that a passage holds."""

    def score(self, query: str, passages: list[str]) -> np.ndarray:
        return np.array([sum(word in passage for word in query.split()) for passage in passages], dtype=np.float32)


@pytest.fixture
def site(handmade, page, tmp_path: Path) -> Site:
    pages = [
        page("ops/one", ["red lamps", "rotate the key"], title="Lamps"),
        page("ops/two", ["rotate a key"], title="Key rotation"),
        page("three", ["blue lamps"], links=["ops/two"], title="Lamps"),
    ]
    index = handmade(pages, [[1, 0], [0, 1], [_HALF, _HALF], [1, 0]])
    (tmp_path / "terms").mkdir()
    build_terms(tmp_path / "terms", index.chunks, "english")
    index.terms = TermIndex(tmp_path / "terms", index.chunks, "english")
    return Site(index, Overlap())


@pytest.fixture
def values(site, state) -> dict[str, list[float]]:
    one = state("rotate key", fused=[(0, 1.0), (2, 0.9), (1, 0.6), (3, 0.5)], dense=[0, 2], lexical=[2, 1, 0])
    vector = np.array([0.0, 1.0], dtype=np.float32)
    one = one.with_ranking("dense", replace(one.rankings["dense"], query_vector=vector))
    return {name: value.tolist() for name, value in candidate_features.table(one, site, 10).items()}


def test_candidate_features_read_every_passage_of_a_page(values) -> None:
    assert values["passage/cover.best"] == pytest.approx([1, 1, 0])
    assert values["passage/named.lead"] == pytest.approx([0, 1, 0])
    assert values["cosines/best.gap"] == pytest.approx([0, _HALF - 1, -1])
    assert values["section/title.f1"] == pytest.approx([0, 1, 0])
    assert values["agree/both"] == pytest.approx([0, 1, 0])


def test_candidate_features_see_what_candidates_share(values) -> None:
    assert values["copies/same.title"] == [2, 1, 2]
    assert values["copies/passages"] == [1, 0, 1]
    assert values["votes/folder"] == pytest.approx([0.8 / 1.8, 1 / 1.8, 0])
    assert values["kind/siblings"] == [2, 2, 1]


def test_candidate_features_compare_retrievers(values) -> None:
    # By documents: dense ranks one, two; lexical two, one. Lexical scores are 1, 1/2, 1/3, by document 1 and 1/2.
    assert values["margins/dense.lexical"] == pytest.approx([0.4] * 3)
    assert values["margins/agreeing"] == [0] * 3
    assert values["lead/lexical"] == pytest.approx([-1, 1, -1])
    assert values["agreement/best"] == [1, 1, 200]
    assert values["agreement/ahead"][0] == pytest.approx(np.log(1 / 2))


def test_candidate_features_read_five_documents_by_the_cross_encoder(values, site, state, monkeypatch) -> None:
    assert values["cross/logit"] == [0, 2, 0] and values["cross/gap"] == [-2, 0, -2]
    assert values["cross/rank"] == [2, 1, 3]
    monkeypatch.setattr(candidate_features, "_CROSS_READS", 1)
    one = state("rotate key", fused=[(2, 1.0), (0, 0.5)], dense=[2])
    one = one.with_ranking("dense", replace(Ranking.ordered([2], [1.0]), query_vector=np.zeros(2, dtype=np.float32)))
    logits = candidate_features.table(one, site, 10)["cross/logit"]
    assert np.isfinite(logits).tolist() == [True, False]


@pytest.mark.parametrize("query", ["", "the", "zebras", "rotate"])
def test_candidate_features_of_few_words_are_finite(site, state, query: str) -> None:
    vector = np.zeros(2, dtype=np.float32)
    one = state(query, fused=[(2, 1.0), (0, 0.5)], dense=[2])
    one = one.with_ranking("dense", replace(Ranking.ordered([2], [1.0]), query_vector=vector))
    made_of = candidate_features.table(one, site, 10)
    assert all(np.isfinite(value).all() and value.shape == (2,) for value in made_of.values())


def questions(*names: str, telling: bool = True) -> Questions:
    """Sites with 20 questions; of the features, `section/told` alone tells the answer."""
    parts = []
    for seed, name in enumerate(names):
        sample = made(20, telling, seed)
        sample = replace(sample, features=("fused.norm", "section/told", "kind/links.percentile"))
        parts.append(Part(Collection(name, ()), sample))
    return Questions(tuple(parts), tuple(np.arange(20) < 5 for _ in names))


def test_first_ten_measures_a_group_of_features() -> None:
    asked = questions(*"abcd")
    control, trial = (first_ten.run(asked, Trial(groups, **QUICK)) for groups in ((), ("section",)))
    mean, low, high = first_ten.change(asked, trial.values - control.values, asked.asked)
    assert mean > 0.2 and low < mean < high
    assert (trial.hidden == trial.values).all()
    text = first_ten.sheet(asked, {first_ten.CONTROL: control, "+ section": trial})
    assert "80 questions, 20 of them with unlinked answers, 1 trials" in text and f"{mean:+.4f}" in text


def test_first_ten_hides_links_of_new_features() -> None:
    asked = questions(*"abc")
    assert all((rows[:, 2] == 0.5).all() for rows in asked.blind.rows)
    assert not any((rows[:, 2] == 0.5).all() for rows in asked.sample.rows)


def test_first_ten_weighs_trees_where_retrievers_agree() -> None:
    asked = questions(*"abc")
    names = ("fused.norm", "section/told", "margins/agreeing")
    parts = [replace(part, sample=replace(part.sample, features=names)) for part in asked.parts]
    for rows in (rows for part in parts for rows in part.sample.rows[:10]):
        rows[:, 2] = 2  # of three retrievers, two agree with the first
    asked = replace(asked, parts=tuple(parts))
    without, control = (first_ten.run(asked, Trial(("section",), agreed=agreed, **QUICK)) for agreed in (0.0, 1.0))
    assert asked.agreed.sum() == 30
    assert without.values[asked.agreed].tolist() == asked.sample.fused[asked.agreed].tolist()
    assert without.values[~asked.agreed].tolist() == control.values[~asked.agreed].tolist()


def test_first_ten_chooses_a_trial_by_the_other_sites() -> None:
    asked = questions(*"abc")
    by_site = {"even": (0.5, 0.5, 0.5), "odd": (1.0, 0.0, 0.0)}  # `odd` is chosen on b and c alone, by a
    outcomes = {name: Outcome(np.repeat(values, 20), np.zeros(60)) for name, values in by_site.items()}
    outcomes["odd"].values[:20] = 1.2
    assert first_ten.by_other_sites(asked, outcomes).reshape(3, 20).mean(axis=1).tolist() == [0.5, 0.0, 0.0]


def test_first_ten_keeps_the_outcome_of_a_trial_and_its_data(tmp_path: Path, monkeypatch) -> None:
    asked, trial = questions(*"ab"), Trial(**QUICK)
    first = first_ten._kept(asked, "+ votes/top", trial, tmp_path)
    measured: list[Trial] = []
    monkeypatch.setattr(first_ten, "run", lambda _, one: measured.append(one) or first)
    assert (first_ten._kept(asked, "+ votes/top", trial, tmp_path).values == first.values).all() and measured == []
    first_ten._kept(asked, "+ votes/top", replace(trial, rounds=19), tmp_path)
    first_ten._kept(
        replace(asked, parts=(replace(asked.parts[0], digest="x"), asked.parts[1])), "+ votes/top", trial, tmp_path
    )
    assert len(measured) == 2


def test_first_ten_refuses_unknown_trials(tmp_path: Path, capsys) -> None:
    assert first_ten.main([str(tmp_path / "sites.yaml"), "--sheet", str(tmp_path / "s.md"), "--only", "luck"]) == 2
    assert "no trial 'luck'" in capsys.readouterr().err
