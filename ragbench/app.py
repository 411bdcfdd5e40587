"""Compose configurations with Hydra; the only module that imports it.

One process composes every arm of a sweep, so that arms can share work and be timed side by side.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ragbench import locations
from ragbench.configuration import Settings
from ragbench.errors import ConfigError

# Where and how is measured, not what: no part of an arm's name.
_AROUND = {
    *("data", "topics", "split", "seed", "measures", "latency", "statistics", "budget", "tune"),
    *("tracking", "paths", "execution", "artefacts"),
}


def compose(overrides: Sequence[str]) -> Settings:
    """The settings for overrides, checked."""
    with _hydra():
        return _settings(overrides, set()).check()


def sweep(overrides: Sequence[str]) -> list[Settings]:
    """The settings for every combination of `key=a,b`, in order, checked; each has a name of its own."""
    with _hydra():
        batches = _expand(overrides)
        varying = {key for key in map(_key, batches[0]) if len({_of(batch, key) for batch in batches}) > 1}
        settings = [_settings(batch, varying) for batch in batches]
    names = [each.name for each in settings]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated:
        raise ConfigError(f"two arms would be called '{repeated}': give them different names with name=...")
    return [each.check() for each in settings]


def _settings(batch: Sequence[str], varying: set[str]) -> Settings:
    from hydra import compose as hydra_compose
    from hydra.errors import HydraException
    from omegaconf import OmegaConf
    from omegaconf.errors import OmegaConfBaseException

    try:
        composed = hydra_compose(config_name="config", overrides=list(batch))
        config: Any = OmegaConf.to_container(composed, resolve=True, throw_on_missing=True)
    except (HydraException, OmegaConfBaseException, ValueError) as error:
        raise ConfigError(_sentence(error, batch)) from None
    return Settings(_name(config, batch, varying), config, tuple(batch))


def _name(config: Any, batch: Sequence[str], varying: set[str]) -> str:
    """The configured name (an experiment sets its own), then what varies over the sweep."""
    extra = [item for item in batch if _key(item) in varying - {"exp", "name"}]
    given = config.get("name")
    if given:
        return " ".join([str(given), *extra])
    shown = [item.lstrip("+") for item in (extra or batch) if _key(item).split(".")[0] not in _AROUND]
    return " ".join(shown) or "default"


def _expand(overrides: Sequence[str]) -> list[list[str]]:
    from hydra._internal.core_plugins.basic_sweeper import BasicSweeper
    from hydra.core.global_hydra import GlobalHydra
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        parser = OverridesParser.create(config_loader=GlobalHydra.instance().config_loader())
        parsed = parser.parse_overrides(list(overrides))
        return [batch for job in BasicSweeper.split_arguments(parsed, max_batch_size=None) for batch in job]
    except HydraException as error:
        raise ConfigError(_sentence(error, overrides)) from None


@contextmanager
def _hydra() -> Iterator[None]:
    from hydra import initialize_config_dir

    folder = locations.configuration()
    if not (folder / "config.yaml").is_file():
        raise ConfigError(f"the configuration folder {folder} has no config.yaml: install ragbench again")
    with initialize_config_dir(config_dir=str(folder), version_base="1.3"):
        yield


def _key(override: str) -> str:
    return override.lstrip("+~").split("=", 1)[0]


def _of(batch: Sequence[str], key: str) -> str | None:
    return next((item for item in batch if _key(item) == key), None)


def _sentence(error: Exception, overrides: Sequence[str]) -> str:
    """What Hydra says over several lines, in one, with the remedy."""
    text = str(error)
    cause = str(error.__cause__ or "")
    choice = re.search(r"Could not find '([^']+)/([^'/]+)'\s*Available options in '[^']+':\s*(.*)", text, re.DOTALL)
    if choice:
        options = ", ".join(choice[3].split())
        return f"{choice[1]} cannot be '{choice[2]}': the choices are {options}"
    listed = re.search(r"Could not load '([^']+)/([^'/]+)'", text)
    if listed:
        options = ", ".join(sorted(path.stem for path in (locations.configuration() / listed[1]).glob("*.yaml")))
        return f"{listed[1]} cannot be '{listed[2]}': the choices are {options}"
    group = re.search(r"Could not override '([^']+)'.*No match in the defaults list", text, re.DOTALL)
    key = re.search(r"Key '([^']+)' is not in struct", text + cause)
    if group or key:
        name = group[1] if group else next((_key(o) for o in overrides if key and _key(o).endswith(key[1])), "")
        name = name or (key[1] if key else "")
        return f"unknown key '{name}': it does not exist, or belongs to a switch that is off (see ragbench config)"
    return " ".join((text + (f" ({cause})" if cause and cause not in text else "")).split())
