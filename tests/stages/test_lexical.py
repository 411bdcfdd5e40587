"""Lexical retrieval: any of the words, the best first."""

from dataclasses import replace

import numpy as np

from ragbench.base.rankings import Ranking
from ragbench.index.index import Index
from ragbench.index.lexical import LexicalSpec
from ragbench.search.stages.retrieve import RetrieveLexical, _chunks_of, _documents_with_allowed


def test_retrieve_lexical_finds_by_any_word(state, index) -> None:
    # an AND of all words would match nothing here
    (after,) = RetrieveLexical(depth=3)([state("LNT-204 unicorns rainbows")], index)
    assert "LNT-204" in index.chunks.text(after.rankings["lexical"].chunks[0])


def test_retrieve_lexical_searches_the_text_for_its_source(state, index) -> None:
    (after,) = RetrieveLexical(depth=1)([state("nothing of it").with_text("lexical", "sixty-four masts")], index)
    assert index.chunks.docno(after.rankings["lexical"].chunks[0]) == "reference/limits"


def test_retrieve_lexical_searches_weighted_fields(state, index) -> None:
    by_title, by_text = (RetrieveLexical(fields={name: 1.0}, depth=200) for name in ("title", "content"))
    title = index.chunks.titles[0]
    named, by_content = (stage([state(title)], index)[0].rankings["lexical"] for stage in (by_title, by_text))
    assert named.chunks[0] == index.chunks.chunks_of(0)[0]
    assert len(set(named.scores[: len(range(*index.chunks.chunks_of(0)))].tolist())) == 1
    assert named != by_content


def test_retrieve_lexical_scores_chunks_by_whole_documents(state, index) -> None:
    whole = RetrieveLexical(depth=2, source="documents", index=LexicalSpec(unit="document"))
    with_documents = Index(
        replace(index.spec, sources=(("documents", LexicalSpec(unit="document")),)),
        *(index.collection, index._documents, index.store, index.models),
    )
    (after,) = whole([state("sixty-four masts")], with_documents)
    ranking, table = after.rankings["documents"], index.chunks
    assert ranking.of_documents
    documents = table.document[ranking.chunks]
    first, second = dict.fromkeys(documents.tolist())
    assert table.docnos[first] == "reference/limits"
    for row in (first, second):
        assert ranking.chunks[documents == row].tolist() == list(range(*table.chunks_of(row)))
        assert len(set(ranking.scores[documents == row].tolist())) == 1
    assert ranking.scores[0] > ranking.scores[-1]
    only = np.zeros(len(table), dtype=np.bool_)
    only[table.chunks_of(second)[0]] = True
    assert _chunks_of(Ranking.ordered([second], [1.0]), table, only).chunks.tolist() == [table.chunks_of(second)[0]]
    assert np.flatnonzero(_documents_with_allowed(table, only)).tolist() == [second]


def test_retrieve_lexical_source_takes_the_query_of_lexical(state) -> None:
    whole = RetrieveLexical(source="documents", index=LexicalSpec(unit="document"))
    asked = state("lamps").with_text("lexical", "lanterns")
    assert whole.question(asked) == ("lanterns", None)
    assert whole.question(asked.with_text("documents", "lights")) == ("lights", None)
