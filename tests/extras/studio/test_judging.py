"""Judging in the browser."""

from __future__ import annotations

import html
import re
from itertools import pairwise
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from ragbench.base.errors import BenchmarkError
from ragbench.extras.collect.pool import read_pool, to_csv
from ragbench.extras.studio.app import Studio, create_app, url
from ragbench.extras.studio.runs import ArmId


@pytest.fixture
def desk(project: Path, tmp_path: Path, arms: dict[str, ArmId]):
    """A studio over a copy of the results, and the run that is judged."""
    import shutil

    shutil.copytree(project, tmp_path / "results")
    studio = Studio(tmp_path / "results")
    client = TestClient(create_app(studio), base_url="http://127.0.0.1")
    client.cookies.set(studio.access.cookie, studio.access.token)
    return studio, client, arms["base"].run


def fields(page: str) -> dict[str, str]:
    found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in found}


def test_a_pool_is_made_begun_graded_taken_back_and_merged(desk, tmp_path: Path) -> None:
    studio, client, run = desk
    csrf = {"csrf": studio.access.csrf}
    assert client.post("/judging/pool", data={**csrf, "run": run, "depth": "10"}).status_code == 200
    page = client.post("/judging/begin", data={**csrf, "pool": run, "judge": "Anna"}).text
    seen = []
    for act in ("3", "0", "s", "2"):
        sent = fields(page)
        seen.append((sent["qid"], sent["section"]))
        page = client.post("/judging/grade", data={**sent, "act": act, "note": "so <b>so</b>"}).text
    assert len(set(seen)) == 4
    assert "3 of" in page
    assert "1 skipped" in page
    page = client.post("/judging/grade", data={**csrf, "pool": run, "judge": "Anna", "act": "u"}).text
    assert (fields(page)["qid"], fields(page)["section"]) == seen[3]
    assert "so &lt;b&gt;so&lt;/b&gt;" in page
    rows = {
        (row["qid"], row["section"]): row["grade"]
        for row in read_pool(studio.root / "studio" / "judges" / run / "Anna.csv").rows
        if row["grade"]
    }
    assert rows == {seen[0]: "3", seen[1]: "0", seen[2]: "s"}


def test_a_second_click_grades_nothing(desk) -> None:
    studio, _, run = desk
    judging = studio.judging
    judging.make(run, 10)
    judging.begin(run, "Anna")
    item = judging.item(run, "Anna")
    pair = item.qid, item.section
    for _ in range(2):
        judging.act(run, "Anna", pair, "1")
    assert judging.progress(run, "Anna").graded == 1


def test_arm_and_rank_are_not_shown_and_every_judge_has_an_order(desk) -> None:
    studio, client, run = desk
    judging = studio.judging
    judging.make(run, 10)
    orders = {}
    for judge in ("Anna", "Ben", "Anna again"):
        judging.begin(run, judge)
        rows = read_pool(studio.root / "studio" / "judges" / run / f"{judge}.csv").rows
        orders[judge] = [(row["qid"], row["section"]) for row in rows]
    pool = [(row["qid"], row["section"]) for row in read_pool(studio.root / "studio" / "pools" / f"{run}.csv").rows]
    assert orders["Anna"] != orders["Ben"] != pool
    assert sorted(orders["Anna"]) == sorted(orders["Ben"]) == sorted(pool)
    topics = [qid for qid, _ in orders["Anna"]]
    assert len([1 for one, two in pairwise(topics) if one != two]) == len(set(topics)) - 1
    page = client.get(url("/judging/pair", pool=run, judge="Anna")).text
    assert "baseline" not in page.replace(run, "")


def test_judges_agree_live_and_what_others_wrote_is_read(desk) -> None:
    studio, client, run = desk
    judging = studio.judging
    judging.make(run, 10)
    for judge in ("Anna", "Ben"):
        judging.begin(run, judge)
    for judge in ("Anna", "Ben"):
        while (item := judging.item(run, judge)) is not None:
            judging.act(run, judge, (item.qid, item.section), "1" if len(item.section) % 2 else "0")
    (agreed,) = judging.agreements(run)
    assert agreed.agreement.same == 1.0
    assert agreed.agreement.kappa == pytest.approx(1.0)
    assert "100% the same grade" in client.get("/judging").text
    theirs = studio.root / "studio" / "judges" / run / "Anna.csv"
    rows = read_pool(theirs)
    told = ([row[name] if name != "grade" else "" for name in rows.columns] for row in rows.rows)
    theirs.write_text(to_csv(rows.columns, told))
    assert judging.item(run, "Anna") is not None


def test_neighbours_and_outlook_come_from_the_runs_own_documents(desk) -> None:
    studio, client, run = desk
    judging = studio.judging
    judging.make(run, 100)
    judging.begin(run, "Anna")
    around = judging.neighbours(run, "guides/schedules#schedules/dusk-and-dawn")
    assert around.before.startswith("#")
    outlook = judging.outlook(run, "Anna")
    assert [arm for arm, _, _ in outlook.arms] == [studio.runs.results(run).arms[1]]
    while (item := judging.item(run, "Anna")) is not None:
        judging.act(run, "Anna", (item.qid, item.section), "0")
    outlook = judging.outlook(run, "Anna")
    assert outlook.stop, outlook
    assert "no unjudged hit" in outlook.arms[0][2]
    assert client.get(url("/judging/outlook", pool=run, judge="Anna")).status_code == 200
    assert "All graded" in client.get(url("/judging/pair", pool=run, judge="Anna")).text


@pytest.mark.parametrize("judge", ["../x", "", "a/b", ".hidden", "x" * 41, "a\nb"])
def test_a_judges_name_is_no_path(desk, judge: str) -> None:
    studio, _, run = desk
    studio.judging.make(run, 10)
    with pytest.raises(BenchmarkError, match="judge's name"):
        studio.judging.begin(run, judge)
    with pytest.raises(BenchmarkError, match="unknown pool"):
        studio.judging.begin("../" + run, "Anna")


def test_what_is_wrong_is_a_sentence(desk) -> None:
    studio, client, run = desk
    csrf = {"csrf": studio.access.csrf}
    for path, data, said in (
        ("/judging/pool", {"run": run, "depth": "0"}, "depth must be"),
        ("/judging/pool", {"run": "nothing", "depth": "3"}, "no finished run"),
        ("/judging/begin", {"pool": run}, "unknown pool"),
        ("/judging/begin", {}, "The form has no 'pool'"),
    ):
        answer = client.post(path, data={**csrf, **data, **({"judge": "A"} if "pool" in data else {})})
        assert answer.status_code == 422
        assert said.lower() in html.unescape(answer.text).lower(), path
    assert client.get("/judging/pair").status_code == 422
