"""A studio over two runs of the small vault, one of them with a hostile document, query and arm."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from ragbench.benchmark.benchmark import Benchmark, Topic, best_sections
from ragbench.benchmark.native import write_qrels
from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.experiment.run import run
from ragbench.extras.studio.app import Studio, create_app
from ragbench.extras.studio.guard import cookie_of
from tests.extras.remote.live.conftest import server  # noqa: F401 -- a fixture

TITLE = "<script>document.title='broken'</script>"
TEXT = "</script><script>document.title='broken'</script> <img src=x onerror=\"document.title='broken'\"> {{ 7 * 7 }}"
QUERY = "lamps <b onmouseover=\"document.title='broken'\">hostile</b> </script>"


@pytest.fixture(scope="session")
def project(benchmark_small: Benchmark, vault_folder: Path, workplace: Path, tmp_path_factory) -> Path:
    """A results folder with two runs over one benchmark and a third over another."""
    folder = tmp_path_factory.mktemp("studio")
    vault = folder / "vault"
    shutil.copytree(vault_folder, vault)
    (vault / "hostile.md").write_text(f'---\ntitle: "{TITLE}"\n---\n# {TITLE}\n\n{TEXT}\n')
    sections = {**benchmark_small.section_qrels, "t6": {"index#lantern-handbook": 1}}
    topics = (*benchmark_small.topics, Topic("t6", QUERY, "hostile", "test", need=QUERY))
    write_qrels(folder / "qrels" / "sections.qrels", sections)
    write_qrels(folder / "qrels" / "documents.qrels", best_sections(sections))
    rows = [
        json.dumps({name: getattr(topic, name) for name in ("qid", "text", "type", "split", "need")})
        for topic in topics
    ]
    (folder / "queries.jsonl").write_text("\n".join(rows) + "\n")
    around = [
        *("split=all", "tracking.enabled=false", "latency.enabled=false", f"paths.results={folder / 'results'}"),
        *(f"paths.index={workplace / 'index'}", f"paths.cache={workplace / 'cache'}", "statistics.draws=500"),
        *(
            "data=vault",
            f"data.corpus={vault}",
            f"data.queries={folder / 'queries.jsonl'}",
            f"data.qrels={folder / 'qrels'}",
        ),
    ]
    both = [composition.compose(["+exp=baseline", *around]), composition.compose(["+exp=lexical_only", *around])]
    hostile = load(both[0].config)
    run([both[0], replace(both[1], name=TITLE)], hostile)
    run([both[1]], hostile)
    run([both[1]], benchmark_small)
    return folder / "results"


@pytest.fixture(scope="session")
def overrides(project: Path, workplace: Path) -> tuple[str, ...]:
    """Overrides that search and measure the vault of the project, quickly and in the session's folders."""
    folder = project.parent
    return (
        *("split=all", "tracking.enabled=false", "latency.enabled=false", f"paths.results={project}"),
        *(f"paths.index={workplace / 'index'}", f"paths.cache={workplace / 'cache'}", "statistics.draws=500"),
        *("data=vault", f"data.corpus={folder / 'vault'}", f"data.queries={folder / 'queries.jsonl'}"),
        f"data.qrels={folder / 'qrels'}",
    )


@pytest.fixture
def studio(project: Path, overrides: tuple[str, ...], tmp_path: Path) -> Studio:
    """A studio over a copy of the results."""
    results = Path(shutil.copytree(project, tmp_path / "results"))
    return Studio(results, (*overrides, f"paths.results={results}"))


@pytest.fixture
def browser(studio: Studio) -> TestClient:
    """A browser that has opened the printed address; it sends the origin of forms as browsers do."""
    client = TestClient(create_app(studio), base_url="http://127.0.0.1", headers={"origin": "http://127.0.0.1"})
    client.cookies.set(cookie_of(studio.token), studio.token)
    return client


@pytest.fixture
def run_name(project: Path) -> str:
    """The run that has two arms."""
    return next(path.name for path in (project / "runs").iterdir() if "2-arms" in path.name)
