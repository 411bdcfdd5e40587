"""All that asks Hydra: composing chosen options, listing groups, parsing a word.

Hydra keeps its state in a singleton; it is set aside while ragbench composes, so that a script may use Hydra as well.
"""

from __future__ import annotations

import copy
import re
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ragbench.base import locations
from ragbench.base.console import short_path
from ragbench.base.errors import ConfigError, did_you_mean, options_hint
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config import store
from ragbench.config.names import EXPERIMENT, numbered

if TYPE_CHECKING:
    from omegaconf import DictConfig

CONFIG = "config"
_PYTHON = (ValueError, TypeError, AttributeError, AssertionError, RecursionError)
"""What Hydra and OmegaConf raise for other invalid files."""
_VERSION = "1.3"
_LOCK = threading.RLock()
_Version = tuple[tuple[str, int, int], ...]


def compose(chosen: Sequence[str] = ()) -> tuple[DictConfig, Mapping[str, Any]]:
    """What Hydra composes for chosen options such as `p6=on`, not resolved, and by group the chosen option.

    The option is None where neither a word nor a preset chooses one of a switch. Raises ConfigError for a file that
    cannot be composed.
    """
    config, by_group = _composed(tuple(chosen), *places())
    return copy.deepcopy(config), by_group


def groups() -> Mapping[str, tuple[str, ...]]:
    """By group, the names of its options, without the groups of Hydra."""
    return _groups(*places())


def files(group: str, name: str, inside: Sequence[Path] | None = None) -> Path | None:
    """The file of an option, inside of some folders (default: `folders`); None for one of a class."""
    paths = (folder / group / f"{name}.yaml" for folder in (inside or folders()))
    return next((path for path in paths if path.is_file()), None)


def preset(name: str) -> tuple[dict[str, str], dict[str, Any]]:
    """The options that a preset chooses by group, and the values that it sets, with those of presets it extends."""
    file = files(EXPERIMENT, name)
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
            above = preset(str(entry))
            chosen, values = chosen | above[0], _merged(values, above[1])
    return chosen, _merged(values, content)


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """The values of two mappings, also of those inside; where both have one, that of the second."""
    from omegaconf import OmegaConf

    return cast(dict[str, Any], OmegaConf.to_container(OmegaConf.merge(first, second)))


def folders() -> tuple[Path, ...]:
    """The folders of configuration files: that of ragbench, then `conf` next to the project file."""
    shipped, own = locations.configuration(), locations.fitted()
    return (shipped,) if own == shipped or not own.is_dir() else (shipped, own)


def parse(word: str) -> Any:
    """A word as Hydra parses it; `*` stands for all options of its group. Raises ConfigError for one without form."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        (parsed,) = OverridesParser.create(config_loader=cast(Any, _Options())).parse_overrides([word])
        return parsed
    except (HydraException, ValueError):  # of Python: a number of 5000 digits
        key, _, value = word.lstrip("+").partition("=")
        raise ConfigError(
            f"{key} cannot be read from '{value[:60]}': close its brackets and quotes, "
            f"and quote a text that holds signs, as in {key}=\"'a, b'\""
        ) from None


class _Options:
    """What the parser asks Hydra's loader of files: the options of a group."""

    def get_group_options(self, group_name: str, *others: object, **more: object) -> list[str]:
        return list(groups().get(group_name, ()))


def places() -> tuple[tuple[Path, ...], _Version, int]:
    """The folders, and what changes when one of their files or a registered class does."""
    all_folders = folders()
    stats = [(path, path.stat()) for folder in all_folders for path in sorted(folder.rglob("*.yaml"))]
    version = tuple((str(path), stat.st_mtime_ns, stat.st_size) for path, stat in stats)
    return all_folders, version, store.register()


@lru_cache(maxsize=256)
def _composed(
    chosen: tuple[str, ...], all_folders: tuple[Path, ...], version: _Version, registered: int
) -> tuple[DictConfig, Mapping[str, Any]]:
    import hydra
    from hydra.errors import HydraException
    from omegaconf import OmegaConf, open_dict
    from omegaconf.errors import OmegaConfBaseException
    from yaml import YAMLError

    if not (all_folders[0] / f"{CONFIG}.yaml").is_file():
        raise ConfigError(f"the configuration folder {all_folders[0]} has no config.yaml: install ragbench again")
    own = (
        [f"hydra.searchpath=[{','.join(f'file://{folder}' for folder in all_folders[1:])}]"] if all_folders[1:] else []
    )
    with _initialized(all_folders[0]), warnings.catch_warnings():
        # A file of a project may have the name of an option that a class declares: its values take their place.
        warnings.filterwarnings("ignore", r"\s*'.*' is validated against ConfigStore schema", UserWarning)
        try:
            config = hydra.compose(CONFIG, [*chosen, *own], return_hydra_config=True)
        except (HydraException, OmegaConfBaseException, YAMLError, OSError, *_PYTHON) as error:
            raise ConfigError(_sentence(error, chosen, all_folders)) from None
    by_group = cast(Mapping[str, Any], OmegaConf.to_container(config.hydra.runtime.choices))
    with open_dict(config):
        del config["hydra"]
    return config, by_group


@lru_cache(maxsize=4)
def _groups(all_folders: tuple[Path, ...], version: _Version, registered: int) -> Mapping[str, tuple[str, ...]]:
    by_group = store.options_by_group()
    for folder in all_folders:
        for path in filter(Path.is_file, folder.glob("*/*.yaml")):
            by_group.setdefault(path.parent.name, set()).add(path.stem)
    return {group: tuple(sorted(names)) for group, names in sorted(by_group.items())}


@contextmanager
def _initialized(folder: Path) -> Iterator[None]:
    """Initialize Hydra with a folder, and give it back its own state afterwards."""
    from hydra import initialize_config_dir
    from hydra.core.global_hydra import GlobalHydra

    with _LOCK:
        state = GlobalHydra.instance()
        before, state.hydra = state.hydra, None
        try:
            with initialize_config_dir(str(folder), version_base=_VERSION):
                yield
        finally:
            GlobalHydra.instance().hydra = before


def _sentence(error: Exception, chosen: Sequence[str], all_folders: Sequence[Path]) -> str:
    """An error of Hydra, OmegaConf or YAML in one sentence that names the file and what to correct."""
    import yaml
    from hydra.errors import MissingConfigException

    text = " ".join(str(error).split("\n")[0].split())
    named = re.search(r"In '([\w/.-]+)'", text)
    preset = next((word.partition("=")[2] for word in chosen if word.lstrip("+").startswith(f"{EXPERIMENT}=")), "")
    inside = named[1] if named and named[1] != CONFIG else f"{EXPERIMENT}/{preset}" if preset else CONFIG
    file = next((path for folder in all_folders if (path := folder / f"{inside}.yaml").is_file()), all_folders[0])
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        problem = " ".join(str(error.problem or error.context).split())
        problem = "a list or mapping as a key" if "unhashable" in problem else problem.partition(" for the tag")[0]
        place = f"{short_path(Path(error.problem_mark.name))}:{error.problem_mark.line + 1}"
        return f"{place}: is not YAML ({problem}): repair this line or the one before"
    if isinstance(error, UnicodeDecodeError):
        return f"{short_path(_not_text(all_folders))} is not UTF-8 text: save it as UTF-8"
    if isinstance(error, RecursionError):
        return f"{short_path(file)} contains itself: write out what it includes"
    if isinstance(error, MissingConfigException) and "/" in str(error.missing_cfg_file):
        group, _, name = str(error.missing_cfg_file).rpartition("/")
        options = groups().get(group, ())
        return f"{group} cannot be '{name}'{options_hint(name, options)} (in {short_path(file)})"
    if unknown := re.search(r"Could not override '([\w/]+)'", text):
        hint = did_you_mean(numbered(unknown[1]), [numbered(unknown[1]), *groups()], "switches")
        return f"{short_path(file)} chooses '{unknown[1]}', which is not a switch{hint}"
    if key := re.search(r"full_key: ([\w.]+)", str(error)):
        reason = " ".join(str(error).partition("composing config:")[2].partition("full_key")[0].split())
        return f"{key[1]} cannot be set ({reason[:160]}): correct it (in {short_path(file)})"
    if "in defaults : bool" in text:
        return f"{short_path(file)} chooses an option that YAML reads as true or false: write on and off in quotes"
    lines = [line.strip() for line in str(error.__cause__ or error).splitlines()]
    reason = " ".join(line for line in lines if line and not re.match(r"In '|[\w ]+:", line))
    return f"{short_path(file)} cannot be composed ({(reason or text).replace('NoneType', 'null')[:200]}): correct it"


def _not_text(all_folders: Sequence[Path]) -> Path:
    """The first file that is not UTF-8 text."""
    for path in (path for folder in all_folders for path in sorted(folder.rglob("*.yaml"))):
        try:
            path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return path
    return all_folders[0]
