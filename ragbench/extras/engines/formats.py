"""Engines as formats of exports: they hold the documents, in a file or behind an address."""

from __future__ import annotations

from dataclasses import dataclass

from ragbench.base.types import ConfigError
from ragbench.extras.export.file_format import Request, Written
from ragbench.extras.export.measured_arm import Evidence, MeasuredArm


@dataclass(frozen=True)
class EngineFormat:
    """An engine in a file with this `ending`, or one that `--load` fills, at an address such as `example`."""

    ending: str = ""
    example: str = ""

    def check(self, request: Request) -> None:
        """Raise ConfigError for options of other formats, and for a format that needs an address."""
        if not self.example:
            request.refuse_load()
        elif request.load is None:
            instead = "" if request.out is None else " instead of --out"
            raise ConfigError(f"--format {request.format} writes no file: use --load {self.example}{instead}")

    def write(self, arm: MeasuredArm, request: Request, evidence: Evidence) -> Written:
        """Load the arm's search into a file or a server."""
        from ragbench.extras.engines import opened

        return opened.load_search(arm, request, request.load or request.output_path(arm, self.ending), evidence)


SQLITE = EngineFormat(".sqlite")
POSTGRES = EngineFormat(example="'postgres://localhost/docs?schema=notes'")
OPENSEARCH = EngineFormat(example="opensearch://localhost:9200/notes")
ELASTICSEARCH = EngineFormat(example="elasticsearch://localhost:9200/notes")
