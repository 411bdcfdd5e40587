"""A folder read as a collection: what comes out, and what each fault of a file does."""

import hashlib
import json
import os
import pickle
import re
from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.base.types import CorpusError
from ragbench.corpus.file_warning import _NOTICES as NOTICES, FAILURES
from ragbench.corpus.reader import Vault, docno_of, parse_document, read_vault

PAGE = b"""---
title: Rotate API keys
tags: [auth/keys]
aliases: key rotation
related: [gate/tokens]
date: 2026-01-05
---
# Keys

See [[tokens]] #oncall

```sh
corctl key rotate
```
"""


def vault_of(root: Path, **options: object) -> Vault:
    return read_vault(root, **options)  # type: ignore[arg-type]


def write(root: Path, **files: bytes) -> Path:
    root.mkdir(exist_ok=True)
    for name, content in files.items():
        (root / f"{name}.md").write_bytes(content)
    return root


def test_vault_reads_a_document() -> None:
    document, warnings = parse_document("gate/keys", "gate/keys.md", PAGE, modified=5.0)
    assert warnings == []
    assert document.docno == "gate/keys"
    assert document.title == "Rotate API keys"
    assert document.text.startswith("# Keys\n")
    assert document.first_line == 8
    assert document.tags == ("auth/keys", "oncall")
    assert document.modified == 1767571200.0
    assert document.size_bytes == len(PAGE)
    assert document.digest == hashlib.sha256(PAGE).hexdigest()
    assert [(link.kind, link.text) for link in document.links] == [("wikilink", "tokens"), ("related", "gate/tokens")]
    (block,) = document.code_blocks
    assert (block.start_line, block.end_line) == (12, 14)
    assert PAGE.decode().split("\n")[block.start_line - 1] == "```sh"
    assert [section.path for section in document.sections] == [("Keys",)]


def test_document_can_be_sent_to_another_process() -> None:
    document, _ = parse_document("a", "a.md", PAGE, 0.0)
    assert pickle.loads(pickle.dumps(document)) == document


@pytest.mark.parametrize(
    ("raw", "title"),
    [
        (b"---\ntitle: From frontmatter\n---\n# Heading\n", "From frontmatter"),
        (b"---\ntitle:\n---\n## Two\n# First *H1*\n# Second\n", "First H1"),
        (b"## Only a second level\n", "api keys"),
        (b"> # Quoted\n", "api keys"),
        (b"", "api keys"),
    ],
)
def test_document_title(raw: bytes, title: str) -> None:
    assert parse_document("gate/api%20keys", "gate/api keys.md", raw, 0.0)[0].title == title


def test_document_modified_falls_back_to_the_file(tmp_path: Path) -> None:
    write(tmp_path, a=b"Text")
    os.utime(tmp_path / "a.md", (7, 7))
    assert vault_of(tmp_path).documents[0].modified == 7.0


@pytest.mark.parametrize(
    ("path", "docno"),
    [
        ("gate/api-keys.md", "gate/api-keys"),
        ("release 3.1.md", "release%203.1"),
        ("a\tb\n.markdown", "a%09b%0A"),
        ("größe.md", "größe"),
        ("gr\udcf6sse.md", "gr%F6sse"),
        ("no\u00a0break.md", "no%C2%A0break"),
    ],
)
def test_document_docno(path: str, docno: str) -> None:
    assert docno_of(path) == docno


def test_vault_is_sorted_and_linked(tmp_path: Path) -> None:
    write(tmp_path, b=b"[[a]]", a=b"[x](b.md)", C=b"Text")
    vault = vault_of(tmp_path)
    assert [document.docno for document in vault.documents] == ["C", "a", "b"]
    assert [document.path for document in vault.documents] == ["C.md", "a.md", "b.md"]
    assert [link.target for document in vault.documents for link in document.links] == ["b", "a"]
    assert vault.warnings == ()


FAULTS: dict[str, bytes] = {
    "too-large": b"x" * 5_000_001,
    "encoding": b"Gr\xf6\xdfe",
    "nul-bytes": b"a\0b",
    "empty-file": b" \n\n",
    "frontmatter-malformed": b"---\na: b: c\n---\nText",
    "frontmatter-unclosed": b"---\na: b\n\nText",
    "unclosed-fence": b"Text\n\n```\ncode\n",
    "link-escapes": b"[x](../secret.md)",
}
SKIPPED = {"too-large", "empty-file"}


@pytest.mark.parametrize("name", FAULTS)
def test_vault_reads_on_after_a_named_warning(tmp_path: Path, name: str) -> None:
    write(tmp_path, faulty=FAULTS[name], good=b"# Good\n")
    vault = vault_of(tmp_path)
    assert [(warning.path, warning.name) for warning in vault.warnings] == [("faulty.md", name)]
    assert vault.warnings[0].message.endswith(".")
    assert [document.docno for document in vault.documents] == (["good"] if name in SKIPPED else ["faulty", "good"])


def test_vault_names_all_faults_at_once(tmp_path: Path) -> None:
    write(tmp_path, good=b"# Good\n", **{name.replace("-", "_"): raw for name, raw in FAULTS.items()})
    vault = vault_of(tmp_path)
    assert sorted(warning.name for warning in vault.warnings) == sorted(FAULTS)
    assert len(vault.documents) == 1 + len(FAULTS) - len(SKIPPED)


def test_vault_limit_of_bytes_is_inclusive(tmp_path: Path) -> None:
    write(tmp_path, a=b"x" + b" " * 4_999_999)
    assert vault_of(tmp_path).warnings == ()


def test_vault_refuses_two_files_of_one_docno(tmp_path: Path) -> None:
    write(tmp_path, a=b"first")
    (tmp_path / "a.markdown").write_bytes(b"second")
    vault = vault_of(tmp_path)
    assert [document.text for document in vault.documents] == ["first"]
    assert [str(warning) for warning in vault.warnings] == [
        "a.markdown: duplicate-docno: its document id a is that of a.md; rename one of them."
    ]


def test_docno_of_blank_and_encoded_blank_is_one(tmp_path: Path) -> None:
    write(tmp_path, **{"a b": b"one", "a%20b": b"two"})
    assert [warning.name for warning in vault_of(tmp_path).warnings] == ["duplicate-docno"]


def test_vault_warns_of_letter_case(tmp_path: Path) -> None:
    write(tmp_path, a=b"lower", A=b"upper")
    if len(list(tmp_path.iterdir())) == 1:
        pytest.skip("this file system ignores letter case")
    vault = vault_of(tmp_path)
    assert [document.docno for document in vault.documents] == ["A", "a"]
    assert [(warning.path, warning.name) for warning in vault.warnings] == [("a.md", "case-duplicate")]


def test_vault_keeps_frontmatter_alone_with_a_notice(tmp_path: Path) -> None:
    write(tmp_path, a=b"---\ntitle: A\n---\n")
    vault = vault_of(tmp_path)
    assert [document.title for document in vault.documents] == ["A"]
    assert [warning.name for warning in vault.warnings] == ["no-text"]


def test_vault_warns_of_ambiguous_links(tmp_path: Path) -> None:
    write(tmp_path / "x", page=b"Text")
    write(tmp_path / "y", page=b"Text")
    write(tmp_path, a=b"[[page]]")
    assert [warning.name for warning in vault_of(tmp_path).warnings] == ["ambiguous-link"]


def test_vault_skips_symbolic_links_out_of_the_root(tmp_path: Path) -> None:
    root = write(tmp_path / "vault", a=b"Text")
    write(tmp_path, secret=b"secret")
    (root / "b.md").symlink_to(tmp_path / "secret.md")
    vault = vault_of(root)
    assert [document.docno for document in vault.documents] == ["a"]
    assert [(warning.path, warning.name) for warning in vault.warnings] == [("b.md", "symlink-outside")]


def test_vault_warns_of_files_that_cannot_be_opened(tmp_path: Path) -> None:
    root = write(tmp_path / "vault", a=b"Text")
    (root / "dangling.md").symlink_to(root / "nowhere")
    (root / "loop.md").symlink_to(root / "loop.md")
    os.mkfifo(root / "pipe.md")
    vault = vault_of(root)
    assert [document.docno for document in vault.documents] == ["a"]
    assert [(warning.path, warning.name) for warning in vault.warnings] == [
        ("dangling.md", "unreadable"),
        ("loop.md", "unreadable"),
        ("pipe.md", "unreadable"),
    ]


def test_vault_warns_of_file_names_that_are_no_text(tmp_path: Path) -> None:
    try:
        Path(os.fsdecode(os.fsencode(tmp_path) + b"/gr\xf6sse.md")).write_bytes(b"\0")
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    vault = vault_of(tmp_path)
    assert [(document.docno, document.path) for document in vault.documents] == [("gr%F6sse", "gr\ufffdsse.md")]
    assert [warning.path for warning in vault.warnings] == ["gr\ufffdsse.md"]


def test_vault_refuses_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"does not exist; give the path of a folder with markdown files\.$"):
        vault_of(tmp_path / "nowhere")


def test_vault_refuses_a_file(tmp_path: Path) -> None:
    write(tmp_path, a=b"Text")
    with pytest.raises(CorpusError, match="is not a folder"):
        vault_of(tmp_path / "a.md")


def test_vault_refuses_a_folder_without_markdown(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Text")
    with pytest.raises(
        CorpusError,
        match=r": no file matches \*\*/\*\.md, .*\.canvas \(it holds 1 \.txt\); name the files with data\.include\.$",
    ):
        vault_of(tmp_path)


def test_vault_says_why_nothing_is_readable(tmp_path: Path) -> None:
    write(tmp_path, a=b"")
    with pytest.raises(
        CorpusError, match=r"No document to read below .*: one problem .*: a\.md: empty-file: it holds no text"
    ):
        vault_of(tmp_path)


def test_vault_takes_include(tmp_path: Path) -> None:
    write(tmp_path, a=b"Text")
    (tmp_path / "b.txt").write_text("Text")
    assert [document.docno for document in vault_of(tmp_path, include=("*.txt",)).documents] == ["b"]


def test_reader_lists_every_name_of_a_warning_once() -> None:
    assert set(FAULTS) < set(FAILURES)
    assert not set(FAILURES) & set(NOTICES)


MODULES = b"""import Link from '@docusaurus/Link';
import A from "./a";
import {
  donations,
} from '../data';
import * as all from './all'

# Title

Import settings from 'a file' first.

```js
import x from 'y'
```

import of data from 'b.csv' takes a minute.
"""


@pytest.mark.parametrize("path", ["a.md", "a.mdx"])
def test_reader_drops_imports_of_mdx_and_keeps_lines(path: str) -> None:
    document, warnings = parse_document("a", path, MODULES, 0.0)
    assert {warning.name for warning in warnings} == {"module"}
    assert document.text.startswith("\n" * 7 + "# Title\n")
    assert document.text[7:].encode() == MODULES.split(b"\n", 7)[7]  # prose and code stay
    assert document.code_blocks[0].start_line == 12 and document.sections[0].path == ("Title",)


def test_reader_drops_exports_of_mdx_only() -> None:
    written = b"export const rows = [\n  'a',\n\n  'b',\n]\nexport const B = () => <b>{rows}</b>\n\nText.\n"
    document, _ = parse_document("a", "a.mdx", written, 0.0)
    assert document.text == "\n" * 7 + "Text.\n"
    assert parse_document("a", "a.md", written, 0.0)[0].text == written.decode().replace("<b>", "").replace("</b>", "")
    assert parse_document("a", "a.md", b'import "fmt"\n\nText.\n', 0.0)[0].text.startswith('import "fmt"')


def test_reader_built_in_documents_are_read_as_they_are_written() -> None:
    """Their chunks come with vectors and measured figures; some show imports and exports in code."""
    shown = 0
    for file in (locations.builtin() / "corpus" / "v2").rglob("*.md"):
        raw = file.read_bytes()
        if re.search(rb"^(import|export)\s", raw, re.MULTILINE):
            document, _ = parse_document(file.stem, file.name, raw, 0.0)
            assert raw.decode().endswith(document.text) and document.digest == hashlib.sha256(raw).hexdigest()
            shown += 1
    assert shown > 5


def test_cards_of_a_canvas_are_text_from_the_top_down(tmp_path: Path) -> None:
    nodes = [
        {"id": "1", "type": "text", "text": "Ebb at **noon**", "x": 0, "y": 90},
        {"id": "2", "type": "group", "label": "Tides", "x": 0, "y": -10},
        {"id": "3", "type": "file", "file": "sea/flood.md", "x": 0, "y": 40},
        {"id": "4", "type": "link", "url": "https://example.org", "x": 0, "y": 0},
    ]
    (tmp_path / "plan.canvas").write_text(json.dumps({"nodes": nodes, "edges": [{"id": "e", "label": "then"}]}))
    (tmp_path / "bad.canvas").write_text("[1]")
    (tmp_path / "sea").mkdir()
    (tmp_path / "sea/flood.md").write_text("High water, see [[plan.canvas]].")
    vault = read_vault(tmp_path)
    plan, flood = vault.documents
    assert (plan.title, plan.text) == ("plan", "Tides\n\n[[sea/flood.md]]\n\nEbb at **noon**\n\nthen")
    assert (plan.links[0].target, flood.links[0].target) == ("sea/flood", "plan")
    assert [(warning.path, warning.name) for warning in vault.warnings] == [("bad.canvas", "unreadable")]
