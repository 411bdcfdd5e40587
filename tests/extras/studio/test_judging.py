"""Judging in the browser."""

from __future__ import annotations

import html
import re
from itertools import pairwise

import pytest
from fastapi.testclient import TestClient

from ragbench.base.types import BenchmarkError
from ragbench.extras.collect.pool import read_pool, to_csv
from ragbench.extras.studio.app import Studio


def fields(page: str) -> dict[str, str]:
    inputs = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in inputs}


def test_pool_is_made_graded_and_taken_back(browser: TestClient, studio: Studio, run_name: str) -> None:
    assert browser.post("/judging/pool", data={"run": run_name, "depth": "10"}).status_code == 200
    page = browser.post("/judging/begin", data={"pool": run_name, "judge": "Anna"}).text
    seen = []
    for act in ("3", "0", "s", "2"):
        sent = fields(page)
        seen.append((sent["qid"], sent["section"]))
        page = browser.post("/judging/grade", data={**sent, "act": act, "note": "so <b>so</b>"}).text
    assert len(set(seen)) == 4
    assert "3 of" in page
    assert "1 skipped" in page
    page = browser.post("/judging/grade", data={"pool": run_name, "judge": "Anna", "act": "u"}).text
    assert (fields(page)["qid"], fields(page)["section"]) == seen[3]
    assert "so &lt;b&gt;so&lt;/b&gt;" in page
    rows = {
        (row["qid"], row["section"]): row["grade"]
        for row in read_pool(studio.root / "studio" / "judges" / run_name / "Anna.csv").rows
        if row["grade"]
    }
    assert rows == {seen[0]: "3", seen[1]: "0", seen[2]: "s"}


def test_grade_of_a_second_click_is_ignored(studio: Studio, run_name: str) -> None:
    judging = studio.judging
    judging.make(run_name, 10)
    judging.begin(run_name, "Anna")
    item = judging.item(run_name, "Anna")
    pair = item.qid, item.section
    for _ in range(2):
        judging.act(run_name, "Anna", pair, "1")
    assert judging.progress(run_name, "Anna").graded == 1


def test_judges_see_neither_arm_nor_rank_in_an_order_of_their_own(
    browser: TestClient, studio: Studio, run_name: str
) -> None:
    judging = studio.judging
    judging.make(run_name, 10)
    orders = {}
    for judge in ("Anna", "Ben", "Anna again"):
        judging.begin(run_name, judge)
        rows = read_pool(studio.root / "studio" / "judges" / run_name / f"{judge}.csv").rows
        orders[judge] = [(row["qid"], row["section"]) for row in rows]
    pool = [
        (row["qid"], row["section"]) for row in read_pool(studio.root / "studio" / "pools" / f"{run_name}.csv").rows
    ]
    assert orders["Anna"] != orders["Ben"] != pool
    assert sorted(orders["Anna"]) == sorted(orders["Ben"]) == sorted(pool)
    topics = [qid for qid, _ in orders["Anna"]]
    assert len([1 for one, two in pairwise(topics) if one != two]) == len(set(topics)) - 1
    page = browser.get("/judging/pair", params={"pool": run_name, "judge": "Anna"}).text
    assert "baseline" not in page.replace(run_name, "")


def test_agreement_is_shown_and_changed_files_are_read_again(
    browser: TestClient, studio: Studio, run_name: str
) -> None:
    judging = studio.judging
    judging.make(run_name, 10)
    for judge in ("Anna", "Ben"):
        judging.begin(run_name, judge)
    for judge in ("Anna", "Ben"):
        while (item := judging.item(run_name, judge)) is not None:
            judging.act(run_name, judge, (item.qid, item.section), "1" if len(item.section) % 2 else "0")
    (agreed,) = judging.agreements(run_name)
    assert agreed.agreement.same == 1.0
    assert agreed.agreement.kappa == pytest.approx(1.0)
    assert "100% the same grade" in browser.get("/judging").text
    path = studio.root / "studio" / "judges" / run_name / "Anna.csv"
    rows = read_pool(path)
    ungraded = ([row[name] if name != "grade" else "" for name in rows.columns] for row in rows.rows)
    path.write_text(to_csv(rows.columns, ungraded))
    assert judging.item(run_name, "Anna") is not None


def test_neighbours_come_from_the_documents_of_the_run(browser: TestClient, studio: Studio, run_name: str) -> None:
    judging = studio.judging
    judging.make(run_name, 100)
    judging.begin(run_name, "Anna")
    around = judging.neighbours(run_name, "guides/schedules#schedules/dusk-and-dawn")
    assert around.before.startswith("#")
    while (item := judging.item(run_name, "Anna")) is not None:
        judging.act(run_name, "Anna", (item.qid, item.section), "0")
    assert "All graded" in browser.get("/judging/pair", params={"pool": run_name, "judge": "Anna"}).text


@pytest.mark.parametrize("judge", ["../x", "", "a/b", ".hidden", "x" * 41, "a\nb"])
def test_judge_name_and_pool_are_not_paths(studio: Studio, run_name: str, judge: str) -> None:
    studio.judging.make(run_name, 10)
    with pytest.raises(BenchmarkError, match="judge's name"):
        studio.judging.begin(run_name, judge)
    with pytest.raises(BenchmarkError, match="unknown pool"):
        studio.judging.begin("../" + run_name, "Anna")


@pytest.mark.parametrize(
    ("path", "form", "reason"),
    [
        ("/judging/pool", {"run": "RUN", "depth": "0"}, "not complete"),
        ("/judging/pool", {"run": "RUN", "depth": "9" * 5000}, "not complete"),
        ("/judging/pool", {"run": "nothing", "depth": "3"}, "No finished run"),
        ("/judging/pool", {"run": "../runs/RUN", "depth": "3"}, "No finished run"),
        ("/judging/begin", {"pool": "RUN", "judge": "A"}, "Unknown pool"),
        ("/judging/begin", {}, "not complete"),
        ("/judging/grade", {"pool": "RUN", "judge": "A", "act": "1"}, "Unknown pool"),
    ],
)
def test_form_with_bad_values_is_refused(browser: TestClient, run_name: str, path: str, form, reason: str) -> None:
    response = browser.post(path, data={name: value.replace("RUN", run_name) for name, value in form.items()})
    assert response.status_code == 422
    assert reason in html.unescape(response.text)


def test_pages_of_nothing_are_refused(browser: TestClient) -> None:
    assert browser.get("/judging/pair").status_code == 422
    assert browser.get("/judging/pair", params={"pool": "none", "judge": "A"}).status_code == 422
    missing = browser.get("/none")
    assert missing.status_code == 404 and "No such page" in missing.text


def test_start_leads_to_judging(browser: TestClient) -> None:
    assert browser.get("/", follow_redirects=False).headers["location"] == "/judging"
    assert "There is no pool yet" in browser.get("/").text


def test_damaged_run_is_refused(browser: TestClient, studio: Studio, run_name: str) -> None:
    table = next((studio.root / "runs" / run_name).glob("arms/*/sections.trec"))
    table.write_bytes(table.read_bytes()[:-1] + b"x")
    response = browser.post("/judging/pool", data={"run": run_name, "depth": "10"})
    assert response.status_code == 422 and "damaged" in response.text
