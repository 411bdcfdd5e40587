"""A stage that a user defines anywhere, as a switch of the configuration."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ragbench.base.errors import ConfigError
from ragbench.config.own_stage import FunctionStage, insert, node_of
from ragbench.config.settings import Settings
from ragbench.search.stages.stage import Stage


@dataclass(frozen=True)
class Own:
    """A stage of your own for the pipeline, placed before or after an entry of its `order`.

    `Own("archive", DemoteArchived(0.5), before="cut")`: the name is then a switch in ablations, as `p6` is. The class
    must be a frozen dataclass that Python finds by name: in a module, or in a cell of a notebook, not in a function. A
    function decorated with `@ragbench.stage` needs no `Own`: it has a name and a place.
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
    def of(cls, part: Own | FunctionStage) -> Own:
        """An `Own` for a stage made from a function, with its name and place; an `Own` is returned unchanged."""
        return part if isinstance(part, Own) else cls(type(part).__name__, part, **part.place)

    def into(self, settings: Settings) -> Settings:
        """The settings with this stage in the pipeline."""
        place = {"before": self.before} if self.before is not None else {"after": self.after or ""}
        return insert(settings, self.name, node_of(self.stage), place)
