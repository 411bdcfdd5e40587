"""P8, first stage: equal texts."""

from dataclasses import replace

from ragbench.search.stages.redundancy import DropEqualTexts

TEXTS = ("same", "other", "same", "Same", "same ")


def test_drop_equal_texts_keeps_the_best(state, handmade, page) -> None:
    index = handmade([page("a", TEXTS[:3]), page("b", TEXTS[3:])])
    (after,) = DropEqualTexts()([state(fused=[(2, 0.9), (1, 0.8), (0, 0.7), (3, 0.6), (4, 0.5)])], index)
    # only exact copies count: another case or a blank more make another text
    assert after.fused.chunks.tolist() == [2, 1, 3, 4]
    assert after.counts[1:] == (("after_content_dedup", 4),)


def test_drop_equal_texts_keeps_a_guaranteed_copy(state, handmade, page) -> None:
    index = handmade([page("a", ("same", "same"))])
    given = replace(state(fused=[(0, 0.9), (1, 0.8)]), guaranteed={1: "title-match"})
    assert DropEqualTexts()([given], index)[0].fused.chunks.tolist() == [0, 1]
