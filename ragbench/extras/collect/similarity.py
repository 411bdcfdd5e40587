"""Pairs of short texts that share most of their words, found without comparing every text with every other."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

_WORD = re.compile(r"\w+")


def near_duplicates(texts: Sequence[str], threshold: float) -> Iterator[tuple[int, int, float]]:
    """(i, j, Jaccard) with i < j for every pair whose sets of words have a Jaccard index of at least `threshold`.

    Two such sets must share a word among the rarest `n - ceil(threshold * n) + 1` words of each (prefix filtering,
    Chaudhuri et al., ICDE 2006), so only texts that do are compared. Texts without words have no duplicates.
    """
    sets = [frozenset(_WORD.findall(text.casefold())) for text in texts]
    frequency = Counter(word for words in sets for word in words)
    seen_with: dict[str, list[int]] = defaultdict(list)
    for number, words in enumerate(sets):
        ordered = sorted(words, key=lambda word: (frequency[word], word))
        prefix = ordered[: len(ordered) - math.ceil(threshold * len(ordered) - 1e-9) + 1]
        for candidate in sorted({candidate for word in prefix for candidate in seen_with[word]}):
            likeness = len(words & sets[candidate]) / len(words | sets[candidate])
            if likeness >= threshold:
                yield candidate, number, likeness
        for word in prefix:
            seen_with[word].append(number)
