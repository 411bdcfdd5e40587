"""Queries with filters: every arm searches inside them, and hits outside of them are counted as leaks."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from ragbench.config.benchmark import load
from ragbench.evaluation.measures import LEAKS
from ragbench.experiment.run import run
from ragbench.report import screen
from ragbench.results.measurements import Measurements

SEARCH = """import json, sys
wanted = json.loads(sys.argv[2]).get("version") if len(sys.argv) > 2 else None
print(json.dumps([{"path": f"v{version}/lamp.md"} for version in (1, 2) if wanted in (None, str(version))]))
"""


@pytest.fixture
def data(tmp_path: Path) -> list[str]:
    for version in (1, 2):
        page = tmp_path / "notes" / f"v{version}" / "lamp.md"
        page.parent.mkdir(parents=True)
        page.write_text(f"---\nversion: {version}\n---\n# Lamp\n\nTurn the lamp on, in version {version}.\n")
    rows = [{"text": f"turn the lamp {on}", "relevant": "v2/lamp", "filter": {"version": "2"}} for on in ("on", "off")]
    rows.append({"text": "lamp", "relevant": "v1/lamp"})
    (tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "search.py").write_text(SEARCH)
    return ["data=vault", f"data.corpus={tmp_path / 'notes'}", f"data.queries={tmp_path / 'q.jsonl'}", "split=all"]


def measured(settings_of, tmp_path: Path, data: list[str], arms: dict[str, list[str]]) -> Measurements:
    settings = [settings_of(tmp_path / "results", *data, f"name={name}", *more) for name, more in arms.items()]
    return run(settings, load(settings[0].config))


def test_arms_search_inside_the_filter_of_each_query(settings_of, tmp_path: Path, data: list[str]) -> None:
    program = f"{sys.executable} {tmp_path / 'search.py'} {{query}}"
    live = ["live=command", "live.per_second=1000.0", "latency.enabled=false"]
    arms = {
        "ours": ["latency.enabled=false"],
        "sent": [*live, f"live.program={program} {{filter}}"],
        "unsent": [*live, f"live.program={program}"],
    }
    results = measured(settings_of, tmp_path, data, arms)
    found = [[name for name, _ in hits] for hits in results.run("ours").values()]
    assert sorted(found)[-2:] == [["v2/lamp"], ["v2/lamp"]] and len(found[0]) + len(found[1]) + len(found[2]) == 4
    assert {arm: results.values(arm, LEAKS).tolist() for arm in results.arms} == {
        **{"ours": [0.0, 0.0], "sent": [0.0, 0.0], "unsent": [1.0, 1.0]}
    }
    line = "leaks (hits among the first 10 outside the filter of 2 queries): ours 0, sent 0, unsent 2"
    assert " ".join(map(str.strip, screen.leak_lines(results))) == line
