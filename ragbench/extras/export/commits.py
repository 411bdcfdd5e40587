"""A configuration measured on the folder of a project as it was at a commit, and as it is."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from ragbench.base import git, locations
from ragbench.base.types import ConfigError, ResultsError

_UNLESS_SAID = {"tracking.enabled": "false", "latency.enabled": "false"}
"""A machine of CI has noisy times, and keeps no store."""


@contextmanager
def measured(commit: str, words: Sequence[str], trust: bool = False) -> Iterator[tuple[Path, Path]]:
    """The folders of results at the commit and now, until the block ends.

    `words` are settings, as after `ragbench run`. Both runs share indexes and caches, so that only what changed is
    computed. The files of the commit are a worktree of Git that is removed. Raises ConfigError outside a repository or
    for an unknown commit, ResultsError for a run that fails.
    """
    here = Path.cwd()
    top = Path(_git(here, "rev-parse", "--show-toplevel"))
    below = _git(here, "rev-parse", "--show-prefix")
    if _git(top, "rev-parse", "--verify", "--quiet", f"{commit}^{{commit}}", check=False) == "":
        raise ConfigError(
            f"--base {commit} is not a commit of this repository: fetch it (in CI, check out with the whole history)"
        )
    with tempfile.TemporaryDirectory(prefix="ragbench-gate-") as place:
        work, before = Path(place), Path(place) / "before"
        _git(top, "worktree", "add", "--quiet", "--detach", str(before), commit)
        try:
            if not (before / below / locations.PROJECT_FILE).is_file():
                file = f"{below}{locations.PROJECT_FILE}"
                raise ConfigError(f"commit {commit} has no {file}: nothing can be compared before it is merged")
            yield _run(before / below, work, "was", words, trust), _run(here, work, "is", words, trust)
        finally:
            _git(top, "worktree", "remove", "--force", str(before), check=False)


def _run(folder: Path, work: Path, name: str, words: Sequence[str], trust: bool) -> Path:
    """Run the configuration in a folder; its results."""
    given = {word.partition("=")[0] for word in words}
    settings = [*words, *(f"{key}={value}" for key, value in _UNLESS_SAID.items() if key not in given)]
    settings += [f"paths.{part}={work / part}" for part in ("cache", "index")]
    command = [sys.executable, "-P", "-m", "ragbench", "run", *settings, f"paths.results={work / name}", "--quiet"]
    done = subprocess.run(
        [*command, *(["--trust"] if trust else [])], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.startswith("ragbench: ")] or ["ragbench: no message"]
        of = "the files of the base" if name == "was" else "the files of now"
        raise ResultsError(f"{of} cannot be measured: {said[-1].removeprefix('ragbench: ')}")
    (results,) = (work / name / "runs").iterdir()
    return results


def _git(folder: Path, *words: str, check: bool = True) -> str:
    """The output of a command of Git in one line; "" for one that fails unchecked."""
    try:
        return git.git(folder, *words).decode("utf-8", "replace").strip()
    except git.GitMissing:
        raise ConfigError("--base needs git on the PATH: install it") from None
    except git.GitError as error:
        if check:
            raise ConfigError(f"git {words[0]} fails in {folder}: {error}") from None
        return ""
