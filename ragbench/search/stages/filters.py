"""Filters of P9 and of Librarian: search only among documents that meet conditions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar

from annotated_types import Interval

from ragbench.base.options import Constraint, Name, Natural, build, option
from ragbench.base.types import ConfigError, shown
from ragbench.corpus.metadata import Date, normalise_tags, timestamp
from ragbench.index.doc_type import DOC_TYPES
from ragbench.index.filters import values_of
from ragbench.search.stages.stage import Filters, Index, QueryState, StateProperty, StateStage

_IS_TYPE = Constraint(
    lambda text: " ".join(text.casefold().split()) in DOC_TYPES, f"must be one of {', '.join(DOC_TYPES)}"
)

_FileType = Annotated[
    str, Constraint(lambda text: text.removeprefix(".").isalnum(), "must be an ending of file names such as .md")
]


@option(
    "filters",
    "Search only documents that match (sources 000 P9, 004): filters=on filters.tags=[auth]",
)
@dataclass(frozen=True)
class FilterDocuments(StateStage):
    """Let every source find only documents that meet all conditions given; seed 000, P9 "Filtering Capability".

    Seed 004, "Enhanced Metadata Filtering", adds the conditions from `doc_type` on and filters after the search; here
    all filters act inside the search.

    The sources restrict their own search, so that as many hits come back as without filters, if enough documents pass.
    `doc_type` is declared in the frontmatter or inferred (`ragbench.index.doc_type`).
    """

    category: Name | None = None  # only documents of this category
    author: Name | None = None  # only documents of this author
    tags: tuple[str, ...] = ()  # any of these; auth includes auth/tokens
    modified_after: Date | None = None  # a date such as 2026-01-31, inclusive
    modified_before: Date | None = None  # a date, inclusive
    doc_type: Annotated[str, _IS_TYPE] | None = None  # api, architecture, guide, reference, documentation (source 004)
    product: Name | None = None  # declared in the frontmatter, else the first folder
    component: Name | None = None  # declared in the frontmatter, else the second folder
    min_bytes: Natural | None = None  # minimum size of the file
    max_bytes: Natural | None = None  # maximum size of the file
    file_types: tuple[_FileType, ...] = ()  # any of them, such as [.md, .txt]
    # level of the heading above the chunk; 0: before the first heading
    heading_levels: tuple[Annotated[int, Interval(ge=0, le=6)], ...] = ()
    # values by column of the frontmatter, one or a list of which a document must have: {version: [3.1, 3.2]}
    frontmatter: Mapping[str, Any] = field(default_factory=dict)

    needs: ClassVar[frozenset[str]] = frozenset({"facets"})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.FILTERS})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.RANKINGS: "a source has been searched already without the filters",
        StateProperty.FILTERS: "filters have been set already",
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(normalise_tags(self.tags)) < len(self.tags):
            raise self.refused("tags", f"must be different tags such as [auth, lantern/setup], got {shown(self.tags)}")
        after, before = self.conditions.modified_after, self.conditions.modified_before
        if after is not None and before is not None and after >= before:
            raise self.refused(
                "modified_after",
                f"must be earlier than modified_before, got {self.modified_after} and {self.modified_before}",
            )
        if self.min_bytes is not None and self.max_bytes is not None and self.min_bytes > self.max_bytes:
            raise self.refused("min_bytes", f"must be at most max_bytes {self.max_bytes}, got {self.min_bytes}")

    @cached_property
    def conditions(self) -> Filters:
        """The conditions in the form that the index reads."""
        read = {
            "tags": normalise_tags(self.tags),
            "modified_after": timestamp(self.modified_after),
            "modified_before": timestamp(self.modified_before),
            "file_types": tuple("." + name.casefold().removeprefix(".") for name in self.file_types),
            "frontmatter": tuple((name, values_of(value)) for name, value in sorted(self.frontmatter.items())),
        }
        return Filters(**{field.name: getattr(self, field.name) for field in fields(self)} | read)

    @property
    def set_conditions(self) -> dict[str, Any]:
        """The conditions that are set, by name."""
        named = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in named.items() if value not in (None, (), {})}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Set the filters of a state."""
        if self.conditions == Filters():
            return state
        if state.filters is not None:
            raise ConfigError(f"query '{state.query.qid}' has a filter, and the pipeline its own: remove one of them")
        passing = int(index.passing(self.conditions).sum())
        note = f"{passing} of {index.chunks.n_documents} documents pass the filters"
        return replace(state, filters=self.conditions).with_note(note)

    def describe(self) -> str:
        conditions = {**self.set_conditions, **self.frontmatter}
        named = (f"{name} {' or '.join(values_of(conditions[name]))}" for name in conditions if name != "frontmatter")
        return f"filter by {', '.join(named)}" if self.set_conditions else "filter by nothing"


def filters_of(conditions: Mapping[str, Any]) -> FilterDocuments:
    """The stage that demands conditions by name: its parameters, and any other name is a column of the frontmatter.

    A single value may stand for a list. Raises ConfigError for a value that cannot be used.
    """
    none = FilterDocuments()
    defaults = {field.name: getattr(none, field.name) for field in fields(none)}
    listed = {
        name: (value,) if defaults.get(name) == () and not isinstance(value, (list, tuple)) else value
        for name, value in conditions.items()
    }
    own = {name: value for name, value in listed.items() if name in defaults}
    columns: dict[str, Any] = {name: value for name, value in listed.items() if name not in defaults}
    columns |= own.get("frontmatter", {})
    return build(FilterDocuments, own | {"frontmatter": columns}, "filters")
