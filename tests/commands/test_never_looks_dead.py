"""No long command looks dead: with models so slow that every call takes seconds, something changes all the time.

Time is a clock that only the models move, so the tests neither wait nor depend on the machine.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Lock

import numpy as np
import pytest

from ragbench.base import console
from ragbench.base.console import Nothing, Pipe
from ragbench.base.fingerprint import text_digest
from ragbench.base.progress import Progress
from ragbench.commands import cli
from ragbench.models import onnx

pytestmark = pytest.mark.filterwarnings("ignore")  # MLflow and the libraries below it warn of each other

NOTES = Path(__file__).parent.parent / "data" / "phases"
SECONDS = 1.2
"""What a call of a model takes."""
ON_TERMINAL, IN_PIPE = 5.0, 30.0
"""The longest times without a visible change."""
QUESTIONS = (
    ("how do programs prove their identity", "authentication"),
    ("largest file I may send", "configuration"),
    ("which compiler do I need", "clients"),
    ("how long does the cdn copy live", "caching"),
    ("counters", "metrics"),
    ("the guide on emptying a queue", "queues"),
    ("server says come back later", "uploads"),
    ("what happens when somebody guesses too many logins", "security"),
    ("switch traffic between two running versions", "deployment"),
    ("who answers at night", "team"),
    ("looking for viruses in what people send", "scanning"),
    ("why is my request taking so long", "slow-requests"),
)


class SlowMachine(Nothing):
    """A clock that models move, and what a person would have seen when."""

    shows = True

    def __init__(self) -> None:
        self.now = 0.0
        self.changes: list[tuple[float, str]] = []
        self.lines: list[tuple[float, str]] = []
        self.pipe = Pipe(lambda line: self.lines.append((self.now, line)))
        self._lock = Lock()

    def work(self, seconds: float) -> None:
        with self._lock:
            self.now += seconds

    def changed(self, progress: Progress, new: bool) -> None:
        self.changes.append((self.now, progress.line))
        self.pipe.changed(progress, new)

    def silences(self, seen: list[tuple[float, str]]) -> list[tuple[float, str]]:
        """The seconds between what was seen, and what stood there meanwhile."""
        moments = [(0.0, "at the beginning"), *seen, (self.now, "at the end")]
        return [(after - before, line) for (before, line), (after, _) in pairwise(moments)]


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowMachine:
    """Models of eight dimensions that take `SECONDS` for a text and a tenth of it for a pair."""
    machine = SlowMachine()

    def vector(encoder: object, text: str) -> np.ndarray:
        machine.work(SECONDS)
        return np.random.default_rng(int(text_digest(text)[:8], 16)).normal(size=8)

    def logit(model: object, query: str, passage: str) -> np.ndarray:
        machine.work(SECONDS / 10)
        return np.array([len(set(query.split()) & set(passage.split()))], dtype=np.float64)

    @contextmanager
    def viewed(quiet: bool) -> Iterator[Progress]:
        yield Progress(machine, lambda: machine.now)

    monkeypatch.setattr(onnx.OnnxEncoder, "pooled_vector", vector)
    monkeypatch.setattr(onnx.OnnxEncoder, "dim", 8)
    monkeypatch.setattr(onnx.OnnxCrossEncoder, "logits", logit)
    monkeypatch.setattr(console, "_viewed", viewed)
    return machine


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """Settings of a small project in folders of its own."""
    notes = shutil.copytree(NOTES, tmp_path / "notes")
    rows = [
        f"{text}{' again' * again},{docno}.md,{split}"
        for again, split in enumerate(("train", "train", "test"))
        for text, docno in QUESTIONS
    ]
    (tmp_path / "queries.csv").write_text("\n".join(["text,relevant,split", *rows]) + "\n")
    return [
        *("data=vault", f"data.corpus={notes}", f"data.queries={tmp_path / 'queries.csv'}"),
        *(f"paths.results={tmp_path / 'results'}", "latency.queries=4", "latency.rounds=1", "latency.warmup=2"),
        *("latency.cold_start=false", "statistics.draws=500", "tracking.enabled=false"),
    ]


def run(words: list[str], tmp_path: Path) -> None:
    arms = ["plain=", "named=exp=recommended", "deep=rerank=on rerank.depth=3"]
    assert cli.main(["run", *words, "split=test", *(word for arm in arms for word in ("--arm", arm))]) == 0


def ablate(words: list[str], tmp_path: Path) -> None:
    assert cli.main(["ablate", *words, "exp=baseline", "p2=on", "p6=on", "p6.depth=3"]) == 0


def tune(words: list[str], tmp_path: Path) -> None:
    assert cli.main(["tune", *words, "tune=[fuse]", "tune.starts=[]", "tune.trials=4", "tune.folds=2"]) == 0


def index(words: list[str], tmp_path: Path) -> None:
    assert cli.main(["index", *words[:4], "exp=recommended"]) == 0


def fit(words: list[str], tmp_path: Path) -> None:
    assert cli.main(["fit", "ranker", *words, "exp=baseline", "--rounds", "5"]) == 0


def export(words: list[str], tmp_path: Path) -> None:
    assert cli.main(["run", *words, "exp=baseline", "rerank=on", "rerank.depth=3", "latency.enabled=false"]) == 0
    shutil.rmtree(tmp_path / "results" / "cache")
    shutil.rmtree(tmp_path / "results" / "index")
    named = next((tmp_path / "results" / "runs").iterdir())
    assert cli.main(["export", str(named), "--out", str(tmp_path / "bundle")]) == 0


def export_and_refresh(words: list[str], tmp_path: Path) -> None:
    export(words, tmp_path)
    for number in range(30):
        (tmp_path / "notes" / f"new-{number}.md").write_text(f"# Number {number}\n\nThis is note {number} of many.\n")
    assert cli.main(["refresh", str(tmp_path / "bundle"), "--corpus", str(tmp_path / "notes")]) == 0


LONG = (run, ablate, tune, index, fit, export_and_refresh)


@pytest.mark.slow
@pytest.mark.parametrize("command", LONG, ids=lambda command: command.__name__)
def test_long_command_reports_progress_all_the_time(
    command: Callable[[list[str], Path], None], slow: SlowMachine, words: list[str], tmp_path: Path
) -> None:
    command(words, tmp_path)
    assert slow.now > IN_PIPE, "the models did nothing"
    assert max(slow.silences(slow.changes)) <= (ON_TERMINAL, "")
    assert max(slow.silences(slow.lines)) <= (IN_PIPE, "")
