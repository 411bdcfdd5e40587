"""The replay of histories, on a small site of two years."""

from __future__ import annotations

import os
import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from research.label_replay import main, pages, sections, windows


def prose(seed: int, n: int = 60) -> str:
    """Lines of words, different for every seed."""
    chosen = random.Random(seed)
    return "\n".join("".join(chosen.choices("abcdefghij ", k=40)) for _ in range(n // 6))


def commit(folder: Path, year: int) -> None:
    date = {"GIT_AUTHOR_DATE": f"{year}-06-01T00:00:00Z", "GIT_COMMITTER_DATE": f"{year}-06-01T00:00:00Z"}
    identity = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false")
    for arguments in (["add", "-A"], [*identity, "commit", "-qm", str(year)]):
        subprocess.run(["git", "-C", str(folder), *arguments], check=True, env={**os.environ, **date})


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    site = tmp_path / "acme" / "docs"
    (site / "docs").mkdir(parents=True)
    subprocess.run(["git", "-C", str(site), "init", "-q"], check=True)
    for number, name in enumerate(("keys", "logs", "old")):
        text = f"# {name}\n\n## Use\n\n{prose(number)}\n\n## More\n\n{prose(9 + number)}\n"
        (site / "docs" / f"{name}.md").write_text(text)
    commit(site, 2024)
    (site / "docs" / "keys.md").rename(site / "docs" / "tokens.md")
    (site / "docs" / "old.md").unlink()
    (site / "_redirects").write_text("/docs/keys /docs/tokens 301\n")
    commit(site, 2025)
    return tmp_path


def test_replay_counts_moved_pages_and_sections(clones: Path) -> None:
    (window,) = windows(clones, {"acme/docs": "docs/"}, 1)
    assert window.truth == {"keys": "tokens", "logs": "logs"} and window.redirects == {"keys": "tokens"}
    examples: list[str] = []
    of_git, of_addresses = pages(window, examples)
    assert of_git == {"moved right": 1, "stays right": 1, "deleted gone": 1}
    assert of_addresses == {"redirected right": 1} and examples == []
    assert sections(window) == Counter({"section moved right": 3})


def test_replay_prints_a_row_for_each_site(
    clones: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("research.label_replay.SITES", {"measured": {"acme/docs": "docs/"}})
    main([str(clones), "--years", "1"])
    row = "| all | 1: 1 / 0 / 0 / 0 | 1: 1 / 0 / 0 / 0 | 3: 3 / 0 / 0 / 0 | 1: 1 / 0 / 0 / 0 |"
    assert row in capsys.readouterr().out
