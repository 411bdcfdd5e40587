"""Python objects as arms: measured as other arms are, each kind by the shapes of its library, failing in a sentence."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import namedtuple
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ragbench
from ragbench import Experiment, Results
from ragbench.base import registry
from ragbench.base.types import ArmsFailed, BenchmarkError, ConfigError, LiveError, Query
from ragbench.benchmark.benchmark import Benchmark
from ragbench.commands import cli
from ragbench.evaluation.latency import time_query
from ragbench.evidence.cost import END_TO_END, RECORDED
from ragbench.extras.remote.live.external import REPEATED
from ragbench.extras.remote.live.objects import PythonRetriever
from ragbench.results import measurements
from ragbench.search.engine.pipeline import Arm, start
from tests.naming import naming

Search = Callable[[str, int], list[tuple[str, float]]]


@pytest.fixture(scope="module")
def search(benchmark_small: Benchmark) -> Search:
    """Documents by how many words of the query they have, ties by docno."""
    texts = {document.docno: set(document.text.lower().split()) for document in benchmark_small.documents}

    def ranked(query: str, k: int) -> list[tuple[str, float]]:
        query_words = set(query.lower().split())
        scored = [(docno, float(len(query_words & text))) for docno, text in texts.items()]
        return sorted(scored, key=lambda pair: (-pair[1], pair[0]))[:k]

    return ranked


@pytest.fixture
def measured(benchmark_small: Benchmark, workplace: Path, tmp_path: Path):
    """Measure arms with the session's indexes; no time is measured unless asked for."""

    def run(arms: dict[str, Any], *overrides: str, quick: bool = True) -> Results:
        around = [f"paths.results={tmp_path}", f"paths.index={workplace / 'index'}", "split=all", *overrides]
        return Experiment.arms(arms, benchmark_small, *around, quick=quick).run()

    return run


def ranked(results: Results, arm: str) -> dict[str, list[str]]:
    lines = [line.split() for line in (results.arm_path(arm) / "run.trec").read_text().splitlines()]
    return {qid: [docno for other, _, docno, *_ in lines if other == qid] for qid in {line[0] for line in lines}}


class Transformer:
    """As those of PyTerrier: a frame of queries becomes a frame of results."""

    def __init__(self, search: Search) -> None:
        self._search = search

    def transform(self, topics: pd.DataFrame) -> pd.DataFrame:
        rows = [
            (topic.qid, topic.query, number, docno, score)
            for topic in topics.itertuples()
            for number, (docno, score) in enumerate(self._search(topic.query, 100))
        ]
        frame = pd.DataFrame(rows, columns=["qid", "query", "docid", "docno", "score"])
        return frame.sample(frac=1, random_state=3)  # the score decides, not the order of rows

    def search(self, query: str) -> pd.DataFrame:
        return self.transform(pd.DataFrame([("1", query)], columns=["qid", "query"]))


def kinds(search: Search, benchmark: Benchmark) -> dict[str, Any]:
    texts = {document.docno: document.text for document in benchmark.documents}
    scored = namedtuple("scored", "query_id doc_id score")

    def page(docno: str, score: float) -> SimpleNamespace:
        return SimpleNamespace(id="chunk 7", page_content=texts[docno][:300], metadata={"source": f"/data/{docno}.md"})

    def node(docno: str, score: float) -> SimpleNamespace:
        inner = SimpleNamespace(id_="8f2", text=texts[docno], metadata={"file_path": f"{docno}.md"})
        return SimpleNamespace(node=inner, score=score)

    def haystack(docno: str, score: float) -> SimpleNamespace:
        return SimpleNamespace(id="0a1", content=texts[docno], meta={"docno": docno}, score=score)

    async def eventually(query: str, k: int) -> list[str]:
        await asyncio.sleep(0)
        return [docno for docno, _ in search(query, k)]

    def generated(query: str):
        yield from search(query, 100)

    pipeline = {"text_embedder": {"text": {}}, "retriever": {"query": {}, "top_k": {}}}
    return {
        "pairs": search,
        "docnos": lambda query, k: [docno for docno, _ in search(query, k)],
        "dicts": lambda query, top_k=5: [{"_id": docno, "score": np.float32(s)} for docno, s in search(query, top_k)],
        "mapping": lambda query: dict(reversed(search(query, 100))),
        "named tuples": lambda query: [scored("q", docno, score) for docno, score in search(query, 100)],
        "array": lambda query, k: np.array([docno for docno, _ in search(query, k)]),
        "frame": lambda query, k: pd.DataFrame(search(query, k), columns=["docno", "score"]).iloc[::-1],
        "generator": generated,
        "async": eventually,
        "batch": lambda queries, k: [search(query, k) for query in queries],
        "search method": SimpleNamespace(
            search=lambda query, top_n=3: [SimpleNamespace(docno=d, score=s, text="") for d, s in search(query, top_n)]
        ),
        "LangChain": SimpleNamespace(invoke=lambda query: [page(*hit) for hit in search(query, 100)]),
        "vector store": SimpleNamespace(
            similarity_search_with_score=lambda query, k=4: [(page(d, s), -s) for d, s in search(query, k)]
        ),
        "LlamaIndex": SimpleNamespace(retrieve=lambda query: [node(*hit) for hit in search(query, 100)]),
        "Haystack component": SimpleNamespace(
            run=lambda query, filters=None, top_k=10: {"documents": [haystack(*hit) for hit in search(query, top_k)]}
        ),
        "Haystack": SimpleNamespace(
            inputs=lambda: pipeline,
            run=lambda data: {
                "retriever": {"documents": [haystack(*hit) for hit in search(data["retriever"]["query"], 100)]}
            },
        ),
        "PyTerrier": Transformer(search),
    }


def test_objects_give_the_hits_of_their_function(measured, search: Search, benchmark_small: Benchmark) -> None:
    results = measured({"baseline": "exp=lexical_only", **kinds(search, benchmark_small)})
    expected = {topic.qid: [docno for docno, _ in search(topic.text, 100)] for topic in benchmark_small.topics}
    by_score = {"mapping", "frame", "PyTerrier"}  # a table is ordered by score, ties as trec_eval has them
    for arm in results.arms[1:]:
        if arm in by_score:
            assert ranked(results, arm) == ranked(results, "mapping"), arm
            assert {q: sorted(d) for q, d in ranked(results, arm).items()} == {
                q: sorted(d) for q, d in expected.items()
            }
        else:
            assert ranked(results, arm) == expected, arm
    assert set(results.verdicts["factor"]) == set(results.arms) - {"baseline"}
    assert results.report().is_file()
    assert measurements.load(results.folder).config("pairs")["live"]["retriever"] == "pairs"


@pytest.mark.slow
def test_langchain_and_llamaindex_objects_are_arms(measured, search: Search, benchmark_small: Benchmark) -> None:
    documents = pytest.importorskip("langchain_core.documents")
    retrievers = pytest.importorskip("langchain_core.retrievers")
    schema = pytest.importorskip("llama_index.core.schema")
    base = pytest.importorskip("llama_index.core.retrievers").BaseRetriever
    texts = {document.docno: document.text for document in benchmark_small.documents}

    class LangChain(retrievers.BaseRetriever):  # type: ignore[misc, name-defined]
        def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Any]:
            hits = search(query, 100)
            return [documents.Document(page_content=texts[d], metadata={"source": f"{d}.md"}) for d, _ in hits]

    class LlamaIndex(base):  # type: ignore[misc, valid-type]
        def _retrieve(self, query: Any) -> list[Any]:
            hits = search(query.query_str, 100)
            return [
                schema.NodeWithScore(node=schema.TextNode(text=texts[d], metadata={"file_path": f"{d}.md"}), score=s)
                for d, s in hits
            ]

    results = measured({"function": search, "langchain": LangChain(), "llamaindex": LlamaIndex()})
    assert ranked(results, "langchain") == ranked(results, "llamaindex") == ranked(results, "function")


def test_texts_and_headings_place_a_hit_in_its_passage(measured, benchmark_small: Benchmark) -> None:
    section = next(s for d in benchmark_small.documents for s in d.sections if len(d.sections) > 2 and s.level > 1)
    document = next(d for d in benchmark_small.documents if section in d.sections)
    text = document.text[section.start : section.end]
    arms = {
        "text": lambda query: [{"text": text}],
        "heading": lambda query: [{"docno": document.docno, "metadata": {"Header 2": section.path[-1]}}],
        "header path": lambda query: [SimpleNamespace(docno=document.docno, header_path=section.path, text="")],
    }
    results = measured(arms)
    for arm in arms:
        lines = (results.arm_path(arm) / "sections.trec").read_text().split()
        assert f"{document.docno}#{section.anchor}" in lines, arm


@pytest.mark.parametrize(
    "bad, sentence",
    [
        (lambda query, k: 1 / 0, r"failed on query \S+ '.*': ZeroDivisionError: .* \(line \d+ of test_objects"),
        (lambda query, k: None, "returned None for query"),
        (lambda query, k: "keys", "returned 'keys' for query"),
        (lambda query, k: b"keys", "returned b'keys' for query"),
        (lambda query, k: 7, "returned 7 for query"),
        (lambda query, k: True, "returned True for query"),
        (lambda query, k: 0.5, "returned 0.5 for query"),
        (lambda query, k: object(), "returned <object object"),
        (lambda query, k: [("a", float("nan"))], "returned the score nan for .*: a score must be a finite number"),
        (lambda query, k: [("a", float("inf"))], "the score inf"),
        (lambda query, k: [("a", "high")], "returned the score 'high' for query .*: a score must be a number"),
        (lambda query, k: [("a", None)], "the score None"),
        (lambda query, k: [("a", True)], "the score True"),
        (lambda query, k: [(0.5, "a")], r"returned the hit \(0.5, 'a'\) for .*: a tuple must be \(docno, score\)"),
        (lambda query, k: [("a", 1.0, "b")], "a tuple must be"),
        (lambda query, k: [None], "the hit None, which has neither a docno nor a text"),
        (lambda query, k: [{}], "the hit {}, which has neither"),
        (lambda query, k: [{"score": 1.0}], "which has neither"),
        (lambda query, k: [[]], "which has neither"),
        (lambda query, k: [""], "a hit without a docno"),
        (lambda query, k: [0.5], "the hit 0.5"),
        (lambda query, k: [True], "the hit True"),
        (lambda query, k: {"a": "b"}, "the score 'b'"),
        (lambda query, k: {"a": float("nan")}, "the score nan"),
        (lambda query, k: pd.DataFrame({"a": [1]}), "a DataFrame with the columns a for query .*: name one docno"),
        (lambda query, k: pd.DataFrame({"docno": ["a"], "score": [np.nan]}), "the score nan"),
        (lambda query, k: ["zz", "yy"], "no document of the collection: it names zz, yy, the collection "),
        (lambda: [], "TypeError: .* takes 0 positional arguments but 1 was given"),
        (lambda query, k, more: [], "TypeError: .* missing 1 required positional argument: 'more'"),
        (lambda queries: [[]], "returned 1 answers to 3 queries: return a list of hits for each query"),
        (lambda queries: None, "failed on 3 queries, the first of them query .*: TypeError: 'NoneType'"),
        (lambda queries: 1 / 0, "failed on 3 queries, the first of them query .*: ZeroDivisionError"),
        (Transformer(lambda query, k: 1 / 0), "failed on 3 queries, the first of them query .*ZeroDivisionError"),
        (SimpleNamespace(transform=lambda t: t, search=1), "the transformer returns no column docno, only qid"),
        (SimpleNamespace(retrieve=1, invoke=lambda query: {}["a"]), "KeyError: 'a'"),
    ],
)
def test_bad_answers_are_one_sentence(bad: Any, sentence: str, index) -> None:
    from ragbench.extras.remote.live.external import LivePython
    from ragbench.extras.remote.live.objects import hold

    held = hold("bad", bad)
    states = start([Query(f"q{n}", f"how do keys {n}") for n in range(3)])
    index.prepare({"chunks"})
    with pytest.raises(LiveError, match=f"^retriever 'bad' .*{sentence}") as caught:
        LivePython(retriever="bad", number=held.number)(states, index)
    assert "\n" not in str(caught.value)


def test_failing_object_names_arm_query_and_line(measured, search: Search) -> None:
    def failing(query: str, k: int) -> list[tuple[str, float]]:
        return search(query, k) if "zz" in query else [("a", 1 / 0)]

    with pytest.raises(ArmsFailed) as caught:
        measured({"function": search, "failing": failing})
    assert "failing" in str(caught.value)
    assert isinstance(caught.value.__cause__, LiveError)
    assert isinstance(caught.value.__cause__.__cause__, ZeroDivisionError)


def test_repeated_and_unknown_documents_are_reported_and_counted(measured, search: Search, caplog) -> None:

    def sloppy(query: str, k: int) -> list[str]:
        best = [docno for docno, _ in search(query, k)]
        return [best[0], best[0], "no/such", *best[1:]]

    results = measured({"function": search, "sloppy": sloppy})
    n = len(results.topics)
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    (outside,) = (warning for warning in warnings if "in no document of the collection" in warning)
    assert outside.startswith(f"arm 'sloppy': {n} of ") and outside.endswith("count as not relevant: no/such")
    assert any(warning.startswith(f"arm 'sloppy': {REPEATED} ({n} queries, such as ") for warning in warnings)
    assert not any("'function'" in warning for warning in warnings)


def test_results_as_arms_are_judged_as_their_function(
    measured, search: Search, benchmark_small: Benchmark, tmp_path: Path
) -> None:
    rows = [(t.qid, docno, score) for t in benchmark_small.topics for docno, score in search(t.text, 100)]
    frame = pd.DataFrame(rows, columns=["qid", "docno", "score"])
    by_qid = {qid: dict(zip(part["docno"], part["score"], strict=True)) for qid, part in frame.groupby("qid")}
    file = tmp_path / "old.trec"
    file.write_text("".join(f"{qid} Q0 {docno} 1 {score} old\n" for qid, docno, score in rows))
    arms = {
        "function": lambda query: dict(search(query, 100)),
        "frame": frame,
        "renamed": frame.rename(columns={"qid": "query_id", "docno": "doc_id"}),
        "mapping": by_qid,
        "ranx": SimpleNamespace(to_dict=lambda: by_qid, keys=by_qid.keys),
        "file": str(file),
        "path": file,
    }
    results = measured(arms, "latency.enabled=true", "latency.cold_start=false")
    for arm in results.arms:
        assert results.values(arm).to_dict() == results.values("function").to_dict(), arm
    assert set(results.latency["arm"]) == {"function"}
    assert all(RECORDED in reason for reason in results.verdicts["reason"])
    with pytest.raises(BenchmarkError, check=naming("docno")):
        measured({"function": search, "frame": frame[["qid", "score"]]})
    with pytest.raises(BenchmarkError, check=naming("twice")):
        measured({"function": search, "twice": pd.concat([frame, frame])})
    with pytest.raises(BenchmarkError, check=naming("number")):
        measured({"function": search, "nan": frame.assign(score=np.nan)})


def test_other_objects_are_refused_as_arms(measured) -> None:
    with pytest.raises(ConfigError, check=naming("is a int")):
        measured({"a": 7})
    with pytest.raises(ConfigError, check=naming("neither a file")):
        measured({"a": "baseline"})


def test_object_is_timed_as_a_pipeline(measured, search: Search) -> None:
    asked: list[str] = []

    def counted(query: str, k: int) -> list[tuple[str, float]]:
        asked.append(query)
        return search(query, k)

    timing = ["latency.enabled=true", "latency.queries=4", "latency.rounds=1", "latency.warmup=1"]
    timing += ["latency.cold_start=false"]
    recorded = {"t1": {"index": 1.0}}
    results = measured({"baseline": ["exp=lexical_only"], "mine": counted, "old": recorded}, *timing)
    assert "could not be made" not in results.report().read_text(encoding="utf-8")
    texts = set(results.topics["text"])
    assert len([query for query in asked if query not in texts]) >= 4  # reworded, so that nothing is remembered
    assert len(results.latency[(results.latency["arm"] == "mine") & (results.latency["stage"] == "live")]) == 1
    assert END_TO_END not in results.verdicts["reason"].iloc[0]
    assert results.verdicts["latency_ms"].notna().tolist() == [True, False]

    def known(query: str, k: int) -> list[str]:
        return {text: ["a"] for text in texts}[query] and [search(query, 1)[0][0]]

    results = measured({"baseline": "exp=lexical_only", "known": known}, *timing)
    (row,) = results.verdicts.to_dict("records")
    assert "KeyError" in row["untimed"] and "Latency unknown: retriever 'known' failed" in row["reason"]
    assert row["cost"] == "open" and set(results.latency["arm"]) == {"baseline"}
    assert results.values("known").notna().all()


def test_object_arm_adds_little_time(index, benchmark_small: Benchmark) -> None:
    from ragbench.extras.remote.live.external import LivePython
    from ragbench.extras.remote.live.objects import hold
    from ragbench.search.engine.pipeline import Pipeline

    docnos = [document.docno for document in benchmark_small.documents] * 10

    def slow(query: str, k: int) -> list[tuple[str, float]]:
        end = time.perf_counter() + 0.01
        while time.perf_counter() < end:
            pass
        return [(docno, 1.0) for docno in docnos[:k]]

    held = hold("slow", slow)
    arm = Arm("slow", Pipeline((("live", LivePython(retriever="slow", number=held.number)),)), index)
    index.prepare(arm.pipeline.needs)
    times = (time_query(arm, Query("q", f"text {n}"))[-1] for n in range(100))
    assert any(10.0 <= ms < 10.5 for ms in times), "no query of a function of 10 ms took less than 5% more"


def test_parameters_of_a_decorated_retriever_can_be_varied(
    measured, search: Search, benchmark_small: Benchmark, workplace: Path, tmp_path: Path, monkeypatch, capsys
) -> None:
    module = tmp_path / "my_search.py"
    module.write_text(
        "import ragbench\n\n\n@ragbench.retriever\ndef by_length(query, k, least: int = 0):\n"
        '    """Long words only."""\n'
        "    return [f'{word}' for word in query.split() if len(word) >= least] + ['index']\n"
    )
    monkeypatch.chdir(tmp_path)

    @ragbench.retriever(name="counted")
    def counted(query: str, k: int, most: int = 100, worst: bool = False) -> list[tuple[str, float]]:
        hits = search(query, k)[:most]
        return hits[::-1] if worst else hits

    try:
        assert isinstance(counted, PythonRetriever)
        assert counted("how do keys", 3) == search("how do keys", 3)
        results = measured(
            {"all": counted, "one": counted.with_(most=1), "words": ["source=python:counted", "live.parameters.most=1"]}
        )
        assert {len(hits) for hits in ranked(results, "one").values()} == {1}
        assert ranked(results, "one") == ranked(results, "words") != ranked(results, "all")
        with pytest.raises(ConfigError, check=naming("did you mean most")):
            counted.with_(mos=1)
        with pytest.raises(ConfigError, check=naming("least")):
            measured({"a": ["source=python:counted", "live.parameters.least=1"]})
        around = [
            f"paths.results={tmp_path}",
            f"paths.index={workplace / 'index'}",
            "split=all",
            "latency.enabled=false",
        ]
        ablation = Experiment.ablate(
            *(*around, "tracking.enabled=false", "source=python:counted"),
            candidates={"few": ["live.parameters.most=2"], "reversed": ["live.parameters.worst=true"]},
            benchmark=benchmark_small,
        ).run()
        assert set(ablation.verdicts["factor"]) == {"few", "reversed"}
        assert (ablation.verdicts.set_index("factor")["effect"] <= 0).all()
        monkeypatch.setenv(registry.VARIABLE, "my_search")
        assert cli.main(["search", "keys", "source=python:nobody"]) == 2
        assert "retriever 'nobody' is not known in this process" in capsys.readouterr().err
    finally:
        for name in ("counted", "by_length"):
            registry._registered.pop(("retriever", name), None)


def test_objects_of_one_name_stay_apart(measured, benchmark_small: Benchmark, search: Search, tmp_path: Path) -> None:
    around = [f"paths.results={tmp_path}", "split=all"]
    first = Experiment.arms({"mine": search}, benchmark_small, *around, quick=True)
    second = Experiment.arms({"mine": lambda query: ["index"]}, benchmark_small, *around, quick=True)
    numbers = [results.settings[0].config["live"].get("number", 0) for results in (first, second)]
    assert numbers[0] != numbers[1]
    results = first.run()
    assert ranked(results, "mine") == ranked(measured({"mine": search}), "mine")
    assert repr(first) == "Experiment(mine; quality only)"


def test_repeated_cell_is_the_same_comparison(measured, search: Search) -> None:
    def defined(most: int) -> Search:
        def mine(query: str, k: int) -> list[tuple[str, float]]:
            return search(query, k)[:most]

        return mine

    first, again, other = (measured({"all": search, "mine": defined(most)}) for most in (3, 3, 2))
    assert first.comparison == again.comparison
    assert other.comparison == first.comparison + 1


def test_object_can_be_searched(benchmark_small: Benchmark, search: Search, tmp_path: Path) -> None:
    around = [f"paths.results={tmp_path}", "tracking.enabled=false"]
    answer = Experiment.arms({"mine": search}, benchmark_small, *around).search("how do keys rotate", top=3)
    expected = [docno for docno, _ in search("how do keys rotate", 3)]
    assert [hit.docno for hit in answer.hits] == expected


FILTERED = [Query("q1", "keys", filter={"version": "2"}), Query("q2", "logs")]


@pytest.mark.parametrize("depth_first", [True, False])
def test_object_gets_the_filter_of_its_query(depth_first: bool) -> None:
    asked: list[Any] = []

    def with_depth(query, k=10, *, filter=None):
        asked.append((query, k, filter))
        return [query]

    def without(query, filter):
        asked.append((query, 5, filter))
        return [query]

    PythonRetriever("ours", with_depth if depth_first else without).ask(FILTERED, 5, {})
    assert asked == [("keys", 5, {"version": "2"}), ("logs", 5, None if depth_first else {})]


def test_object_of_many_queries_gets_one_filter_at_a_time() -> None:
    asked: list[Any] = []

    def many(queries, filter=None):
        asked.append((queries, filter))
        return [[query] for query in queries]

    assert PythonRetriever("ours", many).ask(FILTERED, 5, {}) == [["keys"], ["logs"]]
    assert asked == [(["keys"], {"version": "2"}), (["logs"], None)]
    PythonRetriever("ours", many).ask(FILTERED[1:] * 2, 5, {})
    assert asked[2:] == [(["logs", "logs"], None)]


def test_object_that_takes_no_filter_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    plain = PythonRetriever("ours", lambda query, k: [query])
    plain.ask(FILTERED[1:], 5, {})
    assert not caplog.messages
    assert plain.ask(FILTERED, 5, {}) == plain.ask(FILTERED, 5, {}) == [["keys"], ["logs"]]
    assert caplog.messages == [
        "retriever 'ours' takes no filter, so queries with one are answered from all documents: give it a keyword "
        "argument 'filter'"
    ]


def test_object_with_a_filter_of_its_own_keeps_it(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[Any] = []
    fixed = PythonRetriever("ours", lambda query, k, filter=None: asked.append(filter) or [query])
    fixed.ask(FILTERED, 5, {"filter": "mine"})
    assert asked == ["mine", "mine"]
