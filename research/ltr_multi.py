"""Learn one order from several judged collections, for collections without judgments.

What it gains is measured on sites that it was not learned from: each site is excluded in turn, together with every
collection that shares its documents.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragbench.base.columns import Columns
from ragbench.base.options import Name, Positive, Validated, build
from ragbench.base.progress import task_ticks
from ragbench.base.types import BenchmarkError, BoundaryError, ConfigError, why_unreadable
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config.benchmark import load
from ragbench.config.composition import compose
from ragbench.config.settings import Settings
from ragbench.evidence.arms import Policy
from ragbench.evidence.statistics import TIE, compare
from ragbench.extras.fit import ranker, training
from ragbench.extras.fit.ranker import Sample, Spec
from ragbench.extras.fit.training import Values
from ragbench.search.ranking import features
from ragbench.search.stages.rank import Rank

SPEC = Spec(prior=3.0, rounds=80, rate=0.05, smallest=20)
"""How the trees of such an order grow."""
MODELS = 2
"""Models, each with its own seed, whose mean is the order."""
MIN_SITES = 3
"""Sites to train on: with each excluded in turn, at least two remain."""
_MIN_SITES_FOR_CI = 4
_PATHS = ("data.corpus", "data.queries", "data.qrels", "data.folder")


@dataclass(frozen=True)
class Collection(Validated):
    """Judged topics to learn from. `words` name their data, as typed after a command; all topics of `split` are read.

    A topic of the collection counts `weight` times. `kind` groups the collections in reports. Collections with the same
    `site` (default: the name) have documents in common, and are excluded together. `about` are facts for the data sheet
    such as source, version and licence.
    """

    name: Name
    words: tuple[str, ...]
    kind: Name = "questions"
    weight: Positive = 1.0
    site: str = ""
    split: str = "all"
    about: Mapping[str, str] = field(default_factory=dict)

    @property
    def site_name(self) -> str:
        """The name of its site."""
        return self.site or self.name


def read(file: Path) -> tuple[Collection, ...]:
    """The collections that a YAML file lists; paths in their words are relative to its folder. ConfigError for others.

    Each entry has the fields of `Collection`; `words` are one text or a list.
    """
    import shlex

    try:
        entries = read_yaml_file(file)
    except (OSError, BoundaryError) as error:
        raise ConfigError(f"{file} cannot be read ({why_unreadable(error)}): name a YAML list of collections") from None
    if not isinstance(entries, list) or not all(isinstance(item, dict) for item in entries):
        raise ConfigError(f"{file} must be a list of collections, each with `name` and `words`")
    collections = []
    for number, entry in enumerate(entries, start=1):
        overrides = entry.get("words", ())
        override_list = shlex.split(overrides) if isinstance(overrides, str) else [str(item) for item in overrides]
        values = entry | {"words": tuple(_absolute(override, file.parent) for override in override_list)}
        collections.append(build(Collection, values, f"{file}: collection {number}"))
    repeated = {
        collection.name for collection in collections if [one.name for one in collections].count(collection.name) > 1
    }
    if repeated:
        raise ConfigError(f"{file} lists '{min(repeated)}' more than once: give each collection its own name")
    _require_sites(collections, str(file))
    return tuple(collections)


def _absolute(override: str, folder: Path) -> str:
    key, equals, value = override.partition("=")
    return f"{key}={(folder / Path(value).expanduser()).resolve()}" if equals and key in _PATHS else override


def _require_sites(collections: Sequence[Collection], location: str) -> None:
    sites = {collection.site_name for collection in collections}
    if len(sites) < MIN_SITES:
        raise BenchmarkError(
            f"{location} has {len(sites)} sites, and a ranker for other sites needs at least {MIN_SITES}: "
            "add collections, or learn from the topics of one with `ragbench fit ranker`"
        )


@dataclass(frozen=True)
class Part:
    """What can be learned from one collection; `documents` counts all of its documents, `digest` is of its data."""

    collection: Collection
    sample: Sample
    documents: int = 0
    digest: str = ""


def part(collection: Collection, settings: Settings, spec: Spec = SPEC) -> Part:
    """What can be learned from a collection in the pipeline of `settings`, which name its data."""
    benchmark = load(settings.config)
    arm = ranker.arm(settings, benchmark)
    states = training.answers(arm, benchmark.select(collection.split))
    judged = ranker.sample(states, arm.index, benchmark, spec.depth, comparable)
    arm.index.close()
    return Part(collection, judged, len(benchmark.documents), benchmark.digest)


def comparable(sources: Sequence[str]) -> tuple[str, ...]:
    """The features of these sources whose values mean the same in every collection, in order.

    Scores, sizes and numbers of links are relative to those of the query's other candidates.
    """
    every = ("fused", *sorted(sources))
    scores = [f"{source}.score" for source in every]
    return (
        *(f"{source}.{name}" for source in every for name in features.BY_SOURCE if name != "score"),
        *features.WORDS,
        *(f"{name}.{features.GAP}" for name in scores),
        *(f"{name}.{features.PERCENTILE}" for name in (*scores, *features.DOCUMENT, *features.AMONG[1:])),
        features.AMONG[0],
        *(name for name in features.QUERY if name != "query.idf"),
    )


@dataclass(frozen=True)
class Order:
    """An order learned from all parts, and nDCG@10 of each part's queries by an order of other sites.

    `unlinked` is the same with all that the order reads of links hidden from it, as in a vault without links.
    `importance` is the share of each feature in the gain of all splits; `without` are the models of the other sites, by
    the site that was excluded.
    """

    model: str
    spec: Spec
    parts: tuple[Part, ...]
    held_out: tuple[Values, ...]
    unlinked: tuple[Values, ...]
    importance: Mapping[str, float]
    without: Mapping[str, str] = field(default_factory=dict)

    @property
    def stage(self) -> Rank:
        """The stage that orders by it."""
        return Rank(self.model, prior=self.spec.prior, depth=self.spec.depth)

    @property
    def comment(self) -> str:
        """From how much it was learned, for the file that keeps it."""
        topics = sum(len(part.sample) for part in self.parts)
        return f"Learned by `python -m research.shared_ranker` from {topics} topics of {len(self.parts)} collections."


def learn(parts: Sequence[Part], spec: Spec = SPEC) -> Order:
    """Learn one order from the queries of all parts, and measure it with each site held out in turn.

    A query counts as its collection's weight says. Raises BenchmarkError for fewer than `MIN_SITES` sites with topics.
    """
    used = [part for part in parts if len(part.sample)]
    _require_sites([part.collection for part in used], "what was given")
    everything = _joined([part.sample for part in used])
    sizes = [len(part.sample) for part in used]
    weights = np.repeat([part.collection.weight for part in used], sizes)
    sites = np.repeat([part.collection.site_name for part in used], sizes)
    names = sorted(set(sites.tolist()))
    held_out, unlinked = np.zeros((2, len(everything)))
    blind = without_links(everything)

    tick = task_ticks("learning an order", len(names) + 1)

    def fit(chosen: NDArray[np.int64]) -> tuple[str, Values]:
        grown = [ranker.grow(everything, chosen, replace(spec, seed=spec.seed + n), weights) for n in range(MODELS)]
        tick(1)
        model = ranker.weighted_sum([(text, 1 / MODELS) for text, _ in grown])
        return model, np.sum([gains for _, gains in grown], axis=0)

    without = {}
    for name in names:
        in_site = (sites == name).nonzero()[0]
        without[name] = model = fit((sites != name).nonzero()[0])[0]
        held_out[in_site] = ranker.values_of(everything, in_site, model, spec.prior)
        unlinked[in_site] = ranker.values_of(blind, in_site, model, spec.prior)
    model, gains = fit(np.arange(len(everything)))
    ends = np.cumsum(sizes)[:-1]
    importance = ranker.shares_of_gain(everything.features, gains)
    by_part = [tuple(np.split(values, ends)) for values in (held_out, unlinked)]
    return Order(model, spec, tuple(used), by_part[0], by_part[1], importance, without)


def _joined(samples: Sequence[Sample]) -> Sample:
    """The queries of several samples with the same features, in order."""
    columns = ("qids", "groups", "areas", "rows", "norms", "grades", "rest", "ideals")
    return Sample(samples[0].features, *(tuple(chain(*(getattr(part, c) for part in samples))) for c in columns))


def learn_from(collections: Sequence[Collection], overrides: Sequence[str], spec: Spec) -> tuple[Order, pd.DataFrame]:
    """The order that is learned from collections, configured by overrides, and the table of its gains."""
    settings = [compose([*overrides, *collection.words]) for collection in collections]
    parts = [
        part(collection, its_settings, spec) for collection, its_settings in zip(collections, settings, strict=True)
    ]
    order = learn(parts, spec)
    statistics = Policy.of(settings[0].config).statistics
    return order, gains(order, spec.seed, statistics.draws, statistics.confidence)


def without_links(sample: Sample) -> Sample:
    """The same queries as if no document linked to another: nothing of link texts, and equal numbers of links."""
    values = {
        name: 0.5 if features.absolute(name) != name else 0.0
        for name in sample.features
        if features.absolute(name).startswith("links.") or features.absolute(name) == "cover.anchors"
    }
    places = [sample.features.index(name) for name in values]

    def blind(rows: Values) -> Values:
        changed = rows.copy()
        changed[:, places] = list(values.values())
        return changed

    return replace(sample, rows=tuple(blind(rows) for rows in sample.rows))


COLUMNS = Columns.of(
    *("kind", "collection", "documents", "topics", "weight", "fused", "learned", "gain", "low", "high")
)


def gains(order: Order, seed: int = 13, draws: int = 10_000, confidence: float = 0.95) -> pd.DataFrame:
    """The gain of a ranker on held-out sites: a row for every collection, then two for all collections of each kind.

    The intervals of collections are of their topics; those of kinds are of sites, which are resampled whole; NaN where
    too few have been measured. The second row of a kind hides links from the order.
    """
    rows: list[tuple[Any, ...]] = []
    pooled: dict[str, list[int]] = {}
    for number in sorted(range(len(order.parts)), key=lambda number: order.parts[number].collection.kind):
        part, learned = order.parts[number], order.held_out[number]
        at, fused = part.collection, part.sample.fused
        comparison = compare(learned, fused, seed=seed, draws=draws, confidence=confidence)
        interval = (comparison.difference, comparison.ci_low, comparison.ci_high)
        rows.append((at.kind, at.name, part.documents, len(fused), at.weight, fused.mean(), learned.mean(), *interval))
        pooled.setdefault(at.kind, []).append(number)
    for kind, numbers in pooled.items():
        parts = [order.parts[number] for number in numbers]
        names = sorted({part.collection.site_name for part in parts})
        fused = np.concatenate([part.sample.fused for part in parts])
        site = np.repeat(
            [names.index(part.collection.site_name) for part in parts], [len(part.sample) for part in parts]
        )
        counts = np.bincount(site, minlength=len(names)).astype(np.float64)
        for values, label in ((order.held_out, ""), (order.unlinked, ", links hidden")):
            learned = np.concatenate([values[number] for number in numbers])
            sums = np.bincount(site, learned - fused, minlength=len(names)).astype(np.float64)
            half = half_width(sums, counts, seed, draws, confidence) if len(names) >= _MIN_SITES_FOR_CI else np.nan
            gain, documents = float((learned - fused).mean()), sum(part.documents for part in parts)
            means = (fused.mean(), learned.mean(), gain, gain - half, gain + half)
            rows.append((kind, f"all {len(names)} sites{label}", documents, len(fused), np.nan, *means))
    return COLUMNS.frame(rows)


def half_width(sums: Values, counts: Values, seed: int, draws: int, confidence: float) -> float:
    """The half-width of the interval of a mean over topics, where whole sites are resampled with their topics.

    `sums` and `counts` have one entry a site: the sum over its topics and their number. Cluster bootstrap (Davison and
    Hinkley, 1997, section 3.8). Few sites underestimate the spread: the standard error is multiplied by the root of
    G / (G - 1), and t has G - 1 degrees of freedom (Hesterberg, The American Statistician 69, 2015).
    """
    from scipy.special import ndtr, stdtrit

    n_sites = len(sums)
    drawn = np.random.default_rng([seed, 3]).multinomial(n_sites, np.full(n_sites, 1 / n_sites), size=draws).T
    off = (sums @ drawn) / np.maximum(counts @ drawn, 1.0) - sums.sum() / counts.sum()
    error = off.std()
    if error < TIE:  # every site agrees, or nothing changed
        return 0.0
    largest = np.quantile(np.abs(off / error), confidence)
    return float(np.sqrt(n_sites / (n_sites - 1)) * stdtrit(n_sites - 1, ndtr(largest)) * error)
