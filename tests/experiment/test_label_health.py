"""Runs say how the labels are, and the gate tells a loss of the labels from a loss of the search."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from ragbench.benchmark.labels import LabelHealth
from ragbench.config.benchmark import load
from ragbench.experiment.run import run
from ragbench.export.gate import Limits, gate
from ragbench.export.measured_arm import find
from ragbench.report import html, screen
from ragbench.results.labels import followed_values
from ragbench.results.measurements import Measurements

NAMES = ("keys", "logs", "backup", "roles", "limits", "tokens", "quotas", "regions")


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    chosen = random.Random(1)
    (tmp_path / "docs").mkdir()
    for name in NAMES:
        text = " ".join("".join(chosen.choices("abcdefghij", k=5)) for _ in range(40))
        (tmp_path / "docs" / f"{name}.md").write_text(f"# About {name}\n\n{name} {text}\n")
    rows = [f"{name},{name}.md" for name in NAMES]
    (tmp_path / "q.csv").write_text("\n".join(["text,relevant", *rows]) + "\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "judge")
    return tmp_path


def measured(settings_of, project: Path) -> Measurements:
    data = ("data=vault", f"data.corpus={project / 'docs'}", f"data.queries={project / 'q.csv'}", "split=all")
    arm = settings_of(project / "results", *data, "name=ours", "latency.enabled=false")
    return run([arm], load(arm.config))


def test_run_and_gate_tell_moved_labels_from_a_worse_search(settings_of, project: Path) -> None:
    before = measured(settings_of, project)
    assert before.labels.health == LabelHealth(stand=8)
    assert screen.label_lines(before) == ["label health: all 8 judgments stand"]
    for name in NAMES[:6]:
        git(project, "mv", f"docs/{name}.md", f"docs/page-on-{name}-of-today.md")
    (project / "docs" / "quotas.md").unlink()
    git(project, "add", "-A")
    git(project, "commit", "-qm", "move")
    after = measured(settings_of, project)
    assert after.labels.health == LabelHealth(stand=1, moved=6, gone=1)
    values = followed_values(after, "ours")
    assert len(values) == 7 and set(values.values()) == {1.0}
    assert "label health: 1 of 8 judgments stand, 6 moved, 1 is gone" in " ".join(screen.label_lines(after))
    assert "6 moved, 1 is gone: ragbench data repair lists them" in html.render(after)
    checks = gate(find(before.folder), find(after.folder), Limits(changed_data=True))
    (labels,) = (check for check in checks if check.part == "labels")
    assert "6 moved" in labels.message and "by +0.000 where the judged pages are now" in labels.message


def test_gate_does_not_excuse_emptied_pages_by_their_labels(settings_of, project: Path) -> None:
    before = measured(settings_of, project)
    for name in NAMES:
        (project / "docs" / f"{name}.md").write_text("# Page\n\nTo be written.\n", encoding="utf-8")
    git(project, "commit", "-qam", "empty")
    after = measured(settings_of, project)
    assert after.labels.health.doubtful == len(NAMES) and not after.labels.doubtful_queries
    quality, labels = (
        check
        for check in gate(find(before.folder), find(after.folder), Limits(changed_data=True))
        if check.part in ("quality", "labels")
    )
    assert (quality.outcome, labels.undecided) == ("fails", False)


def test_retimed_run_keeps_its_labels(settings_of, project: Path) -> None:
    from ragbench.experiment.run import remeasure_latency

    finished = measured(settings_of, project)
    assert remeasure_latency(finished).labels.health == finished.labels.health
