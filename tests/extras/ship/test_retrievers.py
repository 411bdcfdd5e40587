"""A bundle as a retriever of other libraries, in their own chains."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ragbench

QUESTION = "how do programs prove their identity"


@pytest.fixture(scope="module")
def expected(small_bundle: Path):
    with ragbench.load(small_bundle) as bundle:
        return bundle.search(QUESTION, 3)


@pytest.mark.slow
def test_langchain(small_bundle: Path, expected) -> None:
    pytest.importorskip("langchain_core", reason="install ragbench[langchain]")
    from langchain_core.runnables import RunnableLambda

    from ragbench.extras.ship.langchain import BundleRetriever

    retriever = BundleRetriever.open(small_bundle, top_n=3)
    found = retriever.invoke(QUESTION)
    assert [(each.id, each.page_content) for each in found] == [(hit.chunk_id, hit.passage) for hit in expected]
    assert found[0].metadata["docno"] == expected[0].docno
    json.dumps(found[0].metadata)
    assert (retriever | RunnableLambda(len)).invoke(QUESTION) == 3
    retriever.bundle.close()


@pytest.mark.slow
def test_llamaindex(small_bundle: Path, expected) -> None:
    pytest.importorskip("llama_index.core", reason="install ragbench[llamaindex]")
    from ragbench.extras.ship.llamaindex import BundleRetriever

    with ragbench.load(small_bundle) as bundle:
        found = BundleRetriever(bundle, 3).retrieve(QUESTION)
        keyword = BundleRetriever(bundle, 3, mode="keyword").retrieve(QUESTION)
    assert [(each.node.id_, each.text, each.score) for each in found] == [
        (hit.chunk_id, hit.passage, hit.score) for hit in expected
    ]
    assert [each.node.id_ for each in keyword] != [each.node.id_ for each in found]
