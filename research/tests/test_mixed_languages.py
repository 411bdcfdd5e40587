"""Mixed vaults that are made of one site in several languages."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from research.mixed_languages import Site, mixes, table, write_queries

PAGES = ("a.md", "b.md", "c.md", "d/e.md")


@pytest.fixture
def sites(tmp_path: Path) -> list[Site]:
    """One site in two languages, with a query for every page."""
    for name in ("en", "de"):
        folder = tmp_path / name
        (folder / "qrels").mkdir(parents=True)
        for page in PAGES:
            (folder / "vault" / page).parent.mkdir(parents=True, exist_ok=True)
            (folder / "vault" / page).write_text(f"{name} {page}")
        lines = [json.dumps({"_id": page, "text": f"{name} question of {page}"}) for page in PAGES]
        (folder / "queries.jsonl").write_text("\n".join(lines))
        judged = [f"{page}\t{page}\t2\n{page}\tgone.md\t1" for page in PAGES]
        (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]))
    return [Site.of(tmp_path / name) for name in ("en", "de")]


def test_mixed_vaults_have_every_page_once_and_in_every_language_in_turn(sites: list[Site], tmp_path: Path) -> None:
    vaults = [
        {page: (folder / "vault" / page).read_text() for page in PAGES} for folder, _ in mixes(sites, 2, tmp_path)
    ]
    assert {vault["a.md"] for vault in vaults} == {"en a.md", "de a.md"}
    assert all({*vault.values()} <= {f"{name} {page}" for name in ("en", "de") for page in PAGES} for vault in vaults)


def test_mixed_query_is_asked_in_the_language_of_its_page_and_in_others(sites: list[Site], tmp_path: Path) -> None:
    folder, site_of = next(mixes(sites, 2, tmp_path))
    kinds = write_queries(folder, sites, site_of)
    assert len(kinds) == 2 * len(PAGES)
    for page in PAGES:
        home = site_of[page].folder.name
        assert kinds[f"{home}.{page}"] == ("same", home)
    assert "gone.md" not in (folder / "test.tsv").read_text()


def test_table_rounds_means_to_three_decimals() -> None:
    assert table("arm", ["a", "b"], {"x": [0.12345, 1]}).split("\n")[2] == "| x | 0.123 | 1.000 |"
