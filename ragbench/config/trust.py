"""What a file from a third party may not make a command do: the keys that `--trust`, or typing them, is needed for.

A project file or a bundle chooses options and plain values. A value that sends texts, starts a program or imports code
is refused while the configuration is composed, before anything is built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ragbench.base import options
from ragbench.base.options import TARGET
from ragbench.models.resolve import is_remote

SENDS = "sends texts to a server"
EXECUTES = "starts a program"
IMPORTS = "is not a class of ragbench or of an installed extension, so importing it runs code"


def _always(value: Any) -> bool:
    return True


def _is_elsewhere(address: Any) -> bool:
    """Whether a store or an engine is a server, or hidden in an environment variable, and no file."""
    text = str(address)
    return text.startswith("env:") or ("://" in text and not text.startswith(("sqlite://", "file://")))


KEYS: Mapping[str, tuple[str, Callable[[Any], bool]]] = {
    TARGET: (IMPORTS, lambda target: options.named(str(target)) is None),
    "program": (EXECUTES, _always),
    "endpoint": (SENDS, _always),
    "url": (SENDS, _always),
    "execution.address": (SENDS, _always),
    "live.headers": (SENDS, _always),
    "key_variable": (SENDS, _always),
    "token_variable": (SENDS, _always),
    "uri": (SENDS, _is_elsewhere),
    "engine": (SENDS, _is_elsewhere),
    "encoder.name": (SENDS, lambda name: is_remote(str(name))),
    "model": (SENDS, lambda name: is_remote(str(name))),
}
"""By the end of a key, what its value does, and for which values."""


def beyond_plain(config: Mapping[str, Any], path: str = "") -> dict[str, tuple[str, Any]]:
    """By key, what a value of a composed configuration does beyond choosing and computing, and the value."""
    found: dict[str, tuple[str, Any]] = {}
    for name, value in config.items():
        key = f"{path}.{name}".lstrip(".")
        effect, applies = next((KEYS[end] for end in KEYS if f".{key}".endswith(f".{end}")), ("", _always))
        if effect and value not in (None, "", [], (), {}) and applies(value):
            found[key] = effect, value
        elif isinstance(value, Mapping):
            found |= beyond_plain(value, key)
    return found
