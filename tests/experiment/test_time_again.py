"""The arms of a finished run timed anew: another run with the same values, and verdicts with the new times."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base.types import ResultsError
from ragbench.commands import cli
from ragbench.config.benchmark import load
from ragbench.experiment.run import run
from ragbench.results import measurements, store
from ragbench.workbench import Experiment
from tests.naming import naming

HANDBOOK = Path(__file__).parents[1] / "data" / "phases"
ROWS = ("how do programs prove their identity,authentication.md", "counters,metrics.md", "copies,backup.md")


@pytest.fixture
def untimed(settings_of, tmp_path: Path) -> measurements.Measurements:
    (tmp_path / "queries.csv").write_text("\n".join(["text,relevant", *ROWS]), encoding="utf-8")
    data = ["data=vault", f"data.corpus={HANDBOOK}", f"data.queries={tmp_path / 'queries.csv'}", "split=all"]
    arms = [
        settings_of(tmp_path / "results", *data, "latency.enabled=false", f"name={name}", *words)
        for name, words in (("both", ()), ("words", ("dense=null",)))
    ]
    return run(arms, load(arms[0].config))


def test_remeasure_latency_quality_is_kept_and_times_are_new(untimed: measurements.Measurements) -> None:
    experiment = Experiment.of_run(untimed.folder)
    again = experiment.keep(experiment.remeasure_latency(untimed.folder, lambda sentence: None))
    assert not len(untimed.latency) and set(again.latency["arm"]) == {"both", "words"}
    assert again.folder != untimed.folder and again.folder.parent == untimed.folder.parent
    assert store.latest(again.folder.parents[1]) == again.folder
    kept = ["arm", "level", "qid", "measure"]
    before, after = (item.per_query.sort_values(kept)["value"].tolist() for item in (untimed, again))
    assert before == after
    assert "latency was not measured" not in again.verdicts["reason"][0]
    assert measurements.load(again.folder).record["comparison"] == untimed.record["comparison"]
    assert (again.folder / "report.html").is_file()


def test_remeasure_latency_data_that_changed_is_refused(untimed: measurements.Measurements, tmp_path: Path) -> None:
    (tmp_path / "queries.csv").write_text("text,relevant\nanother question,metrics.md\n", encoding="utf-8")
    with pytest.raises(ResultsError, check=naming("has changed")):
        Experiment.of_run(untimed.folder).remeasure_latency(untimed.folder)
    assert len(list(untimed.folder.parent.iterdir())) == 1


def test_remeasure_latency_takes_no_arms(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["run", "--remeasure-latency", "@1", "--arm", "a="]) == 2
    assert "remove --arm and -m" in capsys.readouterr().err
