"""The section `topics` of a configuration with derived topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal, get_args

from annotated_types import Interval, MinLen

from ragbench.base.options import Count, Natural, Positive, Share, Validated, option

_Usual = Literal["description", "alias", "link", "question", "first_sentence"]

Kind = Literal[_Usual, "how_to", "faq", "symptom", "message"]

EVERY: tuple[Kind, ...] = get_args(Kind)

KINDS: tuple[Kind, ...] = get_args(_Usual)
"""The kinds of topics that are derived where none are named."""


@option(
    "topics=questions",
    "Synthetic queries that resemble user questions: questions, failures, messages, few words of the answer.",
    plain=True,
    kinds=("question", "how_to", "faq", "symptom", "message", "link", "first_sentence"),
    shares={"message": 0.5, "link": 0.5, "first_sentence": 0.5},
    overlap=0.6,
    least_words=4,
)
@option(
    "topics=derived",
    "Synthetic known-item queries from the documents, for a collection without queries; their sources are masked.",
    plain=True,
)
@dataclass(frozen=True)
class DeriveSpec(Validated):
    """Which topics to derive: the `kinds` of sources, and limits; `kind` `given` uses the topics of the data."""

    kinds: Annotated[tuple[Kind, ...], MinLen(1)] = KINDS  # what queries are made of
    limit: Count = 300  # maximum number of queries
    per_document: Count = 3  # maximum number of queries with the same answer
    least_words: Count = 2  # minimum length of a query
    most_words: Count = 24  # maximum length of a query
    overlap: Share = 1.0  # maximum share of informative words that the answer has outside the source
    # relative number of queries of each kind (default 1)
    shares: Mapping[Kind, Positive] = field(default_factory=dict)
    train: Annotated[float, Interval(gt=0, lt=1)] = 0.5  # share of the queries in the train split
    seed: Natural = 13  # random seed of the choice
    kind: Literal["given", "derived"] = "derived"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.most_words < self.least_words:
            raise self.refused(
                "most_words", f"must be at least least_words ({self.least_words}), got {self.most_words}"
            )
