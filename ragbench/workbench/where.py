"""What a run says first: where its results go, and what it measures without a project file."""

from __future__ import annotations

from pathlib import Path

from ragbench.base import console
from ragbench.config import project
from ragbench.config.overrides import section_of
from ragbench.config.settings import Settings

_NOTES = ("notes", "docs", "content", "wiki")
"""Names that folders of notes often have."""


def sentences(settings: Settings, given: bool = False) -> list[str]:
    """The first lines of a run; `given` is a benchmark that a script hands over."""
    said = [f"results go to {_shown(settings.results)}"]
    typed = {section_of(word) for word in settings.overrides}
    if not given and "data" not in typed and project.find() is None:
        notes = next((name for name in _NOTES if Path(name).is_dir()), "FOLDER")
        said.append(
            f"no {project.FILE} here or above: this measures the built-in benchmark, documentation of an invented "
            f"product; for your own notes, type ragbench init {notes}"
        )
    return said


def _shown(results: Path) -> str:
    """The folder, and whose it is."""
    found = project.find()
    if found is not None and results.is_relative_to(found.file.parent):
        return f"{results.relative_to(found.file.parent)} next to {console.short_path(found.file)}"
    return f"{console.short_path(results)} in this folder" if results.is_relative_to(Path.cwd()) else str(results)
