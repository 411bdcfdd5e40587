"""The benchmark of a configuration: what `data` reads, with the topics of its `topics` group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ragbench.base.build import build
from ragbench.base.errors import ConfigError
from ragbench.benchmark import load as benchmark_load
from ragbench.benchmark.benchmark import Benchmark

if TYPE_CHECKING:
    from ragbench.benchmark.topics.derive import MadeTopics

GIVEN, DERIVED = "given", "derived"
MARKDOWN = ("builtin", "native", "vault", "git")
"""Loaders whose documents are files of markdown."""


def load(config: Mapping[str, Any]) -> Benchmark:
    """The benchmark for a configuration with the nodes `data` and perhaps `topics`.

    `topics.kind` is `given` (the topics of the data) or `derived`. Raises ConfigError, BenchmarkError or CorpusError
    for settings or data that cannot be used.
    """
    node = dict(config.get("topics") or {})
    kind = node.pop("kind", GIVEN)
    if kind == GIVEN:
        return benchmark_load.load(config["data"])
    if kind != DERIVED:
        raise ConfigError(f"topics.kind must be {GIVEN} or {DERIVED}, got {kind!r}")
    return load_derived(config["data"], node)


def load_derived(data: Mapping[str, Any], options: Mapping[str, Any]) -> Benchmark:
    """The documents of `data` with derived topics; `options` are those of `DeriveSpec`."""
    from ragbench.benchmark.topics.derive import DeriveSpec, derive

    found = derive(documents(data), build(DeriveSpec, options, "topics"))
    return replace(found, source={"data": dict(data), "topics": {"kind": DERIVED, **options}})


def derivation(config: Mapping[str, Any]) -> tuple[MadeTopics, int]:
    """The derived topics of a configuration with what was dropped, and the number of documents; nothing is masked."""
    from ragbench.benchmark.topics.derive import DeriveSpec, choose

    options = {key: value for key, value in config["topics"].items() if key != "kind"}
    found = documents(config["data"])
    return choose(found.documents, build(DeriveSpec, options, "topics"), found.name), len(found.documents)


def documents(data: Mapping[str, Any]) -> Benchmark:
    """The benchmark of `data` without topics: its markdown documents with nothing masked. ConfigError for others."""
    if data.get("loader") not in MARKDOWN:
        raise ConfigError(
            f"topics=derived needs a folder of markdown files (data={' or '.join(MARKDOWN)}), "
            f"got data={data.get('loader')}"
        )
    return benchmark_load.load(data, topics=False)
