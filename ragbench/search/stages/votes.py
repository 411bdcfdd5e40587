"""How many lists a fused score is made of: one of two lists is half of it, but not half as likely to be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragbench.base.types import QueryState
from ragbench.search.stages.stage import Retriever

if TYPE_CHECKING:
    from ragbench.index.index import Index

FIRST_RANK = 1 / 61
"""What a list gives to its first hit in the seeds' formula, by weight 1 and k 60."""
FOLLOWERS = frozenset({"graph"})
"""Sources that repeat what other sources found, and have no vote."""
_STANDS_OUT = 2.5  # deviations; the everyday questions themselves reach 2.3 at most


def noise_parts(sources: Sequence[Retriever]) -> Mapping[str, str]:
    """By source of vectors, the part of an index that says which cosines stand out."""
    found = {}
    for source in sources:
        for suffix in ("", f":{source.source}"):
            if f"dense{suffix}" in source.needs:
                found[source.source] = f"noise{suffix}"
    return found


def noise_of_several(sources: Sequence[Retriever], lists: int) -> Mapping[str, str]:
    """`noise_parts` where fewer than `lists` lists may answer: with one source no other could find nothing."""
    return noise_parts(sources) if lists > 0 and len(sources) > 1 else {}


def needs(noise: Mapping[str, str]) -> frozenset[str]:
    """The parts of an index for `factor`."""
    return frozenset({*noise.values(), *map(_encoder, noise.values())})


def factor(state: QueryState, index: Index, lists: int, noise: Mapping[str, str]) -> float:
    """What fused scores are multiplied by, so that they compare with those of `lists` agreeing lists of weight 1.

    It is above 1 only where fewer lists were asked, or where the others found nothing. In the latter case a list of
    vectors counts only if its best hit is nearer to the query than everyday questions come to the collection: there
    is always a nearest chunk.
    """
    if not 0 < state.unanimous < lists * FIRST_RANK:
        return 1.0
    asked = [source for source in state.rankings if source not in FOLLOWERS]
    voted = [source for source in asked if len(state.rankings[source])]
    alone = len(voted) == 1 < len(asked) and voted[0] in noise
    if alone and deviations(state, index, voted[0], noise[voted[0]]) < _STANDS_OUT:
        return 1.0
    return lists * FIRST_RANK / state.unanimous


def deviations(state: QueryState, index: Index, source: str, part: str) -> float:
    """By how many standard deviations the best hit of a source, which has one, is nearer than everyday questions come.

    It is that of the query itself, without the terms that expansion took from the collection.
    """
    ranking, text = state.rankings[source], state.query.text
    vector = ranking.query_vector
    if vector is None or ("hypothesis" not in state.texts and {*state.texts.values()} - {text}):
        vector = index.part(_encoder(part)).encode_queries([text])[0]
    found: float = index.part(part).deviations(vector, ranking.chunks)
    return found


def _encoder(part: str) -> str:
    return part.replace("noise", "encoder", 1)
