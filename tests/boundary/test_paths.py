"""Names of files from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st

from ragbench.base.types import BoundaryError
from ragbench.boundary.paths import inside, regular_file


@pytest.mark.parametrize(
    "name", ["../x", "/etc/passwd", "a/../../x", "a\0b", "", "  ", "C:\\x", "\\\\host\\x", "..\\x", "x" * 300, "a\nb"]
)
def test_path_that_no_folder_can_hold_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(BoundaryError):
        inside(tmp_path, name)


def test_path_of_a_link_must_not_lead_out(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (tmp_path / "secret").write_text("s")
    (root / "out").symlink_to(tmp_path / "secret")
    (root / "in").symlink_to(root / "file")
    (root / "loop").symlink_to(root / "loop")
    assert inside(root, "a/b.md") == root / "a/b.md"
    assert inside(root, "in") == root / "in"
    for name, reason in (("out", "leads out of its folder"), ("loop", "leads nowhere")):
        with pytest.raises(BoundaryError, match=reason):
            inside(root, name)


@given(st.text(max_size=40))
@settings(deadline=None)
def test_path_that_is_taken_lies_inside(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    root = Path("/tmp/root-that-need-not-exist")
    try:
        taken = inside(root, name)
    except BoundaryError as error:
        assert "\n" not in str(error)
        str(error).encode()
    else:
        assert os.path.normpath(taken).startswith(str(root))
        assert "\0" not in str(taken)


def test_regular_file_refuses_folders_pipes_and_links(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    os.mkfifo(tmp_path / "pipe")
    assert regular_file(tmp_path / "file")
    assert not regular_file(tmp_path / "missing")
    for name, reason in (
        (".", "a folder, not a file"),
        ("dangling", "a link that leads nowhere"),
        ("loop", "a link that leads nowhere"),
        ("pipe", "not a regular file"),
    ):
        with pytest.raises(BoundaryError, match=reason):
            regular_file(tmp_path / name)


def test_path_that_is_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BoundaryError, match="a name is not text"):
        inside(tmp_path, b"\0\xff")
