"""Sites of the questions in research/data."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from ragbench.base.types import BenchmarkError
from ragbench.boundary.yaml import read_yaml_file
from ragbench.index.language_detection import language
from research.mixed_languages import Site
from research.questions import main, write_site

DATA = Path(__file__).parents[1] / "data"
FILE = """folder: docs
questions:
- {thread: a/b#1, question: wann, answers: {x.md: Kapitel}, helps: {sub/y.md: ''}}
- {thread: a/b#2, question: wo, answers: {x.md: ''}}
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "sub").mkdir(parents=True)
    (tmp_path / "docs" / "x.md").write_text("# Zeit")
    (tmp_path / "docs" / "sub" / "y.md").write_text("# Ort")
    (tmp_path / "questions.yaml").write_text(FILE)
    return tmp_path


def test_site_has_pages_questions_and_grades(checkout: Path) -> None:
    write_site(checkout / "questions.yaml", checkout, checkout / "site")
    site = Site.of(checkout / "site")
    assert site.pages == {"x.md", "sub/y.md"}
    assert site.queries == {"a/b#1": "wann", "a/b#2": "wo"}
    assert site.qrels == {"a/b#1": [("x.md", 2), ("sub/y.md", 1)], "a/b#2": [("x.md", 2)]}


def test_site_without_words_is_an_error(checkout: Path) -> None:
    (checkout / "questions.yaml").write_text("folder: docs\nquestions: [{thread: a/b#1, answers: [x.md]}]")
    with pytest.raises(
        BenchmarkError, match=r"questions.yaml does not have the words of a/b#1: give them with --words"
    ):
        write_site(checkout / "questions.yaml", checkout, checkout / "site")


def test_program_without_words_ends_with_one_sentence(checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (checkout / "questions.yaml").write_text("folder: docs\nquestions: [{thread: a/b#1, answers: [x.md]}]")
    assert main([str(checkout / each) for each in ("questions.yaml", "", "site")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_site_names_pages_in_mdx_as_markdown(checkout: Path) -> None:
    (checkout / "docs" / "x.md").rename(checkout / "docs" / "x.mdx")
    write_site(checkout / "questions.yaml", checkout, checkout / "site")
    assert Site.of(checkout / "site").pages == {"x.md", "sub/y.md"}


def test_site_of_typed_words_has_only_their_threads(checkout: Path) -> None:
    write_site(checkout / "questions.yaml", checkout, checkout / "site", {"a/b#2": "wo steht das"})
    site = Site.of(checkout / "site")
    assert site.queries == {"a/b#2": "wo steht das"}
    assert list(site.qrels) == ["a/b#2"]


def test_judged_page_that_is_not_in_the_checkout_is_an_error(checkout: Path) -> None:
    (checkout / "docs" / "x.md").unlink()
    with pytest.raises(BenchmarkError, match=r"a/b#1: x\.md is not in"):
        write_site(checkout / "questions.yaml", checkout, checkout / "site")


@pytest.mark.parametrize("file", sorted(DATA.glob("questions_*.yaml")), ids=lambda file: file.stem)
def test_questions_are_in_their_language_and_five_a_page_at_most(file: Path) -> None:
    data = read_yaml_file(file)
    questions = data["questions"]
    assert len(questions) >= 30
    assert len({question["thread"] for question in questions}) == len(questions)
    assert {question["evidence"] for question in questions} <= {"link", "asker", "named", "read"}
    assert max(Counter(page for question in questions for page in question["answers"]).values()) <= 5
    assert language("\n".join(question["question"] for question in questions)) == data["language"]


@pytest.mark.parametrize("file", sorted((DATA / "english").glob("*.yaml")), ids=lambda file: file.stem)
def test_threads_about_english_sites_are_judged_five_a_page_at_most(file: Path) -> None:
    data = read_yaml_file(file)
    assert (data["language"], len(data["commit"])) == ("English", 40)
    questions = data["questions"]
    assert len({question["thread"] for question in questions}) == len(questions) >= 29
    assert {question["evidence"] for question in questions} <= {"link", "asker", "named", "written", "read"}
    assert max(Counter(page for question in questions for page in question["answers"]).values()) <= 5
