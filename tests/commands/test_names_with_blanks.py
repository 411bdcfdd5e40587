"""Documents with blanks and percent signs in their names: links, queries, hits, the report and the studio."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from ragbench.base.document_names import readable
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.extras.studio.app import Studio, create_app
from ragbench.extras.studio.guard import cookie_of

NOTES = {
    "alpha note.md": "# Alpha\n\nSee [beta](sub%20dir/beta%20note.md#usage) and [[gamma note]]. Keys rotate daily.\n",
    "sub dir/beta note.md": "# Beta\n\n## Usage\n\nTokens are stored in a vault.\n",
    "sub dir/gamma note.md": "# Gamma\n\nRequests are counted by minute. See [alpha](../alpha%20note.md).\n",
    "100%25 sure.md": "# Sure\n\nA discount of half the price on every plan.\n",
}
QUERIES = """text,relevant
where are tokens stored,sub dir/beta note.md
how often do keys rotate,alpha note.md
requests by minute,sub%20dir/gamma%20note
discount on plans,100%25 sure.md
"""


def write(notes: Path) -> None:
    """The notes, and beside them the queries."""
    for name, text in NOTES.items():
        (notes / name).parent.mkdir(parents=True, exist_ok=True)
        (notes / name).write_text(text, encoding="utf-8")
    (notes.parent / "q.csv").write_text(QUERIES, encoding="utf-8")


@pytest.mark.slow
def test_names_are_found_linked_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "my notes")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", "my notes", "--queries", "q.csv", "--yes"]) == 0
    assert "no queries" not in capsys.readouterr().out
    benchmark = load(composition.compose([]).config)
    targets = {document.docno: sorted(link.target for link in document.links) for document in benchmark.documents}
    assert targets["alpha%20note"] == ["sub%20dir/beta%20note", "sub%20dir/gamma%20note"]
    assert targets["sub%20dir/gamma%20note"] == ["alpha%20note"]
    quick = ["latency.enabled=false", "tracking.enabled=false", "statistics.draws=1000"]
    assert cli.main(["run", "-m", "exp=lexical_only", "lexical.k1=0.9,1.2", "split=all", *quick]) == 0
    printed = capsys.readouterr().out
    assert "1.000" in printed and "no query changed, but 4 queries are too few" in printed
    (folder,) = (tmp_path / "results" / "runs").iterdir()
    report = (folder / "report.html").read_text(encoding="utf-8")
    assert "sub dir/beta note" in report and '"sub%20dir/beta%20note"' not in report
    assert cli.main(["search", "discount", "exp=lexical_only", "--top", "1"]) == 0
    assert "100% sure" in capsys.readouterr().out
    assert readable("sub%20dir/beta%20note") == "sub dir/beta note"
    studio = Studio(tmp_path / "results")
    client = TestClient(create_app(studio), base_url="http://127.0.0.1", headers={"origin": "http://127.0.0.1"})
    client.cookies.set(cookie_of(studio.token), studio.token)
    page = client.post("/search", data={"q": "tokens", "left": "exp=lexical_only"}).text
    assert 'class="docno">sub dir/beta note<' in page


def test_grades_of_own_notes_go_where_they_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path / "notes")
    monkeypatch.chdir(tmp_path)
    data = ["data=vault", "data.corpus=notes", "data.queries=q.csv", "paths.results=results"]
    words = ["exp=lexical_only", "latency.enabled=false", "tracking.enabled=false"]
    assert cli.main(["run", *data, *words]) == 0
    assert cli.main(["data", "pool", "paths.results=results"]) == 0
    pool = tmp_path / "pool.csv"
    pool.write_text(pool.read_text(encoding="utf-8").replace(",,\n", ",1,\n"), encoding="utf-8")
    capsys.readouterr()
    assert cli.main(["judge", "pool.csv"]) == 0  # everything is graded
    assert "next: ragbench judge pool.csv --merge data.qrels=qrels" in capsys.readouterr().out
    assert cli.main(["judge", "pool.csv", "--merge"]) == 2
    assert "add data.qrels=qrels" in capsys.readouterr().err
    assert cli.main(["judge", "pool.csv", "--merge", "data.qrels=qrels"]) == 0  # the notes are those of the pool
    assert "next: ragbench run data.qrels=qrels" in capsys.readouterr().out
    assert (tmp_path / "qrels" / "sections.qrels").is_file()
