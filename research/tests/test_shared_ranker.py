"""One order from several collections, on made features where one of them is the answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.extras.fit.ranker import Sample, values_with
from ragbench.search.ranking import trees
from research import ltr_multi, shared_ranker
from research.ltr_multi import Collection, Part
from tests.naming import naming

QUICK = replace(ltr_multi.SPEC, rounds=40, smallest=5)


def made(n: int, telling: bool = True, seed: int = 1) -> Sample:
    """Queries with ten candidates in random order, of which the one with the largest feature is relevant."""
    drawn = np.random.default_rng(seed)
    rows = tuple(drawn.random((10, 3)).round(6) for _ in range(n))
    best = [int(part[:, 1].argmax()) if telling else int(drawn.integers(10)) for part in rows]
    return Sample(
        ("fused.norm", "cover.title", "links.in"),
        *(tuple(f"{letter}{number}" for number in range(n)) for letter in "qga"),
        rows,
        (np.linspace(1, 0, 10),) * n,
        tuple((np.arange(10) == rank).astype(np.int64) for rank in best),
        ((),) * n,
        ((1,),) * n,
    )


def part(name: str, seed: int, telling: bool = True, **more: object) -> Part:
    """A collection of 20 queries, of which one feature tells what is relevant, or none does."""
    return Part(Collection(name, ("data=vault",), **more), made(20, telling, seed), 30, f"digest of {name}")


@pytest.fixture(scope="module")
def learned() -> ltr_multi.Order:
    parts = [part("a", 1), part("b", 2), part("c", 3), part("d", 4), part("a too", 5, site="a", kind="known")]
    return ltr_multi.learn(parts, QUICK)


def test_shared_ranker_gains_on_held_out_sites(learned) -> None:
    assert len(trees.parse(learned.model)) == 2 * QUICK.rounds
    assert next(iter(learned.importance)) == "cover.title"
    for part, held_out in zip(learned.parts, learned.held_out, strict=True):
        assert held_out.mean() > part.sample.fused.mean() + 0.2
        assert (
            values_with(part.sample, replace(learned, model=learned.without[part.collection.site_name]).stage).tolist()
            == held_out.tolist()
        )
    unseen = made(40, seed=9)
    assert values_with(unseen, learned.stage).mean() > unseen.fused.mean() + 0.2


def test_shared_ranker_reports_gains_of_collections_and_kinds(learned) -> None:
    table = ltr_multi.gains(learned, draws=200)
    one, four = ([f"all {n} sites", f"all {n} sites, links hidden"] for n in (1, 4))
    assert table["collection"].tolist() == ["a too", "a", "b", "c", "d", *one, *four]
    whole = table.set_index("collection").loc["all 4 sites"]
    questions = table[(table["kind"] == "questions") & table["weight"].notna()]
    assert whole["topics"] == 80 and whole["documents"] == 120
    assert whole["gain"] == pytest.approx(np.average(questions["gain"], weights=questions["topics"]))
    assert whole["low"] < whole["gain"] < whole["high"]
    assert np.isnan(table.set_index("collection").loc["all 1 sites", "low"])  # one site tells nothing about others


def test_shared_ranker_holds_out_collections_of_a_site_together() -> None:
    # What tells in `a` misleads everywhere else: an order without `a` does not know it, not even from `a too`.
    def other_way(seed: int) -> Sample:
        sample = made(20, seed=seed)
        return replace(sample, rows=tuple(np.column_stack([r[:, 0], 1 - r[:, 1], r[:, 2]]) for r in sample.rows))

    parts = [part(name, seed) for seed, name in enumerate("bcd")]
    odd = [Part(Collection(name, (), site="a", weight=50.0), other_way(7)) for name in ("a", "a too")]
    together = ltr_multi.learn([*parts, *odd], QUICK)
    without_site = [replace(one, collection=replace(one.collection, site="")) for one in odd]
    apart = ltr_multi.learn([*parts, *without_site], QUICK)
    assert together.held_out[3].mean() < together.parts[3].sample.fused.mean() < apart.held_out[3].mean()


def test_shared_ranker_can_hide_links() -> None:
    sample = replace(made(2), features=("cover.anchors", "links.in.percentile", "cover.title"))
    for rows, blind in zip(sample.rows, ltr_multi.without_links(sample).rows, strict=True):
        assert (blind[:, 0] == 0).all() and (blind[:, 1] == 0.5).all() and (blind[:, 2] == rows[:, 2]).all()


def test_shared_ranker_gives_the_same_bytes_again(learned) -> None:
    assert ltr_multi.learn(learned.parts, QUICK).model == learned.model
    assert ltr_multi.learn(learned.parts[::-1], QUICK).spec == learned.spec


def test_shared_ranker_weighs_collections() -> None:
    parts = [part("a", 1), part("b", 2), part("c", 3)]
    heavier = [replace(one, collection=replace(one.collection, weight=2.0)) for one in parts[:1]] + parts[1:]
    assert ltr_multi.learn(heavier, QUICK).model != ltr_multi.learn(parts, QUICK).model


def test_shared_ranker_refuses_fewer_than_three_sites() -> None:
    with pytest.raises(BenchmarkError, check=naming("2 sites", 3)):
        ltr_multi.learn([part("a", 1), part("b", 2), part("a too", 3, site="a")], QUICK)


def test_shared_ranker_sheet_agrees_with_its_table(learned, tmp_path: Path) -> None:
    table = ltr_multi.gains(learned, draws=200)
    shared_ranker.write(tmp_path / "sheet.md", learned, table, "mine", ["exp=recommended"])
    text = (tmp_path / "sheet.md").read_text()
    assert f"`{trees.named('mine', learned.model)}`" in text and f"{len(learned.model):,} bytes" in text
    assert all(f"| {part.collection.name} |" in text for part in learned.parts)
    assert f"{table['gain'].iloc[-1]:+.3f}" in text
    assert "python -m research.shared_ranker FILE --write mine exp=recommended" in text


def test_shared_ranker_reads_collections_from_yaml(tmp_path: Path) -> None:
    file = tmp_path / "sites.yaml"
    file.write_text(
        "- name: a\n  words: data=vault data.corpus=a/vault 'data.queries=a b.csv'\n  about: {licence: MIT}\n"
        "- {name: b, words: [data=builtin], weight: 0.3, kind: known, split: train}\n"
        "- {name: c, words: [], site: b}\n- {name: d, words: []}\n"
    )
    first, second, third, _ = ltr_multi.read(file)
    assert first.words == ("data=vault", f"data.corpus={tmp_path / 'a/vault'}", f"data.queries={tmp_path / 'a b.csv'}")
    assert first.about == {"licence": "MIT"} and first.site_name == "a" and first.weight == 1
    assert (second.weight, second.kind, second.split) == (0.3, "known", "train") and third.site_name == "b"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name: a", "must be a list of collections, each with `name` and `words`"),
        ("[", "cannot be read"),
        ("- {name: a, wordz: []}", "collection 1.wordz is unknown.*words"),
        ("- {words: []}", "collection 1.name is missing"),
        ("- {name: a, words: [], weight: 0}", "collection 1.weight must be above 0, got 0"),
        ("- {name: a, words: []}\n- {name: a, words: []}", "lists 'a' more than once"),
        ("- {name: a, words: []}", "has 1 sites"),
    ],
)
def test_shared_ranker_refuses_other_files(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "sites.yaml").write_text(text)
    with pytest.raises((ConfigError, BenchmarkError), match=message):
        ltr_multi.read(tmp_path / "sites.yaml")
