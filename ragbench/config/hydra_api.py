"""All that asks Hydra: composing chosen options, listing groups, parsing a word.

Hydra keeps its state in a singleton; it is set aside while Hydra starts, so that a script may use Hydra as well.
"""

from __future__ import annotations

import copy
import re
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ragbench.base import locations, options
from ragbench.base.types import ConfigError, did_you_mean, options_hint, short_path
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config import store
from ragbench.config.names import EXPERIMENT, numbered

if TYPE_CHECKING:
    from hydra.core.config_loader import ConfigLoader
    from omegaconf import DictConfig

CONFIG = "config"
_PYTHON = (ValueError, TypeError, AttributeError, AssertionError, RecursionError)
"""What Hydra and OmegaConf raise for other invalid files."""
_VERSION = "1.3"
_LOCK = threading.RLock()
_NO_APPLICATION = tuple(
    f"~hydra/{group}"
    for group in ("job_logging", "hydra_logging", "help", "hydra_help", "output", "launcher", "sweeper")
)
"""Words without what only an application of Hydra uses, which takes a fifth of the time."""


def read() -> Folders:
    """The folders of configuration files now: that of ragbench, then `conf` next to the project file."""
    shipped, own = locations.configuration(), locations.fitted()
    paths = (shipped,) if own == shipped or not own.is_dir() else (shipped, own)
    stats = [(path, path.stat()) for folder in paths for path in sorted(folder.rglob("*.yaml"))]
    return _folders(paths, (store.register(), *((path, stat.st_mtime_ns, stat.st_size) for path, stat in stats)))


@dataclass(frozen=True)
class Folders:
    """Folders that Hydra reads with the schemas of classes; `version` changes with each file and class."""

    paths: tuple[Path, ...]
    version: object

    def compose(self, chosen: Sequence[str] = ()) -> tuple[DictConfig, Mapping[str, Any]]:
        """What Hydra composes for chosen options such as `p6=on`, not resolved, and by group the chosen option.

        The option is None where neither a word nor a preset chooses one of a switch. Raises ConfigError for a file that
        cannot be composed.
        """
        config, by_group = _composed(self, tuple(chosen))
        return copy.deepcopy(config), by_group

    @cached_property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """By group, the names of its options, without the groups of Hydra."""
        names = {option.group: set(store.names(option.group)) for option in options.options()}
        for path in (path for folder in self.paths for path in folder.glob("*/*.yaml") if path.is_file()):
            names.setdefault(path.parent.name, set()).add(path.stem)
        return {group: tuple(sorted(names[group])) for group in sorted(names) if names[group] and group != store.CLASS}

    @cached_property
    def loader(self) -> ConfigLoader:
        """Hydra's loader of the first folder and of the schemas; Hydra has its own state back afterwards."""
        from hydra import initialize_config_dir
        from hydra.core.global_hydra import GlobalHydra

        with _LOCK:
            state = GlobalHydra.instance()
            before, state.hydra = state.hydra, None
            try:
                with initialize_config_dir(str(self.paths[0]), version_base=_VERSION):
                    return state.config_loader()
            finally:
                state.hydra = before

    @cached_property
    def parse(self) -> Callable[[str], Any]:
        """Parse a word as Hydra does; `*` is all options of its group. Raises ConfigError for one without form."""
        return lru_cache(maxsize=1024)(self._parse)  # a composition parses each of its words several times

    def _parse(self, word: str) -> Any:
        from hydra.core.override_parser.overrides_parser import OverridesParser
        from hydra.errors import HydraException

        try:
            (parsed,) = OverridesParser.create(config_loader=self.loader).parse_overrides([word])
            return parsed
        except (HydraException, ValueError):  # of Python: a number of 5000 digits
            key, _, value = word.lstrip("+").partition("=")
            raise ConfigError(
                f"{key} cannot be read from '{value[:60]}': close its brackets and quotes, "
                f"and quote a text that holds signs, as in {key}=\"'a, b'\""
            ) from None

    def file(self, group: str, name: str) -> Path | None:
        """The file of an option; None for one of a class."""
        paths = (folder / group / f"{name}.yaml" for folder in self.paths)
        return next((path for path in paths if path.is_file()), None)

    def preset(self, name: str) -> tuple[dict[str, str], dict[str, Any]]:
        """The options that a preset chooses by group, and the values that it sets, with those of presets it extends."""
        file = self.file(EXPERIMENT, name)
        content = read_yaml_file(file) if file is not None else None
        if not isinstance(content, dict):
            return {}, {}
        chosen: dict[str, str] = {}
        values: dict[str, Any] = {}
        entries = content.pop("defaults", None)
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, dict):
                chosen |= {str(group).rpartition("/")[2]: str(chosen) for group, chosen in entry.items()}
            elif entry not in ("_self_", name):
                above = self.preset(str(entry))
                chosen, values = chosen | above[0], _merged(values, above[1])
        return chosen, _merged(values, content)


_folders = lru_cache(maxsize=4)(Folders)


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The values of two mappings, also of those inside; where both have one, that of the second."""
    from omegaconf import OmegaConf

    return cast(dict[str, Any], OmegaConf.to_container(OmegaConf.merge(first, second)))


@lru_cache(maxsize=256)
def _composed(folders: Folders, chosen: tuple[str, ...]) -> tuple[DictConfig, Mapping[str, Any]]:
    from hydra import version
    from hydra.errors import HydraException
    from hydra.types import RunMode
    from omegaconf import OmegaConf, open_dict
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    if not (folders.paths[0] / f"{CONFIG}.yaml").is_file():
        raise ConfigError(f"the configuration folder {folders.paths[0]} has no config.yaml: install ragbench again")
    version.setbase(_VERSION)
    further = [f"file://{folder}" for folder in folders.paths[1:]]
    with warnings.catch_warnings():
        # A file of a project may have the name of an option that a class declares: its values take their place.
        warnings.filterwarnings("ignore", r"\s*'.*' is validated against ConfigStore schema", UserWarning)
        try:
            words = [*chosen, *_NO_APPLICATION, "hydra.job.name=ragbench", f"hydra.searchpath=[{','.join(further)}]"]
            config = folders.loader.load_configuration(CONFIG, words, RunMode.RUN, from_shell=False)
        except (HydraException, OmegaConfBaseException, YAMLError, OSError, *_PYTHON) as error:
            raise ConfigError(_sentence(error, chosen, folders)) from None
    by_group = cast(Mapping[str, Any], OmegaConf.to_container(config.hydra.runtime.choices))
    with open_dict(config):
        del config["hydra"]
    return config, by_group


def _sentence(error: Exception, chosen: Sequence[str], folders: Folders) -> str:
    """An error of Hydra, OmegaConf or YAML in one sentence that names the file and what to correct."""
    import yaml
    from hydra.errors import MissingConfigException

    text = " ".join(str(error).split("\n")[0].split())
    named = re.search(r"In '([\w/.-]+)'", text)
    preset = next((word.partition("=")[2] for word in chosen if word.lstrip("+").startswith(f"{EXPERIMENT}=")), "")
    inside = named[1] if named and named[1] != CONFIG else f"{EXPERIMENT}/{preset}" if preset else CONFIG
    file = next((path for folder in folders.paths if (path := folder / f"{inside}.yaml").is_file()), folders.paths[0])
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        problem = " ".join(str(error.problem or error.context).split())
        problem = "a list or mapping as a key" if "unhashable" in problem else problem.partition(" for the tag")[0]
        place = f"{short_path(Path(error.problem_mark.name))}:{error.problem_mark.line + 1}"
        return f"{place}: is not YAML ({problem}): repair this line or the one before"
    if isinstance(error, UnicodeDecodeError):
        return f"{short_path(_not_text(folders.paths))} is not UTF-8 text: save it as UTF-8"
    if isinstance(error, RecursionError):
        return f"{short_path(file)} contains itself: write out what it includes"
    if isinstance(error, MissingConfigException) and "/" in str(error.missing_cfg_file):
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        hint = options_hint(name, folders.groups.get(group, ()))
        return f"{group} cannot be '{name}'{hint} (in {short_path(file)})"
    if unknown := re.search(r"Could not override '([\w/]+)'", text):
        hint = did_you_mean(numbered(unknown[1]), [numbered(unknown[1]), *folders.groups], "switches")
        return f"{short_path(file)} chooses '{unknown[1]}', which is not a switch{hint}"
    if key := re.search(r"full_key: ([\w.]+)", str(error)):
        reason = " ".join(str(error).partition("composing config:")[2].partition("full_key")[0].split())
        return f"{key[1]} cannot be set ({reason[:160]}): correct it (in {short_path(file)})"
    if "in defaults : bool" in text:
        return f"{short_path(file)} chooses an option that YAML reads as true or false: write on and off in quotes"
    lines = [line.strip() for line in str(error.__cause__ or error).splitlines()]
    reason = " ".join(line for line in lines if line and not re.match(r"In '|[\w ]+:", line))
    return f"{short_path(file)} cannot be composed ({(reason or text).replace('NoneType', 'null')[:200]}): correct it"


def _not_text(paths: Sequence[Path]) -> Path:
    """The first file that is not UTF-8 text."""
    for path in (path for folder in paths for path in sorted(folder.rglob("*.yaml"))):
        try:
            path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return path
    return paths[0]
