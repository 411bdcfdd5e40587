"""Write `ragbench/index/lucene.jar`: the part of pyserini's jar that ragbench uses, the same bytes everywhere.

    python tools/lucene_part.py

`make run` calls it. The file is not in the repository; the wheel contains it, with the licence and notices of Lucene.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

from ragbench.index import jvm

_VERSION = re.compile(r"^META-INF/versions/\d+/")
_USED = (
    "org/apache/lucene/",
    "org/tartarus/snowball/",
    "org/apache/commons/lang3/",
    "META-INF/services/org.apache.lucene",
)
_ALSO = ("META-INF/MANIFEST.MF", "META-INF/LICENSE.txt", "META-INF/NOTICE.txt")  # the texts of Lucene and Snowball
_UNUSED = "org/apache/lucene/analysis/ja/"  # a dictionary of 9 MB


def write(path: Path) -> None:
    """Write the part of the installed jar."""
    whole = jvm.whole_jar()
    assert whole is not None, "pyserini is not installed"
    with zipfile.ZipFile(whole) as jar, zipfile.ZipFile(path, "w") as part:
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


if __name__ == "__main__":
    write(jvm.LUCENE_PART)
