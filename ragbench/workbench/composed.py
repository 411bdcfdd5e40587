"""A configuration as a value: overrides that can be changed, searched with, and given as an arm."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ragbench.config import available, composition
from ragbench.config.overrides import canonical, key_of, word, words
from ragbench.config.settings import Settings
from ragbench.search.engine.pipeline import Pipeline
from ragbench.search.function_stage import FunctionStage


@dataclass(frozen=True)
class Composed:
    """Overrides that can be changed; `pipeline` is what they make."""

    parts: tuple[str, ...]

    def with_(self, *parts: str | FunctionStage, **values: Any) -> Composed:
        """The same with more overrides, stages or values: `with_(p6=True, dense={"depth": 50})`; later ones win."""
        composed = Composed((*self.parts, *words_of(parts), *words(values, available.read())))
        composed.settings()
        return composed

    def settings(self, *more: str) -> Settings:
        """The composed configuration. Raises ConfigError for one that cannot be used."""
        return composition.compose([*self.parts, *more])

    @property
    def pipeline(self) -> Pipeline:
        """Its stages in order."""
        return self.settings().pipeline

    @property
    def overrides(self) -> tuple[str, ...]:
        """The same as words for `ragbench run`, each key once."""
        canonical_overrides = [override.removeprefix("+") for override in canonical(self.parts, available.read())]
        last = {key_of(override): position for position, override in enumerate(canonical_overrides)}
        return tuple(
            override for position, override in enumerate(canonical_overrides) if last[key_of(override)] == position
        )

    def __repr__(self) -> str:
        return repr(self.pipeline)

    def _repr_html_(self) -> str:
        return self.pipeline._repr_html_()


def pipeline(*parts: str | FunctionStage, **values: Any) -> Composed:
    """Return a configuration as a value, for an arm of `Experiment.arms`.

    Args:
        *parts: Overrides such as `"exp=baseline"`, and your own stages.
        **values: Overrides by key; a dict sets several keys of a section.

    Returns:
        A composed pipeline. `with_(...)` returns a changed one, `overrides` are the words for `ragbench run`.

    Raises:
        ConfigError: An override is unknown or has an invalid value.

    Example:
        >>> import ragbench
        >>> ragbench.pipeline("exp=baseline").with_(p6=True, dense={"depth": 50}).overrides
        ('exp=baseline', 'p6=on', 'dense.depth=50')
    """
    return Composed(()).with_(*parts, **values)


def words_of(parts: Iterable[str | FunctionStage]) -> list[str]:
    """Overrides, and those that turn on stages of your own, in order."""
    return [override for part in parts for override in ((part,) if isinstance(part, str) else _words_of_stage(part))]


def _words_of_stage(stage: FunctionStage) -> Iterator[str]:
    name = type(stage).__name__
    yield f"{name}=on"
    yield from (word(f"{name}.{key}", value) for key, value in stage.changed.items())
