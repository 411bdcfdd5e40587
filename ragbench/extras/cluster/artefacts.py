"""Index artefacts at an address of fsspec, so that machines build each of them once.

    <url>/<kind>/<fingerprint>.tar

A file is written under another name and moved, so that it is complete or not there; who reads it checks its digests.
"""

from __future__ import annotations

import logging
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from ragbench.base.types import FAILURES, ConfigError, IndexError_, failure
from ragbench.index.artefacts import MANIFEST, Artefact

_LOG = logging.getLogger(__name__)


class ArtefactBucket:
    """The artefacts below `url`; while it cannot be reached, all are built here."""

    def __init__(self, url: str) -> None:
        """Raises ConfigError for a kind of address that is unknown, or whose package is not installed."""
        self.url = url
        try:
            from fsspec.core import url_to_fs

            self._files, self._root = url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise ConfigError(
                f"artefacts.url={url} cannot be used ({error}): install ragbench[cluster] and the package of fsspec "
                "for this kind of address, such as s3fs for s3://"
            ) from None

    def fetch(self, kind: str, fingerprint: str, folder: Path) -> bool:
        """Fill an empty folder with an artefact; False if it is not there or cannot be reached.

        Raises IndexError_ for a damaged archive.
        """
        path = self._path(kind, fingerprint)
        with self._warning(f"downloading {kind} {fingerprint}"):
            if not self._files.exists(path):
                return False
            try:
                with self._files.open(path, "rb") as file, tarfile.open(fileobj=file, mode="r|") as tar:
                    tar.extractall(folder, filter="data")
            except tarfile.TarError as error:
                raise IndexError_(f"artefact {kind} {fingerprint} was damaged on its way: {error}") from None
            _LOG.info(f"downloaded {kind} {fingerprint} ({self._size(path)}) from {self.url}")
            return True
        return False

    def keep(self, artefact: Artefact) -> None:
        """Upload an artefact unless it is there."""
        name, path = f"{artefact.kind} {artefact.fingerprint}", self._path(artefact.kind, artefact.fingerprint)
        with self._warning(f"uploading {name}"):
            if not self._files.exists(path):
                self._upload(artefact, path)
                _LOG.info(f"uploaded {name} ({self._size(path)}) to {self.url}")

    def forget(self, kind: str, fingerprint: str) -> None:
        """Delete an artefact that was damaged, or is to be built again."""
        with self._warning(f"deleting {kind} {fingerprint}"):
            if self._files.exists(path := self._path(kind, fingerprint)):
                self._files.rm(path)

    def _upload(self, artefact: Artefact, path: str) -> None:
        draft = f"{path}.{uuid4().hex}"
        if self._files.exists(self._root):  # else it would make a bucket, or a folder where a disk is not mounted
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
        try:
            with self._files.open(draft, "wb") as file, tarfile.open(fileobj=file, mode="w|") as tar:
                for name in (*artefact.manifest["files"], MANIFEST):
                    tar.add(artefact.folder / name, name)
            self._files.mv(draft, path)
        finally:
            if self._files.exists(draft):
                self._files.rm(draft)

    def _path(self, kind: str, fingerprint: str) -> str:
        return f"{self._root}/{kind}/{fingerprint}.tar"

    def _size(self, path: str) -> str:
        return f"{self._files.size(path) / 2**20:,.1f} MiB"

    @contextmanager
    def _warning(self, task: str) -> Iterator[None]:
        try:
            yield
        except IndexError_:
            raise
        except FAILURES as error:  # each kind of address has errors of its own
            _LOG.warning(f"artefacts.url={self.url}: {task} failed ({failure(error)}); the run goes on without it")
