"""The picture of MLflow in README: `python -m tools.mlflow_screenshot WORK OUT`, or `make screenshot`.

Compares the phases on the training topics in WORK, without times, unless a run is there already.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

from ragbench.results import measurements
from tests.browser import chromium, save

SIZE = (1340, 980)
ARMS = ("baseline", "phase1", "phase2", "phase3", "phase4")
RUN = ["run", "-m", f"exp={','.join(ARMS)}", "split=train", "latency.enabled=false"]


def means(work: Path) -> dict[str, float]:
    """The mean nDCG@10 of each arm of the newest run in WORK."""
    run = measurements.load(max((work / "runs").iterdir()))
    return {arm: float(run.values(arm).mean()) for arm in run.arms}


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
            found = next(filter(None, (re.search(r"newest comparison: (\S+)", line) for line in process.stdout)))
            chrome.get(found[1])
            wait = WebDriverWait(chrome, 120)
            wait.until(lambda driver: "Parameters" in driver.find_element(By.TAG_NAME, "body").text)
            for path in ("//button[@aria-label='Close']", "//button[@aria-label='Toggle sidebar']"):
                for button in chrome.find_elements(By.XPATH, path)[:1]:
                    button.click()
            for title in ("Visualizations", "Parameters"):
                chrome.find_element(By.XPATH, f"//*[normalize-space(text())='{title}']").click()
            wait.until(lambda driver: "ndcg_at_10" in driver.find_element(By.TAG_NAME, "body").text)
            shown = [f"{arm} {mean:.3f}" for arm, mean in means(work).items()]
            assert all(each.split()[-1] in chrome.find_element(By.TAG_NAME, "body").text for each in shown)
            save(chrome.get_screenshot_as_png(), out, shown)
        finally:
            process.terminate()


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
