"""Translations are measured before they are written."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from ragbench.base.types import ConfigError
from ragbench.extras.engines import plan
from ragbench.extras.export import measured_arm, ragdocs
from ragbench.extras.export.file_format import Bench, Replay, Request, write
from ragbench.extras.systems import librarian_export as librarian
from tests.naming import naming


@pytest.fixture
def bench(finished) -> Bench:
    return Bench.of(measured_arm.find(finished.folder, "baseline"))


def test_replay_of_the_same_arm_loses_nothing(bench: Bench) -> None:
    replayed = bench.replay(bench.measured.settings)
    assert replayed.measured == pytest.approx(bench.measured.quality["nDCG@10"])
    # Two queries more than six could change by 2 / 8.
    assert (replayed.loss, replayed.low, replayed.high) == (0, -0.25, 0.25)
    assert replayed.topics == 6  # one of the seven has no answer
    assert re.match(r"nDCG@10 0\.\d{3} measured, 0\.\d{3} emulated by ragbench: change \[", replayed.sentence)


def test_replay_of_another_arm_has_its_score(bench: Bench, finished) -> None:
    """The score of an arm of the same run, computed by ir_measures when it was measured."""
    other = measured_arm.find(finished.folder, "librarian_rerank")
    assert bench.replay(other.settings).replayed == pytest.approx(other.quality["nDCG@10"])


def test_replay_scores_hits_of_an_engine(bench: Bench) -> None:
    answers = {"how do programs prove their identity": [("authentication", 1.0), ("team", 0.5)]}
    replayed = bench.score({query.qid: answers.get(query.text, []) for query in bench.measured.queries}, "by a list")
    assert replayed.replayed == pytest.approx(1 / 6)


def test_replay_refuses_a_loss_without_force() -> None:
    replayed = Replay(0.6, 0.59, -0.03, 0.01, 100, "emulated by ragbench")
    Request("opensearch", max_loss=0.011).refuse_loss(replayed)
    with pytest.raises(ConfigError, check=naming("[-0.030, +0.010]", "--max-loss 0.005")):
        Request("opensearch", max_loss=0.005).refuse_loss(replayed)


def test_written_file_begins_with_both_scores(finished, tmp_path: Path) -> None:
    readers = {"librarian": lambda text: json.loads(text)["ragbench"]["about"], "ragdocs": str.splitlines}
    for format, read in readers.items():
        written = write(finished.folder, tmp_path / format, arm="baseline", format=format, force=True)
        assert written.replay is not None
        assert written.replay.sentence in "\n".join(read(written.out.read_text())[:2])


def test_refused_loss_writes_nothing(finished, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(librarian, "replayed", lambda s: s.with_values({"cut.top_n": 1, "lexical": {}}))
    out = tmp_path / "config.json"
    with pytest.raises(ConfigError, check=naming("loses")):
        write(finished.folder, out, arm="baseline", format="librarian", max_loss=-1.0)
    assert not out.exists()


def test_settings_that_run_elsewhere(composed) -> None:
    """Steps that the other system lacks are off, its own are on."""
    settings = composed("+exp=recommended")
    engine = plan.without_ranker(settings)
    assert [name for name, _ in engine.pipeline] == ["dense", "lexical", "documents", "fuse", "cut"]
    assert engine.index.sources == settings.index.sources
    january = ragdocs.replayed(settings)
    assert {"graph", "calibration", "p8.content_hash"} <= {name for name, _ in january.pipeline}
    assert january.index.lexical.analyzer == "standard" and january.index.passage.headings
    names = [name for name, _ in librarian.replayed(settings).pipeline]
    assert names == ["dense", "lexical", "average", "context", "cut"]
    assert type(librarian.replayed(settings).index.chunker).__name__ == "LibrarianSemanticChunker"
