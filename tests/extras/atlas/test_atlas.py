"""The tables of the atlas, and what is claimed from them."""

from __future__ import annotations

import pytest

from ragbench.config import composition
from ragbench.extras.atlas import changes
from ragbench.extras.atlas.tables import QUESTIONS, Atlas
from tests.made_atlas import made


@pytest.mark.slow
@pytest.mark.parametrize(("name", "overrides"), changes.changes().items())
def test_change_composes_and_keeps_its_name(name: str, overrides: str) -> None:
    (settings,) = composition.arms({name: tuple(overrides.split())}, ["split=all", "latency.enabled=false"])
    assert settings.name == name
    earlier = name in changes.groups()[changes.EARLIER]  # its preset has other values now: nothing is predicted from it
    assert changes.name_of(settings.overrides) == (None if earlier else name)


def test_name_of_ignores_overrides_of_data() -> None:
    assert changes.name_of(["+exp=recommended", "data=vault", "data.corpus=notes", "split=all"]) == "recommended"
    assert changes.name_of(["data=vault"]) == "baseline"
    assert changes.name_of(["exp=recommended", "dense.depth=7"]) is None
    assert changes.name_on_base(["exp=phase1"], ["exp=phase1", "p5=on"]) == "p5"
    assert changes.name_on_base(["exp=phase1"], ["exp=phase2"]) is None


def test_shipped_tables_agree_with_each_other() -> None:
    atlas = Atlas.load()
    facts = atlas.collections.set_index("collection")
    assert facts.index.is_unique and set(facts["questions"]) <= set(QUESTIONS)
    assert set(atlas.effects["collection"]) == set(facts.index)
    assert set(atlas.effects["base"]) <= set(changes.BASES)
    assert set(atlas.effects["change"]) <= set(changes.changes())
    assert not atlas.effects.duplicated(["collection", "base", "change"]).any()
    assert (atlas.effects["topics"] >= atlas.effects["better"] + atlas.effects["worse"]).all()
    assert facts["digest"].str.fullmatch("[0-9a-f]{64}").all()
    assert not facts.astype(str).map(lambda text: text.startswith("/")).any().any()


def test_prior_needs_ten_collections() -> None:
    few, enough = made([0.03] * 9), made([0.03] * 10)
    assert few.prior("p8", "plain_hybrid", "people") is None
    pooled, description = enough.prior("p8", "plain_hybrid", "people")  # type: ignore[misc]
    assert (pooled.collections, description) == (10, "10 other collections (none of them with user queries)")


def test_rows_exclude_collections_that_the_ranker_was_trained_on() -> None:
    assert made([0.03] * 10, learned=1, change="recommended").pooled("recommended") is None
    assert made([0.03] * 10, learned=1, change="recommended-rank").pooled("recommended-rank") is not None
    assert made([0.03] * 10, learned=0, change="recommended").pooled("recommended") is not None


def test_prior_of_recommended_is_known_for_synthetic_queries() -> None:
    shipped = Atlas.load()
    pooled, description = shipped.prior("recommended", "baseline", "derived")  # type: ignore[misc]
    assert pooled.has_enough_collections
    assert description == f"{pooled.collections} other collections with synthetic queries"
    assert not shipped.rows("recommended", "baseline", "derived")["learned"].any()
