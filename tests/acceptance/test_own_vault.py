"""A person with a folder of 500 notes and 20 questions in a CSV gets a verdict with two commands."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ragbench.commands import cli

# MLflow and the libraries below it warn of each other.
pytestmark = pytest.mark.filterwarnings("ignore")

PLANTS = ["basil", "clover", "dahlia", "fennel", "garlic", "heather", "iris", "jasmine", "lupin", "mallow"]
PLACES = ["attic", "balcony", "cellar", "courtyard", "greenhouse", "hedge", "kitchen", "meadow", "orchard", "porch"]
CARES = ["cutting", "feeding", "mulching", "potting", "sowing"]
FILLERS = ["early", "again", "with gloves", "before noon", "in dry weather", "twice a year", "after the frost"]


def write_vault(folder: Path) -> None:
    """Notes about caring for plants in places, one for each combination, and questions of which each has one answer."""
    chance = random.Random(7)
    notes = [(plant, actual, care) for plant in PLANTS for actual in PLACES for care in CARES]
    for plant, actual, care in notes:
        others = chance.sample([item for item in PLANTS if item != plant], 2)
        note = folder / "notes" / actual / f"{care} {plant}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(
            f"---\ntags: [{actual}]\n---\n# {care.capitalize()} {plant}\n\nBest done {chance.choice(FILLERS)}, "
            f"in the {actual}.\n\n## See also\n\n{others[0].capitalize()} and {others[1]} want the same.\n",
            encoding="utf-8",
        )
    asked = chance.sample(notes, 20)
    rows = [f"{care} the {plant} in the {actual},{actual}/{care} {plant}.md" for plant, actual, care in asked]
    (folder / "queries.csv").write_text("\n".join(["text,relevant", *rows]) + "\n", encoding="utf-8")


@pytest.mark.slow
def test_vault_two_commands_give_a_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_vault(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert len(list(Path("notes").rglob("*.md"))) == 500
    assert len(Path("queries.csv").read_text(encoding="utf-8").splitlines()) == 21
    own = ["data=vault", "data.corpus=notes", "data.queries=queries.csv", "paths.results=results"]
    quick = ["latency.rounds=1", "latency.cold_start=false", "tracking.enabled=false"]

    assert cli.main(["run", "--wide", "-m", "+exp=lexical_only,baseline", *own, *quick]) == 0
    message = capsys.readouterr()
    # How busy the machine is belongs to the weather.
    assert not [line for line in message.err.splitlines() if "warning" in line and "latency CIs are wider" not in line]
    assert "Effect on nDCG@10" in message.out
    verdicts = ("baseline: adopt. ", "baseline: reject. ", "baseline: inconclusive. ", "baseline: equivalent. ")
    assert len([line for line in message.out.splitlines() if line.startswith(verdicts)]) == 1

    assert cli.main(["report", "paths.results=results"]) == 0
    page = Path(capsys.readouterr().out.removeprefix("report in ").strip())
    assert page.stat().st_size > 10_000
    assert f"report in {page}\n" in message.out
