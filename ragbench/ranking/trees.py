"""Trees of a gradient-boosted model, read from LightGBM's own text and evaluated without the library.

Importing lightgbm takes a second or more, a query microseconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ragbench.errors import ConfigError

_HEAD: tuple[str, ...] = ("version", "num_class", "num_tree_per_iteration", "label_index", "max_feature_idx")
_HEAD += ("objective", "feature_names", "feature_infos")
_TREE: tuple[str, ...] = ("num_leaves", "num_cat", "split_feature", "threshold", "decision_type", "left_child")
_TREE += ("right_child", "leaf_value", "is_linear", "shrinkage")
_NUMERIC = frozenset({"0", "2"})  # kinds of decision: a number is at most the threshold
MOST_LEAVES = 63  # a leaf is a bit of a number


@dataclass(frozen=True)
class Trees:
    """Trees over named features; a row's value is the sum of the leaves it falls into.

    QuickScorer (Lucchese et al., SIGIR 2015): node i of tree t asks whether `feature[t, i]` is at most `threshold[t,
    i]`; where it is not, the leaves below it on the left cannot be reached, and `reachable[t, i]` has the bits of all
    others. The leftmost reachable leaf gives the value. `leaves` has shape (trees, leaves).
    """

    features: tuple[str, ...]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    reachable: NDArray[np.uint64]
    leaves: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.leaves)

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value of every row of features, shapes (n, f) and (n,)."""
        above = rows[:, self.feature] > self.threshold
        left = np.bitwise_and.reduce(np.where(above, self.reachable, ~np.uint64(0)), axis=2)
        leaf = np.frexp((left & (~left + np.uint64(1))).astype(np.float64))[1] - 1  # the number of the lowest bit
        # One tree after the other, so that the sum never depends on how many rows there are.
        return np.asarray(np.add.accumulate(self.leaves[np.arange(len(self)), leaf], axis=1)[:, -1])


def short(text: str) -> str:
    """The parts of a model's text that prediction needs; LightGBM can still read it."""
    head, *blocks = text.partition("end of trees")[0].split("Tree=")
    parts = ["\n".join(["tree", *_lines(head, _HEAD)])]
    parts += ["\n".join([f"Tree={number}", *_lines(block, _TREE)]) for number, block in enumerate(blocks)]
    return "\n\n".join(parts) + "\n\nend of trees\n"


def _lines(block: str, names: tuple[str, ...]) -> list[str]:
    return [line.rstrip() for line in block.splitlines() if line.partition("=")[0] in names]


@lru_cache(8)
def parse(text: str) -> Trees:
    """The trees of a model's text. ConfigError for other texts, and for splits that are not numeric."""
    head, *blocks = text.partition("end of trees")[0].split("Tree=")
    try:
        features = tuple(_values(head)["feature_names"].split())
        trees = [_nodes(_values(block)) for block in blocks]
        if not trees or any((each[0] >= len(features)).any() for each in trees):
            raise ValueError
    except (KeyError, ValueError, IndexError, RecursionError):
        raise ConfigError(
            f"rank.model is no text of a LightGBM model over numbers, of at most {MOST_LEAVES} leaves a tree: "
            "let `ragbench learn-ranker` write it"
        ) from None
    # Smaller trees are padded with nodes whose threshold is infinity: every value is below it.
    empty = (0, np.inf, ~np.uint64(0), 0.0)
    stacked = [_stacked([tree[part] for tree in trees], fill) for part, fill in enumerate(empty)]
    return Trees(features, *stacked)  # type: ignore[arg-type]


def _nodes(
    values: Mapping[str, str],
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.uint64], NDArray[np.float64]]:
    """Features, thresholds and masks of a tree's nodes, and its leaves from left to right."""
    leaves = [float(value) for value in values["leaf_value"].split()]
    if not 1 <= len(leaves) <= MOST_LEAVES:
        raise ValueError
    names = ("split_feature", "threshold", "left_child", "right_child", "decision_type")
    columns = [values.get(name, "").split() for name in names]
    if {len(column) for column in columns} != {len(leaves) - 1} or not set(columns[4]) <= _NUMERIC:
        raise ValueError
    left, right = ([int(child) for child in column] for column in columns[2:4])
    order: list[int] = []
    spans = [0] * len(left)  # bits of the leaves on the left of each node

    def visit(node: int) -> None:
        if node < 0:
            order.append(~node)
            return
        first = len(order)
        visit(left[node])
        spans[node] = sum(1 << leaf for leaf in range(first, len(order)))
        visit(right[node])

    visit(0 if left else -1)
    if sorted(order) != list(range(len(leaves))):
        raise ValueError
    return (
        np.array([int(each) for each in columns[0]], dtype=np.int64),
        np.array([float(each) for each in columns[1]], dtype=np.float64),
        ~np.array(spans, dtype=np.uint64),
        np.array([leaves[leaf] for leaf in order], dtype=np.float64),
    )


def _stacked(rows: list[NDArray[np.generic]], fill: object) -> NDArray[np.generic]:
    """Arrays of different lengths as one of shape (n, longest), at least one wide."""
    table = np.full((len(rows), max(1, *(len(row) for row in rows))), fill, dtype=rows[0].dtype)
    for place, row in enumerate(rows):
        table[place, : len(row)] = row
    return table


def _values(block: str) -> dict[str, str]:
    return {name: value for name, equals, value in (line.partition("=") for line in block.splitlines()) if equals}
