"""A collection in a git repository: one commit is fetched once, and checked whenever it is read."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import partial
from pathlib import Path, PurePosixPath

from ragbench.base import locations
from ragbench.base.errors import BenchmarkError, ConfigError, without_secret
from ragbench.base.files import draft_of
from ragbench.base.fingerprint import digest
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.judgments import Grades, UnknownTopics
from ragbench.benchmark.vault import load_vault
from ragbench.corpus.file_warning import OnError
from ragbench.corpus.folder import MARKDOWN
from ragbench.corpus.links import Dialect

_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_LIMIT_SECONDS = 1800
_FETCHING = ("protocol.version=2", "http.lowSpeedLimit=1000", "http.lowSpeedTime=60")
# A checkout holds the same bytes wherever it is made, and runs nothing of the repository.
_CHECKOUT = ("core.autocrlf=false", "core.symlinks=false", "core.hooksPath=/dev/null", "core.fsmonitor=false")
_ELSEWHERE = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_NAMESPACE")


def load_git(
    url: str,  # address of the repository, or a path
    commit: str,  # all 40 digits of the commit hash
    subfolder: str = "",  # folder of the repository; empty: all of it
    cache: Path | None = None,  # downloads go into its folder `fetched`
    corpus: Path | None = None,  # a folder that already holds these documents; nothing is downloaded then
    queries: Path | None = None,  # CSV, TSV or JSONL as for data=vault; or topics=derived
    qrels: Path | None = None,  # folder that `ragbench judge` writes, or a file of judgments in BEIR or TREC format
    name: str | None = None,  # the folder's name when null
    grades: Grades | None = None,  # a new grade for each grade of a qrels file
    include: Sequence[str] = MARKDOWN,
    on_error: OnError = "warn",  # if a file cannot be read: warn skips it, fail stops the run
    # judgments of unknown queries: fail stops with the line number, warn skips them
    unknown_topics: UnknownTopics = "fail",
    dialect: Dialect = "auto",
    topics: bool = True,
) -> Benchmark:
    """Read the markdown of a commit as a vault (`load_vault`); `corpus` names an existing copy.

    Raises BenchmarkError where the commit cannot be fetched or its copy has changed, ConfigError for invalid options.
    """
    if not without_secret(url):
        raise ConfigError("data.url must hold no password or token: give it to git, with git config credential.helper")
    checkout = corpus or _checkout(url, commit, subfolder, cache or locations.results())
    return load_vault(
        checkout, queries, qrels, name, grades, include, on_error, unknown_topics, dialect=dialect, topics=topics
    )


def _checkout(url: str, commit: str, subfolder: str, cache: Path) -> Path:
    """The folder of a commit below `cache`, fetched when it is missing.

    A commit's name is a digest of all its files. Git checks it when files arrive, and every read here checks it again.
    """
    if not _COMMIT.fullmatch(commit):
        raise ConfigError(
            f"data.commit must be the whole name of a commit (40 hexadecimal digits), got '{commit[:60]}'"
        )
    inside = PurePosixPath(subfolder)
    if inside.is_absolute() or ".." in inside.parts:
        raise ConfigError(f"data.subfolder must be a folder inside the repository, got '{subfolder[:60]}'")
    if url.startswith("-") or not url.strip():
        raise ConfigError(f"data.url must be the address of a git repository, got '{url[:60]}'")
    checkout = cache.expanduser() / "fetched" / f"{commit[:12]}-{digest([commit, str(inside)])[:8]}"
    if not checkout.is_dir():
        _fetch(url, commit, inside, checkout)
    _require_unchanged(checkout, commit)
    return checkout / inside


def _fetch(url: str, commit: str, inside: PurePosixPath, checkout: Path) -> None:
    """Create `checkout`; it never exists incomplete."""
    checkout.parent.mkdir(parents=True, exist_ok=True)
    draft = draft_of(checkout)
    in_draft = partial(_git, "-C", str(draft))
    try:
        _git("init", "--quiet", str(draft))
        for setting in _CHECKOUT:
            in_draft("config", *setting.split("=", 1))
        in_draft("remote", "add", "origin", url)
        if inside.parts:  # the rest of the repository is not fetched where the server can leave it out
            in_draft("sparse-checkout", "set", "--cone", str(inside))
        settings = [argument for setting in _FETCHING for argument in ("-c", setting)]
        try:
            in_draft(*settings, "fetch", "--quiet", "--depth=1", "--no-tags", "--filter=blob:none", "origin", commit)
            in_draft(*settings, "checkout", "--quiet", "--detach", commit)
        except _Refused as error:
            raise BenchmarkError(
                f"{url} cannot be fetched ({error}): connect to a network that reaches it, or name a copy of its "
                "documents with data.corpus=DIR"
            ) from None
        if not (draft / inside).is_dir():
            raise BenchmarkError(f"commit {commit[:12]} of {url} has no folder '{inside}': correct data.subfolder")
        try:
            draft.rename(checkout)
        except OSError:
            if not checkout.is_dir():  # else another process was faster
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _require_unchanged(checkout: Path, commit: str) -> None:
    try:
        head = _git("-C", str(checkout), "rev-parse", "HEAD").strip()
        changed = _git(
            "-C", str(checkout), "status", "--porcelain", "--no-renames", "--ignored", "--untracked-files=all"
        )
    except _Refused as error:
        raise BenchmarkError(f"{checkout} cannot be read ({error}): remove it, and it is fetched again") from None
    if head != commit or changed:
        changed_file = changed.splitlines()[0][3:] if changed else f"commit {head[:12]}"
        raise BenchmarkError(
            f"{checkout} has changed since it was fetched ({changed_file}): remove it, and it is fetched again"
        )


class _Refused(Exception):
    """The error message of git, in one line."""


def _git(*arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in _ELSEWHERE}
    try:
        environment |= {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
        process = subprocess.run(
            ["git", *arguments],
            capture_output=True,
            text=True,
            errors="replace",
            stdin=subprocess.DEVNULL,
            timeout=_LIMIT_SECONDS,
            env=environment,
            check=False,
        )
    except FileNotFoundError:
        raise BenchmarkError(
            "git is not installed: install it, or name a copy of the documents with data.corpus=DIR"
        ) from None
    except subprocess.TimeoutExpired:
        raise _Refused(f"no answer within {_LIMIT_SECONDS // 60} minutes") from None
    if process.returncode:
        lines = [line for line in process.stderr.splitlines() if line.startswith(("fatal:", "error:"))]
        raise _Refused((lines or process.stderr.splitlines() or ["git failed"])[0].partition(": ")[2] or "git failed")
    return process.stdout
