"""Answers are found by the names that people have for them."""

import unicodedata
from pathlib import Path

import pytest

from ragbench.benchmark.names import Names
from ragbench.benchmark.vault import load_vault
from ragbench.corpus.reader import read_vault
from tests.tables import rows

PAGES = {
    "harbour/berths.md": "# Berths\n\n## Fees\n\nText.\n",
    "docs/Start.MDX": "# Start here\n\nText.\n",
    "docs/readme.md": "# Welcome\n\nText.\n",
    "docs/02-setup.md": "---\nslug: /install\n---\n# Set up\n\nText.\n",
    "docs/guide/tides.md": "---\nid: high-water\nslug: moon\n---\n# Tides\n\nText.\n",
    "index.de.md": "# Hafen\n\nText.\n",
    "harbour/berths.de.md": "# Liegeplatz\n\nText.\n",
    "index.md": "# Home\n\nText.\n",
    "_posts/2024-01-05-new-pier.md": "# New pier\n\nText.\n",
    "notes/High water (2).md": "# Water\n\nText.\n",
    "ref/signals.md": (
        "# Signals\n\n## Day {#daytime}\n\nA.\n\n### Limits\n\nB.\n\n## Night\n\nC.\n\n### Limits\n\nD.\n\n"
        "## Don't & do\n\nE.\n"
    ),
}


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    for path, text in PAGES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


@pytest.mark.parametrize(("name", "docno", "kind"), rows("benchmark_names", "document_of_a_name"))
def test_document_of_a_name(vault: Path, name: str, docno: str | None, kind: str) -> None:
    names = Names(read_vault(vault).documents, folder="site")
    assert (names.document(name), names.kind(name)) == (docno, kind)


@pytest.mark.parametrize(("name", "anchor"), rows("benchmark_names", "section_of_an_anchor"))
def test_section_of_an_anchor(vault: Path, name: str, anchor: str | None) -> None:
    names = Names(read_vault(vault).documents)
    assert names.section(name) == (anchor and f"ref/signals#{anchor}")


def test_anchors_count_repeats_as_their_site_does(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(
        "# Top\n\n## Set\n\n## Set 1\n\n## Set\n\n## Set\n\n## 3. Fees\n\nx ^block-1\n\n## End\n"
    )
    names = Names(read_vault(tmp_path).documents)
    expected = {
        "a#set-1": "top/set-1",
        "a#set-2": "top/set-2",
        "a#set-3": "top/set-3",
        "a#set_2": "top/set-3",
        "a#fees": "top/3-fees",
        "a#user-content-3-fees": "top/3-fees",
        "![[a#^block-1]]": "top/3-fees",
    }
    assert {name: names.section(name) for name in expected} == {name: f"a#{end}" for name, end in expected.items()}


def test_anchors_of_headings_without_ascii_count_from_one_in_mkdocs(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# \u6e2f\u53e3\n\n## \u6cca\u4f4d\n\n## \u6f6e\u6c50\n")
    names = Names(read_vault(tmp_path).documents)
    assert [names.section(f"a#_{n}") for n in (1, 3)] == ["a#\u6e2f\u53e3", "a#\u6e2f\u53e3/\u6f6e\u6c50"]


def test_anchors_are_found_in_any_form_of_unicode(tmp_path: Path) -> None:
    forms = [unicodedata.normalize(form, "Größe") for form in ("NFC", "NFD")]
    for name, heading in zip("ab", forms, strict=True):
        (tmp_path / f"{name}.md").write_text(f"# Top\n\n## {heading}\n\nx\n")
    names = Names(read_vault(tmp_path).documents)
    for asked in (*forms, "größe", "gr%C3%B6%C3%9Fe"):
        assert [names.section(f"{name}#{asked}") for name in "ab"] == ["a#top/größe", f"b#top/{forms[1].lower()}"]


def test_addresses_of_top_level_pages_are_found_below_the_site_of_the_answers(tmp_path: Path) -> None:
    for name in ("tides", "fees", "index"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\n## Part\n\nx\n")
    site = "https://docs.example.org/manual/"
    rows = [
        f"{site}tides/",
        f"{site}fees.html?q=1#part",
        "http://DOCS.example.org/manual/",
        "https://other.org/x/tides",
    ]
    queries = tmp_path / "q.csv"
    queries.write_text("text,relevant\n" + "".join(f"query {n},{row}\n" for n, row in enumerate(rows)))
    benchmark = load_vault(tmp_path, queries)
    assert [list(grades) for grades in benchmark.document_qrels.values()] == [["tides"], ["index"], ["fees"]]
    assert [target for _, target, _ in benchmark.missing] == ["https://other.org/x/tides"]


def test_addresses_below_the_site_only(vault: Path) -> None:
    names = Names(read_vault(vault).documents, site="https://docs.example.org/guide")
    assert names.document("https://docs.example.org/guide/harbour/berths/") == "harbour/berths"
    for url in (
        "https://DOCS.example.org/guide/harbour/berths/",
        "/guide/harbour/berths",
        "docs.example.org/guide/install",
    ):
        assert names.document(url) in ("harbour/berths", "docs/02-setup")
    assert names.document("https://other.example.org/guide/harbour/berths/") is None


def test_hint_names_the_sections_of_the_page(vault: Path) -> None:
    hint = Names(read_vault(vault).documents).hint("harbour/berths.md#costs")
    assert "harbour/berths" in hint and "#berths/fees" in hint


def test_hint_names_sections_of_the_same_heading_and_the_separator(vault: Path) -> None:
    names = Names(read_vault(vault).documents)
    assert names.hint("ref/signals.md#Limits").endswith("#signals/day/limits, #signals/night/limits?")
    assert "';'" in names.hint("harbour/berths.md, docs/readme.md")


def test_notes_say_how_answers_were_found(vault: Path) -> None:
    queries = vault / "q.csv"
    queries.write_text("text,relevant\none,/harbour/berths/\ntwo,ref/signals.md#limits-1\nthree,gone.md\n")
    (note,) = load_vault(vault, queries).notes
    assert "2 of 3 answers" in note and "1 by URL" in note and "1 by anchor of the site" in note


def test_notes_count_lost_quotes_as_not_found(vault: Path) -> None:
    queries = vault / "q.csv"
    queries.write_text('text,relevant,split\none,"harbour/berths.md\nref/signals.md ""no such words here""",Train\n')
    benchmark = load_vault(vault, queries)
    assert "1 of 2 answers were found: 1 by path" in benchmark.notes[-1]
    assert [topic.split for topic in benchmark.topics] == ["train"]
