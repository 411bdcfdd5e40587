"""Every file is written by `ragbench.base.files`, or listed here with what makes it absent or complete after a kill."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_architecture import PACKAGE, modules, parsed

DRAFT = "into the draft of a folder, which is renamed when it is complete"
ATOMIC = "inside atomic_write"
TEMPORARY = "into a temporary folder"
ASIDE = "a file that cannot be read gets another name"
LINES = "adds lines; a reader leaves out half a line"

WRITERS = {
    "benchmark/native.py": DRAFT,
    "extras/collect/loaders/repository.py": DRAFT,
    "extras/atlas/fetch.py": "a copy that its record, written last, lists",
    "extras/engines/opened.py": TEMPORARY,
    "extras/engines/lance.py": "a link beside the first, renamed over it",
    "extras/engines/postgres.py": ATOMIC,
    "extras/engines/shipping.py": TEMPORARY,
    "extras/fit/tuning/study.py": LINES,
    "extras/remote/artefact_store.py": "an object store cannot rename: a pointer, written last, names the archive",
    "extras/ship/bundle.py": DRAFT,
    "extras/ship/serving/search_log.py": LINES,
    "extras/studio/link.py": ATOMIC,
    "extras/systems/parts/prefixes.py": DRAFT,
    "extras/systems/parts/scan.py": DRAFT,
    "index/artefacts.py": DRAFT,
    "index/synonyms.py": DRAFT,
    "index/terms.py": DRAFT,
    "index/vocabulary.py": DRAFT,
    "extras/backends/draft.py": ATOMIC,
    "models/store.py": ASIDE,
    "results/store.py": "into a folder of results, which counts when its record, written last, lists the files",
    "tracking/store.py": ASIDE,
}


def test_what_writes_without_the_helper_is_listed() -> None:
    found = {path.relative_to(PACKAGE).as_posix() for path in modules() if any(_writes(path))}
    assert found - {"base/files.py"} == set(WRITERS)


def _writes(path: Path) -> Iterator[ast.Call]:
    """Calls that write, copy or rename a file by its path; reads are left out."""
    for node in ast.walk(parsed(path)):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        of = ast.unparse(node.func.value) if isinstance(node.func, ast.Attribute) else ""
        text = ast.unparse(node)
        values = [*node.args, *(word.value for word in node.keywords)]
        if (
            (name in ("write_text", "write_bytes") and of not in ("", "files"))
            or (
                of in ("shutil", "os")
                and name in ("move", "copy", "copy2", "copyfile", "copytree", "rename", "replace")
            )
            or (name in ("rename", "replace", "symlink_to", "hardlink_to") and _names_one_file(node, of))
            or (name == "open" and of == "os" and "O_WRONLY" in text and "devnull" not in text)
            or (name == "open" and of not in ("os", "tarfile") and any(map(_is_mode, values)))
        ):
            yield node


def _names_one_file(call: ast.Call, of: str) -> bool:
    """Whether a method renames a path, which those of columns and texts do not."""
    return len(call.args) == 1 and not call.keywords and ((of.isidentifier() and of != "dataclasses") or "path" in of)


def _is_mode(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in _MODES


_MODES = {f"{first}{rest}" for first in "wax" for rest in ("", "b", "t", "+", "b+", "+b")} | {"r+", "r+b", "rb+"}
