"""An index that Anserini built is an arm: searched as Pyserini's `LuceneSearcher` searches it, its ids mapped."""

from __future__ import annotations

import functools
import hashlib
import http.server
import json
import os
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from ragbench.base.errors import LiveError
from ragbench.benchmark.runs import read_run
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.corpus.reader import read_vault
from ragbench.experiment.run import run
from ragbench.extras.remote.live import anserini
from ragbench.extras.remote.live.stages import LivePyserini
from ragbench.index import jvm
from tests.anserini_index import build

HANDBOOK = Path(__file__).parents[3] / "data" / "phases"
QUESTIONS = {
    "q1": ("how do programs prove their identity", "authentication"),
    "q2": ("counters and gauges", "metrics"),
    "q4": ("why is a request slow", "slow-requests"),
}


def documents() -> list[dict[str, str]]:
    return [{"id": document.docno, "contents": document.text} for document in read_vault(HANDBOOK).documents]


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(documents(), tmp_path_factory.mktemp("anserini"), "-storeRaw", "-storeDocvectors", "-storePositions")


@pytest.fixture(scope="module")
def beir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The handbook in BEIR's form, with ids that differ only in their case."""
    folder = tmp_path_factory.mktemp("beir")
    records = [{"_id": row["id"], "title": "", "text": row["contents"]} for row in documents()]
    records.append({"_id": "Metrics", "title": "", "text": "Nothing of interest."})
    (folder / "corpus.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in records), encoding="utf-8")
    queries = [{"_id": qid, "text": text} for qid, (text, _) in QUESTIONS.items()]
    (folder / "queries.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in queries), encoding="utf-8")
    (folder / "qrels").mkdir()
    judged = [f"{qid}\t{docno}\t1" for qid, (_, docno) in QUESTIONS.items()]
    (folder / "qrels" / "test.tsv").write_text("\n".join(["query-id\tcorpus-id\tscore", *judged]) + "\n")
    return folder


@pytest.fixture
def measure(settings_of, tmp_path: Path, beir: Path):
    """The run file of an arm over the BEIR folder, by qid."""

    def measure(*overrides: str) -> dict[str, list[tuple[str, float]]]:
        arm = settings_of(
            tmp_path / "results", "data=beir", f"data.folder={beir}", "name=theirs", "latency.enabled=false", *overrides
        )
        results = run([arm], load(arm.config))
        return read_run(results.arm_path("theirs") / "run.trec")

    return measure


SETTINGS = {
    "set_bm25 [0.9, 0.4]": {},
    "set_bm25 [1.2, 0.75]": {"k1": 1.2, "b": 0.75},
    "set_rm3 []": {"feedback": "rm3"},
    "set_rocchio []": {"feedback": "rocchio"},
    'set_language ["de"]': {"language": "de"},
}
"""Calls of `LuceneSearcher`, and our settings for the same."""
SEARCHER = """
import json, sys
from ragbench.index import jvm
jvm.start_jvm()
from pyserini.search.lucene import LuceneSearcher
hits = {}
for call in json.loads(sys.argv[2]):
    searcher, (name, _, values) = LuceneSearcher(sys.argv[1]), call.partition(" ")
    getattr(searcher, name)(*json.loads(values))
    hits[call] = [[(hit.docid, hit.score) for hit in searcher.search(text, k=10)] for text in sys.argv[3:]]
print(json.dumps(hits))
"""


@pytest.mark.slow
def test_hits_and_scores_are_those_of_lucene_searcher(index: Path) -> None:
    texts = [text for text, _ in QUESTIONS.values()]
    # Its import asks for a key of OpenAI, which nothing here uses.
    done = subprocess.run(
        [sys.executable, "-c", SEARCHER, str(index), json.dumps(list(SETTINGS)), *texts],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OPENAI_API_KEY": "unused"},
    )
    assert done.returncode == 0, done.stderr
    theirs = json.loads(done.stdout.splitlines()[-1])
    before = set(sys.modules)
    for call, given in SETTINGS.items():
        scoring = anserini.Scoring(**{"k1": 0.9, "b": 0.4, "fields": (), "feedback": None, "language": None, **given})
        searcher = anserini.open_searcher(str(index), scoring)
        ours = [[(hit.document, hit.score) for hit in searcher.search(text, 10, lambda name: True)] for text in texts]
        assert any(ours)
        assert ours == [[(name, pytest.approx(score)) for name, score in hits] for hits in theirs[call]]
    assert theirs["set_bm25 [0.9, 0.4]"] != theirs["set_rm3 []"]
    assert not {"pyserini.search", "torch"} & (set(sys.modules) - before)


@pytest.mark.slow
def test_beir_collection_is_measured_with_its_index(measure, index: Path) -> None:
    run_ = measure(f"source=pyserini:{index}")
    assert {qid: hits[0][0] for qid, hits in run_.items()} == {qid: docno for qid, (_, docno) in QUESTIONS.items()}
    same = measure("live=pyserini", f"live.index={index}", "live.depth=2", "live.fields={contents: 2.0}")
    for qid, hits in same.items():
        assert [name for name, _ in hits] == [name for name, _ in run_[qid]][:2]
        assert hits[0][1] == pytest.approx(2 * run_[qid][0][1], rel=1e-4)


@pytest.mark.slow
def test_passages_are_matched_to_their_documents(measure, tmp_path: Path) -> None:
    """By the part of an id before #, and, where the id says nothing, by the stored text."""
    records = []
    for document in documents():
        for number, text in enumerate(document["contents"].split("\n## ")):
            name = f"{document['id']}#{number}" if document["id"] != "metrics" else f"p{number}"
            records.append({"id": name, "contents": text})
    run_ = measure(f"source=pyserini:{build(records, tmp_path / 'passages', '-storeRaw')}")
    assert run_["q1"][0][0] == "authentication"
    assert "metrics" in [name for name, _ in run_["q2"]]


@pytest.mark.slow
def test_index_of_other_documents_is_refused(settings_of, tmp_path: Path, beir: Path) -> None:
    other = build([{"id": f"WAPO-{n}", "contents": "news"} for n in range(3)], tmp_path / "other")
    arm = settings_of(
        tmp_path / "results", "data=beir", f"data.folder={beir}", "latency.enabled=false", f"source=pyserini:{other}"
    )
    with pytest.raises(LiveError) as error:
        run([arm], load(arm.config))
    assert "WAPO-0, WAPO-1" in str(error.value)


@pytest.mark.slow
def test_unusable_indexes_are_one_sentence(
    tmp_path: Path, index: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    plain = build([{"id": "a", "contents": "alpha"}], tmp_path / "plain")
    scoring = anserini.Scoring(0.9, 0.4, (), None, None)
    for name, reason in (
        (str(tmp_path / "empty"), "is not an index of Lucene: name the folder that Anserini or Pyserini wrote"),
        (str(tmp_path / "nowhere"), "is neither a folder nor one of the"),
        ("beir-v1.0.0-scifakt.flat", "did you mean beir-v1.0.0-scifact.flat?"),
        ("beir-v1.0.0-scifact.splade-v3", "is a prebuilt index that LuceneSearcher does not read"),
    ):
        with pytest.raises(LiveError) as raised:
            anserini.open_searcher(name, scoring)
        assert reason in str(raised.value)
    with pytest.raises(LiveError) as error:
        anserini.open_searcher(str(plain), anserini.Scoring(0.9, 0.4, (), "rm3", None))
    assert "feedback=rm3" in str(error.value)
    assert anserini.open_searcher(str(plain), scoring).search("", 10, lambda name: True) == []
    monkeypatch.chdir(tmp_path)
    assert cli.main(["run", f"source=pyserini:{tmp_path / 'empty'}", "tracking.enabled=false", "--quiet"]) == 2
    assert "is not an index of Lucene" in capsys.readouterr().err
    assert not list(tmp_path.glob("results/runs/*"))


@pytest.fixture
def shelf(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder and the address that serves it."""
    folder = tmp_path / "shelf"
    folder.mkdir()

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *args: object) -> None:
            pass

    running = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{running.server_port}"
    running.shutdown()
    running.server_close()
    thread.join()


def test_prebuilt_index_is_downloaded_once_and_checked(
    index: Path, shelf: tuple[Path, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    jvm.start_jvm()
    from pyserini import prebuilt_index_info as prebuilt

    folder, address = shelf
    packed = folder / "lucene-index.cacm.tar.gz"
    with tarfile.open(packed, "w:gz") as tar:
        tar.add(index, "lucene-index.cacm")
    content = packed.read_bytes()
    entry = {
        **prebuilt.TF_INDEX_INFO["cacm"],
        "urls": [f"{address}/{packed.name}"],
        "filename": packed.name,
        "md5": hashlib.md5(content, usedforsecurity=False).hexdigest(),
        "size compressed (bytes)": len(content),
    }
    monkeypatch.setitem(prebuilt.TF_INDEX_INFO, "cacm", entry)
    monkeypatch.setenv("PYSERINI_CACHE", str(tmp_path / "cache"))
    scoring = anserini.Scoring(0.9, 0.4, (), None, None)
    before = anserini.open_searcher(str(index), scoring).search("counters", 3, lambda name: True)
    monkeypatch.setitem(entry, "md5", "0" * 32)
    with pytest.raises(LiveError) as error:
        anserini.open_searcher("cacm", scoring)
    assert "digest" in str(error.value)
    monkeypatch.undo()
    monkeypatch.setitem(prebuilt.TF_INDEX_INFO, "cacm", entry)
    monkeypatch.setenv("PYSERINI_CACHE", str(tmp_path / "cache"))
    entry["md5"] = hashlib.md5(content, usedforsecurity=False).hexdigest()
    assert anserini.open_searcher("cacm", scoring).search("counters", 3, lambda name: True) == before
    packed.unlink()
    anserini.open_searcher.cache_clear()
    assert anserini.open_searcher("cacm", scoring).search("counters", 3, lambda name: True) == before  # from the cache
    monkeypatch.setenv("PYSERINI_CACHE", str(tmp_path / "other"))
    anserini.open_searcher.cache_clear()
    with pytest.raises(LiveError) as error:
        anserini.open_searcher("cacm", scoring)
    assert "no answer" in str(error.value)


def test_source_is_another_spelling_of_live() -> None:
    for word, target, fields in (
        ("source=pyserini:cacm", "LivePyserini", {"index": "cacm"}),
        ("source='pyserini:my index'", "LivePyserini", {"index": "my index"}),
        ("source=trec:runs/a.trec", "LiveRun", {"path": "runs/a.trec"}),
        ("source=engine:opensearch://host/notes", "LiveEngine", {"engine": "opensearch://host/notes"}),
        ("source=http:http://localhost/?q={query}", "LiveHttp", {"url": "http://localhost/?q={query}"}),
    ):
        ((_, stage),) = composition.compose([word]).pipeline
        assert type(stage).__name__ == target
        assert {name: getattr(stage, name) for name in fields} == fields
    with pytest.raises(Exception) as error:
        composition.compose(["source=lucene:cacm"])
    assert "source must be" in str(error.value)


def test_describe_says_how_it_searches() -> None:
    stage = LivePyserini(index="cacm", feedback="rm3", k1=1.2)
    assert stage.describe() == "search the index cacm with BM25 (k1=1.2, b=0.4) and rm3 for 100 hits"
