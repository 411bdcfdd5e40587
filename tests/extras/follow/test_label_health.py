"""Runs say how the labels are, and the gate tells a loss of the labels from a loss of the search."""

from __future__ import annotations

import html as html_module
import random
import subprocess
from pathlib import Path

import pytest

from ragbench.base.types import ResultsError
from ragbench.benchmark.label_health import LabelHealth
from ragbench.config.benchmark import load
from ragbench.experiment.run import run
from ragbench.extras.export.gate import Limits, gate, moved
from ragbench.extras.export.measured_arm import find
from ragbench.extras.report import html
from ragbench.report import screen
from ragbench.results.labels import followed_values
from ragbench.results.measurements import Measurements
from ragbench.workbench.results import Results

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
    assert after.labels.health.rewritten == len(NAMES) and not after.labels.doubtful
    quality, labels = (
        check
        for check in gate(find(before.folder), find(after.folder), Limits(changed_data=True))
        if check.part in ("quality", "labels")
    )
    assert (quality.outcome, labels.undecided) == ("fails", False)


def test_doubtful_labels_take_no_part_in_run_and_gate(settings_of, project: Path) -> None:
    before = measured(settings_of, project)
    text = (project / "docs" / "keys.md").read_text()
    (project / "docs" / "guide.md").write_text(text)
    (project / "docs" / "keys.md").write_text("# Keys\n\nkeys now have a guide of their own with other words in it\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "move the text")
    after = measured(settings_of, project)
    said = "1 doubtful judgment takes no part, such as keys for 'keys'; 1 query without another one is excluded"
    assert after.labels.health == LabelHealth(stand=7, doubtful=1)
    assert said in screen.label_sentences(after) and html_module.escape(said, quote=True).replace(
        "&#x27;", "&#39;"
    ) in html.render(after)
    assert said in Results.of(after).as_json()["labels"] and "labels" not in Results.of(before).as_json()
    assert len(after.judged_queries) == 7 and after.values("ours").mean() == 1
    assert before.record["benchmark"]["digest"] != after.record["benchmark"]["digest"]
    sides = find(before.folder), find(after.folder)
    checks = gate(*sides, Limits(changed_data=True))
    (labels,) = (check for check in checks if check.part == "labels")
    assert said in labels.message and "; 1 query with doubtful judgments excluded from both runs" in labels.message
    (quality,) = (check for check in checks if check.part == "quality")
    assert {level.comparison.n for level in quality.levels} == {7}
    assert {qid for check in checks for qid in check.excluded} == {qid for qid, _ in after.labels.doubtful}
    assert moved(checks, *sides) == ([], [])
    lost, _ = moved([], *sides)
    assert [query.query for query in lost] == ["keys"]  # were it not excluded


def test_gate_of_doubtful_labels_alone_compares_nothing(settings_of, project: Path) -> None:
    rows = [f"{name},{name}.md;regions.md" for name in NAMES[:-1]]
    (project / "q.csv").write_text("\n".join(["text,relevant", *rows]) + "\n")
    git(project, "commit", "-qam", "judge again")
    before = measured(settings_of, project)
    for name in NAMES[:-1]:
        page = project / "docs" / f"{name}.md"
        (project / "docs" / f"guide-{name}.md").write_text(page.read_text())
        page.write_text("# Page\n\nThis page has moved to a place of its own now\n")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "move all but one")
    after = measured(settings_of, project)
    assert after.labels.health == LabelHealth(stand=7, doubtful=7) and len(after.judged_queries) == 7
    with pytest.raises(ResultsError, match="no query can be compared, because all have doubtful judgments"):
        gate(find(before.folder), find(after.folder), Limits(changed_data=True))


def test_retimed_run_keeps_its_labels(settings_of, project: Path) -> None:
    from ragbench.experiment.run import remeasure_latency

    finished = measured(settings_of, project)
    assert remeasure_latency(finished).labels.health == finished.labels.health
