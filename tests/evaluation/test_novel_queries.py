"""Variants of queries that nobody asked before."""

from __future__ import annotations

from ragbench.base.types import Query
from ragbench.evaluation.latency import QueryMutator

QUERIES = [Query("a", "rotate the signing key"), Query("b", "restore one table"), Query("c", "backup", kind="term")]


def test_novel_queries_variants_are_new_and_as_long_as_their_query_in_the_same_words() -> None:
    mutator, vocabulary = QueryMutator(QUERIES), {word for query in QUERIES for word in query.text.split()}
    made = [mutator.of(query) for _ in range(5) for query in QUERIES[:2]]
    assert len({item.text for item in made}) == 10
    assert not {item.text for item in made} & {query.text for query in QUERIES}
    for item, query in zip(made, QUERIES[:2] * 5, strict=True):
        assert item.qid == query.qid
        assert len(item.text.split()) == len(query.text.split())
        assert set(item.text.split()) <= vocabulary
        assert sum(a != b for a, b in zip(item.text.split(), query.text.split(), strict=True)) == 1


def test_novel_queries_when_all_exchanges_are_used_up_a_number_is_new() -> None:
    mutator = QueryMutator(QUERIES, texts=["key"])
    made = [mutator.of(QUERIES[2]) for _ in range(40)]
    assert len({item.text for item in made}) == 40
    assert all(item.text not in ("backup", "key") and item.kind == "term" for item in made)
    assert sum(item.text.startswith("backup ") for item in made) >= 32  # of single words there are seven others
    assert QueryMutator([Query("e", "")]).of(Query("e", "")).text
