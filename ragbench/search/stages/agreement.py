"""How many lists a fused score is made of: one of two lists is half of it, but not half as likely to be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ragbench.index.background import BackgroundSimilarity
from ragbench.search.stages.stage import Index, QueryState, Retriever, fused

_FIRST_RANK = 1 / 61
"""What a list gives to its first hit in the seeds' formula, by weight 1 and k 60."""
FOLLOWERS = frozenset({"graph"})
"""Sources that repeat what other sources found, and have no vote."""
_OUTLIER_Z_SCORE = 3.0
"""Robust deviations. On seven vaults of 12 to 521 notes, 26 meaningless queries reach 2.95 at most, and "auth" at least
3.7 where a note is about it."""
_ROUNDING = 1e-9


def noise_parts(sources: Sequence[Retriever]) -> Mapping[str, str]:
    """By source of vectors, the part of an index that says which cosines stand out."""
    parts = {}
    for source in sources:
        for suffix in ("", f":{source.source}"):
            if f"dense{suffix}" in source.needs:
                parts[source.source] = f"noise{suffix}"
    return parts


def noise_of_several(sources: Sequence[Retriever], lists: int) -> Mapping[str, str]:
    """`noise_parts` where fewer than `lists` lists may answer: with one source no other could find nothing."""
    return noise_parts(sources) if lists > 0 and len(sources) > 1 else {}


def needs(noise: Mapping[str, str]) -> frozenset[str]:
    """The parts of an index for `factor`."""
    return frozenset({*noise.values(), *map(_encoder, noise.values())})


def scale_factor(state: QueryState, index: Index, lists: int, noise: Mapping[str, str]) -> float:
    """What fused scores are multiplied by, so that they compare with those of `lists` agreeing lists of weight 1.

    1 where as many lists answered: the mapping from scores to confidences is absolute. Where one answered, its best
    hit gets what `lists` of them would give it, whatever links, recency and boosts added. Vectors that answer alone
    while other lists find nothing count as one list of weight 1 at most, unless the query is nearer to the collection
    than meaningless queries come: there is always a nearest chunk.
    """
    if lists == 0 or state.unanimous == 0:
        return 1.0
    retrievers = [source for source in state.rankings if source not in FOLLOWERS]
    voted = [source for source in retrievers if len(state.rankings[source])]
    top = float(max([state.unanimous, *fused(state).scores[:1].tolist()]))
    words_first = sorted(voted, key=noise.__contains__)
    if len(voted) < len(retrievers) and not any(_is_outlier(state, index, source, noise) for source in words_first):
        return min(1.0, _FIRST_RANK / top)
    if len(voted) == 1:
        return lists * _FIRST_RANK / top
    return max(1.0, lists * _FIRST_RANK / state.unanimous - _ROUNDING)


def _is_outlier(state: QueryState, index: Index, source: str, noise: Mapping[str, str]) -> bool:
    """Whether a source that found something says something: words do, vectors where they are nearer than noise."""
    if source not in noise:
        return True
    part: BackgroundSimilarity = index.part(noise[source])
    vector = _own_vector(state, index, source, noise[source])
    return part.robust_z_score(vector, state.rankings[source].chunks) >= _OUTLIER_Z_SCORE


def z_score(state: QueryState, index: Index, source: str, part: str) -> float:
    """By how many standard deviations the best hit of a source, which has one, is nearer than everyday questions come.

    It is that of the query itself, without the terms that expansion took from the collection.
    """
    noise: BackgroundSimilarity = index.part(part)
    return noise.z_score(_own_vector(state, index, source, part), state.rankings[source].chunks)


def _own_vector(state: QueryState, index: Index, source: str, part: str) -> NDArray[np.float32]:
    vector, text = state.rankings[source].query_vector, state.query.text
    if vector is None or ("hypothesis" not in state.texts and {*state.texts.values()} - {text}):
        vector = index.part(_encoder(part)).encode_queries([text])[0]
    return vector


def _encoder(part: str) -> str:
    return part.replace("noise", "encoder", 1)
