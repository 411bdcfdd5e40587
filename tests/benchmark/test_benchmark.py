from __future__ import annotations

from dataclasses import replace

import pytest

from ragbench.base.types import BenchmarkError
from ragbench.benchmark.benchmark import Benchmark, Topic, area, docno_of_section, topic_area
from ragbench.benchmark.documents import make_document
from ragbench.benchmark.load import load
from tests.naming import naming

DOCUMENT = make_document("a/b", "t", "x", {})


def test_area_is_first_folder() -> None:
    assert [area(docno) for docno in ("gate/adr/7", "gate/index", "index")] == ["gate", "gate", ""]
    assert topic_area({"a/1": 1, "b/1": 2, "b/2": 2, "c/1": 2, "a/2": 1}) == "b"
    assert topic_area({"c/1": 2, "a/1": 2}) == "a"
    assert topic_area({"c/1": 0}) == topic_area({}) == ""


def test_docno_of_section() -> None:
    assert docno_of_section("kit/c##types/generics") == "kit/c#"
    assert docno_of_section("kit/c#") == "kit/c"
    assert docno_of_section("kit/index") == "kit/index"


def test_benchmark_refuses_repeated_ids() -> None:
    with pytest.raises(BenchmarkError):
        Benchmark("b", (), (), {})
    with pytest.raises(BenchmarkError, check=naming("a/b")):
        Benchmark("b", (DOCUMENT, DOCUMENT), (), {})
    with pytest.raises(BenchmarkError, check=naming("topic 'q'")):
        Benchmark("b", (DOCUMENT,), (Topic("q", "x"), Topic("q", "y")), {})


def test_select_takes_topics_of_split() -> None:
    topics = (Topic("p", "x", split="train"), Topic("q", "y"))
    benchmark = Benchmark("b", (DOCUMENT,), topics, {})
    assert benchmark.splits == ("test", "train")
    assert benchmark.select("train") == topics[:1] and benchmark.select() == topics
    with pytest.raises(BenchmarkError, check=naming("split 'dev'")):
        benchmark.select("dev")


def test_digest_follows_documents_topics_and_judgments() -> None:
    one = Benchmark("b", (DOCUMENT,), (Topic("q", "x"),), {"q": {"a/b": 1}})
    others = [
        Benchmark("b", (DOCUMENT,), (Topic("q", "y"),), {"q": {"a/b": 1}}),
        Benchmark("b", (DOCUMENT,), (Topic("q", "x"),), {"q": {"a/b": 2}}),
        Benchmark("b", (DOCUMENT,), (Topic("q", "x"),), {"q": {"a/b": 1}}, {"q": {"a/b#t": 1}}),
    ]
    assert len({benchmark.digest for benchmark in (one, *others)}) == 4
    assert Benchmark("other name", (DOCUMENT,), (Topic("q", "x"),), {"q": {"a/b": 1}}).digest == one.digest


def test_builtin_benchmark_has_size_of_seed() -> None:
    # seed 000, section 9: fifty documents of five topics, a hundred queries with judgments
    benchmark = load({"loader": "builtin"})
    assert len(benchmark.documents) >= 50
    assert len({area(document.docno) for document in benchmark.documents}) >= 5
    assert len(benchmark.topics) >= 100


def test_benchmark_repr_is_one_line(benchmark_small) -> None:
    assert repr(benchmark_small) == "Benchmark('lantern': 8 documents, 5 topics, 7 judgments)"


def test_sections_count_if_half_of_topics_have_some(benchmark_small: Benchmark) -> None:
    assert benchmark_small.by_section
    first = next(iter(benchmark_small.section_qrels))
    few = replace(benchmark_small, section_qrels={first: benchmark_small.section_qrels[first]})
    assert not few.by_section
    assert not replace(benchmark_small, section_qrels={}).by_section
