"""Signatures of bundles: the public key tells whether a bundle was signed and has not changed since.

A signature (Ed25519) covers the digests of the files in a bundle's folder and of the manifests of its artefacts, which
contain the digests of all other files. It is a file in `signatures/` named by the digest of `generation.json` (before
the first refresh: of `bundle.json`), so that a generation and its signature take effect at the same moment.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench import files
from ragbench.errors import BundleError, ConfigError
from ragbench.fingerprint import canonical, text_digest
from ragbench.index.artefact import MANIFEST, Artefact

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

FOLDER = "signatures"
RECORD, GENERATION, INDEX = "bundle.json", "generation.json", "index"


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


def sign(folder: Path, key: Ed25519PrivateKey, artefacts: Iterable[Artefact], generation: str | None = None) -> None:
    """Sign a bundle with the artefacts that it serves, as it is now or with `generation` as the text of its generation.

    All signatures are deleted except the new one, the present one and the one of the export.
    """
    names = [path.name for path in folder.iterdir() if path.is_file() and path.name[0] != "."]
    names += [_manifest(each.kind, each.fingerprint) for each in artefacts]
    before = {name: files.sha256(folder / name) for name in names}
    after = before if generation is None else {**before, GENERATION: text_digest(generation)}
    signature = base64.b64encode(key.sign(_message(after))).decode()
    place = folder / FOLDER
    place.mkdir(exist_ok=True)
    files.write_text(place / _name(after), json.dumps({"files": after, "signature": signature}, indent=1))
    stays = {_name(after), _name(before), _name({RECORD: before[RECORD]})}
    for path in place.iterdir():
        if path.name not in stays:
            path.unlink(missing_ok=True)


def require(folder: Path, key: Ed25519PublicKey) -> Mapping[str, str]:
    """The digests that were signed with a key. Raises BundleError when the bundle has changed since it was signed."""
    from cryptography.exceptions import InvalidSignature

    path = folder / FOLDER
    try:
        path /= _name({name: files.sha256(folder / name) for name in (RECORD, GENERATION) if (folder / name).exists()})
        row = json.loads(path.read_text(encoding="utf-8"))
        digests, signature = dict(row["files"]), base64.b64decode(row["signature"], validate=True)
        key.verify(signature, _message(digests))
    except FileNotFoundError:
        raise BundleError(
            f"{folder} has no signature of its present state: export it with --sign, and refresh it only with --sign"
        ) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BundleError(f"{path} cannot be read ({files.why_unreadable(error)}): export the bundle again") from None
    except InvalidSignature:
        raise BundleError(
            f"{folder} was signed with another key, or its signature was changed: do not use it"
        ) from None
    for name, digest in digests.items():
        if not (folder / name).is_file() or files.sha256(folder / name) != digest:
            raise BundleError(f"{folder / name} is not as it was signed: do not use the bundle")
    return digests


def covers(digests: Mapping[str, str], artefact: Artefact) -> bool:
    """Whether an artefact, whose files are those of its manifest, was signed."""
    signed = digests.get(_manifest(artefact.kind, artefact.fingerprint))
    return signed == files.sha256(artefact.folder / MANIFEST)


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


def _message(digests: Mapping[str, str]) -> bytes:
    return b"ragbench bundle\n" + canonical(digests).encode()
