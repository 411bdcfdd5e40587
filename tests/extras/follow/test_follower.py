"""Judged pages and sections are found where they are after an edit of the documentation."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from ragbench.base import registry
from ragbench.base.types import BenchmarkError
from ragbench.benchmark.label_health import LabelHealth, health
from ragbench.benchmark.load import load_benchmark
from ragbench.corpus.reader import parse_document, read_vault
from ragbench.extras.follow.followed_labels import EarlierState, follow_labels, follow_names
from ragbench.extras.follow.follower import Earlier, LabelFollower
from ragbench.extras.follow.git_history import History
from ragbench.extras.follow.redirects import Redirects
from ragbench.results import labels


def prose(seed: int, n: int = 60) -> str:
    """Different words for every seed."""
    chosen = random.Random(seed)
    return " ".join("".join(chosen.choices("abcdefghij", k=5)) for _ in range(n))


def page(docno: str, text: str, fields: str = ""):
    raw = f"---\n{fields}\n---\n{text}\n" if fields else f"{text}\n"
    return parse_document(docno, f"{docno}.md", raw.encode(), 0.0)[0]


KEYS, LOGS, BACKUP, ROLES, LIMITS = (prose(seed) for seed in range(5))
BEFORE = [
    page("keys", KEYS),
    page("logs", LOGS),
    page("backup", BACKUP),
    page("roles", ROLES),
    page("limits", LIMITS),
    page("old", prose(9)),
]
AFTER = [
    page("keys", KEYS),
    page("guide/logs", f"{LOGS} {prose(10, 8)}"),
    page("handbook", f"{BACKUP}\n\n{prose(11, 120)}"),
    page("roles/one", f"{' '.join(ROLES.split()[:30])} {prose(12, 40)}"),
    page("roles/two", f"{' '.join(ROLES.split()[30:])} {prose(13, 40)}"),
    page("limits", f"{' '.join(LIMITS.split()[:45])} {prose(14, 15)}"),
]


def earlier(*pages) -> Earlier:
    return Earlier({one.docno: one for one in pages})


@pytest.mark.parametrize(
    ("docno", "outcome", "targets", "doubtful"),
    [
        ("keys", "stands", ("keys",), False),
        ("logs", "moved", ("guide/logs",), False),
        ("backup", "merged", ("handbook",), False),
        ("roles", "split", ("roles/one", "roles/two"), True),
        ("limits", "edited", ("limits",), False),
        ("old", "gone", (), False),
    ],
)
def test_follow_pages_by_their_text(docno: str, outcome: str, targets: tuple[str, ...], doubtful: bool) -> None:
    followed = LabelFollower(earlier(*BEFORE), AFTER).follow(docno)
    assert (followed.outcome, followed.targets, followed.doubtful) == (outcome, targets, doubtful)
    assert followed.is_moved == (outcome in ("moved", "merged"))


def test_health_counts_what_became_of_pages() -> None:
    follower = LabelFollower(earlier(*BEFORE), AFTER)
    assert health(follower.follow(one.docno) for one in BEFORE) == LabelHealth(stand=2, moved=2, doubtful=1, gone=1)


def test_follow_an_address_in_the_frontmatter() -> None:
    after = [page("new/place", prose(20), "aliases: [/logs/]"), page("other", prose(21))]
    followed = LabelFollower(earlier(page("logs", LOGS)), after).follow("logs")
    assert followed.targets == ("new/place",) and followed.reason == "address in the frontmatter"
    after = [page("a", prose(20), "redirect_from: /logs/"), page("b", prose(21), "aliases: [logs]")]
    assert LabelFollower(earlier(page("logs", LOGS)), after).follow("logs").targets == ()  # two pages claim it


def test_follow_a_rename_of_git_unless_the_text_is_elsewhere() -> None:
    renamed = Earlier({"logs": page("logs", LOGS)}, {"logs": "records"})
    rewritten = page("records", f"{' '.join(LOGS.split()[:20])} {prose(30, 40)}")
    assert LabelFollower(renamed, [rewritten]).follow("logs").targets == ("records",)
    elsewhere = [page("records", prose(31)), page("guide", LOGS)]
    assert LabelFollower(renamed, elsewhere).follow("logs").doubtful


def test_follow_a_redirect_where_the_text_leaves_a_doubt() -> None:
    copies = [page("v1/intro", LOGS), page("v2/intro", LOGS), page("topics", prose(70))]
    rules = (("/start", "/v2/intro", "_redirects"), ("/old", "/topics", "_redirects"))
    old = replace(earlier(page("start", LOGS), page("old", prose(9))), redirects=Redirects(rules))
    assert LabelFollower(earlier(page("start", LOGS)), copies).follow("start").doubtful
    follower = LabelFollower(old, copies)
    sure, nearest = follower.follow("start"), follower.follow("old")
    assert (sure.targets, sure.doubtful, sure.reason) == (("v2/intro",), False, "redirect in _redirects")
    assert (nearest.targets, nearest.doubtful) == (("topics",), True)
    unknown = LabelFollower(Earlier(redirects=Redirects(rules)), copies).follow("start")
    assert unknown.targets == ("v2/intro",) and unknown.is_moved


def test_follow_names_by_the_redirects_of_the_site(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tokens.md").write_text("# Tokens\n\nwords\n")
    (tmp_path / "mkdocs.yml").write_text("plugins:\n- redirects:\n    redirect_maps:\n      keys.md: tokens.md\n")
    pages = read_vault(tmp_path / "docs").documents
    assert follow_names(["keys.md"], pages, tmp_path / "docs", [])["keys.md"].targets == ("tokens",)


def test_follow_sections_by_name_and_by_text() -> None:
    old = page("keys", f"# Keys\n\n## Rotate\n\n{KEYS}\n\n## Create\n\n{LOGS}\n\n## Drop\n\n{ROLES}")
    new = page("guide/keys", f"# Keys\n\n## Rotate\n\n{KEYS}\n\n## Make a key\n\n{LOGS}")
    follower = LabelFollower(earlier(old), [new])
    rotate, create, drop = (follower.follow(f"keys#keys/{anchor}") for anchor in ("rotate", "create", "drop"))
    assert rotate.targets == ("guide/keys#keys/rotate",) and rotate.is_moved
    assert create.targets == ("guide/keys#keys/make-a-key",) and create.is_moved
    assert drop.outcome == "gone"


def test_follow_what_is_rewritten_in_its_place() -> None:
    old = page("keys", f"# Keys\n\n## Rotate\n\n{KEYS}\n\n## Drop\n\n{ROLES}")
    new = page("keys", f"# Keys\n\n## Rotate\n\n{prose(50)}\n\n## Drop\n\n{prose(51)}")
    follower = LabelFollower(earlier(old, page("logs", LOGS)), [new, page("logs", BACKUP), page("guide", LOGS)])
    rewritten = [follower.follow(name) for name in ("keys", "keys#keys/rotate")]
    assert [(one.outcome, one.targets, one.doubtful) for one in rewritten] == [
        ("rewritten", ("keys",), False),
        ("rewritten", ("keys#keys/rotate",), False),
    ]
    assert follower.follow("logs").doubtful  # its text is in guide now
    assert health(rewritten) == LabelHealth(rewritten=2)


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", "-C", str(folder), *identity, *arguments], check=True, capture_output=True)


@pytest.fixture
def moved(tmp_path: Path) -> Path:
    """A repository whose judged pages were renamed twice, merged, deleted and rewritten after the judgments."""
    notes = tmp_path / "docs"
    notes.mkdir()
    for number, name in enumerate(("keys", "logs", "backup", "old", "limits")):
        (notes / f"{name}.md").write_text(f"# {name}\n\n" + "\n".join(prose(number, 6) for _ in range(5)))
        (notes / f"{name}.md").write_text(f"# {name}\n\n{prose(number)}\n".replace(" ", "\n", 20))
    rows = [f"how to use {name},{name}.md" for name in ("keys", "logs", "backup", "old", "limits")]
    (tmp_path / "queries.csv").write_text("\n".join(["text,relevant", *rows]) + "\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "judge")
    (notes / "guide").mkdir()
    git(tmp_path, "mv", "docs/keys.md", "docs/guide/a.md")
    git(tmp_path, "commit", "-qm", "move")
    git(tmp_path, "mv", "docs/guide/a.md", "docs/guide/tokens.md")
    (notes / "handbook.md").write_text(f"# Handbook\n\n{(notes / 'backup.md').read_text()}\n{prose(40, 200)}")
    (notes / "backup.md").unlink()
    (notes / "old.md").unlink()
    (notes / "limits.md").write_text(prose(41))
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "move on")
    return tmp_path


def test_follow_labels_through_the_history_of_git(moved: Path) -> None:
    benchmark = load_benchmark("vault", corpus=moved / "docs", queries=moved / "queries.csv")
    labels = follow_labels(benchmark)
    assert labels.health == LabelHealth(stand=1, moved=2, rewritten=1, gone=1)
    assert labels.by_name["keys.md"].targets == ("guide/tokens",)
    assert labels.by_name["backup.md"].outcome == "merged"
    assert sorted(docno for grades in labels.document_qrels().values() for docno in grades) == [
        *("guide/tokens", "handbook", "limits", "logs")
    ]


def test_load_leaves_doubtful_judgments_out(moved: Path) -> None:
    (moved / "docs" / "guide" / "records.md").write_text((moved / "docs" / "logs.md").read_text())
    (moved / "docs" / "logs.md").write_text(prose(42))
    rows = "text,relevant\nhow to use logs,logs.md\nhow to use keys,logs.md;limits.md\n"
    git(moved, "commit", "-qam", "move the text of logs")
    whole = load_benchmark("vault", corpus=moved / "docs", queries=moved / "queries.csv")
    assert whole.labels.doubtful == [("q-" + whole.topics[1].qid[2:], "logs")]
    assert [len(grades) for grades in whole.document_qrels.values()] == [1] and whole.source is not None
    said = (
        "1 doubtful judgment takes no part, such as logs for 'how to use logs'; 1 query without another one is excluded"
    )
    assert f"{said} (ragbench data repair lists them)" in whole.warnings
    (moved / "queries.csv").write_text(rows)
    git(moved, "commit", "-qam", "judge again")
    again = load_benchmark("vault", corpus=moved / "docs", queries=moved / "queries.csv")
    assert not again.labels.doubtful and len(again.document_qrels) == 2 and again.digest != whole.digest


def test_load_without_this_extra_keeps_judgments_as_they_are(moved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    load = partial(load_benchmark, "vault", corpus=moved / "docs", queries=moved / "queries.csv")
    (moved / "docs" / "logs.md").rename(moved / "docs" / "guide" / "logs.md")
    followed = load()
    monkeypatch.setitem(registry._registered, ("hook", "followed_labels"), None)
    alone = load()
    assert followed.labels is not None and alone.labels is None
    assert alone.warnings == followed.warnings and "limits" in str(alone.document_qrels)
    assert labels.files(alone, {topic.qid for topic in alone.topics}) == {}


def test_load_without_doubtful_judgments_of_sections(tmp_path: Path) -> None:
    """The grade of a document that follows from its sections follows from those that are left."""
    docs, qrels = tmp_path / "docs", tmp_path / "qrels"
    docs.mkdir()
    qrels.mkdir()
    (docs / "keys.md").write_text(f"# Keys\n\n## Rotate\n\n{KEYS}\n\n## Drop\n\n{ROLES}\n")
    (docs / "logs.md").write_text(f"# Logs\n\n{LOGS}\n")
    (qrels / "topics.jsonl").write_text('{"qid": "q1", "text": "one"}\n{"qid": "q2", "text": "two"}\n')
    judged = ("q1 0 keys#keys/rotate 3", "q1 0 keys#keys/drop 1", "q2 0 keys#keys/rotate 2", "q2 0 logs#logs 0")
    (qrels / "sections.qrels").write_text("\n".join(judged) + "\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", "-A")
    git(tmp_path, "commit", "-qm", "judge")
    load = partial(load_benchmark, "native", corpus=docs, qrels=qrels)
    assert load().document_qrels == {"q1": {"keys": 3}, "q2": {"keys": 2, "logs": 0}}
    (docs / "keys.md").write_text(f"# Keys\n\n## Rotate\n\n{prose(60)}\n\n## Drop\n\n{ROLES}\n\n## Turn\n\n{KEYS}\n")
    assert load().document_qrels == {"q1": {"keys": 3}, "q2": {"keys": 2, "logs": 0}}  # a sure move, as it is written
    (docs / "keys.md").write_text(
        f"# Keys\n\n## Rotate\n\n{prose(60)}\n\n## Drop\n\n{ROLES}\n\n## Turn\n\n{KEYS}\n\n## Renew\n\n{KEYS}\n"
    )
    assert load().labels.left_out == {"q2"}
    assert load().section_qrels == {"q1": {"keys#keys/drop": 1}} and load().document_qrels == {"q1": {"keys": 1}}
    assert not load().unanswerable


def test_follow_names_without_git_from_an_earlier_folder(moved: Path, tmp_path: Path) -> None:
    before = tmp_path / "before"
    before.mkdir()
    (before / "keys.md").write_text((moved / "docs" / "guide" / "tokens.md").read_text())
    pages = read_vault(moved / "docs").documents
    followed = follow_names(["keys.md"], pages, moved / "docs", [], EarlierState(before=before))
    assert followed["keys.md"].targets == ("guide/tokens",)


def test_follow_names_since_a_commit(moved: Path) -> None:
    pages = load_benchmark("vault", corpus=moved / "docs", queries=moved / "queries.csv").documents
    state = EarlierState(since="HEAD~1")
    followed = follow_names(["guide/a.md", "keys.md"], pages, moved / "docs", [], state)
    assert [followed[name].targets for name in ("guide/a.md", "keys.md")] == [("guide/tokens",), ("guide/tokens",)]
    with pytest.raises(BenchmarkError, match="has no commit 'nowhere': specify a revision of git"):
        follow_names(["keys.md"], pages, moved / "docs", [], EarlierState(since="nowhere"))


def test_history_of_a_folder_without_git_is_none(tmp_path: Path) -> None:
    assert History.of(tmp_path) is None


def test_history_that_git_cannot_read_is_one_sentence(moved: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"git cannot read the history of .* specify the earlier pages"):
        History(moved, "docs/", "no-such-branch").events()


FORM = prose(40, 40)  # what the pages of all commands share


def command(name: str, seed: int, folder: str):
    return page(f"{folder}/{name}", f"# {name}\n\n{FORM} {prose(seed, 30)}")


def test_follow_a_page_to_where_its_folder_moved() -> None:
    names = ["add", "build", "check", "doc"]
    before = [command(name, number, folder) for folder in ("src/man", "src/book") for number, name in enumerate(names)]
    before += [page("src/man/x", f"# X\n\n{prose(50)}"), page("src/man/y", f"# Y\n\n{prose(51)}")]
    before += [page("src/book/x", f"# X\n\n{prose(52)}"), page("src/book/y", f"# Y\n\n{prose(53)}")]
    after = [replace(one, docno=one.docno.replace("src/", "doc/")) for one in before]
    follower = LabelFollower(earlier(*before), after)
    for one in before:  # the text alone is in two forms
        followed = follower.follow(one.docno)
        assert (followed.targets, followed.doubtful) == ((one.docno.replace("src/", "doc/"),), False), one.docno
    alone = LabelFollower(earlier(before[0], *before[4:6]), after).follow("src/man/add")
    assert alone.doubtful  # no other page of its folder shows where it went


def test_follow_a_rewritten_page_to_where_its_folder_moved() -> None:
    before = [page(f"guide/{name}", f"# {name}\n\n{prose(seed)}") for seed, name in enumerate(("a", "b", "c", "d"))]
    after = [page(f"manual/{one.docno[-1]}", one.text) for one in before[:2]]
    after += [page("manual/c", f"# c\n\n{prose(60)}"), page("manual/d", f"# Other\n\n{prose(61)}")]
    follower = LabelFollower(earlier(*before), after)
    same_title, other = follower.follow("guide/c"), follower.follow("guide/d")
    assert (same_title.targets, same_title.doubtful) == (("manual/c",), False)
    assert (other.targets, other.doubtful) == (("manual/d",), True)
    one_sibling = LabelFollower(earlier(*before[1:3]), after).follow("guide/c")
    assert one_sibling.doubtful and "same title and file name" in one_sibling.reason
    was_there = replace(earlier(*before), others={"manual/c"})
    assert LabelFollower(was_there, after).follow("guide/c").outcome == "gone"


def test_follow_doubts_a_page_that_other_pages_explain() -> None:
    before = [command("app", 70, "cli"), command("app-get", 71, "cli"), command("app-set", 72, "cli")]
    short = [page(one.docno, f"{one.text[:-200]}") for one in before[1:]]
    after = [replace(before[0], docno="cli2/app")]  # the pages of two commands are gone
    follower = LabelFollower(earlier(before[0], *short), after)
    assert follower.follow("cli/app").targets == ("cli2/app",) and not follower.follow("cli/app").doubtful
    assert not follower.follow("cli/app-get").is_moved  # though most of its text is there


@pytest.mark.parametrize(
    ("old", "new", "doubtful"),
    [
        ("de/keys", "en/keys", True),
        ("de/keys", "en/guide/keys", True),
        ("de/keys", "de/guide/keys", False),
        ("de/keys", "guide/keys", False),
        ("ui/keys", "db/keys", False),
        ("docs/pt-BR/keys", "docs/zh_Hans/keys", True),
    ],
)
def test_follow_doubts_a_move_to_another_language(old: str, new: str, doubtful: bool) -> None:
    followed = LabelFollower(earlier(page(old, KEYS)), [page(new, KEYS)]).follow(old)
    assert (followed.targets, followed.doubtful) == ((new,), doubtful)


def test_history_knows_the_names_of_documents_without_judgments(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("a")
    (tmp_path / "b.md").write_text("b")
    for words in (("init", "-q"), ("add", "-A"), ("commit", "-qm", "x")):
        git(tmp_path, *words)
    history = History.of(tmp_path)
    assert history is not None
    known = history.earlier(["a"], [], history.commit("HEAD"))
    assert set(known.documents) == {"a"} and set(known.others) >= {"b"}
