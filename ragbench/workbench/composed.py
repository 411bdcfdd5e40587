"""A configuration as a value: overrides and stages that can be changed, searched with, and given as an arm."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

from ragbench.base.errors import ConfigError
from ragbench.config import choices, composition
from ragbench.config.function_stage import FunctionStage, insert, node_of
from ragbench.config.overrides import canonical, key_of, word, words
from ragbench.config.settings import Settings
from ragbench.search.engine.pipeline import Pipeline
from ragbench.search.stages.stage import Stage


@dataclass(frozen=True)
class CustomStage:
    """A stage of your own for the pipeline, placed before or after an entry of its `order`.

    `CustomStage("archive", DemoteArchived(0.5), before="cut")`: the name is then a switch in ablations, as `p6` is. The
    class must be a frozen dataclass that Python can import by name: define it in a module or in a cell of a notebook,
    not in a function. A function decorated with `@ragbench.stage` needs no `CustomStage`: it has a name and a position.
    """

    name: str
    stage: Stage
    before: str | None = None
    after: str | None = None

    def __post_init__(self) -> None:
        if (self.before is None) == (self.after is None):
            raise ConfigError(f"say where '{self.name}' goes: before='cut' or after='fuse', one of the two")
        if not dataclasses.is_dataclass(self.stage) or isinstance(self.stage, type):
            raise ConfigError(
                f"'{self.name}' must be a stage, got {type(self.stage).__name__}: decorate a function with "
                "@ragbench.stage, or make a frozen dataclass"
            )

    @classmethod
    def of(cls, part: CustomStage | FunctionStage) -> CustomStage:
        """Return `part` as a `CustomStage`; a stage made from a function has its own name and position."""
        return part if isinstance(part, CustomStage) else cls(type(part).__name__, part, **part.position)

    def into(self, settings: Settings) -> Settings:
        """The settings with this stage in the pipeline."""
        position = {"before": self.before} if self.before is not None else {"after": self.after or ""}
        return insert(settings, self.name, node_of(self.stage), position)


@dataclass(frozen=True)
class Composed:
    """Overrides and stages of your own; `pipeline` is what they make."""

    parts: tuple[str | CustomStage | FunctionStage, ...]

    def with_(self, *parts: str | CustomStage | FunctionStage, **values: Any) -> Composed:
        """The same with more overrides, stages or values: `with_(p6=True, dense={"depth": 50})`; later ones win."""
        composed = Composed((*self.parts, *parts, *words(values, choices.read())))
        composed.settings()
        return composed

    def settings(self, *more: str) -> Settings:
        """The composed configuration. Raises ConfigError for one that cannot be used."""
        return compose([*self.parts, *more])

    @property
    def pipeline(self) -> Pipeline:
        """Its stages in order."""
        return self.settings().pipeline

    @property
    def overrides(self) -> tuple[str, ...]:
        """The same as words for `ragbench run`, each key once. Raises ConfigError for a stage that no word names."""
        written: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                written.append(part)
            elif isinstance(part, FunctionStage):
                name = type(part).__name__
                fields = [field for field in dataclasses.fields(part) if field.name != "code"]
                values_set = [(field, getattr(part, field.name)) for field in fields]
                written += [
                    f"{name}=on",
                    *(word(f"{name}.{e.name}", value) for e, value in values_set if value != e.default),
                ]
            else:
                raise ConfigError(f"'{part.name}' is a stage of a script: decorate a function with @ragbench.stage")
        canonical_overrides = [override.removeprefix("+") for override in canonical(written, choices.read())]
        last = {key_of(override): position for position, override in enumerate(canonical_overrides)}
        return tuple(
            override for position, override in enumerate(canonical_overrides) if last[key_of(override)] == position
        )

    def __repr__(self) -> str:
        return repr(self.pipeline)

    def _repr_html_(self) -> str:
        return self.pipeline._repr_html_()


def pipeline(*parts: str | CustomStage | FunctionStage, **values: Any) -> Composed:
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


def compose(parts: list[Any]) -> Settings:
    """The settings of overrides and stages."""
    settings = composition.compose([part for part in parts if isinstance(part, str)])
    custom = [CustomStage.of(part) for part in parts if not isinstance(part, str)]
    for stage in custom:
        settings = stage.into(settings)
    return settings.check() if custom else settings
