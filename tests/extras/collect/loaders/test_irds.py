"""ir_datasets itself, with collections of local files and a download that nobody answers."""

from __future__ import annotations

import sys
from pathlib import Path

import ir_datasets
import pytest
from ir_datasets.formats import TrecQrels, TsvDocs, TsvQueries
from ir_datasets.util import Cache, LocalDownload, RequestsDownload

from ragbench.base.errors import BenchmarkError
from ragbench.extras.collect.loaders.irds import load_ir_datasets

TREC = Path(__file__).parents[3] / "data" / "tea" / "trec"


def dataset(docs: object, **files: Path) -> object:
    queries = TsvQueries(LocalDownload(str(files.get("queries", TREC / "topics.tsv"))))
    qrels = TrecQrels(LocalDownload(str(files.get("qrels", TREC / "test.qrels"))), {})
    return ir_datasets.Dataset(docs, queries, qrels)


def tsv(path: Path = TREC / "documents.tsv") -> TsvDocs:
    return TsvDocs(LocalDownload(str(path)))


def test_one_id_is_one_split() -> None:
    ir_datasets.registry.register("tea-single", dataset(tsv()))
    benchmark = load_ir_datasets("tea-single")
    assert benchmark.name == "tea-single" and benchmark.splits == ("test",)
    assert [topic.qid for topic in benchmark.topics] == ["q2", "q3"]
    assert benchmark.warnings == ("tea-single: 1 topic(s) without judgments are excluded: q1",)


def test_an_unknown_id_is_answered_with_those_near_it() -> None:
    with pytest.raises(BenchmarkError, match=r"no dataset 'beir/scifcat/test'; near it: beir/scifact/test"):
        load_ir_datasets("beir/scifcat/test")
    with pytest.raises(BenchmarkError, match="no dataset 'qqqqqqqq'; its site lists the ids"):
        load_ir_datasets("qqqqqqqq")


def test_a_failed_download_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_DATASETS_DL_TRIES", "1")
    away = Cache(RequestsDownload("http://127.0.0.1:9/docs.tsv"), tmp_path / "docs.tsv")
    ir_datasets.registry.register("tea-away", dataset(TsvDocs(away)))
    with pytest.raises(
        BenchmarkError, match=r"'tea-away' could not be read \(no download from 127.0.0.1.*data=beir"
    ) as raised:
        load_ir_datasets("tea-away")
    assert "\n" not in str(raised.value)


def test_a_missing_extra_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    class NeedsMore(TsvDocs):
        def docs_iter(self):  # type: ignore[no-untyped-def]
            import a_package_nobody_has  # noqa: F401

    ir_datasets.registry.register("tea-extra", dataset(NeedsMore(LocalDownload(str(TREC / "documents.tsv")))))
    with pytest.raises(BenchmarkError, match="'tea-extra' needs the package a_package_nobody_has"):
        load_ir_datasets("tea-extra")
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(BenchmarkError, match="'tea-extra' needs the package ir_datasets"):
        load_ir_datasets("tea-extra")


def test_a_collection_too_large_for_memory_is_refused_before_its_download() -> None:
    with pytest.raises(BenchmarkError, match="msmarco-passage has more than 1000000 documents"):
        load_ir_datasets("msmarco-passage")
    ir_datasets.registry.register("tea-large", dataset(tsv()))
    with pytest.raises(BenchmarkError, match="tea-large has more than 3 documents"):
        load_ir_datasets("tea-large", max_documents=3)


def test_a_dataset_without_judgments_is_refused() -> None:
    ir_datasets.registry.register("tea-docs", ir_datasets.Dataset(tsv()))
    with pytest.raises(BenchmarkError, match="'tea-docs' has no queries"):
        load_ir_datasets("tea-docs")
    assert len(load_ir_datasets("tea-docs", topics=False).documents) == 4


def test_collections_whose_best_grade_is_one_are_pointed_out() -> None:
    ir_datasets.registry.register("cranfield/tea", dataset(tsv()))
    assert any("grade 1 is the best" in warning for warning in load_ir_datasets("cranfield/tea").warnings)
    turned = load_ir_datasets("cranfield/tea", grades={0: 0, 1: 4, 2: 3})
    assert not any("grade 1 is the best" in warning for warning in turned.warnings)
    assert turned.document_qrels["q2"] == {"tea/storing": 3, "tea/brewing": 0}
    with pytest.raises(BenchmarkError, match="grade 0 is missing"):
        load_ir_datasets("cranfield/tea", grades={1: 4, 2: 3})
