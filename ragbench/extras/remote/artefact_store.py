"""Index artefacts shared between machines in a folder or an object store: built once, fetched by the others.

    <url>/<kind>/<fingerprint>/artefact.json     {"archive": NAME}, written last: without it the artefact does not exist
                               <NAME>.tar        the artefact's folder with its manifest
                               claim-<n>         a machine is building; only that machine renews the claim
          caches/<table>/<digest>.arrow          rows of the caches of models (`models.segments`), never changed

`url` is anything fsspec opens: a folder, `s3://bucket/prefix`, `memory://`. Neither renaming nor a common clock is
needed: an archive has a unique name and is valid when `artefact.json` names it. A claim expires when it does not change
for `_EXPIRY_SECONDS` by the clock of a waiting machine. That machine then creates the next claim, which only one can.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import tarfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragbench.base.errors import ConfigError, IndexError_, redacted
from ragbench.base.files import why_unreadable
from ragbench.boundary.json import read_json, read_json_file
from ragbench.extras.remote import segments
from ragbench.index.artefacts import MANIFEST, Artefact, damage_of
from ragbench.models.cache import TABLES
from ragbench.models.store import Store

POINTER = "artefact.json"
_CACHES = "caches"
_EXPIRY_SECONDS = 60.0

Say = Callable[[str], None]


@dataclass
class RemoteStore:
    """Artefacts below a URL; another machine takes over a claim that is not renewed for `expiry_seconds`."""

    url: str
    say: Say = lambda message: None
    expiry_seconds: float = _EXPIRY_SECONDS
    _files: Any = field(init=False, repr=False)
    _root: str = field(init=False, repr=False)
    _damaged: set[str] = field(default_factory=set, repr=False)
    _offered: set[str] = field(default_factory=set, repr=False)

    def __post_init__(self) -> None:
        import fsspec

        try:
            self._files, self._root = fsspec.core.url_to_fs(self.url, use_listings_cache=False)
        except ImportError:
            raise ConfigError(
                f"artefacts.url={self.url} needs a library that is not installed: for s3:// run "
                "pip install 'ragbench[s3]', for others see the fsspec package"
            ) from None
        except ValueError as error:
            raise ConfigError(f"artefacts.url={self.url} cannot be opened: {error}") from None
        # Object stores have no folders; making one could create a bucket with a misspelt name.
        self._buckets = bool({"s3", "gs", "abfs"} & set(_as_tuple(self._files.protocol)))

    def obtain(self, kind: str, fingerprint: str, draft: Path, build: Callable[[], Artefact]) -> Artefact | None:
        """Fetch an artefact's folder into `draft` and return None; or build it here, share it and return it.

        Waits while another machine builds it. Raises IndexError_ when the store cannot be used.
        """
        folder = f"{self._root}/{kind}/{fingerprint}"
        watched, since = "", time.monotonic()
        while True:
            with self._errors_as_sentence():
                if self._fetch(folder, kind, fingerprint, draft):
                    return None
                claims = self._claims(folder)
                claim_text = self._read(claims[-1]) if claims else ""
                if claim_text != watched:
                    watched, since = claim_text, time.monotonic()
                expired = time.monotonic() - since >= self.expiry_seconds
                claim = self._create_claim(folder, claims) if not claims or expired else None
                # Another machine may have finished it before the claim.
                if claim and self._fetch(folder, kind, fingerprint, draft):
                    self._remove(self._claims(folder))
                    return None
            if claim:
                with self._renewing(claim):
                    artefact = build()
                    self._publish(folder, artefact)
                return artefact
            time.sleep(min(1.0, self.expiry_seconds / 10))

    def offer(self, artefact: Artefact) -> None:
        """Share an artefact that exists here, unless the store has it or another machine is sharing it."""
        folder = f"{self._root}/{artefact.kind}/{artefact.fingerprint}"
        if folder in self._offered:
            return
        self._offered.add(folder)
        with self._errors_as_sentence():
            needed = self._pointer(folder) is None and not self._claims(folder)
            claim = self._create_claim(folder, []) if needed else None
        if claim:
            with self._renewing(claim):
                self._publish(folder, artefact)

    def names(self, folder: str) -> list[str]:
        """The names in a folder of the store, sorted; none when the folder does not exist."""
        with self._errors_as_sentence():
            return [name.rpartition("/")[2] for name in self._names(f"{self._root}/{folder}")]

    def get(self, name: str) -> bytes:
        """The content of a file of the store."""
        with self._errors_as_sentence():
            return bytes(self._files.cat_file(f"{self._root}/{name}"))

    def put(self, name: str, content: bytes) -> None:
        """Write a file of the store; other machines may see an incomplete file meanwhile."""
        with self._errors_as_sentence():
            if not self._buckets:
                self._files.makedirs(f"{self._root}/{name}".rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(f"{self._root}/{name}", content)

    def fetch_caches(self, folder: Path) -> None:
        """Fetch every segment that the caches in `folder` lack. IndexError_ when the store cannot be used."""
        for table, store in _caches(folder):
            remote_names = [name for name in self.names(f"{_CACHES}/{table}") if name.endswith(segments.SUFFIX)]
            if not remote_names:
                continue  # so that no empty file is made
            for name in sorted(set(remote_names) - segments.known_segments(store)):
                if not segments.import_segment(store, name, self.get(f"{_CACHES}/{table}/{name}")):
                    self.say(f"{self.url}/{_CACHES}/{table}/{name} is damaged or not yet complete; it is excluded")
            store.close()

    def share_caches(self, folder: Path) -> None:
        """Upload the segments of the caches in `folder` that it lacks. IndexError_ when the store cannot be used."""
        for table, store in _caches(folder):
            if not store.path.exists():
                continue
            for name, content, rows in segments.new_segments(store):
                self.put(f"{_CACHES}/{table}/{name}", content)
                segments.mark_shared(store, name, rows)
            store.close()

    def _fetch(self, folder: str, kind: str, fingerprint: str, draft: Path) -> bool:
        """Unpack the artefact; False when it is missing or damaged."""
        archive = self._pointer(folder)
        if archive is None or archive in self._damaged:
            return False
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        try:
            with (
                self._files.open(f"{folder}/{archive}", "rb") as stream,
                tarfile.open(fileobj=stream, mode="r|") as tar,
            ):
                tar.extractall(draft, filter="data")
            manifest = read_json_file(draft / MANIFEST, own=True)
            reason = damage_of(manifest, kind, fingerprint, draft, in_full=True)
        except (tarfile.TarError, FileNotFoundError, EOFError, ValueError, KeyError, TypeError) as error:
            reason = f"it cannot be unpacked ({why_unreadable(error)})"
        if reason is not None:
            self.say(f"{redacted(self.url)}/{kind}/{fingerprint} is damaged: {reason}; it is built again")
            self._damaged.add(archive)
            shutil.rmtree(draft, ignore_errors=True)
        return reason is None

    def _publish(self, folder: str, artefact: Artefact) -> None:
        """Pack the folder under a new name, write the pointer, then remove the claims and files of other attempts."""
        archive = f"{uuid.uuid4().hex}.tar"
        with self._errors_as_sentence():
            with (
                self._files.open(f"{folder}/{archive}", "wb") as stream,
                tarfile.open(fileobj=stream, mode="w|") as tar,
            ):
                for name in (MANIFEST, *artefact.manifest["files"]):
                    tar.add(artefact.folder / name, name)
            self._files.pipe_file(f"{folder}/{POINTER}", json.dumps({"archive": archive}).encode())
            self._remove([name for name in self._names(folder) if name.rpartition("/")[2] not in (archive, POINTER)])

    def _pointer(self, folder: str) -> str | None:
        try:
            # An incomplete pointer, which is still being written, does not count.
            return str(read_json(self._read(f"{folder}/{POINTER}") or "{}")["archive"])
        except (ValueError, KeyError, TypeError):
            return None

    def _claims(self, folder: str) -> list[str]:
        return [name for name in self._names(folder) if "/claim-" in name]

    def _create_claim(self, folder: str, claims: list[str]) -> str | None:
        """Create the next claim; None when another machine was faster."""
        name = f"{folder}/claim-{int(claims[-1].rpartition('-')[2]) + 1 if claims else 1:06}"
        try:
            if not self._buckets:
                self._files.makedirs(folder, exist_ok=True)
            self._files.pipe_file(name, uuid.uuid4().hex.encode(), mode="create")
        except FileExistsError:
            return None
        return name

    @contextlib.contextmanager
    def _renewing(self, claim: str) -> Iterator[None]:
        """Renew the claim regularly; remove it after a failure, so that others need not wait until it expires."""
        finished = threading.Event()

        def renew() -> None:
            while not finished.wait(self.expiry_seconds / 4):
                # The build goes on when the store is unreachable for a moment.
                with contextlib.suppress(OSError):
                    self._files.pipe_file(claim, uuid.uuid4().hex.encode())

        thread = threading.Thread(target=renew, daemon=True)
        thread.start()
        try:
            yield
        except BaseException:
            finished.set()
            thread.join()
            self._remove([claim])
            raise
        finally:
            finished.set()
            thread.join()

    def _names(self, folder: str) -> list[str]:
        try:
            return sorted(str(name) for name in self._files.ls(folder, detail=False))
        except FileNotFoundError:
            return []

    def _read(self, name: str) -> str:
        try:
            return str(self._files.cat_file(name).decode())
        except FileNotFoundError:
            return ""

    def _remove(self, names: list[str]) -> None:
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                self._files.rm_file(name)

    @contextlib.contextmanager
    def _errors_as_sentence(self) -> Iterator[None]:
        """Raise errors of the store's library as IndexError_ with one sentence."""
        try:
            yield
        except Exception as error:
            library = type(error).__module__.partition(".")[0]
            if isinstance(error, OSError) or library in ("botocore", "aiobotocore", "s3fs", "aiohttp"):
                first = (str(error).splitlines() or [""])[0]
                raise IndexError_(
                    f"artefacts.url={self.url} cannot be used ({type(error).__name__}: {first}): check that it exists, "
                    "that you may write there, and the credentials, or set artefacts.url=null"
                ) from error
            raise


def _as_tuple(protocol: str | tuple[str, ...]) -> tuple[str, ...]:
    return (protocol,) if isinstance(protocol, str) else tuple(protocol)


def _caches(folder: Path) -> Iterator[tuple[str, Store]]:
    return ((table, Store(folder / f"{table}.sqlite", table)) for table in TABLES)
