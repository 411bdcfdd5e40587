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
import json
import os
import random
import re
import shlex
import shutil
import signal
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from ragbench.base import locations
from ragbench.commands import cli
from ragbench.config import composition
from tests.boundary.mutations import json_texts, yaml_texts

FOLDER = Path(__file__).parent / "bad_inputs"
CONF = locations.configuration()
SECONDS = 150  # other work may take most of the CPUs
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
    code: int | None = 2
    """None: whatever is refused, is refused in one sentence."""
    loader: str = ""
    file: str = ""
    damage: Mapping[str, Any] = field(default_factory=dict)


def cases() -> list[Case]:
    """All of them, in the order of the files."""
    return [case for path in sorted(FOLDER.glob("*.yaml")) for case in _of(path)]


VALUES = (
    *("", " ", "null", "[]", "{}", "[null]", "{a: 1}", "[[1]]", "[1,2", "{a", "'", '"', "true", "on", "-1", "0", "0.5"),
    *("1e999", "-1e999", "nan", ".inf", "9" * 30, "9" * 5000, "0x10", "1_000", "2026-02-30", "x" * 5000, "a b", "a,b"),
    *(
        "*",
        "&a",
        "*a",
        "!!python/object/apply:os.system [true]",
        "${oc.env:HOME}",
        "${now:}",
        "${a",
        "$HOME",
        "~",
        "@f",
    ),
    *(
        "../../etc/passwd",
        "/dev/zero",
        "/",
        ".",
        "http://x/?token=y",
        "env:HOME",
        "file:/etc/passwd",
        "\n",
        "\t",
        "\x1b[2J",
    ),
    *("\udcff", "\ud800", "\u202e", "\u0000x", "ü" * 300, "=", "a=b", "--x", "-", "#", "%s", "{0}", "\\"),
)
COMMANDS = (
    *(
        "run",
        "ablate",
        "compare",
        "report",
        "search",
        "diagnose",
        "advise",
        "list",
        "list config",
        "tune",
    ),
    *("fit", "fit calibration", "export", "refresh", "verify", "gate", "data", "data pool"),
    *(
        "topics",
        "judge",
        "index",
        "track",
        "init",
        "data check",
        "topics derive",
    ),
)
OPTIONS = (
    *(
        "--arm",
        "--out",
        "--top",
        "--limit",
        "--seed",
        "--depth",
        "--to",
        "--corpus",
        "--max-loss",
        "--format",
        "--merge",
    ),
    *(
        "--json",
        "--quiet",
        "--baseline",
        "--budget",
        "--measure",
        "--load",
        "--queries",
        "--base",
        "--questions",
        "--kinds",
    ),
)


@cache
def keys() -> tuple[str, ...]:
    """The keys of the configuration."""

    def below(node: Any, path: str = "") -> Iterator[str]:
        if not isinstance(node, Mapping) or not node:
            yield path
        else:
            for key, value in node.items():
                yield from below(value, f"{path}.{key}".lstrip("."))

    return tuple(below(composition.compose([]).config))


def made(chance: random.Random) -> Case:
    """An override, a command line or a file with something wrong, or nothing."""
    kind = chance.random()
    if kind < 0.4:
        key = chance.choice(keys())
        key = chance.choice((key, key, key, key.rpartition(".")[0] or key, f"+{key}", f"{key}.x", f"~{key}"))
        words: tuple[str, ...] = ("list", "config", f"{key}={chance.choice(VALUES)}")
        return Case(f"made: {words[2][:200]}", words, "", None)
    if kind < 0.65:
        command, options = chance.choice(COMMANDS).split(), chance.choices(OPTIONS, k=chance.randrange(3))
        words = tuple(part for each in options for part in (each, chance.choice(VALUES)))
        words = (*command, *words, *chance.choices(VALUES, k=chance.randrange(1, 3)))
        return Case(f"made: {' '.join(words)[:200]!r}", words, "", None)
    loader = chance.choice(sorted(COLLECTIONS))
    file = chance.choice(sorted(COLLECTIONS[loader]))
    text = COLLECTIONS[loader][file]
    if file.endswith(".jsonl"):
        first, _, rest = text.partition("\n")
        content = next(json_texts(json.loads(first), chance)) + b"\n" + rest.encode()
    elif file.endswith(".md") and chance.random() < 0.7:
        content = (
            b"---\n"
            + next(yaml_texts("title: A\ntags: [a, b]\ndate: 2026-01-02\n", chance))
            + b"\n---\n"
            + text.encode()
        )
    else:
        content = _changed(text, chance)
    return Case(
        f"made: {loader} {file} {content[:150]!r}",
        ("data", "describe"),
        "",
        None,
        loader,
        file,
        {"bytes": content.hex()},
    )


def _changed(text: str, chance: random.Random) -> bytes:
    """A text with a field, a line or some bytes changed."""
    lines, content = text.splitlines(), bytearray(text.encode())
    line, kind = chance.randrange(len(lines)), chance.randrange(4)
    if kind == 0:
        fields = re.split(r"([,\t ])", lines[line])
        fields[chance.randrange(0, len(fields), 2)] = chance.choice(VALUES)
        lines[line] = "".join(fields)
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    if kind == 1:
        lines.insert(line, chance.choice((lines[line], "", "\0", "x" * 100_000, *VALUES)))
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    place = chance.randrange(len(content))
    if kind == 2:
        content[place] ^= 1 << chance.randrange(8)
        return bytes(content)
    return bytes(content[:place]) + chance.choice((b"", b"\xff\xfe", b"\0" * 9, chance.randbytes(20)))


def _of(path: Path) -> Iterator[Case]:
    said = yaml.safe_load(path.read_text(encoding="utf-8"))
    for line, says, *code in said.get("words", ()):
        yield Case(f"{path.stem}: {line}", tuple(shlex.split(line)), says, *code)
    for each in said.get("products", ()):
        for key in each["keys"]:
            for value in each["values"]:
                words = ("list", "config", *shlex.split(each.get("with", "")), f"{key}={value}")
                yield Case(f"{path.stem}: {shlex.join(words)}", words, key.lstrip("+"))
    for each in said.get("slips", ()):
        damage = {key: value for key, value in each.items() if key not in ("file", "words", "says", "code")}
        words = ("list", "config", *shlex.split(each.get("words", "")))
        name = f"{path.stem}: {each['file']} {damage}"
        yield Case(name, words, each.get("says", each["file"]), each.get("code", 2), "", each["file"], damage)
    for each in said.get("data", ()):
        damage = {key: value for key, value in each.items() if key not in ("loader", "file", "words", "says", "code")}
        words = tuple(shlex.split(each.get("words", "data check")))
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
    if code != case.code and (case.code is not None or code not in (0, 1, 2)):
        return f"exit code {code}: {sentence[:300]}"
    if code == 2:
        plain = sentence.replace(str(folder), "")
        typed = [*words, *str(case.damage.get("text", "")).split()]
        for part in [part for word in typed for part in re.split(r"[=,:]", word) if len(part) > 3]:
            plain = plain.replace(part, "")  # what was typed may be said again
        if len(lines) != 1 or not sentence.startswith("ragbench: "):
            return f"{len(lines)} lines: {sentence[:300]}"
        if (found := _FOREIGN.search(plain)) and found[0].casefold() not in " ".join(typed).casefold():
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
