"""HyDE: whose hypothesis is embedded, and what happens without one."""

from types import SimpleNamespace

from ragbench.base.rankings import QueryState
from ragbench.base.types import ModelError, Query
from ragbench.models.chat import ChatSpec
from ragbench.search.stages.expand import SupposeAnswer
from ragbench.search.stages.retrieve import RetrieveDense

ENDPOINT = "http://localhost:11434/v1"
GIVEN = "Add a Tool definition in list_tools() and register it."


class Chat:
    """An index whose chat model answers, or fails, as told."""

    def __init__(self, answer: str | None = "Written.") -> None:
        self.answer, self.prompts, self.specs = answer, [], []
        self.models = self

    def chat(self, spec):
        self.specs.append(spec)
        return SimpleNamespace(complete=self.complete)

    def complete(self, prompt):
        self.prompts.append(prompt)
        if self.answer is None:
            raise ModelError("the chat endpoint gave no text")
        return self.answer


def asked(hypothesis: str | None = None) -> QueryState:
    return QueryState(Query("q", "How do I add a new tool?", hypothesis))


def test_hyde_takes_the_hypothesis_of_the_topic() -> None:
    (after,) = SupposeAnswer()([asked(GIVEN)], None)
    assert after.texts == {"hypothesis": GIVEN}
    assert after.notes == (f"hypothesis, the one given: {GIVEN}",)


def test_hyde_asks_the_endpoint_last() -> None:
    index = Chat()
    stage = SupposeAnswer(endpoint=ENDPOINT, model="m", prompt="Q {query} {x}", timeout_s=2.0, max_tokens=9)
    states = stage([asked(), asked(GIVEN), asked("  ")], index)
    assert [state.texts["hypothesis"] for state in states] == ["Written.", GIVEN, "Written."]
    assert index.prompts == ["Q How do I add a new tool? {x}"] * 2
    assert index.specs[0] == ChatSpec(ENDPOINT, "m", 2.0, 9, 0.0, None)


def test_hyde_falls_back_to_the_query() -> None:
    (after,) = SupposeAnswer(endpoint=ENDPOINT, model="m")([asked()], Chat(None))
    assert after.texts == {}
    assert after.notes == ("no hypothesis, the query itself is embedded: the chat endpoint gave no text",)


def test_hyde_without_a_hypothesis_embeds_the_query() -> None:
    (after,) = SupposeAnswer()([asked()], None)
    assert after.texts == {}


def test_hyde_finds_what_the_hypothesis_describes(index) -> None:
    query = Query(
        "q", "What do I have to do here?", "The mast has no power because the breaker at its foot has tripped."
    )
    plain, supposed = (
        RetrieveDense(depth=1)(states, index)[0].rankings["dense"].chunks[0]
        for states in ([QueryState(query)], SupposeAnswer()([QueryState(query)], index))
    )
    assert "breaker" in index.chunks.text(supposed)
    assert plain != supposed
