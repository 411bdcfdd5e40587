"""Presets of all three systems, measured once on the handbook in tests/data/phases, and their bundles."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.load import load
from ragbench.config import composition
from ragbench.config.settings import Settings
from ragbench.experiment.run import run
from ragbench.export import bundle, measured_arm
from ragbench.export.engines.content import ChunkRow, DocumentRow
from ragbench.export.engines.plan import Plan
from ragbench.export.engines.words import Terms
from ragbench.index.lexical import Bm25F
from ragbench.results.measurements import Measurements

HANDBOOK = Path(__file__).parent.parent / "data" / "phases"
PRESETS = {"baseline": (), "phase4": ("p1=off", "p6.depth=3"), "lexical_v3": (), "librarian_rerank": ()}
QUESTIONS = {
    "how do programs prove their identity": "authentication",
    "what does getAuthToken return": "api-reference",
    "nightly archive": "archive-nightly",
    "why are requests slow": "slow-requests",
    "who is on the team": "team",
    "cache": "caching",
    "moose": "",
}


@pytest.fixture(scope="session")
def composed() -> Callable[..., Settings]:
    """The settings for overrides, composed once."""
    return cache(lambda *overrides: composition.compose(overrides))


@pytest.fixture(scope="session")
def handbook_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The handbook and its questions where tests may change copies of them."""
    folder = tmp_path_factory.mktemp("handbook")
    shutil.copytree(HANDBOOK, folder / "notes")
    rows = [f"{text},{docno and docno + '.md'},test" for text, docno in QUESTIONS.items()]
    (folder / "questions.csv").write_text("\n".join(["text,relevant,split", *rows]), encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def questions() -> list[str]:
    return list(QUESTIONS)


@pytest.fixture(scope="session")
def finished(handbook_folder: Path, workplace: Path) -> Measurements:
    around = [
        "data=vault",
        f"data.corpus={handbook_folder / 'notes'}",
        f"data.queries={handbook_folder / 'questions.csv'}",
        f"paths.results={workplace}",
        "tracking.uri=http://name:secret@tracking.example.org",
        *("latency.queries=2", "latency.rounds=2", "latency.warmup=1", "latency.cold_start=false"),
    ]
    settings = [composition.compose([f"+exp={name}", *more, *around]) for name, more in PRESETS.items()]
    return run(settings, load(settings[0].config["data"]), say=lambda sentence: None)


@pytest.fixture(scope="session")
def handbook(finished: Measurements) -> Benchmark:
    return load(measured_arm.find(finished.folder, "baseline").settings.config["data"])


@pytest.fixture(scope="session")
def bundle_of(
    finished: Measurements, handbook: Benchmark, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Path]:
    """The bundle of a preset, made once; tests that change one copy it first."""

    @cache
    def make(preset: str) -> Path:
        arm = measured_arm.find(finished.folder, preset)
        out = tmp_path_factory.mktemp("bundles") / preset
        return bundle.write(arm, handbook, out, evidence=measured_arm.evidence(arm), say=lambda sentence: None)

    return make


@pytest.fixture
def copied(bundle_of: Callable[[str], Path], tmp_path: Path) -> Path:
    """A copy of the bundle of `baseline`."""
    return Path(shutil.copytree(bundle_of("baseline"), tmp_path / "copied"))


@pytest.fixture(scope="session")
def recommended(handbook_folder: Path, workplace: Path) -> Measurements:
    """The recommended search over the handbook."""
    around = [
        *("data=vault", f"data.corpus={handbook_folder / 'notes'}"),
        *(f"data.queries={handbook_folder / 'questions.csv'}", f"paths.results={workplace}"),
        *("latency.enabled=false", "tracking.enabled=false"),
    ]
    settings = composition.compose(["+exp=recommended", *around])
    return run([settings], load(settings.config["data"]), say=lambda sentence: None)


@pytest.fixture
def two_chunks() -> tuple[Plan, list[tuple[DocumentRow, NDArray[np.float32]]], Terms]:
    """A plan, two documents of one chunk with their vectors, and what analyses their words."""
    scoring = Bm25F((("content", 1.0),), 1.2, 0.75)
    plan = Plan(
        {"dense": 2, "lexical": 2, "documents": 2}, {"dense": 0.5, "lexical": 0.3, "documents": 0.2}, "convex", 60.0,
        scoring, scoring, "technical",
    )  # fmt: skip
    rows = []
    for name, text, vector in (("a", "apple pear", (1.0, 0.0)), ("b", "apple apple", (0.6, 0.8))):
        chunk = ChunkRow(f"{name}#0", (), 0, 1, 1, text, {"content": text}, text, 0)
        row = DocumentRow(name, f"{name}.md", name, 0.0, {}, {"content": text}, (chunk,), name)
        rows.append((row, np.array(vector, np.float32)))
    return plan, rows, Terms("technical")
