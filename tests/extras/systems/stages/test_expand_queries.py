"""The query expansion of seed 002: contract, parser, cache and fallback."""

import threading
from dataclasses import replace
from types import SimpleNamespace

import pytest

from ragbench.base.types import ModelError
from ragbench.extras.systems.stages.expand_queries import ExpandQueries
from ragbench.extras.systems.state import ExpandedQuery
from ragbench.models.resolve import Models
from tests.loopback import Loopback

ANSWER = """<salient><term>lamps</term><term>DUSK</term><term>moon</term><term>x</term></salient>
<queries>
<query>light at  dusk</query><query>When do lamps glow at dusk</query><query>Light at dusk</query>
<query>evening light</query><query>harbour light</query><query>one more</query>
</queries><expanded><term>never read</term></expanded>"""
QUERY = "when do lamps glow at dusk"


class Chat:
    """A model that answers from a list and counts; an answer that is an error is raised."""

    def __init__(self, *answers: str | ModelError) -> None:
        self.answers, self.prompts = list(answers), []

    def complete(self, prompt: str) -> str:
        self.prompts.append(prompt)
        answer = self.answers.pop(0)
        if isinstance(answer, ModelError):
            raise answer
        return answer

    @property
    def index(self) -> SimpleNamespace:
        return SimpleNamespace(models=SimpleNamespace(chat=lambda spec, kept: self))


def stage(**more) -> ExpandQueries:
    return ExpandQueries(endpoint="http://localhost:1/v1", model="m", **more)


def test_expand_queries_checks_the_answer_of_the_model(state) -> None:
    # moon is not in the query, x is too short, the query itself and a repeated phrasing are none, three are enough
    chat = Chat(ANSWER)
    (after,) = stage()([state(QUERY)], chat.index)
    assert after.fact(ExpandedQuery) == ExpandedQuery(
        QUERY, ("lamps", "dusk"), ("light at dusk", "evening light", "harbour light")
    )
    assert after.fact(ExpandedQuery).queries == (QUERY, "light at dusk", "evening light", "harbour light")
    assert after.fact(ExpandedQuery).ranking_text == "lamps dusk"
    assert QUERY in chat.prompts[0]
    assert "up to 3 other ways" in chat.prompts[0]


@pytest.mark.parametrize("answer", ["", "no elements", "<salient></salient>", "<salient><term>moon</term>"])
def test_expand_queries_answer_without_terms_leaves_the_words_of_the_query(answer: str) -> None:
    assert stage().parse("red lamps", answer).salient_terms == ("red", "lamps")


@pytest.mark.parametrize(
    ("query", "terms"),
    [
        ("How do I use C++ and #Auth/Tokens?", ("how", "do", "use", "c++", "and", "#auth/tokens")),
        ("a b #c", ()),
        ("don't. stop - now", ("don't", "stop", "now")),
        ("灯 时间表 灯", ("时间表",)),
        ("", ()),
    ],
)
def test_expand_queries_fallback_without_a_model(state, query: str, terms: tuple[str, ...]) -> None:
    (after,) = ExpandQueries()([state(query)], SimpleNamespace())
    assert after.fact(ExpandedQuery) == ExpandedQuery(query, terms)
    assert after.fact(ExpandedQuery).queries == (query,)
    assert after.fact(ExpandedQuery).tags == tuple(term for term in terms if term.startswith("#"))
    assert after.fact(ExpandedQuery).ranking_text == (" ".join(terms) or query)


def test_expand_queries_failing_model_is_noted_and_asked_again(state) -> None:
    chat, expand = Chat(ModelError("it is down"), ANSWER), stage()
    (after,) = expand([state(QUERY)], chat.index)
    assert after.fact(ExpandedQuery) == expand.fallback(QUERY)
    assert after.notes == ("query not expanded: it is down",)
    assert expand([state(QUERY)], chat.index)[0].fact(ExpandedQuery).expanded_queries


def test_expand_queries_model_that_takes_too_long_is_given_up(state) -> None:
    release = threading.Event()

    class Slow(Loopback):
        def respond(self, *asked: object) -> tuple[int, str]:
            release.wait(10)
            return 200, "late"

    with Slow() as server:
        expand = ExpandQueries(endpoint=f"{server.url}/v1", model="m", timeout_s=0.2)
        models = Models(cache=None)
        (after,) = expand([state(QUERY)], SimpleNamespace(models=models))
        release.set()
        assert after.fact(ExpandedQuery) == expand.fallback(QUERY)
        assert after.notes[0].startswith("query not expanded: ")


def test_expand_queries_only_the_first_1000_characters_are_read(state) -> None:
    (after,) = ExpandQueries()([state("word " * 300)], SimpleNamespace())
    assert len(after.fact(ExpandedQuery).original_query) == 1000


def test_expand_queries_defaults_are_those_of_the_seed() -> None:
    expand = ExpandQueries()
    assert (expand.max_variants, expand.min_term_length, expand.cache_size, expand.endpoint) == (3, 2, 100, None)


def test_expand_queries_prefers_terms_of_the_caller(state) -> None:
    given = state(QUERY)
    given = replace(given, query=replace(given.query, phrasings=("evening light", QUERY), salient_terms=("Lamps", "!")))
    (after,) = stage()([given], None)  # no model is there to be asked
    assert after.fact(ExpandedQuery) == ExpandedQuery(QUERY, ("lamps",), ("evening light",))
    (after,) = stage()([replace(given, query=replace(given.query, salient_terms=()))], None)
    assert after.fact(ExpandedQuery).salient_terms == ExpandQueries().fallback(QUERY).salient_terms


def test_terms_of_the_caller_are_added_to_those_of_the_query(state) -> None:
    given = state("lamps")
    given = replace(given, query=replace(given.query, salient_terms=("#dusk", "lamps")))
    (after,) = ExpandQueries()([given], None)
    assert after.fact(ExpandedQuery) == ExpandedQuery("lamps", ("lamps", "#dusk"))
