"""A killed ablation continues and ends with the tables of one that was never disturbed."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ragbench.commands import cli

VAULT = Path(__file__).parents[1] / "data" / "vault"
QUERIES = """qid,text,relevant,type
t1,LNT-301,reference/errors.md,factual
t2,how do lamps know when the sun sets,guides/schedules.md#Dusk and dawn,vocabulary
t3,what happens after too many wrong passwords,guides/authentication.md#Accounts for people;index.md,exploratory
t4,can lantern play music,,no_answer
"""

# Kills itself just before the nth finished file gets its name, so that its draft stays behind half the time.
PROGRAM = """
import os, signal, sys
from pathlib import Path
from ragbench.commands import cli

at, written, replace = int(sys.argv[1]), 0, Path.replace

def counting(self, target):
    global written
    written += "runs" in Path(target).parts
    if written == at:
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)

Path.replace = counting
sys.exit(cli.main(sys.argv[2:]))
"""

# Four arms of ten files after five for the experiment; then summary, verdicts, design and, last, the record.
MOMENTS = {
    "in the first arm": 7,
    "before the second arm is finished": 5 + 2 * 10,
    "between verdicts and record": 5 + 4 * 10 + 3,
}
TABLES = ("per_query.parquet", "top.parquet", "diagnosis.parquet", "run.trec", "sections.trec")


@pytest.fixture(scope="module")
def words(workplace: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The overrides of the ablation, without the folder for its results."""
    queries = tmp_path_factory.mktemp("queries") / "queries.csv"
    queries.write_text(QUERIES)
    return [
        *("+exp=baseline", "design=add_one", "factors=[p4,p8,p12]", "split=all"),
        *("data=vault", f"data.corpus={VAULT}", f"data.queries={queries}"),
        *("latency.enabled=false", "tracking.enabled=false"),
        *(f"paths.index={workplace / 'index'}", f"paths.cache={workplace / 'cache'}"),
    ]


def call(words: list[str], results: Path) -> list[str]:
    return ["ablate", *words, f"paths.results={results}", "--json"]


@pytest.fixture(scope="module")
def undisturbed(words: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = tmp_path_factory.mktemp("undisturbed")
    assert cli.main(call(words, results)) == 0
    (folder,) = (results / "runs").iterdir()
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    files = [folder / name for name in ("summary.csv", "verdicts.csv", "design.txt", "topics.parquet")]
    files += [arm / name for arm in sorted((folder / "arms").iterdir()) for name in TABLES]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.slow
@pytest.mark.parametrize("moment", MOMENTS)
def test_resume_killed_and_resumed_gives_the_same_tables(
    moment: str, words: list[str], undisturbed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = [sys.executable, "-c", PROGRAM, str(MOMENTS[moment]), *call(words, tmp_path)]
    killed = subprocess.run(program, capture_output=True, text=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    (folder,) = (tmp_path / "runs").iterdir()
    assert not (folder / "experiment.json").exists()
    finished = {path: path.stat().st_mtime_ns for path in folder.glob("arms/*/run.trec")}
    finished = {path: at for path, at in finished.items() if (path.parent / "done.json").exists()}
    assert len(finished) == {"in the first arm": 0, "before the second arm is finished": 1}.get(moment, 4)

    assert cli.main(call(words, tmp_path)) == 0
    assert f"continuing the stopped experiment in {folder}" in capsys.readouterr().err
    assert list((tmp_path / "runs").iterdir()) == [folder]
    assert {path: path.stat().st_mtime_ns for path in finished} == finished
    assert contents(folder) == contents(undisturbed)


def test_resume_finished_experiment_is_not_continued(words: list[str], undisturbed: Path, tmp_path: Path) -> None:
    results = shutil.copytree(undisturbed.parents[1], tmp_path / "results")
    assert cli.main(call(words, results)) == 0
    assert len(list((results / "runs").iterdir())) == 2
