"""A small ablation over a vault with a hostile document, run and reported once for a session."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ragbench.benchmark.benchmark import Benchmark, Topic, best_sections
from ragbench.config import composition
from ragbench.corpus.reader import read_vault
from ragbench.experiment import ablate
from ragbench.experiment.run import run
from ragbench.results import measurements
from ragbench.results.measurements import Measurements

TITLE = "<script>document.title='broken'</script>"
TEXT = (
    "Lamps </script><script>document.title='broken'</script> &amp; `<img src=x onerror=\"document.title='broken'\">` "
    "<!-- \u2028 ]]> {{ 7 * 7 }} https://example.invalid/pixel.gif"
)
QUERY = "lamps <b onmouseover=\"document.title='broken'\">hostile</b> </script>"


@pytest.fixture(scope="session")
def hostile(benchmark_small: Benchmark, vault_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Benchmark:
    """The small vault with a document and a query that try to break out of the page."""
    folder = tmp_path_factory.mktemp("hostile") / "vault"
    shutil.copytree(vault_folder, folder)
    (folder / "hostile.md").write_text(f'---\ntitle: "{TITLE}"\n---\n# {TITLE}\n\n{TEXT}\n')
    sections = {**benchmark_small.section_qrels, "t6": {"index#lantern-handbook": 1}}
    topics = (*benchmark_small.topics, Topic("t6", QUERY, "hostile", "test", need=QUERY))
    return Benchmark("lantern", read_vault(folder).documents, topics, best_sections(sections), sections)


@pytest.fixture(scope="session")
def around(workplace: Path) -> list[str]:
    """Overrides that keep a run small and in the session's folders."""
    return [
        "split=all",
        "tracking.enabled=false",
        "latency.queries=2",
        "latency.rounds=2",
        "latency.warmup=1",
        "latency.cold_start=false",
        f"paths.results={workplace / 'report'}",
        f"paths.index={workplace / 'index'}",
        f"paths.cache={workplace / 'cache'}",
    ]


@pytest.fixture(scope="session")
def ablation(hostile: Benchmark, around: list[str]) -> Measurements:
    """All combinations of p4, p8 and p10, with verdicts, as `ragbench ablate` writes them."""
    base = composition.compose(["+exp=baseline", "design=factorial", "factors=[p4,p8,p10]", *around])
    planned = ablate.plan(base, composition.compose)
    quietly = {"command": "ablate"}
    results = run(planned.settings, hostile, conclude=lambda done: ablate.conclude(planned, done), **quietly)
    return measurements.load(results.folder)


@pytest.fixture(scope="session")
def comparison(hostile: Benchmark, around: list[str]) -> Measurements:
    """Two arms side by side, time not measured, one with a hostile name."""
    first, second = composition.compose(["+exp=baseline", *around]), composition.compose(["+exp=lexical_only", *around])
    named = replace(second, name=TITLE)
    quick = [item.with_values({"latency.enabled": False}) for item in (first, named)]
    return measurements.load(run(quick, hostile).folder)


@pytest.fixture(scope="session")
def alone(hostile: Benchmark, around: list[str]) -> Measurements:
    """One arm on a benchmark without judged sections."""
    documents = Benchmark("plain", hostile.documents, hostile.topics, hostile.document_qrels)
    settings = composition.compose(["+exp=lexical_only", *around])
    quick = settings.with_values({"latency.enabled": False})
    return measurements.load(run([quick], documents).folder)
