"""The pictures of the studio on pages of docs/ are of the pages as they are now."""

from __future__ import annotations

from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from tests.browser import shown
from tools.studio_screenshots import labels

IMAGES = Path(__file__).resolve().parents[3] / "docs" / "images"


def judging(browser: TestClient, run_name: str) -> str:
    browser.post("/judging/pool", data={"run": run_name, "depth": "10"})
    return browser.post("/judging/begin", data={"pool": run_name, "judge": "Anna"}).text


def search(browser: TestClient, run_name: str) -> str:
    return browser.post("/search", data={"q": "lamps", "left": "", "right": "+exp=lexical_only"}).text


@pytest.mark.parametrize("page", [judging, search])
def test_pictures_of_the_studio_have_its_labels(page, browser: TestClient, run_name: str) -> None:
    found = labels(page(browser, run_name))
    assert len(found) > 4 and shown(IMAGES / f"studio-{page.__name__}.png") == found, "run: make screenshots"
