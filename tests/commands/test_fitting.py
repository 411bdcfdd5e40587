"""`fit calibration` and what shows the vocabulary, called as a person does."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.commands import cli
from ragbench.config import composition

VAULT = Path(__file__).parent.parent / "data" / "phases"
QUESTIONS = {
    "how do programs prove their identity": "authentication",
    "what happens when somebody guesses too many logins": "security",
    "switch traffic between two running versions": "deployment",
    "largest file I may send": "configuration",
    "getUserById": "api-reference",
    "which compiler do I need": "clients",
    "how long does the cdn copy live": "caching",
    "counters": "metrics",
    "the guide on emptying a queue": "queues",
    "server says come back later": "uploads",
    "can quay play music": "",
    "which colour has the logo": "",
}


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides: a benchmark of questions on the handbook, all for training, and a folder for results."""
    folder = tmp_path_factory.mktemp("fitting")
    rows = [f"{text},{docno and docno + '.md'},train,{_type(text)}" for text, docno in QUESTIONS.items()]
    (folder / "questions.csv").write_text("\n".join(["text,relevant,split,type", *rows]))
    return [
        "data=vault",
        f"data.corpus={VAULT}",
        f"data.queries={folder / 'questions.csv'}",
        f"paths.results={folder / 'results'}",
    ]


def _type(text: str) -> str:
    if not QUESTIONS[text]:
        return "no_answer"
    return "code" if text == "getUserById" else "navigational" if "guide" in text else "vocabulary"


def call(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    code = cli.main(list(words))
    captured = capsys.readouterr()
    assert code == 0, captured.err
    return captured.out


def answer(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    return json.loads(call(capsys, *words, "--json"))


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert cli.main(list(words)) == 2
    error = capsys.readouterr().err
    assert error.count("ragbench: ") == 1 and "Traceback" not in error
    return error


def test_search_and_index_show_the_vocabulary(capsys, workplace) -> None:
    assert "authentication (" in call(capsys, "search", "auth", "--explain", "p1=on", *workplace)
    assert "expanded" not in call(capsys, "search", "auth", "--explain", "p1=on", "p1.threshold=1.0", *workplace)
    (size,) = [row["terms"] for row in answer(capsys, "index", "p1=on", *workplace) if row["kind"] == "vocabulary"]
    assert size > 0


def test_fit_calibration_reports_held_out_quality(capsys, workplace) -> None:
    fitted = answer(capsys, "fit", "calibration", *workplace)
    assert fitted["queries"] == 12 and fitted["held_out"][0]["threshold"] == 0.3
    strict = answer(capsys, "fit", "calibration", "p10=on", "p10.threshold=0.6", *workplace)
    assert strict["held_out"][0]["threshold"] == 0.6
    assert [row["calibration"] for row in fitted["held_out"]] == [
        "configured: calibrate (confidence 0.5 at score 0.035)",
        "isotonic",
    ]
    out = call(capsys, "fit", "calibration", *workplace)
    overrides = out.split("use it with: ")[1].split()
    settings = composition.compose(overrides)
    stage = dict(settings.pipeline)["calibration"]
    assert list(stage.x) == pytest.approx(fitted["calibration"]["x"])


def test_fit_calibration_loses_no_more_than_max_loss(capsys, workplace) -> None:
    fitted = answer(capsys, "fit", "calibration", "--max-loss", "0.1", *workplace)["held_out"][-1]
    assert fitted["calibration"] == "configured: calibrate (confidence 0.5 at score 0.035), fitted to lose 0.1"
    out = call(capsys, "fit", "calibration", "--max-loss", "0.1", *workplace)
    *_, threshold = out.split("use its threshold with the configured calibration: ")[1].split()
    assert threshold == f"p10.threshold={fitted['threshold']:g}"
    assert "--max-loss must be between 0 and 1" in refused(capsys, "fit", "calibration", "--max-loss", "2", *workplace)


def test_fit_calibration_writes_beside_the_project_file(
    capsys, workplace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "ragbench.yaml").write_text("seed: 13\n")
    monkeypatch.chdir(tmp_path / "below")
    assert "use it with: calibration=mine" in call(capsys, "fit", "calibration", "--write", "mine", *workplace)
    kept = tmp_path / "conf" / "calibration" / "mine.yaml"
    assert "on 12 training queries of" in kept.read_text()
    assert not (locations.configuration() / "calibration" / "mine.yaml").exists()
    settings = composition.compose(["calibration=mine", "p10=on"])
    assert "by a curve" in repr(settings.pipeline)
    assert "mine" in call(capsys, "list", "switches")
    assert "is a built-in option" in refused(capsys, "fit", "calibration", "--write", "table", *workplace)
    # A project may come from anywhere: its options name only classes that ragbench fits.
    kept.write_text("_target_: antigravity.Fly\n")
    assert "has the class antigravity.Fly" in refused(capsys, "search", "queue", "calibration=mine")
    monkeypatch.chdir(workplace[-1].partition("=")[2].removesuffix("/results"))
    assert "calibration cannot be 'mine'" in refused(capsys, "search", "queue", "calibration=mine")
    assert "--write must be a name" in refused(capsys, "fit", "calibration", "--write", "../x", *workplace)
    assert "--write must be a name" in refused(capsys, "fit", "calibration", "--write", "on", *workplace)


def test_fit_calibration_refuses_what_cannot_be_fitted(capsys, workplace) -> None:
    assert "calibration is off" in refused(capsys, "fit", "calibration", "calibration=off", *workplace)


def test_search_takes_a_hypothesis(capsys, workplace) -> None:
    text = 'Start the new version beside the old one, and ${move} the "load" balancer\'s traffic: over = now, {x} [y]'
    fitted = answer(capsys, "search", "what next", "--hypothesis", text, "lexical=null", *workplace)
    assert fitted["hits"][0]["docno"] == "deployment"
    assert fitted["notes"] == [f"hypothesis, the one given: {text}"]
    assert "--hypothesis must not be blank" in refused(capsys, "search", "what next", "--hypothesis", " ", *workplace)
