"""A vault of any size whose notes read like notes: each about one thing, some linked, some with frontmatter."""

from __future__ import annotations

import random
from pathlib import Path

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
    verb, where, thing = names[number]
    other = chance.randrange(len(names))
    overb, oplace, othing = names[other]
    colour, maker, time = (chance.choice(words) for words in (COLOURS, MAKERS, TIMES))
    body = [
        "---",
        f"title: {thing.capitalize()} of the {where}",
        f"description: {verb.capitalize()} {colour} {thing} by {maker} at {time}.",
        *([f"aliases: [{maker} {where} chore]"] if number % 3 == 0 else []),
        "---",
        f"# {thing.capitalize()} of the {where}",
        "",
        f"{maker} built this {colour} {thing} one {chance.choice(TIMES)} for the {where}. {chance.choice(FILLER)}",
        "",
        f"Whoever must {overb} a {othing} near the {oplace} before {chance.choice(TIMES)}, see [[n{other:03d}]].",
        "",
        f"## Does {maker} {verb} the {colour} {thing}?" if number % 4 == 0 else "## Steps",
        "",
        f"First {verb} its {chance.choice(THINGS)}, then the {thing}. {chance.choice(FILLER)} {chance.choice(FILLER)}",
    ]
    return "\n".join([*body, ""])


def write_vault(folder: Path, count: int) -> Path:
    """Write so many notes in three folders, the same each time."""
    chance = random.Random(5)
    every = [(verb, where, thing) for where in PLACES for thing in THINGS for verb in VERBS]
    names = chance.sample(every, count)
    for number in range(count):
        path = folder / ("daily", "guides", "parts")[number % 3] / f"n{number:03d}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note(number, names, chance), encoding="utf-8")
    return folder
