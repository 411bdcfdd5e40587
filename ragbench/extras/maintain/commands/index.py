"""`ragbench index` (Maintain the installation): build the index artefacts and inspect them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ragbench.base import console
from ragbench.base.types import FAILED

if TYPE_CHECKING:
    from ragbench.index.artefacts import Artefact, ArtefactStore

DESCRIPTION = "Build the index artefacts that a configuration needs, or list or check the artefacts on disk."
EXAMPLES = """examples:
  ragbench index                       build what the default pipeline needs
  ragbench index exp=all              the same for a preset
  ragbench index --rebuild             rebuild the artefacts, even if they exist
  ragbench index --list                every finished artefact: kind, name, size, seconds to build
  ragbench index --check               read every artefact in full; exit code 1 if one is corrupted
  ragbench index artefacts.url=s3://bucket/ragbench    download what is there, build the rest and upload it
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do, overrides and output options."""
    parser.add_argument("--rebuild", action="store_true", help="delete and rebuild the artefacts of this configuration")
    parser.add_argument("--list", action="store_true", help="list the finished artefacts")
    parser.add_argument("--check", action="store_true", help="check the artefacts against their digests")
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Build or list."""
    from ragbench.config import composition
    from ragbench.index.artefacts import ArtefactStore
    from ragbench.index.vocabulary import Vocabulary

    settings = composition.compose(arguments.overrides)
    if arguments.check:
        return _check(ArtefactStore(settings.index_folder), arguments.json)
    if arguments.list:
        artefacts = list(ArtefactStore(settings.index_folder).list())
    else:
        from ragbench.config.settings import ArmBuilder

        benchmark = settings.documents()
        with console.progress(arguments.quiet or arguments.json):
            builder = ArmBuilder.of(settings, benchmark)
            (arm,) = builder.arms([settings])
            arm.index.prepare(arm.pipeline.needs)
            old = arm.index.artefacts()
            if arguments.rebuild and not all(artefact.built for artefact in old):
                arm.index.close()
                for artefact in old:
                    settings.artefacts.forget(artefact)
                (arm,) = builder.arms([settings])
                arm.index.prepare(arm.pipeline.needs)
            artefacts = arm.index.artefacts()
    rows = [
        {
            "kind": artefact.kind,
            "name": artefact.fingerprint,
            "bytes": artefact.size_bytes,
            "build seconds": float(artefact.manifest["build_seconds"]),
            "state": "built now" if artefact.built else "ready",
            "vectors": vector_origins(artefact),
            "folder": str(artefact.folder),
            **({"terms": len(Vocabulary(artefact.folder).terms)} if artefact.kind == "vocabulary" else {}),
        }
        for artefact in artefacts
    ]
    if arguments.json:
        console.print_json(rows)
    else:
        console.print_table(rows, formats={"build seconds": ".2f", "terms": ".0f"})
    return 0


def _check(store: ArtefactStore, as_json: bool) -> int:
    """Read all; a damaged artefact is built again when it is next needed."""
    rows = [{"kind": kind, "name": name, "state": reason or "whole"} for kind, name, reason in store.check()]
    if as_json:
        console.print_json(rows)
    else:
        console.print_table(rows)
    return FAILED if any(row["state"] != "whole" for row in rows) else 0


_ORIGINS = {"shipped": "came with ragbench", "cache": "from the cache"}


def vector_origins(artefact: Artefact) -> str:
    """Where its vectors came from when it was built, if not all were computed; its time is that of the others."""
    counts = artefact.manifest.get("vectors", {})
    parts = [f"{counts[origin]:,} {phrase}" for origin, phrase in _ORIGINS.items() if counts.get(origin)]
    return f"of {sum(counts.values()):,}: {', '.join(parts)}" if parts else ""
