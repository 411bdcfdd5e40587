"""Counts the requests of this process to models behind endpoints: texts, tokens, seconds and, if known, their price."""

from __future__ import annotations

import os
import threading
from dataclasses import astuple, dataclass
from typing import Any

PRICE, CHAT_PRICE = "RAGBENCH_USD_PER_MILLION_TOKENS", "RAGBENCH_USD_PER_MILLION_CHAT_TOKENS"
CHAT = "chat:"
"""The beginning of the names of chat models."""


def tokens_of(counted: Any) -> int:
    """The tokens that a server says it counted; 0 for anything else."""
    return counted if isinstance(counted, int) and not isinstance(counted, bool) and counted > 0 else 0


def total_tokens(answer: Any) -> int:
    """The tokens that an answer says a server counted; 0 where it does not."""
    counted = answer.get("usage") if isinstance(answer, dict) else None
    return tokens_of(counted.get("total_tokens")) if isinstance(counted, dict) else 0


@dataclass(frozen=True)
class Usage:
    """What was sent to a model behind an endpoint: texts, requests, tokens as the server counts them, seconds."""

    texts: int = 0
    requests: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        pairs = zip(astuple(self), astuple(other), strict=True)
        return Usage(*(ours + theirs for ours, theirs in pairs))

    def record(self, variable: str = PRICE) -> dict[str, Any]:
        """Plain values, with the time per text, and its price if the environment variable sets one."""
        fields: dict[str, Any] = {"texts": self.texts, "requests": self.requests, "tokens": self.tokens}
        fields["seconds"] = round(self.seconds, 3)
        if self.texts:
            fields["ms_per_text"] = round(1000 * self.seconds / self.texts, 3)
        try:
            usd = float(os.environ.get(variable, ""))
        except ValueError:
            return fields
        fields["usd"] = round(usd * self.tokens / 1e6, 6)
        if self.texts:
            fields["usd_per_text"] = fields["usd"] / self.texts
        return fields


_used: dict[str, Usage] = {}
_lock = threading.Lock()


def add_usage(name: str, more: Usage) -> None:
    """Add to the usage of a model."""
    with _lock:
        _used[name] = _used.get(name, Usage()) + more


def take_usage() -> dict[str, dict[str, Any]]:
    """The usage of models behind endpoints since the last call, by name; answers from a cache do not count."""
    with _lock:
        records = {
            name: used.record(CHAT_PRICE if name.startswith(CHAT) else PRICE) for name, used in sorted(_used.items())
        }
        _used.clear()
    return records
