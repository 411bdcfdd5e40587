"""P7: code blocks found by identifiers, answered with the chunk that holds them."""

import pytest

from ragbench.base.types import ConfigError
from ragbench.search.stages.retrieve import RetrieveCode
from tests.naming import naming


def retrieved(state, index, text: str, **parameters) -> list[str]:
    (after,) = RetrieveCode(**parameters)([state(text)], index)
    return [index.chunks.text(chunk) for chunk in after.rankings["code"].chunks]


@pytest.mark.parametrize("text", ["getAuthToken", "get_auth_token", "where is getAuthToken defined"])
def test_retrieve_code_finds_a_function_by_parts_of_its_name(state, index, text: str) -> None:
    assert "def getAuthToken" in retrieved(state, index, text)[0]


def test_retrieve_code_skips_prose_unless_always_routed(state, index) -> None:
    assert retrieved(state, index, "auth token") == []
    assert "def getAuthToken" in retrieved(state, index, "auth token", route="always")[0]


def test_retrieve_code_block_must_hold_half_of_the_terms(state, index) -> None:
    # getauthtoken get auth token are four of eight terms, then of nine
    for text, n in (("getAuthToken sky rain wind fog", 1), ("getAuthToken sky rain wind fog dew", 0)):
        assert len([hit for hit in retrieved(state, index, text) if "def getAuthToken" in hit]) == n
    assert retrieved(state, index, "getAuthToken sky rain wind fog dew", min_match=0)


def test_retrieve_code_ignores_function_words(state, index) -> None:
    text = "getAuthToken and what it is for, from where and by whom to be had"
    assert retrieved(state, index, text)[0] == retrieved(state, index, "getAuthToken whom")[0]


def test_retrieve_code_finds_a_class(state, index) -> None:
    assert "LampClient.from_env()" in retrieved(state, index, "LampClient")[0]


@pytest.mark.parametrize(("language", "expected"), [("cpp", 1), ("C++", 1), ("python", 0), ("py", 0), ("bash", 0)])
def test_retrieve_code_filters_by_language(state, index, language: str, expected: int) -> None:
    assert len(retrieved(state, index, "RetryPolicy", language=language)) == expected


def test_retrieve_code_names_languages_of_the_collection(state, index) -> None:
    with pytest.raises(ConfigError, check=naming("p7.language is rust", "bash, cpp, python")):
        RetrieveCode(language="rust")([state("x")], index)


def test_retrieve_code_counts_a_chunk_once(state, index) -> None:
    (after,) = RetrieveCode(min_match=0)([state("lantern mast client getAuthToken policy")], index)
    chunks = after.rankings["code"].chunks.tolist()
    assert len(set(chunks)) == len(chunks)
    scores = after.rankings["code"].scores.tolist()
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("text", ["", "zzz", "weatherReport"])
def test_retrieve_code_may_have_no_hit(state, index, text: str) -> None:
    assert retrieved(state, index, text) == []
