"""What a context consists of, worked by hand: one chunk for each section, one token for each character."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import Chunk, Query
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.benchmark.quotes import Quote
from ragbench.corpus.reader import read_vault
from ragbench.evaluation import contexts
from ragbench.evaluation.passages import Passages
from ragbench.index.chunks import ChunkTable, build_chunks

SENTENCE = "Every key expires after ninety days."
FILES = {
    "guides/keys.md": f"---\ntype: How-to\n---\n# Keys\n{SENTENCE}\n# Rotate\nCall rotate to get a new key.",
    "guides/logs.md": "# Logs\nLogs tell who used a key.\n**every KEY expires**, after ninety days!",
    "releases/v2.md": "---\ncategory: release notes\n---\n# Two\nFixed the key bug.",
    "readme.md": "# Start\nRead the guides.",
}


@pytest.fixture
def measured(tmp_path: Path):
    """A function from relevant sections, hits (`docno#anchor`) and a budget to the rows of `delivered`."""
    for name, text in FILES.items():
        (tmp_path / "vault" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "vault" / name).write_text(text, encoding="utf-8")
    documents = read_vault(tmp_path / "vault").documents
    chunks = [
        [
            Chunk(f"{d.docno}#{s.number}", d.docno, d.text[s.start : s.end], s.path, (s.number,), s.start, s.end)
            for s in d.sections
        ]
        for d in documents
    ]
    (tmp_path / "index").mkdir()
    build_chunks(tmp_path / "index", documents, chunks)
    table = ChunkTable(tmp_path / "index")
    number = {ids[0]: chunk for chunk, ids in enumerate(table.section_ids)}

    def measure(grades: dict[str, int], hits: list[str], budget: int = 1000, quotes=(), around=None):
        benchmark = Benchmark("made", documents, (Topic("q", "x", "", "test"),), {}, {"q": grades} if grades else {})
        ranking = Ranking.ordered([number[hit] for hit in hits], [-float(n) for n in range(len(hits))])
        around = {number[hit]: tuple(number[other] for other in others) for hit, others in (around or {}).items()}
        state = QueryState(Query("q", "x"), fused=ranking, contexts=around)
        passages = Passages(table, len, replace(benchmark, quotes=quotes))
        return contexts.Contexts(passages).delivered([state], budget)

    return measure


def values(frame, budget: int = 1000) -> dict[str, float]:
    return dict(zip(*(contexts.evaluate(frame, budget)[name] for name in ("measure", "value")), strict=True))


def test_contexts_shares_by_hand(measured):
    """Hits: Rotate (38 characters, relevant), Two (24), of a folder and type without a relevant section."""
    result = values(
        measured({"guides/keys#rotate": 2, "guides/keys#keys": 0}, ["guides/keys#rotate", "releases/v2#two"])
    )
    assert result == {
        "Useful@1000tokens": pytest.approx(38 / 62),
        "Duplicate@1000tokens": 0.0,
        "FolderPollution@1000tokens": pytest.approx(24 / 62),
        "TypePollution@1000tokens": pytest.approx(24 / 62),
    }


def test_contexts_type_may_pollute_where_the_folder_does_not(measured):
    """`guides/logs` is in the folder of the relevant section, but its type is its folder, not `how-to`."""
    frame = measured({"guides/keys#rotate": 2}, ["guides/keys#keys", "guides/logs#logs"])
    assert frame[["folder", "type"]].values.tolist() == [["guides", "how-to"], ["guides", "guides"]]
    actual = values(frame)
    assert actual["FolderPollution@1000tokens"] == actual["Useful@1000tokens"] == 0.0
    keys, logs = 44, 74
    assert actual["TypePollution@1000tokens"] == pytest.approx(logs / (keys + logs))


def test_contexts_only_hits_that_fit_into_the_budget_count(measured):
    hits = ["releases/v2#two", "guides/keys#rotate"]
    assert values(measured({"guides/keys#rotate": 1}, hits, 61), 61)["FolderPollution@61tokens"] == 1.0
    assert values(measured({"guides/keys#rotate": 1}, hits, 62), 62)["Useful@62tokens"] == pytest.approx(38 / 62)
    assert set(values(measured({"guides/keys#rotate": 1}, hits, 23), 23).values()) == {0.0}


def test_contexts_sentence_that_was_delivered_before_is_a_duplicate_and_not_useful(measured):
    """The last sentence of Logs has the words of the sentence in Keys, with other marks: 41 of 72 characters."""
    result = values(measured({"guides/logs#logs": 1}, ["guides/keys#keys", "guides/logs#logs"]))
    pieces = {"# Logs": 6, "Logs tell who used a key.": 25, "**every KEY expires**, after ninety days!": 41}
    share = 41 / sum(pieces.values())
    assert result["Duplicate@1000tokens"] == pytest.approx(74 * share / (44 + 74))
    assert result["Useful@1000tokens"] == pytest.approx(74 * (1 - share) / (44 + 74))


def test_contexts_text_that_is_returned_twice_is_a_duplicate(measured):
    """Rotate comes again as the context of Keys."""
    around = {"guides/keys#keys": ["guides/keys#keys", "guides/keys#rotate"]}
    result = values(measured({"guides/keys#rotate": 1}, ["guides/keys#rotate", "guides/keys#keys"], around=around))
    assert result["Duplicate@1000tokens"] == pytest.approx(38 / (38 + 44 + 38))
    assert result["Useful@1000tokens"] == pytest.approx(38 / (38 + 44 + 38))


def test_contexts_short_lines_repeat_without_being_duplicates(measured):
    result = values(measured({"readme#start": 1}, ["readme#start", "releases/v2#two"]))
    assert result["Duplicate@1000tokens"] == 0.0
    assert result["FolderPollution@1000tokens"] == pytest.approx(24 / (24 + 24))


def test_contexts_quotes_are_useful_where_no_section_is_judged(measured):
    """Two quotes that overlap: characters 7 to 27 of Keys, 20 of its 44."""
    quotes = (Quote("q", "", "guides/keys", 7, 20), Quote("q", "", "guides/keys", 15, 27))
    result = values(measured({}, ["guides/keys#keys"], quotes=quotes))
    assert result["Useful@1000tokens"] == pytest.approx(44 * 20 / (6 + len(SENTENCE)) / 44)
    assert result["TypePollution@1000tokens"] == 0.0


def test_contexts_queries_without_a_relevant_part_take_no_part(measured):
    frame = measured({"guides/keys#keys": 0}, ["guides/keys#keys"])
    assert frame.empty
    assert contexts.evaluate(frame, 1000).empty


def test_contexts_table_names_what_pollutes_most(measured):
    """Two arms; in the second all tokens are of release notes."""
    first = measured({"guides/keys#rotate": 2}, ["guides/keys#rotate", "releases/v2#two"]).assign(arm="b")
    second = measured({"guides/keys#rotate": 2}, ["releases/v2#two"]).assign(arm="a")
    import pandas as pd

    both = pd.concat([first, second], ignore_index=True)
    assert contexts.shares(both).values.tolist() == [
        ["b", pytest.approx(38 / 62), 0.0, pytest.approx(24 / 62), pytest.approx(24 / 62)],
        ["a", 0.0, 0.0, 1.0, 1.0],
    ]
    empty = both.assign(qid="q9", folder="", type="", tokens=0.0, useful=0.0, duplicate=0.0).drop_duplicates("arm")
    groups = set(contexts.polluters(pd.concat([both, empty]))["group"])
    assert groups == {"releases", "guides", "release notes", "how-to"}
    rows = contexts.polluters(both)
    assert rows[["arm", "by", "group"]].values.tolist() == [
        ["b", "folder", "releases"],
        ["b", "folder", "guides"],
        ["b", "type", "release notes"],
        ["b", "type", "how-to"],
        ["a", "folder", "releases"],
        ["a", "type", "release notes"],
    ]
    assert rows.iloc[0][["tokens", "useful", "pollution"]].tolist() == [
        pytest.approx(24 / 62),
        0.0,
        pytest.approx(24 / 62),
    ]
    assert rows.iloc[1][["tokens", "useful", "pollution"]].tolist() == [
        pytest.approx(38 / 62),
        pytest.approx(38 / 62),
        0.0,
    ]


def test_contexts_of_no_query():
    assert contexts.shares(contexts.COLUMNS.frame().assign(arm="")).empty
    assert contexts.polluters(contexts.COLUMNS.frame().assign(arm="")).empty
