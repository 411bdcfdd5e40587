"""Search of documents in several languages: each analysed by its own, queries by all."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base.types import ConfigError
from ragbench.index import chunks, language_detection
from ragbench.index.analyzers import detection, document_analyzers, query_terms
from ragbench.index.lexical import LexicalIndex, LexicalSpec, build_lexical, indexed_rows, merge_lexical
from ragbench.index.terms import TermIndex, build_terms

MIXED = "german+technical"
GERMAN = "Die Ketten der Räder sind nicht mit dem Öl und der Bürste zu reinigen."
ENGLISH = "The chains of the wheels are in the box and you die for that with this."


@pytest.fixture
def table(handmade, page):
    return handmade([page("eins", [GERMAN]), page("two", [ENGLISH]), page("x", ["3"])]).chunks


def test_document_has_the_analyzer_of_its_language_else_the_first(table) -> None:
    assert document_analyzers(MIXED, table) == ["german", "technical", "german"]
    assert document_analyzers("technical+german", table) == ["german", "technical", "technical"]
    assert document_analyzers("english", table) == ["english"] * 3


def test_languages_of_a_mixed_collection_are_detected_once(table, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(chunks, "language", lambda text: asked.append(text) or "German")
    for name in (MIXED, "technical+german"):
        document_analyzers(name, table)
    assert len(asked) == table.n_documents


def test_parts_of_several_languages_depend_on_how_languages_are_detected() -> None:
    assert detection(MIXED) == [language_detection.VERSION]
    assert detection("german") == []


def test_query_has_the_terms_of_all_analyzers_without_stop_words_of_any() -> None:
    assert query_terms(MIXED, "die Ketten of wheels") == ["kett", "ketten", "wheel"]
    assert query_terms(MIXED, "chain chain") == ["chain", "chain"]
    assert query_terms("german", "die Ketten") == ["kett"]


@pytest.mark.parametrize("unit", ["chunk", "document"])
def test_mixed_index_finds_inflected_words_of_every_language(table, tmp_path: Path, unit) -> None:
    spec = LexicalSpec(("content", "title"), MIXED, unit)
    build_lexical(tmp_path / "index", spec, indexed_rows(table, spec))
    index = LexicalIndex(tmp_path / "index", spec)
    for query, found in {"Kette": [0], "Rad": [0], "chain": [1], "wheel": [1], "die": [], "3": [2]}.items():
        assert index.search(query, 3).chunks.tolist() == found, query
    index.close()


def test_mixed_index_merged_from_parts_finds_the_same(table, tmp_path: Path) -> None:
    spec = LexicalSpec(("content", "title"), MIXED)
    rows = list(indexed_rows(table, spec))
    build_lexical(tmp_path / "a", spec, rows[:1])
    build_lexical(tmp_path / "b", spec, rows[1:], number=1)
    merge_lexical(tmp_path / "merged", spec, [tmp_path / "a", tmp_path / "b"])
    index = LexicalIndex(tmp_path / "merged", spec)
    assert [index.search(query, 3).chunks.tolist() for query in ("Kette", "chain")] == [[0], [1]]
    index.close()


def test_mixed_terms_of_a_query_are_those_that_documents_hold(table, tmp_path: Path) -> None:
    build_terms(tmp_path, table, MIXED)
    terms = TermIndex(tmp_path, table, MIXED)
    held = terms.of("Kette chain die Mond")
    assert (held >= 0).tolist() == [True, True, False]
    assert held[:2].tolist() == terms.of("Ketten chains").tolist()


@pytest.mark.parametrize("name", ["german+klingon", "german+german", "german+"])
def test_unknown_analyzer_among_several_is_refused(name: str) -> None:
    with pytest.raises(ConfigError, match=r"several for documents in several languages \(german\+technical\)"):
        LexicalSpec(analyzer=name)
