"""Drafted topics: what a model writes is kept only when it holds up."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench.base.types import BenchmarkError
from ragbench.commands import cli
from ragbench.corpus.reader import read_vault
from ragbench.extras.collect.topics.draft import SectionFinder, draft
from tests.naming import naming

FILLER = " ".join(f"word{number}" for number in range(40))
QUESTION = "Which tool opens a stuck door?"


def notes(folder: Path, **texts: str) -> Path:
    for name, text in texts.items():
        (folder / f"{name}.md").write_text(f"# {name}\n\n{text} {FILLER}\n", encoding="utf-8")
    return folder


def drafted(folder: Path, question: str, yes: tuple[str, ...], limit: int = 100):
    """Drafts where the model always asks `question`, and finds it answered by texts that hold one of `yes`."""

    def ask(prompt: str) -> str:
        if prompt.startswith("Below"):
            return f' "{question}" \nBecause.'
        return "Yes." if any(text in prompt for text in yes) else "no"

    return draft(read_vault(folder).documents, ask, limit)


def test_draft_keeps_question_of_one_section(tmp_path: Path) -> None:
    notes(tmp_path, lever="A lever moves what will not budge.", lamp="A lamp gives light.")
    made = drafted(tmp_path, QUESTION, ("budge",))
    ((topic,), dropped) = made.topics, made.dropped
    assert (topic.text, topic.provenance, topic.type, topic.group) == (QUESTION, "model", "question", "lever")
    assert made.section_qrels == {topic.qid: {"lever#lever": 1}}
    assert made.document_qrels == {topic.qid: {"lever": 1}}
    assert dropped in ({}, {"not answered by its section": 1})


def test_draft_judges_other_sections_that_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes(tmp_path, one="Open a stuck door.", two="Open a stuck door.", three="A lamp gives light.")
    made = drafted(tmp_path, QUESTION, ("stuck door.",), limit=1)
    assert set(next(iter(made.section_qrels.values()))) == {"one#one", "two#two"}
    monkeypatch.setattr("ragbench.extras.collect.topics.draft._ANSWERS", 1)
    with pytest.raises(BenchmarkError, check=naming("many sections")):
        drafted(tmp_path, QUESTION, ("stuck door.",))


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("Why?", "too short or too long"),
        ("is it that word1 word2 word3 word4 word5 follow?", "word for word from its section"),
        ("the big red lever", "given away by title or heading"),
        ("Which tool opens a stuck door?", "not answered by its section"),
    ],
)
def test_draft_counts_dropped_questions(tmp_path: Path, question: str, reason: str) -> None:
    (tmp_path / "a.md").write_text(f"# How to use the big red lever\n\n{FILLER}\n", encoding="utf-8")
    with pytest.raises(BenchmarkError, match=f"1 {reason}"):
        drafted(tmp_path, question, ())


def test_draft_drops_repeated_questions_and_limits_tries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ragbench.extras.collect.topics.draft._OTHERS", 0)
    monkeypatch.setattr("ragbench.extras.collect.topics.draft._TRIES", 2)
    notes(tmp_path, **{f"n{number}": f"Number {number}." for number in range(6)})
    made = drafted(tmp_path, QUESTION, ("Number",), limit=1)
    assert len(made.topics) == 1
    made = drafted(tmp_path, QUESTION, ("Number",), limit=2)
    assert len(made.topics) == 1 and made.dropped == {"near-duplicates": 3}


def test_evidence_is_found_by_words_and_headings(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("# Pumps\n\nThey push water uphill.\n\n## Repair\n\nUse a wrench.\n")
    (tmp_path / "b.md").write_text("# Wrench sizes\n\nLarge and small.\n")
    (tmp_path / "c.md").write_text("# Lamps\n\nLight, no tools.\n")
    evidence = SectionFinder(read_vault(tmp_path).documents)
    assert [passage.id for passage in evidence.find("wrenches", 3)] == ["b#wrench-sizes", "a#pumps/repair"]
    assert [passage.id for passage in evidence.find("repair of lamps", 1)] == ["c#lamps"]
    assert evidence.find("zebra", 3) == []


def test_draft_command_asks_once_for_each_prompt(
    tmp_path: Path, chat_server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").mkdir()
    notes(tmp_path / "notes", lever="A lever moves what will not budge.")
    chat_server.answer = lambda prompt: QUESTION if prompt.startswith("Below") else "yes"
    monkeypatch.setenv("SOME_KEY", "s3cret")
    data = ["data=vault", f"data.corpus={tmp_path / 'notes'}", f"paths.results={tmp_path / 'results'}"]
    model = ["--endpoint", chat_server.endpoint, "--model", "small", "--key-variable", "SOME_KEY"]
    out = tmp_path / "topics.jsonl"
    assert cli.main(["topics", "draft", *data, *model, "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(out), "topics": 1, "dropped": {}}
    assert chat_server.keys == ["Bearer s3cret"] * 2
    assert cli.main(["topics", "draft", *data, *model, "--out", str(out), "--replace"]) == 0
    assert "1 drafted topic from 1 document" in capsys.readouterr().out
    assert len(chat_server.prompts) == 2  # what was answered is kept
    assert "s3cret" not in "".join(p.read_text("utf-8", "replace") for p in tmp_path.rglob("*") if p.is_file())
    assert cli.main(["topics", *data, f"data.queries={out}", "--json"]) == 0
    assert '"provenance": "model"' in capsys.readouterr().out


def test_draft_command_requires_endpoint(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["topics", "draft"]) == 2
    assert "name the model with --endpoint and --model" in capsys.readouterr().err
    assert cli.main(["topics", "draft", "--limit", "0"]) == 2
    assert "--limit must be at least 1, got 0" in capsys.readouterr().err
    assert cli.main(["topics", "draft", "--endpoint", "ftp://x", "--model", "m"]) == 2
    assert "--endpoint must begin with http:// or https://" in capsys.readouterr().err
