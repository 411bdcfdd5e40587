from __future__ import annotations

import math
import os
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ragbench.base.types import BenchmarkError
from ragbench.benchmark import native
from ragbench.benchmark.judgments import read_judgments
from ragbench.benchmark.native import write_qrels
from ragbench.extras.collect import judge
from ragbench.extras.collect.judge import JudgingSession, merge, merge_into_folder
from ragbench.extras.collect.pool import COLUMNS, read_pool, to_csv
from tests.naming import naming

WITHOUT_PATH = [name for name in COLUMNS if name != "path"]  # a pool of an earlier version

HEAD = "qid,query,need,section,heading,text,grade,note\n"


def write(path: Path, *rows: tuple[str, str, str]) -> Path:
    path.write_text(
        to_csv(WITHOUT_PATH, [(qid, "query", "need", section, "h", "t\nu", grade, "") for qid, section, grade in rows])
    )
    return path


def grades(path: Path) -> list[str]:
    return [row["grade"] for row in read_pool(path).rows]


def sections(session: JudgingSession) -> list[str]:
    """What would be shown if everything were graded 0 from here on, on a copy."""
    copy = session.path.with_name("copy.csv")
    copy.write_bytes(session.path.read_bytes())
    other = JudgingSession(copy)
    seen = []
    while other.item:
        seen.append(other.item.section)
        other.grade(0)
    return seen


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write(tmp_path / "pool.csv", ("q", "a#1", ""), ("q", "a#2", "2"), ("q", "a#3", "s"), ("q", "a#4", ""))


def test_session_shows_ungraded_before_skipped(path: Path) -> None:
    session = JudgingSession(path)
    assert (len(session), session.n_graded, session.n_skipped) == (4, 1, 1)
    assert sections(session) == ["a#1", "a#4", "a#3"]


def test_session_saves_every_key_and_resumes(path: Path) -> None:
    JudgingSession(path).grade(3)
    assert grades(path) == ["3", "2", "s", ""]
    session = JudgingSession(path)
    assert session.item is not None and session.item.section == "a#4"
    session.skip()
    assert grades(path) == ["3", "2", "s", "s"]
    # The one skipped in an earlier session comes first, then the new one, once more.
    assert session.item is not None and session.item.section == "a#3"
    session.skip()
    assert session.item is not None and session.item.section == "a#4"
    session.grade(0)
    assert session.item is None
    assert grades(path) == ["3", "2", "s", "0"]
    with pytest.raises(BenchmarkError):
        session.grade(1)
    with pytest.raises(BenchmarkError):
        session.skip()


def test_session_undo_goes_back_one_step(path: Path) -> None:
    session = JudgingSession(path)
    assert session.undo() is False
    session.grade(1)
    session.skip()
    assert session.undo() and session.item is not None and session.item.section == "a#4"
    assert session.undo() and session.item is not None and session.item.section == "a#1"
    assert session.undo() is False
    assert grades(path) == ["", "2", "s", ""]


@settings(deadline=None)  # every key waits for the disk
@given(keys=st.text("0123su", max_size=30))
def test_session_undo_restores_file(keys: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("j") / "pool.csv"
    write(path, ("q", "a#1", ""), ("q", "a#2", "s"), ("p", "a#1", ""), ("p", "b#", "1"))
    before = path.read_bytes()
    session = JudgingSession(path)
    for key in keys:
        if key == "u":
            session.undo()
        elif session.item and key == "s":
            session.skip()
        elif session.item:
            session.grade(int(key))
        # Whatever the keys, the file is what the session says, and holds every pair.
        again = JudgingSession(path)
        assert (again.n_graded, again.n_skipped, len(again)) == (session.n_graded, session.n_skipped, 4)
    while session.undo():
        pass
    assert path.read_bytes() == before


def test_session_keeps_file_when_save_fails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = path.read_bytes()
    session = JudgingSession(path)

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(BenchmarkError):
        session.grade(1)
    assert path.read_bytes() == before


def test_session_reads_file_of_spreadsheet(tmp_path: Path) -> None:
    path = tmp_path / "pool.csv"
    path.write_bytes('\ufeffqid;extra;section;grade\r\nq;"x;y";a#1;3.0\r\nq;z;a#2; S \r\nq;w;a#3;\r\n'.encode())
    session = JudgingSession(path)
    assert (session.n_graded, session.n_skipped) == (1, 1)
    session.grade(2)
    assert path.read_text() == 'qid;extra;section;grade\nq;"x;y";a#1;3\nq;z;a#2;s\nq;w;a#3;2\n'


def test_session_refuses_other_grades(path: Path) -> None:
    with pytest.raises(BenchmarkError):
        JudgingSession(path).grade(4)
    write(path, ("q", "a#1", ""), ("q", "a#2", "good"))
    with pytest.raises(BenchmarkError, check=naming("pool.csv:4")):
        JudgingSession(path)


def test_merge_counts_added_unchanged_and_left(tmp_path: Path) -> None:
    path = write(
        tmp_path / "pool.csv",
        ("q", "a#1", "3"),
        ("q", "a#2", "1"),
        ("p", "a#1", "s"),
        ("p", "b#", ""),
        ("r", "b#", "0"),
    )
    known = {"q": {"a#1": 3, "c#": 2}}
    merged = merge(path, known)
    assert merged.qrels == {"q": {"a#1": 3, "a#2": 1, "c#": 2}, "r": {"b#": 0}}
    assert (merged.added, merged.unchanged, merged.replaced, merged.left) == (2, 1, 0, 2)
    assert known == {"q": {"a#1": 3, "c#": 2}}
    assert merge(path, merged.qrels).added == 0


def test_merge_refuses_contradictions(tmp_path: Path) -> None:
    path = write(tmp_path / "pool.csv", ("q", "a#1", "3"), ("q", "a#2", "1"))
    with pytest.raises(BenchmarkError, check=naming("contradicts 2")):
        merge(path, {"q": {"a#1": 0, "a#2": 2}})
    merged = merge(path, {"q": {"a#1": 0, "a#2": 2}}, overwrite=True)
    assert merged.qrels == {"q": {"a#1": 3, "a#2": 1}} and merged.replaced == 2


def test_merge_into_folder_updates_document_grades(tmp_path: Path) -> None:
    pool = write(tmp_path / "pool.csv", ("q", "a#1", "2"), ("q", "a#2", "1"), ("q", "c##x", "3"))
    folder = tmp_path / "qrels"
    merge_into_folder(pool, folder)
    assert read_judgments(folder / "documents.qrels") == {"q": {"a": 2, "c#": 3}}
    write_qrels(folder / "documents.qrels", {"q": {"a": 2, "c#": 3, "d": 1}, "p": {"a": 1}})
    write(pool, ("q", "a#3", "3"))
    merge_into_folder(pool, folder)
    assert read_judgments(folder / "sections.qrels") == {"q": {"a#1": 2, "a#2": 1, "a#3": 3, "c##x": 3}}
    assert read_judgments(folder / "documents.qrels") == {"q": {"a": 3, "c#": 3, "d": 1}, "p": {"a": 1}}


def test_merge_refuses_document_better_than_sections(tmp_path: Path) -> None:
    pool = write(tmp_path / "pool.csv", ("q", "d#1", "0"))
    folder = tmp_path / "qrels"
    write_qrels(folder / "documents.qrels", {"q": {"d": 2}})
    with pytest.raises(BenchmarkError, check=naming("q d")):
        merge_into_folder(pool, folder)
    assert not (folder / "sections.qrels").exists()
    merge_into_folder(pool, folder, overwrite=True)
    assert read_judgments(folder / "documents.qrels") == {"q": {"d": 0}}


def test_session_acts_on_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "pool.csv"
    path.write_text(to_csv(WITHOUT_PATH, [("q", "query", "need", f"a#{n}", "h", "t", "", "") for n in range(5)]))
    clock = iter([0.0, 10.0, 30.0, 1000.0, 1020.0])
    monkeypatch.setattr("ragbench.extras.collect.judge.time.monotonic", lambda: next(clock))
    session = JudgingSession(path)
    assert session.act("3", ("q", "a#0"), "so  so") == "graded 3"
    assert session.act("3", ("q", "a#0")) == "this pair was not the current one"
    assert [session.act("0"), session.act("1"), session.act("s")] == ["graded 0", "graded 1", "skipped"]
    assert session.state == "3 of 5 graded, 1 skipped"
    assert math.isnan(session.seconds_left)  # two times are too few
    assert session.act("u") == "taken back"
    assert session.act("2") == "graded 2"  # after a pause, which does not count
    assert session.act("2") == "graded 2"
    assert session.seconds_left == 0.0
    with pytest.raises(BenchmarkError):
        session.act("4")
    assert read_pool(path).rows[0]["note"] == "so so"


def test_merge_keeps_grades_of_concurrent_merges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pools = [tmp_path / f"{letter}.csv" for letter in "pq"]
    for pool in pools:
        write(pool, (pool.stem, "a#1", "2"), (pool.stem, "b#1", "1"))
    slow = native.write_qrels
    monkeypatch.setattr(native, "write_qrels", lambda *given: (time.sleep(0.1), slow(*given)))
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(partial(judge.merge_into_folder, folder=tmp_path / "qrels"), pools))
    assert set(read_judgments(tmp_path / "qrels" / native.SECTIONS)) == {"p", "q"}
    assert set(read_judgments(tmp_path / "qrels" / native.DOCUMENTS)) == {"p", "q"}


def test_sessions_keep_grades_of_each_other(tmp_path: Path) -> None:
    pool = tmp_path / "pool.csv"
    write(pool, *(("q", f"a#{number}", "") for number in range(5)))
    one, two = JudgingSession(pool), JudgingSession(pool)
    one.grade(3)
    one.grade(2)
    two.grade(0)  # of the pair that it shows: the last grade counts
    assert two.item is not None and two.item.section == "a#2"
    two.grade(1)
    one.act("0", ("q", "a#2"))  # one still shows this pair
    assert grades(pool) == ["0", "2", "0", "", ""]
    assert one.undo() and one.undo() and grades(pool) == ["0", "", "", "", ""]
