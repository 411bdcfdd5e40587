"""How often P3 agrees with the types of a benchmark."""

import pytest

from ragbench.benchmark.benchmark import Topic
from ragbench.evaluation.classification import agreement, expected


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("factual", "factual"),
        ("code", "factual"),
        ("navigational", "navigational"),
        ("exploratory", "exploratory"),
        ("vocabulary", "exploratory"),
        ("multi_document", "exploratory"),
        ("no_answer", "exploratory"),
        ("anything", "exploratory"),
    ],
)
def test_the_class_of_a_type(kind: str, name: str) -> None:
    assert expected(kind) == name


def test_counts_by_hand() -> None:
    topics = [
        Topic("1", "getUserById", "code"),
        Topic("2", "error of the client", "code"),  # no signal: called exploratory
        Topic("3", "the backup guide", "navigational"),
        Topic("4", "how does it work", "exploratory"),
        Topic("5", "what changed in v1.2", "exploratory"),  # the version makes it factual
    ]
    found = agreement(topics)
    assert (found.n, found.accuracy, found.baseline) == (5, pytest.approx(3 / 5), pytest.approx(2 / 5))
    assert found.confusion.to_dict(orient="records") == [
        {"type": "code", "expected": "factual", "factual": 1, "navigational": 0, "exploratory": 1, "right": 0.5},
        {
            "type": "exploratory",
            "expected": "exploratory",
            "factual": 1,
            "navigational": 0,
            "exploratory": 1,
            "right": 0.5,
        },
        {
            "type": "navigational",
            "expected": "navigational",
            "factual": 0,
            "navigational": 1,
            "exploratory": 0,
            "right": 1.0,
        },
    ]
