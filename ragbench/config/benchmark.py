"""The benchmark of a configuration: what `data` reads, with the topics of its `topics` group."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import registry
from ragbench.base.errors import ConfigError
from ragbench.base.fingerprint import plain
from ragbench.benchmark import load as benchmark_load
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config.overrides import section_of, word

if TYPE_CHECKING:
    from ragbench.config.settings import Settings

GIVEN, DERIVED = "given", "derived"
_MARKDOWN = ("builtin", "native", "vault")
"""Loaders whose documents are files of markdown."""
_PATHS = ("corpus", "folder", "queries", "qrels")


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


def recorder(benchmark: Benchmark) -> Callable[[Settings], Settings]:
    """A function that gives settings the data of a benchmark that a script hands over, also among their overrides."""
    from ragbench.config import composition

    source = benchmark.source
    if source is None:
        nodes = {"data": {"loader": benchmark_load.MEMORY, "name": benchmark.name}, "topics": {"kind": GIVEN}}
        overrides = ["data=native", "data.corpus=FOLDER/corpus", "data.qrels=FOLDER/qrels"]  # of `save_benchmark`
    else:
        overrides = _words(source)
        config = composition.compose_alone(overrides).config
        nodes = {key: config[key] for key in ("data", "topics")}

    def record(settings: Settings) -> Settings:
        kept_overrides = [override for override in settings.overrides if section_of(override) not in nodes]
        return replace(settings, config={**settings.config, **nodes}, overrides=(*kept_overrides, *overrides))

    return record


def _words(source: Mapping[str, Any]) -> list[str]:
    """The overrides that read what `source` describes, with absolute paths and without defaults."""
    from ragbench.config import composition, project

    overrides = [f"data={source['data']['loader']}"]
    if "topics" in source or project.find() is not None:
        overrides.append(f"topics={source.get('topics', {}).get('kind', GIVEN)}")
    defaults = composition.compose_alone(overrides).config
    for key, value in ((f"{section}.{key}", value) for section in source for key, value in source[section].items()):
        section, _, name = key.partition(".")
        if name in _PATHS and isinstance(value, (str, Path)) and Path(value).expanduser().exists():
            value = Path(value).expanduser().absolute()
        value = plain(value)
        if name not in ("loader", "kind") and value is not None and value != plain(defaults[section][name]):
            overrides.append(word(key, value))
    return overrides


def documents(data: Mapping[str, Any]) -> Benchmark:
    """The benchmark of `data` without topics: its markdown documents with nothing masked. ConfigError for others."""
    if data.get("loader") not in _MARKDOWN:
        raise ConfigError(
            f"topics=derived needs a folder of markdown files (data={' or '.join(_MARKDOWN)}), "
            f"got data={data.get('loader')}"
        )
    return benchmark_load.load(data, topics=False)
