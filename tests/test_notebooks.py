"""Notebooks: scripts and notebooks say the same, and what is committed of their outputs is small and tells no places.

`make notebooks` runs them; `make outputs` writes them anew from the scripts.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
SCRIPTS = sorted(FOLDER.glob("*.py"))
PLACES = re.compile(r"/work/|/root/|/home/\w|/tmp/|/var/folders|C:\\\\Users")


def code(cells: list[Any]) -> list[str]:
    return [cell.source for cell in cells if cell.cell_type == "code"]


def text(cells: list[Any]) -> list[str]:
    return [cell.source for cell in cells if cell.cell_type == "markdown"]


@pytest.fixture(params=SCRIPTS, ids=lambda path: path.stem)
def script(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


def test_every_script_has_its_notebook() -> None:
    assert [path.stem for path in SCRIPTS] == [path.stem for path in sorted(FOLDER.glob("*.ipynb"))]
    assert [path.stem[:2] for path in SCRIPTS] == ["01", "02", "03", "04", "05", "06", "07"]


def test_make_lab_opens_the_notebooks_in_jupyterlab() -> None:
    recipe = (FOLDER.parent / "Makefile").read_text(encoding="utf-8").partition("\nlab: ")[2].partition("\n\n")[0]
    assert recipe.startswith(".venv/lab") and "jupyter lab" in recipe and recipe.endswith(" notebooks")
    project = tomllib.loads((FOLDER.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert any(requirement.startswith("jupyterlab") for requirement in project["optional-dependencies"]["notebooks"])
    assert not any("jupyter" in requirement for requirement in project["dependencies"])


def test_script_and_notebook_say_the_same(script: Path) -> None:
    import jupytext  # here, for it takes a second and a half

    written, saved = jupytext.read(script), jupytext.read(script.with_suffix(".ipynb"))
    assert code(saved.cells) == code(written.cells)
    assert text(saved.cells) == text(written.cells)


def test_notebook_outputs_are_small_and_name_no_folders(script: Path) -> None:
    path = script.with_suffix(".ipynb")
    assert path.stat().st_size < 300_000
    notebook = json.loads(path.read_text(encoding="utf-8"))
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    for output in (shown for cell in cells for shown in cell["outputs"]):
        assert output["output_type"] != "error"
        assert not (match := PLACES.search(json.dumps(output))), f"{match}: {json.dumps(output)[:300]}"


def test_notebooks_have_no_progress_bars(script: Path) -> None:
    saved = script.with_suffix(".ipynb").read_text(encoding="utf-8")
    assert "<progress" not in saved and "jupyter.widget" not in saved and "\\u2501" not in saved


def test_figures_of_notebooks_are_pictures_as_well(script: Path) -> None:
    notebook = json.loads(script.with_suffix(".ipynb").read_text(encoding="utf-8"))
    outputs = [output.get("data", {}) for cell in notebook["cells"] for output in cell.get("outputs", [])]
    figures = [data for data in outputs if "application/vnd.plotly.v1+json" in data]
    assert len(figures) == sum(".plot" in source for source in code_of(notebook)), "run: make outputs"
    assert all(data.get("image/png", "").startswith("iVBOR") for data in figures), "run: make outputs"


def code_of(notebook: dict[str, Any]) -> list[str]:
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]


def test_first_notebook_ends_in_an_adopt_after_three_cells() -> None:
    notebook = json.loads((FOLDER / "01_first_run.ipynb").read_text(encoding="utf-8"))
    third = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"][2]
    assert "".join(third["outputs"][0]["text"]).splitlines()[1].startswith("adopt: Quality significantly better")
