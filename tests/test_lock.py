"""What `make run` installs is what the main job needs: exact, checked by digests, and without PyTorch."""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ragbench.base.errors import ModelError
from ragbench.models import torch_models
from tests import lock

# Hides every distribution that the lock lacks, as if only the lock were installed; then runs commands of ragbench.
PROGRAM = """
import importlib.metadata, json, sys
from importlib.machinery import PathFinder

allowed = set(json.loads(sys.argv[1]))
owners = importlib.metadata.packages_distributions()
canonical = lambda name: name.lower().replace("_", "-").replace(".", "-")
hidden = {module for module, found in owners.items() if not set(map(canonical, found)) & allowed}

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

from ragbench.commands import cli

for words in json.loads(sys.argv[2]):
    code = cli.main(words)
    if code:
        sys.exit(f"{words} ended with {code}")
assert "torch" not in sys.modules and "transformers" not in sys.modules
"""
QUICK = [
    "latency.queries=2",
    "latency.rounds=1",
    "latency.warmup=0",
    "latency.cold_start=false",
    "statistics.draws=1000",
]


def test_it_holds_what_the_metadata_says_in_the_versions_of_the_constraints() -> None:
    found, versions = lock.locked(), lock.constraints()
    assert set(found) == lock.needed(), "make it anew: python -m tests.lock > requirements-run.txt"
    assert {name: version for name, (version, _) in found.items()} == {name: versions[name] for name in found}
    assert not {"torch", "transformers", "sentence-transformers", "jupyterlab", "ranx", "pytest"} & set(found)
    assert not any(name.startswith(("nvidia", "triton")) for name in found)


def test_every_file_has_a_digest_and_no_address() -> None:
    for name, (version, hashes) in lock.locked().items():
        assert hashes and all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", each) for each in hashes), name
        assert "+" not in version, f"{name} is a local build"
    text = lock.FILE.read_text(encoding="utf-8")
    assert "://" not in text and "--index" not in text and "--find-links" not in text


def test_the_versions_are_those_that_are_tested_here() -> None:
    here = {name: importlib.metadata.version(name).partition("+")[0] for name in lock.locked()}
    assert here == {name: version for name, (version, _) in lock.locked().items()}


@pytest.mark.filterwarnings("ignore")
def test_a_run_from_notes_to_a_bundle_needs_nothing_else(tmp_path: Path) -> None:
    import json

    shutil.copytree(lock.ROOT / "tests" / "data" / "phases", tmp_path / "notes")
    commands = [
        ["init", "notes", "--yes"],
        ["run", *QUICK],
        ["export", "@1/baseline", "--out", "bundle"],
        ["verify", "bundle", "--no-latency"],
        ["report"],
        ["advise"],
        ["search", "rotate a key"],
    ]
    allowed = json.dumps(sorted([*lock.locked(), "ragbench"]))
    call = [sys.executable, "-c", PROGRAM, allowed, json.dumps(commands)]
    done = subprocess.run(call, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "could not be written" not in done.stderr


def test_a_missing_part_is_one_sentence_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(torch_models, "minor_version", missing)
    with pytest.raises(ModelError, match=r"needs the package torch, .* run pip install 'ragbench\[torch\]'"):
        torch_models.backend()
