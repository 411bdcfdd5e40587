"""What was opened before: a signed bundle never answers from an older generation than it once did.

A signature proves who made a state, not that it is the latest one: with a copy of an earlier generation and its
signature, a deleted note would answer again. Therefore the newest signature that was seen is kept outside the bundle,
in a sealed file of this user, by the bundle's folder and the key.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ragbench.base import files, locations
from ragbench.base.errors import BundleError
from ragbench.boundary.sealed import read_sealed, write_sealed
from ragbench.export.signing import Signed

NAME = "bundles.json"


@dataclass
class Memory:
    """The newest signature of every bundle that was opened with a key; `at_least`: the lowest generation to accept."""

    path: Path = field(default_factory=lambda: locations.state() / NAME)
    at_least: int = 0
    say: Callable[[str], None] = logging.getLogger("ragbench.serving").warning
    _seen: dict[str, dict[str, Any]] = field(default_factory=dict)

    def accept(self, folder: Path, key: bytes, signed: Signed) -> None:
        """Remember a signature. Raises BundleError for one older than the newest, and for a generation too low."""
        from filelock import FileLock

        if signed.generation < self.at_least:
            raise BundleError(
                f"{folder} is generation {signed.generation}, older than --at-least {self.at_least}: refresh the bundle"
            )
        name = f"{folder.absolute()} {key.hex()}"
        now = {"export": signed.export, "generation": signed.generation, "made": signed.made}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with FileLock(self.path.with_suffix(".lock")):
                known = {**self._read(), **self._seen}
                self._compare(folder, known.get(name), now)
                if known.get(name) != now:
                    self._seen[name] = now
                    write_sealed(self.path, {"bundles": {**known, **self._seen}})
        except OSError as error:
            self._compare(folder, self._seen.get(name), now)
            self._seen[name] = now
            self.say(
                f"{self.path} cannot be written ({files.why_unreadable(error)}), so an older generation of {folder} is "
                "only noticed until this process ends: set XDG_STATE_HOME to a folder that can, or use --at-least"
            )

    def _read(self) -> dict[str, dict[str, Any]]:
        try:
            return dict(read_sealed(self.path)["bundles"])
        except FileNotFoundError:
            return {}
        except (files.Damaged, KeyError, TypeError, ValueError) as error:
            raise BundleError(
                f"{self.path}, which keeps the newest generations, cannot be used ({files.why_unreadable(error)}): "
                "delete it if you trust the bundles as they are"
            ) from None

    def _compare(self, folder: Path, before: dict[str, Any] | None, now: dict[str, Any]) -> None:
        if before is None:
            return
        same = before["export"] == now["export"]
        if now["generation"] < before["generation"] if same else now["made"] < before["made"]:
            then, found = (f"generation {each['generation']}, signed {each['made'][:19]}" for each in (before, now))
            raise BundleError(
                f"{folder} is older than what it was before ({found}, after {then}): refresh it, or delete {self.path} "
                "to accept it"
            )
