"""Archives of arrays (.npz) that come from elsewhere: read without pickle, each array checked by its checksum."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ragbench.base.errors import BoundaryError


def read_arrays(path: Path, *names: str) -> list[NDArray[Any]]:
    """Arrays of an archive by name. Raises BoundaryError where one is missing, damaged or holds objects."""
    try:
        with path.open("rb") as stream, np.lib.npyio.NpzFile(stream, allow_pickle=False) as archive:
            return [np.asarray(archive[name]) for name in names]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise BoundaryError(f"{path} cannot be read ({' '.join(str(error).split())[:120]})") from None
