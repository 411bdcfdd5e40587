"""Folders as people have them, read whole: front matter of Hugo, letters of macOS, files of Windows."""

import json
import unicodedata
from pathlib import Path

import pytest

from ragbench.benchmark.vault import load_vault
from ragbench.corpus.reader import read_vault

FORMS = {
    "toml": '+++\ntitle = "Tide tables"\ntags = ["sea", "time"]\ndraft = false\n+++\nHigh water.\n',
    "toml of windows": '+++\r\ntitle = "Tide tables"\r\ntags = ["sea", "time"]\r\n+++\r\nHigh water.\r\n',
    "yaml after a byte order mark": "\ufeff---\ntitle: Tide tables\ntags: sea, time\n---\nHigh water.\n",
    "json": json.dumps({"title": "Tide tables", "tags": ["sea", "time"]}, indent=2) + "\nHigh water.\n",
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS.keys())
def test_notes_have_the_metadata_of_every_form(tmp_path: Path, text: str) -> None:
    (tmp_path / "tides.md").write_bytes(text.encode())
    vault = read_vault(tmp_path)
    (page,) = vault.documents
    assert (page.title, page.tags, page.text) == ("Tide tables", ("sea", "time"), "High water.\n")
    assert vault.warnings == ()


def test_notes_of_macos_contain_composed_quotes_and_have_composed_names(tmp_path: Path) -> None:
    page = unicodedata.normalize("NFD", "f\u00e4hre.md")
    (tmp_path / page).write_text(
        unicodedata.normalize("NFD", "# F\u00e4hre\n\nDie F\u00e4hre f\u00e4hrt t\u00e4glich.\n")
    )
    queries = tmp_path / "q.csv"
    queries.write_text('text,relevant\nwann,"f\u00e4hre.md ""Die F\u00e4hre f\u00e4hrt t\u00e4glich"""\n')
    (quote,) = load_vault(tmp_path, queries).quotes
    assert (quote.state, quote.docno) == ("kept", unicodedata.normalize("NFD", "f\u00e4hre"))
