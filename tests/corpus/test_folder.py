"""Which files of a folder are found."""

from pathlib import Path

import pytest

from ragbench.corpus.folder import _glob_pattern, find_files, printable
from tests.tables import rows

MARKDOWN = ("**/*.md", "**/*.markdown")


@pytest.mark.parametrize(("glob", "path", "matches"), rows("corpus_folder", "folder_globs"))
def test_folder_globs(glob: str, path: str, matches: bool) -> None:
    assert bool(_glob_pattern(glob).fullmatch(path)) is matches


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(path)


def test_folder_reads_all_folders_but_hidden_ones(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "x/y/b.markdown", "c.txt", ".hidden.md", ".git/d.md", "x/.trash/e.md")
    files, warnings, _ = find_files(tmp_path, MARKDOWN)
    assert sorted(file.path for file in files) == ["a.md", "x/y/b.markdown"]
    assert warnings == []


def test_folder_reads_links_inside_and_none_that_lead_out(tmp_path: Path) -> None:
    root = tmp_path / "vault"
    write(root, "a.md")
    write(tmp_path, "outside.md", "elsewhere/b.md", "vault-next-door/c.md")
    (root / "inside.md").symlink_to(root / "a.md")
    (root / "out.md").symlink_to(tmp_path / "outside.md")
    (root / "next.md").symlink_to(tmp_path / "vault-next-door" / "c.md")
    (root / "folder").symlink_to(tmp_path / "elsewhere")
    (root / "self").symlink_to(root)
    files, warnings, _ = find_files(root, MARKDOWN)
    assert sorted(file.path for file in files) == ["a.md", "inside.md"]
    assert sorted((warning.path, warning.name) for warning in warnings) == [
        ("folder", "symlink-outside"),
        ("next.md", "symlink-outside"),
        ("out.md", "symlink-outside"),
    ]


def test_folder_root_itself_may_be_a_link(tmp_path: Path) -> None:
    write(tmp_path / "real", "a.md")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    files, warnings, _ = find_files(tmp_path / "link", MARKDOWN)
    assert ([file.path for file in files], warnings) == (["a.md"], [])


def test_printable_names_have_no_control_characters() -> None:
    assert printable("gr\udcf6sse.md") == "gr\ufffdsse.md"
    assert printable("größe.md") == "größe.md"
