"""Where a measured search is kept: the folder of a bundle, or an engine that `ragbench export` loaded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from ragbench.base import registry
from ragbench.base.types import BundleError, ConfigError, IndexError_
from ragbench.extras.export.gate import Check
from ragbench.extras.ship import bundle, checks, generation
from ragbench.extras.ship.address import is_remote
from ragbench.extras.ship.loaded_bundle import LoadedBundle, StoredBundle, load_folder
from ragbench.extras.ship.refresh import Refreshed, Refresher
from ragbench.models import resolve

_TRIES = 5
"""Of opening a bundle that is refreshed at that moment."""
LATENCY_TOLERANCE = 0.5
"""How much higher p95 may be than the measured one, as a share of it."""


class Follower(Protocol):
    """Keeps a deployment up to date with the folder `corpus`; `beside` is a file that changes with the deployment."""

    corpus: Path

    @property
    def beside(self) -> Path:
        """A file that is replaced when another search replaces this one."""
        ...

    def refresh(self, allow_shrink: bool = False) -> Refreshed:
        """Serve what is in the folder now. Raises CorpusError when less than half of the documents are left."""
        ...


class Deployment(Protocol):
    """A measured search where it is kept."""

    def open(self, *, models: resolve.Models | None = None) -> LoadedBundle:
        """Open it, as `load` says."""
        ...

    def check(self, options: checks.Options) -> Iterator[Check]:
        """The outcome of every check that it has, one by one."""
        ...

    def follower(self, corpus: Path | None) -> Follower:
        """What keeps it up to date with a folder of markdown (None: the one that it names). Raises BundleError."""
        ...


class BundleFolder:
    """The folder of a bundle."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.expanduser()

    def open(self, *, models: resolve.Models | None = None) -> LoadedBundle:
        """Open it; again if it was refreshed meanwhile."""
        for _ in range(_TRIES - 1):
            state_before = generation.state(self.folder)
            try:
                return self._open(models)
            except (BundleError, IndexError_):
                if generation.state(self.folder) == state_before:
                    raise  # else a refresh has replaced what was being opened
        return self._open(models)

    def _open(self, models: resolve.Models | None) -> LoadedBundle:
        stored = StoredBundle.read(self.folder)
        bundle.check_files(self.folder, stored.record)
        return load_folder(stored, models)

    def check(self, options: checks.Options) -> Iterator[Check]:
        """Check its files, models and documents, then what it answers."""
        return checks.of_folder(self.folder, options)

    def follower(self, corpus: Path | None) -> Refresher:
        """What keeps it up to date."""
        return Refresher(self.folder, corpus)


def deployment(location: str | Path) -> Deployment:
    """What is kept in a folder, in a file, or behind an address. ConfigError where no installed extra opens engines."""
    engines = registry.find("hook", "engines")
    engine: Deployment | None = engines(location) if engines is not None else None
    if engine is not None:
        return engine
    if is_remote(str(location)):
        raise ConfigError(f"{location} is an engine, which needs ragbench/extras/engines: install ragbench[all]")
    return BundleFolder(Path(location))


def load(folder: str | Path, *, models: resolve.Models | None = None) -> LoadedBundle:
    """Open a bundle with its index and models, or an engine that `ragbench export` loaded.

    Args:
        folder: The folder of a bundle, or the file or address of an engine.
        models: The models of another bundle, to share them.

    Returns:
        A bundle that answers `search(query, top_n=10)`.

    Raises:
        BundleError: The folder is not a bundle.
        IndexError_: The index does not fit.
        ModelError: A model does not fit.
    """
    return deployment(folder).open(models=models)


def verify(
    folder: Path | str,
    *,
    corpus: Path | None = None,
    latency_tolerance: float = LATENCY_TOLERANCE,
    latency: bool = True,
) -> Iterator[Check]:
    """Check a bundle, or an engine by its file or address, part by part and yield each outcome.

    Raises BundleError for a folder that is not a bundle.

    `corpus`: the folder of the documents now; without it, a bundle is not compared with documents that are missing.
    """
    if latency_tolerance < 0:
        raise ConfigError(f"--latency-tolerance must be at least 0, got {latency_tolerance:g}")
    yield from deployment(folder).check(checks.Options(corpus, latency_tolerance if latency else None))
