"""ir_datasets itself, with collections of local files and a download that nobody answers."""

from __future__ import annotations

import sys
from pathlib import Path

import ir_datasets
import pytest
from ir_datasets.formats import TrecQrels, TsvDocs, TsvQueries
from ir_datasets.util import Cache, LocalDownload, RequestsDownload

from ragbench.base.types import BenchmarkError
from ragbench.extras.collect.loaders.irds import load_ir_datasets
from tests.naming import naming

TREC = Path(__file__).parents[3] / "data" / "tea" / "trec"


def dataset(docs: object, **files: Path) -> object:
    queries = TsvQueries(LocalDownload(str(files.get("queries", TREC / "topics.tsv"))))
    qrels = TrecQrels(LocalDownload(str(files.get("qrels", TREC / "test.qrels"))), {})
    return ir_datasets.Dataset(docs, queries, qrels)


def tsv(path: Path = TREC / "documents.tsv") -> TsvDocs:
    return TsvDocs(LocalDownload(str(path)))


def test_irds_id_is_one_split() -> None:
    ir_datasets.registry.register("tea-single", dataset(tsv()))
    benchmark = load_ir_datasets("tea-single")
    assert benchmark.name == "tea-single" and benchmark.splits == ("test",)
    assert [topic.qid for topic in benchmark.topics] == ["q2", "q3"]
    assert benchmark.warnings == ("tea-single: 1 topic(s) without judgments are excluded: q1",)


def test_irds_unknown_id_names_near_ones() -> None:
    with pytest.raises(BenchmarkError, check=naming("near it: beir/scifact/test")):
        load_ir_datasets("beir/scifcat/test")
    with pytest.raises(BenchmarkError, check=naming("qqqqqqqq")):
        load_ir_datasets("qqqqqqqq")


def test_irds_failed_download_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IR_DATASETS_DL_TRIES", "1")
    away = Cache(RequestsDownload("http://127.0.0.1:9/docs.tsv"), tmp_path / "docs.tsv")
    ir_datasets.registry.register("tea-away", dataset(TsvDocs(away)))
    with pytest.raises(BenchmarkError, match=r"no download from 127.0.0.1") as raised:
        load_ir_datasets("tea-away")
    assert "\n" not in str(raised.value)


def test_irds_names_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    class NeedsMore(TsvDocs):
        def docs_iter(self):  # type: ignore[no-untyped-def]
            import a_package_nobody_has  # noqa: F401

    ir_datasets.registry.register("tea-extra", dataset(NeedsMore(LocalDownload(str(TREC / "documents.tsv")))))
    with pytest.raises(BenchmarkError, check=naming("a_package_nobody_has")):
        load_ir_datasets("tea-extra")
    monkeypatch.setitem(sys.modules, "ir_datasets", None)
    with pytest.raises(BenchmarkError, check=naming("package ir_datasets")):
        load_ir_datasets("tea-extra")


def test_irds_refuses_large_collection_before_download() -> None:
    with pytest.raises(BenchmarkError, check=naming("1000000")):
        load_ir_datasets("msmarco-passage")
    ir_datasets.registry.register("tea-large", dataset(tsv()))
    with pytest.raises(BenchmarkError, check=naming("more than 3")):
        load_ir_datasets("tea-large", max_documents=3)


def test_irds_refuses_dataset_without_judgments() -> None:
    ir_datasets.registry.register("tea-docs", ir_datasets.Dataset(tsv()))
    with pytest.raises(BenchmarkError):
        load_ir_datasets("tea-docs")
    assert len(load_ir_datasets("tea-docs", topics=False).documents) == 4


def test_irds_warns_of_reversed_grades() -> None:
    ir_datasets.registry.register("cranfield/tea", dataset(tsv()))
    assert any("grade 1 is the best" in warning for warning in load_ir_datasets("cranfield/tea").warnings)
    turned = load_ir_datasets("cranfield/tea", grades={0: 0, 1: 4, 2: 3})
    assert not any("grade 1 is the best" in warning for warning in turned.warnings)
    assert turned.document_qrels["q2"] == {"tea/storing": 3, "tea/brewing": 0}
    with pytest.raises(BenchmarkError):
        load_ir_datasets("cranfield/tea", grades={1: 4, 2: 3})
