"""The comment on a pull request, against a server that answers as GitHub's and GitLab's REST interfaces do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from ragbench.extras.remote import comment
from tests.loopback import Loopback

BOT = "github-actions[bot]"


class Forge(Loopback):
    """Comments of one pull request in pages, with the fields that matter of the documented answers."""

    def __init__(self, name: str, texts: list[tuple[str, str]], user: str | None = None) -> None:
        super().__init__()
        self.name, self.user, self.sent = name, user, []
        self.refuses: set[str] = set()
        self.comments = [self.shown(100 + n, author, text) for n, (author, text) in enumerate(texts)]

    def shown(self, number: int, author: str, text: str) -> dict[str, Any]:
        if self.name == "gitlab":
            return {"id": number, "body": text, "author": {"id": 1, "username": author}, "system": False}
        user = {"login": author, "id": 41898282, "type": "Bot" if "[bot]" in author else "User"}
        return {"id": number, "node_id": "x", "user": user, "body": text, "author_association": "NONE"}

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[Any, ...]:
        url = urlsplit(path)
        key = headers.get("Authorization") or headers.get("PRIVATE-TOKEN")
        if key not in ("Bearer s3cret", "s3cret"):
            return 401, {"message": "Bad credentials", "documentation_url": "https://docs.github.com/rest"}
        if method in self.refuses or (url.path == "/user" and self.user is None):
            return 403, {"message": "Resource not accessible by integration"}
        if url.path == "/user":
            return 200, {"login": self.user, "username": self.user, "id": 1}
        if method == "GET":
            page, size = (int(parse_qs(url.query)[name][0]) for name in ("page", "per_page"))
            return 200, self.comments[size * (page - 1) : size * page]
        self.sent.append((method, url.path, json.loads(body)["body"]))
        return (201 if method == "POST" else 200), self.shown(900, "me", json.loads(body)["body"])


@pytest.fixture
def page(tmp_path: Path) -> Path:
    (tmp_path / "event.json").write_text('{"action": "opened", "number": 7, "pull_request": {"number": 7}}', "utf-8")
    (tmp_path / "gate.md").write_text("## Search gate fails\n", "utf-8")
    return tmp_path / "gate.md"


def keep(forge: Forge, page: Path, monkeypatch: pytest.MonkeyPatch, *words: str, token: str = "s3cret") -> int:
    for name in ("CI_MERGE_REQUEST_IID", "GITHUB_EVENT_PATH"):
        monkeypatch.delenv(name, raising=False)
    variables = {
        "GITHUB_API_URL": forge.url,
        "GITHUB_REPOSITORY": "owner/docs",
        "GITHUB_TOKEN": token,
        "GITHUB_EVENT_PATH": str(page.with_name("event.json")),
    }
    if forge.name == "gitlab":
        variables = {
            "CI_API_V4_URL": forge.url,
            "CI_PROJECT_ID": "33",
            "CI_MERGE_REQUEST_IID": "7",
            "GITLAB_TOKEN": token,
        }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return comment.main([str(page), *words])


BODY = "<!-- ragbench: gate -->\n## Search gate fails\n"


def test_comment_is_created_where_none_is(page: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    with Forge("github", [("ann", "looks good")]) as forge:
        assert keep(forge, page, monkeypatch) == 0
    assert forge.sent == [("POST", "/repos/owner/docs/issues/7/comments", BODY)]
    assert capsys.readouterr().out == "comment created\n"


def test_comment_of_the_job_is_changed_and_no_other(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one on the second page: of those with the mark before it, one is of another author, one of another gate."""
    texts = [("mallory", BODY), (BOT, "<!-- ragbench: api -->\nold"), *[("ann", f"text {n}") for n in range(100)]]
    with Forge("github", [*texts, (BOT, "<!-- ragbench: gate -->\nold")]) as forge:
        assert keep(forge, page, monkeypatch) == 0
    assert forge.sent == [("PATCH", "/repos/owner/docs/issues/comments/202", BODY)]
    with Forge("github", texts) as forge:
        assert keep(forge, page, monkeypatch, "--key", "api") == 0
    assert forge.sent[0][:2] == ("PATCH", "/repos/owner/docs/issues/comments/101")


def test_comment_of_a_personal_token_is_found(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Forge("github", [(BOT, BODY), ("ann", BODY)], user="ann") as forge:
        assert keep(forge, page, monkeypatch) == 0
    assert forge.sent[0][:2] == ("PATCH", "/repos/owner/docs/issues/comments/101")


def test_comment_on_a_merge_request_of_gitlab(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Forge("gitlab", [("project_33_bot", BODY)], user="project_33_bot") as forge:
        assert keep(forge, page, monkeypatch) == 0
        forge.comments.clear()
        assert keep(forge, page, monkeypatch) == 0
    notes = "/projects/33/merge_requests/7/notes"
    assert forge.sent == [("PUT", f"{notes}/100", BODY), ("POST", notes, BODY)]


def test_comment_longer_than_allowed_is_cut(page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page.write_text("a" * 70_000, "utf-8")
    with Forge("github", []) as forge:
        assert keep(forge, page, monkeypatch) == 0
    ((_, _, body),) = forge.sent
    assert len(body) < 65_536 and body.endswith("(cut: too long for a comment)\n")


def test_comment_that_cannot_be_written_is_one_sentence(page: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    def refusal(forge: Forge, *words: str, **options: str) -> str:
        assert keep(forge, page, monkeypatch, *words, **options) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1 and "s3cret" not in error
        return error

    with Forge("github", []) as forge:
        forge.refuses.add("POST")
        assert "keeps no comment (status 403: the token may not write here; give the job" in refusal(forge)
        assert "status 401" in refusal(forge, token="other")
        assert "GITHUB_TOKEN is not set" in refusal(forge, token="")
        assert "--key must be letters" in refusal(forge, "--key", "--> x")
        page.with_name("event.json").write_text('{"action": "push"}', "utf-8")
        assert "this job is for no pull request" in refusal(forge)
        page.with_name("event.json").write_text("{", "utf-8")
        assert "event.json cannot be read: invalid JSON" in refusal(forge)
        page.unlink()
        page.with_name("event.json").write_text('{"pull_request": {"number": 7}}', "utf-8")
        assert "gate.md cannot be read: no such file or directory" in refusal(forge)
    assert forge.sent == []
