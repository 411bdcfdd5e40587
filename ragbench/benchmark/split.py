"""Split topics into train and test: the same mix of types and areas in both, groups whole, the same for one seed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from ragbench.base import minimums
from ragbench.base.errors import ConfigError
from ragbench.base.fingerprint import shuffle_key
from ragbench.benchmark.benchmark import Benchmark, Qrels, Topic, topic_area

TRAIN, TEST = "train", "test"


# The cost of an imbalance in each respect. Types cost most, since they are reported one by one.
_COST = {"type": 8.0, "all": 4.0, "stratum": 2.0, "area": 2.0}


def split(topics: Iterable[Topic], qrels: Qrels, seed: int = 13, share: float = 0.5) -> dict[str, str]:
    """`train` or `test` for every qid. `share` (between 0 and 1) of the topics is train.

    Strata are type x area, the area of a topic being that of its best documents. Each group goes to the side where it
    leaves the least imbalance (squared difference from the share, over types, strata, areas and all), large groups
    first, the rest in an order drawn by hashing the seed with the qid: the result depends neither on the order of
    topics nor on the random numbers of a library.
    """
    if not 0 < share < 1:
        raise ConfigError(f"share must lie between 0 and 1, got {share}")
    units: dict[str, list[Topic]] = {}
    for topic in topics:
        units.setdefault(f"group {topic.group}" if topic.group else f"topic {topic.qid}", []).append(topic)
    marks = {name: _marks(unit, qrels) for name, unit in units.items()}
    excess: dict[tuple[str, str], float] = defaultdict(
        float
    )  # topics in train beyond its share, for every type, stratum and area
    sides: dict[str, str] = {}
    for name in sorted(
        units, key=lambda name: (-len(units[name]), _stratum(units[name], qrels), shuffle_key(seed, name))
    ):
        into_train = _cost(excess, marks[name], 1 - share)
        into_test = _cost(excess, marks[name], -share)
        if into_train != into_test:
            side = TRAIN if into_train < into_test else TEST
        else:
            side = TRAIN if int(shuffle_key(seed, f"side {name}"), 16) % 2 else TEST
        for mark, n in marks[name].items():
            excess[mark] += n * (1 - share if side == TRAIN else -share)
        sides.update((topic.qid, side) for topic in units[name])
    return sides


def has_halves(topics: Sequence[Topic]) -> bool:
    """Whether there are topics to explore on and others to confirm on: both splits, and `HALVES` topics or more."""
    return len(topics) >= minimums.TO_SPLIT and {TRAIN, TEST} <= {topic.split for topic in topics}


def resplit(benchmark: Benchmark, seed: int = 13, share: float = 0.5) -> Benchmark:
    """The same benchmark with its topics split again."""
    return replace(benchmark, topics=with_splits(benchmark.topics, benchmark.document_qrels, seed, share))


def with_splits(topics: Sequence[Topic], qrels: Qrels, seed: int = 13, share: float = 0.5) -> tuple[Topic, ...]:
    """The topics with the splits that `split` gives them."""
    sides = split(topics, qrels, seed, share)
    return tuple(replace(topic, split=sides[topic.qid]) for topic in topics)


def _marks(unit: Sequence[Topic], qrels: Qrels) -> Counter[tuple[str, str]]:
    marks: Counter[tuple[str, str]] = Counter()
    for topic in unit:
        area = topic_area(qrels.get(topic.qid, {}))
        marks.update([("type", topic.type), ("area", area), ("stratum", f"{topic.type}\t{area}"), ("all", "")])
    return marks


def _stratum(unit: Sequence[Topic], qrels: Qrels) -> tuple[str, str]:
    first = min(unit, key=lambda topic: topic.qid)
    return first.type, topic_area(qrels.get(first.qid, {}))


def _cost(excess: Mapping[tuple[str, str], float], marks: Mapping[tuple[str, str], int], step: float) -> float:
    """The imbalance cost after a unit is assigned to a side; rounded, so that equal costs compare equal."""
    return round(sum(_COST[mark[0]] * (excess.get(mark, 0.0) + n * step) ** 2 for mark, n in marks.items()), 9)
