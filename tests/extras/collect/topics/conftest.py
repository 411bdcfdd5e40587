"""A vault of any size, and a local chat endpoint whose answers a test decides."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests import notes
from tests.loopback import Loopback


@pytest.fixture(scope="session")
def write_vault() -> Callable[[Path, int], Path]:
    """A function that writes a vault of so many notes in three folders, the same each time."""
    return notes.write_vault


class ChatServer(Loopback):
    """`answer` maps a prompt to a text; `prompts` and `keys` are what was asked, and with which key."""

    def __init__(self) -> None:
        super().__init__()
        self.answer: Callable[[str], str] = lambda prompt: "yes"
        self.prompts: list[str] = []
        self.keys: list[str | None] = []
        self.endpoint = f"{self.url}/v1"

    def respond(self, method: str, path: str, headers: Mapping[str, str], body: bytes) -> tuple[Any, ...]:
        prompt = json.loads(body)["messages"][0]["content"]
        self.prompts.append(prompt)
        self.keys.append(headers.get("Authorization"))
        return 200, {"choices": [{"message": {"content": self.answer(prompt)}}]}


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    with ChatServer() as made:
        yield made
