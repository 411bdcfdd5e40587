"""P13: children become their parents."""

from dataclasses import replace

import pytest

from ragbench.search.stages.cut import ExpandToParents


def test_expand_to_parents_gives_a_parent_its_best_childs_score(state, handmade, page) -> None:
    # children 0-2 of page a (parents 4, 4, 5), child 3 of page b has none
    index = handmade([page("a", ("x", "y", "z"), parents=(0, 0, 1)), page("b", ("w",))])
    assert index.chunks.chunk_ids == ["a#0", "a#1", "a#2", "b#0", "a#p0", "a#p1"]
    given = state(fused=[(1, 0.9), (0, 0.8), (2, 0.7), (3, 0.6)])
    (after,) = ExpandToParents()([given], index)
    assert after.fused.chunks.tolist() == [4, 5, 3]
    assert after.fused.scores.tolist() == pytest.approx([0.9, 0.7, 0.6])


def test_expand_to_parents_without_parents_nothing_changes(state, handmade, page) -> None:
    given = state(fused=[(1, 0.9), (0, 0.8)])
    (after,) = ExpandToParents()([given], handmade([page("a", ("x", "y"))]))
    assert after.fused == given.fused


def test_expand_to_parents_keeps_guarantees_of_children(state, handmade, page) -> None:
    index = handmade([page("a", ("x", "y"), parents=(0, 1))])
    (after,) = ExpandToParents()([replace(state(fused=[(0, 0.9), (1, 0.8)]), guaranteed={1: "title-match"})], index)
    assert set(after.guaranteed) == {3}
