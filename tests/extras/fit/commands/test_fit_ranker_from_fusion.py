"""`fit ranker` from fusion and `advise` on a small benchmark: refusals; a model kept, used, exported and replayed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import ragbench
from ragbench import Results
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.extras.ship.serving.http import create_app
from ragbench.extras.ship.serving.service import SearchService

QUICK = ["latency.enabled=false", "tracking.enabled=false", "+exp=baseline"]


@pytest.fixture(scope="module")
def options(tmp_path_factory, workplace: Path) -> list[str]:
    """A vault in which what is relevant is what links point to, with 40 questions."""
    folder = tmp_path_factory.mktemp("ranker")
    notes = folder / "notes"
    notes.mkdir()
    rows = ["text,relevant,split,group"]
    for number in range(40):
        word = f"gadget{chr(97 + number // 26)}{chr(97 + number % 26)}"
        # The copy repeats the word, so words alone prefer it; the original is linked.
        (notes / f"{word}-copy.md").write_text(f"# Old {word}\n\n{word} {word} {word} stays.\n")
        (notes / f"{word}-page.md").write_text(f"# About {word}\n\nEverything on {word} stands here, at length.\n")
        (notes / f"index-{word}.md").write_text(f"# Index {number}\n\nSee [[{word}-page]].\n")
        rows.append(f"{word},{word}-page.md,{'test' if number % 4 == 0 else 'train'},{number}")
    (folder / "queries.csv").write_text("\n".join(rows) + "\n")
    return [
        f"paths.results={folder / 'results'}",
        f"paths.cache={workplace / 'cache'}",
        "data=vault",
        f"data.corpus={notes}",
        f"data.queries={folder / 'queries.csv'}",
        "dense=null",
    ]


@pytest.mark.slow
def test_fit_ranker_learned_order_is_kept_used_exported_and_replayed(
    capsys, options, conf: Path, tmp_path: Path
) -> None:
    words = [*QUICK, *options]
    assert cli.main(["fit", "ranker", "--rounds", "20", "--write", "mine", "--json", *words]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["topics"] == 30
    assert printed["held_out"]["difference"] > 0.1
    assert printed["test"]["n"] == 10 and printed["test"]["difference"] > 0.1
    assert printed["importance"]
    stage = dict(composition.compose([*words, "ranker=mine"]).pipeline)["ranker"]
    assert "decision trees" in stage.describe()

    assert cli.main(["run", "-m", "ranker=off,mine", "split=test", "--json", "--quiet", *words]) == 0
    ran = json.loads(capsys.readouterr().out)
    means = {row["arm"]: row["nDCG@10"] for row in ran["summary"]}
    (learned,) = [value for arm, value in means.items() if "mine" in arm]
    assert learned == pytest.approx(printed["test"]["mean_candidate"])

    bundle = tmp_path / "bundle"
    arm = next(name for name in means if "mine" in name)
    assert cli.main(["export", ran["folder"], "--arm", arm, "--out", str(bundle), "--force", "--quiet"]) == 0
    capsys.readouterr()
    assert cli.main(["verify", str(bundle)]) == 0
    served_as_in_the_run(bundle, Path(ran["folder"]) / "arms")


def served_as_in_the_run(bundle: Path, arms: Path) -> None:
    """Over HTTP every query gets the documents of the run with ranker=mine, which are not those without it."""
    measured = Results.load(arms.parent)
    (mine,), (other,) = ([arm for arm in measured.arms if word in arm] for word in ("mine", "off"))
    run, without = measured.run(mine), measured.run(other)
    service = SearchService(bundle)
    with TestClient(create_app(service), base_url="http://localhost:8000") as client:
        for golden in ragbench.load(bundle).golden():
            answer = client.post("/search", json={"query": golden.query.text, "top_n": 100}).json()["hits"]
            assert [hit["chunk_id"] for hit in answer[: len(golden.ids)]] == list(golden.ids)
            docnos = list(dict.fromkeys(hit["docno"] for hit in answer))
            assert docnos == [docno for docno, _ in run[golden.query.qid]][: len(docnos)]
    service.close()
    assert any([d for d, _ in run[qid]] != [d for d, _ in without[qid]] for qid in run)


def test_fit_ranker_refuses_wrong_options_and_few_queries(capsys, options) -> None:
    def refused(*words: str) -> str:
        assert cli.main(["fit", "ranker", "--quiet", *words, *QUICK, *options]) == 2
        error = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("warning")]
        assert len(error) == 1
        return error[0]

    assert "--write must be a name of letters, digits and hyphens other than on, off" in refused("--write", "on")
    assert "--rounds must be at least 1, got 0" in refused("--rounds", "0")


def test_advice_names_levers_with_commands(capsys, options) -> None:
    assert cli.main(["run", *QUICK, *options, "--quiet", "name=plain"]) == 0
    capsys.readouterr()
    (folder,) = map(str, (Path(options[0].partition("=")[2]) / "runs").glob("*-plain-*"))
    assert cli.main(["advise", folder]) == 0
    printed = capsys.readouterr().out
    assert "--arm as_is= --arm changed=" in printed and "+exp" not in printed
    assert len(printed.splitlines()) <= 30
    assert cli.main(["advise", folder, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["arm"] == "plain"
    assert cli.main(["advise", folder, "--arm", "none"]) == 2
    assert "has no arm 'none'" in capsys.readouterr().err
    assert cli.main(["diagnose", folder]) == 0
    printed = capsys.readouterr().out
    assert "Relevant documents by outcome" in printed
    assert max(map(len, printed.splitlines())) <= 80


def test_advice_names_ranker_for_buried_documents(capsys, options, tmp_path: Path) -> None:
    # Twelve more copies of every page push the original below the first ten, where only ranking can recover it.
    notes, more = Path(options[3].partition("=")[2]), tmp_path / "notes"
    shutil.copytree(notes, more)
    for copy in notes.glob("*-copy.md"):
        for number in range(12):
            shutil.copy(copy, more / f"{copy.stem}-{number}.md")
    options = [f"paths.results={tmp_path / 'results'}", *options[1:3], f"data.corpus={more}", *options[4:]]
    assert cli.main(["run", *QUICK, *options, "--quiet", "name=buried"]) == 0
    capsys.readouterr()
    (folder,) = map(str, (tmp_path / "results" / "runs").glob("*-buried-*"))
    assert cli.main(["advise", folder]) == 0
    printed = capsys.readouterr().out
    assert "ragbench fit ranker " in printed and "+exp" not in printed
    assert len(printed.splitlines()) <= 30
