"""`ragbench tune` as a person calls it, with a real MLflow store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench.commands import cli

# MLflow and the libraries below it warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")

VAULT = Path(__file__).parents[3] / "data" / "phases"
ROWS = """text,relevant,split,type
how do programs prove their identity,authentication.md,train,vocabulary
largest file I may send,configuration.md,train,vocabulary
getUserById,api-reference.md,train,code
which compiler do I need,clients.md,train,vocabulary
how long does the cdn copy live,caching.md,train,vocabulary
counters,metrics.md,test,vocabulary
the guide on emptying a queue,queues.md,test,navigational
server says come back later,uploads.md,test,vocabulary
what happens when somebody guesses too many logins,security.md,test,vocabulary
switch traffic between two running versions,deployment.md,test,vocabulary
"""


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("tune")
    (folder / "questions.csv").write_text(ROWS)
    return [
        *("data=vault", f"data.corpus={VAULT}", f"data.queries={folder / 'questions.csv'}"),
        *(f"paths.results={folder / 'results'}", "tune=[p10]", "tune.starts=[]", "tune.folds=2", "latency.queries=2"),
        *("latency.rounds=1", "latency.warmup=0", "latency.cold_start=false", "p10=on", "p10.threshold=0.5"),
    ]


@pytest.fixture(scope="module")
def answer(words: list[str]) -> dict:
    """The answer of a search."""
    import contextlib
    import io

    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = cli.main(["tune", *words, "tune.trials=8", "--json"])
    assert code == 0
    return json.loads(out.getvalue())


def call(capsys: pytest.CaptureFixture[str], *given: str) -> str:
    assert cli.main(list(given)) == 0
    return capsys.readouterr().out


@pytest.mark.slow
def test_tune_prints_its_answer_as_json(answer: dict) -> None:
    assert answer["objective"] == "ndcg_at_10"
    assert answer["trials"] == {"all": 8, "fold 1": 8, "fold 2": 8}
    assert answer["winner"]["ndcg_at_10"] >= answer["preset"]["ndcg_at_10"]
    assert answer["nested"]["gain"]["n"] == 5
    assert answer["test"]["document"]["n"] == 5  # the preset drops nearly everything, so that something is better


@pytest.mark.slow
def test_tune_search_for_people_is_confirmed_and_used_by_other_commands(capsys, words: list[str]) -> None:
    out = call(capsys, "tune", *words, "tune.trials=10", "--arm", "wide=cut.top_n=200 fuse.k=20")
    assert "cut.top_n=200" in out  # one of the places to begin from
    assert "optimism" in out and "Parameters" in out and "Folds" in out
    folder = out.split("test results in ")[1].split("\n")[0]
    assert "tuned" in call(capsys, "compare", folder, *words)
    assert Path(folder, "report.html").is_file()
    assert "report" in call(capsys, "report", folder)
    call(capsys, "export", str(folder), "--arm", "tuned", "--format", "ragdocs", "--out", f"{folder}/x.toml", "--force")
    parent = out.split("MLflow run ")[1].strip()
    assert "tuned" in call(capsys, "compare", parent, *words)


@pytest.mark.slow
def test_mlflow_has_a_parent_with_trials_below_it(answer: dict, words: list[str]) -> None:
    import mlflow

    results = next(word for word in words if word.startswith("paths.results=")).partition("=")[2]
    client = mlflow.MlflowClient(f"sqlite:///{results}/mlflow.db")
    parent = client.get_run(answer["mlflow_run"])
    assert parent.data.tags["ragbench.kind"] == "tuning"
    assert parent.data.metrics["optimism"] == pytest.approx(answer["nested"]["optimism"])
    below = client.search_runs([parent.info.experiment_id], f"tags.mlflow.parentRunId = '{parent.info.run_id}'")
    trials = [run for run in below if run.data.tags["ragbench.kind"] == "trial"]
    assert len(trials) == 8
    assert all(run.info.status == "FINISHED" and "p10.threshold" in run.data.params for run in trials)
    assert {run.data.tags["ragbench.arm"] for run in below if run not in trials} == {"preset", "tuned"}
    assert "search" in {artifact.path for artifact in client.list_artifacts(parent.info.run_id)}


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["tune.trials=0"], "tune.trials must be at least 1, got 0"),
        (["tune.objective=quality"], "tune.objective names 'quality'"),
        (["tune=[p6]"], "tune finds no parameter to vary"),
        (["tune=[speed]"], "tune cannot be 'speed'"),
        (["split=train"], "split=train cannot be tuned"),
        (["tune.folds=9"], "tune.folds=9 needs as many groups"),
    ],
)
def test_tune_refuses_bad_input_in_one_sentence(capsys, words: list[str], more: list[str], message: str) -> None:
    assert cli.main(["tune", *words, *more]) == 2
    error = capsys.readouterr().err
    assert message in error and error.count("ragbench: ") == 1 and "Traceback" not in error
