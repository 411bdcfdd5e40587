"""When each document was modified, in seconds since the epoch, shape (n_documents,)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ragbench.index.index import Index, Part


def _times(index: Index) -> NDArray[np.float64]:
    times = index.times()
    return np.array([times[docno] for docno in index.chunks.docnos], dtype=np.float64)


PART = Part("modified", fingerprint=lambda index: index.collection, open=_times)
