"""The environment variables of Librarian (seed 004), as words of the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ragbench.base.types import ConfigError, shown
from ragbench.config import names
from ragbench.config.overrides import key_of


def from_environment(overrides: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The words; if the experiment is a preset of Librarian, those of its environment variables before them (seed 004).

    `CHUNK_SIZE` and `CHUNK_OVERLAP` are in tokens, `CHUNK_STRATEGY` is semantic or fixed, `ENABLE_CHUNKING=false` makes
    one chunk of every document, `EXTRACT_TAGS=false` and `INFER_DOC_TYPE=false` omit tags and inferred types.
    A key among the words wins over its variable. Raises ConfigError for another value.
    """
    if not any(
        key_of(override) == names.EXPERIMENT and override.partition("=")[2].startswith("librarian_")
        for override in overrides
    ):
        return list(overrides)
    values = {}
    for name, (key, valid, description) in _LIBRARIAN.items():
        value = environment.get(name, "").strip().lower()
        if value and not re.fullmatch(valid, value):
            raise ConfigError(f"the environment variable {name} must be {description}, got {shown(environment[name])}")
        if value:
            values[key] = {"1": "true", "0": "false"}.get(value, value) if "true" in valid else value
    if values.pop("enabled", "true") == "false":
        values |= {"chunking": "fixed", "index.chunking.chunk_size": "1000000", "index.chunking.chunk_overlap": "0"}
    if "chunking" in values:
        values["chunking"] = f"librarian_{values['chunking']}"
    typed = {key_of(override) for override in overrides}
    return [*(f"{key}={value}" for key, value in values.items() if key not in typed), *overrides]


_LIBRARIAN = {
    "CHUNK_STRATEGY": ("chunking", "semantic|fixed", "semantic or fixed"),
    "CHUNK_SIZE": ("index.chunking.chunk_size", r"\d{1,7}", "a number of tokens"),
    "CHUNK_OVERLAP": ("index.chunking.chunk_overlap", r"\d{1,7}", "a number of tokens"),
    "ENABLE_CHUNKING": ("enabled", "true|false|1|0", "true or false"),
    "EXTRACT_TAGS": ("index.metadata.tags", "true|false|1|0", "true or false"),
    "INFER_DOC_TYPE": ("index.metadata.infer_doc_type", "true|false|1|0", "true or false"),
}
