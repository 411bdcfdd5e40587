"""Learn an order from judged queries: LambdaMART over the fused ranking, with an unbiased estimate of its gain.

Trees are added to the fused score (Burges, 2010, and Ke et al., LightGBM, 2017), so that few judgments change little.
The number of trees is chosen by cross-validation inside the topics that are learned from; what is reported of a topic
always comes from a model that was fitted without it and its group. `learn` starts from the fused ranking, `finetune`
from the order that is configured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ragbench.base import minimums, progress
from ragbench.base.options import SOURCES, Count, Factor, Natural, Positive, Share, Validated, Weight
from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.benchmark.benchmark import Benchmark, topic_area
from ragbench.config.settings import Settings
from ragbench.evaluation import measures
from ragbench.extras.fit import training
from ragbench.extras.fit.training import Numbers, Values
from ragbench.search.engine.pipeline import Arm
from ragbench.search.ranking import features, trees
from ragbench.search.stages.rank import Rank, rows_of
from ragbench.search.stages.stage import Index, QueryState, StateProperty, fused

_INNER = 3  # folds to choose the number of trees

# The lines of a model's text that prediction needs: those of its head, and those of a tree.
_HEAD: tuple[str, ...] = ("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx")
_HEAD += ("objective", "feature_names", "feature_infos")
_TREE: tuple[str, ...] = ("num_leaves", "num_cat", "split_feature", "threshold", "decision_type", "left_child")
_TREE += ("right_child", "leaf_value", "is_linear", "shrinkage")


_STAGE = "ranker"
"""The entry of `order` where a learned order has its place."""


def arm(settings: Settings, benchmark: Benchmark) -> Arm:
    """The arm with the stages before the place of `ranker`. ConfigError where that has no place or nothing is fused."""
    order = settings.basics.order
    if _STAGE not in order:
        raise ConfigError("`order` has no entry 'ranker', where a trained ranker runs: add one after 'fuse'")
    earlier = {*order[: order.index(_STAGE)]}
    stages = tuple(
        (name, stage)
        for name, stage in settings.pipeline.stages
        if name in earlier or (name.startswith(f"{SOURCES}.") and SOURCES in earlier)
    )
    if not any(StateProperty.FUSED in stage.provides for _, stage in stages):
        raise ConfigError("this pipeline fuses nothing before 'ranker', so it has no ranking to start from")
    truncated = training.cut(settings, benchmark, stages)
    truncated.index.prepare({"terms"})
    return truncated


@dataclass(frozen=True)
class Spec(Validated):
    """How trees grow: at most `rounds` trees of `leaves` leaves with at least `smallest` documents, weighted by `rate`.

    `prior` is the weight of the fused score, `depth` the number of hits to order, `l2` shrinks leaves, `share` is the
    share of the features that a split may use. Defaults were chosen on the training topics of the built-in benchmark.
    """

    prior: Weight = 2.0
    depth: Count = 100
    rounds: Count = 200
    leaves: Count = 8
    rate: Positive = 0.06
    smallest: Count = 15
    l2: Weight = 5.0
    share: Share = 0.5
    folds: Factor = 5
    seed: Natural = 13

    def features(self, sources: Sequence[str]) -> tuple[str, ...]:
        """What the trees read of these sources."""
        return features.names(sources)


@dataclass(frozen=True)
class Sample:
    """Judged queries: the features of their candidates, the grades of these and of all relevant documents.

    One entry a query in all sequences. `rest` are the grades of documents below the candidates, in order.
    """

    features: tuple[str, ...]
    qids: tuple[str, ...]
    groups: tuple[str, ...]
    areas: tuple[str, ...]
    rows: tuple[Values, ...]
    norms: tuple[Values, ...]
    grades: tuple[Numbers, ...]
    rest: tuple[tuple[int, ...], ...]
    ideals: tuple[tuple[int, ...], ...]

    def __len__(self) -> int:
        return len(self.qids)

    def value(self, i: int, scores: Values) -> float:
        """nDCG@10 of one query with its candidates ordered by scores; equal ones keep the order of fusion."""
        order = np.argsort(-scores, kind="stable")
        return measures.ndcg([*map(float, self.grades[i][order]), *map(float, self.rest[i])], self.ideals[i])

    @cached_property
    def fused(self) -> Values:
        """nDCG@10 of every query as it was fused."""
        return np.array([self.value(i, self.norms[i]) for i in range(len(self))])

    def reading(self, names: tuple[str, ...]) -> Sample:
        """The same queries with these features only."""
        places = [self.features.index(name) for name in names]
        return replace(self, features=names, rows=tuple(rows[:, places] for rows in self.rows))

    def from_order(self, stage: Rank) -> Sample:
        """The same queries, to learn from where the order of `stage` ends: `norms` are its scores over its prior.

        What is learned with the prior of the stage is added to its trees.
        """
        grown, prior = trees.parse(stage.trees), stage.prior
        read = self.reading(grown.features).rows
        return replace(self, norms=tuple(n + grown(rows) / prior for n, rows in zip(self.norms, read, strict=True)))


def sample(
    states: Sequence[QueryState],
    index: Index,
    benchmark: Benchmark,
    depth: int,
    select_features: Callable[[Sequence[str]], tuple[str, ...]],
) -> Sample:
    """What can be learned from fused states; queries without a relevant document or without a hit are excluded.

    `select_features` gives the names of the features for the names of the sources, sorted.
    """
    names = select_features(sorted({source for state in states for source in state.rankings}))
    topics = {topic.qid: topic for topic in benchmark.topics}
    docnos = index.chunks.docnos
    grouped: list[tuple[Any, ...]] = []
    for state in states:
        qid = state.query.qid
        grades = {docno: max(0, grade) for docno, grade in benchmark.document_qrels.get(qid, {}).items()}
        if not any(grades.values()) or not len(fused(state)):
            continue
        candidates, rows = rows_of(state, index, names, depth)
        ranked = candidates.documents.tolist()
        ranked_chunks = set(ranked)
        below = dict.fromkeys(index.chunks.document[fused(state).chunks].tolist())
        grouped.append(
            (
                qid,
                topics[qid].cluster,
                topic_area(grades),
                rows,
                candidates.norm,
                np.array([grades.get(docnos[row], 0) for row in ranked], dtype=np.int64),
                tuple(grades.get(docnos[row], 0) for row in below if row not in ranked_chunks),
                tuple(grade for grade in grades.values() if grade > 0),
            )
        )
    columns = zip(*grouped, strict=True) if grouped else ((),) * 8
    return Sample(names, *(tuple(column) for column in columns))


@dataclass(frozen=True)
class Learned:
    """A model, and what it gains on queries that it was not fitted on.

    `held_out`, shape (n,), has nDCG@10 of every query by a model of other groups; `by_folder` by a model of other
    folders, None where all documents are in one. `importance` is each feature's share of the gain of all splits.
    """

    model: str
    trees: int
    fused: Values
    held_out: Values
    by_folder: Values | None
    importance: Mapping[str, float]


def learn(judged: Sample, spec: Spec) -> Learned:
    """Learn from all queries of a sample, and estimate by cross-validation over groups and over folders.

    Raises BenchmarkError for fewer than minimums.FOR_RANKER queries or fewer groups than folds.
    """
    everything = np.arange(len(judged))
    if len(judged) < minimums.FOR_RANKER or len(set(judged.groups)) < spec.folds:
        raise BenchmarkError(
            f"a ranker is trained on at least {minimums.FOR_RANKER} judged training topics of {spec.folds:g} groups, "
            f"and there are {len(judged)} of {len(set(judged.groups))}: judge more with `ragbench judge`, or try "
            "data.resplit=1"
        )
    outer = training.folds(judged.groups, everything, int(spec.folds), spec.seed)
    several = len(set(judged.areas)) > 1
    areas = (
        training.folds(judged.areas, everything, min(int(spec.folds), len(set(judged.areas))), spec.seed)
        if several
        else []
    )
    tick = progress.task_ticks("learning to rank", len(outer) + len(areas) + 1)

    def fit(chosen: Numbers) -> tuple[str, int, Mapping[str, float]]:
        model = _fit(judged, chosen, spec)
        tick(1)
        return model

    held_out = np.zeros(len(judged))
    for held in outer:
        held_out[held] = values_of(judged, held, fit(np.setdiff1d(everything, held))[0], spec.prior)
    by_folder = np.zeros(len(judged)) if several else None
    for held in areas:
        assert by_folder is not None
        by_folder[held] = values_of(judged, held, fit(np.setdiff1d(everything, held))[0], spec.prior)
    model, rounds, importance = fit(everything)
    return Learned(model, rounds, judged.fused, held_out, by_folder, importance)


def values_with(judged: Sample, stage: Rank) -> Values:
    """nDCG@10 of every query with the order of a stage that reads features of the sample."""
    return values_of(judged.reading(stage.features), np.arange(len(judged)), stage.trees, stage.prior)


def values_of(judged: Sample, places: Numbers, model: str, prior: float) -> Values:
    """nDCG@10 of the queries at `places`, ordered by `prior` times the fused score plus the trees of a model."""
    grown = trees.parse(model)
    return np.array([judged.value(i, prior * judged.norms[i] + grown(judged.rows[i])) for i in places.tolist()])


def grow(judged: Sample, places: Numbers, spec: Spec, weights: Values | None = None) -> tuple[str, Values]:
    """The text of `spec.rounds` trees grown from the queries at `places`, and what each feature's splits gain.

    `weights`, shape (n,), says how much each query of the sample counts.
    """
    import lightgbm

    booster = lightgbm.train(_parameters(judged, spec), _data(judged, places, spec, weights=weights), spec.rounds)
    text = _without_unused_lines(booster.model_to_string(num_iteration=spec.rounds))
    return text, np.asarray(booster.feature_importance("gain"), dtype=np.float64)


def _without_unused_lines(text: str) -> str:
    """The parts of a model's text that prediction needs; LightGBM can still read it."""
    head, *blocks = text.partition("end of trees")[0].split("Tree=")
    parts = ["\n".join(["tree", *_lines(head, _HEAD)])]
    parts += ["\n".join([f"Tree={number}", *_lines(block, _TREE)]) for number, block in enumerate(blocks)]
    return "\n\n".join(parts) + "\n\nend of trees\n"


def _lines(block: str, names: tuple[str, ...]) -> list[str]:
    return [line.rstrip() for line in block.splitlines() if line.partition("=")[0] in names]


def weighted_sum(parts: Sequence[tuple[str, float]]) -> str:
    """The text of one model whose value is the weighted sum of several, given as texts and weights."""
    heads = [trees.values_by_name(text.partition("Tree=")[0]) for text, _ in parts]
    ranges: dict[str, str] = {}  # of every feature, the values it had
    for head in heads:
        for name, values in zip(head["feature_names"].split(), head["feature_infos"].split(), strict=True):
            ranges.setdefault(name, values)
    number = {name: str(number) for number, name in enumerate(ranges)}
    head = heads[0] | {
        "max_feature_idx": str(len(ranges) - 1),
        "feature_names": " ".join(ranges),
        "feature_infos": " ".join(ranges.values()),
    }
    blocks = ["\n".join(["tree", *(f"{name}={head[name]}" for name in _HEAD if name in head)])]
    for (text, weight), names in zip(parts, (head["feature_names"].split() for head in heads), strict=True):
        for block in text.partition("end of trees")[0].split("Tree=")[1:]:
            tree = trees.values_by_name(block)
            tree["split_feature"] = " ".join(
                number[names[int(feature)]] for feature in tree.get("split_feature", "").split()
            )
            tree["leaf_value"] = " ".join(repr(weight * float(leaf)) for leaf in tree["leaf_value"].split())
            lines = (f"{name}={tree[name]}" for name in _TREE if name in tree)
            blocks.append("\n".join([f"Tree={len(blocks) - 1}", *lines]))
    return "\n\n".join(blocks) + "\n\nend of trees\n"


def shares_of_gain(names: Sequence[str], gains: Values) -> dict[str, float]:
    """The share of each feature in the gain of all splits, largest first, without those that gain nothing."""
    total = float(gains.sum()) or 1.0
    shares = {name: round(float(gain) / total, 4) for name, gain in zip(names, gains, strict=True) if gain > 0}
    return dict(sorted(shares.items(), key=lambda pair: (-pair[1], pair[0])))


def _fit(judged: Sample, chosen: Numbers, spec: Spec) -> tuple[str, int, Mapping[str, float]]:
    """The text of a model of the chosen queries, its number of trees, and the importance of features."""
    import lightgbm

    inner = training.folds(judged.groups, chosen, min(_INNER, len({judged.groups[i] for i in chosen})), spec.seed + 1)
    curves = []
    for held_out in inner:
        recorded: dict[str, Any] = {}
        lightgbm.train(
            _parameters(judged, spec),
            data := _data(judged, np.setdiff1d(chosen, held_out), spec),
            spec.rounds,
            valid_sets=[_data(judged, held_out, spec, data)],
            callbacks=[lightgbm.record_evaluation(recorded)],
        )
        (measured,) = recorded["valid_0"].values()
        curves.append(len(held_out) * np.array(measured))
    rounds = int(np.argmax(np.round(np.sum(curves, axis=0), 9))) + 1
    model, gains = grow(judged, chosen, replace(spec, rounds=rounds))
    return model, rounds, shares_of_gain(judged.features, gains)


def _data(judged: Sample, places: Numbers, spec: Spec, reference: Any = None, weights: Values | None = None) -> Any:
    import lightgbm

    chosen = places.tolist()
    sizes = [len(judged.rows[i]) for i in chosen]
    return lightgbm.Dataset(
        np.concatenate([judged.rows[i] for i in chosen]),
        np.concatenate([judged.grades[i] for i in chosen]),
        group=sizes,
        weight=None if weights is None else weights[places].repeat(sizes),
        init_score=spec.prior * np.concatenate([judged.norms[i] for i in chosen]),
        feature_name=list(judged.features),
        params={"max_bin": 63, "verbosity": -1, "num_threads": 1, "data_random_seed": spec.seed},
        reference=reference,
        free_raw_data=False,
    )


def _parameters(judged: Sample, spec: Spec) -> dict[str, Any]:
    best = max((int(grades.max()) for grades in judged.grades), default=1)
    return {
        "objective": "lambdarank",
        "label_gain": list(range(best + 1)),  # linear, as nDCG@10 is measured here
        "lambdarank_truncation_level": 15,
        "metric": "ndcg",
        "eval_at": [10],
        "learning_rate": spec.rate,
        "num_leaves": spec.leaves,
        "min_data_in_leaf": spec.smallest,
        "lambda_l2": spec.l2,
        "feature_fraction_bynode": spec.share,
        "max_bin": 63,
        "seed": spec.seed,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,  # the sums, and so the bytes, are the same on every machine with any number of processors
        "verbosity": -1,
    }


@dataclass(frozen=True)
class FinetunedRanker:
    """The order that was learned, `start`: from what, in words, and `learned`: what it gains on held-out queries."""

    stage: Rank
    start: str
    learned: Learned


def finetuning_sample(arm: Arm, benchmark: Benchmark, split: str, start: Rank | None, spec: Spec) -> Sample:
    """What can be learned from the topics of a split, with all features that the order to start from reads."""
    known_features = start.features if start is not None else ()

    def select_features(sources: Sequence[str]) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*known_features, *spec.features(sources)]))

    depth = start.depth if start is not None else spec.depth
    states = training.answers(arm, benchmark.select(split))
    return sample(states, arm.index, benchmark, depth, select_features)


def finetune(judged: Sample, start: Rank | None, spec: Spec) -> FinetunedRanker:
    """Add trees to an order, and estimate by cross-validation over groups of topics the gain."""
    if start is None:
        learned = learn(judged, spec)
        stage = Rank(learned.model, prior=spec.prior, depth=spec.depth)
        return FinetunedRanker(stage, "the fused order", learned)
    spec = replace(spec, prior=start.prior, depth=start.depth)
    learned = learn(judged.from_order(start), spec)
    stage = replace(start, model=weighted_sum([(start.trees, 1.0), (learned.model, 1.0)]))
    described = f"the order '{start.name}'" if start.name else "the configured order"
    return FinetunedRanker(stage, described, learned)
