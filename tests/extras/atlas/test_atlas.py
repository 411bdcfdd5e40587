"""The tables of the atlas, what is claimed from them, and what they let a run expect."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest

from ragbench.base.errors import ResultsError
from ragbench.config import composition
from ragbench.extras.atlas import changes, ingest, tables
from ragbench.extras.atlas import page as atlas_page
from ragbench.extras.atlas.tables import QUESTIONS, Atlas, effects_of
from tests.made_atlas import made


@pytest.mark.parametrize("name", changes.changes())
def test_every_change_composes_and_keeps_its_name(name: str) -> None:
    words = changes.changes()[name].split()
    (settings,) = composition.arms({name: tuple(words)}, ["split=all", "latency.enabled=false"])
    assert settings.name == name
    earlier = name in changes.groups()[changes.EARLIER]  # its preset has other values now: nothing is predicted from it
    assert changes.name_of(settings.overrides) == (None if earlier else name)


def test_words_on_data_do_not_change_the_name_of_a_change() -> None:
    assert changes.name_of(["+exp=recommended", "data=vault", "data.corpus=notes", "split=all"]) == "recommended"
    assert changes.name_of(["data=vault"]) == "baseline"
    assert changes.name_of(["exp=recommended", "dense.depth=7"]) is None
    assert changes.name_on_base(["exp=phase1"], ["exp=phase1", "p5=on"]) == "p5"
    assert changes.name_on_base(["exp=phase1"], ["exp=phase2"]) is None


def test_the_tables_that_are_shipped_agree_with_each_other() -> None:
    atlas = Atlas.load(Path(changes.__file__).parent)
    facts = atlas.collections.set_index("collection")
    assert facts.index.is_unique and set(facts["questions"]) <= set(QUESTIONS)
    assert set(atlas.effects["collection"]) == set(facts.index)
    assert set(atlas.effects["base"]) <= set(changes.BASES)
    assert set(atlas.effects["change"]) <= set(changes.changes())
    assert not atlas.effects.duplicated(["collection", "base", "change"]).any()
    assert (atlas.effects["topics"] >= atlas.effects["better"] + atlas.effects["worse"]).all()
    assert facts["digest"].str.fullmatch("[0-9a-f]{64}").all()
    assert not facts.astype(str).map(lambda text: text.startswith("/")).any().any()


def test_effects_by_hand() -> None:
    values = pd.DataFrame({"plain_hybrid": [0.5, 0.5, 0.0], "p8": [1.0, 0.5, 0.1], "baseline": [0.0, 0.5, 0.0]})
    rows = {(row["base"], row["change"]): row for row in effects_of("notes", values)}
    assert set(rows) == {("plain_hybrid", "p8"), ("plain_hybrid", "baseline"), ("baseline", "plain_hybrid")}
    found = rows["plain_hybrid", "p8"]
    assert found["effect"] == pytest.approx(0.2)
    assert (found["topics"], found["better"], found["worse"]) == (3, 2, 0)
    assert found["error"] == pytest.approx(pd.Series([0.5, 0.0, 0.1]).std() / 3**0.5)


def test_nothing_is_claimed_from_nine_collections() -> None:
    few, enough = made([0.03] * 9), made([0.03] * 10)
    assert few.prior("p8", "plain_hybrid", "people") is None
    known, said = enough.prior("p8", "plain_hybrid", "people")  # type: ignore[misc]
    assert (known.collections, said) == (10, "10 other collections (none of them with user queries)")
    assert atlas_page.lines(atlas_page.effects_table(few))[1].rstrip().endswith("-")
    assert "+0.030" in atlas_page.lines(atlas_page.effects_table(enough))[1]


def test_collections_that_the_order_was_learned_from_do_not_tell_what_it_brings() -> None:
    assert made([0.03] * 10, learned=1, change="recommended").pooled("recommended") is None
    assert made([0.03] * 10, learned=1, change="recommended-rank").pooled("recommended-rank") is not None
    assert made([0.03] * 10, learned=0, change="recommended").pooled("recommended") is not None


def test_tables_are_written_and_read_again(tmp_path: Path) -> None:
    atlas = made([0.01, 0.02])
    atlas.write(tmp_path)
    again = Atlas.load(tmp_path)
    pd.testing.assert_frame_equal(again.effects, atlas.effects)
    (tmp_path / "effects.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(ResultsError, match="other columns"):
        Atlas.load(tmp_path)


def test_a_first_write_that_is_killed_leaves_what_is_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before, calls, write = Atlas.load(), [], tables.files.write_text

    def killed(path: Path, text: str) -> None:
        if calls:
            raise KeyboardInterrupt
        calls.append(write(path, text))

    monkeypatch.setattr(tables.files, "write_text", killed)
    with pytest.raises(KeyboardInterrupt):
        made([0.5]).write(tables.own_folder())
    assert len(Atlas.load().collections) == len(before.collections)


def test_two_additions_at_once_are_both_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(ingest, "values_of", lambda runs: runs[0])
    monkeypatch.setattr(ingest, "facts", lambda benchmark, *about: {"collection": benchmark.name})
    monkeypatch.setattr(ingest, "tables", lambda rows: named(rows[0][0]["collection"]))
    slow = Atlas.write
    monkeypatch.setattr(Atlas, "write", lambda *given: (time.sleep(0.1), slow(*given)))
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda name: ingest.add((), SimpleNamespace(name=name), {}), ("one", "two")))
    assert set(Atlas.load(tables.own_folder()).collections["collection"]) == {"one", "two"}


def named(name: str) -> Atlas:
    found = made([0.5])
    return Atlas(found.effects.assign(collection=name), found.collections.assign(collection=name))


def test_own_measurements_count_and_replace_those_of_the_same_collection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    before = Atlas.load()
    own = made([0.5])
    own.write(tables.own_folder())
    after = Atlas.load()
    assert len(after.collections) == len(before.collections) + 1
    assert len(after.rows("p8")) == len(before.rows("p8")) + 1


def test_a_first_run_can_be_told_what_to_expect() -> None:
    shipped = Atlas.load(Path(changes.__file__).parent)
    known, said = shipped.prior("recommended", "baseline", "derived")  # type: ignore[misc]
    assert known.has_enough_collections and said == f"{known.collections} other collections with synthetic queries"
    assert not shipped.rows("recommended", "baseline", "derived")["learned"].any()
