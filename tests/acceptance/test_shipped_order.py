"""The order that comes with ragbench: its files belong together, and it does no harm where there are no links."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.base import pinned_text
from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.evidence.statistics import compare
from ragbench.extras.fit import ranker, training
from ragbench.search.stages.rank import Rank
from research import ltr_multi

ROOT = Path(__file__).parents[2]
SHEET = ROOT / "docs" / "research" / "order-questions.md"


@pytest.fixture(scope="module")
def shipped() -> Rank:
    stage = dict(composition.compose(["exp=recommended"]).pipeline)["ranker"]
    assert isinstance(stage, Rank)
    return stage


def test_ranker_recommended_has_it_and_its_sheet_names_it(shipped) -> None:
    assert shipped.name == "questions"
    assert pinned_text.file_of("ranker", "questions").stat().st_size < 200_000
    assert f"`{shipped.model}`" in SHEET.read_text()
    assert set(shipped.features) == set(ltr_multi.comparable(["dense", "documents", "lexical"]))


def test_ranker_pages_show_the_rows_of_the_sheet() -> None:
    rows = re.findall(r"^\| questions \| ([^|]+) \|[^|]*\| (\d+) \|[^|]*\| ([\d.]+) \| ([\d.]+) \| ([+-][\d.]+) \|",
                      SHEET.read_text(), re.M)  # fmt: skip
    assert len(rows) == 16  # fourteen sites, all of them, and all of them with links hidden
    readme, page = ((ROOT / name).read_text() for name in ("README.md", "docs/research/recommended.md"))
    for site, topics, before, after, gain in rows:
        assert f"| {site} | {topics} | {before} | {after} | {gain}" in page, site
        if site == "all 14 sites":
            assert f"On {topics} questions about 14 documentation sites" in readme
            assert f"rises from {before} to {after}: {gain}" in readme
        elif site.startswith("all "):
            assert f"Without link features, the gain is {gain}" in readme


@pytest.mark.slow
@pytest.mark.parametrize("sources", ["documents=on", "documents=off"])
def test_ranker_does_no_harm_without_links_and_sources(shipped, tmp_path: Path, sources: str) -> None:
    words = ["exp=recommended", "data=builtin_v1", f"paths.results={tmp_path}", "dense=null", sources]
    settings = composition.compose(words)
    whole = load(settings.config)
    benchmark = replace(whole, documents=tuple(replace(document, links=()) for document in whole.documents))
    arm = ranker.arm(settings, benchmark)
    assert arm.index.part("terms").standing[3].sum() == 0  # links to any document
    states = training.answers(arm, benchmark.topics)
    judged = ranker.sample(states, arm.index, benchmark, shipped.depth, lambda sources: shipped.features)
    result = compare(ranker.values_with(judged, shipped), judged.fused, seed=13)
    assert result.n > 150 and result.ci_high > 0
