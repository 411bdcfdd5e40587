"""What tests share: a small vault, its benchmark and index, settings and questions for searches."""

from __future__ import annotations

import gc
import itertools
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import hypothesis
import jnius_config
import pytest

from ragbench.base import locations
from ragbench.base.rankings import QueryState
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.boundary.json import read_checksummed
from ragbench.config import composition
from ragbench.config.settings import ArmBuilder, Settings
from ragbench.corpus.reader import read_vault
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index, IndexSpec
from ragbench.models.resolve import Models
from ragbench.search.engine.pipeline import Arm
from ragbench.search.stages.stage import Stage

pytest_plugins = ["tests.fixtures.clock", "tests.fixtures.exported", "tests.fixtures.stages"]

# Every folder and variable that could change a result is the session's own: home, state, working directory. Workers
# inherit them from the process that starts them.
INHERITED = os.environ.get("PYTEST_RAGBENCH_SESSION")
SESSION = Path(INHERITED or tempfile.mkdtemp(prefix="ragbench-tests-"))
numbers = itertools.count()


def pytest_configure(config: pytest.Config) -> None:
    """Hide what the user has set: RAGBENCH_* and XDG_* variables, the home folder, results in the working directory."""
    for name in [name for name in os.environ if name.startswith(("RAGBENCH_", "XDG_"))]:
        del os.environ[name]
    home = SESSION / "home"
    home.mkdir(exist_ok=True)
    gc.disable()
    os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # compiling each function of ranx takes seconds
    jnius_config.add_options("-XX:TieredStopAtLevel=1")  # what is compiled further is not used long enough
    os.environ |= {"HOME": str(home), "XDG_STATE_HOME": str(home / "state"), "PYTEST_RAGBENCH_SESSION": str(SESSION)}


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let no search for garbage go through what was imported and collected; that would be a tenth of the time."""
    gc.freeze()
    gc.set_threshold(10_000, 20, 20)
    gc.enable()


def pytest_unconfigure(config: pytest.Config) -> None:
    if not INHERITED:
        shutil.rmtree(SESSION, ignore_errors=True)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the CPU time of the whole run, with its workers and all processes that they started."""
    seconds = sum(os.times()[:4])
    terminalreporter.write_line(f"CPU time: {seconds:.0f} s")


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Pytest's, which also gets what ragbench logs after a command has kept it from the root logger."""
    logger = logging.getLogger("ragbench")
    propagates, logger.propagate = logger.propagate, False
    logger.addHandler(caplog.handler)
    caplog.set_level(logging.INFO, logger="ragbench")
    yield caplog
    logger.removeHandler(caplog.handler)
    logger.propagate = propagates


@pytest.fixture(autouse=True)
def isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test a working directory and a record of comparisons of its own."""
    folder = SESSION / f"{os.getpid()}-{next(numbers)}"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the configuration that a test may write to."""
    folder = tmp_path / "conf"
    shutil.copytree(locations.configuration(), folder)
    monkeypatch.setattr(locations, "configuration", lambda: folder)
    return folder


# The same examples in every run: what is found by chance is found by `--hypothesis-profile=default`.
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None)
hypothesis.settings.load_profile("steady")


DATA = Path(__file__).parent / "data"
HANDBOOK = DATA / "phases"
# What is trained on prefers words, what is tested on prefers meaning.
QUESTIONS = (
    "how do programs prove their identity",
    "what happens when somebody guesses too many logins",
    "switch traffic between two running versions",
    "largest file I may send",
    "how long does the cdn copy live",
    "the guide on emptying a queue",
    "server says come back later",
    "keeping a second copy of everything safe",
    "who answers at night",
    "looking for viruses in what people send",
    "numbers about how the system feels",
    "why is my request taking so long",
)
ONE_PARAMETER = ("tune=[]", "tune.starts=[]", "+tune.space.fuse.weights.lexical={low: 0.02, high: 50.0, log: true}")


TOPICS = (
    Topic("t1", "LNT-301", "factual", "test"),
    Topic("t2", "how do lamps know when the sun sets", "vocabulary", "test"),
    Topic("t3", "getAuthToken", "code", "train"),
    Topic("t4", "what happens after too many wrong passwords", "exploratory", "train"),
    Topic("t5", "can lantern play music", "no_answer", "test"),
)
SECTION_QRELS = {
    "t1": {"reference/errors#error-codes": 3, "guides/authentication#authentication/certificates-for-controllers": 2},
    "t2": {"guides/schedules#schedules/dusk-and-dawn": 3, "guides/schedules-v1#schedules/dusk-and-dawn": 0},
    "t3": {"guides/authentication#authentication/certificates-for-controllers": 3},
    "t4": {"guides/authentication#authentication/accounts-for-people": 3},
    "t5": {"index#lantern-handbook": 0},
}


@dataclass(frozen=True)
class Idle(Stage):
    """A stage after fusion that does nothing, for tests to give it something to do."""

    requires: ClassVar[frozenset[str]] = frozenset({"fused"})

    def __call__(self, states: Sequence[QueryState], index) -> list[QueryState]:
        return list(states)

    def describe(self) -> str:
        return "do nothing"


@pytest.fixture(scope="session")
def idle() -> type[Idle]:
    return Idle


@pytest.fixture(scope="session")
def vault_folder() -> Path:
    return DATA / "vault"


@pytest.fixture(scope="session")
def benchmark_small(vault_folder: Path) -> Benchmark:
    from ragbench.benchmark.benchmark import best_sections

    documents = read_vault(vault_folder).documents
    return Benchmark("lantern", documents, TOPICS, best_sections(SECTION_QRELS), SECTION_QRELS)


@pytest.fixture(scope="session")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder for the session; embeddings and artefacts are made once for all of its processes."""
    folder = tmp_path_factory.mktemp("results")
    for shared in ("cache", "index"):
        (SESSION / shared).mkdir(exist_ok=True)
        (folder / shared).symlink_to(SESSION / shared)
    return folder


@pytest.fixture(scope="session")
def models(workplace: Path) -> Models:
    return Models(cache=workplace / "cache")


@pytest.fixture(scope="session")
def make_index(benchmark_small: Benchmark, workplace: Path, models: Models):
    """A function from an index specification to the index of the small vault."""

    def make(spec: IndexSpec | None = None) -> Index:
        store = ArtefactStore(workplace / "index")
        return Index(spec or IndexSpec(), benchmark_small.collection, lambda: benchmark_small.documents, store, models)

    return make


@pytest.fixture(scope="session")
def index(make_index) -> Index:
    return make_index()


@pytest.fixture(scope="session")
def small_bundle(workplace: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle of the default pipeline over the handbook in tests/data/phases, with three golden queries."""
    from ragbench.benchmark.load import load
    from ragbench.config import composition
    from ragbench.experiment.run import run
    from ragbench.extras.export import measured_arm
    from ragbench.extras.ship import bundle

    questions = {"how do programs prove their identity": "authentication", "counters": "metrics", "moose": ""}
    folder = tmp_path_factory.mktemp("bundle")
    rows = [f"{text},{docno and docno + '.md'},test" for text, docno in questions.items()]
    (folder / "questions.csv").write_text("\n".join(["text,relevant,split", *rows]), encoding="utf-8")
    places = [f"data.corpus={DATA / 'phases'}", f"data.queries={folder / 'questions.csv'}"]
    settings = composition.compose(
        ["data=vault", *places, f"paths.results={workplace}", "latency.enabled=false", "name=small"]
    )
    handbook = load(settings.config["data"])
    arm = measured_arm.find(run([settings], handbook, folder=folder / "run").folder)
    return bundle.write(arm, folder / "bundle", evidence=measured_arm.evidence(arm))


@pytest.fixture
def priced(monkeypatch: pytest.MonkeyPatch):
    """Translations of runs with made-up results lose nothing: there are no documents to replay them on."""
    from ragbench.extras.export import file_format
    from ragbench.extras.export.file_format import Replay

    class Bench:
        def replay(self, settings) -> Replay:
            assert settings.pipeline
            return Replay(0.65, 0.65, 0.0, 0.0, 30, "emulated by ragbench")

    monkeypatch.setattr(file_format.Bench, "of", staticmethod(lambda *_: Bench()))


@pytest.fixture(scope="session")
def write_results():
    """A function that writes the folder of a finished run: nDCG@10 of every arm, perhaps its p95 in milliseconds."""
    import numpy as np
    import pandas as pd

    from ragbench.config import composition
    from ragbench.results import environment, measurements, store

    settings = composition.compose(["statistics.draws=2000"])
    record = {"split": "test", "benchmark": {"name": "made", "digest": "d" * 64}, "overrides": {}}
    record["environment"] = environment.describe()

    def write(
        folder: Path,
        arms: dict[str, list[float]],
        p95_ms: dict[str, float] | None = None,
        passages: dict[str, list[float]] | None = None,
        recalls: dict[str, list[float]] | None = None,
        latency_enabled: bool = True,
    ) -> Path:
        made, frames, latency = store.RunFolder(folder), [], pd.DataFrame({"arm": [], "stage": []})
        qids = sorted({f"q{n}" for values in arms.values() for n in range(len(values))})
        made.table(measurements.TOPICS, measurements.TOPIC_COLUMNS.frame((q, "test", "x", "", "", "") for q in qids))
        for arm, values in arms.items():
            levels = {"document": values, **({"passage": passages[arm]} if passages else {})}
            rows = [
                (arm, level, "test", "x", f"q{n}", "nDCG@10", value)
                for level, of_level in levels.items()
                for n, value in enumerate(of_level)
            ]
            recalled = enumerate(recalls[arm] if recalls else ())
            rows += [(arm, "passage", "test", "x", f"q{n}", "Recall@2000tokens", value) for n, value in recalled]
            frames.append(pd.DataFrame(rows, columns=list(measurements.PER_QUERY_COLUMNS)))
            arm_folder = made.arm(arm)
            arm_folder.text("config.yaml", store.yaml_text({**settings.config, "name": arm}))
            arm_folder.table(measurements.PER_QUERY, frames[-1])
            if p95_ms:  # the same spread for every arm: 5% on either side
                samples = p95_ms[arm] * np.linspace(0.9, 1.0053, 80)
                timed = pd.DataFrame({"qid": [f"q{n}" for n in range(80)], "total": samples})
                arm_folder.table("latency.parquet", timed)
            arm_folder.finish_arm("made")
        if p95_ms:
            columns = ["arm", "stage", "p50", "p95", "p99", "p95_low", "p95_high"]
            times = [(arm, "total", p95 / 2, p95, p95, p95 * 0.95, p95 * 1.05) for arm, p95 in p95_ms.items()]
            latency = pd.DataFrame(times, columns=columns)
            made.text("latency.csv", latency.to_csv(index=False))
        final = {
            **record,
            "arms": list(arms),
            "latency": {"enabled": latency_enabled},
            "parameters": {arm: {} for arm in arms},
            "topics": max(map(len, arms.values())),
        }
        measurements.against_first(
            measurements.Measurements(folder, final, pd.concat(frames, ignore_index=True), latency)
        )
        made.finish(final)
        return folder

    return write


@pytest.fixture(scope="session")
def reseal() -> Callable[[Path], None]:
    """A function that makes a changed results folder one that was written like this."""
    from ragbench.results import store

    def again(folder: Path) -> None:
        written = store.RunFolder(folder)
        record = read_checksummed(folder / store.RECORD)
        for arm in record["arms"]:
            written.arm(arm).finish_arm(read_checksummed(written.arm(arm).path / store.DONE)["key"])
        written.finish(record)

    return again


def compose(overrides: Sequence[str]) -> Settings:
    """The settings of one configuration."""
    return composition.compose(overrides)


@pytest.fixture(scope="session")
def settings_of(workplace: Path) -> Callable[..., Settings]:
    """A function from overrides to settings whose indexes and caches are the session's."""

    def make(results: Path, *overrides: str) -> Settings:
        around = [
            f"paths.results={results}",
            f"paths.index={workplace / 'index'}",
            f"paths.cache={workplace / 'cache'}",
        ]
        small = ["latency.queries=2", "latency.rounds=1", "latency.warmup=0", "latency.cold_start=false"]
        return compose([*around, *small, "tracking.enabled=false", *overrides])

    return make


@pytest.fixture(scope="session")
def opposed(settings_of, tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """Every question twice: in train the best document by words is relevant, in test the best one by meaning."""
    documents = read_vault(HANDBOOK).documents
    topics = tuple(
        Topic(f"{split}{n}", text, "vocabulary", split, group=f"{split} {n // 2}")
        for split in ("train", "test")
        for n, text in enumerate(QUESTIONS)
    )
    empty = Benchmark("opposed", documents, topics, {})
    results = tmp_path_factory.mktemp("opposed")
    best: dict[str, list[str]] = {}
    for name, other in (("words", "dense=null"), ("meaning", "lexical=null")):
        settings = settings_of(results, other)
        (arm,) = ArmBuilder.of(settings, empty).arms([replace(settings)])
        assert isinstance(arm, Arm)
        arm.index.prepare(arm.pipeline.needs)
        states = arm.pipeline([topic.query() for topic in topics[: len(QUESTIONS)]], arm.index)
        best[name] = [arm.index.chunks.docno(int(state.fused.chunks[0])) for state in states]
    assert sum(a != b for a, b in zip(best["words"], best["meaning"], strict=True)) >= 4
    pairs = zip(topics, [*best["words"], *best["meaning"]], strict=True)
    return replace(empty, document_qrels={topic.qid: {docno: 1} for topic, docno in pairs})
