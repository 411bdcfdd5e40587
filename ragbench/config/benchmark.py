"""The benchmark of a configuration: what `data` reads, with the topics of its `topics` group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ragbench.base import registry
from ragbench.base.types import ConfigError
from ragbench.benchmark import load as benchmark_load
from ragbench.benchmark.benchmark import Benchmark

GIVEN, DERIVED = "given", "derived"
_MARKDOWN = ("builtin", "native", "vault")
"""Loaders whose documents are files of markdown."""


def load(config: Mapping[str, Any]) -> Benchmark:
    """The benchmark for a configuration with the nodes `data` and optionally `topics`.

    `topics.kind` is `given` (the topics of the data) or `derived`. Raises ConfigError, BenchmarkError or CorpusError
    for settings or data that cannot be used.
    """
    node = dict(config.get("topics") or {})
    kind = node.pop("kind", GIVEN)
    if kind == GIVEN:
        return benchmark_load.load(config["data"])
    if kind != DERIVED:
        raise ConfigError(f"topics.kind must be {GIVEN} or {DERIVED}, got {kind!r}")
    return _load_derived(config["data"], node)


def _load_derived(data: Mapping[str, Any], options: Mapping[str, Any]) -> Benchmark:
    """The documents of `data` with derived topics; `options` are those of `DeriveSpec`."""
    derive = registry.required("hook", "derived_benchmark", "topics=derived")
    benchmark: Benchmark = derive(documents(data), options)
    return benchmark.read_from({"data": dict(data), "topics": {"kind": DERIVED, **options}})


def documents(data: Mapping[str, Any]) -> Benchmark:
    """The benchmark of `data` without topics: its markdown documents with nothing masked. ConfigError for others."""
    if data.get("loader") not in _MARKDOWN:
        raise ConfigError(
            f"topics=derived needs a folder of markdown files (data={' or '.join(_MARKDOWN)}), "
            f"got data={data.get('loader')}"
        )
    return benchmark_load.load(data, topics=False)
