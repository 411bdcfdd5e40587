"""The parts of an index: found by name, built once, opened once; a part of one's own is a value and nothing more."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from ragbench.base import progress, registry
from ragbench.base.types import ConfigError
from ragbench.index.parts import Part, StoredPart, find, register
from tests.naming import naming

NAMES = [*registry.entries("part"), *registry.entries("source")]


class Lengths:
    """The characters of every document."""

    def __init__(self, folder: Path) -> None:
        self.values = json.loads((folder / "lengths.json").read_text(encoding="utf-8"))
        self.closed = False

    def close(self) -> None:
        self.closed = True


built: list[Path] = []


def _build(folder: Path, index) -> None:
    built.append(folder)
    counted = progress.counted("counting", index.documents, len(index.documents))
    (folder / "lengths.json").write_text(json.dumps([len(document.text) for document in counted]), encoding="utf-8")


LENGTHS = StoredPart(
    "lengths",
    inputs=lambda index: [index.fingerprint("chunks"), 1],
    build=_build,
    open=lambda folder, index: Lengths(folder),
)
LONGEST = Part("longest", fingerprint=lambda index: index.fingerprint("lengths"), open=lambda i: max(i.lengths.values))


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", {})
    register(LENGTHS)
    register(LONGEST)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "pyserini" else name for name in NAMES]
)
def test_parts_are_made_by_name(name: str, index) -> None:
    part = find(name)
    assert part.name == name
    assert find(name) is part
    assert getattr(index, name) is getattr(index, name)
    assert index.fingerprints([name]) == {name: index.fingerprint(name)}
    if isinstance(part, StoredPart):
        assert index.artefact(name).kind == name
        assert index.artefact(name) in index.artefacts([name])
    else:
        with pytest.raises(ConfigError, check=naming(f"'{name}'")):
            index.artefact(name)


def test_part_of_ones_own_is_built_once_and_opened_once(own, make_index, benchmark_small) -> None:
    built.clear()
    index = make_index()
    index.prepare({"lengths", "longest"})
    expected = [len(document.text) for document in benchmark_small.documents]
    assert index.lengths.values == expected
    assert index.longest == max(expected)
    assert index.fingerprint("longest") == index.artefact("lengths").fingerprint
    assert index.artefact("lengths").manifest["inputs"] == [index.fingerprint("chunks"), 1]
    again = make_index()
    assert again.lengths.values == expected
    assert len(built) == 1
    assert again.with_models(again.models).lengths is again.lengths
    again.close()
    assert again.lengths.closed


def test_index_refuses_unknown_parts_by_name(index) -> None:
    with pytest.raises(ConfigError, check=naming("'colours'")):
        index.prepare({"colours"})
    with pytest.raises(ConfigError, check=naming("'colours'")):
        _ = index.colours
    assert find("os.path") is None
    assert find("graph:documents") is None


def test_part_of_ones_own_takes_no_name_that_is_taken() -> None:
    with pytest.raises(ConfigError, check=naming("'graph'")):
        register(Part("graph", fingerprint=lambda index: "", open=lambda index: None))


def test_index_takes_times_beside_the_documents(benchmark_small, workplace: Path, models) -> None:
    from ragbench.index.artefacts import ArtefactStore
    from ragbench.index.index import Index, IndexSpec

    times = {document.docno: float(number) for number, document in enumerate(benchmark_small.documents)}
    store = ArtefactStore(workplace / "index")
    given = Index(
        *(IndexSpec(), benchmark_small.collection, lambda: benchmark_small.documents, store, models),
        times=lambda: times,
    )
    assert np.array_equal(given.modified, [times[docno] for docno in given.chunks.docnos])
