"""One way to name a finished run, for every command and for notebooks.

results/runs/20260101-120000-run-3-arms    its folder, or that of an arm in it
@1, @2                                     the newest, the one before
20260101, phase1, run-3-arms               any part of the folder's name that no other run has
3f2a...                                    its id in MLflow
@1/rerank                                  an arm of one of these
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ragbench import tracking
from ragbench.base import console
from ragbench.base.errors import ResultsError
from ragbench.base.suggestions import did_you_mean
from ragbench.config import composition
from ragbench.config.settings import Settings
from ragbench.results import store
from ragbench.tracking.store import Say

_SHOWN = 4


def find(name: str, settings: Settings, say: Say) -> Path:
    """The folder of a run or of an arm, or the run file, with this name. Raises ResultsError, TrackingError."""
    path = Path(name).expanduser()
    if path.exists():
        return path
    run, _, arm = name.partition("/")
    if not run or "/" in arm:  # the path of something that does not exist
        run, arm = name, ""
    folder = _folder(run, settings, say)
    if not arm:
        return folder
    known = [str(each) for each in store.read(folder)["arms"]]
    if arm not in known:
        raise ResultsError(f"the run {folder.name} has no arm '{arm}'{did_you_mean(arm, known, 'arms')}")
    return store.arm_path(folder, arm)


def named_runs(words: Sequence[str], most: int | None = None, say: Say = console.say) -> tuple[list[Path], Settings]:
    """The folders and files that words name (default: the newest run), and the settings of the other words.

    Raises ResultsError for more than `most`.
    """
    named, overrides = split_words(words)
    if most is not None and len(named) > most:
        raise ResultsError(f"name one run, got {len(named)}: {', '.join(named)}; ragbench compare takes several")
    settings = composition.compose(overrides)
    return [find(name, settings, say) for name in named or ["@1"]], settings


def split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The names among the words, and the overrides: words that contain `=` and are not a file."""
    overrides = [word for word in words if "=" in word and not Path(word).exists()]
    return [word for word in words if word not in overrides], overrides


def _folder(name: str, settings: Settings, say: Say) -> Path:
    if numbered := re.fullmatch(r"@(\d+)", name):
        return _before(int(numbered[1]), settings, say)
    found = [folder for folder in store.finished_runs(settings.results) if name and name in folder.name]
    exact = [folder for folder in found if folder.name == name]
    if len(found) == 1 or exact:
        return (exact or found)[0]
    if found:
        shown = ", ".join(folder.name for folder in found[:_SHOWN]) + (", ..." if len(found) > _SHOWN else "")
        raise ResultsError(f"'{name}' may be any of {len(found)} runs ({shown}): type more of the name")
    if not re.fullmatch(r"[0-9a-f]{32}", name):
        raise ResultsError(
            f"'{name}' is neither a file nor a run in {settings.results / 'runs'}: name a folder, a part of its "
            "name, or @1 for the newest run"
        )
    return Path(tracking.folder_of(tracking.target_of(settings), name))


def _before(number: int, settings: Settings, say: Say) -> Path:
    if number == 1:
        return store.latest(settings.results, say)
    runs = store.finished_runs(settings.results)
    if not 1 <= number <= len(runs):
        raise ResultsError(
            f"@{number} is not a run: there are {len(runs)} in {settings.results / 'runs'}, @1 is the newest"
        )
    return runs[number - 1]
