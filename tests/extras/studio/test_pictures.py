"""The picture of the studio on a page of docs/ is of the page as it is now."""

from __future__ import annotations

from pathlib import Path

from fastapi.testclient import TestClient

from tests.browser import shown
from tools.studio_screenshots import labels

IMAGES = Path(__file__).resolve().parents[3] / "docs" / "images"


def test_picture_of_the_studio_has_its_labels(browser: TestClient, run_name: str) -> None:
    browser.post("/judging/pool", data={"run": run_name, "depth": "10"})
    found = labels(browser.post("/judging/begin", data={"pool": run_name, "judge": "Anna"}).text)
    assert len(found) > 4 and shown(IMAGES / "studio-judging.png") == found, "run: make screenshots"
