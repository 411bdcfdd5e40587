"""Trees of a gradient-boosted model, read from LightGBM's text format and evaluated without the library.

Importing lightgbm would take a second or more; evaluating the trees for a query takes microseconds.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf, isnan
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base import locations
from ragbench.base.fingerprint import text_digest
from ragbench.base.types import ConfigError

_NUMERIC = frozenset({"0", "2"})  # kinds of decision: a number is at most the threshold
_MOST_LEAVES = 63  # a leaf is a bit of a number
_DIGITS = 12
GROUP = "ranker"
"""The folder of conf/ with the texts of trees: NAME.txt shipped, NAME-DIGEST.txt next to the file of a project.

Writing a name again adds a file, so that a configuration always names complete text."""


@dataclass(frozen=True)
class Trees:
    """Trees over named features; a row's value is the sum of the leaves it falls into.

    QuickScorer (Lucchese et al., SIGIR 2015): question q is whether `feature[q]` is above `threshold[q]`, each asked
    once. Node i of tree t asks `question[i, t]`; where the answer is yes, the leaves below it on the left cannot be
    reached, and `blocked[i, t]` has their bits. The leftmost of the others gives the value. `leaves` has shape (trees,
    leaves).
    """

    features: tuple[str, ...]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    question: NDArray[np.int64]
    blocked: NDArray[np.unsignedinteger]
    leaves: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.leaves)

    def __call__(self, rows: NDArray[np.float64]) -> NDArray[np.float64]:
        """The value of every row of features, shapes (n, f) and (n,); fastest where a feature's values are adjacent."""
        above = (rows.T.take(self.feature, axis=0) > self.threshold[:, None]).view(np.uint8)
        blocked = np.bitwise_or.reduce(above.take(self.question, axis=0) * self.blocked[:, :, None], axis=0)
        leaf = np.bitwise_count(blocked & ~(blocked + 1))  # the number of the lowest bit that is not set
        first = np.arange(len(self))[:, None] * self.leaves.shape[1]
        # One tree after the other, so that the sum never depends on how many rows there are.
        return np.asarray(np.add.accumulate(self.leaves.take(first + leaf), axis=0)[-1])


def named(name: str, text: str) -> str:
    """What stands for the text in a configuration: its name and a digest."""
    return f"{name}@{text_digest(text, _DIGITS)}"


def file_of(name: str) -> Path:
    """The file of a name: that of the project, if it exists, else the shipped one."""
    fitted_file = locations.fitted() / GROUP / f"{name}.txt"
    return fitted_file if fitted_file.is_file() else locations.configuration() / GROUP / f"{name}.txt"


@lru_cache(16)
def text_of(model: str) -> str:
    """The text of a model: itself, or that of the file that `NAME@DIGEST` names.

    ConfigError for a file that cannot be read, and for one with other trees.
    """
    name, at, digest = model.partition("@")
    if not at or not re.fullmatch(r"\w[\w-]*", name) or not re.fullmatch(f"[0-9a-f]{{{_DIGITS}}}", digest):
        return model
    file = file_of(f"{name}-{digest}")
    file = file if file.exists() else file_of(name)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise ConfigError(
            f"ranker.model is {model}, and {file} cannot be read: run this in the project that has it, or fit it again"
        ) from None
    if named(name, text) != model:
        raise ConfigError(
            f"ranker.model is {model}, and this version of ragbench has other trees in {file}: measure again with "
            f"{named(name, text)}, or use the version that measured it"
        )
    return text


@lru_cache(8)
def parse(text: str) -> Trees:
    """The trees of a model's text. ConfigError for other texts, and for splits that are not numeric."""
    head, *blocks = text.partition("end of trees")[0].split("Tree=")
    try:
        features = tuple(values_by_name(head)["feature_names"].split())
        trees = [_nodes(values_by_name(block)) for block in blocks]
        questions = {split for splits, _, _ in trees for split in splits}
        if not trees or any(feature >= len(features) or isnan(threshold) for feature, threshold in questions):
            raise ValueError
    except (KeyError, ValueError, IndexError, RecursionError):
        raise ConfigError(
            f"ranker.model is not a LightGBM model over numbers with at most {_MOST_LEAVES} leaves a tree: "
            "let `ragbench fit ranker` write it"
        ) from None
    # Smaller trees are padded with a question to which the answer is always no.
    number = {split: number for number, split in enumerate([(0, inf), *sorted(questions)])}
    feature, threshold = zip(*number, strict=True)
    blocked = _table([blocked for _, blocked, _ in trees], 0).T
    return Trees(
        features,
        np.array(feature),
        np.array(threshold),
        _table([[number[split] for split in splits] for splits, _, _ in trees], 0).T.copy(),
        blocked.astype(np.min_scalar_type(int(blocked.max())), order="C"),
        _table([leaves for _, _, leaves in trees], 0.0),
    )


def _nodes(values: Mapping[str, str]) -> tuple[list[tuple[int, float]], list[int], list[float]]:
    """The question of each node as (feature, threshold), the leaves it blocks, and the leaves from left to right."""
    leaves = [float(value) for value in values["leaf_value"].split()]
    if not 1 <= len(leaves) <= _MOST_LEAVES:
        raise ValueError
    names = ("split_feature", "threshold", "left_child", "right_child", "decision_type")
    columns = [values.get(name, "").split() for name in names]
    if {len(column) for column in columns} != {len(leaves) - 1} or not set(columns[4]) <= _NUMERIC:
        raise ValueError
    lefts, right = ([int(child) for child in column] for column in columns[2:4])
    order: list[int] = []
    spans = [0] * len(lefts)  # bits of the leaves on the left of each node

    def visit(node: int) -> None:
        if node < 0:
            order.append(~node)
            return
        first = len(order)
        visit(lefts[node])
        spans[node] = sum(1 << leaf for leaf in range(first, len(order)))
        visit(right[node])

    visit(0 if lefts else -1)
    if sorted(order) != list(range(len(leaves))):
        raise ValueError
    splits = [(int(feature), float(threshold)) for feature, threshold in zip(*columns[:2], strict=True)]
    return splits, spans, [leaves[leaf] for leaf in order]


def _table(rows: Sequence[Sequence[float]], fill: float) -> NDArray[Any]:
    """Rows of different lengths as one array, at least one wide."""
    width = max(1, *map(len, rows))
    return np.array([[*row, *[fill] * (width - len(row))] for row in rows])


def values_by_name(block: str) -> dict[str, str]:
    """The values of a head or of a tree in a model's text, by name."""
    return {name: value for name, equals, value in (line.partition("=") for line in block.splitlines()) if equals}
