"""Frontmatter fields, whatever stands in them."""

import datetime

import pytest

from ragbench.corpus.metadata import Metadata, normalise_tags, read_metadata, timestamp
from ragbench.corpus.reader import _split_frontmatter
from ragbench.index.filters import tag_lineage
from tests.tables import rows

# 2026-01-05T00:00:00Z, from `date -u -d 2026-01-05 +%s`.
FIFTH_OF_JANUARY = 1767571200.0


def test_metadata_has_every_field() -> None:
    yaml = """---
title: Rotate API keys
description: How to rotate
keywords: [rotation, keys]
tags: [Auth/Tokens, "#security"]
aliases: [key rotation]
author: Priya Raman
category: how-to
related: [gate/access-tokens]
date: 2026-01-05
---
"""
    assert read_metadata(_split_frontmatter(yaml).fields) == Metadata(
        title="Rotate API keys",
        description="How to rotate",
        keywords=("rotation", "keys"),
        tags=("auth/tokens", "security"),
        aliases=("key rotation",),
        authors=("Priya Raman",),
        category="how-to",
        related=("gate/access-tokens",),
        modified=FIFTH_OF_JANUARY,
    )


def test_metadata_has_fields_in_any_case() -> None:
    metadata = read_metadata({"Title": "Tides", "TAGS": ["sea"], "title": "High water"})
    assert (metadata.title, metadata.tags) == ("High water", ("sea",))


def test_metadata_of_nothing_is_empty() -> None:
    assert read_metadata({}) == Metadata()


def test_metadata_has_the_fallbacks_of_the_seed() -> None:
    metadata = read_metadata({"summary": "S", "type": "policy", "created": datetime.date(2026, 1, 5)})
    assert (metadata.description, metadata.category, metadata.modified) == ("S", "policy", FIFTH_OF_JANUARY)
    assert read_metadata({"summary": "S", "description": "D"}).description == "D"
    assert read_metadata({"category": "C", "type": "T"}).category == "C"


def test_metadata_prefers_modified_to_date_to_created() -> None:
    dates = {"modified": "2026-01-05", "date": "2025-01-01", "created": "2024-01-01"}
    assert read_metadata(dates).modified == FIFTH_OF_JANUARY
    assert read_metadata({**dates, "modified": "soon"}).modified == 1735689600.0  # 2025-01-01
    assert read_metadata({"modified": None, "created": "2026-01-05"}).modified == FIFTH_OF_JANUARY


def test_metadata_takes_scalars_for_lists() -> None:
    metadata = read_metadata(
        {"keywords": "rotation, API keys", "tags": "Auth", "aliases": "key rotation", "related": "a"}
    )
    assert metadata.keywords == ("rotation", "API keys")
    assert (metadata.tags, metadata.aliases, metadata.related) == (("auth",), ("key rotation",), ("a",))
    assert read_metadata({"tags": "#auth #gate/tls"}).tags == ("auth", "gate/tls")


def test_metadata_takes_lists_for_scalars() -> None:
    metadata = read_metadata({"title": ["A", "B"], "category": ["how-to"], "author": ["Ines", {"name": "Jun"}]})
    assert (metadata.title, metadata.category, metadata.authors) == ("A", "how-to", ("Ines", "Jun"))


def test_author_with_a_comma_is_one_author() -> None:
    assert read_metadata({"author": "Raman, Priya"}).authors == ("Raman, Priya",)


@pytest.mark.parametrize("value", [None, "", " ", [], {}, [None, ""], {"x": 1}, [[[[[[["deep"]]]]]]]])
def test_metadata_skips_odd_values(value: object) -> None:
    keys = ("title", "description", "keywords", "tags", "aliases", "author", "category", "related", "modified")
    assert read_metadata(dict.fromkeys(keys, value)) == Metadata()


def test_metadata_takes_numbers_as_text() -> None:
    metadata = read_metadata({"title": 2024, "tags": [2026, "x"], "aliases": [4.2]})
    assert (metadata.title, metadata.tags, metadata.aliases) == ("2024", ("2026", "x"), ("4.2",))


def test_metadata_takes_unquoted_wikilinks() -> None:
    assert read_metadata(_split_frontmatter("---\nrelated: [[gate/a]]\n---\n").fields).related == ("gate/a",)


@pytest.mark.parametrize("yaml", rows("corpus_metadata", "dates_of_every_kind"))
def test_dates_of_every_kind(yaml: str) -> None:
    assert read_metadata(_split_frontmatter(f"---\nmodified: {yaml}\n---\n").fields).modified == FIFTH_OF_JANUARY


def test_dates_of_a_year_or_month_are_its_first_day() -> None:
    assert timestamp(2026) == timestamp("2026") == timestamp("2026-01") == 1767225600.0  # 2026-01-01


def test_dates_begin_with_the_calendar() -> None:
    # 719162 days before the epoch, and 14 hours.
    east = datetime.timezone(datetime.timedelta(hours=14))
    assert timestamp(datetime.datetime.min.replace(tzinfo=east)) == -(719162 * 24 + 14) * 3600.0


@pytest.mark.parametrize(
    "value",
    [
        None, True, "", "tomorrow", "2026-13-45", 20261345, 10**30, float("nan"), float("inf"),
        -(10**18), [], {}, [1, 2], "9" * 5000, "²",
    ],
)  # fmt: skip
def test_dates_refuse_what_is_no_date(value: object) -> None:
    assert timestamp(value) is None


def test_tags_are_normalised() -> None:
    assert normalise_tags(["#Auth/Tokens", "auth//tokens/", "/", "#", "  ", "B"]) == ("auth/tokens", "b")


def test_tag_lineage() -> None:
    assert tag_lineage("auth/tokens/opaque") == ("auth", "auth/tokens", "auth/tokens/opaque")
