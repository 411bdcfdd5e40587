"""`ragbench gate --golden`: any search against a committed file of ranks."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ragbench.base.types import BenchmarkError
from ragbench.commands import cli
from ragbench.extras.remote.golden import Case, is_same, read_cases
from ragbench.extras.remote.golden_gate import judge
from tests.extras.remote.live.conftest import Server
from tests.naming import naming

CASES = [{"query": f"topic {n}", "expected": [f"guide/page{n}.md"]} for n in range(12)]
BATCH = """\
import json, sys
shown = json.loads(sys.argv[1])
for line in sys.stdin:
    asked = json.loads(line)
    number = asked["query"].split()[1]
    pages = ["guide/other.md"] * (number in shown) + [f"guide/page{number}.md"]
    print(json.dumps({"id": asked["id"], "hits": pages[: 1 if number in shown else 10]}))
"""


@pytest.fixture
def golden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "batch.py").write_text(BATCH, "utf-8")
    (tmp_path / "golden.json").write_text(json.dumps(CASES), "utf-8")
    return tmp_path / "golden.json"


def gate(*more: str, lost: int = 0, search: str = "") -> int:
    """The exit code with a program that does not find the first `lost` pages."""
    program = shlex.join([sys.executable, "batch.py", json.dumps([str(n) for n in range(lost)])])
    return cli.main(["gate", "--golden", "golden.json", "--search", search or program, *more])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", '{"version": 2, "cases": [{"Question": "keys", "expected_ids": ["a", "b"]}]}'),
        ("a.json", '{"keys": ["a", "b"]}'),
        ("a.jsonl", '{"q": "keys", "sources": [{"path": "a"}, {"id": "b"}]}\n'),
        ("a.yaml", "- text: keys\n  relevant: [a, b]\n"),
        ("a.csv", "question,url\nkeys,a; b\n"),
        ("a.json", '{"_doc": "x", "suite": {"how": [{"query": "keys", "expected_pages": ["a", "b"], "id": "1"}]}}'),
        ("a.jsonl", '// a comment\n{"question": "keys", "relevantDocIds": ["a", "b"]}\n'),
        ("a.yaml", "cases: {how: [{q: keys, expected: {ids: [a, b]}}]}"),
    ],
)
def test_golden_is_read_in_every_format(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text, "utf-8")
    assert read_cases(tmp_path / name) == ([Case("keys", ("a", "b"))], [])


def test_golden_cases_of_something_else_take_no_part(tmp_path: Path) -> None:
    cases = [{"kind": "value", "key": "k"}, {"query": "/ip", "expected_class": "path"}, {"query": "a", "url": "b"}]
    file = tmp_path / "a.json"
    file.write_text(json.dumps({"queries": cases}), "utf-8")
    assert read_cases(file) == ([Case("a", ("b",))], [f"{file}: case 1", "/ip"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('[{"query": "keys", "answer": 1}]', "a.json: case 1 has the fields query, answer, and a case needs one of"),
        ('[{"path": "keys"}]', "a.json must have a list of objects with query and expected"),
        ('[{"q": "a", "url": "b"}, {"q": "a", "url": "c"}]', "a.json: case 2 has the query 'a' again"),
        ("[]", "a.json has no case with a query and an expected page: a case needs one of"),
        ('[{"q": "a", "expected": []}]', "a.json: case 1 has the fields q, expected, and a case needs one of"),
        ("[1]", "a.json must have a list of objects"),
        ("{", "a.json cannot be read: invalid JSON at line 1"),
    ],
)
def test_golden_that_is_wrong_is_one_sentence(text: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text, "utf-8")
    with pytest.raises(BenchmarkError, check=naming(message)):
        read_cases(tmp_path / "a.json")


@pytest.mark.parametrize("name", ["golden.docx", "golden", "folder.d"])
def test_golden_of_another_kind_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('[{"query": "a", "expected": "b"}]', "utf-8")
    with pytest.raises(BenchmarkError, match=r"must be a \.json, \.jsonl, \.yaml, \.csv or \.tsv file"):
        read_cases(tmp_path / name)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("guide/keys.md", "https://docs.example.org/v2/guide/keys/", True),
        ("guide/keys.md#rotate", "guide/keys", True),
        ("guide/keys.md#rotate", "guide/keys.md#create", False),
        ("keys", "guide/keys", False),
        ("fn:12", "api:12", False),
        ("https://example.org/page?id=1", "https://example.org/page?id=2", False),
    ],
)
def test_golden_pages_match_by_the_end_of_their_path(one: str, other: str, same: bool) -> None:
    assert is_same(one, other) is is_same(other, one) is same


FILTERED = [
    {"query": "keys", "expected": "v2/keys", "filter": {"version": "2"}},
    {"query": "logs", "expected": "v1/logs"},
]
BY_FILTER = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    version = asked.get("filter", {}).get("version", "1")
    print(json.dumps({"id": asked["id"], "hits": [{"path": f"v{version}/{asked['query']}"}]}))
"""


def versions(path: str, parameters: dict[str, str], body: Any) -> dict[str, Any]:
    """Both versions of a page; only those of the filter where `/filtered` gets one."""
    wanted = json.loads(parameters.get("filter", "{}")).get("version") if path == "/filtered" else None
    hits = [{"path": f"v{n}/{parameters['q']}", "metadata": {"version": n}} for n in (1, 2) if wanted in (None, str(n))]
    return {"hits": hits}


def test_golden_sends_filters_and_counts_leaks(
    golden: Path, server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    golden.write_text(json.dumps(FILTERED), "utf-8")
    server.answer = versions
    assert gate("--write-baseline", search=f"{server.url}/filtered?q={{query}}") == 0
    assert [parameters.get("filter") for _, parameters, *_ in server.requests] == ['{"version": "2"}', "{}"]
    assert gate(search=f"{server.url}/filtered?q={{query}}") == 0
    assert "leaks: 0 of 1 hits are outside the filter of 1 query" in capsys.readouterr().out
    unfiltered = f"{server.url}/unfiltered?q={{query}}&v={{filter.version}}"
    assert gate("--json", search=unfiltered) == 1
    assert [parameters.get("v") for _, parameters, *_ in server.requests[-2:]] == ["2", None]
    leaks = json.loads(capsys.readouterr().out)["surfaces"]["search"]["leaks"]
    query = FILTERED[0]["query"]
    assert leaks == {"outside": 1, "known": 2, "queries": 1, "names": {query: [f"v1/{query}"]}}
    assert gate("--markdown", "gate.md", search=unfiltered) == 1
    out = capsys.readouterr().out
    assert f"leaks '{query}': v1/{query} outside the filter; not at the baseline\n" in out
    assert "FAILS 1 query with hits outside the filter, and none at the baseline (--write-baseline accepts)" in out
    assert f"**Leaks**\n\n- `{query}`: `v1/{query}` outside the filter; not at the baseline\n" in (
        golden.with_name("gate.md").read_text("utf-8")
    )
    assert "leaks" not in golden.with_suffix(".baseline.json").read_text("utf-8")
    assert gate("--write-baseline", search=unfiltered) == gate(search=unfiltered) == 0  # it leaked before as well
    assert "outside the filter; the baseline leaks, too" in capsys.readouterr().out
    assert f'"leaks": ["v1/{query}"]' in golden.with_suffix(".baseline.json").read_text("utf-8")


def test_golden_batch_gets_filters(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    golden.write_text(json.dumps(FILTERED), "utf-8")
    golden.with_name("batch.py").write_text(BY_FILTER, "utf-8")
    assert gate("--write-baseline") == gate() == 0
    out = capsys.readouterr().out
    assert "leaks unknown: no hit gives a value that the filter of 1 query names" in out and "R@1          1.000" in out


def test_golden_gate_names_lost_and_won_queries(golden: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate("--write-baseline") == 0
    file = golden.with_suffix(".baseline.json")
    assert '{"query": "topic 0", "ranks": {"guide/page0.md": 1}}' in file.read_text("utf-8")
    assert gate() == 0
    assert "R@10         1.000   1.000   +0.000   0 better, 0 worse: not significant; -0.50 (6 lost) would be" in (
        capsys.readouterr().out
    )
    assert gate(lost=2) == 1
    out = capsys.readouterr().out
    assert "lost  'topic 1': guide/page1.md was at 1, is not in 10; at 1 is now guide/other.md" in out
    assert "FAILS 2 of 12 queries lost that were among the first 5 hits; 0 allowed" in out
    assert "significantly" not in out
    assert gate("--allow-lost", "2", lost=2) == 0
    assert gate("--allow-lost", "2", "--max-drop", "0.1", lost=2) == 1
    assert gate("--allow-lost", "9", lost=7) == 1
    assert "FAILS R@1 drops significantly, by 0.583" in capsys.readouterr().out
    assert gate("--write-baseline", lost=2) == 0
    capsys.readouterr()
    assert gate("--json") == 0
    (surface,) = json.loads(capsys.readouterr().out)["surfaces"].values()
    assert [(moved["query"], moved["before"], moved["now"]) for moved in surface["won"]] == [
        ("topic 0", None, 1),
        ("topic 1", None, 1),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("golden.json", json.dumps([*CASES[1:], {"query": "topic 0", "expected": []}])),
        ("golden.jsonl", "\n".join(map(json.dumps, [{"query": "topic 0", "sources": [{"id": ""}]}, *CASES[1:]]))),
        ("golden.yaml", f"- {{query: topic 0, expected: }}\n- {json.dumps(CASES[1])}\n"),
        ("golden.csv", "query,url\ntopic 0,\ntopic 1,guide/page1.md\n"),
    ],
)
def test_golden_case_that_lost_its_page_takes_no_part(golden: Path, capsys, name: str, text: str) -> None:
    whole = [case for case in CASES if case["query"] in text]
    golden.write_text(json.dumps(whole), "utf-8")
    assert gate("--write-baseline") == 0
    (golden.parent / name).write_text(text, "utf-8")
    kept = ("--golden", name, "--baseline", "golden.baseline.json")
    said = "omitted 'topic 0': it has no query or no expected page, so it takes no part"
    capsys.readouterr()
    assert gate(*kept, "--markdown", "gate.md", lost=1) == 0
    assert capsys.readouterr().out.splitlines()[:2] == [said, f"search: {len(whole) - 1} queries"]
    assert "takes no part**\n\n- `topic 0`" in (golden.parent / "gate.md").read_text()
    assert gate(*kept, "--json") == 0
    assert json.loads(capsys.readouterr().out)["without_page"] == ["topic 0"]
    assert gate("--golden", name, "--write-baseline", "--baseline", "new.json") == 0
    assert said in capsys.readouterr().out and "topic 0" not in (golden.parent / "new.json").read_text()
    assert gate(*kept, lost=2) == 1  # the others are compared
    assert "lost  'topic 1'" in capsys.readouterr().out


def test_golden_gate_writes_markdown(golden: Path) -> None:
    gate("--write-baseline")
    page = golden.with_suffix(".md")
    assert gate("--markdown", str(page), lost=1) == 1
    text = page.read_text("utf-8")
    assert text.startswith("## Search gate fails: 1 query lost\n\n### search\n\n| measure of pages | before | now |")
    assert "- `topic 0`: `guide/page0.md` was at 1, is not in 10; at 1 is now `guide/other.md`\n" in text
    assert "**Fails**: 1 of 12 queries lost that were among the first 5 hits; 0 allowed\n" in text
    assert "`ragbench gate --golden golden.json --search ... --write-baseline`" in text
    assert "Start with the lost queries." in text  # nothing leaks
    assert gate("--markdown", str(page)) == 0
    assert page.read_text("utf-8").startswith("## Search gate passes\n\n### search\n")


def test_golden_gate_without_comparison_never_passes(golden: Path, server: Server, capsys) -> None:
    def refusal(*more: str, search: str = "") -> str:
        assert gate(*more, search=search) == 2
        return capsys.readouterr().err

    assert "the baseline golden.baseline.json cannot be read" in refusal()
    gate("--write-baseline")
    assert "no answer to 12 queries has hits with a name (one is \"{'hits': []}\")" in refusal(
        search=f"{server.url}/search?q={{query}}"
    )
    server.answer = lambda path, parameters, body: {"error": "overloaded"}
    assert "no answer to 12 queries has hits with a name (one is \"{'error'" in refusal(
        search=f"{server.url}/search?q={{query}}"
    )
    assert "golden.baseline.json has 10 hits of a query and the measures need 20" in refusal("--measure", "R@20")
    assert "has no ranks of 'api', only of search" in refusal("--tool", "api")
    assert "prints no line with the id of 12 queries" in refusal(search=f"{sys.executable} -c 'print([1])'")
    assert "must hold {query}" in refusal(search=server.url)
    golden.write_text(json.dumps([*CASES[1:], {"query": "more", "expected": "a"}]), "utf-8")
    assert "has other labels than the golden file for 2 queries, such as 'more'" in refusal()
    golden.with_suffix(".baseline.json").write_text('{"depth": "10", "surfaces": {}}', "utf-8")
    assert "is not a baseline of ragbench gate --golden" in refusal()
    golden.write_text(json.dumps([{"query": "topic 1", "expected": "none.md"}]), "utf-8")
    assert "no query of golden.json has an expected page among 10 hits" in refusal("--write-baseline")


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--confidence", "0"], "--confidence must be above 0.5 and below 1, got 0"),
        (["--allow-lost", "-1"], "--allow-lost must be at least 0, got -1"),
        (["--max-drop", "nan"], "--max-drop must be between 0 and 1"),
        (["--max-drop", "10"], "--max-drop must be between 0 and 1, or null, got 10"),
        (["--margin", "0"], "--margin belongs to a gate of runs: omit it with --golden"),
    ],
)
def test_golden_gate_refuses_limits_that_check_nothing(golden: Path, capsys, words: list[str], reason: str) -> None:
    assert gate(*words) == 2
    assert reason in capsys.readouterr().err


def test_golden_gate_asks_http_and_tools(golden: Path, server: Server, mcp_address: str, capsys) -> None:
    golden.write_text(json.dumps(CASES[7:9]), "utf-8")

    def answer(path: str, parameters: dict[str, str], body: Any) -> Any:
        number = (body["q"] if body else parameters["q"]).split()[1]
        return {
            "found": [{"title": "A", "link": f"https://docs.example.org/guide/page{number}"}] if number < "8" else None
        }

    server.answer = answer
    for more in (["?q={query}"], ["", "--arguments", '{"q": "{query}"}']):
        assert gate("--write-baseline", *more[1:], search=f"{server.url}/search{more[0]}") == 0
        assert '"ranks": {"guide/page8.md": null}' in golden.with_suffix(".baseline.json").read_text("utf-8")
    golden.write_text('{"guides/schedules.md": "guides/schedules.md", "index.md": "index.md"}', "utf-8")
    tools = ["--tool", "search", "--tool", "plain"]
    assert gate("--write-baseline", *tools, search=f"mcp:{mcp_address}") == 0
    assert gate(*tools, search=f"mcp:{mcp_address}") == 0
    out = capsys.readouterr().out
    assert "search: 2 queries" in out
    assert "plain: 2 queries" in out


def test_golden_gate_without_the_package_of_mcp_says_so(golden: Path, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert gate("--write-baseline", search="mcp:no-such-server") == 2
    assert "needs the package mcp: pip install mcp" in capsys.readouterr().err


def test_golden_gate_does_not_count_a_small_shift() -> None:
    before = {"search": {f"q{n}": {"a": 1} for n in range(14)} | {"last": {"a": 9}}}
    now = {"search": {**before["search"], "last": {"a": None}}}
    (outcome,) = judge(before, now, ["RR"], depth=10).values()
    assert [(moved.query, moved.counts) for moved in outcome.lost] == [("last", False)]
    assert outcome.failures == []


def test_golden_program_that_takes_an_argument_needs_a_place_for_it(golden: Path, capsys) -> None:
    search = shlex.join([sys.executable, "-c", "import sys; print(sys.argv[1])"])
    assert cli.main(["gate", "--golden", str(golden), "--search", search, "--write-baseline"]) == 2
    assert "if it takes a query as an argument, add {query} to --search" in capsys.readouterr().err


def test_golden_gate_imports_no_models(golden: Path) -> None:
    heavy = ("pandas", "mlflow", "jnius", "onnxruntime", "faiss", "hydra", "pyarrow")
    search = shlex.join([sys.executable, "batch.py", "[]"])
    words = ["gate", "--golden", "golden.json", "--search", search, "--write-baseline"]
    code = f"import sys\nfrom ragbench.commands import cli\nassert cli.main({words}) == 0\n"
    code += f"print([name for name in {heavy} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_golden_gate_infers_the_field_of_expected_pages(golden: Path, server: Server) -> None:
    server.answer = lambda path, parameters, body: {
        "hits": [{"url": "https://example.org/other", "id": "7"}, {"url": "https://example.org/page", "id": "42"}],
        "facets": [{"name": "a"}] * 3,
        "suggestions": ["pages", "paging"],
    }
    golden.write_text('{"lost": "41", "kept": "42"}', "utf-8")
    assert gate("--write-baseline", search=f"{server.url}/?q={{query}}") == 0
    assert '{"query": "kept", "ranks": {"42": 2}}' in golden.with_suffix(".baseline.json").read_text("utf-8")


def test_golden_page_with_a_new_name_is_not_lost(golden: Path, capsys) -> None:
    """By the rules of `data repair`, from the history of git, without the models that it needs."""

    def git(*words: str) -> None:
        subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b.example", *words], check=True)

    for number in range(3):
        words = " ".join(f"word{number}x{n}" for n in range(60))
        (golden.parent / f"page{number}.md").write_text(f"# Page {number}\n\n{words}.\n", "utf-8")
    git("init", "-q")
    golden.write_text(json.dumps([{"query": f"topic {n}", "expected": f"page{n}.md"} for n in range(3)]), "utf-8")
    program = "import json, pathlib, sys\nfor line in sys.stdin:\n    number = json.loads(line)['query'][-1]\n"
    program += "    hits = [p.name for p in pathlib.Path().glob('*.md') if number in p.read_text()[:12]]\n"
    golden.with_name("batch.py").write_text(
        f"{program}    print(json.dumps({{'id': json.loads(line)['id'], 'hits': hits}}))\n", "utf-8"
    )
    assert gate("--write-baseline") == 0
    git("add", "-A")
    git("commit", "-qm", "pages")
    git("mv", "page0.md", "zero.md")
    git("commit", "-qm", "rename")
    (golden.parent / "page1.md").rename(golden.parent / "one.md")  # not committed
    capsys.readouterr()
    assert gate("--markdown", "gate.txt") == 2
    out = capsys.readouterr().out
    assert "label 'page0.md' is zero.md now (renamed in git)\nlabel 'page1.md' is one.md now (100% of its text" in out
    assert "OLD NAMES 2 of 3 queries lost" in out and "0 better, 0 worse" in out and "lost  '" not in out
    text = golden.with_name("gate.txt").read_text("utf-8")
    assert text.startswith("## Search gate needs new names\n") and "- `page0.md` is zero.md now (renamed" in text
    (golden.parent / "page2.md").unlink()
    assert gate("--json") == 1  # that one is lost
    (surface,) = json.loads(capsys.readouterr().out)["surfaces"].values()
    assert [moved["query"] for moved in surface["lost"]] == ["topic 2"]
    assert [label["files"] for label in surface["labels"]] == [["zero.md"], ["one.md"]]
