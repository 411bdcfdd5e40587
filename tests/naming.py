"""What a refusal must name, in whatever words: a `check` for `pytest.raises`."""

from __future__ import annotations

from collections.abc import Callable


def naming(*names: object) -> Callable[[BaseException], bool]:
    """The message names each of these keys, files, places in a file and values."""
    return lambda error: all(str(name) in str(error) for name in names)
