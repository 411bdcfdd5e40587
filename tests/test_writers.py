"""Files are written and folders made by `ragbench.base.files`, or listed here with what makes them survive a kill."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

import pytest

from tests.test_architecture import PACKAGE, modules, parsed

DRAFT = "into the draft of a folder, which is renamed when it is complete"
ATOMIC = "inside atomic_write"
TEMPORARY = "into a temporary folder"
ASIDE = "a file that cannot be read gets another name"
LINES = "adds lines; a reader leaves out half a line"

REMOTE = "under another name at an address, then moved; the same artefact always has the same name"

WRITERS = {
    "benchmark/native.py": DRAFT,
    "extras/backends/multilingual.py": DRAFT,
    "extras/cluster/artefacts.py": REMOTE,
    "extras/cluster/worker.py": DRAFT,
    "extras/collect/repair.py": DRAFT,
    "extras/engines/opened.py": TEMPORARY,
    "extras/fit/tuning/study.py": LINES,
    "extras/ship/bundle.py": DRAFT,
    "extras/ship/serving/search_log.py": LINES,
    "extras/systems/parts/prefixes.py": DRAFT,
    "extras/systems/parts/scan.py": DRAFT,
    "extras/tracking/store.py": ASIDE,
    "index/artefacts.py": DRAFT,
    "index/synonyms.py": DRAFT,
    "index/terms.py": DRAFT,
    "index/vocabulary.py": DRAFT,
    "models/store.py": ASIDE,
    "results/store.py": "into a folder of results, which counts when its record, written last, lists the files",
}

STAYS = "the folder may stay empty: the next call uses it"

MAKERS = {
    "benchmark/native.py": "a folder that is new or empty",
    "extras/cluster/artefacts.py": REMOTE,
    "extras/cluster/worker.py": DRAFT,
    "extras/engines/content.py": TEMPORARY,
    "extras/engines/opened.py": TEMPORARY,
    "extras/fit/tuning/search.py": STAYS,
    "extras/fit/tuning/study.py": STAYS,
    "extras/ship/bundle.py": DRAFT,
    "extras/ship/refresh.py": STAYS,
    "extras/tracking/store.py": STAYS,
    "index/artefacts.py": DRAFT,
    "index/lexical.py": DRAFT,
    "models/store.py": STAYS,
    "results/store.py": "the folder of a run, which the next run removes if the run was killed before its plan",
}


def test_writers_without_the_helper_are_listed() -> None:
    assert _calling(_writes) == set(WRITERS)


def test_makers_of_folders_without_the_helper_are_listed() -> None:
    assert _calling(_makes) == set(MAKERS)


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("path.mkdir()", True),
        ("self.folder.mkdir(parents=True, exist_ok=True)", True),
        ("os.makedirs(path)", True),
        ("files.locked(path)", False),
    ],
)
def test_makers_of_folders_are_recognised(text: str, listed: bool) -> None:
    assert any(_makes(ast.parse(text))) == listed


@pytest.mark.parametrize(
    ("text", "listed"),
    [
        ("draft.rename(place)", True),
        ("self.folder.rename(self.place)", True),
        ("os.rename(a, b)", True),
        ("frame.rename(columns={'a': 'b'})", False),
        ("frame.sum().rename('mean')", False),
        ("open(path, 'w')", True),
        ("open(path)", False),
        ("text.replace('a', 'b')", False),
    ],
)
def test_writers_are_recognised(text: str, listed: bool) -> None:
    assert any(_writes(ast.parse(text))) == listed


def _calling(calls: Callable[[ast.Module], Iterator[ast.Call]]) -> set[str]:
    paths = {path.relative_to(PACKAGE).as_posix() for path in modules() if any(calls(parsed(path)))}
    return paths - {"base/files.py"}


def _makes(module: ast.Module) -> Iterator[ast.Call]:
    """Calls that make a folder."""
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("mkdir", "makedirs"):
            yield node


def _writes(module: ast.Module) -> Iterator[ast.Call]:
    """Calls that write, copy or rename a file by its path; reads are left out."""
    for node in ast.walk(module):
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
            or (name in ("replace", "symlink_to", "hardlink_to") and _names_one_file(node, of))
            or (name == "rename" and len(node.args) == 1 and not isinstance(node.args[0], ast.Constant))
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
