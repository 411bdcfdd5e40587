"""Overrides typed after a command, `p6=on rerank.depth=20 exp=phase1`, made ready for composing.

The signs `+` and `++` before a key are accepted and have no effect. A switch has a number and a name
(`ragbench.config.names.ALIASES`); both work. Nothing is composed here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ragbench.base.options import TARGET, options
from ragbench.base.types import ConfigError, nearest, options_hint, shown
from ragbench.config.available import Available
from ragbench.config.names import EXPERIMENT, numbered

_LISTS_OF_SWITCHES = ("factors", "order", "tune")  # their values name switches
_NOT_TEXT = ("true", "false", "null", "nan", "inf")  # unless they are quoted
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
    ("--shell-completion", "-sc"): "`register-python-argcomplete ragbench` prints it",
    ("--run", "-r"): "`ragbench run` without -m runs one configuration",
    ("--experimental-rerun",): "`ragbench run` with the same overrides continues or repeats a run",
    ("hydra.verbose", "hydra.job_logging", "hydra.hydra_logging"): "--verbose shows what libraries log",
    ("hydra.run", "hydra.sweep", "hydra.output_subdir", "hydra.job.chdir"): "paths.results=FOLDER is where runs go",
    ("hydra.launcher",): "execution chooses where configurations are computed",
    (
        "hydra.sweeper",
        "hydra.mode",
    ): "`ragbench run -m` measures every combination, `ragbench tune` searches for values",
    ("hydra.searchpath",): "save presets as conf/exp/NAME.yaml next to ragbench.yaml, and add --trust",
    ("hydra",): "`ragbench list parameters` shows all keys of ragbench",
}
"""What replaces options and keys of Hydra; of several that a word begins with, the first counts."""
_SYNONYMS = {"on": ("yes", "true", "1", "enabled"), "off": ("no", "false", "0", "null", "none", "disabled")}


def canonical(overrides: Iterable[str], known: Available) -> list[str]:
    """The words with switches by number, `exp` as `+exp` and no other signs; the last option of a group counts.

    Raises ConfigError for a word that is not `key=value` and for one that removes a key.
    """
    canonical_overrides = [_canonical(item, known) for override in overrides for item in _named_search(override, known)]
    last = {key_of(override): position for position, override in enumerate(canonical_overrides)}
    return [
        override
        for position, override in enumerate(canonical_overrides)
        if key_of(override) not in known.by_group or last[key_of(override)] == position
    ]


def _named_search(override: str, known: Available) -> list[str]:
    """The words of a search that runs elsewhere: `source=trec:other.trec` is `live=trec live.path=other.trec`."""
    key, _, value = override.partition("=")
    if key.lstrip("+").strip() != "source":
        return [override]
    kind, _, path = value.strip("'\"").partition(":")
    if not path or kind not in known.by_group["live"]:
        kinds = ", ".join(kind_of_search for kind_of_search in known.by_group["live"] if kind_of_search != "off")
        raise ConfigError(
            f"source must be a search and its place, such as source=trec:other.trec, got {value}; known: {kinds}"
        )
    target = next((option.target for option in options() if (option.group, option.name) == ("live", kind)), None)
    return [f"live={kind}", f"live.{getattr(target, 'place', 'url')}={_as_yaml(path)}"]


def _canonical(override: str, known: Available) -> str:
    key, equals, value = override.partition("=")
    name = key.lstrip("+").strip()
    if name.startswith("~"):
        raise ConfigError(
            f"'{override}': no key can be removed; turn a switch off with p6=off, a stage with dense=null"
        )
    if counterpart := of_hydra(name):
        raise ConfigError(counterpart)
    if not equals or not re.fullmatch(r"\w+(\.\w+)*", name, re.ASCII):
        raise ConfigError(f"'{_shortened(override)}' is not key=value{_suggestion(override, known)}")
    if section_of(name) not in known.names and value in known.by_group[EXPERIMENT] and name not in known.by_group:
        raise ConfigError(f"{name} is unknown; did you mean exp={value}?")
    prefix, dot, space = name.partition("tune.space.")
    name = f"{dot}{numbered(space)}" if dot and not prefix else numbered(name)
    if name in _LISTS_OF_SWITCHES:
        value = re.sub(r"\w+(\.\w+)*", lambda item: numbered(item[0]), value)
    if ("{query}" in value or "{depth}" in value) and value[0] not in "[{'\"":
        value = _as_yaml(value)  # a text: its braces are no mapping
    if value == "~" or value.startswith("~/"):
        value = _as_yaml(str(Path(value).expanduser()))  # a shell expands it only after a name without dots
    return f"{'+' if name == EXPERIMENT else ''}{name}={value}"


def of_hydra(name: str) -> str:
    """Return a sentence with the counterpart of an option or key of Hydra, empty for any other name."""
    name = name.partition("=")[0]
    dotted = f"{name.replace('/', '.')}."
    for names, counterpart in _OF_HYDRA.items():
        if any(dotted.startswith(f"{name}.") for name in names):
            return f"{name[:60]} is {'an option' if name.startswith('-') else 'a key'} of Hydra: {counterpart}"
    return ""


def _suggestion(override: str, known: Available) -> str:
    if near := nearest(override, known.by_group[EXPERIMENT]):
        return f"; did you mean exp={near[0]}?"
    if override.lstrip("+") in known.by_group or numbered(override) in known.by_group:
        return f"; did you mean {override.lstrip('+')}=on?"
    return ": write key=value, with quotes round a value that holds a blank or one of , = { } [ ]"


def key_of(override: str) -> str:
    """The key of a word: `p6.depth` of `p6.depth=20`."""
    return override.lstrip("+").partition("=")[0]


def changes(base: Iterable[str], overrides: Iterable[str]) -> str:
    """The words that differ from those of a base, such as `p2=on`, or `without p2=on` for a key that only it sets."""
    old, new = ([override.lstrip("+") for override in side if key_of(override) != "name"] for side in (base, overrides))
    new_keys = {key_of(override) for override in new}
    dropped = [f"without {override}" for override in old if key_of(override) not in new_keys]
    return " ".join([*(override for override in new if override not in old), *dropped])


def section_of(override: str) -> str:
    """The first part of the key of a word, or of a key: `p6` of `p6.depth=20`."""
    return key_of(override).split(".")[0]


def check_option(group: str, chosen: object, known: Available) -> None:
    """Raise ConfigError when a group has no such option."""
    options = known.by_group[group]
    several = chosen if isinstance(chosen, list) and group == "tune" else [chosen]
    for item in several:
        if not isinstance(item, str) or item not in options:
            text = shown(item).strip("'")
            meant = next(
                (name for name, synonyms in _SYNONYMS.items() if text.casefold() in synonyms and name in options), ""
            )
            hint = f"; did you mean {meant}?" if meant else options_hint(text, options)
            raise ConfigError(f"{group} cannot be {shown(item)}{hint}")


def why_not_plain(override: str) -> str:
    """What a word does while it is composed; empty for one that only sets a value or chooses an option."""
    key = override.partition("=")[0]
    if TARGET in override or "_partial_" in override or key.lstrip("+~").startswith("hydra"):
        return "names code to import"
    return "has a ${...}, which can read the environment" if "${" in override else ""


def named_arms(arguments: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Arms as `--arm` takes them, `mine="p6=on p6.depth=20"`: the words of each by name."""
    arms: dict[str, tuple[str, ...]] = {}
    for argument in arguments:
        name, equals, overrides = argument.partition("=")
        if not equals or not name.strip():
            raise ConfigError(f"--arm '{_shortened(argument)}' has no name: write --arm mine=\"p6=on p6.depth=20\"")
        if name in arms:
            raise ConfigError(f"--arm {name} is given twice: give every arm another name")
        try:
            arms[name] = tuple(shlex.split(overrides))
        except ValueError:
            raise ConfigError(f"--arm {name}: a quote is not closed in {_shortened(overrides)}") from None
    return arms


def word(key: str, value: object) -> str:
    """The word that sets a key to a plain value: `data.corpus='my notes'`."""
    return f"{key}={_as_yaml(value)}"


def words(values: Mapping[str, Any], known: Available) -> list[str]:
    """Plain values by key as words; a mapping turns a switch on and sets its keys.

    >>> from ragbench.config import available
    >>> words({"rerank": {"depth": 20}, "p5": False}, available.read())
    ['p6=on', 'p6.depth=20', 'p5=off']
    """
    overrides: list[str] = []
    for key, value in values.items():
        name = numbered(key)
        options = known.by_group.get(name, ())
        if isinstance(value, Mapping) and (options or known.node(name)):
            if "on" in options:
                overrides.append(word(name, "on"))
            overrides += [word(inner, leaf) for inner, leaf in _leaves(value, name, known)]
        elif isinstance(value, bool) and {"on", "off"} <= set(options):
            overrides.append(word(name, "on" if value else "off"))
        else:
            overrides.append(word(name, value))
    return overrides


def _leaves(node: Mapping[str, Any], path: str, known: Available) -> Iterator[tuple[str, Any]]:
    """The leaves of nested values, as deep as the configuration has keys."""
    for key, value in node.items():
        if isinstance(value, Mapping) and known.node(f"{path}.{key}"):
            yield from _leaves(value, f"{path}.{key}", known)
        else:
            yield f"{path}.{key}", value


def _as_yaml(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_as_yaml(key)}: {_as_yaml(item)}" for key, item in value.items()) + "}"
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
