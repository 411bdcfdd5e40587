"""The journal of a search: a line of JSON with a digest for every step. Imports Optuna, so only searches import it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Generator, Mapping
from typing import Any

from optuna.storages.journal import JournalFileBackend

from ragbench.boundary.checksummed_json import SEAL


class ChecksummedJournal(JournalFileBackend):
    """Optuna's journal file. Reading a line that has changed since it was written raises ValueError."""

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        """Write steps, each with its digest."""
        super().append_logs([{**log, SEAL: _seal(log)} for log in logs])

    def read_logs(self, log_number_from: int) -> Generator[dict[str, Any], None, None]:
        """The steps from a number on, without their digests."""
        for number, log in enumerate(super().read_logs(log_number_from), log_number_from + 1):
            if not isinstance(log, dict) or log.pop(SEAL, None) != _seal(log):
                raise ValueError(f"line {number} has changed since it was written")
            yield log


def _seal(log: Mapping[str, Any]) -> str:
    return hashlib.blake2b(json.dumps(log, sort_keys=True).encode(), digest_size=8).hexdigest()
