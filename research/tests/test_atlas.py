"""The pages of the atlas, and the published packages that its collections are fetched from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench.base.errors import BenchmarkError, ConfigError
from ragbench.extras.atlas import changes
from ragbench.extras.atlas.tables import Atlas
from research.atlas import fetch, measure, page


def test_an_order_learned_without_a_site_is_the_order_there() -> None:
    about = {"data": "data=builtin", "order": "questions-without-uv-docs"}
    site = measure.Collection("uv-docs", ("data=builtin",), about)
    for name in ("recommended", "recommended+p7", "rank"):
        assert site.added(name) == ("ranker=questions-without-uv-docs",)
        assert changes.name_of([*changes.changes()[name].split(), *site.added(name)]) == name
    assert site.added("p7") == site.added("recommended-rank") == ()


@pytest.mark.slow
def test_the_page_is_the_one_that_the_tables_give() -> None:
    root = Path(__file__).parents[2]
    atlas = Atlas.load(Path(changes.__file__).parent)
    assert (root / "docs" / page.PAGE).read_text(encoding="utf-8") == page.page(atlas)
    assert page.findings(atlas) in (root / "docs" / "findings.md").read_text(encoding="utf-8")
    assert page.proposals(atlas) in (root / "docs" / "research" / "proposals.md").read_text(encoding="utf-8")


def test_a_package_that_is_not_the_pinned_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hashlib
    import io
    import tarfile

    place = tmp_path / "archives" / "guide-1.0.0.tgz"
    place.parent.mkdir()
    with tarfile.open(place, "w:gz") as archive:
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
    digest = hashlib.sha512(place.read_bytes()).hexdigest()
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
    with pytest.raises(ConfigError, match="unknown collection 'gide'"):
        fetch.fetch(tmp_path, ["gide"])


def test_records_in_json_become_markdown() -> None:
    spells = (
        b'[{"name": "Alarm", "desc": ["You set an alarm.", "It pings."], "school": {"name": "x"}}, {"name": "None"}]'
    )
    (alarm,) = fetch.markdown(spells, "spells", {"title": "name", "text": ["desc", "higher_level"]})
    assert alarm == ("alarm.md", "# Alarm\n\nYou set an alarm.\n\nIt pings.\n")


def test_elements_of_xml_in_json_become_markdown() -> None:
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
    (found,) = fetch.markdown(json.dumps(document).encode(), "F1", names)
    assert found == ("F1.md", "# Insurance\n\n## Cars\n\nIt has a car\n")


def test_every_pinned_package_has_what_the_tables_need() -> None:
    for name, about in fetch.pinned().items():
        assert about["package"].startswith("npm:") and about["package"].count("@") >= 1, name
        assert len(about["sha512"]) == 128 and about["licence"] and about["kind"] and about["language"]
