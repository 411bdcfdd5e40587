"""What became of relevant sections, on trails worked by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import Query
from ragbench.evaluation.diagnosis import COLUMNS, diagnose, losses, unit
from ragbench.search.engine.pipeline import Outcome

# Chunk n lies in section n, chunk 9 in sections 9 and 10; section 11 has no chunk.
TABLE = SimpleNamespace(section_ids=[*((f"s{n}",) for n in range(9)), ("s9", "s10")])


def ranking(*chunks: int) -> Ranking:
    return Ranking.ordered(chunks, [1.0 - 0.01 * folder for folder in range(len(chunks))])


def outcome(**stages: tuple[int, ...]) -> Outcome:
    """One query; `dense` and `lexical` are rankings of sources, what follows is the fused ranking after each stage."""
    state, states = QueryState(Query("q", "text")), []
    for name, chunks in stages.items():
        if name in ("dense", "lexical"):
            state = state.with_ranking(name, ranking(*chunks))
        else:
            state = QueryState(state.query, rankings=state.rankings, fused=ranking(*chunks))
        states.append((state,))
    return Outcome("arm", tuple(stages), tuple(states))


def fate(section: str, cutoff: int = 2, **stages: tuple[int, ...]) -> tuple:
    (row,) = diagnose(outcome(**stages), TABLE, {"q": {section: 2}}, cutoff).itertuples(index=False)
    return tuple(row)[4:]


@pytest.mark.parametrize(
    ("section", "stages", "expected"),
    [
        ("s1", {"dense": (1, 2), "fuse": (2, 1), "cut": (2, 1)}, ("found", "cut", 2, "dense", 1)),
        ("s5", {"dense": (1, 2), "fuse": (2, 1)}, ("never retrieved", "retrieval", 0, "", 0)),
        ("s11", {"dense": (1, 2), "fuse": (2, 1)}, ("never retrieved", "retrieval", 0, "", 0)),
        # above the cut-off in a source, below it after fusion
        ("s1", {"dense": (1,), "lexical": (2, 3), "fuse": (2, 3, 1)}, ("lost in fusion", "fuse", 3, "dense", 1)),
        ("s3", {"dense": (1, 2, 3), "fuse": (1, 2, 3)}, ("ranked too low", "retrieval", 3, "dense", 3)),
        ("s2", {"dense": (1, 2), "fuse": (1, 2), "p10": (1,), "cut": (1,)}, ("dropped", "p10", 0, "dense", 2)),
        ("s1", {"dense": (1, 2, 3), "fuse": (1, 2, 3), "p6": (2, 3, 1)}, ("ranked down", "p6", 3, "dense", 1)),
        # down, up and down again: the last stage that took it below is named
        (
            "s1",
            {"dense": (1, 2, 3), "fuse": (1, 2, 3), "p11": (2, 3, 1), "p6": (1, 2, 3), "p8": (2, 3, 1)},
            ("ranked down", "p8", 3, "dense", 1),
        ),
        # one chunk, two sections
        ("s10", {"lexical": (9, 1), "fuse": (9, 1)}, ("found", "fuse", 1, "lexical", 1)),
    ],
)
def test_diagnose_outcomes_by_hand(section: str, stages: dict, expected: tuple) -> None:
    assert fate(section, **stages) == expected


def test_diagnose_better_of_two_sources_is_named() -> None:
    assert fate("s1", dense=(2, 1), lexical=(1, 2), fuse=(1, 2))[-2:] == ("lexical", 1)


def test_diagnose_only_relevant_sections_have_a_fate() -> None:
    frame = diagnose(outcome(dense=(1,), fuse=(1,)), TABLE, {"q": {"s1": 1, "s2": 0}, "other": {"s1": 3}})
    assert tuple(frame.columns) == tuple(COLUMNS)
    assert frame["section"].tolist() == ["s1"]
    assert diagnose(outcome(dense=(1,), fuse=(1,)), TABLE, {}).empty


def test_diagnose_losses_are_counted() -> None:
    stages = {"dense": (1, 2, 3), "fuse": (1, 2, 3), "p10": (1,)}
    qrels = {"q": {"s1": 1, "s2": 1, "s3": 2, "s5": 1}}
    frame = diagnose(outcome(**stages), TABLE, qrels, cutoff=10)
    counted = losses(frame)
    assert counted["sections"].sum() == 4
    assert counted["share"].sum() == pytest.approx(1)
    assert counted.iloc[0][["outcome", "stage", "sections"]].tolist() == ["dropped", "p10", 2]


def test_diagnose_documents_by_their_best_chunk() -> None:
    # Chunks 0-2 lie in document 0, 3-5 in 1, 6-8 in 2: by documents, chunk 8 has rank 3.
    table = SimpleNamespace(document=np.repeat([0, 1, 2], 3), document_number={"a": 0, "b": 1, "c": 2, "d": 3})
    stages = {"dense": (0, 1, 3), "fuse": (0, 1, 2, 3, 4, 8), "p10": (0, 1, 2, 3)}
    frame = diagnose(outcome(**stages), table, {"q": {"a": 1, "b": 2, "c": 1, "d": 1, "e": 1}}, 10, by_document=True)
    rows = {row.section: tuple(row)[4:] for row in frame.itertuples(index=False)}
    assert rows["a"] == ("found", "p10", 1, "dense", 1)
    assert rows["b"] == ("found", "p10", 2, "dense", 2)
    assert rows["c"] == ("dropped", "p10", 0, "", 0)
    assert rows["d"] == rows["e"] == ("never retrieved", "retrieval", 0, "", 0)
    assert unit(frame) == "documents"


def test_diagnose_real_pipeline_accounts_for_every_relevant_section(index, benchmark_small) -> None:
    from ragbench.config import composition
    from ragbench.search.engine.pipeline import Arm, execute

    settings = composition.compose(["+exp=baseline", "p10=on", "p12=on"])
    queries = [topic.query() for topic in benchmark_small.topics]
    (result,) = execute([Arm("arm", settings.pipeline, index)], queries)
    frame = diagnose(result, index.chunks, benchmark_small.section_qrels)
    relevant = {(q, s) for q, item in benchmark_small.section_qrels.items() for s, grade in item.items() if grade > 0}
    assert set(zip(frame["qid"], frame["section"], strict=True)) == relevant
    for row in frame.itertuples():
        assert (row.outcome == "found") == (0 < row.rank <= 10)
