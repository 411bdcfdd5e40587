"""Overrides typed after a command, `p6=on rerank.depth=20 exp=phase1`, made ready for composing.

The signs `+` and `++` before a key are accepted and have no effect. A switch has a number and a name
(`ragbench.config.catalogue.ALIASES`); both work. Nothing is composed here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragbench.base.bounds import shown
from ragbench.base.errors import ConfigError
from ragbench.base.suggestions import did_you_mean, nearest
from ragbench.config.catalogue import Catalogue, Tree, current, numbered

EXPERIMENT = "exp"
_LISTS_OF_SWITCHES = ("factors", "order", "tune")  # their values name switches
_TEMPLATES = ("live.url", "live.program")
_PLACES = {"pyserini": "index", "trec": "path", "command": "program", "python": "retriever"}
_PLACES |= dict.fromkeys(("sqlite", "postgres", "qdrant", "engine"), "engine")
_NOT_TEXT = ("true", "false", "null", "nan", "inf")  # unless they are quoted
_TRUTHS = {"on": "true", "off": "false"}
_OF_HYDRA = {
    ("--cfg", "-c", "--info", "-i", "--resolve", "--package", "-p"): "`ragbench list config` prints the configuration",
    ("--config-name", "-cn"): "choose a preset with exp=NAME (`ragbench list` shows them)",
    (
        "--config-path",
        "-cp",
        "--config-dir",
        "-cd",
    ): "put your settings into ragbench.yaml, which `ragbench init` writes",
    ("--hydra-help",): "`ragbench list` shows all presets, options and keys",
    ("--shell-completion", "-sc"): "`ragbench completion` installs it",
    ("--run", "-r"): "`ragbench run` without -m runs one configuration",
    ("--experimental-rerun",): "`ragbench run` with the same overrides continues or repeats a run",
    ("hydra.verbose", "hydra.job_logging", "hydra.hydra_logging"): "--verbose shows what libraries log",
    ("hydra.run", "hydra.sweep", "hydra.output_subdir", "hydra.job.chdir"): "paths.results=FOLDER is where runs go",
    ("hydra.launcher",): "execution=local, joblib or ray chooses where configurations are computed",
    (
        "hydra.sweeper",
        "hydra.mode",
    ): "`ragbench run -m` measures every combination, `ragbench tune` searches for values",
    ("hydra.searchpath",): "put your settings into ragbench.yaml, which `ragbench init` writes",
    ("hydra",): "`ragbench list config` shows all keys of ragbench",
}
"""What replaces options and keys of Hydra; of several that a word begins with, the first counts."""
_SYNONYMS = {"on": ("yes", "true", "1", "enabled"), "off": ("no", "false", "0", "null", "none", "disabled")}


def canonical(words: Iterable[str], known: Catalogue) -> list[str]:
    """The words with switches by number, `exp` as `+exp` and no other signs; the last choice of a group counts.

    Raises ConfigError for a word that is not `key=value` and for one that removes a key.
    """
    made = [_canonical(each, known) for word in words for each in _named_search(word, known)]
    last = {key_of(word): place for place, word in enumerate(made)}
    return [word for place, word in enumerate(made) if key_of(word) not in known.choices or last[key_of(word)] == place]


def _named_search(word: str, known: Catalogue) -> list[str]:
    """The words of a search that runs elsewhere: `source=pyserini:notes` is `live=pyserini live.index=notes`."""
    key, _, value = word.partition("=")
    if key.lstrip("+").strip() != "source":
        return [word]
    kind, _, place = value.strip("'\"").partition(":")
    if not place or kind not in known.choices["live"]:
        kinds = ", ".join(each for each in known.choices["live"] if each != "off")
        raise ConfigError(
            f"source must be a search and its place, such as source=pyserini:cacm, got {value}; known: {kinds}"
        )
    return [f"live={kind}", f"live.{_PLACES.get(kind, 'url')}={_as_yaml(place)}"]


def _canonical(word: str, known: Catalogue) -> str:
    key, equals, value = word.partition("=")
    name = key.lstrip("+").strip()
    if name.startswith("~"):
        raise ConfigError(f"'{word}': no key can be removed; turn a switch off with p6=off, a stage with dense=null")
    if counterpart := of_hydra(name):
        raise ConfigError(counterpart)
    if not equals or not re.fullmatch(r"\w+(\.\w+)*", name, re.ASCII):
        raise ConfigError(f"'{_shortened(word)}' is not key=value{_suggestion(word, known)}")
    if section_of(name) not in known.tree and value in known.choices[EXPERIMENT] and name not in known.choices:
        raise ConfigError(f"{name} is unknown; did you mean exp={value}?")
    prefix, dot, space = name.partition("tune.space.")
    name = f"{dot}{numbered(space)}" if dot and not prefix else numbered(name)
    value = current(name, value)
    if name in _LISTS_OF_SWITCHES:
        value = re.sub(r"\w+(\.\w+)*", lambda found: numbered(found[0]), value)
    if name in _TEMPLATES and ("{query}" in value or "{depth}" in value) and value[0] not in "[{'\"":
        value = _as_yaml(value)  # a text: its braces are no mapping
    if value == "~" or value.startswith("~/"):
        value = _as_yaml(str(Path(value).expanduser()))  # a shell expands it only after a name without dots
    if value in _TRUTHS and any(each.key == name and each.default in _TRUTHS.values() for each in known.parameters):
        value = _TRUTHS[value]  # what is true or false is said like a switch, too
    return f"{'+' if name == EXPERIMENT else ''}{name}={value}"


def of_hydra(name: str) -> str:
    """Return a sentence with the counterpart of an option or key of Hydra, empty for any other name."""
    name = name.partition("=")[0]
    dotted = f"{name.replace('/', '.')}."
    for names, counterpart in _OF_HYDRA.items():
        if any(dotted.startswith(f"{each}.") for each in names):
            return f"{name[:60]} is {'an option' if name.startswith('-') else 'a key'} of Hydra: {counterpart}"
    return ""


def _suggestion(word: str, known: Catalogue) -> str:
    if near := nearest(word, known.choices[EXPERIMENT]):
        return f"; did you mean exp={near[0]}?"
    if word.lstrip("+") in known.choices or numbered(word) in known.choices:
        return f"; did you mean {word.lstrip('+')}=on?"
    return ": write key=value, with quotes round a value that holds a blank or one of , = { } [ ]"


def key_of(word: str) -> str:
    """The key of a word: `p6.depth` of `p6.depth=20`."""
    return word.lstrip("+").partition("=")[0]


def changes(base: Iterable[str], words: Iterable[str]) -> str:
    """The words that differ from those of a base, such as `p2=on`, or `without p2=on` for a key that only it sets."""
    before, after = ([each.lstrip("+") for each in side if key_of(each) != "name"] for side in (base, words))
    kept = {key_of(each) for each in after}
    dropped = [f"without {each}" for each in before if key_of(each) not in kept]
    return " ".join([*(each for each in after if each not in before), *dropped])


def section_of(word: str) -> str:
    """The first part of the key of a word, or of a key: `p6` of `p6.depth=20`."""
    return key_of(word).split(".")[0]


def check_choice(group: str, chosen: object, known: Catalogue, where: str = "") -> None:
    """Raise ConfigError when a group has no such option; `where` ends the message, such as the file that names it."""
    options = known.choices[group]
    several = chosen if isinstance(chosen, list) and group == "tune" else [chosen]
    for each in several:
        if not isinstance(each, str) or each not in options:
            text = shown(each).strip("'")
            meant = next(
                (name for name, words in _SYNONYMS.items() if text.casefold() in words and name in options), ""
            )
            hint = f"; did you mean {meant}?" if meant else _options(text, options)
            raise ConfigError(f"{group} cannot be {shown(each)}{hint}{where}")


def _options(text: str, options: Sequence[str]) -> str:
    return f": the choices are {', '.join(options)}" if len(options) <= 6 else did_you_mean(text, options)


def named_arms(given: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Arms as `--arm` takes them, `mine="p6=on p6.depth=20"`: the words of each by name."""
    arms: dict[str, tuple[str, ...]] = {}
    for each in given:
        name, equals, words = each.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--arm '{_shortened(each)}' has no name: write --arm mine=\"p6=on p6.depth=20\"")
        if name in arms:
            raise ConfigError(f"--arm {name} is given twice: give every arm another name")
        try:
            arms[name] = tuple(shlex.split(words))
        except ValueError:
            raise ConfigError(f"--arm {name}: a quote is not closed in {_shortened(words)}") from None
    return arms


def word(key: str, value: object) -> str:
    """The word that sets a key to a plain value: `data.corpus='my notes'`."""
    return f"{key}={_as_yaml(value)}"


def words(values: Mapping[str, Any], known: Catalogue) -> list[str]:
    """Plain values by key as words; a mapping turns a switch on and sets its keys.

    >>> from ragbench.config import catalogue
    >>> words({"rerank": {"depth": 20}, "p5": False}, catalogue.read())
    ['p6=on', 'p6.depth=20', 'p5=off']
    """
    made: list[str] = []
    for key, value in values.items():
        name = numbered(key)
        options = known.choices.get(name, ())
        if isinstance(value, Mapping) and (known.tree.get(name) is not None or options):
            if "on" in options:
                made.append(word(name, "on"))
            made += [word(inner, leaf) for inner, leaf in _leaves(value, name, known.tree.get(name))]
        elif isinstance(value, bool) and {"on", "off"} <= set(options):
            made.append(word(name, "on" if value else "off"))
        else:
            made.append(word(name, value))
    return made


def _leaves(node: Mapping[str, Any], path: str, tree: Tree | None) -> Iterator[tuple[str, Any]]:
    """The leaves of nested values, as deep as the configuration has keys."""
    for key, value in node.items():
        below = tree.get(key) if tree is not None else None
        if isinstance(value, Mapping) and below is not None:
            yield from _leaves(value, f"{path}.{key}", below)
        else:
            yield f"{path}.{key}", value


def _as_yaml(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_as_yaml(key)}: {_as_yaml(each)}" for key, each in value.items()) + "}"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ", ".join(map(_as_yaml, value)) + "]"
    text = str(value)
    plain = re.fullmatch(r"[A-Za-z_/][\w./@+-]*", text, re.ASCII) and text.casefold() not in _NOT_TEXT
    if not isinstance(value, str) or plain:
        return text
    return "'" + re.sub(r"(\\*)'", r"\1\1\\'", re.sub(r"(\\+)$", r"\1\1", text)) + "'"


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:60]}..."


def from_environment(words: Sequence[str], environment: Mapping[str, str]) -> list[str]:
    """The words; if the experiment is a preset of Librarian, those of its environment variables before them (seed 004).

    `CHUNK_SIZE` and `CHUNK_OVERLAP` are in tokens, `CHUNK_STRATEGY` is semantic or fixed, `ENABLE_CHUNKING=false` makes
    one chunk of every document; tags and types cannot be turned off. A key among the words wins over its variable.
    Raises ConfigError for another value.
    """
    if not any(key_of(word) == EXPERIMENT and word.partition("=")[2].startswith("librarian_") for word in words):
        return list(words)
    found = {}
    for name, (key, valid, what) in _LIBRARIAN.items():
        value = environment.get(name, "").strip().lower()
        if value and not re.fullmatch(valid, value):
            raise ConfigError(f"the environment variable {name} must be {what}, got {shown(environment[name])}")
        if value:
            found[key] = value
    found.pop("metadata", None)
    if found.pop("enabled", "true") in ("false", "0"):
        found |= {"chunking": "fixed", "index.chunking.chunk_size": "1000000", "index.chunking.chunk_overlap": "0"}
    if "chunking" in found:
        found["chunking"] = f"librarian_{found['chunking']}"
    typed = {key_of(word) for word in words}
    return [*(f"{key}={value}" for key, value in found.items() if key not in typed), *words]


_LIBRARIAN = {
    "CHUNK_STRATEGY": ("chunking", "semantic|fixed", "semantic or fixed"),
    "CHUNK_SIZE": ("index.chunking.chunk_size", r"\d{1,7}", "a number of tokens"),
    "CHUNK_OVERLAP": ("index.chunking.chunk_overlap", r"\d{1,7}", "a number of tokens"),
    "ENABLE_CHUNKING": ("enabled", "true|false|1|0", "true or false"),
    **dict.fromkeys(("EXTRACT_TAGS", "INFER_DOC_TYPE"), ("metadata", "true|1", "true: tags and types are always read")),
}
