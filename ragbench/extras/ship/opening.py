"""Open what `ragbench export` wrote, wherever it lies: a bundle in its folder, or an engine."""

from __future__ import annotations

from pathlib import Path

from ragbench.base.errors import BundleError, ConfigError, IndexError_
from ragbench.extras.ship import bundle, generation
from ragbench.extras.ship.address import engines
from ragbench.extras.ship.loaded_bundle import LoadedBundle, load_folder
from ragbench.models.access import Models

_TRIES = 5
"""Of opening a bundle that is refreshed at that moment."""


def load(
    folder: str | Path,
    *,
    corpus: str | Path | None = None,
    threads: int | None = None,
    models: Models | None = None,
) -> LoadedBundle:
    """Open a bundle with its index and models, or an engine that `ragbench export` loaded.

    Args:
        folder: The folder of a bundle, or the file or address of an engine.
        corpus: The folder of the documents now; they are compared with those of the bundle. A bundle without an index
            builds it from them.
        threads: The most threads of one model call; None uses all CPUs.
        models: The models of another bundle, to share them.

    Returns:
        A bundle that answers `search(query, top_n=10)`.

    Raises:
        BundleError: The folder is not a bundle, or was made of other documents.
        IndexError_: The index does not fit.
        ModelError: A model does not fit.
    """
    if (opened := engines(folder)) is not None:
        if corpus is not None:
            raise ConfigError(f"{folder} is an engine, which has no corpus: omit corpus")
        loaded: LoadedBundle = opened.load(folder, threads=threads, models=models)
        return loaded
    path = Path(folder).expanduser()

    def attempt() -> LoadedBundle:
        bundle.check_files(path, bundle.read_record(path))
        return load_folder(path, corpus, threads, models)

    for _ in range(_TRIES - 1):
        state_before = generation.state(path)
        try:
            return attempt()
        except (BundleError, IndexError_):
            if generation.state(path) == state_before:
                raise  # else a refresh has replaced what was being opened
    return attempt()
