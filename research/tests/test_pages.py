"""Figures of docs/research: what the seeds require of them, and that generated pages are current."""

from __future__ import annotations

import re

from research.conformance import PAGE, ROOT, document, read


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


def test_librarian_with_chunks_costs_less_than_twice_as_much() -> None:
    # seed 004, success metrics: time to index and memory, as docs/research/systems.md has measured them
    text = (ROOT / "docs" / "research" / "systems.md").read_text(encoding="utf-8")
    (row,) = (line for line in text.splitlines() if line.startswith("| with chunks indexing takes"))
    *kept, time = [float(value) for value in re.findall(r"\b\d\.\d\d\b", row)]
    assert "memory kept" in row and len(kept) == 4 and 1 < max(kept) < 2 < time, "the row of time says differs"


def test_librarian_presets_answer_within_200_ms() -> None:
    # seed 004, success criteria; as the reference results have measured it
    text = (ROOT / "docs" / "research" / "reference.md").read_text(encoding="utf-8")
    _, _, table = text.partition("## Presets, test queries\n\n")
    head, _, *rows = [[cell.strip() for cell in line.split("|")] for line in table.partition("\n\n")[0].splitlines()]
    p95 = {row[1]: float(row[head.index("p95 ms")]) for row in rows if row[1].startswith("librarian_")}
    assert set(p95) == {f"librarian_{mode}" for mode in ("keyword", "semantic", "hybrid", "rerank")}
    assert all(value < 200 for value in p95.values())
