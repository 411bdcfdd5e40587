"""Experiments started from the studio."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from ragbench.extras.ship.access import Session
from ragbench.extras.studio.app import Studio, create_app, url
from ragbench.extras.studio.jobs import Job, Jobs, _take_line
from tests.waiting import until


@pytest.fixture
def place(words: tuple[str, ...], tmp_path: Path) -> Iterator[tuple[Studio, TestClient]]:
    results = tmp_path / "results"
    studio = Studio(results, (*words, f"paths.results={results}"))
    with TestClient(create_app(studio), base_url="http://127.0.0.1") as client:
        client.cookies.set(studio.access.cookie, studio.access.token)
        yield studio, client


@pytest.mark.slow
def test_an_ablation_is_shown_started_followed_and_its_report_opens(place) -> None:
    studio, client = place
    asked = {"command": "ablate", "exp": "lexical_only", "words": "design=add_one factors=[p4]"}
    page = html.unescape(client.get(url("/experiments", **asked)).text)
    assert "ragbench ablate" in page
    assert "exp=lexical_only design=add_one 'factors=[p4]'" in page
    form = {"csrf": studio.access.csrf, "command": "ablate", "words": "+exp=lexical_only design=add_one factors=[p4]"}
    answer = client.post("/experiments/start", data=form)
    (job,) = studio.jobs.all()
    assert str(answer.url).endswith(job.id)
    until(lambda: job.over)
    assert job.state == "done", list(job.lines)
    told = [
        json.loads(line[6:])
        for line in client.get(f"/experiments/{job.id}/events").text.splitlines()
        if "data:" in line
    ]
    assert told[-1]["ended"]
    assert told[-1]["tasks"]
    page = client.get(f"/experiments/{job.id}").text
    assert f'src="/runs/{job.run}/report"' in page
    assert client.get(f"/runs/{job.run}/report").status_code == 200


def test_one_runs_one_waits_and_both_can_be_cancelled(place) -> None:
    studio, client = place
    form = {
        "csrf": studio.access.csrf,
        "command": "ablate",
        "words": "+exp=baseline design=add_one factors=[p1,p4,p10]",
    }
    first = client.post("/experiments/start", data=form)
    client.post("/experiments/start", data=form)
    assert "cancel one of them" in client.post("/experiments/start", data=form).text
    two, one = studio.jobs.all()
    assert (one.state, two.state) == ("running", "waiting")
    client.post("/experiments/cancel", data={"csrf": studio.access.csrf, "job": two.id})
    assert two.state == "cancelled"
    client.post("/experiments/cancel", data={"csrf": studio.access.csrf, "job": one.id})
    until(lambda: one.over)
    assert one.state == "cancelled"
    assert one.process.returncode != 0
    assert not list((studio.root / "runs").glob("*/experiment.json"))
    assert first.status_code == 200


@pytest.mark.parametrize(
    ("command", "words", "said"),
    [
        ("ablate", "p6=maybe", "p6"),
        ("ablate", "--help", "not an override"),
        ("serve", "", "only ablate, run, tune"),
        ("run", "foo=1", "foo"),
    ],
)
def test_what_cannot_be_started_is_a_sentence_and_starts_nothing(place, command: str, words: str, said: str) -> None:
    studio, client = place
    assert said in html.unescape(client.get(url("/experiments", command=command, words=words)).text)
    answer = client.post("/experiments/start", data={"csrf": studio.access.csrf, "command": command, "words": words})
    assert answer.status_code == 422
    assert studio.jobs.all() == []


PROGRAM = "live=command 'live.program=[touch,{file}]' live.hits=hits live.text=text"


def test_no_form_starts_a_program_without_the_flag(words: tuple[str, ...], tmp_path: Path) -> None:
    typed = PROGRAM.format(file=tmp_path / "made")
    for commands, status, count in ((False, 422, 0), (True, 200, 1)):
        studio = Studio(tmp_path, words, Session(commands=commands))
        client = TestClient(create_app(studio), base_url="http://127.0.0.1")
        client.cookies.set(studio.access.cookie, studio.access.token)
        for path in ("/experiments", "/experiments/start"):
            said = {"csrf": studio.access.csrf, "command": "run", "words": typed}
            page = client.post(path, data=said)
            if path.endswith("start"):
                assert page.status_code == status
            assert ("--allow-commands" in page.text) is not commands
        assert "not allowed here" in html.unescape(client.get(url("/experiments", command="run", words=typed)).text)
        assert len(studio.jobs.all()) == count
        studio.jobs.close()


def test_progress_is_read_from_lines_and_the_rest_is_said() -> None:
    job = Job(("ragbench", "run"))
    for line in ('{"progress": "searching", "done": 1, "total": 4}', "warning: busy", '{"other": 1}', "", "{broken"):
        _take_line(job, line)
    assert (job.tasks["searching"].done, job.tasks["searching"].total) == (1, 4)
    assert list(job.lines) == ["warning: busy", '{"other": 1}', "{broken"]


def test_nothing_of_a_job_is_left_when_the_studio_ends(words: tuple[str, ...], tmp_path: Path) -> None:
    jobs = Jobs(tmp_path)
    job = jobs.start(["run", *words, f"paths.results={tmp_path}"])
    jobs.close()
    assert job.process.poll() is not None
    until(lambda: job.over, 5)
