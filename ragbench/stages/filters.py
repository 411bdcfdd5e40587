"""Filters of P9: search only among documents that meet conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from ragbench.corpus.metadata import normalise_tags, timestamp
from ragbench.errors import ConfigError
from ragbench.stages.stage import NOTHING
from ragbench.types import Filters, QueryState

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class FilterDocuments:
    """Let every source find only documents that meet all conditions given; seed 000, P9 "Filtering Capability".

    The sources restrict their own search, so that as many hits come back as without filters, if enough documents pass.
    `category` and `author` are names, `tags` admit a document by any of them or by a tag below (`auth` admits
    `auth/tokens`), `modified_after` (inclusive) and `modified_before` (exclusive) are dates such as 2026-01-31.
    """

    category: str | None = None
    author: str | None = None
    tags: tuple[str, ...] = ()
    modified_after: str | None = None
    modified_before: str | None = None

    needs: ClassVar[frozenset[str]] = frozenset({"facets"})
    requires: ClassVar[frozenset[str]] = NOTHING
    provides: ClassVar[frozenset[str]] = frozenset({"filters"})
    forbids: ClassVar[Mapping[str, str]] = {
        "rankings": "a source has been searched already without the filters",
        "filters": "filters have been set already",
    }

    def __post_init__(self) -> None:
        for name in ("category", "author"):
            value = getattr(self, name)
            if value is not None and not value.strip():
                raise ConfigError(f"filters.{name} must not be blank: give a name or null")
        if len(normalise_tags(self.tags)) < len(self.tags):
            raise ConfigError(
                f"filters.tags must be different tags such as [auth, lantern/setup], got {list(self.tags)}"
            )
        after, before = self.conditions.modified_after, self.conditions.modified_before
        if after is not None and before is not None and after >= before:
            raise ConfigError(
                f"filters.modified_after must be before filters.modified_before, "
                f"got {self.modified_after} and {self.modified_before}"
            )

    @cached_property
    def conditions(self) -> Filters:
        """The conditions as the index reads them."""
        return Filters(
            category=self.category,
            author=self.author,
            tags=normalise_tags(self.tags),
            modified_after=_moment("modified_after", self.modified_after),
            modified_before=_moment("modified_before", self.modified_before),
        )

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Set the filters of every state."""
        if self.conditions == Filters():
            return list(states)
        passing = int(index.passing(self.conditions).sum())
        note = f"{passing} of {index.chunks.n_documents} documents pass the filters"
        return [replace(state, filters=self.conditions).with_note(note) for state in states]

    def describe(self) -> str:
        """In words."""
        given = [(f.name, getattr(self, f.name)) for f in fields(self) if getattr(self, f.name)]
        named = (f"{name} {' or '.join(value) if name == 'tags' else value}" for name, value in given)
        return f"filter by {', '.join(named)}" if given else "filter by nothing"


def _moment(name: str, date: str | None) -> float | None:
    if date is None:
        return None
    moment = timestamp(date)
    if moment is None:
        raise ConfigError(f"filters.{name} must be a date such as 2026-01-31, got {date}")
    return moment
