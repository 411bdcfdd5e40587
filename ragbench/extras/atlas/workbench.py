"""Measure the changes of the atlas on collections: a run for each collection and group, nothing measured twice."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import console
from ragbench.base.errors import ConfigError, RagbenchError
from ragbench.base.suggestions import did_you_mean
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config import composition
from ragbench.config.arm_builder import Progress, Say
from ragbench.config.benchmark import load
from ragbench.config.settings import Settings
from ragbench.extras.atlas import changes, ingest
from ragbench.extras.atlas.tables import Atlas

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.results.measurements import Measurements

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
        return (f"ranker={self.about['order']}",) if "order" in self.about and changes.has_order(change) else ()


def collections(path: Path) -> list[Collection]:
    """The collections that a YAML file lists by name, each with `data`, optionally kind, questions, source and so on.

    `order` names the order that was learned without the collection, which is measured there instead of `questions`.

    Raises ConfigError for a file of another form.
    """
    found = read_yaml_file(path)
    if not isinstance(found, Mapping) or not found:
        raise ConfigError(f"{path} lists no collections: write a name, and below it data: data=vault data.corpus=...")
    listed = []
    for name, about in found.items():
        if not isinstance(about, Mapping) or not isinstance(about.get("data"), str):
            raise ConfigError(f"{path}: collection '{name}' has no data: write data: data=vault data.corpus=...")
        for key in about:
            if key not in _KNOWN:
                raise ConfigError(f"{path}: collection '{name}' has '{key}'{did_you_mean(str(key), sorted(_KNOWN))}")
        listed.append(Collection(str(name), tuple(str(about["data"]).split()), dict(about)))
    return listed


def measure(
    listed: Sequence[Collection],
    words: Sequence[str] = (),
    groups: Sequence[str] = (),
    progress: Progress | None = None,
    say: Say = console.say,
) -> Atlas:
    """Measure every group of changes on every collection where it is missing; return the tables of what is finished.

    `words` are overrides for all, such as `paths.cache=...` or `execution=ray`. A collection that fails is named, and
    the others are measured. Groups come one after the other over all collections, so that something whole exists early.
    """
    for group in groups:
        if group not in changes.groups():
            raise ConfigError(f"unknown group '{group}'{did_you_mean(group, list(changes.groups()), 'groups')}")
    failed: set[str] = set()
    for group in groups or [each for each in changes.groups() if each != changes.EARLIER]:
        for each in listed:
            if each.name in failed:
                continue
            try:
                _measure(each, group, words, progress, say)
            except RagbenchError as error:
                failed.add(each.name)
                say(f"warning: collection '{each.name}' is excluded: {error}")
    return _tabulate([each for each in listed if each.name not in failed], words)


def _measure(each: Collection, group: str, words: Sequence[str], progress: Progress | None, say: Say) -> None:
    from ragbench.experiment.run import run

    settings = tuple(_settings(each, changes.groups()[group], words))
    benchmark = load(settings[0].config)
    known = {
        name
        for found in _finished(settings[0], benchmark)
        for arm, name in ingest.known_arms(found).items()
        if set(each.added(name)) <= set(found.record["overrides"][arm])
    }
    lacking = tuple(one for one in settings if one.name not in known)
    if not lacking:
        return
    base = settings[0]
    arms = lacking if base in lacking else (base, *lacking)
    say(f"{each.name}: {group}, {len(lacking)} changes on {len(benchmark.topics)} topics")
    run(arms, benchmark, command="atlas", conclude=_no_verdicts, progress=progress, say=say)


def _no_verdicts(found: Measurements) -> None:
    """Effects are pooled over collections: none of them alone is judged."""


def _settings(each: Collection, group: Mapping[str, str], words: Sequence[str]) -> Iterator[Settings]:
    named = {changes.BASE: changes.changes()[changes.BASE], **group}
    shared = [*each.words, *_MEASURING, *words]
    yield from composition.arms({name: (*arm.split(), *each.added(name)) for name, arm in named.items()}, shared)


def _finished(settings: Settings, benchmark: Benchmark) -> list[Measurements]:
    return ingest.load(ingest.runs_of(settings.results, benchmark))


def _tabulate(listed: Sequence[Collection], words: Sequence[str] = ()) -> Atlas:
    """The tables of everything that finished runs have measured on these collections."""
    rows = []
    for each in listed:
        (settings,) = composition.arms({changes.BASE: ()}, [*each.words, *_MEASURING, *words])
        benchmark = load(settings.config)
        values = ingest.values_of(_finished(settings, benchmark))
        if changes.BASE in values and len(values.columns) > 1:
            about = ingest.facts(benchmark, each.about, len(values), each.about.get("questions"))
            rows.append(({**about, "collection": each.name}, values))
    return ingest.tables(rows)
