"""Folders as people have them, read whole: front matter of Hugo, letters of macOS, files of Windows."""

import json
import unicodedata
from pathlib import Path

import pytest

from ragbench.benchmark.vault import load_vault
from ragbench.corpus.reader import read_vault
from tests.tables import rows

FORMS = {
    "toml": '+++\ntitle = "Tide tables"\ntags = ["sea", "time"]\ndraft = false\n+++\nHigh water.\n',
    "toml of windows": '+++\r\ntitle = "Tide tables"\r\ntags = ["sea", "time"]\r\n+++\r\nHigh water.\r\n',
    "yaml after a byte order mark": "\ufeff---\ntitle: Tide tables\ntags: sea, time\n---\nHigh water.\n",
    "json between dashes": '---json\n{"title": "Tide tables", "tags": ["sea", "time"]}\n---\nHigh water.\n',
    "toml between dashes": '---toml\ntitle = "Tide tables"\ntags = ["sea", "time"]\n---\nHigh water.\n',
    "javascript between dashes": '---js\n{title: "Tide tables", tags: ["sea", "time"]}\n---\nHigh water.\n',
    "multimarkdown": "Title: Tide tables\nTags: sea,\n  time\n\nHigh water.\n",
    "zola": '+++\ntitle = "Tide tables"\n[taxonomies]\ntags = ["sea", "time"]\n+++\nHigh water.\n',
    "logseq": "title:: Tide tables\ntags:: sea, time\n\nHigh water.\n",
    "json of gitlab": ';;;\n{"title": "Tide tables", "tags": ["sea", "time"]}\n;;;\nHigh water.\n',
    "json": json.dumps({"title": "Tide tables", "tags": ["sea", "time"]}, indent=2) + "\nHigh water.\n",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_notes_have_the_metadata_of_every_form(tmp_path: Path, text: str) -> None:
    (tmp_path / "tides.md").write_bytes(text.encode())
    vault = read_vault(tmp_path)
    (page,) = vault.documents
    assert (page.title, page.tags, page.text.lstrip()) == ("Tide tables", ("sea", "time"), "High water.\n")
    assert vault.warnings == ()


@pytest.mark.parametrize(
    ("front", "text", "line"),
    rows("corpus_notes_of_people", "notes_of_a_home_page_have_the_texts_of_its_hero"),
    ids=["VitePress", "VuePress", "more texts than lines"],
)
def test_notes_of_a_home_page_have_the_texts_of_its_hero(tmp_path: Path, front: str, text: str, line: int) -> None:
    (tmp_path / "index.md").write_text(f"---\n{front}\n---\nBody.\n")
    (page,) = read_vault(tmp_path).documents
    assert (page.text, page.first_line) == (f"{text}Body.\n", 1)
    assert page.text[: page.text.index("Body")].count("\n") == line - 1


def test_notes_of_macos_contain_composed_quotes_and_have_composed_names(tmp_path: Path) -> None:
    page = unicodedata.normalize("NFD", "f\u00e4hre.md")
    (tmp_path / page).write_text(
        unicodedata.normalize("NFD", "# F\u00e4hre\n\nDie F\u00e4hre f\u00e4hrt t\u00e4glich.\n")
    )
    queries = tmp_path / "q.csv"
    queries.write_text('text,relevant\nwann,"f\u00e4hre.md ""Die F\u00e4hre f\u00e4hrt t\u00e4glich"""\n')
    (quote,) = load_vault(tmp_path, queries).quotes
    assert (quote.state, quote.docno) == ("kept", unicodedata.normalize("NFD", "f\u00e4hre"))


def test_notes_of_notion_have_a_title_without_id(tmp_path: Path) -> None:
    (tmp_path / "Tide tables 0123456789abcdef0123456789abcdef.md").write_text("High water.\n")
    assert read_vault(tmp_path).documents[0].title == "Tide tables"


def test_notes_of_pandoc_have_a_title_block(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("% Tide tables\n% Ann\n\nHigh water.\n")
    (page,) = read_vault(tmp_path).documents
    assert (page.title, dict(page.frontmatter)) == ("Tide tables", {"title": "Tide tables", "author": "Ann"})


@pytest.mark.parametrize(
    "text", ["Note: a\nb: c\n\nx\n", "Title: is\nno metadata\n\nx\n", "% 50\nx\n", "key:: value\n"]
)
def test_prose_is_no_metadata(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.md").write_text(text)
    (page,) = read_vault(tmp_path).documents
    assert page.frontmatter == {} and page.title == "a"


def test_notes_in_utf16_without_a_mark_are_text(tmp_path: Path) -> None:
    for encoding in ("utf-16-le", "utf-16-be"):
        (tmp_path / f"{encoding}.md").write_bytes("# Tide tables\n\nHigh water, \u20ac 3.\n".encode(encoding))
    vault = read_vault(tmp_path)
    assert [page.text for page in vault.documents] == ["# Tide tables\n\nHigh water, \u20ac 3.\n"] * 2
    assert [warning.name for warning in vault.warnings] == ["encoding"] * 2


def test_notes_of_other_programs_are_read_by_their_endings(tmp_path: Path) -> None:
    for name in ("a.qmd", "b.Rmd", "c.mdown", "d.mkd", "e.txt"):
        (tmp_path / name).write_text("# Page\n\nSee [a](a.qmd).\n")
    documents = read_vault(tmp_path).documents
    assert [page.path for page in documents] == ["a.qmd", "b.Rmd", "c.mdown", "d.mkd"]
    assert {link.target for page in documents for link in page.links} == {"a"}


def test_notes_of_notion_are_found_without_their_ids(tmp_path: Path) -> None:
    number = "aabbccddeeff00112233445566778899"
    (tmp_path / f"Plans {number}").mkdir()
    (tmp_path / f"Plans {number}.md").write_text(f"# Plans\n\n[Sub](Plans%20{number}/Sub%20{number[::-1]}.md)\n")
    (tmp_path / f"Plans {number}/Sub {number[::-1]}.md").write_text("# Sub\n\nBuy rope.\n")
    (tmp_path / "queries.csv").write_text("text,relevant\nrope,Sub.md\nrope too,Plans/Sub.md\n")
    benchmark = load_vault(tmp_path, tmp_path / "queries.csv")
    sub = f"Plans%20{number}/Sub%20{number[::-1]}"
    assert [link.target for document in benchmark.documents for link in document.links] == [sub]
    assert [list(grades) for grades in benchmark.document_qrels.values()] == [[sub], [sub]]
