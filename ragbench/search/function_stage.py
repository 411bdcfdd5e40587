"""A function as a stage: `@ragbench.stage` makes it a switch with the name of the function, on the command line too.

    @ragbench.stage(before="cut")
    def demote_changelogs(query, hits, factor: float = 0.5):
        return [hit.score * (factor if "changelog" in hit.docno else 1) for hit in hits]

It gets the query's text and the hits after fusion, best first, and returns a new score for each; None drops the hit.
Further parameters have defaults and are keys of the configuration: `demote_changelogs=on demote_changelogs.factor=0.3`.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ragbench.base import foreign, registry
from ragbench.base.options import option
from ragbench.base.types import ConfigError
from ragbench.models.functions import as_array, in_32_bits
from ragbench.search.stages.stage import Index, QueryState, Ranking, Reorder, fused

_CODE = "code"


@dataclass(frozen=True)
class _StageHit:
    """A hit as a function sees it; `rank` begins at 1, `frontmatter` is that of its document."""

    docno: str
    path: str
    title: str
    header_path: tuple[str, ...]
    text: str
    score: float
    rank: int
    frontmatter: Mapping[str, Any]


@dataclass(frozen=True)
class FunctionStage(Reorder):
    """A stage that calls a function; its field `code` is a digest of the function, so that results belong to it."""

    needs: ClassVar[frozenset[str]] = frozenset({"chunks"})
    function: ClassVar[Callable[..., Any]]
    current: ClassVar[str] = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if getattr(self, _CODE) != self.current:
            raise ConfigError(
                f"the code of stage '{type(self).__name__}' has changed since this configuration was written: run again"
            )

    @property
    def parameters(self) -> Mapping[str, Any]:
        """The values of the function's further parameters, by name."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self) if f.name != _CODE}

    @property
    def changed(self) -> Mapping[str, Any]:
        """The parameters that differ from their defaults."""
        defaults = {f.name: f.default for f in dataclasses.fields(self)}
        return {name: value for name, value in self.parameters.items() if value != defaults[name]}

    def describe(self) -> str:
        """Its name and parameters."""
        return " ".join([type(self).__name__, *(f"{name}={value}" for name, value in self.parameters.items())])

    def reorder(self, state: QueryState, index: Index) -> Ranking:
        """The hits with the scores that the function gives."""
        ranking, table = fused(state), index.chunks
        hits = []
        pairs = zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True)
        for rank, (chunk, score) in enumerate(pairs, start=1):
            document = int(table.document[chunk])
            names = (table.docnos[document], table.paths[document], table.titles[document])
            texts = table.header_path(chunk), table.text(chunk)
            hits.append(_StageHit(*names, *texts, score, rank, table.frontmatter_of(document)))
        label = f"stage '{type(self).__name__}'"
        function, text = type(self).function, state.query.text
        scores = foreign.call(label, lambda: list(function(text, tuple(hits), **self.parameters)))
        if len(scores) != len(hits):
            raise ConfigError(f"{label} must give a score for each of {len(hits)} hits, gave {len(scores)}")
        stays = [score is not None for score in scores]
        changed_scores = as_array(label, [score for score in scores if score is not None], sum(stays), 1)
        return Ranking.of(ranking.chunks[np.array(stays, dtype=np.bool_)], in_32_bits(changed_scores, label))


def stage(function: Callable[..., Any] | None = None, *, before: str | None = None, after: str | None = None) -> Any:
    """Make a function a stage before or after an entry of `order`, by default before `cut`.

    Args:
        function: Takes the text of a query and its hits after fusion, best first: each has `docno`, `path`, `title`,
            `header_path`, `text`, `score`, `rank` (from 1) and `frontmatter`. Returns a score for each hit, in the same
            order; None drops the hit. Further parameters need defaults.
        before: The entry of `order` before which it runs.
        after: The entry of `order` after which it runs.

    Returns:
        A class named as the function: `demote_changelogs(factor=0.3)` is a stage for `Experiment.arms`.

    Raises:
        ConfigError: The function has no `query` or `hits`; a further parameter has no default, or is named as a member
            of `Stage`.

    Example:
        >>> import ragbench
        >>> @ragbench.stage(after="fuse")
        ... def keep_guides(query, hits, folder="guides"):
        ...     return [hit.score if hit.docno.startswith(folder) else None for hit in hits]
        >>> keep_guides(folder="how-to").describe()
        'keep_guides folder=how-to'
    """
    if before is not None and after is not None:
        raise ConfigError("say where the stage goes with before= or after=, not both")
    if function is None:
        return lambda inner: stage(inner, before=before, after=after)
    _, *rest = parameters = list(inspect.signature(function).parameters.values())
    if len(parameters) < 2 or any(parameter.default is inspect.Parameter.empty for parameter in rest[1:]):
        raise ConfigError(f"stage '{function.__name__}' must take (query, hits) and parameters with defaults")
    if taken := [parameter.name for parameter in rest[1:] if hasattr(FunctionStage, parameter.name)]:
        raise ConfigError(f"stage '{function.__name__}' must rename its parameter '{taken[0]}': every stage has one")
    code = foreign.code_digest(function)
    position: dict[str, Any] = {"after": after} if after else {"before": before or "cut"}
    fields = [
        (parameter.name, _type_of(parameter), dataclasses.field(default=parameter.default)) for parameter in rest[1:]
    ]
    stage_class = dataclasses.make_dataclass(
        function.__name__,
        [*fields, (_CODE, str, dataclasses.field(default=code))],
        bases=(FunctionStage,),
        namespace={
            "function": staticmethod(function),
            "current": code,
            "__doc__": function.__doc__ or f"The function {function.__name__} as a stage.",
        },
        frozen=True,
    )
    stage_class.__module__ = function.__module__  # make_dataclass of Python 3.12 and newer sets that of its caller
    stage_class.__qualname__ = function.__qualname__
    registry.register("stage", function.__name__, stage_class)
    if "<locals>" not in function.__qualname__:  # Hydra names a class by where it can be imported
        option(function.__name__, **position)(stage_class)
    return stage_class


def _type_of(parameter: inspect.Parameter) -> Any:
    annotation = parameter.annotation
    return type(parameter.default) if annotation is inspect.Parameter.empty else annotation
