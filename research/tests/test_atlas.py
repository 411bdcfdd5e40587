"""The pages of the atlas, and the published packages that its collections are fetched from."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.extras.atlas import changes
from ragbench.extras.atlas.tables import Atlas
from research.atlas import fetch, ingest, measure, page, statistics
from tests.made_atlas import made
from tests.naming import naming


def test_atlas_ranks_a_site_by_an_order_learned_without_it() -> None:
    about = {"data": "data=builtin", "order": "questions-without-uv-docs"}
    site = measure.Collection("uv-docs", ("data=builtin",), about)
    for name in ("recommended", "recommended+p7", "rank"):
        assert site.added(name) == ("ranker=questions-without-uv-docs",)
        assert changes.name_of([*changes.changes()[name].split(), *site.added(name)]) == name
    assert site.added("p7") == site.added("recommended-rank") == ()


@pytest.mark.slow
def test_atlas_page_is_generated_from_the_tables() -> None:
    root = Path(__file__).parents[2]
    atlas = Atlas.load()
    assert (root / "docs" / page.PAGE).read_text(encoding="utf-8") == page.page(atlas)
    assert page.findings(atlas) in (root / "docs" / "findings.md").read_text(encoding="utf-8")


def test_fetch_refuses_a_package_that_is_not_pinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib
    import io
    import tarfile

    path = tmp_path / "archives" / "guide-1.0.0.tgz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        for name, text in (
            ("docs/a.md", "# A\n"),
            ("docs/deep/b.md", "# B\n"),
            ("src/c.md", "# C\n"),
            ("docs/d.js", ""),
        ):
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
        out = tarfile.TarInfo("package/docs/../../../e.md")
        archive.addfile(out, io.BytesIO())
    digest = hashlib.sha512(path.read_bytes()).hexdigest()
    about = {"package": "npm:guide@1.0.0", "sha512": digest, "folder": "docs", "licence": "MIT", "kind": "guides"}
    about |= {"software": "true", "language": "en"}
    monkeypatch.setattr(fetch, "pinned", lambda: {"guide": about, "other": about | {"sha512": "0"}})
    with pytest.raises(BenchmarkError, match="leads out of its folder"):
        fetch.fetch(tmp_path, ["guide"])
    assert not (tmp_path.parent / "e.md").exists()
    assert (tmp_path / "guide" / "deep" / "b.md").read_text() == "# B\n"
    assert not (tmp_path / "guide" / "c.md").exists() and not (tmp_path / "guide" / "d.js").exists()
    with pytest.raises(BenchmarkError, match="is not the pinned archive"):
        fetch.fetch(tmp_path, ["other"])
    with pytest.raises(ConfigError, check=naming("gide")):
        fetch.fetch(tmp_path, ["gide"])


def test_fetch_makes_markdown_of_json_records() -> None:
    spells = (
        b'[{"name": "Alarm", "desc": ["You set an alarm.", "It pings."], "school": {"name": "x"}}, {"name": "None"}]'
    )
    (alarm,) = fetch.markdown(spells, "spells", {"title": "name", "text": ["desc", "higher_level"]})
    assert alarm == ("alarm.md", "# Alarm\n\nYou set an alarm.\n\nIt pings.\n")


def test_fetch_makes_markdown_of_xml_in_json() -> None:
    def element(name: str, *children: object) -> dict[str, object]:
        return {"type": "element", "name": name, "children": list(children)}

    def text(words: str) -> dict[str, str]:
        return {"type": "text", "text": words}

    link = element("Link", text("a car"))
    chapter = element(
        "Chapter", element("Title", element("Para", text("Cars"))), element("Para", text("It has "), link)
    )
    document = {"id": "F1", "children": [element("dc:title", text("Insurance")), element("Text", chapter)]}
    names = {"title": "dc:title", "text": ["Text"], "heading": "Title", "paragraph": "Para"}
    (converted,) = fetch.markdown(json.dumps(document).encode(), "F1", names)
    assert converted == ("F1.md", "# Insurance\n\n## Cars\n\nIt has a car\n")


def test_atlas_packages_have_what_the_tables_need() -> None:
    for name, about in fetch.pinned().items():
        assert about["package"].startswith("npm:") and about["package"].count("@") >= 1, name
        assert len(about["sha512"]) == 128 and about["licence"] and about["kind"] and about["language"]


def test_atlas_effects_by_hand() -> None:
    values = pd.DataFrame({"plain_hybrid": [0.5, 0.5, 0.0], "p8": [1.0, 0.5, 0.1], "baseline": [0.0, 0.5, 0.0]})
    rows = {(row["base"], row["change"]): row for row in ingest.effects_of("notes", values)}
    assert set(rows) == {("plain_hybrid", "p8"), ("plain_hybrid", "baseline"), ("baseline", "plain_hybrid")}
    row = rows["plain_hybrid", "p8"]
    assert row["effect"] == pytest.approx(0.2)
    assert (row["topics"], row["better"], row["worse"]) == (3, 2, 0)
    assert row["error"] == pytest.approx(pd.Series([0.5, 0.0, 0.1]).std() / 3**0.5)


def test_atlas_arms_ignore_an_encoder_that_all_have() -> None:
    overrides = {"plain": ["exp=plain_hybrid"], "dedup": ["exp=plain_hybrid", "p8=on"]}
    run = SimpleNamespace(arms=list(overrides), record={"overrides": overrides})
    assert ingest.known_arms(run) == {"plain": "plain_hybrid", "dedup": "p8"}
    german = {arm: [*words, "index.encoder.name=multilingual"] for arm, words in overrides.items()}
    run.record = {"overrides": german}
    assert ingest.known_arms(run) == {"plain": "plain_hybrid", "dedup": "p8"}
    run.record = {"overrides": {**german, "plain": overrides["plain"]}}
    assert ingest.known_arms(run) == {"plain": "plain_hybrid"}


def test_atlas_written_tables_are_loaded_again(tmp_path: Path) -> None:
    atlas = made([0.01, 0.02])
    ingest.write(atlas, tmp_path)
    columns = list(ingest.EFFECT_COLUMNS)
    pd.testing.assert_frame_equal(Atlas.load(tmp_path).effects, atlas.effects[columns])


def test_atlas_i2_and_interval_by_hand() -> None:
    assert statistics.i2([0.02] * 12, [0.01] * 12) == 0.0
    pooled = made([0.02] * 12).pooled("p8")
    assert pooled is not None
    # t of 11 degrees at .975 is 2.20099
    low, high = statistics.interval(pooled, 0.01)
    assert (low, high) == pytest.approx((0.02 - 0.0220099, 0.02 + 0.0220099), abs=1e-6)


def test_atlas_moderators_are_shrunk() -> None:
    generator = np.random.default_rng(13)
    size, noise = generator.normal(size=40), generator.normal(size=40)
    effects = 0.05 * size + generator.normal(0, 0.01, 40)
    slopes = {
        slope.name: slope
        for slope in statistics.moderate(effects.tolist(), [0.01] * 40, {"size": size, "noise": noise})
    }
    assert 0.02 < slopes["size"].low < slopes["size"].slope < 0.05 * size.std() + 0.005
    assert slopes["noise"].low < 0 < slopes["noise"].high
    assert statistics.moderate(effects.tolist(), [0.01] * 40, {"same": [1.0] * 40}) == []
