"""The picture of MLflow in README: `python -m tools.mlflow_screenshot WORK OUT`, or `make screenshot`.

Compares three presets on the training topics in WORK, without times, unless a run is there already.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.browser import chromium, save

SIZE = (1240, 1240)
RUN = ["run", "-m", "exp=baseline,plain_hybrid,recommended", "split=train", "latency.enabled=false"]


def main(work: Path, out: Path) -> None:
    """Write the picture."""
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.wait import WebDriverWait

    ragbench = [sys.executable, "-m", "ragbench"]
    if not (work / "mlflow.db").exists():
        subprocess.run([*ragbench, *RUN, f"paths.results={work}"], check=True)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [*ragbench, "track", "ui", "--port", str(port), f"paths.results={work}"]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process,
        tempfile.TemporaryDirectory() as profile,
        chromium(Path(profile), SIZE[0], SIZE[1] + 139) as chrome,  # without a head, 139 pixels are taken away
    ):
        try:
            assert process.stdout is not None
            page = ""
            for line in process.stdout:
                page = found[1] if (found := re.search(r"newest comparison: (\S+)", line)) else page
                if "Application startup complete" in line:
                    break
            chrome.get(page)
            wait = WebDriverWait(chrome, 120)
            wait.until(lambda driver: "fuse.method" in driver.find_element(By.TAG_NAME, "body").text)
            for path in ("//button[@aria-label='Close']", "//button[@aria-label='Toggle sidebar']"):
                for button in chrome.find_elements(By.XPATH, path)[:1]:
                    button.click()
            for title in ("Visualizations", "Run details"):
                chrome.find_element(By.XPATH, f"//*[normalize-space(text())='{title}']").click()
            for switch in chrome.find_elements(By.CSS_SELECTOR, "[role=switch]")[:2]:  # show differences only
                chrome.execute_script("arguments[0].click()", switch)
            wait.until(lambda driver: "ndcg_at_10" in driver.find_element(By.TAG_NAME, "body").text)
            save(chrome.get_screenshot_as_png(), out)
        finally:
            process.terminate()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
