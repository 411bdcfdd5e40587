"""Chromium for tests: where it is, and how it starts."""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
_SHOWN = "shown"  # the key in the picture
MISSING = "no browser: install chromium and chromium-driver (Debian's packages)"
_OPTIONS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@contextmanager
def chromium(profile: Path, width: int, height: int) -> Iterator[Chrome]:
    """A browser without a window of its own, with what it keeps in `profile`; its console is logged."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = str(BROWSER)
    for option in (*_OPTIONS, f"--window-size={width},{height}", f"--user-data-dir={profile}"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        yield chrome
    finally:
        chrome.quit()


def save(png: bytes, path: Path, shown: Iterable[str]) -> None:
    """A picture of a page with 64 colours, which are enough for it and a third of the bytes.

    `shown` are texts in it, which a test compares with what the page has now.
    """
    from PIL import Image, PngImagePlugin

    texts = PngImagePlugin.PngInfo()
    texts.add_text(_SHOWN, json.dumps(sorted(shown)))
    Image.open(io.BytesIO(png)).convert("RGB").quantize(64).save(path, optimize=True, pnginfo=texts)


def shown(path: Path) -> list[str]:
    """The texts in a picture that `save` wrote."""
    from PIL import Image

    with Image.open(path) as picture:
        return list(json.loads(picture.info[_SHOWN]))
