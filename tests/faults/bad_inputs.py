"""Bad inputs from `bad_inputs/*.yaml`, given to real commands in this process.

Each must end with its exit code (2 unless said otherwise) and one sentence that names what is wrong; no traceback, no
text of a library, nothing written. A file of cases holds some of these lists:

    words      - [COMMAND LINE, TEXT]: what is typed, and what the sentence must hold
    products   - {with: WORDS, keys: [...], values: [...]}: every key with every value; the sentence must hold the key
    slips      - {file: FILE, text: TEXT, words: WORDS, says: TEXT}: a file of a copy of the configuration
    data       - {loader: NAME, file: FILE, text: TEXT, says: TEXT}: a file of a small collection

Without `says`, the sentence must hold the file's name. Instead of `text`: `bytes` (hexadecimal), `swap: [OLD, NEW]`,
or `becomes: nothing, folder, pipe, loop`. FOLDER in a command is the folder of the case.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import signal
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from ragbench.base import locations
from ragbench.commands import cli

FOLDER = Path(__file__).parent / "bad_inputs"
CONF = locations.configuration()
SECONDS = 60
_LONGEST = 500
_FOREIGN = re.compile(
    r"Traceback|[Hh]ydra|[Oo]mega[Cc]onf|ConfigAttribute|pydantic|Errno|<class|object at 0x|has no attribute|"
    r"\w+Error\b|NoneType|unhashable|could not convert|invalid literal|yaml\.|_target_=|primary config|usage:"
)
_NOTES = "# Lamps\n\nA lamp knows when the sun sets.\n"
COLLECTIONS: Mapping[str, Mapping[str, str]] = {
    "vault": {
        "notes/a.md": _NOTES,
        "notes/b.md": "# Masts\n\nMast twelve is dark.\n",
        "queries.csv": "qid,text,relevant\nq1,when does the sun set,a.md\nq2,which mast is dark,b.md\n",
        "judged.qrels": "q1 0 a 1\nq2 0 b 1\n",
    },
    "native": {
        "notes/a.md": _NOTES,
        "notes/b.md": "# Masts\n\nMast twelve is dark.\n",
        "qrels/topics.jsonl": '{"qid": "q1", "text": "sun"}\n{"qid": "q2", "text": "mast"}\n',
        "qrels/sections.qrels": "q1 0 a#lamps 1\nq2 0 b#masts 1\n",
    },
    "beir": {
        "corpus.jsonl": '{"_id": "a", "text": "A lamp."}\n{"_id": "b", "text": "A mast."}\n',
        "queries.jsonl": '{"_id": "q1", "text": "lamp"}\n{"_id": "q2", "text": "mast"}\n',
        "qrels/test.tsv": "query-id\tcorpus-id\tscore\nq1\ta\t1\nq2\tb\t1\n",
    },
    "trec": {
        "docs": "<DOC><DOCNO>a</DOCNO>A lamp.</DOC>\n<DOC><DOCNO>b</DOCNO>A mast.</DOC>\n",
        "topics": "q1\tlamp\nq2\tmast\n",
        "qrels": "q1 0 a 1\nq2 0 b 1\n",
    },
}
_PLACES = {
    "vault": {"corpus": "notes", "queries": "queries.csv", "qrels": "judged.qrels"},
    "native": {"corpus": "notes", "qrels": "qrels"},
    "beir": {"folder": "."},
    "trec": {"corpus": "docs", "queries": "topics", "qrels": "qrels"},
}


class Expired(BaseException):
    """A case took too long."""


@dataclass(frozen=True)
class Case:
    """A command line, what its sentence must hold, and what is broken before: a file of `conf` or of a collection."""

    name: str
    words: tuple[str, ...]
    says: str
    code: int = 2
    loader: str = ""
    file: str = ""
    damage: Mapping[str, Any] = field(default_factory=dict)


def cases() -> list[Case]:
    """All of them, in the order of the files."""
    return [case for path in sorted(FOLDER.glob("*.yaml")) for case in _of(path)]


def _of(path: Path) -> Iterator[Case]:
    said = yaml.safe_load(path.read_text(encoding="utf-8"))
    for line, says, *code in said.get("words", ()):
        yield Case(f"{path.stem}: {line}", tuple(shlex.split(line)), says, *code)
    for each in said.get("products", ()):
        for key in each["keys"]:
            for value in each["values"]:
                words = ("config", *shlex.split(each.get("with", "")), f"{key}={value}")
                yield Case(f"{path.stem}: {shlex.join(words)}", words, key.lstrip("+"))
    for each in said.get("slips", ()):
        damage = {key: value for key, value in each.items() if key not in ("file", "words", "says", "code")}
        words = ("config", *shlex.split(each.get("words", "")))
        name = f"{path.stem}: {each['file']} {damage}"
        yield Case(name, words, each.get("says", each["file"]), each.get("code", 2), "", each["file"], damage)
    for each in said.get("data", ()):
        damage = {key: value for key, value in each.items() if key not in ("loader", "file", "words", "says", "code")}
        words = tuple(shlex.split(each.get("words", "data describe")))
        says = each.get("says", each["file"].rpartition("/")[2])
        name = f"{path.stem}: {each['loader']} {each['file']} {damage}"
        yield Case(name, words, says, each.get("code", 2), each["loader"], each["file"], damage)


def harm(case: Case, folder: Path) -> str:
    """What is wrong with the answer to a case; nothing when it is as it must be. `folder` is new."""
    folder.mkdir(parents=True)
    words, root = list(case.words), folder
    if case.loader:
        root = folder / "data"
        for name, text in COLLECTIONS[case.loader].items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        places = _PLACES[case.loader].items()
        words += [f"data={case.loader}", *(f"data.{key}={root / place}" for key, place in places)]
    elif case.file:
        root = folder / "conf"
        shutil.copytree(CONF, root)
    if case.file:
        _damage(root / case.file, case.damage)
    words = [word.replace("FOLDER", str(folder)) for word in words]
    code, err = _run(words, folder, root if case.file and not case.loader else None)
    lines = [line for line in err.splitlines() if not line.startswith("warning: ")]
    if code == "hang":
        return f"no answer in {SECONDS} s"
    if code == "traceback":
        return f"traceback: {' '.join(err.split())[-300:]}"
    sentence = "\n".join(lines)
    if code != case.code:
        return f"exit code {code}: {sentence[:300]}"
    if case.code == 2:
        plain = sentence.replace(str(folder), "")
        typed = [*words, *str(case.damage.get("text", "")).split()]
        for part in [part for word in typed for part in re.split(r"[=,:]", word) if len(part) > 3]:
            plain = plain.replace(part, "")  # what was typed may be said again
        if len(lines) != 1 or not sentence.startswith("ragbench: "):
            return f"{len(lines)} lines: {sentence[:300]}"
        if found := _FOREIGN.search(plain):
            return f"words of a library ({found[0]}): {sentence[:300]}"
        if len(plain) > _LONGEST:
            return f"{len(plain)} characters: {sentence[:300]}"
    if case.says not in sentence:
        return f"does not name {case.says!r}: {sentence[:300]}"
    written = list(folder.rglob("results/runs/*"))
    return f"wrote {written}" if written else ""


def _run(words: list[str], folder: Path, conf: Path | None) -> tuple[Any, str]:
    """The exit code, `hang` or `traceback`, and what was said on standard error."""
    out, err, before = io.StringIO(), io.StringIO(), Path.cwd()
    configuration, results = locations.configuration, locations.results
    locations.results = lambda: folder / "results"
    if conf is not None:
        locations.configuration = lambda: conf

    def expire(number: int, frame: object) -> None:
        raise Expired

    previous = signal.signal(signal.SIGALRM, expire)
    signal.alarm(SECONDS)
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            return cli.main(words), err.getvalue()
    except Expired:
        return "hang", err.getvalue()
    except BaseException:
        return "traceback", traceback.format_exc()
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)
        os.chdir(before)
        locations.configuration, locations.results = configuration, results


def _damage(path: Path, damage: Mapping[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if "text" in damage:
        path.write_text(damage["text"], encoding="utf-8", errors="surrogatepass")
    elif "bytes" in damage:
        path.write_bytes(bytes.fromhex(damage["bytes"]))
    elif "swap" in damage:
        old, new = damage["swap"]
        text = path.read_text(encoding="utf-8")
        assert old in text, f"{path.name} does not hold {old!r}"
        path.write_text(text.replace(old, new, 1), encoding="utf-8")
    else:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        if damage["becomes"] == "folder":
            path.mkdir()
        elif damage["becomes"] == "pipe":
            os.mkfifo(path)
        elif damage["becomes"] == "loop":
            path.symlink_to(path.name)
