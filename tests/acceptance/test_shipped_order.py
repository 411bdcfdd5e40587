"""The order that comes with ragbench: its files belong together, and it does no harm where there are no links."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.evidence.statistics import compare
from ragbench.extras.fit import ranker, training
from ragbench.search.ranking import trees
from ragbench.search.stages.rank import Rank
from research import ltr_multi

ROOT = Path(__file__).parents[2]
SHEET = ROOT / "docs" / "research" / "order-questions.md"


@pytest.fixture(scope="module")
def shipped() -> Rank:
    stage = dict(composition.compose(["exp=recommended"]).pipeline)["ranker"]
    assert isinstance(stage, Rank)
    return stage


def test_ranker_of_recommended_is_named_by_its_sheet(shipped) -> None:
    assert shipped.name == "questions"
    assert trees.file_of("questions").stat().st_size < 200_000
    assert f"`{shipped.model}`" in SHEET.read_text()
    assert set(shipped.features) == set(ltr_multi.comparable(["dense", "documents", "lexical"]))


def test_ranker_pages_show_gains_of_the_sheet() -> None:
    sheet = SHEET.read_text()
    number, gain = r"(\d\.\d+)", r"([+-]\d\.\d+)"
    sites = re.findall(rf"^\| ([\w-]+) \| \d+ \| \d+: {number} to {number}, {gain} ", sheet, re.M)
    (whole,), (hidden,) = (
        re.findall(rf"^\| questions \| {name} \| [\d,]+ \| (\d+) \| {number} \| {number} \| {gain} ", sheet, re.M)
        for name in ("all 20 sites", "all 20 sites, links hidden")
    )
    topics, before, after, gained = whole
    readme, page = ((ROOT / name).read_text() for name in ("README.md", "docs/research/recommended.md"))
    assert re.search(
        rf"On {topics} questions about 20 documentation sites.* from {before} to {after}, {re.escape(gained)} ", readme
    )
    assert re.search(rf"from {before} to {after}, {re.escape(gained)} \[", page)
    assert len(sites) == 20
    assert f"on {sum(float(gained) > 0 for *_, gained in sites)} of the 20 sites" in page
    assert f"With links hidden the gain is {hidden[-1]} [" in page


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
