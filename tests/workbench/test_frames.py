"""Tables in, verdicts out: benchmarks of data frames, runs compared on judgments alone, quick runs timed later."""

from __future__ import annotations

import asyncio
from collections import namedtuple
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ir_measures
import numpy as np
import pandas as pd
import pytest

import ragbench
from ragbench import Benchmark, Experiment, Results, load_benchmark
from ragbench.base.types import BenchmarkError, ConfigError, ResultsError
from tests.naming import naming

TEA = Path(__file__).parents[1] / "data" / "tea" / "beir"
MEASURES = ["nDCG@10", "RR", "R@100", "AP", "P@5"]


@pytest.fixture(scope="module")
def tea() -> Benchmark:
    return load_benchmark("beir", folder=TEA)


@pytest.fixture(scope="module")
def frames(tea: Benchmark) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    lines = [pd.read_json(TEA / f"{name}.jsonl", lines=True) for name in ("corpus", "queries")]
    documents = lines[0].rename(columns={"_id": "docno"})[["docno", "title", "text"]]
    queries = lines[1].rename(columns={"_id": "qid", "text": "query"})[["qid", "query"]]
    rows = [(qid, docno, grade) for qid, judged in tea.document_qrels.items() for docno, grade in judged.items()]
    return documents, queries, pd.DataFrame(rows, columns=["qid", "docno", "label"])


@pytest.fixture(scope="module")
def made() -> tuple[dict[str, pd.DataFrame], pd.DataFrame]:
    """Two runs over 200 queries, the second better, with ties, repeated scores and a query without hits."""
    chance = np.random.default_rng(7)
    qrels, runs = [], {"bm25": [], "mine": []}
    for number in range(200):
        qid = f"q{number}"
        docnos = [f"d{item}" for item in range(30)]
        relevant = chance.choice(docnos, 3, replace=False)
        qrels += [(qid, docno, int(grade)) for docno, grade in zip(relevant, (2, 1, 1), strict=True)]
        for name, gain in (("bm25", 0.0), ("mine", 1.5)):
            scores = np.round(chance.normal(size=30) + gain * np.isin(docnos, relevant), 1)
            runs[name] += [] if name == "bm25" and number == 3 else list(zip([qid] * 30, docnos, scores, strict=True))
    frames = {name: pd.DataFrame(rows, columns=["qid", "docno", "score"]) for name, rows in runs.items()}
    return frames, pd.DataFrame(qrels, columns=["qid", "docno", "label"])


def test_workbench_benchmark_of_frames_is_that_of_the_files(tea: Benchmark, frames: Any) -> None:
    documents, queries, qrels = frames
    made = Benchmark.from_frames(documents, queries, qrels, name="tea")
    parts = ("docno", "title", "text", "sections")
    for ours, theirs in zip(made.documents, tea.documents, strict=True):
        assert [getattr(ours, part) for part in parts] == [getattr(theirs, part) for part in parts]
    assert {topic.qid: topic.text for topic in made.topics} == {topic.qid: topic.text for topic in tea.topics}
    assert made.document_qrels == tea.document_qrels
    assert made.splits == ("test",)


def test_workbench_other_names_and_shapes_give_the_same_benchmark(frames: Any) -> None:
    documents, queries, qrels = frames
    expected = Benchmark.from_frames(documents, queries, qrels)
    record = {
        name: namedtuple(name, fields)
        for name, fields in {
            "doc": "doc_id text title",
            "query": "query_id text",
            "qrel": "query_id doc_id relevance",
        }.items()
    }
    dataset = SimpleNamespace(
        docs_iter=lambda: iter([record["doc"](row.docno, row.text, row.title) for row in documents.itertuples()]),
        queries_iter=lambda: iter([record["query"](row.qid, row.query) for row in queries.itertuples()]),
        qrels_iter=lambda: iter([record["qrel"](row.qid, row.docno, row.label) for row in qrels.itertuples()]),
    )
    terrier = SimpleNamespace(
        get_corpus_iter=lambda verbose=True: iter(documents.to_dict("records")),
        get_topics=lambda: queries,
        get_qrels=lambda: qrels,
    )
    by_qid = {qid: dict(zip(part["docno"], part["label"], strict=True)) for qid, part in qrels.groupby("qid")}
    given = [
        (documents.to_dict("records"), queries.to_dict("records"), qrels.to_dict("records")),
        (documents.set_index("docno").to_dict("index"), dict(queries.itertuples(index=False)), by_qid),
        (
            documents.rename(columns={"docno": "_id"}),
            queries.rename(columns={"qid": "query_id", "query": "text"}),
            qrels,
        ),
        (documents, queries, qrels.set_axis(["q_id", "doc_id", "score"], axis=1)),
        (dataset,),
        (terrier,),
    ]
    for item in given:
        made = Benchmark.from_frames(*item)
        assert (made.collection, made.questions, made.document_qrels) == (
            expected.collection,
            expected.questions,
            expected.document_qrels,
        )


@pytest.mark.parametrize(
    "part, change, sentence",
    [
        (0, lambda frame: frame.drop(columns="docno"), "documents, row 1 has no column docno, only title, text"),
        (0, lambda frame: frame.assign(text=3), "documents, row 1: the text of .* is 3: give a text"),
        (0, lambda frame: pd.concat([frame, frame]), r"documents, row \d+ repeats document id"),
        (0, lambda frame: 7, "documents is a int: give a DataFrame, a dict or a list of dicts"),
        (1, lambda frame: frame.assign(query=" "), "queries, row 1: query .* is empty"),
        (1, lambda frame: pd.concat([frame, frame]), r"queries, row \d+ repeats query id"),
        (1, lambda frame: frame.assign(qid="zz").head(1), "no topic has both a text and a judgment"),
        (2, lambda frame: frame.assign(label="high"), "qrels: the grade of .* is 'high', which is not a number"),
        (2, lambda frame: frame.assign(label=0.5), r"the grade of .* is 0.5: give a whole number"),
        (2, lambda frame: frame.head(0), "qrels has no rows"),
    ],
)
def test_workbench_bad_table_is_one_sentence(frames: Any, part: int, change: Any, sentence: str) -> None:
    given = list(frames)
    given[part] = change(given[part])
    with pytest.raises(BenchmarkError, match=sentence) as caught:
        Benchmark.from_frames(*given)
    assert "\n" not in str(caught.value)


def test_workbench_values_of_runs_are_those_of_ir_measures(made: Any) -> None:
    runs, qrels = made
    result = ragbench.evaluate(runs, qrels, MEASURES)
    parsed = list(map(ir_measures.parse_measure, MEASURES))
    judged = [ir_measures.Qrel(*row) for row in qrels.itertuples(index=False)]
    for name, run in runs.items():
        scored = [ir_measures.ScoredDoc(*row) for row in run.itertuples(index=False)]
        theirs = ir_measures.calc_aggregate(parsed, judged, scored)
        ours = result.summary().set_index("arm").loc[name]
        for measure, value in theirs.items():
            assert ours[str(measure)] == pytest.approx(value, abs=1e-9), (name, measure)


def test_workbench_runs_get_verdicts_without_documents(made: Any, tmp_path: Path) -> None:
    runs, qrels = made
    result = ragbench.evaluate(runs, qrels, ["ndcg_cut_10", ir_measures.RR, "map", "recall@100"])
    assert list(result.summary().columns) == ["arm", "nDCG@10", "RR", "AP", "R@100"]
    (row,) = result.verdicts.to_dict("records")
    assert (row["factor"], row["verdict"], row["quality"], row["n"]) == ("mine", "adopt", "better", 200)
    assert row["ci_low"] > 0
    (same,) = ragbench.evaluate({"a": runs["mine"], "b": runs["mine"]}, qrels).verdicts.to_dict("records")
    assert (same["verdict"], same["effect"], same["p"]) == ("equivalent", 0.0, 1.0)
    (turned,) = ragbench.evaluate(runs, qrels, baseline="mine").verdicts.to_dict("records")
    assert (turned["factor"], turned["verdict"]) == ("bm25", "reject")
    claims = result.claims({"mine beats bm25": row["effect"], "mine  beats bm25": 0.9})
    assert list(claims["result"]) == ["as claimed", "lower than claimed"]
    assert "adopt" in result._repr_html_() and "<svg" in result._repr_html_() and "<script" not in result._repr_html_()
    assert result.to_latex().startswith(r"\begin{tabular}") and "| mine |" in result.to_markdown()
    assert [trace.name for trace in result.plot().data] == ["adopt"]
    for name, run in runs.items():
        lines = (f"{row.qid} Q0 {row.docno} 0 {row.score} x\n" for row in run.itertuples())
        (tmp_path / name).write_text("".join(lines))
    (tmp_path / "qrels").write_text("".join(f"{row.qid} 0 {row.docno} {row.label}\n" for row in qrels.itertuples()))
    files = ragbench.evaluate({name: tmp_path / name for name in runs}, tmp_path / "qrels")
    assert files.verdicts["effect"].tolist() == result.verdicts["effect"].tolist()


def test_workbench_runs_that_cannot_be_compared_are_refused(made: Any) -> None:
    runs, qrels = made
    with pytest.raises(ConfigError, check=naming("'old'")):
        ragbench.evaluate(runs, qrels, baseline="old")
    with pytest.raises(ConfigError, check=naming("'ndcgg'")):
        ragbench.evaluate(runs, qrels, ["ndcgg"])
    with pytest.raises(ResultsError, check=naming("'other'")):
        ragbench.evaluate({**runs, "other": {"z": ["d1"]}}, qrels)
    with pytest.raises(ConfigError, check=naming("'mine wins'")):
        ragbench.evaluate(runs, qrels).claims({"mine wins": 1.0})


@pytest.mark.filterwarnings("ignore")  # MLflow and the libraries below it warn of each other
@pytest.mark.slow
def test_workbench_quick_run_is_timed_later_and_recorded_in_mlflow(frames: Any, tmp_path: Path) -> None:
    benchmark = Benchmark.from_frames(*frames, name="tea")
    texts = dict(frames[0][["docno", "text"]].itertuples(index=False))

    def mine(query: str, k: int) -> list[str]:
        return sorted(texts, key=lambda docno: -sum(word in texts[docno] for word in query.split()))[:k]

    arms = {"baseline": "exp=lexical_only", "mine": mine}
    around = [f"paths.results={tmp_path}", "latency.queries=3", "latency.rounds=1", "latency.cold_start=false"]
    experiment = Experiment.arms(arms, benchmark, *around, quick=True)
    assert repr(experiment) == "Experiment(baseline, mine; quality only)"
    results = experiment.run()
    assert repr(results).endswith("; quality only, .time() measures latency)")
    shown = results._repr_html_()
    assert "mine" in shown and "<svg" in shown and ".time()" in shown
    del experiment
    timed = results.time()
    assert set(timed.latency["arm"]) == {"baseline", "mine"}
    assert timed.values("mine").to_dict() == results.values("mine").to_dict()
    assert timed.verdicts["latency_ms"].notna().all() and ".time()" not in timed._repr_html_()
    assert timed.to_mlflow(f"sqlite:///{tmp_path / 'm.db'}")
    assert "| mine |" in timed.to_markdown()


@ragbench.stage(before="cut")
def halve_drafts(query: str, hits: Any, factor: float = 0.5) -> list[float]:
    """Count drafts less."""
    return [hit.score * (factor if "draft" in hit.docno else 1) for hit in hits]


def test_pipeline_is_a_value_that_is_an_arm_and_a_command(tea: Benchmark, tmp_path: Path) -> None:
    base = ragbench.pipeline("exp=baseline")
    deep = base.with_(p6=True, dense={"depth": 50}).with_("dense.depth=40")
    assert deep.overrides == ("exp=baseline", "p6=on", "dense.depth=40")
    assert ragbench.pipeline(*deep.overrides).pipeline == deep.pipeline != base.pipeline
    assert repr(deep).endswith(".") and "<li>" in deep._repr_html_() and "<script" not in deep._repr_html_()
    staged = ragbench.pipeline("exp=lexical_only", halve_drafts(factor=0.3))
    assert staged.overrides == ("exp=lexical_only", "halve_drafts=on", "halve_drafts.factor=0.3")
    assert ragbench.pipeline(*staged.overrides).pipeline == staged.pipeline
    with pytest.raises(ConfigError, check=naming("unknown")):
        base.with_(p99=True)
    around = {"paths": {"results": str(tmp_path)}}
    experiment = Experiment.arms({"base": ragbench.pipeline("exp=lexical_only"), "staged": staged}, tea, **around)
    assert experiment.pipelines["staged"] == staged.pipeline


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_workbench_measures_are_metrics_of_mlflow(tmp_path: Path) -> None:
    mlflow = pytest.importorskip("mlflow")
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(f"sqlite:///{tmp_path / 'm.db'}")
    folder = mlflow.create_experiment("retrieval", artifact_location=(tmp_path / "artifacts").as_uri())
    table = pd.DataFrame(
        {"question": ["a", "b", "c"], "found": [["x", "y"], ["z", "x"], []], "truth": [["y"], ["z"], ["x"]]}
    )
    with mlflow.start_run(experiment_id=folder):
        made = mlflow.models.evaluate(
            data=table,
            predictions="found",
            targets="truth",
            model_type="retriever",
            extra_metrics=ragbench.mlflow_metrics(["ndcg_cut_10", "RR"]),
        )
    mlflow.set_tracking_uri(before)
    assert made.metrics["ndcg_at_10/mean"] == pytest.approx((1 / np.log2(3) + 1 + 0) / 3)
    assert made.metrics["mrr/mean"] == pytest.approx(0.5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*unsafe cast from uint64 to int64")  # of numba, where ranx is first compiled
def test_workbench_objects_of_ranx_are_runs_and_have_its_values(made: Any) -> None:
    ranx = pytest.importorskip("ranx")
    frames, judged = made
    grades = judged.astype({"label": int}).groupby("qid")
    qrels = ranx.Qrels({qid: dict(zip(part["docno"], part["label"].tolist(), strict=True)) for qid, part in grades})
    by_qid = {qid: dict(zip(part["docno"], part["score"], strict=True)) for qid, part in frames["mine"].groupby("qid")}
    # ranx breaks ties in another way, so the run has none.
    hits = by_qid.items()
    run = ranx.Run({qid: {item: score - n / 1e3 for n, (item, score) in enumerate(of.items())} for qid, of in hits})
    names = ["ndcg@10", "mrr", "recall@10"]
    theirs = ranx.evaluate(qrels, run, names)
    ours = ragbench.evaluate({"mine": run}, qrels, names).summary().iloc[0]
    for name, measure in zip(names, ("nDCG@10", "RR", "R@10"), strict=True):
        assert ours[measure] == pytest.approx(theirs[name], abs=1e-9)


def test_workbench_values_of_a_llamaindex_retriever_are_those_of_its_evaluator(made: Any, tmp_path: Path) -> None:
    evaluation = pytest.importorskip("llama_index.core.evaluation")
    schema = pytest.importorskip("llama_index.core.schema")
    base = pytest.importorskip("llama_index.core.retrievers").BaseRetriever
    frames, judged = made
    qids = list(dict.fromkeys(judged["qid"]))[:20]
    relevant = {qid: list(part["docno"]) for qid, part in judged.groupby("qid")}
    ranked = {qid: list(part.sort_values("score")["docno"][::-1][:10]) for qid, part in frames["mine"].groupby("qid")}

    class Retriever(base):  # type: ignore[misc, valid-type]
        def _retrieve(self, query: Any) -> list[Any]:
            result = ranked.get(query.query_str.split()[-1], ["d0", "d1"])
            return [schema.NodeWithScore(node=schema.TextNode(text=f"text of {their}", id_=their)) for their in result]

    evaluator = evaluation.RetrieverEvaluator.from_metric_names(["mrr", "recall", "ndcg"], retriever=Retriever())
    theirs = [asyncio.run(evaluator.aevaluate(f"question {qid}", relevant[qid])).metric_vals_dict for qid in qids]
    benchmark = Benchmark.from_frames(
        {f"d{number}": f"text of d{number}" for number in range(30)},
        {qid: f"question {qid}" for qid in qids},
        {qid: dict.fromkeys(relevant[qid], 1) for qid in qids},
    )
    around = ("measures=[nDCG@10,RR,R@10]", f"paths.results={tmp_path}")
    results = Experiment.arms({"theirs": Retriever()}, benchmark, *around, quick=True).run()
    for measure, name in (("RR", "mrr"), ("R@10", "recall"), ("nDCG@10", "ndcg")):
        assert results.values("theirs", measure).mean() == pytest.approx(np.mean([their[name] for their in theirs]))


NOTEBOOK = """\
from ragbench import Experiment, load_benchmark
mine = load_benchmark("beir", folder="beir")
texts = {page.docno: page.text.lower() for page in mine.documents}
def counted(query, k):
    found = {docno: sum(text.count(word) for word in query.lower().split()) for docno, text in texts.items()}
    return sorted(found.items(), key=lambda pair: -pair[1])[:k]
arms = {"lexical": "exp=lexical_only", "baseline": "exp=baseline", "counted": counted}
results = Experiment.arms(arms, mine).run()
verdicts = results.verdicts[["factor", "effect", "ci_low", "ci_high", "verdict"]]
figure = results.plot()
run = results.tracking_run or results.to_mlflow()
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow and the libraries below it warn of each other
def test_workbench_in_twenty_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A BEIR folder, a function against two presets, verdicts, a figure and an MLflow run, with the default timing."""
    import json

    folder = tmp_path / "beir"
    (folder / "qrels").mkdir(parents=True)
    words = ["apple", "bread", "cider", "dough", "eggs", "flour", "grape", "honey", "icing", "jelly", "kale", "lemon"]
    pages = [{"_id": f"{word}.md", "title": word, "text": f"How to keep {word} fresh. {word} tart"} for word in words]
    queries = [{"_id": f"q{word}", "text": f"fresh {word}"} for word in words]
    for name, rows in (("corpus", pages), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    judged = "".join(f"q{word}\t{word}.md\t1\n" for word in words)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}")
    monkeypatch.chdir(tmp_path)
    assert len(NOTEBOOK.splitlines()) <= 20
    cells: dict[str, Any] = {}
    exec(compile(NOTEBOOK, "notebook", "exec"), cells)
    assert list(cells["verdicts"]["factor"]) == ["baseline", "counted"]
    assert set(cells["results"].latency["arm"]) == {"lexical", "baseline", "counted"}
    assert cells["figure"].data and len(cells["run"]) == 32
    run = cells["results"].arm_path("counted") / "run.trec"
    assert run.read_text().startswith("qapple Q0 apple.md 1 "), "the ids of a BEIR folder stay as they are"


def test_workbench_gain_without_latency_is_adopted_by_quality_in_a_notebook(write_results, tmp_path: Path) -> None:
    values = {"baseline": [0.4, 0.5] * 15, "better": [0.6, 0.7] * 15}
    untimed = Results.load(write_results(tmp_path / "untimed", values, latency_enabled=False))._repr_html_()
    assert "adopt (by quality)</td>" in untimed and "quality only: .time() measures latency" in untimed
    assert "<th>latency</th>" in untimed and "<td>significantly better</td><td>not judged</td>" in untimed
    timed = write_results(tmp_path / "timed", values, {"baseline": 20.0, "better": 21.0})
    assert "adopt</td>" in Results.load(timed)._repr_html_()
