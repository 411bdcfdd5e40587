"""Measure the changes of the atlas on collections: a run for each collection and group, nothing measured twice."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base.types import ConfigError, RagbenchError, ResultsError, did_you_mean
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.config.settings import Settings
from ragbench.extras.atlas import changes
from ragbench.extras.atlas.tables import Atlas
from ragbench.results import measurements, store
from research.atlas import ingest

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.results.measurements import Measurements

_LOG = logging.getLogger(__name__)

_MEASURING = ("split=all", "latency.enabled=false", "tracking.enabled=false")
_KNOWN = {"data", "order", "questions", "kind", "software", "language", "learned", "source", "licence"} | {
    *("version", "command")
}


@dataclass(frozen=True)
class Collection:
    """A collection to measure: the overrides that read it, and what its documents do not tell (`gather.facts`)."""

    name: str
    words: tuple[str, ...]
    about: Mapping[str, Any]

    def added(self, change: str) -> tuple[str, ...]:
        """The overrides that a change needs here: the order that was learned without these documents, where named."""
        return (f"ranker={self.about['order']}",) if "order" in self.about and changes.has_ranker(change) else ()


def collections(path: Path) -> list[Collection]:
    """The collections that a YAML file lists by name, each with `data`, optionally kind, questions, source and so on.

    `order` names the order that was learned without the collection, which is measured there instead of `questions`.

    Raises ConfigError for a file of another form.
    """
    entries = read_yaml_file(path)
    if not isinstance(entries, Mapping) or not entries:
        raise ConfigError(f"{path} lists no collections: write a name, and below it data: data=vault data.corpus=...")
    listed = []
    for name, facts in entries.items():
        if not isinstance(facts, Mapping) or not isinstance(facts.get("data"), str):
            raise ConfigError(f"{path}: collection '{name}' has no data: write data: data=vault data.corpus=...")
        for key in facts:
            if key not in _KNOWN:
                raise ConfigError(f"{path}: collection '{name}' has '{key}'{did_you_mean(str(key), sorted(_KNOWN))}")
        listed.append(Collection(str(name), tuple(str(facts["data"]).split()), dict(facts)))
    return listed


def measure(
    listed: Sequence[Collection],
    overrides: Sequence[str] = (),
    groups: Sequence[str] = (),
) -> Atlas:
    """Measure every group of changes on every collection where it is missing; return the tables of what is finished.

    `overrides` apply to all, such as `paths.cache=...`. A collection that fails is named, and the
    others are measured. Groups come one after the other over all collections, so that something whole exists early.
    """
    for group in groups:
        if group not in changes.groups():
            raise ConfigError(f"unknown group '{group}'{did_you_mean(group, list(changes.groups()), 'groups')}")
    failed: set[str] = set()
    for group in groups or [group for group in changes.groups() if group != changes.EARLIER]:
        for collection in listed:
            if collection.name in failed:
                continue
            try:
                _measure(collection, group, overrides)
            except RagbenchError as error:
                failed.add(collection.name)
                _LOG.warning(f"collection '{collection.name}' is excluded: {error}")
    return _tabulate([collection for collection in listed if collection.name not in failed], overrides)


def _measure(collection: Collection, group: str, overrides: Sequence[str]) -> None:
    from ragbench.experiment.run import run

    settings = tuple(_settings(collection, changes.groups()[group], overrides))
    benchmark = load(settings[0].config)
    measured = {
        name
        for results in finished(settings[0], benchmark)
        for arm, name in ingest.known_arms(results).items()
        if set(collection.added(name)) <= set(results.record["overrides"][arm])
    }
    missing = tuple(one for one in settings if one.name not in measured)
    if not missing:
        return
    base = settings[0]
    arms = missing if base in missing else (base, *missing)
    _LOG.info(f"{collection.name}: {group}, {len(missing)} changes on {len(benchmark.topics)} topics")
    run(arms, benchmark, command="atlas", conclude=_no_verdicts)


def _no_verdicts(measurements: Measurements) -> None:
    """Effects are pooled over collections: none of them alone is judged."""


def _settings(collection: Collection, group: Mapping[str, str], overrides: Sequence[str]) -> Iterator[Settings]:
    named = {changes.BASE: changes.changes()[changes.BASE], **group}
    shared = [*collection.words, *_MEASURING, *overrides]
    yield from composition.arms({name: (*arm.split(), *collection.added(name)) for name, arm in named.items()}, shared)


def finished(settings: Settings, benchmark: Benchmark) -> list[Measurements]:
    """The finished runs over all topics of a benchmark, the oldest first."""
    runs = []
    for folder in reversed(store.finished_runs(settings.results)):
        try:
            record = store.read(folder)
        except ResultsError:
            continue
        if record["split"] == "all" and record["benchmark"]["digest"] == benchmark.digest:
            runs.append(measurements.load(folder))
    return runs


def _tabulate(listed: Sequence[Collection], overrides: Sequence[str] = ()) -> Atlas:
    """The tables of everything that finished runs have measured on these collections."""
    rows = []
    for collection in listed:
        (settings,) = composition.arms({changes.BASE: ()}, [*collection.words, *_MEASURING, *overrides])
        benchmark = load(settings.config)
        values = ingest.values_of(finished(settings, benchmark))
        if changes.BASE in values and len(values.columns) > 1:
            facts_of_site = ingest.facts(benchmark, collection.about, len(values), collection.about.get("questions"))
            rows.append(({**facts_of_site, "collection": collection.name}, values))
    return ingest.tables(rows)
