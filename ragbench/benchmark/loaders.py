"""What reads each kind of data: `data=vault` is read by `load_vault`."""

from __future__ import annotations

from collections.abc import Mapping

from ragbench.base import plugins

_HERE, _EXTRA = "ragbench.benchmark", "ragbench.extras.collect.loaders"
ALL = {
    "builtin": f"{_HERE}.load.load_builtin",
    "native": f"{_HERE}.native.load_native",
    "beir": f"{_EXTRA}.beir.load_beir",
    "trec": f"{_EXTRA}.trec.load_trec",
    "ir_datasets": f"{_EXTRA}.irds.load_ir_datasets",
    "vault": f"{_HERE}.vault.load_vault",
}
"""By the name of the kind; the function's parameters are the options of `data`."""
LOADERS: Mapping[str, str] = {
    name: target for name, target in ALL.items() if plugins.is_there(target.rpartition(".")[0])
}
"""Those that are installed: an extra may be missing."""
MEMORY = "memory"
"""The recorded loader of a benchmark that a script built in memory: nothing can read it again."""
