"""Commands of git."""

from __future__ import annotations

import subprocess
from pathlib import Path


class GitError(Exception):
    """A command that failed; its text is the reason."""


class GitMissing(GitError):
    """The program git is not installed."""


def git(folder: Path, *arguments: str, given: bytes = b"", limit_s: float | None = None) -> bytes:
    """What a command of git prints in a folder. Raises GitError if it fails or takes longer than `limit_s`."""
    command = ["git", "-C", str(folder), *arguments]
    try:
        return subprocess.run(command, input=given, capture_output=True, check=True, timeout=limit_s).stdout
    except OSError as error:
        raise GitMissing(f"git cannot be started: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise GitError(f"no answer within {limit_s:g} s") from None
    except subprocess.CalledProcessError as error:
        reason = error.stderr.decode("utf-8", "replace").strip().partition("\n")[0]
        raise GitError(reason or f"exit code {error.returncode}") from None
