"""Functions as stages, encoders, re-rankers and measures; embeddings behind endpoints, against a server of our own."""

from __future__ import annotations

import doctest
import json
import os
import shutil
import subprocess
import sys
import types
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ragbench
from ragbench import Experiment
from ragbench.base import registry
from ragbench.base.rankings import Ranking
from ragbench.base.types import ArmsFailed, ConfigError, ModelError, Query
from ragbench.benchmark.benchmark import Benchmark
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.evaluation import measures
from ragbench.extras.remote import chat, endpoint, usage
from ragbench.models.resolve import CrossEncoderSpec, EncoderSpec, Models, check_name, load_cross_encoder, load_encoder
from ragbench.search.engine.answer import answer
from ragbench.search.engine.pipeline import start
from ragbench.search.function_stage import FunctionStage
from tests.loopback import Loopback
from tests.naming import naming

QUICK = ("latency.enabled=false", "tracking.enabled=false", "split=all")


@ragbench.stage(before="cut")
def only_guides(query, hits, keep: bool = True, factor: float = 0.5):
    """Hits outside the guides count less, or are dropped."""
    return [hit.score if hit.path.startswith("guides/") else hit.score * factor if keep else None for hit in hits]


@ragbench.stage(before="cut")
def leaves(query, hits):
    """Ends the process."""
    raise SystemExit(0)


@ragbench.encoder
def letters(texts):
    return [[text.lower().count(letter) for letter in "aeinorst"] for text in texts]


@ragbench.reranker
def shared_words(query, passages):
    return [len(set(query.lower().split()) & set(passage.lower().split())) for passage in passages]


@ragbench.measure
def found_first(ranked, grades):
    return float(bool(ranked) and grades.get(ranked[0], 0) > 0)


def test_stage_function_is_a_switch_like_any_other() -> None:
    settings = composition.compose(["only_guides=on", "only_guides.factor=0.1"])
    assert settings.config["only_guides"]["factor"] == 0.1
    assert settings.config["order"][-2:] == ["only_guides", "cut"]
    assert "only_guides keep=True factor=0.1" in repr(settings.pipeline)
    assert settings.overrides == ("only_guides=on", "only_guides.factor=0.1")
    assert composition.compose(["only_guides=off"]).config["only_guides"] == {}
    assert [setting.name for setting in composition.sweep(["only_guides=off,on"])] == [
        "only_guides=off",
        "only_guides=on",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["only_guides=maybe"], "only_guides cannot be 'maybe': the options are off, on"),
        (["only_guides=on", "only_guides.factor=high"], "only_guides.factor must be a number, got 'high'"),
        (["only_guides=on", "only_guides.facter=1"], "did you mean only_guides.factor?"),
        (["only_gides=on"], "only_gides is unknown"),
    ],
)
def test_stage_function_names_the_refused_key(words: list[str], message: str) -> None:
    with pytest.raises(ConfigError, check=naming(message)):
        composition.compose(words)


def test_stage_refuses_functions_that_cannot_be_stages() -> None:
    with pytest.raises(ConfigError, match="must take"):
        ragbench.stage(lambda query: [])
    with pytest.raises(ConfigError, match="must rename its parameter 'models'"):
        ragbench.stage(lambda query, hits, models=2: [])
    with pytest.raises(ConfigError, match="not both"):
        ragbench.stage(before="cut", after="fuse")
    with pytest.raises(ConfigError, check=naming("'only_guides'")):
        only_guides(code="0" * 12)


@pytest.mark.slow
def test_plugins_of_all_kinds_take_part_in_one_experiment(benchmark_small: Benchmark, tmp_path: Path) -> None:
    small = [*QUICK, f"paths.results={tmp_path}", "measures=[nDCG@10,found_first]"]
    arms = {
        "words": [*small, "dense=null"],
        "own": [*small, "index.encoder.name=letters", "p6=on", "p6.model=shared_words", only_guides(keep=False)],
    }
    results = Experiment.arms(arms, benchmark=benchmark_small).run()
    assert set(results.per_query["measure"]) >= {"found_first", "nDCG@10"}
    hits = results.top_hits
    assert set(hits.loc[hits["arm"] == "own", "chunk_id"].str.split("/").str[0]) == {"guides"}
    assert isinstance(only_guides(), FunctionStage)


def test_stage_function_must_score_every_hit(index) -> None:
    @ragbench.stage
    def lazy(query, hits):
        return []

    with pytest.raises(ConfigError, check=naming("'lazy'", "1 hits", "gave 0")):
        lazy()([replace(start([Query("q", "x")])[0], fused=Ranking.of([0], [0.9]))], index)


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (["high"], "stage 'odd' must give 1 numbers for 1 texts, got list"),
        ([1j], "stage 'odd' must give 1 numbers"),
        ([[1.0, 2.0]], "stage 'odd' must give 1 numbers"),
        ([10**400], "stage 'odd' must give 1 numbers"),
        ([1e39], "stage 'odd' gave a number that is not finite or beyond 3.4e38"),
        ([float("nan")], "stage 'odd' gave a number that is not finite"),
        (None, "stage 'odd' failed: TypeError: 'NoneType' object is not iterable"),
        (SystemExit(0), r"stage 'odd' failed: SystemExit: 0 \(line \d+ of test_plugins.py\)"),
    ],
    ids=["text", "complex", "nested", "whole", "large", "nan", "none", "exit"],
)
def test_stage_function_without_scores_is_one_sentence(index, scores: object, message: str) -> None:
    @ragbench.stage
    def odd(query, hits):
        if isinstance(scores, SystemExit):
            raise scores
        return scores

    with pytest.raises((ConfigError, ModelError), match=message):
        odd()([replace(start([Query("q", "x")])[0], fused=Ranking.of([0], [0.9]))], index)


def test_arm_whose_plug_in_exits_fails_alone(vault_folder: Path, tmp_path: Path) -> None:
    @ragbench.encoder
    def unequal(texts):
        return [[1.0] * (3 if text.startswith("Q: ") else 2) for text in texts]

    data = ["data=vault", f"data.corpus={vault_folder}", "topics=derived", *QUICK, f"paths.results={tmp_path}"]
    arms = {"words": [*data, "dense=null"], "leaves": [*data, "dense=null", leaves()]}
    registry.register("reranker", "fails", lambda query, passages: 1 / 0)
    arms["fails"] = [*data, "dense=null", "p6=on", "p6.model=fails"]  # and in the forecast, before it runs
    with pytest.raises(
        ArmsFailed, match=r"2 of 3 arms failed \('leaves', 'fails': stage 'leaves' failed: SystemExit: 0"
    ):
        Experiment.arms(arms).run()
    with pytest.raises(ModelError, check=naming("'unequal'", "length 2", "length 3")):
        Experiment.arms(
            {"unequal": [*data, "lexical=null", "index.encoder={name: unequal, query_prefix: 'Q: '}"]}
        ).run()


def test_encoder_function_gives_unit_vectors() -> None:
    encoder = load_encoder(EncoderSpec("letters", query_prefix="ee "))
    vectors = encoder.encode_passages(["tea", "no"])
    assert vectors.tolist() == pytest.approx(
        np.array([[1, 1, 0, 0, 0, 0, 0, 1], [0, 0, 0, 1, 1, 0, 0, 0]]) / [[3**0.5], [2**0.5]]
    )
    assert encoder.encode_queries(["no"])[0].tolist() != vectors[1].tolist()
    assert (encoder.dim, encoder.count_tokens("a b, c")) == (8, 4)
    assert load_encoder(EncoderSpec("letters", query_prefix="")).digest != encoder.digest


def test_reranker_function_gives_finite_scores() -> None:
    model = load_cross_encoder(CrossEncoderSpec("shared_words"))
    assert model.score("a b", ["b c", "x", "a b"]).tolist() == [1.0, 0.0, 2.0]
    registry.register("encoder", "bad", lambda texts: [1.0])
    with pytest.raises(ModelError, check=naming("'bad'", "2 vectors")):
        load_encoder(EncoderSpec("bad")).encode_passages(["a", "b"])
    registry.register("encoder", "empty", lambda texts: [[] for _ in texts])
    with pytest.raises(ModelError, check=naming("'empty'", "1 vectors")):
        load_encoder(EncoderSpec("empty")).encode_passages(["a"])
    registry.register("encoder", "far", lambda texts: [[3e300, 4e300], [3e-300, 4e-300], [0.0, 0.0]])
    far = load_encoder(EncoderSpec("far")).encode_passages(["a", "b", "c"])
    assert far.tolist() == [pytest.approx([0.6, 0.8]), pytest.approx([0.6, 0.8]), [0, 0]]
    registry.register("reranker", "large", lambda query, passages: [1e39 for _ in passages])
    with pytest.raises(ModelError, check=naming("'large'", "3.4e38")):
        load_cross_encoder(CrossEncoderSpec("large")).score("a", ["b"])


def test_measure_function_is_computed_with_the_others() -> None:
    frame = measures.evaluate({"q": [("a", 2.0), ("b", 1.0)]}, {"q": {"b": 1}}, ["RR", "found_first"])
    values = dict(zip(frame["measure"], frame["value"], strict=True))
    assert (values["RR"], values["found_first"]) == (0.5, 0.0)
    registry.register("measure", "broken", lambda ranked, grades: None)
    with pytest.raises(ConfigError, check=naming("'broken'", "None")):
        measures.evaluate({"q": [("a", 2.0)]}, {"q": {"a": 1}}, ["broken"])


def test_plug_ins_of_a_variable_reach_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_plugin.py").write_text(
        "import ragbench\n@ragbench.stage\ndef from_afar(query, hits, weight: float = 1.0):\n return [0] * len(hits)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("RAGBENCH_PLUGINS", "my_plugin")
    assert cli.main(["list", "config", "from_afar=on"]) == 0
    assert "from_afar weight=1.0" in capsys.readouterr().out
    (tmp_path / "my_local_plugin.py").write_text(
        "import ragbench\n@ragbench.stage\ndef from_here(query, hits, weight: float = 1.0):\n return [0] * len(hits)\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry not in ("", str(tmp_path))])
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    monkeypatch.setenv("RAGBENCH_PLUGINS", "my_local_plugin")  # in this folder, which is not on the path
    assert cli.main(["list", "config", "from_here=on"]) == 0
    assert "from_here weight=1.0" in capsys.readouterr().out and sys.path == before
    monkeypatch.setenv("RAGBENCH_PLUGINS", "no_such_plugin")
    assert cli.main(["list", "config", "other=on"]) == 2
    assert "RAGBENCH_PLUGINS names no_such_plugin, which cannot be imported" in capsys.readouterr().err


PACKAGE = """
import ragbench

@ragbench.stage
def from_package(query, hits, weight: float = 0.5):
    return [hit.score * weight for hit in hits]

@ragbench.encoder
def package_letters(texts):
    return [[text.count("e"), text.count("a"), 1] for text in texts]

@ragbench.reranker
def package_words(query, passages):
    return [len(set(query.split()) & set(passage.split())) for passage in passages]

@ragbench.measure
def package_first(ranked, grades):
    return float(bool(ranked) and grades.get(ranked[0], 0) > 0)
"""


@pytest.mark.slow
def test_installed_package_adds_to_the_command_line(tmp_path: Path) -> None:
    target = tmp_path / "installed"
    facts = target / "small_package-1.dist-info"
    facts.mkdir(parents=True)
    (target / "small_package.py").write_text(PACKAGE, encoding="utf-8")
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: small-package\nVersion: 1\n", encoding="utf-8")
    (facts / "entry_points.txt").write_text("[ragbench]\nsmall = small_package\n", encoding="utf-8")
    here = {**os.environ, "PYTHONPATH": os.pathsep.join([str(target), str(Path(ragbench.__file__).parent.parent)])}

    def printed_by(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "ragbench", *words],
            check=True,
            env=here,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        return done.stdout

    models = ("index.encoder.name=package_letters", "p6=on", "p6.model=package_words")
    printed = printed_by("list", "config", "from_package=on", *models, "measures=[package_first]")
    assert "from_package weight=0.5" in printed


class Server(Loopback):
    """Answers as both kinds of endpoint do: the vector of a text is its length and 1."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[tuple[str, list[str], str | None]] = []
        self.busy = 0

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[Any, ...]:
        request = json.loads(body)
        self.asked.append((path, request["input"], headers["Authorization"]))
        if self.busy:
            self.busy -= 1
            return 429, "busy"
        if request["model"] == "missing":
            return 404, "missing"
        vectors = [[len(text), 1] for text in request["input"]]
        rows = [{"index": index, "embedding": vector} for index, vector in enumerate(vectors)]
        answers = {
            "/v1/embeddings": {"data": rows[::-1], "usage": {"total_tokens": 7 * len(rows)}},
            "/api/embed": {"embeddings": vectors, "prompt_eval_count": 7 * len(rows)},
        }
        return 200, answers[path]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server() as running:
        monkeypatch.setenv("OPENAI_BASE_URL", f"{running.url}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "secret")
        monkeypatch.setenv("OLLAMA_HOST", running.url.removeprefix("http://"))
        monkeypatch.setattr(chat, "_WAIT_S", 0.001)
        usage.take_usage()
        yield running


@pytest.mark.parametrize(("name", "path"), [("openai:small", "/v1/embeddings"), ("ollama:small", "/api/embed")])
def test_endpoint_encoder_gives_unit_vectors_in_batches(
    name: str, path: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(usage.PRICE, "2.0")
    texts = ["x" * n for n in range(1, endpoint.BATCH + 3)]
    models = Models(cache=tmp_path)
    vectors = models.encoder(EncoderSpec(name)).encode_passages(texts)
    assert vectors[2].tolist() == pytest.approx([3 / 10**0.5, 1 / 10**0.5])
    assert [(where, len(asked)) for where, asked, _ in server.asked] == [(path, 64), (path, 2)]
    assert server.asked[0][2] == ("Bearer secret" if name.startswith("openai") else None)
    used = usage.take_usage()[name]
    assert (used["texts"], used["requests"], used["tokens"]) == (66, 2, 7 * 66)
    assert used["usd"] == pytest.approx(2.0 * 7 * 66 / 1e6) and used["ms_per_text"] > 0
    again = Models(cache=tmp_path).encoder(EncoderSpec(name)).encode_passages(texts)
    assert np.array_equal(again, vectors) and len(server.asked) == 2 and usage.take_usage() == {}


def test_endpoint_encoder_asks_a_busy_server_again(server: Server) -> None:
    server.busy = 2
    assert load_encoder(EncoderSpec("openai:small")).encode_queries(["ab"]).shape == (1, 2)
    assert usage.take_usage()["openai:small"]["requests"] == 3
    server.busy = 99
    with pytest.raises(ModelError, check=naming("status 429", "5 times")):
        load_encoder(EncoderSpec("openai:small")).encode_queries(["ab"])


def test_endpoint_encoder_failure_is_one_sentence(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ModelError, match=r"openai:missing at http://127.0.0.1:\d+/v1 gave no vectors \(status 404"):
        load_encoder(EncoderSpec("openai:missing")).encode_queries(["ab"])
    monkeypatch.setenv("OLLAMA_HOST", "http://127.0.0.1:9")
    with pytest.raises(ModelError, check=naming("5 times")):
        load_encoder(EncoderSpec("ollama:small")).encode_queries(["ab"])
    monkeypatch.setenv("OLLAMA_HOST", "http://me:p4ss-w0rd@127.0.0.1:9")
    with pytest.raises(ModelError, match=r"small at http://\*\*\*@127.0.0.1:9 gave no vectors \(an address with"):
        load_encoder(EncoderSpec("ollama:small")).encode_queries(["ab"])
    check_name("openai:anything", "encoder")
    with pytest.raises(ModelError):
        check_name("openai:anything", "cross-encoder")


def test_package_exports_the_public_names() -> None:
    assert dir(ragbench) == sorted(ragbench.__all__) and len(dir(ragbench)) <= 16
    assert all(getattr(ragbench, name).__doc__ for name in dir(ragbench))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_endpoint_encoders_are_measured_and_compared(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(Path(__file__).parent / "data" / "phases", tmp_path / "notes")
    monkeypatch.chdir(tmp_path)
    shared = ["data=vault", "data.corpus=notes", "topics=derived", "split=all", "latency.enabled=false"]
    shared += ["tracking.enabled=false", "statistics.draws=1000", "paths.results=results"]
    words = ["exp=recommended", "index.encoder.name=openai:small", *shared]
    assert cli.main(["run", *words]) == 0
    (folder,) = (tmp_path / "results" / "runs").iterdir()
    used = json.loads((folder / "experiment.json").read_text())["endpoints"]["openai:small"]
    assert used["texts"] > 19 and used["tokens"] > 0
    assert cli.main(["advise", "paths.results=results"]) == 0
    assert "index.encoder.name=openai:small" in capsys.readouterr().out
    names = "index.encoder.name=openai:small,ollama:small"
    assert cli.main(["run", "-m", "exp=recommended", names, *shared, "--json"]) == 0
    arms = [f"recommended index.encoder.name={name}:small" for name in ("openai", "ollama")]
    assert list(dict.fromkeys(row["arm"] for row in json.loads(capsys.readouterr().out)["summary"])) == arms


def test_plugin_stage_example_drops_hits(index) -> None:
    """The example of `ragbench.stage` has the contract of a stage: it is put into a pipeline, which searches."""
    (example,) = doctest.DocTestFinder(recurse=False).find(ragbench.stage, "stage")
    module = types.ModuleType("stage_example")
    sys.modules[module.__name__] = module
    try:
        for line in example.examples[:2]:
            exec(line.source, module.__dict__)
        composed = ragbench.pipeline("exp=lexical_only", module.keep_guides(folder="guides"))
        kept, everything = (
            answer("how do lamps know when the sun sets", pipeline, index, 10).hits
            for pipeline in (composed.pipeline, ragbench.pipeline("exp=lexical_only").pipeline)
        )
    finally:
        del sys.modules[module.__name__]
    assert [hit.docno for hit in kept] == [hit.docno for hit in everything if hit.docno.startswith("guides")]
    assert 0 < len(kept) < len(everything)
