"""The fusion methods of ranx (Bassani and Romelli, CIKM 2022): `fuse.method=ranx:NAME`, with `fuse.norm` as its `norm`.

A query is fused over the retrievers that returned something for it. Methods and norms that use ranks only get the order
of each ranking, where ties are already broken. Two methods are refused because they are not deterministic, and six
because they are trained on judgments. ranx compiles its functions with numba when they are first called, which takes
seconds for each; the environment variable NUMBA_CACHE_DIR names the folder that keeps the result.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ragbench.base.rankings import Ranking
from ragbench.base.types import ConfigError, did_you_mean

PREFIX = "ranx:"
WEIGHTED = frozenset({"mixed", "w_bordafuse", "wmnz", "wsum"})
"""Methods that use `fuse.weights`; in the others each retriever with a weight above 0 counts the same."""
_OF_SCORES = frozenset({"anz", "gmnz", "max", "med", "min", "mixed", "mnz", "sum", "wmnz", "wsum"})
_OF_RANKS = frozenset({"bordafuse", "isr", "log_isr", "logn_isr", "rbc", "rrf", "w_bordafuse"})
METHODS = _OF_SCORES | _OF_RANKS
_REFUSED = {
    **dict.fromkeys(("condorcet", "w_condorcet"), "breaks ties in the order of Python's hashes: results would change"),
    **dict.fromkeys(
        ("bayesfuse", "mapfuse", "posfuse", "probfuse", "segfuse", "slidefuse"), "is trained on relevance judgments"
    ),
}
_NORMS_OF_RANKS = frozenset({"borda", "rank"})
NORMS = ("min_max", "min_max_inverted", "max", "sum", "zmuv", "rank", "borda", "none")
"""The values of `fuse.norm` for methods of scores; `none` fuses the scores as they are."""
_PARAMETERS: Mapping[str, str] = MappingProxyType({"gmnz": "gamma", "logn_isr": "sigma", "rbc": "phi"})
_REQUIRED = ("gmnz", "rbc")
"""Methods whose parameter has no default."""


def problem(method: str, norm: str, params: Mapping[str, float]) -> tuple[str, str] | None:
    """The parameter of `fuse` that cannot be used, and why; None if there is none. `method` includes the prefix."""
    name = method.removeprefix(PREFIX)
    if name in _REFUSED:
        return "method", f"cannot be {method}, which {_REFUSED[name]}"
    if name not in METHODS:
        known = [PREFIX + known for known in sorted(METHODS)]
        return "method", f"cannot be {method}{did_you_mean(method, known, 'fusion methods of ranx')}"
    if norm not in NORMS:
        return "norm", f"must be one of {', '.join(NORMS)} for {method}, got {norm}"
    parameter = _PARAMETERS.get(name)
    for unknown in set(params) - {parameter}:
        accepted = f"it has {parameter}" if parameter else "it has none"
        return "params", f"names '{unknown}', which is not a parameter of {method}: {accepted}"
    if name in _REQUIRED and not params:
        return "params", f"must set {parameter} for {method}, such as fuse.params.{parameter}=0.8"
    return None


def fuse(
    queries: Sequence[Mapping[str, Ranking]],
    weights: Sequence[Mapping[str, float]],
    method: str,
    norm: str,
    k: float,
    params: Mapping[str, float],
) -> list[Ranking]:
    """The fused ranking of each query.

    Args:
        queries: The rankings of each query by retriever, none of them empty.
        weights: The weights of each query by retriever, all above 0.
        method: The method with its prefix, such as `ranx:mnz`.
        norm: One of `NORMS`.
        k: The constant of `ranx:rrf`.
        params: Further parameters of the method.
    """
    fused = [next(iter(rankings.values()), Ranking.empty()) for rankings in queries]  # where fewer than two returned
    together: dict[tuple[Any, ...], list[int]] = {}
    for number, (rankings, of_query) in enumerate(zip(queries, weights, strict=True)):
        if len(rankings) > 1:
            used = tuple(of_query[source] for source in rankings) if method.removeprefix(PREFIX) in WEIGHTED else ()
            together.setdefault((*rankings, *used), []).append(number)
    for numbers in together.values():
        first = numbers[0]
        runs = [[queries[number][source] for number in numbers] for source in queries[first]]
        given: dict[str, Any] = dict(params)
        if method == f"{PREFIX}rrf":
            given["k"] = k
        if method.removeprefix(PREFIX) in WEIGHTED:
            given["weights"] = [float(weights[first][source]) for source in queries[first]]
        for number, ranking in zip(numbers, _fuse(runs, method.removeprefix(PREFIX), norm, given), strict=True):
            fused[number] = ranking
    return fused


def _fuse(runs: Sequence[Sequence[Ranking]], method: str, norm: str, params: Mapping[str, Any]) -> list[Ranking]:
    """Fuse runs, each a list of rankings in the order of the queries."""
    ranx = _ranx()
    by_rank = method in _OF_RANKS or norm in _NORMS_OF_RANKS
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # numba warns for each function that it compiles
        fused = ranx.fuse(
            [ranx.Run({f"{n:09}": _hits(ranking, by_rank) for n, ranking in enumerate(run)}) for run in runs],
            norm=None if norm == "none" or method in _OF_RANKS else norm,
            method=method,
            params=dict(params),
        ).to_dict()
    return [_ranking(fused[f"{n:09}"]) for n in range(len(runs[0]))]


def _ranx() -> Any:
    try:
        import ranx
    except ModuleNotFoundError:
        raise ConfigError("fuse.method=ranx:NAME needs the package ranx: pip install 'ragbench[fusion]'") from None
    return ranx


def _hits(ranking: Ranking, by_rank: bool) -> dict[str, float]:
    """Scores by chunk; where only ranks count, numbers that decrease from hit to hit, because ranx sorts by score.

    All names of chunks have the same length: ranx pads shorter ones with arbitrary characters if it does not normalise.
    """
    scores = np.arange(len(ranking), 0, -1) if by_rank else ranking.scores.astype(np.float64)
    return {f"{chunk:010}": score for chunk, score in zip(ranking.chunks.tolist(), scores.tolist(), strict=True)}


def _ranking(scores: Mapping[str, float]) -> Ranking:
    chunks = np.array([int(chunk) for chunk in scores], dtype=np.int32)
    return Ranking.of(chunks, np.array([*scores.values()], dtype=np.float64))
