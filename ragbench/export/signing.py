"""Signatures of bundles: the public key tells whether a bundle was signed and has not changed since.

A signature (Ed25519) covers the digests of the files in a bundle's folder and of the manifests of its artefacts, which
hold the digests of all other files, the number of the generation and the time. It is a file in `signatures/` named by
the digest of `generation.json` (before the first refresh: of `bundle.json`), so that a generation and its signature
take effect at the same moment. Then all earlier signatures are deleted: a refreshed bundle without `generation.json`
is unsigned, not its export again. Who kept copies of an earlier generation is refused by `ragbench.export.memory`.
"""

from __future__ import annotations

import base64
import datetime
import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import files
from ragbench.base.errors import BundleError, ConfigError
from ragbench.base.fingerprint import canonical, text_digest
from ragbench.boundary.json import read_json_file
from ragbench.index.artefact import MANIFEST, Artefact

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FOLDER = "signatures"
RECORD, GENERATION, INDEX = "bundle.json", "generation.json", "index"
_MOST_BYTES = 10_000_000
_TRIES, _PAUSE_S = 5, 0.05


@dataclass(frozen=True)
class Signed:
    """What was signed: the number of the generation, the time in ISO 8601 (UTC), the digests of the files by name."""

    generation: int
    made: str
    files: Mapping[str, str]

    @property
    def export(self) -> str:
        """The digest of the record, the same for all generations of one export."""
        return self.files[RECORD]

    def covers(self, artefact: Artefact) -> bool:
        """Whether an artefact, whose files are those of its manifest, was signed."""
        signed = self.files.get(_manifest(artefact.kind, artefact.fingerprint))
        return signed == files.sha256(artefact.folder / MANIFEST)


def private_key(path: Path) -> Ed25519PrivateKey:
    """The key in a PEM file without a password. Raises ConfigError for any other file."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = _load("--sign", path, lambda raw: serialization.load_pem_private_key(raw, None))
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(f"--sign {path} is not an Ed25519 key: make one with openssl genpkey -algorithm ed25519")
    return key


def public_key(path: Path) -> Ed25519PublicKey:
    """The public half of a key in a PEM file. Raises ConfigError for any other file."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    key = _load("--key", path, serialization.load_pem_public_key)
    if not isinstance(key, Ed25519PublicKey):
        raise ConfigError(f"--key {path} is not an Ed25519 key: write the public half with openssl pkey -pubout")
    return key


def sign(
    folder: Path, key: Ed25519PrivateKey, artefacts: Iterable[Artefact], text: str | None = None, generation: int = 0
) -> None:
    """Sign a bundle with the artefacts that it serves: as it is now, or with `text` as that of its `generation.json`.

    The present signature stays, too, until `forget_others` is called after the generation was published.
    """
    names = [path.name for path in folder.iterdir() if path.is_file() and path.name[0] != "."]
    names += [_manifest(each.kind, each.fingerprint) for each in artefacts]
    digests = {name: files.sha256(folder / name) for name in names}
    if text is not None:
        digests[GENERATION] = text_digest(text)
    signed = Signed(generation, datetime.datetime.now(datetime.UTC).isoformat(), digests)
    row = {"generation": signed.generation, "made": signed.made, "files": digests}
    row["signature"] = base64.b64encode(key.sign(_message(signed))).decode()
    place = folder / FOLDER
    place.mkdir(exist_ok=True)
    files.write_text(place / _name(digests), json.dumps(row, indent=1))


def forget_others(folder: Path) -> None:
    """Delete every signature but that of the present state, that of the export included."""
    present = _name(_present(folder))
    if (folder / FOLDER / present).is_file():
        for path in (folder / FOLDER).iterdir():
            if path.name != present:
                path.unlink(missing_ok=True)


def require(folder: Path, key: Ed25519PublicKey) -> Signed:
    """What was signed with a key. Raises BundleError when the bundle has changed since it was signed.

    A refresh may replace the generation while this reads: it is read again before anything is refused.
    """
    for _ in range(_TRIES - 1):
        before = state(folder)
        try:
            return _require(folder, key)
        except BundleError:
            time.sleep(_PAUSE_S)
            if state(folder) == before:
                break
    return _require(folder, key)


def state(folder: Path) -> object:
    """What changes when another generation or another bundle takes the place of this one."""
    return files.file_version(folder / RECORD), files.file_version(folder / GENERATION)


def _require(folder: Path, key: Ed25519PublicKey) -> Signed:
    from cryptography.exceptions import InvalidSignature

    path = folder / FOLDER
    try:
        path /= _name(_present(folder))
        row = read_json_file(path, max_bytes=_MOST_BYTES)
        signed = Signed(row["generation"], row["made"], dict(row["files"]))
        key.verify(base64.b64decode(row["signature"], validate=True), _message(signed))
    except FileNotFoundError:
        raise BundleError(
            f"{folder} has no signature of its present state: export it with --sign, and refresh it only with --sign"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BundleError(f"{path} cannot be read ({files.why_unreadable(error)}): export the bundle again") from None
    except InvalidSignature:
        raise BundleError(
            f"{folder} was signed with another key, or its signature was changed: do not use it"
        ) from None
    for name, digest in signed.files.items():
        if not (folder / name).is_file() or files.sha256(folder / name) != digest:
            raise BundleError(f"{folder / name} is not as it was signed: do not use the bundle")
    return signed


def _present(folder: Path) -> dict[str, str]:
    return {name: files.sha256(folder / name) for name in (RECORD, GENERATION) if (folder / name).exists()}


def _load(option: str, path: Path, load: Any) -> object:
    from cryptography.exceptions import UnsupportedAlgorithm

    try:
        return load(path.expanduser().read_bytes())
    except OSError as error:
        raise ConfigError(f"{option} {path} cannot be read ({files.why_unreadable(error)}): name a PEM file") from None
    except (ValueError, TypeError, UnsupportedAlgorithm):
        half = "private key without a password" if option == "--sign" else "public key"
        raise ConfigError(f"{option} {path} holds no {half} in PEM form: name the file of an Ed25519 key") from None


def _manifest(kind: str, fingerprint: str) -> str:
    return f"{INDEX}/{kind}/{fingerprint}/{MANIFEST}"


def _name(digests: Mapping[str, str]) -> str:
    return f"{digests.get(GENERATION, digests[RECORD])[:32]}.json"


def _message(signed: Signed) -> bytes:
    return b"ragbench bundle 2\n" + canonical([signed.generation, signed.made, signed.files]).encode()
