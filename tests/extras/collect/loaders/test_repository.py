"""Collections in a git repository: a local one stands for those that need a network."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from ragbench.base.errors import BenchmarkError, ConfigError
from ragbench.benchmark.load import load
from ragbench.config.benchmark import load as load_topics

PAGES = {
    "content/en/install.md": "---\ndescription: How to put the kettle on a stove.\n---\n# Install\n\n"
    + "Fill it. " * 30,
    "content/en/brew.md": "# Brew\n\nSee [install](install.md) before.\n\n" + "Wait for three minutes. " * 20,
    "content/de/brew.md": "# Aufgießen\n\nWarten.\n",
    "README.md": "# A repository\n",
}


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=A", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    done = subprocess.run(["git", "-C", str(folder), *identity, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """A repository with two commits, of which the first is asked for."""
    folder = tmp_path_factory.mktemp("repository")
    git(folder, "init", "--quiet")
    for name, text in PAGES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "-m", "first")
    commit = git(folder, "rev-parse", "HEAD")
    (folder / "content/en/brew.md").write_text("# Brew\n\nOtherwise.\n", encoding="utf-8")
    git(folder, "commit", "--quiet", "-am", "second")
    return {"loader": "git", "url": folder.as_uri(), "commit": commit, "subfolder": "content/en"}


@pytest.fixture
def at(spec: dict[str, Any], tmp_path: Path) -> dict[str, Any]:
    return spec | {"cache": str(tmp_path)}


def test_the_commit_that_is_named_is_read_and_not_the_newest(at: dict[str, Any]) -> None:
    benchmark = load(at, topics=False)
    assert [document.docno for document in benchmark.documents] == ["brew", "install"]
    assert "three minutes" in benchmark.documents[0].text


def test_what_was_fetched_is_read_without_the_repository(at: dict[str, Any]) -> None:
    fetched = load(at, topics=False)
    again = load(at | {"url": "https://nowhere.invalid/a.git"}, topics=False)
    assert again.collection == fetched.collection


def test_topics_are_derived_from_it(at: dict[str, Any]) -> None:
    benchmark = load_topics({"data": at, "topics": {"kind": "derived"}})
    assert "How to put the kettle on a stove" in [topic.text for topic in benchmark.topics]
    assert all(topic.provenance == "derived" for topic in benchmark.topics)


def test_without_queries_it_says_what_to_add(at: dict[str, Any]) -> None:
    with pytest.raises(BenchmarkError, match=r"data.queries is not set: .* or add topics=derived"):
        load(at)


@pytest.mark.parametrize("change", ["edit", "delete", "add"])
def test_a_copy_that_has_changed_is_refused(at: dict[str, Any], tmp_path: Path, change: str) -> None:
    load(at, topics=False)
    (page,) = tmp_path.glob("fetched/*/content/en/brew.md")
    if change == "delete":
        page.unlink()
    else:
        (page if change == "edit" else page.with_name("new.md")).write_text("# Another\n", encoding="utf-8")
    with pytest.raises(BenchmarkError, match=r"has changed since it was fetched \(content/en/\w+.md\): remove it"):
        load(at, topics=False)


def test_a_copy_of_ones_own_is_read_and_nothing_fetched(spec: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Page\n", encoding="utf-8")
    benchmark = load(spec | {"corpus": str(tmp_path), "url": "https://nowhere.invalid/a.git"}, topics=False)
    assert [document.docno for document in benchmark.documents] == ["page"]


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ({"url": "file:///nowhere/at/all"}, BenchmarkError, r"cannot be fetched \(.*\): connect .* data.corpus=DIR$"),
        ({"commit": "0" * 40}, BenchmarkError, r"cannot be fetched \(.*0000.*\): connect"),
        ({"subfolder": "content/fr"}, BenchmarkError, "has no folder 'content/fr': correct data.subfolder"),
        ({"subfolder": "../up"}, ConfigError, "data.subfolder must be a folder inside the repository, got '../up'"),
        ({"commit": "main"}, ConfigError, "data.commit must be the whole name of a commit .* got 'main'"),
        ({"url": "--upload-pack=x"}, ConfigError, "data.url must be the address of a git repository"),
    ],
)
def test_what_cannot_be_fetched_is_one_sentence_and_leaves_nothing(
    at: dict[str, Any], tmp_path: Path, given: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message) as raised:
        load(at | given, topics=False)
    assert "\n" not in str(raised.value)
    assert not [*tmp_path.glob("fetched/*"), *tmp_path.glob("fetched/.*")]


def test_without_git_it_says_so(at: dict[str, Any], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BenchmarkError, match="git is not installed: install it"):
        load(at, topics=False)
