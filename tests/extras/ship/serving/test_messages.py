"""Messages say what the pipeline can do, and refuse the rest."""

from __future__ import annotations

from dataclasses import fields

import pytest
from pydantic import ValidationError

from ragbench.base.errors import ConfigError
from ragbench.extras.ship.serving.messages import REQUESTS, Limits, ListRequest, SearchFilters, request_type
from ragbench.search.stages.filters import FilterDocuments

REQUEST = request_type(Limits(max_top=5, max_query=20))


def test_every_condition_of_the_stage_can_be_asked_for() -> None:
    assert set(SearchFilters.model_fields) == {field.name for field in fields(FilterDocuments)}


def test_filters_become_those_of_the_stage() -> None:
    asked = {"tags": ["auth"], "modified_after": "2026-01-01", "min_bytes": 10, "heading_levels": [1, 2]}
    expected = FilterDocuments(tags=("auth",), modified_after="2026-01-01", min_bytes=10, heading_levels=(1, 2))
    assert SearchFilters.model_validate(asked).stage() == expected
    assert SearchFilters().stage() is None
    with pytest.raises(ConfigError, match="modified_after must be a date"):
        SearchFilters(modified_after="soon").stage()


def test_lists_take_the_same_conditions() -> None:
    assert ListRequest(prefix="guides/", doc_type="guide").stage() == FilterDocuments(doc_type="guide")
    assert ListRequest(prefix="guides/", limit=3).stage() is None


def test_the_schema_states_the_limits() -> None:
    properties = REQUEST.model_json_schema()["properties"]
    assert properties["top_n"] | {"description": ""} == {
        "type": "integer",
        "title": "Top N",
        "default": 5,
        "minimum": 1,
        "maximum": 5,
        "description": "",
    }
    assert properties["query"]["maxLength"] == 20
    assert all(part["description"] for part in properties.values())


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"query": ""},
        {"query": "x" * 21},
        {"query": "x", "top_n": 0},
        {"query": "x", "top_n": 6},
        {"query": "x", "top_n": "3"},
        {"query": "x", "top_n": True},
        {"query": "x", "limit": 3},
        {"query": "x", "filters": {"tag": "auth"}},
        {"query": "x", "filters": {"tags": "auth"}},
        {"query": "x", "filters": {"min_bytes": 2**63}},
        {"query": 7},
        {"query": "x", "hypothesis": ""},
    ],
)
def test_what_is_refused(body: dict) -> None:
    with pytest.raises(ValidationError):
        REQUEST.model_validate(body)


def test_the_examples_of_the_description_are_messages() -> None:
    for each in REQUESTS:
        request = request_type(Limits()).model_validate(each)
        request.options()
