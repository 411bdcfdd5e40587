"""Topics from threads about an invented product, in the shapes that trackers and forums give."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench.base.types import BenchmarkError
from ragbench.commands import cli
from ragbench.extras.collect.topics import threads
from ragbench.extras.collect.topics.threads import Pages, Post, Thread
from ragbench.extras.follow.redirects import Redirects

SITE = "https://docs.lampwork.example/manual"


def issue(number: int, title: str, body: str, *comments: tuple[str, str], asker: str = "ada") -> dict[str, object]:
    """An issue as `gh issue list --json number,title,body,author,comments` writes it."""
    return {
        "number": number,
        "title": title,
        "body": body,
        "author": {"login": asker},
        "comments": [{"author": {"login": who}, "body": text} for who, text in comments],
    }


ISSUES = [
    issue(
        11,
        "[bug] Lamp flickers after the dimmer is paired",
        "Hi all!\n\nMy lamp flickers for a minute after pairing. Is that normal?\n\n```\nERROR 17 in pair()\n```\n"
        "2026-01-02 10:00:00 pairing\n> quoted\n### Version\n",
        ("bob", f"See {SITE}/how-to/pair-a-dimmer/#flicker, it says why."),
    ),
    issue(12, "How do I set two scenes at once", f"I read [scenes]({SITE}/scenes.html) and it does not help me."),
    issue(
        13, "Nothing happens", "It does not work for me.", ("bob", "Please read Replace a burnt lamp for the steps.")
    ),
    issue(14, "Where is the old page gone", "It was there.", ("bob", f"Now at {SITE}/old-scenes, sorry.")),
    issue(15, "Something else entirely here", "No link.", ("bob", "See https://elsewhere.example/manual/scenes")),
    issue(
        16,
        "Lamp flickers after the dimmer is paired!",
        "My lamp flickers for a minute after pairing. Is that normal?",
        ("eve", f"{SITE}/how-to/pair-a-dimmer"),
    ),
    issue(17, "Mail me at ada@lampwork.example about scenes", "Please do.", ("bob", f"{SITE}/scenes")),
]


@pytest.fixture
def vault(tmp_path: Path) -> Path:
    """Three pages of the manual."""
    notes = tmp_path / "manual"
    (notes / "how-to").mkdir(parents=True)
    (notes / "how-to" / "02-dimmer.md").write_text("---\nslug: pair-a-dimmer\n---\n# Pair a dimmer\n\nIt flickers.\n")
    (notes / "scenes.md").write_text("---\naliases: [/light-scenes]\n---\n# Scenes\n\nTwo at once.\n")
    (notes / "replace.md").write_text("# Replace a burnt lamp\n\nSteps.\n")
    return notes


@pytest.fixture
def pages(vault: Path) -> Pages:
    from ragbench.benchmark import load

    data = {"loader": "vault", "corpus": str(vault), "include": ["**/*.md"], "name": None}
    return Pages(load.load(data, topics=False).documents, SITE, Redirects((("/old-scenes", "/scenes", "_redirects"),)))


@pytest.mark.parametrize(
    ("address", "docno"),
    [
        (f"{SITE}/scenes", "scenes"),
        (f"{SITE}/Scenes.html?x=1#two", "scenes"),
        (f"{SITE}/light-scenes/", "scenes"),
        (f"{SITE}/old-scenes.", "scenes"),
        (f"{SITE}/how-to/pair-a-dimmer/", "how-to/02-dimmer"),
        (f"{SITE}/how-to/dimmer", "how-to/02-dimmer"),
        (SITE.replace("docs.", "www.docs.") + "/replace.md", "replace"),
        (f"{SITE}/none", None),
        ("https://docs.lampwork.example/blog/scenes", None),
        ("https://docs.lampwork.example/manualx/scenes", None),
        ("https://other.example/manual/scenes", None),
    ],
)
def test_pages_find_document_of_address(pages: Pages, address: str, docno: str | None) -> None:
    assert pages.of(address) == docno


def test_question_of_thread_is_title_and_first_sentences() -> None:
    thread = threads._of_json(ISSUES[0], 1)
    assert threads.question_of(thread) == (
        "Lamp flickers after the dimmer is paired. My lamp flickers for a minute after pairing. Is that normal?"
    )
    code_only = Thread("1", "See `lamp on` failing https://x.example", (Post("a", "```\nonly code\n```"),))
    assert threads.question_of(code_only) == "See lamp on failing"


def test_evidence_of_thread_names_who_linked(pages: Pages) -> None:
    evidence = [threads.evidence_of(threads._of_json(entry, 0), pages) for entry in ISSUES[:5]]
    assert evidence == [
        ("link", {"how-to/02-dimmer": 2}),
        ("asker-link", {"scenes": 1}),
        ("named", {"replace": 2}),
        ("link", {"scenes": 2}),
        ("", {}),
    ]


def test_threads_skip_copies_personal_data_and_full_pages(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    made = threads.choose([threads._of_json(entry, 0) for entry in ISSUES], pages)
    assert [topic.qid for topic in made.topics] == ["thread-11", "thread-12", "thread-13", "thread-14"]
    assert {topic.provenance for topic in made.topics} == {"threads"}
    assert made.dropped == {"without a page of the site": 1, "almost like another": 1, "with a mail address": 1}
    monkeypatch.setattr(threads, "_PER_PAGE", 1)
    few = threads.choose([threads._of_json(entry, 0) for entry in ISSUES], pages)
    # The link of another person (14) comes before that of the asker (12).
    assert [topic.qid for topic in few.topics] == ["thread-11", "thread-13", "thread-14"]


def test_threads_are_read_from_every_form(tmp_path: Path) -> None:
    discussion = {"number": 3, "title": "T", "body": "b", "author": {"login": "ada"}}
    discussion["comments"] = {
        "nodes": [{"author": {"login": "bob"}, "body": "one", "replies": {"nodes": [{"author": None, "body": "two"}]}}]
    }
    topic = {"id": 7, "title": "Dim it", "post_stream": {"posts": [
        {"username": "ada", "cooked": "<p>How do I dim &amp; pair?</p><pre>code</pre>"},
        {"username": "bob", "cooked": f'<p><a class="x" href="{SITE}/scenes">here</a></p>'},
    ]}}  # fmt: skip
    (tmp_path / "a.json").write_text(json.dumps([discussion, topic]))
    first, second = threads.read(tmp_path / "a.json")
    assert first.posts == (Post("ada", "b"), Post("bob", "one"), Post("", "two"))
    assert second.key == "7" and second.posts[0].text.strip() == "How do I dim & pair?"
    assert f"{SITE}/scenes" in second.posts[1].text
    (tmp_path / "b.csv").write_text(f"question,answer\nHow do I dim it?,See {SITE}/scenes\n")
    (row,) = threads.read(tmp_path / "b.csv")
    assert row.posts[0].text == "How do I dim it?" and row.posts[0].author != row.posts[1].author
    (tmp_path / "c.csv").write_text(f"question;answer\nHow do I dim it?;See {SITE}/scenes\n")
    assert threads.read(tmp_path / "c.csv") == [row]


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("a.json", "{", "has an unexpected structure"),
        ("a.json", "[3]", "has an unexpected structure"),
        ("a.json", "[]", "has no threads"),
        ("a.csv", "q,a\n1,2\n", "with the columns question and answer"),
    ],
)
def test_threads_refuse_other_files(tmp_path: Path, name: str, text: str, reason: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(BenchmarkError, match=reason):
        threads.read(tmp_path / name)


def test_threads_command_writes_topics(capsys, vault: Path, tmp_path: Path) -> None:
    (tmp_path / "issues.json").write_text(json.dumps(ISSUES))
    (tmp_path / "_redirects").write_text("# moved\n/old-scenes /scenes 301\n")
    out = tmp_path / "topics.jsonl"
    command = ["topics", "threads", str(tmp_path / "issues.json"), "--site", SITE, "--out", str(out)]
    data = ["data=vault", f"data.corpus={vault}"]
    assert cli.main([*command, "--redirects", str(tmp_path / "_redirects"), "--json", *data]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert summary["topics"] == 4 and summary["evidence"] == {"link": 2, "asker-link": 1, "named": 1}
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows[0]["relevant"] == ["how-to/02-dimmer.md"] and rows[0]["provenance"] == "threads"
    assert cli.main(["topics", *data, f"data.queries={out}", "--json"]) == 0
    assert {row["provenance"] for row in json.loads(capsys.readouterr().out)} == {"threads"}

    assert cli.main([*command, *data]) == 2
    assert "exists already" in capsys.readouterr().err
    none = str(tmp_path / "none.jsonl")
    assert cli.main([*command[:3], "--site", "https://no.example", *data, "--out", none]) == 2
    assert "links to a document below https://no.example" in capsys.readouterr().err
    assert not Path(none).exists()
