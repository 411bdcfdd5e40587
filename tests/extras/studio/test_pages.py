"""The pages over finished runs."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from ragbench.base import processes
from ragbench.evidence.t_statistic import mean
from ragbench.extras.studio.app import Studio, url
from ragbench.extras.studio.runs import Runs
from ragbench.report import screen
from ragbench.results import store
from tests.extras.studio.conftest import entered


def text(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_the_mean_has_the_interval_of_student() -> None:
    found = mean([0.0, 0.25, 0.5, 0.75, 1.0])
    # s / sqrt(n) = 0.3953 / 2.2361 = 0.17678; t(0.975, 4) = 2.7764
    assert (found.mean, found.n) == (0.5, 5)
    assert found.high - 0.5 == pytest.approx(0.5 - found.low)
    assert found.high - 0.5 == pytest.approx(2.7764 * 0.17678, rel=0.01)
    assert mean([]).n == 0


def test_all_arms_of_all_runs_stand_on_the_leaderboard(client: TestClient, arms) -> None:
    page = client.get("/").text
    assert page.count('name="arm"') == 4
    assert "3 runs" in page
    assert "<script>document" not in page


def test_words_and_benchmarks_narrow_the_leaderboard_and_pins_stay(client: TestClient, arms, studio: Studio) -> None:
    other = arms["other"]
    page = client.get(url("/", q=other.run)).text
    assert page.count('name="arm"') == 1
    page = client.get(url("/", ("pin", arms["base"]), q=other.run)).text
    assert page.count('name="arm"') == 2
    digest = studio.runs.find(other)[0].digest
    assert client.get(url("/", benchmark=digest)).text.count('name="arm"') == 1


@pytest.mark.parametrize("sort", ["documents", "passages", "p95", "date", "name", "nonsense"])
def test_it_sorts(client: TestClient, sort: str) -> None:
    assert client.get(url("/", sort=sort)).status_code == 200


def test_verdicts_against_a_base_and_the_reason_where_there_is_none(client: TestClient, arms) -> None:
    page = text(client.get(url("/", base=arms["base"])).text)
    assert "inconclusive" in page or "adopt" in page or "reject" in page
    assert "without: retrieve 100 by vector similarity" in page
    assert "measured 'lantern', the base 'vault'" in page


def test_a_comparison_has_the_verdict_and_the_configuration(client: TestClient, arms, studio: Studio) -> None:
    page = text(client.get(url("/compare", *(("arm", arms[name]) for name in ("base", "alone", "other")))).text)
    assert "Not comparable." in page
    assert "Quality " in page
    assert "dense._target_" in page


def test_the_same_arm_of_two_runs_is_equivalent_to_itself_or_open(arms, studio: Studio) -> None:
    from ragbench.extras.studio import leaderboard

    (judged,) = leaderboard.judge(studio.runs, arms["hostile"], [arms["alone"]])
    assert judged.levels["document"].comparison.difference == 0.0


def test_queries_by_effect_with_hits_marked_words_and_losses(client: TestClient, arms) -> None:
    page = client.get(url("/queries", left=arms["base"], right=arms["hostile"], qid="t2")).text
    assert "<mark>" in page
    assert "Where relevant sections were lost" in page
    assert 'data-key="j"' in page or 'data-key="k"' in page
    assert "<b onmouseover" not in page
    assert "<script>document" not in page


def test_topics_come_by_loss_gain_or_id(studio: Studio, arms) -> None:
    from ragbench.extras.studio import queries

    sides = [(studio.runs.results(arms[name].run), arms[name].arm) for name in ("base", "hostile")]
    losses = [topic.effect for topic in queries.topics(*sides, "nDCG@10", sort="loss") if topic.effect == topic.effect]
    gains = [topic.effect for topic in queries.topics(*sides, "nDCG@10", sort="gain") if topic.effect == topic.effect]
    assert losses == sorted(losses)
    assert gains == sorted(gains, reverse=True)
    assert [topic.qid for topic in queries.topics(*sides, "nDCG@10", sort="qid")] == ["t1", "t2", "t3", "t4", "t6"]
    assert [topic.qid for topic in queries.topics(*sides, "nDCG@10", kind="code")] == ["t3"]
    assert [topic.qid for topic in queries.topics(*sides, "nDCG@10", search_words="wrong PASS")] == ["t4"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/queries", "names no arm"),
        ("/queries?left=a/b&right=a/b", "no finished run"),
        ("/compare?arm=a/b", "at least two arms"),
        ("/runs/..%2F..", ""),
        ("/runs/nothing", "no finished run"),
        ("/runs/nothing/report", "no finished run"),
        ("/?base=nonsense", "names no arm"),
        ("/none", "no such page"),
    ],
)
def test_what_cannot_be_shown_is_one_sentence(client: TestClient, path: str, said: str) -> None:
    answer = client.get(path)
    assert 400 <= answer.status_code < 500
    assert said.lower() in text(answer.text).lower()


def test_runs_of_other_data_have_no_queries_in_common(client: TestClient, arms) -> None:
    answer = client.get(url("/queries", left=arms["base"], right=arms["other"]))
    assert answer.status_code == 422
    assert "cannot be compared" in answer.text


def test_a_damaged_run_is_named_and_its_numbers_are_not_shown(project: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(project, tmp_path / "copy")
    runs = Runs(tmp_path / "copy")
    name = runs.all()[0][0].name
    table = next((tmp_path / "copy" / "runs" / name).glob("arms/*/per_query.parquet"))
    table.write_bytes(table.read_bytes()[:-1] + b"x")
    fresh = Runs(tmp_path / "copy")
    listed, damaged = fresh.all()
    assert name not in {run.name for run in listed}
    assert [name in sentence for sentence in damaged] == [True]


def test_a_run_under_way_is_not_there_yet_and_no_file_stays_open(project: Path, tmp_path: Path) -> None:
    import shutil

    import psutil

    shutil.copytree(project, tmp_path / "copy")
    runs = Runs(tmp_path / "copy")
    newest = runs.all()[0][0].name
    runs.results(newest)
    assert not [each.path for each in psutil.Process().open_files() if str(tmp_path) in each.path]
    (tmp_path / "copy" / "runs" / newest / "experiment.json").unlink()
    assert newest not in {run.name for run in runs.all()[0]}


def test_the_report_of_a_run_opens_in_its_page(client: TestClient, arms) -> None:
    page = client.get(f"/runs/{arms['base'].run}").text
    assert f'src="/runs/{arms["base"].run}/report"' in page
    assert 'sandbox="allow-scripts"' in page


def test_advice_says_what_advise_says_and_where_to_start_it(
    client: TestClient, arms, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screen, "expected_sentences", lambda results: [f"of {results.folder.name}"])
    page = client.get(f"/runs/{arms['base'].run}/advice").text
    assert "add queries" in page
    assert "ragbench topics derive" in page
    assert f"of {arms['base'].run}" in page.split("Predicted effects")[1]
    assert client.get(f"/runs/{arms['base'].run}/advice?arm=none").status_code == 422


def test_every_link_of_the_leaderboard_leads_somewhere(client: TestClient, arms) -> None:
    page = client.get(url("/", ("pin", arms["base"]), base=arms["base"])).text
    for link in sorted(set(re.findall(r'href="(/[^"]*)"', page))):
        assert client.get(html.unescape(link)).status_code == 200, link


def test_an_interrupted_run_is_listed_with_its_finished_arms_and_how_it_goes_on(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    typed = processes.TYPED.set(("ragbench", "run", "-m", "exp=baseline,two words"))
    writing = store.writing(tmp_path, "run", "2-arms", "0123456789", ["first", "second"], None)
    with entered(Studio(tmp_path)) as client:
        with pytest.raises(KeyboardInterrupt), writing as place:
            place.arm("first").finish_arm("key")
            assert f"Under way. {place.path.name}: 1 of 2 arms finished (first); process" in text(client.get("/").text)
            raise KeyboardInterrupt
        processes.TYPED.reset(typed)
        page = text(client.get("/").text)
    assert f"Interrupted. {place.path.name}: 1 of 2 arms finished (first)." in page
    assert "To continue: ragbench run -m 'exp=baseline,two words'" in page
