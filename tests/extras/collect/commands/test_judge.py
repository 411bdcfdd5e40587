"""`ragbench judge --merge`: only into the collection that was pooled, and never unasked into the built-in one."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.benchmark.judgments import read_judgments
from ragbench.commands import cli
from ragbench.extras.collect.pool import COLUMNS, to_csv

WITHOUT_PATH = [name for name in COLUMNS if name != "path"]  # a pool of an earlier version

VAULT = Path(__file__).parents[3] / "data" / "vault"


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    (tmp_path / "queries.csv").write_text("qid,text\nt1,LNT-301\n")
    places = [f"data.corpus={VAULT}", f"data.queries={tmp_path / 'queries.csv'}", f"data.qrels={tmp_path / 'qrels'}"]
    return ["judge", str(tmp_path / "pool.csv"), "--merge", "data=vault", *places]


def pool(folder: Path, *pairs: tuple[str, str]) -> None:
    rows = [(qid, "query", "need", section, "h", "text", "2", "") for qid, section in pairs]
    (folder / "pool.csv").write_text(to_csv(WITHOUT_PATH, rows))


def test_judge_merges_grades_of_collection(command, tmp_path: Path, capsys) -> None:
    pool(tmp_path, ("t1", "reference/errors#error-codes"))
    assert cli.main(command) == 0
    assert "1 added" in capsys.readouterr().out
    assert read_judgments(tmp_path / "qrels" / "sections.qrels") == {"t1": {"reference/errors#error-codes": 2}}


def test_judge_begins_folder_with_judgments_of_file(tmp_path: Path, capsys) -> None:
    (tmp_path / "queries.csv").write_text("qid,text\nt1,LNT-301\n")
    qrels = tmp_path / "test.tsv"
    qrels.write_text("t1\tindex.md\t1\n")
    places = [f"data.corpus={VAULT}", f"data.queries={tmp_path / 'queries.csv'}", f"data.qrels={qrels}"]
    out = str(tmp_path / "pool.csv")
    (tmp_path / "other.trec").write_text("t1 Q0 reference/errors#error-codes 1 1.0 other\n")
    assert cli.main(["data", "pool", str(tmp_path / "other.trec"), "data=vault", *places, "--out", out]) == 0
    pool(tmp_path, ("t1", "reference/errors#error-codes"))
    assert cli.main(["judge", out, "--merge"]) == 2
    assert "test.tsv is a file, and judgments are merged into a folder: add data.qrels=" in capsys.readouterr().err
    assert cli.main(["judge", out, "--merge", f"data.qrels={tmp_path / 'mine'}"]) == 0
    assert read_judgments(tmp_path / "mine" / "documents.qrels") == {"t1": {"index": 1, "reference/errors": 2}}


@pytest.mark.parametrize("stranger", [("t9", "reference/errors#error-codes"), ("t1", "elsewhere#x"), ("t1", "index#x")])
def test_judge_refuses_grades_of_other_collection(stranger, command, tmp_path: Path, capsys) -> None:
    pool(tmp_path, ("t1", "reference/errors#error-codes"), stranger)
    assert cli.main(command) == 2
    assert f"grades 1 pair whose topic or section is not in this collection ({' '.join(stranger)})" in (
        capsys.readouterr().err
    )
    assert not (tmp_path / "qrels").exists()


@pytest.mark.parametrize("more", [[], ["data=builtin"], ["data=builtin_v2"], ["data=builtin_v21"], ["by its folder"]])
def test_judge_protects_builtin_judgments(more, tmp_path: Path, capsys) -> None:
    builtin = locations.builtin() / "qrels"
    files = sorted(builtin.rglob("*.qrels"))
    before = [path.read_bytes() for path in files]
    pool(tmp_path, ("fleet-01", "fleet/index#fleet"))
    if more == ["by its folder"]:
        more = ["data=native", f"data.corpus={locations.builtin() / 'corpus' / 'v2'}", f"data.qrels={builtin / 'v2'}"]
    assert cli.main(["judge", str(tmp_path / "pool.csv"), "--merge", *more]) == 2
    assert "the benchmark that comes with ragbench is not changed" in capsys.readouterr().err
    assert [path.read_bytes() for path in files] == before
