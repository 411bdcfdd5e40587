"""A run file of TREC as the answers of a search: its hits by topic, read once for this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from ragbench.base.errors import BenchmarkError, LiveError
from ragbench.base.files import sha256, why_unreadable
from ragbench.benchmark.runs import read_run, trec_eval_order

_Hits = Sequence[tuple[str, float]]


def read(path: str) -> Mapping[str, _Hits]:
    """By qid, (id, score) in the order of trec_eval. Raises LiveError for a file that is not a run."""
    return _read(path, _state(path))


def content(path: str) -> str:
    """The digest of the file's bytes. Raises LiveError where there is none."""
    _state(path)
    return sha256(Path(path).expanduser())


def _state(path: str) -> tuple[int, int]:
    try:
        facts = Path(path).expanduser().stat()
    except OSError as error:
        raise LiveError(f"the run file {path} cannot be read ({why_unreadable(error)})") from None
    return facts.st_mtime_ns, facts.st_size


@lru_cache(maxsize=16)
def _read(path: str, state: tuple[int, int]) -> Mapping[str, _Hits]:
    try:
        return {qid: trec_eval_order(hits) for qid, hits in read_run(Path(path).expanduser()).items()}
    except BenchmarkError as error:
        raise LiveError(f"{error}; a run file has lines such as: q1 Q0 doc7 1 12.5 name") from None
