"""What a person types after a command, `p6=on rerank.depth=20 exp=phase1`, as the words that are composed.

A key is set by its name alone: the signs `+` and `++` are taken and mean nothing more. A switch goes by its number or
its name (`ragbench.catalogue.ALIASES`). Nothing is composed here.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence

from ragbench.bounds import shown
from ragbench.catalogue import Catalogue, numbered
from ragbench.errors import ConfigError
from ragbench.suggestions import did_you_mean, nearest

EXPERIMENT = "exp"
_LISTS = ("factors", "order", "tune")  # their values name switches
_MEANT = {"on": ("yes", "true", "1", "enabled"), "off": ("no", "false", "0", "null", "none", "disabled")}


def canonical(words: Iterable[str], known: Catalogue) -> list[str]:
    """The words with the numbers of switches for their names, `exp` as `+exp`, no other signs; groups once, the last.

    Raises ConfigError for what is no `key=value` and for a key that is removed.
    """
    made = [_canonical(word, known) for word in words]
    last = {key_of(word): place for place, word in enumerate(made)}
    return [word for place, word in enumerate(made) if key_of(word) not in known.choices or last[key_of(word)] == place]


def _canonical(word: str, known: Catalogue) -> str:
    key, equals, value = word.partition("=")
    name = key.lstrip("+").strip()
    if name.startswith("~"):
        raise ConfigError(f"'{word}': no key can be removed; turn a switch off with p6=off, a stage with dense=null")
    if not equals or not re.fullmatch(r"[\w.]+", name, re.ASCII):
        raise ConfigError(f"'{_short(word)}' is no key=value{_meant(word, known)}")
    if name.split(".")[0] == "hydra":
        raise ConfigError(f"{name} is unknown: `ragbench config` shows all keys")
    if name.split(".")[0] not in known.tree and value in known.choices[EXPERIMENT] and name not in known.choices:
        raise ConfigError(f"{name} is unknown; did you mean exp={value}?")
    prefix, dot, space = name.partition("tune.space.")
    name = f"{dot}{numbered(space)}" if dot and not prefix else numbered(name)
    if name in _LISTS:
        value = re.sub(r"\w+(\.\w+)*", lambda found: numbered(found[0]), value)
    return f"{'+' if name == EXPERIMENT else ''}{name}={value}"


def _meant(word: str, known: Catalogue) -> str:
    if near := nearest(word, known.choices[EXPERIMENT]):
        return f"; did you mean exp={near[0]}?"
    if word.lstrip("+") in known.choices or numbered(word) in known.choices:
        return f"; did you mean {word.lstrip('+')}=on?"
    return ": write key=value, with quotes round a value that holds a blank or one of , = { } [ ]"


def key_of(word: str) -> str:
    """The key of a word: `p6.depth` of `p6.depth=20`."""
    return word.lstrip("+").partition("=")[0]


def check_choice(group: str, chosen: object, known: Catalogue, where: str = "") -> None:
    """Raise ConfigError when a group has no such option; `where` is added, such as the file that asks for it."""
    options = known.choices[group]
    several = chosen if isinstance(chosen, list) and group == "tune" else [chosen]
    for each in several:
        if not isinstance(each, str) or each not in options:
            text = shown(each).strip("'")
            meant = next((name for name, words in _MEANT.items() if text.casefold() in words and name in options), "")
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
            raise ConfigError(f"--arm '{_short(each)}' has no name: write --arm mine=\"p6=on p6.depth=20\"")
        if name in arms:
            raise ConfigError(f"--arm {name} is given twice: give every arm a name of its own")
        try:
            arms[name] = tuple(shlex.split(words))
        except ValueError:
            raise ConfigError(f"--arm {name}: a quote is not closed in {_short(words)}") from None
    return arms


def by_key(words: Iterable[str]) -> Mapping[str, str]:
    """The values of words by key, as they are typed; the last of equal keys."""
    return {key_of(word): word.partition("=")[2] for word in words}


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else f"{text[:60]}..."
