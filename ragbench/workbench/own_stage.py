"""A stage of one's own, wherever it is defined, as a switch of the configuration."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from ragbench.configuration import Settings
from ragbench.errors import ConfigError
from ragbench.stages.stage import Stage


@dataclass(frozen=True)
class Own:
    """A stage of your own for the pipeline, placed before or after an entry of its `order`.

    `Own("archive", DemoteArchived(0.5), before="cut")`: the name is then a switch in ablations, as `p6` is. The class
    must be a frozen dataclass that Python finds by name: in a module, or in a cell of a notebook, not in a function.
    """

    name: str
    stage: Stage
    before: str | None = None
    after: str | None = None

    def __post_init__(self) -> None:
        if (self.before is None) == (self.after is None):
            raise ConfigError(f"say where '{self.name}' goes: before='cut' or after='fuse', one of the two")

    def into(self, settings: Settings) -> Settings:
        """The settings with this stage in the pipeline."""
        if self.name in settings.config:
            raise ConfigError(f"'{self.name}' is taken in the configuration: give the stage another name")
        order = list(settings.config["order"])
        neighbour = self.before or self.after
        if neighbour not in order:
            raise ConfigError(f"'{neighbour}' is no entry of order; it has {', '.join(order)}")
        order.insert(order.index(neighbour) + (self.before is None), self.name)
        kind = type(self.stage)
        node = {"_target_": f"{kind.__module__}.{kind.__qualname__}", **dataclasses.asdict(self.stage)}  # type: ignore[call-overload]
        return dataclasses.replace(settings, config={**settings.config, self.name: node, "order": order})
