"""A vault of any size whose notes read like notes, and a local chat endpoint whose answers a test decides.

Each note is about one thing, some are linked, some have frontmatter.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

THINGS = [
    "pump",
    "valve",
    "sensor",
    "boiler",
    "fan",
    "meter",
    "relay",
    "panel",
    "hose",
    "filter",
    "lamp",
    "motor",
    "gauge",
    "tank",
    "hinge",
]
PLACES = [
    "harbour",
    "orchard",
    "foundry",
    "library",
    "kitchen",
    "hangar",
    "greenhouse",
    "cellar",
    "workshop",
    "attic",
    "quarry",
    "dairy",
]
VERBS = [
    "clean",
    "drain",
    "calibrate",
    "replace",
    "inspect",
    "label",
    "test",
    "ship",
    "store",
    "lubricate",
    "insulate",
    "paint",
]
COLOURS = ["red", "blue", "green", "grey", "white", "black", "yellow", "brown", "silver", "copper", "purple", "orange"]
MAKERS = [
    "Aldo",
    "Berit",
    "Cormac",
    "Dunja",
    "Elio",
    "Fenna",
    "Goran",
    "Hanne",
    "Ivo",
    "Jorun",
    "Kaspar",
    "Liv",
    "Milan",
    "Noor",
]
TIMES = [
    "dawn",
    "noon",
    "dusk",
    "midnight",
    "spring",
    "summer",
    "autumn",
    "winter",
    "monday",
    "friday",
    "easter",
    "harvest",
]
FILLER = (
    "Keep the log open while you work and write down what you saw.",
    "Two people are needed, one to hold the ladder and one to turn the screws.",
    "Wait ten minutes, then look again before you close the case.",
    "The spare parts lie on the second shelf, sorted by year.",
    "Tell the shift when you are done so that nobody looks for you.",
)


def note(number: int, names: list[tuple[str, str, str]], chance: random.Random) -> str:
    verb, place, thing = names[number]
    other = chance.randrange(len(names))
    overb, oplace, othing = names[other]
    colour, maker, time = (chance.choice(words) for words in (COLOURS, MAKERS, TIMES))
    body = [
        "---",
        f"title: {thing.capitalize()} of the {place}",
        f"description: {verb.capitalize()} {colour} {thing} by {maker} at {time}.",
        *([f"aliases: [{maker} {place} chore]"] if number % 3 == 0 else []),
        "---",
        f"# {thing.capitalize()} of the {place}",
        "",
        f"{maker} built this {colour} {thing} one {chance.choice(TIMES)} for the {place}. {chance.choice(FILLER)}",
        "",
        f"Whoever must {overb} a {othing} near the {oplace} before {chance.choice(TIMES)}, see [[n{other:03d}]].",
        "",
        f"## Does {maker} {verb} the {colour} {thing}?" if number % 4 == 0 else "## Steps",
        "",
        f"First {verb} its {chance.choice(THINGS)}, then the {thing}. {chance.choice(FILLER)} {chance.choice(FILLER)}",
    ]
    return "\n".join([*body, ""])


@pytest.fixture(scope="session")
def write_vault() -> Callable[[Path, int], Path]:
    """A function that writes a vault of so many notes in three folders, the same each time."""

    def write(folder: Path, count: int) -> Path:
        chance = random.Random(5)
        every = [(verb, place, thing) for place in PLACES for thing in THINGS for verb in VERBS]
        names = chance.sample(every, count)
        for number in range(count):
            path = folder / ("daily", "guides", "parts")[number % 3] / f"n{number:03d}.md"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(note(number, names, chance), encoding="utf-8")
        return folder

    return write


@dataclass
class ChatServer:
    """`answer` maps a prompt to a text; `prompts` and `keys` are what was asked, and with which key."""

    answer: Callable[[str], str] = lambda prompt: "yes"
    prompts: list[str] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    endpoint: str = ""

    def start(self) -> Callable[[], None]:
        """Listen; what is returned stops it."""
        told = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                prompt = asked["messages"][0]["content"]
                told.prompts.append(prompt)
                told.keys.append(self.headers.get("Authorization"))
                content = json.dumps({"choices": [{"message": {"content": told.answer(prompt)}}]}).encode()
                self.send_response(200)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        running = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        self.endpoint = f"http://127.0.0.1:{running.server_port}/v1"

        def stop() -> None:
            running.shutdown()
            running.server_close()
            thread.join()

        return stop


@pytest.fixture
def chat_server() -> Iterator[ChatServer]:
    made = ChatServer()
    stop = made.start()
    yield made
    stop()
