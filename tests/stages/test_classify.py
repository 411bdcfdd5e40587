"""P3: signals, priority and weights of seeds 000 and 001."""

import pytest

from ragbench.search.stages.classify import Classify, classify


@pytest.mark.parametrize(
    "text",
    [
        "getUserById function",  # camelCase, the example of seed 001
        "HTTPResponse body",  # the second half of the same pattern
        "parse_json_data",  # snake_case
        "what does `lambda_` do",  # backticks
        "GTE-1119",  # an error code
        "what is E1042 about",
        "--max-lag ignored",  # a flag
        "KitClient.unref() process stays alive",
        "err.cause is empty",
        "FLEET_DRAIN_TIMEOUT=0",
        "std::vector of readings",
        "changes in v1.2.3",
        "changes in 5.0-beta",
        'the "exact phrase" here',
        "the \u201cexact phrase\u201d here",
        "the getToken guide",  # factual comes before navigational
        "how does parse_json work",  # and before exploratory
    ],
)
def test_classify_factual(text: str) -> None:
    assert classify(text) == "factual"


@pytest.mark.parametrize(
    "text",
    [
        "in the auth section",
        "config guide",
        "Chapter on tokens",
        "migration TUTORIAL",
        "api documentation",
        "install docs",
        "list of guides",  # plurals
        "sections about holds",
        "chapters on tokens",
        "see [[authentication]]",
        "how does the auth section work",  # navigational comes before exploratory
    ],
)
def test_classify_navigational(text: str) -> None:
    assert classify(text) == "navigational"


@pytest.mark.parametrize(
    "text",
    [
        "How do I configure authentication?",
        "what is a checkpoint",
        "a store, e.g. one on disk, i.e. not in memory",  # dots, but no dotted name
        "why are queries slow",
        "database optimization",
        "",
        "follow the guidelines",
        "a re-entrant state-of-the-art lock",
        "the doctor of a pager",
        "top 10 readings - and more",
    ],
)
def test_classify_exploratory_by_a_question_or_by_default(text: str) -> None:
    assert classify(text) == "exploratory"


@pytest.mark.parametrize(
    ("text", "of_the_seed", "with_more"),
    [
        ("GTE-1119", "exploratory", "factual"),  # no error codes, flags, calls or dotted names
        ("--max-lag ignored", "exploratory", "factual"),
        ("changes in v1.2.3", "factual", "factual"),
        ("getUserById function", "factual", "factual"),
        ("HTTPResponse body", "factual", "factual"),
        ("parse_json_data", "factual", "factual"),
        ("what does `lambda` do", "factual", "factual"),
        ('the "exact phrase" here', "factual", "factual"),
        ("lamps in the installer", "navigational", "exploratory"),  # "in the X"
        ("guideline for intersections", "navigational", "exploratory"),  # the pattern is not anchored
        ("list of guides", "navigational", "navigational"),
        ("manual of the lamp", "exploratory", "navigational"),  # no such word in the seed
    ],
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
