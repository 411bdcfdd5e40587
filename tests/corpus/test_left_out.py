"""Which files and pages of a folder are left out, and how that is said."""

from pathlib import Path

import pytest

from ragbench.base.types import ConfigError
from ragbench.corpus.file_warning import counted_by_kind
from ragbench.corpus.folder import MARKDOWN, find_files
from ragbench.corpus.reader import read_vault
from tests.naming import naming
from tests.tables import rows


def write(root: Path, *paths: str) -> None:
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("# Page\n\nText.\n")


def paths_of(root: Path, *exclude: str) -> list[str]:
    return sorted(file.path for file in find_files(root, MARKDOWN, exclude).files)


def test_folders_of_dependencies_and_build_output_are_left_out(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "node_modules/x/README.md", "docs/node_modules/y.md", "web/dist/b.md", "guide/build/c.md")
    (tmp_path / "web/package.json").write_text("{}")
    listing = find_files(tmp_path, MARKDOWN)
    assert sorted(file.path for file in listing.files) == ["a.md", "guide/build/c.md"]
    kinds = sorted((left.path, left.name) for left in listing.left_out)
    assert kinds == [
        ("docs/node_modules/", "dependencies"),
        ("node_modules/", "dependencies"),
        ("web/dist/", "build-output"),
    ]


def test_folder_named_like_output_is_named_when_read(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "site/b.md")
    listing = find_files(tmp_path, MARKDOWN)
    assert len(listing.files) == 2
    assert [(warning.path, warning.name) for warning in listing.warnings] == [("site/", "output-folder")]


def test_folders_of_copied_code_are_named_when_read(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "vendor/x/README.md", "Pods/y.md", "_book/z.md")
    listing = find_files(tmp_path, MARKDOWN)
    assert sorted(file.path for file in listing.files) == ["a.md", "vendor/x/README.md"]
    assert [(warning.path, warning.name) for warning in listing.warnings] == [("vendor/", "output-folder")]


def test_gitignore_of_every_folder_is_respected(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "drafts/b.md", "x/c.md", "x/keep.md", "x/y/c.md")
    (tmp_path / ".gitignore").write_text("drafts/\n[\n")
    (tmp_path / "x/.gitignore").write_text("*.md\n!keep.md\n")
    assert paths_of(tmp_path) == ["a.md", "x/keep.md"]


def test_gitignore_with_byte_order_mark_and_crlf_is_respected(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "old/b.md")
    (tmp_path / ".gitignore").write_bytes(b"\xef\xbb\xbfold/\r\n")
    assert paths_of(tmp_path) == ["a.md"]


def test_gitignore_does_not_take_back_pages_of_an_ignored_folder(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "logs/b.md", "temporary/c.md", "temporary/d.md")
    (tmp_path / ".gitignore").write_text("logs/\n!logs/b.md\ntemporary/*\n!temporary/d.md\n")
    assert paths_of(tmp_path) == ["a.md", "temporary/d.md"]


def test_gitignore_above_the_folder_holds_in_a_repository_only(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "docs/old/b.md")
    (tmp_path / ".gitignore").write_text("old/\n")
    assert len(paths_of(tmp_path / "docs")) == 2
    (tmp_path / ".git").mkdir()
    assert paths_of(tmp_path / "docs") == ["a.md"]
    (tmp_path / ".gitignore").write_text("docs/\n")  # the folder that was asked for is read nonetheless
    assert len(paths_of(tmp_path / "docs")) == 2


def test_exclude_takes_globs_and_takes_folders_back(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "old/b.md", "node_modules/c.md", "x/d.draft.md")
    assert paths_of(tmp_path, "old/", "*.draft.md", "!node_modules/") == ["a.md", "node_modules/c.md"]
    assert paths_of(tmp_path, "./old") == ["a.md", "x/d.draft.md"]
    for wrong in ("!", "old\\more", "old\\"):
        with pytest.raises(ConfigError, check=naming("data.exclude", wrong)):
            paths_of(tmp_path, wrong)


def test_include_refuses_globs_that_fit_no_path(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md")
    assert len(find_files(tmp_path, ["./docs/*.md"]).files) == 1
    for wrong in ("docs\\*.md", "!docs/a.md"):
        with pytest.raises(ConfigError, check=naming("data.include", wrong)):
            find_files(tmp_path, [wrong])


@pytest.mark.parametrize("field", rows("corpus_left_out", "left_out_unpublished_pages_are_read_on_request_only"))
def test_left_out_unpublished_pages_are_read_on_request_only(tmp_path: Path, field: str) -> None:
    write(tmp_path, "a.md")
    (tmp_path / "b.md").write_text(f"---\n{field}\n---\nSecret.\n")
    vault = read_vault(tmp_path)
    assert [document.docno for document in vault.documents] == ["a"]
    assert [(left.path, left.name) for left in vault.left_out] == [("b.md", "unpublished")]
    assert len(read_vault(tmp_path, drafts=True).documents) == 2


def test_left_out_drafts_of_jekyll_and_hidden_pages_are_counted(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "_drafts/b.md", ".c.md", "guide/_sidebar.md")
    vault = read_vault(tmp_path)
    assert [document.docno for document in vault.documents] == ["a"]
    assert [(left.path, left.name) for left in vault.left_out] == [
        (".c.md", "hidden"),
        ("_drafts/b.md", "unpublished"),
        ("guide/_sidebar.md", "unpublished"),
    ]
    assert len(read_vault(tmp_path, drafts=True).documents) == 3


@pytest.mark.parametrize("field", ["search:\n  boost: 2", "sidebar:\n  hidden: true", "build:\n  list: always"])
def test_left_out_are_no_pages_that_are_searched(tmp_path: Path, field: str) -> None:
    (tmp_path / "a.md").write_text(f"---\n{field}\n---\nText.\n")
    assert len(read_vault(tmp_path).documents) == 1


def test_left_out_is_a_summary_that_holds_links_only(tmp_path: Path) -> None:
    write(tmp_path, "a.md", "old/SUMMARY.md")
    (tmp_path / "SUMMARY.md").write_text("# Summary\n\n[Start](a.md)\n\n- [Old](old.md)\n  - [Draft]()\n\n---\n")
    vault = read_vault(tmp_path)
    assert [document.docno for document in vault.documents] == ["a", "old/SUMMARY"]
    assert [(left.path, left.name) for left in vault.left_out] == [("SUMMARY.md", "unpublished")]


def test_left_out_is_counted_by_kind_with_an_example(tmp_path: Path) -> None:
    write(tmp_path, "a.md", ".hidden/b.md")
    (tmp_path / "c.md").write_text("x <!-- note --> y <!-- other -->\n")
    sentences = counted_by_kind(read_vault(tmp_path).left_out)
    assert [sentence.partition(" ")[0] for sentence in sentences] == ["hidden", "comment"]
    assert "2, such as <!-- note --> in c.md" in sentences[1]
