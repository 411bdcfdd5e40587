"""One search: order and journal; the searched function is written here, so that its best is known."""

from pathlib import Path

import pytest

from ragbench.base.types import ResultsError
from ragbench.config import composition
from ragbench.config.overrides import word
from ragbench.config.settings import Settings
from ragbench.extras.fit.tuning import study
from ragbench.extras.fit.tuning.space import Space, TuneParameter, spec_of
from ragbench.extras.fit.tuning.study import Rules, StudySpec, Trial

PARAMETERS = (
    TuneParameter("s.x", low=0.0, high=1.0),
    TuneParameter("s.y", low=0.0, high=1.0),
    TuneParameter("s.depth", choices=(5, 10, 20)),
)
BASE = Settings("base", {"s": {"x": 0.5, "y": 0.5, "depth": 10}})
SPACE = Space(PARAMETERS, {"": BASE}, {"": frozenset(parameter.key for parameter in PARAMETERS)})


def values(tried):
    """One for x = 0.8; a little is lost in every other x; deeper is better; y has no say. Query b counts twice."""
    reached = 1 - abs(tried["s.x"] - 0.8) - (20 - tried["s.depth"]) / 100
    return {"a": reached, "b": reached, "c": 0.0}


def rules() -> Rules:
    return Rules(SPACE, "nDCG@10", 13)


def searched(path: Path, made: Rules, n: int, stop: int | None = None, qids=frozenset({"a", "b"})) -> list[Trial]:
    search = StudySpec("all", qids, n)
    for trials in (stop, n):
        if trials is not None:
            opened = study.open_study(study.open_storage(path), search, made)
            study.optimise([study.Search(opened, StudySpec("all", qids, trials), made)], values)
    return study.trials_of(opened, SPACE)


def test_study_best_is_the_first_of_equals() -> None:
    trials = [Trial(0, {}, 0.5), Trial(3, {}, 0.7), Trial(2, {}, 0.7)]
    assert study.best(trials).number == 2


def test_study_begins_with_the_preset_and_finds_better(tmp_path: Path) -> None:
    trials = searched(tmp_path / "journal.log", rules(), 40)
    assert trials[0].values == {"s.x": 0.5, "s.y": 0.5, "s.depth": 10}
    assert trials[0].objective == pytest.approx(0.6)
    best = study.best(trials)
    assert best.objective > 0.85 and abs(best.values["s.x"] - 0.8) < 0.15


def test_study_search_that_stopped_goes_on_as_if_it_had_not(tmp_path: Path) -> None:
    whole = searched(tmp_path / "a.log", rules(), 30)
    parts = searched(tmp_path / "b.log", rules(), 30, stop=13)
    assert [(t.values, t.objective) for t in whole] == [(t.values, t.objective) for t in parts]


def test_study_cut_line_is_taken_off_and_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    searched(path, rules(), 5)
    path.write_bytes(path.read_bytes() + b'{"op_code": 4, "wor')
    assert len(searched(path, rules(), 7)) == 7
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:3], b"nonsense\n", *lines[3:]]))
    with pytest.raises(ResultsError, match="is damaged"):
        study.open_storage(path)


def test_study_other_queries_have_no_say(tmp_path: Path) -> None:
    trials = searched(tmp_path / "journal.log", rules(), 3, qids=frozenset({"c"}))
    assert {trial.objective for trial in trials} == {0.0}


@pytest.mark.parametrize("stopped_at", [1, 20], ids=["in the preset", "in a later trial"])
def test_search_tries_an_interrupted_trial_again(stopped_at: int, tmp_path: Path) -> None:
    """As a kill does: the journal has a trial that was begun and never ended."""
    judged = 0

    def interrupted(tried):
        nonlocal judged
        judged += 1
        if judged == stopped_at:
            raise KeyboardInterrupt
        return values(tried)

    search = StudySpec("all", None, 30)
    opened = study.open_study(study.open_storage(tmp_path / "b.log"), search, rules())
    with pytest.raises(KeyboardInterrupt):
        study.optimise([study.Search(opened, search, rules())], interrupted)
    again = study.open_study(study.open_storage(tmp_path / "b.log"), search, rules())
    study.optimise([study.Search(again, search, rules())], values)
    whole = searched(tmp_path / "a.log", rules(), 30, qids=None)
    assert [(t.values, t.objective) for t in study.trials_of(again, SPACE)] == [(t.values, t.objective) for t in whole]


@pytest.mark.parametrize("start", ["name=größer", "cut.top_n=200 fuse.k=20", "data.corpus='my notes'", 'name="a, b"'])
def test_study_list_of_texts_arrives_as_it_was_given(start: str) -> None:
    assert spec_of(composition.compose([word("tune.starts", ["p6=on", start])])).starts == ("p6=on", start)
