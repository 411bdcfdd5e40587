"""`fit ranker` on top of a shared ranker, which the tool trains: kept, used and exported, or nothing learned."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import ragbench
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.extras.fit import ranker, training
from ragbench.search.ranking import trees
from ragbench.search.stages.rank import Rank
from research import shared_ranker

WORDS = ["exp=baseline", "dense=null", "latency.enabled=false", "tracking.enabled=false"]


def vault(folder: Path, letter: str, topics: int = 36) -> str:
    """A vault in which what is relevant is what links point to."""
    notes = folder / letter / "notes"
    notes.mkdir(parents=True)
    rows = ["text,relevant,split,group"]
    for number in range(topics):
        word = f"gadget{letter}{chr(97 + number // 26)}{chr(97 + number % 26)}"
        (notes / f"{word}-copy.md").write_text(f"# Old {word}\n\n{word} {word} {word} stays.\n")
        (notes / f"{word}-page.md").write_text(f"# About {word}\n\nEverything on {word} stands here, at length.\n")
        (notes / f"index-{word}.md").write_text(f"# Index {number}\n\nSee [[{word}-page]] on {word}.\n")
        rows.append(f"{word},{word}-page.md,{'test' if number % 6 == 0 else 'train'},{number}")
    (folder / letter / "queries.csv").write_text("\n".join(rows) + "\n")
    return f"data=vault data.corpus={letter}/notes data.queries={letter}/queries.csv"


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three collections to learn from, and one that the order has not seen."""
    folder = tmp_path_factory.mktemp("fit")
    lines = [f"- name: {letter}\n  words: {vault(folder, letter)}\n  about: {{licence: MIT}}\n" for letter in "abc"]
    (folder / "sites.yaml").write_text("".join(lines))
    vault(folder, "z")
    return folder


def words_of(workplace: Path, letter: str) -> list[str]:
    data = [
        "data=vault",
        f"data.corpus={workplace / letter / 'notes'}",
        f"data.queries={workplace / letter / 'queries.csv'}",
    ]
    return [*WORDS, *data, f"paths.results={workplace / 'results'}"]


def train_shared(workplace: Path, conf: Path) -> None:
    """Write the ranker `mine`, one without each site, and the sheet; trained once, and copied for each test."""
    kept = workplace / "trained"
    if kept.exists():
        shutil.copytree(kept, conf / "ranker", dirs_exist_ok=True)
        return
    words = [workplace / "sites.yaml", "--rounds", 30, "--write", "mine", "--sheet", workplace / "sheet.md"]
    assert shared_ranker.main([*map(str, words), *WORDS, f"paths.results={workplace / 'results'}"]) == 0
    shutil.copytree(conf / "ranker", kept)


def trees_of(conf: Path, name: str) -> Path:
    (file,) = (conf / "ranker").glob(f"{name}-{'?' * 12}.txt")
    return file


@pytest.mark.slow
def test_fit_ranker_order_of_several_collections_is_kept_used_and_exported(capsys, workplace: Path, conf: Path) -> None:
    train_shared(workplace, conf)
    text = trees_of(conf, "mine").read_text()
    name = trees.named("mine", text)
    assert name in (conf / "ranker" / "mine.yaml").read_text()

    words = words_of(workplace, "z")
    stage = dict(composition.compose([*words, "ranker=mine"]).pipeline)["ranker"]
    assert stage.model == name and stage.name == "mine"
    assert cli.main(["run", "-m", "ranker=off,mine", "name=baseline", "split=all", "--json", "--quiet", *words]) == 0
    ran = json.loads(capsys.readouterr().out)
    (without, learned) = (
        [row["nDCG@10"] for row in ran["summary"] if row["arm"].endswith(option) and row["split"] == "train"]
        for option in ("ranker=off", "ranker=mine")
    )
    assert learned[0] > without[0] + 0.1

    bundle = workplace / "bundle"
    assert (
        cli.main(["export", ran["folder"], "--arm", "baseline ranker=mine", "--out", str(bundle), "--force", "--quiet"])
        == 0
    )
    trees_of(conf, "mine").unlink()
    trees.text_of.cache_clear()
    capsys.readouterr()
    assert cli.main(["verify", str(bundle)]) == 0  # the bundle has the trees themselves
    with ragbench.load(bundle) as loaded:
        assert dict(loaded.pipeline.stages)["ranker"].trees == text
    assert cli.main(["run", "ranker=mine", "--quiet", *words]) == 2
    assert "mine.txt cannot be read" in capsys.readouterr().err


@pytest.mark.slow
def test_fit_ranker_tool_also_writes_orders_without_a_site_and_a_sheet(workplace: Path, conf: Path) -> None:
    train_shared(workplace, conf)
    sheet = workplace / "sheet.md"
    text = trees_of(conf, "mine").read_text()
    assert trees.named("mine", text) in sheet.read_text() and str(workplace) not in sheet.read_text()
    for letter in "abc":
        assert trees_of(conf, f"mine-without-{letter}").read_text() != text
        assert f"Here without {letter}." in (conf / "ranker" / f"mine-without-{letter}.yaml").read_text()


@pytest.mark.slow
def test_fit_ranker_adds_trees_only_if_significant(capsys, workplace: Path, conf: Path) -> None:
    learn = ["fit", "ranker", "--rounds", "30", "--json", "--write", "own"]
    train_shared(workplace, conf)
    capsys.readouterr()
    # On a vault like those that it was learned from there is nothing left to learn.
    assert cli.main([*learn, *words_of(workplace, "a"), "ranker=mine"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["start"] == "the order 'mine'"
    assert report["held_out"]["mean_baseline"] == pytest.approx(1.0)
    assert not report["learned"] and not report["written"] and not (conf / "ranker" / "own.yaml").exists()
    # From fusion there is, and it is kept.
    assert cli.main([*learn, *words_of(workplace, "a"), "ranker=off"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["start"] == "the fused order" and report["learned"] and report["held_out"]["ci_low"] > 0
    assert report["test"]["n"] == 6
    stage = dict(composition.compose([*words_of(workplace, "a"), "ranker=own"]).pipeline)["ranker"]
    assert stage.name == "own"


def test_fit_ranker_kill_while_an_order_is_written_over_another_leaves_the_first(
    conf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = (conf / "ranker" / "questions.txt").read_text()
    training.write_order("mine", Rank(first), "The first.")
    monkeypatch.setattr(training, "write", _killed)
    with pytest.raises(KeyboardInterrupt):
        training.write_order("mine", Rank(first.replace("shrinkage=", "shrinkage=0")), "The second.")
    trees.text_of.cache_clear()
    assert dict(composition.compose([*WORDS, "ranker=mine"]).pipeline)["ranker"].trees == first


def _killed(*given: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.slow
def test_finetuned_ranker_keeps_the_trees_of_its_start(workplace: Path, conf: Path) -> None:
    train_shared(workplace, conf)
    settings = composition.compose([*words_of(workplace, "z"), "ranker=mine"])
    start = settings.pipeline.first(Rank)
    assert start is not None
    from ragbench.config.benchmark import load

    benchmark = load(settings.config)
    spec = ranker.Spec(rounds=5)
    judged = ranker.finetuning_sample(ranker.arm(settings, benchmark), benchmark, "train", start, spec)
    tuned = ranker.finetune(judged, start, spec)
    whole, first = trees.parse(tuned.stage.trees), trees.parse(start.trees)
    assert tuned.stage.prior == start.prior and len(whole) > len(first)
    assert tuned.learned.fused == pytest.approx(ranker.values_with(judged, start))


@pytest.mark.parametrize(
    ("words", "report"),
    [
        (["ranker", "mapper"], "mapper"),
        (["mapper"], "takes one of calibration, ranker as its first word, got mapper"),
        ([], "takes one of calibration, ranker as its first word, got none"),
        (["ranker", "--write", "off"], "--write must be a name"),
    ],
)
def test_fit_ranker_other_words_are_refused(capsys, words: list[str], report: str) -> None:
    assert cli.main(["fit", *words]) == 2
    assert report in capsys.readouterr().err


def test_fit_ranker_ranker_written_in_a_project_is_an_option_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ragbench.yaml").write_text("seed: 13\n")
    shipped = dict(composition.compose(["exp=recommended"]).pipeline)["ranker"]
    monkeypatch.chdir(tmp_path)
    written = training.write_order("mine", shipped, "A copy.")
    assert {path.parent for path in written} == {tmp_path / "conf" / "ranker"}
    assert dict(composition.compose(["exp=recommended", "ranker=mine"]).pipeline)["ranker"].trees == shipped.trees
