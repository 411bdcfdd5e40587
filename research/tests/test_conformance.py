"""Every requirement of the seeds is done, shown by tests that are expected to pass, or differs with a reason."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from ragbench.base import locations
from ragbench.base.types import ConfigError
from ragbench.config import composition
from ragbench.config.overrides import named_arms
from research.conformance import AUDITED, FILE, Requirement, audited, has_evidence, is_command, read, untraced
from tests.docs.pages import compose, parsed

ROOT = Path(__file__).resolve().parents[2]
ROWS = read()


def test_conformance_rows_name_existing_files_of_tests() -> None:
    missing = [(row.id, path) for row in ROWS for path in row.tests if not (ROOT / path).is_file()]
    assert missing == []
    assert {row.id for row in ROWS for path in row.tests if not path.rpartition("/")[2].startswith("test_")} == set()


def test_conformance_difference_is_measured_or_quoted() -> None:
    ids_of_tests = [row.id for row in ROWS if re.search(r"\.py\b|::test_|tests/", f"{row.says} {row.differs}")]
    assert ids_of_tests == [], "ids of tests belong to `tests`"
    bare = [row.id for row in ROWS if row.differs and not has_evidence(row)]
    assert bare == [], "quote what contradicts it, or give a figure and name in `measured` what has or prints it"
    untraceable = {row.id: untraced(row) for row in ROWS if row.measured and untraced(row)}
    assert untraceable == {}, "these figures are in no file of `measured`"


def test_conformance_commands_with_figures_are_accepted() -> None:
    commands = [source for row in ROWS for source in row.measured if is_command(source)]
    assert commands
    for command in commands:
        program, *words = shlex.split(command)
        assert program == "ragbench"
        compose(words)
        if arms := vars(parsed(words)).get("arm"):
            composition.arms(named_arms(arms), parsed(words).overrides)


@pytest.mark.parametrize(
    ("differs", "measured", "expected"),
    [
        ("nDCG@10 is 0.805.", ["docs/research/reference.md"], True),
        ("nDCG@10 is 0.805 and 0.8071.", ["docs/research/reference.md"], False),  # of no file
        ("nDCG@10 is 0.8071.", ["docs/research/reference.md", "ragbench run"], True),
        ("Slower by 12 ms.", [], False),
        ("Slower by 12 ms.", ["ragbench run"], True),
        ('The seed says "both".', [], True),
        ("Not in P6 at nDCG@10 by `k=60`.", ["ragbench run"], False),
        ("It changes 0 hits, 0 of the files, 0.0 of them.", ["ragbench run"], False),
        ("", ["ragbench run"], False),
    ],
)
def test_conformance_reason_has_a_traced_figure_or_a_quotation(
    differs: str, measured: list[str], expected: bool
) -> None:
    assert has_evidence(Requirement("a", "s", "000", "x", differs=differs, measured=tuple(measured))) == expected


def test_conformance_has_the_top_level_of_the_task() -> None:
    wanted = ["pyproject.toml", "ragbench", "notebooks", "conf", "corpus", "qrels", "tests", "results"]
    assert [name for name in wanted if not (ROOT / name).exists()] == []
    assert (locations.configuration(), locations.builtin()) == (ROOT / "conf", ROOT)


def test_conformance_meets_the_independent_list() -> None:
    """No requirement is wrong or missing; of every seed, 95% are done or reasoned and 80% done as written."""
    for seed, states in audited(ROWS).items():
        assert {"wrong", "missing"}.isdisjoint(states), seed
        assert states.count("done") >= 0.8 * len(states), seed
    numbers = {number for row in ROWS for number in row.covers}
    assert numbers == set(range(1, 1 + sum(AUDITED.values()))) and all(row.covers for row in ROWS)


def test_requirement_has_the_state_of_its_rows() -> None:
    rows = [
        Requirement("a", "s", "000", "x", (1, 2)),
        Requirement("b", "s", "000", "x", (2, 4), differs="By 12 ms.", measured=("ragbench run",)),
        Requirement("c", "s", "000", "x", (3,), differs="Because it is better."),
    ]
    assert audited(rows)["000"][:5] == ["done", "differs", "wrong", "differs", "missing"]


def test_conformance_every_seed_has_rows() -> None:
    assert {number for row in ROWS for number in re.findall(r"\b00\d\b", row.seed)} == {f"00{n}" for n in range(5)}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("{id: a, says: b}", "row a: name a test"),
        ("{id: a, says: b, why: c}", "a row has id, covers, says"),
        ("{id: a, says: b, tests: [c]}\n    - {id: a, says: b, tests: [c]}", "two rows with the id a"),
    ],
)
def test_conformance_names_a_row_that_cannot_be_used(row: str, message: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(f"- section: s\n  seed: '000'\n  rows:\n    - {row}\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read(tmp_path)
