"""P3: signals, priority and weights of seeds 000 and 001."""

import pytest

from ragbench.search.stages.classify import Classify, classify
from tests.tables import rows


@pytest.mark.parametrize("text", rows("stages_classify", "classify_factual"))
def test_classify_factual(text: str) -> None:
    assert classify(text) == "factual"


@pytest.mark.parametrize("text", rows("stages_classify", "classify_navigational"))
def test_classify_navigational(text: str) -> None:
    assert classify(text) == "navigational"


@pytest.mark.parametrize("text", rows("stages_classify", "classify_exploratory_by_a_question_or_by_default"))
def test_classify_exploratory_by_a_question_or_by_default(text: str) -> None:
    assert classify(text) == "exploratory"


@pytest.mark.parametrize(
    ("text", "of_the_seed", "with_more"), rows("stages_classify", "classify_by_signals_of_the_seed_alone")
)
def test_classify_by_signals_of_the_seed_alone(text: str, of_the_seed: str, with_more: str) -> None:
    assert (classify(text, seed=True), classify(text)) == (of_the_seed, with_more)


@pytest.mark.parametrize(
    ("text", "expected", "weights"),
    [
        # seed 001: keyword=1.5, the others 1.0; then semantic=1.3; graph x1.5 from its table
        ("getUserById function", "factual", {"lexical": 1.5}),
        ("How do I configure authentication?", "exploratory", {"dense": 1.3}),
        ("config guide", "navigational", {"graph": 1.5}),
    ],
)
def test_classify_has_weights_of_the_seeds(state, text: str, expected: str, weights: dict[str, float]) -> None:
    (after,) = Classify()([state(text)], None)
    assert after.query_class == expected
    assert after.weights == weights


def test_classify_multiplies_what_is_there_already(state) -> None:
    (after,) = Classify(factual=2.0)([state("getUserById").with_weight("lexical", 0.5)], None)
    assert after.weights == {"lexical": 1.0}


def test_classify_override_takes_one_class_for_every_query(state) -> None:
    both = Classify(override="navigational")([state("getUserById"), state("how")], None)
    assert [(classified.query_class, classified.weights) for classified in both] == [
        ("navigational", {"graph": 1.5})
    ] * 2
