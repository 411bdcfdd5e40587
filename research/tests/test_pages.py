"""Figures of docs/research: what the seeds require of them, and that generated pages are current."""

from __future__ import annotations

import re

import pytest

from ragbench.boundary.yaml import read_yaml_file
from research.conformance import PAGE, ROOT, document, read
from research.scorecard import page as scorecard


def test_conformance_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == document(read()), "run: python -m research.conformance"


def test_reference_page_has_phases_with_measures_and_times() -> None:
    # seed 000, appendix A
    text = (ROOT / "docs" / "research" / "reference.md").read_text(encoding="utf-8")
    head = next(line for line in text.splitlines() if line.startswith("| arm | "))
    assert all(name in head for name in ("nDCG@5", "nDCG@10", "RR", "p50 ms", "p95 ms"))
    assert all(f"\n| {arm} | " in text for arm in ("baseline", "phase1", "phase2", "phase3"))


def test_scaling_page_has_the_sizes_of_the_seed() -> None:
    # seed 001, "Performance Characteristics": up to 10,000 documents, time and memory
    text = (ROOT / "docs" / "research" / "scaling.md").read_text(encoding="utf-8")
    documents = [int(row.replace(",", "")) for row in re.findall(r"^\| [\d,]+ \| ([\d,]+) \| [\d.]+ \|", text, re.M)]
    assert min(documents) < 1000 < 10_000 < max(documents)
    assert "| peak MB |" in text


def test_scorecard_page_and_pictures_are_current() -> None:
    figures, seeds = scorecard.Figures.read(), read_yaml_file(scorecard.SEEDS)
    run = "run: python -m research.scorecard"
    assert scorecard.PAGE.read_text(encoding="utf-8") == scorecard.page(figures, seeds), run
    assert (scorecard.PICTURES / "quadrant.svg").read_text() == scorecard.quadrant(figures, seeds["proposals"]), run
    assert (scorecard.PICTURES / "curves.svg").read_text() == scorecard.curves(figures, seeds["curves"]), run
    text = scorecard.PROPOSALS.read_text(encoding="utf-8")
    assert [
        name for name, row in seeds["proposals"].items() if scorecard.proposal(name, row, figures) not in text
    ] == []


def test_scorecard_names_existing_files_and_both_states() -> None:
    criteria = read_yaml_file(scorecard.SEEDS)["criteria"]
    shown = {row["shown"] for row in criteria if row["shown"] != "make check"}
    folders = (ROOT, ROOT / "docs" / "research", ROOT / "research" / "scorecard")
    assert [path for path in shown if not any((folder / path).exists() for folder in folders)] == []
    assert len(criteria) >= 30 and {row["met"] for row in criteria} > {True, False}


def test_librarian_presets_answer_within_200_ms() -> None:
    # seed 004, success criteria; as the reference results have measured it
    text = (ROOT / "docs" / "research" / "reference.md").read_text(encoding="utf-8")
    _, _, table = text.partition("## Presets, test queries\n\n")
    head, _, *rows = [[cell.strip() for cell in line.split("|")] for line in table.partition("\n\n")[0].splitlines()]
    p95 = {row[1]: float(row[head.index("p95 ms")]) for row in rows if row[1].startswith("librarian_")}
    assert set(p95) == {f"librarian_{mode}" for mode in ("keyword", "semantic", "hybrid", "rerank")}
    assert all(value < 200 for value in p95.values())


def test_librarian_chunks_cost_what_was_measured() -> None:
    """Seed 004, "Success Metrics": with chunks less than double the time and the memory of indexing."""
    rows = [row for row in read_yaml_file(scorecard.SEEDS)["criteria"] if row["seed"] == "004 chunking"]
    assert {row["says"].rpartition(" ")[2] for row in rows} == {"index", "memory"}
    for row in rows:
        ratio, chunked, whole = map(float, re.findall(r"\d+(?:\.\d+)?", row["measured"]))
        assert ratio == pytest.approx(chunked / whole, abs=0.01)
        assert row["met"] == (ratio < 2)
