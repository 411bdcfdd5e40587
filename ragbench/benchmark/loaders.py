"""What reads each kind of data: `data=vault` is read by `load_vault`."""

from __future__ import annotations

from collections.abc import Mapping

_HERE = "ragbench.benchmark"
LOADERS: Mapping[str, str] = {
    "builtin": f"{_HERE}.load.load_builtin",
    "native": f"{_HERE}.native.load_native",
    "beir": f"{_HERE}.beir.load_beir",
    "trec": f"{_HERE}.trec.load_trec",
    "ir_datasets": f"{_HERE}.irds.load_ir_datasets",
    "vault": f"{_HERE}.vault.load_vault",
    "git": f"{_HERE}.repository.load_git",
}
"""By the name of the kind; the function's parameters are the options of `data`."""
FOLDERS = ("vault", "git")
"""Loaders of folders of files, whose documents people name by path."""
MEMORY = "memory"
"""The recorded loader of a benchmark that a script built in memory: nothing can read it again."""
