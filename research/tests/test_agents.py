"""Simulated agents: policies on a vault of two documents, worked by hand, and a search of the small vault."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ragbench.base.types import DocumentMetadata, Hit
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config.settings import ArmBuilder
from research.agents import FOLLOW, GREP, READ, AgentVault, ReadingCost, cost, simulated, table

A, B = "# A\n\nalpha beta.\n", "# B\n\ngamma [a](a.md).\n"


@pytest.fixture(scope="module")
def vault() -> AgentVault:
    texts = [{"docno": "a", "text": A}, {"docno": "b", "text": B}]
    judged = [{"qid": "q", "docno": "a", "label": 1}]
    made = AgentVault.of(Benchmark.from_frames(texts, [{"qid": "q", "query": "alpha"}], judged, markdown=True))
    return replace(made, links={"a": [], "b": ["a"]}, paths={"a": "a.md", "b": "b.md"})


def hit_of_b() -> Hit:
    lines, metadata = (1, 3), DocumentMetadata.__new__(DocumentMetadata)
    return Hit(1, 1.0, "b#1", "b", "b.md", "B", ("B",), 1, 0, len(B), *lines, B, None, (), False, metadata)


def test_grep_shows_lines_with_their_places(vault: AgentVault) -> None:
    """`a.md:1:` has 6 tokens, `alpha beta.` 3; the line is 12 of the 17 characters of the section."""
    wanted = {vault.sections["a#a"]: 1}
    assert cost(vault.grep_and_read("what is alpha", 100), wanted, 10) == ReadingCost(True, 9, 1)
    # `gamma [a](a.md).` has 10: 16 in all, in another document, which costs 7 + 2 + 10 more to read.
    assert cost(vault.grep_and_read("gamma", 100), wanted, 10) == ReadingCost(False, 35, 2)
    assert cost(vault.grep_and_read("gamma", 100), wanted, 1) == ReadingCost(False, 16, 1)
    assert cost(vault.grep_and_read("unknown", 100), wanted, 10) == ReadingCost(False, 0, 1)


def test_search_leads_to_a_document_and_its_links(vault: AgentVault) -> None:
    """The passage has 12 tokens, its citation `[1] b.md#B:1-3` 12; b.md costs 7 + 12 to read, a.md 7 + 5."""
    wanted = {vault.sections["a#a"]: 1}
    for follow, expected in ((False, ReadingCost(False, 24 + 19, 2)), (True, ReadingCost(True, 24 + 19 + 12, 3))):
        assert cost(vault.search_and_read("gamma", [hit_of_b()], 100, follow), wanted, 10) == expected
    here = {vault.sections["b#b"]: 1}
    assert cost(vault.search_and_read("gamma", [hit_of_b()], 100, False), here, 10) == ReadingCost(True, 24, 1)


def test_long_documents_are_read_in_parts(vault: AgentVault) -> None:
    """Four lines of 10 tokens, 7 for the place: two lines fit into 30. Half of them are read with the first part."""
    line = "one two six ten cat dog cow pig hen ox\n"
    long = replace(vault, texts={"a": line * 4}, paths={"a": "a.md"})
    assert list(long._pages("a", 30)) == [(27, [("a", 0, 78)]), (27, [("a", 78, 156)])]
    assert cost(long._pages("a", 30), {("a", 0, 156): 1}, 10) == ReadingCost(True, 27, 1)
    assert cost(long._pages("a", 30), {("a", 80, 156): 1}, 10) == ReadingCost(True, 54, 2)


def test_table_has_means_intervals_and_savings() -> None:
    outcomes = {
        (GREP, ""): [ReadingCost(True, 100, 2), ReadingCost(False, 300, 4)] * 10,
        (READ, "x"): [ReadingCost(True, 50, 1)] * 20,
        (READ, "y"): [ReadingCost(True, 60, 1)] * 20,
    }
    grep, x, y = table(outcomes)
    assert grep["tokens"][0] == 200 and 150 < grep["tokens"][1] < 200 < grep["tokens"][2] < 250
    assert x["tokens"] == (50, 50, 50) and x["calls"] == (1, 1, 1) and x["saved"][0] == 150 and x["less"] is None
    assert y["less"] == (-10, -10, -10)
    assert table(outcomes) == [grep, x, y]


def test_simulation_is_reproducible(benchmark_small: Benchmark, settings_of, tmp_path) -> None:
    settings = settings_of(tmp_path, "exp=lexical_only")
    arms = ArmBuilder.of(settings, benchmark_small).arms([settings])
    first, again = (simulated(arms, benchmark_small, "all") for _ in range(2))
    assert first == again and [policy for policy, _ in first] == [GREP, READ, FOLLOW]
    assert len({len(costs) for costs in first.values()}) == 1 and first[GREP, ""]
