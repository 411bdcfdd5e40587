"""Terms of the analyzers, word by word, and on any text."""

# ruff: noqa: RUF001 (letters of other scripts)

import pytest
from hypothesis import given, settings, strategies as st

from ragbench.base.types import ConfigError
from ragbench.index.analyzers import ANALYZERS, analyze, analyzer
from tests.naming import naming
from tests.tables import rows


def terms(name: str, text: str) -> str:
    return " ".join(analyze(analyzer(name), text))


@pytest.mark.parametrize(("text", "expected"), rows("index_analyzers", "code_analyzer"))
def test_code_analyzer(text: str, expected: str) -> None:
    assert terms("code", text) == expected


@pytest.mark.parametrize(("text", "expected"), rows("index_analyzers", "technical_analyzer"))
def test_technical_analyzer(text: str, expected: str) -> None:
    assert terms("technical", text) == expected


SOFTWARE = (
    ("--max-lag", "--max-lag max lag max-lag"),
    ("v3.1.2", "v3.1.2 3.1.2"),
    ("getUserById", "getuserbyid get user by id"),
    ("std::vector", "std::vector std vector"),
    ("C++ C#", "c++ c#"),
    ("Node.js", "node.js node js"),
)
PAGES = {
    "german": "Seit {} warten die Räder.",
    "french": "Depuis {}, l’attente des roues.",
    "russian": "С {} ждут колёса.",
    "cjk": "从{}开始等待。",
    "technical": "Since {} the wheels wait.",
}


@pytest.mark.parametrize("name", PAGES)
@pytest.mark.parametrize(("token", "parts"), SOFTWARE)
def test_page_of_a_language_is_found_by_names_of_software(name: str, token: str, parts: str) -> None:
    page, other = (set(analyze(analyzer(name), PAGES[name].format(text))) for text in (token, ""))
    asked = set(analyze(analyzer(name), token))
    assert asked and asked <= page and not asked & other
    words = parts.split()[len(token.split()) :]  # as someone types them who does not know the name
    assert set(analyze(analyzer(name), " ".join(words))) <= page


@pytest.mark.parametrize("name", ["german", "french", "russian", "cjk", "technical"])
def test_c_and_cpp_are_two_languages(name: str) -> None:
    assert not set(analyze(analyzer(name), "C")) & set(analyze(analyzer(name), "C++ C#"))


@pytest.mark.parametrize(
    ("name", "text", "expected"), rows("index_analyzers", "analyzer_of_a_language_stems_and_drops_stop_words")
)
def test_analyzer_of_a_language_stems_and_drops_stop_words(name: str, text: str, expected: str) -> None:
    assert terms(name, text) == expected


def test_english_analyzer_drops_punctuation() -> None:
    assert terms("english", "C++ agents' getUserById") == "c agent getuserbyid"
    assert terms("standard", "C++ agents' getUserById") == "c agents getuserbyid"
    assert terms("technical", "C++ agents' getUserById") == "c++ agent getuserbyid get user id"
    assert terms("code", "C++ agents' getUserById") == "c++ agents getuserbyid get user by id"


@pytest.mark.parametrize("name", ["english", "standard", "technical"])
def test_english_analyzer_drops_stop_words(name: str) -> None:
    assert terms(name, "it is the") == ""


@pytest.mark.slow
@pytest.mark.parametrize("name", ANALYZERS)
@pytest.mark.parametrize(
    "text", ["a-" * 50_000, "x" * 100_000, "-" * 100_000, "aB" * 50_000, "1." * 50_000, "--a" * 30_000]
)
def test_analyzer_takes_long_lines(name: str, text: str) -> None:
    assert all(len(term) <= 255 for term in analyze(analyzer(name), text))


@pytest.mark.parametrize("name", ANALYZERS)
@settings(max_examples=60, deadline=None)
@given(text=st.text(st.characters(exclude_categories=[])))
def test_analyzer_gives_any_text_the_same_terms_again(name: str, text: str) -> None:
    terms = analyze(analyzer(name), text)
    assert all(terms)
    assert terms == analyze(analyzer(name), text)


@settings(max_examples=60, deadline=None)
@given(
    words=st.lists(st.from_regex(r"[a-z]{2,8}", fullmatch=True), min_size=2, max_size=4),
    joint=st.sampled_from(["camel", "_", "::", ".", "-"]),
)
def test_code_analyzer_gives_an_identifier_and_its_parts(words: list[str], joint: str) -> None:
    whole = words[0] + "".join(map(str.title, words[1:])) if joint == "camel" else joint.join(words)
    terms = analyze(analyzer("code"), whole)
    assert terms[0] == whole.lower()
    assert set(words) <= set(terms)


def test_unknown_analyzer_is_refused() -> None:
    with pytest.raises(ConfigError, check=naming("'klingon'", "english")):
        analyzer("klingon")
