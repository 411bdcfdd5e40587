"""Prefixes as the model cards give them."""

import pytest

from ragbench.models.resolve import EncoderSpec, prefixes
from tests.tables import rows


@pytest.mark.parametrize(("name", "query", "passage"), rows("models_prefixes", "prefixes_follow_from_the_name"))
def test_prefixes_follow_from_the_name(name: str, query: str, passage: str) -> None:
    assert prefixes(name, instruction=False) == (query, passage)


def test_model_prefix_instruction_that_is_optional_is_asked_for() -> None:
    assert prefixes("bge-small-en-v1.5", instruction=False) == ("", "")
    assert prefixes("BAAI/bge-small-en-v1.5", instruction=True)[0].startswith("Represent this sentence")


def test_model_prefix_given_prefix_wins_also_an_empty_one() -> None:
    spec = EncoderSpec("intfloat/e5-small-v2", query_prefix="")
    assert spec.prefixes(spec.name) == {"query_prefix": "", "passage_prefix": "passage: "}
