"""How near the best chunk is to queries that have nothing to do with the collection: what a cosine must exceed.

Cosines of unrelated texts are 0.1 with one encoder and 0.8 with another, and the best of many chunks is nearer than
that of few. The best cosines of everyday questions and of letters without meaning give the scale.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ragbench.index.dense import DenseIndex
from ragbench.index.parts import StoredPart
from ragbench.models import Encoder

VERSION = 2
_BEST = "best.npy"
_LEAST_DEVIATION = 1e-3  # of a collection to which all everyday questions are equally near

# Questions that documentation of software does not answer. Increase VERSION with any change.
_EVERYDAY = """
how long to boil an egg; who won the match last night; best way to prune roses in winter; my knee hurts after running;
cheap flights to the seaside in august; what rhymes with orange; how tall is the highest mountain; lentil soup recipe;
why do cats purr; when does the bakery open on sunday; learn to play the guitar; is it going to rain tomorrow;
symptoms of hay fever in children; how to knit a scarf; capital of mongolia; lyrics of an old lullaby;
what did the dinosaurs eat; remove a wine stain from a carpet; the history of the roman empire; novels about the sea;
how far away is the moon; birthday present for my grandmother; teach a dog to sit; which paint for a wooden fence;
calories in a slice of cake; how do volcanoes erupt; the rules of chess for beginners; tickets for the opera;
grow tomatoes on a balcony; fix a flat bicycle tyre; when was the printing press invented; how to tie a bow tie
"""
_QUESTIONS = tuple(question.strip() for question in _EVERYDAY.split(";"))
_LETTERS = """
xkqj vzt; asdf jkl; wqpz mrt; hjkl; aaaa bbb; xxyyzz; zxcvb; dfgh rty; qpwo eiru; blah blah; foo bar; jjjj; lkjh fdsa;
vbnm; tgb yhn ujm; !!! ???
"""
_MEANINGLESS = tuple(text.strip() for text in _LETTERS.split(";"))
_TO_DEVIATION = 1.4826  # of a normal distribution: standard deviation / median absolute deviation


def build_noise(folder: Path, dense: DenseIndex, encoder: Encoder) -> None:
    """Write the best cosines of everyday questions, then of letters, float32 (48,); empty without chunks."""
    rankings = dense.search(encoder.encode_queries([*_QUESTIONS, *_MEANINGLESS]), 1)
    np.save(folder / _BEST, np.array([r.scores[0] for r in rankings if len(r)], dtype=np.float32), allow_pickle=False)


class BackgroundSimilarity:
    """The best cosines of everyday questions, as their mean and standard deviation, and of all meaningless queries."""

    def __init__(self, folder: Path, dense: DenseIndex) -> None:
        """Open the artefact in `folder`."""
        best: NDArray[np.float32] = np.load(folder / _BEST, allow_pickle=False)
        everyday = best[: len(_QUESTIONS)]
        self.mean, self.deviation = (float(everyday.mean()), float(everyday.std())) if len(best) else (0.0, 0.0)
        self._middle = float(np.median(best)) if len(best) else 0.0
        self._spread = _TO_DEVIATION * float(np.median(np.abs(best - self._middle))) if len(best) else 0.0
        self._dense = dense

    def z_score(self, query: NDArray[np.float32], chunks: NDArray[np.int32]) -> float:
        """By how many deviations the best cosine of a unit vector with n > 0 chunks is above everyday questions."""
        return (self._best(query, chunks) - self.mean) / max(self.deviation, _LEAST_DEVIATION)

    def robust_z_score(self, query: NDArray[np.float32], chunks: NDArray[np.int32]) -> float:
        """The same above the median of everyday questions and letters, in median absolute deviations scaled to sigma.

        A collection that answers a few of the questions moves neither number much.
        """
        return (self._best(query, chunks) - self._middle) / max(self._spread, _LEAST_DEVIATION)

    def _best(self, query: NDArray[np.float32], chunks: NDArray[np.int32]) -> float:
        return float((self._dense.vectors[chunks] @ query).max())


def noise_part(suffix: str) -> StoredPart[BackgroundSimilarity]:
    """The best cosines of queries that have nothing to do with the collection."""
    return StoredPart(
        f"noise{suffix}",
        inputs=lambda index: [index.fingerprint(f"dense{suffix}"), index.fingerprint(f"encoder{suffix}"), VERSION],
        build=lambda folder, index: build_noise(folder, index.part(f"dense{suffix}"), index.part(f"encoder{suffix}")),
        open=lambda folder, index: BackgroundSimilarity(folder, index.part(f"dense{suffix}")),
    )
