"""Errors that you can act on, and the exit codes of the command line; 0 means success.

Each message is one sentence that names the thing and the remedy. The command line prints it and exits with code 2; no
traceback is shown for these. No message contains a password. `did_you_mean` ends a message about a mistyped name;
`counted`, `shown` and `short_path` are the words for numbers, values and paths in it.
"""

from __future__ import annotations

import difflib
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

FAILED = 1
"""A check did not pass (`data check`, `verify`, `gate`), or arms of an experiment failed."""

BAD_INPUT = 2
"""Bad input, or a part that is missing; one sentence on stderr names it."""

NOT_CHECKED = 3
"""Nothing failed, but there are too few topics, or too uncertain times, to show what `gate` was asked to show."""

INTERRUPTED = 130
"""Stopped with Ctrl-C or SIGTERM; what was finished is kept."""

_SECRET_NAME = (
    r"(?:[\w-]*[-_])?(?:authorization|cookie|password|passwd|pwd|secret|token|auth|sig|signature"
    r"|(?:api|access|auth|private|subscription)[-_]?key)|key"
)

_SECRETS = (
    (re.compile(r"(?<=://)([^\s/?#'\"@:]*):[^\s/?#'\"]*@"), r"\1:***@"),
    (re.compile(r"(?<=http://|ttps://)[^\s/?#'\"]+@"), "***@"),
    (re.compile(rf"([?&](?:{_SECRET_NAME})=)(?!{{query}})[^&\s'\"]+", re.IGNORECASE), r"\1***"),
)


def redacted(text: str) -> str:
    """Return a text in which `***` replaces the passwords, tokens and keys of addresses."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


def without_secret(text: str) -> bool:
    """Return True if an address contains no password, token or key."""
    return redacted(text) == text


def names_secret(name: str) -> bool:
    """Return True for the name of a header or parameter that carries a password, token or key."""
    return re.fullmatch(_SECRET_NAME, name, re.IGNORECASE) is not None


class RagbenchError(Exception):
    """Base of every error that ragbench raises on purpose."""

    def __str__(self) -> str:
        """Return the message, without passwords."""
        return redacted(super().__str__())


class BoundaryError(RagbenchError, ValueError):
    """Content from outside that cannot be used; the message is the reason alone, such as `invalid JSON at line 3`."""


class ConfigError(RagbenchError):
    """A configuration key or value that cannot be used."""


class CorpusError(RagbenchError):
    """Documents that cannot be read."""


class BenchmarkError(RagbenchError):
    """Topics, judgments or splits that cannot be used."""


class IndexError_(RagbenchError):  # noqa: N801 -- stays apart from Python's own
    """An index artefact that is missing, foreign or damaged."""


class ModelError(RagbenchError):
    """A model that cannot be found, verified or loaded."""


class JavaError(RagbenchError):
    """No usable Java runtime."""


class LiveError(RagbenchError):
    """A search that runs elsewhere and gives no usable answer."""


class ArmsFailed(RagbenchError):
    """Arms of an experiment that failed; all other arms are complete. The command line exits with code 1."""


class TrackingError(RagbenchError):
    """The MLflow store cannot be used."""


class ResultsError(RagbenchError):
    """A results folder that is missing or unreadable."""


class BundleError(RagbenchError):
    """An exported bundle that is missing, damaged, or made for other documents or another version."""


class Damaged(ValueError):
    """A file that is not as it was written; the message says how it differs."""


def why_unreadable(error: Exception) -> str:
    """Why a file cannot be read, in words: the message of the system, or what is wrong with its content."""
    if isinstance(error, OSError):
        return _reason(error)
    if isinstance(error, BoundaryError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        return "not valid UTF-8"
    if isinstance(error, Damaged):
        return str(error).partition(" ")[2]
    return f"{error} is missing" if isinstance(error, KeyError) else "unexpected structure"


def unusable(error: OSError) -> str:
    """What the system refuses, in a sentence with the remedy: a full disk, a missing permission."""
    name = error.filename or "a file"
    return f"{name} cannot be used ({_reason(error)}): check the path, its permissions and free space"


def _reason(error: OSError) -> str:
    if isinstance(error, shutil.Error) and error.args and isinstance(error.args[0], list):
        return str(error.args[0][0][-1]).lower()  # the first of several files that could not be copied
    return (error.strerror or str(error) or "the system refuses").lower()


_LEAST_LIKENESS = 0.6  # similarity from 0 to 1 from which a name is suggested
_MOST_LISTED = 12
_MOST_SUGGESTED = 4
_SHOWN_CHARS = 60  # characters of a text in a message


def nearest(word: str, known: Iterable[str]) -> list[str]:
    """The known names whose last part is the word; if there are none, the most similar names (several if equal)."""
    names = list(dict.fromkeys(known))
    ends = [name for name in names if name.rpartition(".")[2].casefold() == word.casefold()]
    matcher = difflib.SequenceMatcher(b=word.casefold())
    likeness = {}
    for name in names:
        matcher.set_seq1(name.casefold())
        likeness[name] = matcher.ratio()
    best = max(likeness.values(), default=0.0)
    return ends or [name for name in names if likeness[name] == best >= _LEAST_LIKENESS]


def did_you_mean(word: str, known: Iterable[str], kind: str = "options") -> str:
    """The end of a sentence about an unknown word: the most similar names, else all of them."""
    names = list(dict.fromkeys(known))
    near = nearest(word, names)[:_MOST_SUGGESTED]
    if near:
        return f"; did you mean {' or '.join(near)}?"
    listed = ", ".join(names[:_MOST_LISTED]) + (", ..." if len(names) > _MOST_LISTED else "")
    return f"; the {kind} are {listed}" if names else ""


def options_hint(name: str, options: Sequence[str]) -> str:
    """The end of a message for an unknown option: all of a few options, the nearest of many."""
    return f": the options are {', '.join(options)}" if len(options) <= 6 else did_you_mean(name, options)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: `1 query`, `2,044 queries`, `0 topics`."""
    plural = f"{noun[:-1]}ies" if noun[-1] == "y" and noun[-2] not in "aeiou" else f"{noun}s"
    return f"{number:,} {noun if number == 1 else plural}"


def too_few(number: int, noun: str) -> str:
    """`1 query is too few`, `8 queries are too few`."""
    return f"{counted(number, noun)} {'is' if number == 1 else 'are'} too few"


def short_path(path: Path | str) -> str:
    """A path as short as it can be typed: relative to the working directory if it is below it. A text stays."""
    if isinstance(path, str):
        return path
    current_folder = path.cwd()
    return str(path.relative_to(current_folder) if path.is_relative_to(current_folder) else path)


def shown(value: Any) -> str:
    """A value as in a configuration file, in one short line."""
    if isinstance(value, str):
        value = redacted(" ".join(value.split()) if value.strip() else value)
        return f"'{value if len(value) <= _SHOWN_CHARS else value[:_SHOWN_CHARS] + '...'}'"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(shown, value[:5]))}{', ...' if len(value) > 5 else ''}]"
    if isinstance(value, Mapping):
        items = list(value.items())[:5]
        inside = (f"{key}: {'***' if names_secret(str(key)) else shown(item)}" for key, item in items)
        return "{" + ", ".join(inside) + "}"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value)
