"""Messages say what the pipeline can do, and refuse the rest."""

from __future__ import annotations

from dataclasses import fields

import pytest
from pydantic import ValidationError

from ragbench.base.types import ConfigError
from ragbench.extras.ship.serving.messages import REQUESTS, MessageLimits, SearchFilters, request_type
from ragbench.extras.ship.serving.tools import SearchTool
from ragbench.search.stages.filters import FilterDocuments
from tests.naming import naming
from tests.tables import rows

REQUEST = request_type(MessageLimits(max_top=5, max_query=20))


def test_search_filters_have_every_condition_of_the_stage() -> None:
    assert set(SearchFilters.model_fields) == {field.name for field in fields(FilterDocuments)} - {"frontmatter"}


def test_search_filters_take_other_names_as_columns_of_the_frontmatter() -> None:
    stage = SearchFilters.model_validate({"version": 3.2, "audience": ["staff"], "author": "Ada"}).stage()
    assert stage == FilterDocuments(author="Ada", frontmatter={"version": 3.2, "audience": ["staff"]})


def test_search_filters_become_the_stage() -> None:
    asked = {"tags": ["auth"], "modified_after": "2026-01-01", "min_bytes": 10, "heading_levels": [1, 2]}
    expected = FilterDocuments(tags=("auth",), modified_after="2026-01-01", min_bytes=10, heading_levels=(1, 2))
    assert SearchFilters.model_validate(asked).stage() == expected
    assert SearchFilters().stage() is None
    with pytest.raises(ConfigError, check=naming("modified_after", "soon")):
        SearchFilters(modified_after="soon").stage()


def test_request_schema_states_the_limits() -> None:
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
    ("body", "key", "reason"), rows("ship_serving_messages", "request_outside_the_limits_is_refused")
)
def test_request_outside_the_limits_is_refused(body: dict, key: str, reason: str) -> None:
    with pytest.raises(ValidationError) as error:
        REQUEST.model_validate(body)
    (problem,) = error.value.errors()
    assert (".".join(problem["loc"]), problem["type"]) == (key, reason)


def test_request_examples_are_valid() -> None:
    for example in REQUESTS:
        request = request_type(MessageLimits()).model_validate(example)
        assert request.options().mode == example.get("mode")


def test_search_tool_takes_filters_and_max_results_beside_the_query() -> None:
    flat = SearchTool.model_validate({"query": "x", "doc_type": "api", "max_results": 5, "options": {"mode": "hybrid"}})
    assert flat.options == {"mode": "hybrid", "filters": {"doc_type": "api"}, "top_n": 5}
    with pytest.raises(ValidationError, match="unknown"):
        SearchTool.model_validate({"query": "x", "unknown": 1})
