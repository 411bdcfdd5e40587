"""A studio over two runs of the small vault, one of them with a hostile document, query and arm."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.benchmark.native import best_sections, write_qrels
from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.experiment.run import run
from ragbench.extras.ship.access import Session
from ragbench.extras.studio.app import Studio, create_app
from ragbench.extras.studio.runs import ArmId
from tests.extras.remote.live.conftest import server  # noqa: F401 -- a fixture

TITLE = "<script>document.title='broken'</script>"
TEXT = "</script><script>document.title='broken'</script> <img src=x onerror=\"document.title='broken'\"> {{ 7 * 7 }}"
QUERY = "lamps <b onmouseover=\"document.title='broken'\">hostile</b> </script>"


@pytest.fixture(scope="session")
def project(benchmark_small: Benchmark, vault_folder: Path, workplace: Path, tmp_path_factory) -> Path:
    """A results folder with two runs over one benchmark and a third over another."""
    place = tmp_path_factory.mktemp("studio")
    vault = place / "vault"
    shutil.copytree(vault_folder, vault)
    (vault / "hostile.md").write_text(f'---\ntitle: "{TITLE}"\n---\n# {TITLE}\n\n{TEXT}\n')
    sections = {**benchmark_small.section_qrels, "t6": {"index#lantern-handbook": 1}}
    topics = (*benchmark_small.topics, Topic("t6", QUERY, "hostile", "test", need=QUERY))
    write_qrels(place / "qrels" / "sections.qrels", sections)
    write_qrels(place / "qrels" / "documents.qrels", best_sections(sections))
    rows = [
        json.dumps({name: getattr(topic, name) for name in ("qid", "text", "type", "split", "need")})
        for topic in topics
    ]
    (place / "queries.jsonl").write_text("\n".join(rows) + "\n")
    around = [
        *("split=all", "tracking.enabled=false", "latency.enabled=false", f"paths.results={place / 'results'}"),
        *(f"paths.index={workplace / 'index'}", f"paths.cache={workplace / 'cache'}", "statistics.draws=500"),
        *(
            "data=vault",
            f"data.corpus={vault}",
            f"data.queries={place / 'queries.jsonl'}",
            f"data.qrels={place / 'qrels'}",
        ),
    ]
    both = [composition.compose(["+exp=baseline", *around]), composition.compose(["+exp=lexical_only", *around])]
    hostile = load(both[0].config)
    run([both[0], replace(both[1], name=TITLE)], hostile)
    run([both[1]], hostile)
    run([both[1]], benchmark_small)
    return place / "results"


@pytest.fixture(scope="session")
def words(project: Path, workplace: Path) -> tuple[str, ...]:
    """Overrides that search and measure the vault of the project, quickly and in the session's folders."""
    place = project.parent
    return (
        *("split=all", "tracking.enabled=false", "latency.enabled=false", f"paths.results={project}"),
        *(f"paths.index={workplace / 'index'}", f"paths.cache={workplace / 'cache'}", "statistics.draws=500"),
        *("data=vault", f"data.corpus={place / 'vault'}", f"data.queries={place / 'queries.jsonl'}"),
        f"data.qrels={place / 'qrels'}",
    )


@pytest.fixture
def studio(project: Path) -> Studio:
    return Studio(project)


def entered(studio: Studio) -> TestClient:
    client = TestClient(create_app(studio), base_url="http://127.0.0.1", raise_server_exceptions=True)
    client.cookies.set(studio.access.cookie, studio.access.token)
    return client


@pytest.fixture
def client(studio: Studio) -> Iterator[TestClient]:
    """A browser that has opened the printed address."""
    with entered(studio) as client:
        yield client


@pytest.fixture
def reader(project: Path) -> Iterator[TestClient]:
    """The same of a read-only studio."""
    with entered(Studio(project, access=Session(read_only=True))) as client:
        yield client


@pytest.fixture
def arms(studio: Studio) -> dict[str, ArmId]:
    """By what they are: base and hostile of one run, alone of another, other of another benchmark."""
    found = {}
    for each in studio.runs.all()[0]:
        if len(each.arms) == 2:
            found |= {"base": each.arms[0].id, "hostile": each.arms[1].id}
        else:
            found["alone" if each.record["topics"] == 6 else "other"] = each.arms[0].id
    return found
