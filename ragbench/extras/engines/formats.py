"""Engines as formats of exports: those that hold the documents, and files of requests for search servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbench.base.errors import ConfigError
from ragbench.config.settings import Settings
from ragbench.export.file_format import Context, FileFormat, Request, Written
from ragbench.extras.engines import hybrid

if TYPE_CHECKING:
    from ragbench.export.measured_arm import MeasuredArm
    from ragbench.export.replay import Bench
    from ragbench.search.stages.fuse import Fuse


def _shipped(arm: MeasuredArm, request: Request, context: Context, ending: str) -> Written:
    from ragbench.extras.engines import shipping

    place = request.place(arm, ending)
    name, said, priced = shipping.ship(
        arm,
        request.format,
        None if request.load is not None else place,
        request.load,
        context.evidence,
        context.caution,
        request.max_loss,
        request.self_contained,
        context.progress,
        context.say,
    )
    out = place if request.load is None else name
    return Written(out, request.format, arm.name, context.evidence, context.caution, tuple(said), priced)


@dataclass(frozen=True)
class EngineFormat:
    """An engine that holds the documents: in a file with this `ending`; empty where only `--load` fills one."""

    ending: str

    def check(self, request: Request) -> None:
        """Raise ConfigError for options of other formats, and for a format that needs an address."""
        request.refuse_version()
        if request.load is None and not self.ending:
            instead = "" if request.out is None else " instead of --out"
            name = request.format
            raise ConfigError(f"--format {name} fills a folder: use --load {name}:///FOLDER/NAME{instead}")

    def write(self, arm: MeasuredArm, request: Request, context: Context) -> Written:
        """Load the arm's search into a file or a server."""
        return _shipped(arm, request, context, self.ending)


@dataclass(frozen=True)
class EngineFile(FileFormat):
    """A file of requests for a search server, or with an address the search in the server itself.

    `fusions`: names of the methods of `fuse` that it has; `nearest_of`: what is tried instead of another method;
    `even`: with equal weights.
    """

    fusions: Sequence[str] = ()
    nearest_of: Sequence[Fuse] = ()
    even: bool = False

    def check(self, request: Request) -> None:
        """Raise ConfigError for options of other formats."""
        if request.load is None:
            super().check(request)
        else:
            request.refuse_version()

    def write(self, arm: MeasuredArm, request: Request, context: Context) -> Written:
        """Write the file, or load the search into the server."""
        if request.load is not None:
            return _shipped(arm, request, context, self.ending)
        hybrid.require_source(arm.settings, request.format)
        return super().write(arm, request, context)

    def nearest(self, settings: Settings, bench: Bench, name: str) -> tuple[Settings, list[str]]:
        """The settings with the nearest fusion that the server has."""
        if hybrid.expresses(settings, self.fusions):
            return settings, []
        lacking = hybrid.fusion_of(settings)
        settings, said = bench.nearest(hybrid.retrieval(settings), self.nearest_of, even=self.even)
        return settings, [f"fuse: {name} lacks {lacking}; nearest that it has: {said}"]


SQLITE, POSTGRES, LANCEDB = EngineFormat(".sqlite"), EngineFormat(".sql"), EngineFormat("")
