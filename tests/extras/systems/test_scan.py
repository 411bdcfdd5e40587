"""Recall by substring: two passes, lengths of terms, limits, and the answers of a plain scan."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ragbench.corpus.reader import parse_document
from ragbench.extras.systems.parts.scan import ScanIndex, build_scan, content, searchable

FILES = {
    "gate/tokens": "Rotate a key. 認証 トークン",
    "gate/keys": "---\nowner: Ada\ntags: [one, two]\n---\nA token is not a key.",
    "store/index": "Tokens of the\n  gate, in full.",
    "empty": "",
}


def parsed(files: dict[str, str]):
    return [parse_document(name, f"{name}.md", text.encode(), 0.0)[0] for name, text in files.items()]


def opened(folder: Path, files: dict[str, str]) -> ScanIndex:
    folder.mkdir(exist_ok=True)
    build_scan(folder, parsed(files))
    return ScanIndex(folder)


@pytest.fixture(scope="module")
def scan(tmp_path_factory: pytest.TempPathFactory) -> ScanIndex:
    return opened(tmp_path_factory.mktemp("scan"), FILES)


@pytest.mark.parametrize(
    ("terms", "files", "by_path"),
    [
        (["token"], (0, 1, 2), 1),  # in the path first, then in the contents
        (["token", "gate"], (0, 1, 2), 2),  # two in the first path, one in the second
        (["gate", "store", "index"], (2, 0, 1), 3),
        (["oken"], (0, 1, 2), 1),
        (["TOKEN"], (0, 1, 2), 1),
        (["of the gate"], (2,), 0),  # blanks are one space
        (["the  gate,"], (2,), 0),
        (["ada"], (1,), 0),
        (["two"], (1,), 0),
        (["認証"], (0,), 0),
        (["認"], (), 0),
        (["to", "a", ""], (), 0),
        ([], (), 0),
        (["nowhere"], (), 0),
    ],
)
def test_scan_recall(scan: ScanIndex, terms: list[str], files: tuple[int, ...], by_path: int) -> None:
    assert scan.recall(terms, 200) == (files, by_path)


def test_scan_limit_counts_both_passes(scan: ScanIndex) -> None:
    assert scan.recall(["token"], 2) == ((0, 1), 1)
    assert scan.recall(["token"], 1) == ((0,), 1)


def test_scan_skips_filtered_documents(scan: ScanIndex) -> None:
    assert scan.recall(["token"], 1, np.array([False, True, True, True])) == ((1,), 0)


@pytest.mark.parametrize(
    ("term", "long_enough"), [("ab", False), ("abc", True), ("语", False), ("语言", True), ("a语", True), ("жк", False)]
)
def test_scan_three_ascii_or_two_cjk_characters(term: str, long_enough: bool) -> None:
    assert searchable(term) == long_enough


WORDS = st.text(st.sampled_from(list("abC é語 \n#")), max_size=12)


@given(texts=st.lists(WORDS, min_size=1, max_size=5), terms=st.lists(WORDS, max_size=3))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_answers_are_those_of_a_scan_of_every_file(tmp_path: Path, texts: list[str], terms: list[str]) -> None:
    files = {f"f{number}": text for number, text in enumerate(texts)}
    contents = [content(document) for document in parsed(files)]
    wanted = [term for term in dict.fromkeys(" ".join(t.lower().split()) for t in terms) if searchable(term)]
    held = [sum(term in text for term in wanted) for text in contents]
    expected = sorted((row for row in range(len(files)) if held[row]), key=lambda row: (-held[row], row))
    assert opened(tmp_path / "scan", files).recall(terms, 100) == (tuple(expected), 0)
