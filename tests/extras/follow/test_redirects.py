"""Redirects of a site are read from the files of its tools, and lead judged pages to where they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base.types import BenchmarkError
from ragbench.extras.follow.redirects import Redirects, read_redirect_file, read_redirects
from tests.tables import rows

PLACES = {"guide/keys": "guide/keys", "guide/logs": "guide/logs", "intro": "intro", "v2/a/b": "v2/a/b"}


@pytest.mark.parametrize(("name", "text"), rows("benchmark_redirects", "redirects_of_every_format"))
def test_redirects_of_every_format(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / name
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    (tmp_path / "docs").mkdir()
    redirects = read_redirects(tmp_path / "docs", tmp_path)
    assert redirects.page("keys", PLACES) == ("guide/keys", file.name)
    assert redirects.page("logs", PLACES) == ("guide/logs", file.name)
    assert redirects.page("x", PLACES) is None and redirects.page("other", PLACES) is None


def test_redirects_of_folders_and_of_redirects() -> None:
    redirects = Redirects(
        (
            ("/docs/old/*", "/docs/v1/:splat", "_redirects"),
            ("/docs/v1/:path*", "/docs/v2/:path*", "vercel.json"),
            ("/docs/any/:slug", "/docs/intro", "vercel.json"),
            ("/round", "/trip", "_redirects"),
            ("/trip", "/round", "_redirects"),
        )
    )
    assert redirects.page("old/a/b", PLACES) == ("v2/a/b", "vercel.json")
    assert redirects.page("any/thing", PLACES) is None  # a pattern of one side only
    assert redirects.page("round", PLACES) is None


def test_redirects_that_disagree_lead_nowhere() -> None:
    rules = (("/v1/keys", "/guide/keys", "_redirects"), ("/v2/keys", "/guide/logs", "_redirects"))
    assert Redirects(rules).page("keys", PLACES) is None
    assert Redirects((rules[0], ("/v1/keys", "/intro", "_redirects"))).page("keys", PLACES) == (
        "guide/keys",
        "_redirects",
    )


def test_redirects_in_a_damaged_file_are_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "vercel.json").write_text("{")
    assert read_redirects(tmp_path, tmp_path) == Redirects()
    assert "the redirects in" in caplog.text and "vercel.json are not followed: it cannot be read" in caplog.text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("moved.txt", "# since 2\n/docs/keys /docs/guide/keys\n/docs/x / 200\n"),
        ("mkdocs.yaml", "redirect_maps:\n  keys.md: guide/keys.md\n"),
        ("old.json", '[{"from": "/keys", "to": "/guide/keys"}]'),
    ],
)
def test_redirects_of_one_named_file(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert read_redirect_file(tmp_path / name).page("keys", PLACES) == ("guide/keys", name)


def test_redirects_of_one_file_that_cannot_be_read(tmp_path: Path) -> None:
    for name, reason in (("none.txt", "no such file"), ("bad.json", "invalid JSON")):
        (tmp_path / "bad.json").write_text("{")
        with pytest.raises(BenchmarkError, match=rf"cannot be read \({reason}.*lines `OLD NEW`"):
            read_redirect_file(tmp_path / name)
