"""A bundle is checked where it is: models, documents, index, rankings, time."""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from ragbench.base.types import BundleError, ConfigError, Query
from ragbench.boundary.json import read_checksummed, write_checksummed
from ragbench.evaluation.intervals import Samples, p95_at_least, summary
from ragbench.evaluation.latency import Timing
from ragbench.evaluation.machine import Watch
from ragbench.extras.ship import bundle
from ragbench.extras.ship.bundle import Golden
from ragbench.extras.ship.checks import same_ranking
from ragbench.extras.ship.deployment import load, verify
from ragbench.index.artefacts import MANIFEST, manifest_entry
from tests.naming import naming


def outcomes(folder: Path, **options) -> dict[str, tuple[str, str]]:
    options = {"latency": False, **options}
    return {check.part.split(" ")[0]: (check.outcome, check.message) for check in verify(folder, **options)}


@pytest.fixture
def change(copied: Path) -> Callable[[Callable[[dict], object]], Path]:
    """A function that changes the record of a copied bundle."""

    def apply(changed: Callable[[dict], object]) -> Path:
        record = read_checksummed(copied / bundle.RECORD)
        changed(record)
        write_checksummed(copied / bundle.RECORD, record)
        return copied

    return apply


def test_verify_passes_an_untouched_bundle(bundle_of) -> None:
    checks = outcomes(bundle_of("baseline"), latency=True, latency_tolerance=1000.0)
    assert {part: outcome for part, (outcome, _) in checks.items()} == dict.fromkeys(
        ["record", "files", "model", "documents", "index", "rankings", "latency", "drift", "environment"], "passes"
    )


def test_documents_fail_where_they_changed(bundle_of, handbook_folder: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(handbook_folder / "notes", tmp_path / "moved"))
    assert outcomes(bundle_of("baseline"), corpus=moved)["documents"][0] == "passes"
    (moved / "team.md").unlink()
    checks = outcomes(bundle_of("baseline"), corpus=moved)
    assert checks["documents"] == (
        "fails",
        "they have changed since the export (18 now, 19 then): run and export again",
    )
    assert outcomes(bundle_of("baseline"), corpus=tmp_path / "nowhere")["documents"][0] == "fails"


def test_documents_of_another_machine_are_not_checked(copied: Path) -> None:
    path = copied / bundle.CONFIG
    path.write_text(path.read_text().replace("/notes", "/elsewhere"))
    checks = outcomes(copied)
    assert checks["documents"][0] == "not checked"
    assert checks["files"] == ("fails", "config.yaml changed after the export")
    assert checks["rankings"][0] == "passes"


def test_rankings_fail_for_another_order(copied: Path) -> None:
    path = copied / bundle.GOLDEN
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    rows[0]["ids"].reverse()
    path.write_text("\n".join(map(json.dumps, rows)))
    outcome, message = outcomes(copied)["rankings"]
    assert outcome == "fails"
    qid = rows[0]["query"]["qid"]
    assert message.startswith(f"1 of {len(rows)} queries return other results ({qid}: rank 1 is ")


def test_rankings_pass_where_only_numerics_differ(copied: Path) -> None:
    noise = np.random.default_rng(3).normal(0, 0.005, 384).astype("<f4")  # 1 - cosine is about .005
    golden = [with_outputs(row, lambda value: value + noise) for row in bundle.read_golden(copied)]
    with load(copied) as loaded:
        there = list(bundle.replay(loaded.pipeline, loaded.index, golden))
    assert [row.ids for row in there] != [row.ids for row in bundle.read_golden(copied)], "near ties are swapped"
    outcome, message = rankings(copied, there)
    assert outcome == "passes"
    assert message.startswith(
        f"{len(there)} golden queries return the same results, {len(there)} of them only with the recorded"
    )
    far = [with_outputs(row, lambda value: value[::-1]) for row in there]
    outcome, message = rankings(copied, far)
    assert outcome == "fails" and message.startswith("the models return other values than at the export")
    short = [with_outputs(row, lambda value: value[:5]) for row in there]
    assert rankings(copied, short)[0] == "fails"


def test_rankings_fail_for_a_replaced_vector(copied: Path) -> None:
    (path,) = (copied / bundle.INDEX / "dense").glob("*/vectors.npy")
    vectors = np.load(path)
    ids = [name for row in bundle.read_golden(copied) for name in row.ids[:1]]
    with load(copied) as loaded:
        row = loaded.index.chunks.chunk_ids.index(ids[0])
    vectors[row] = -vectors[row]
    np.save(path, vectors)
    manifest = json.loads((path.parent / MANIFEST).read_text())
    manifest["files"][path.name] = manifest_entry(path)  # as somebody would who knows the format
    (path.parent / MANIFEST).write_text(json.dumps(manifest))
    checks = outcomes(copied)
    assert checks["index"][0] == "passes"
    assert checks["rankings"][0] == "fails"


def with_outputs(golden: Golden, change: Callable[[np.ndarray], np.ndarray]) -> Golden:
    """The query with other vectors, of length 1, as recorded outputs of its model."""
    changed = {}
    for key, value in golden.arrays().items():
        vector = change(np.frombuffer(value, "<f4"))
        vector = (vector / np.linalg.norm(vector)).astype("<f4")
        changed[key.hex()] = base64.b64encode(vector.tobytes()).decode()
    return replace(golden, outputs=changed)


def rankings(folder: Path, golden: list[Golden]) -> tuple[str, str]:
    """The outcome for other golden queries."""
    (folder / bundle.GOLDEN).write_text("\n".join(json.dumps(asdict(row)) for row in golden))
    return outcomes(folder)["rankings"]


def test_model_check_fails_for_missing_and_other_models(change) -> None:
    assert outcomes(change(lambda record: record["models"][0]["spec"].update(name="./no-model")))["model"][0] == "fails"
    assert outcomes(change(lambda record: record["models"][0].update(weights={}, digest="0", spec={})))["model"] == (
        "fails",
        "its weights differ from the measured ones",
    )


def test_missing_index_fails_and_stops_the_checks(copied: Path) -> None:
    shutil.rmtree(copied / bundle.INDEX / "lexical")
    checks = outcomes(copied)
    assert checks["index"][0] == "fails"
    assert (checks["rankings"][0], checks["latency"][0]) == ("not checked", "not checked")


def test_index_of_another_version_fails(change) -> None:
    checks = outcomes(change(lambda record: record["artefacts"].update(lexical="0" * 16)))
    assert checks["index"] == ("fails", "this version would build lexical differently")


@pytest.mark.slow
def test_latency_is_measured_again_before_it_fails(change, monkeypatch: pytest.MonkeyPatch) -> None:
    bounds = iter([9.0, 9.0, 1.0, 9.0, 9.0, 9.0])
    monkeypatch.setattr("ragbench.evaluation.intervals.p95_at_least", lambda samples: next(bounds))
    timed = change(lambda record: record["latency_ms"].update(p95=2.0))
    assert [outcomes(timed, latency=True)["latency"][0] for _ in range(2)] == ["passes", "fails"]


@pytest.mark.slow
def test_latency_beyond_the_tolerance_fails(change, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = change(lambda record: record["latency_ms"].update(p95=0.001))
    assert outcomes(slow, latency=True)["latency"][0] == "fails"
    with monkeypatch.context() as busy:
        busy.setattr(Watch, "record", lambda watch: {"busy": "other programs kept 2.0 of 2 processors busy"})
        assert outcomes(slow, latency=True)["latency"][1].endswith(" processors busy: verify again on a quiet machine")
        # Time spent waiting for a processor is not the bundle's.
        waited = property(lambda timing: timing.samples_ms[:, -1], lambda timing, value: None)
        busy.setattr(Timing, "waited_ms", waited, raising=False)
        assert outcomes(slow, latency=True)["latency"][0] == "passes"
    untimed = change(lambda record: record.update(latency_ms=None))
    assert outcomes(untimed, latency=True)["latency"] == ("not checked", "the run did not measure time")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (lambda record: record.update(models=[]), "it lacks encoder among the models"),
        (lambda record: record.update(artefacts={}), "it lacks chunks among the artefacts, dense among"),
        (lambda record: record.update(files={}), "it lacks config.yaml among the files, golden.jsonl among"),
        (lambda record: record.update(golden=record["golden"] + 2), "it lacks 2 golden queries"),
    ],
)
def test_record_fails_for_what_it_does_not_list(change, changed: Callable[[dict], object], reason: str) -> None:
    outcome, message = outcomes(change(changed))["record"]
    assert outcome == "fails"
    assert message.startswith(reason)


def test_record_fails_without_golden_queries(copied: Path) -> None:
    (copied / bundle.GOLDEN).write_text("")
    assert outcomes(copied)["record"] == ("fails", "it lacks any golden query: export the bundle again")


def test_environment_names_other_packages(change) -> None:
    checks = outcomes(change(lambda record: record["environment"]["export"]["packages"].update(numpy="1.0")))
    assert checks["environment"][0] == "passes"
    assert "numpy 1.0 -> " in checks["environment"][1]


def test_verify_refuses_other_folders_and_tolerances(tmp_path: Path) -> None:
    with pytest.raises(BundleError, check=naming("is not a bundle")):
        list(verify(tmp_path))
    with pytest.raises(ConfigError, check=naming("--latency-tolerance", -1)):
        list(verify(tmp_path, latency_tolerance=-1))


def golden(**scores: float) -> Golden:
    return Golden(Query("1", "x"), tuple(scores), tuple(scores.values()))


@pytest.mark.parametrize(
    ("ids", "scores", "reason"),
    [
        ("abc", (0.9, 0.5, 0.5), None),
        ("acb", (0.9, 0.5, 0.5), None),  # a tie may be broken otherwise
        ("abc", (0.90001, 0.5, 0.5), None),  # rounding
        ("abc", (0.9005, 0.5, 0.5), "rank 1 has the score 0.9005 instead of 0.9"),
        ("bac", (0.9, 0.5, 0.5), "rank 1 is b instead of a"),
        ("abd", (0.9, 0.5, 0.5), "rank 3 is d instead of c"),
        ("ab", (0.9, 0.5), "2 hits instead of 3"),
    ],
)
def test_same_ranking_says_what_differs(ids: str, scores: tuple[float, ...], reason: str | None) -> None:
    assert same_ranking(golden(a=0.9, b=0.5, c=0.5), list(ids), scores) == reason


def test_same_ranking_tells_neighbouring_ranks_apart() -> None:
    expected = golden(a=1 / 79, b=1 / 80)
    assert same_ranking(expected, ["b", "a"], (1 / 79, 1 / 80)) == "rank 1 is b instead of a"


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20, unique=True))
def test_same_ranking_accepts_itself(scores: list[float]) -> None:
    ids = [f"d{n}" for n in range(len(scores))]
    expected = Golden(Query("1", "x"), tuple(ids), tuple(sorted(scores, reverse=True)))
    assert same_ranking(expected, ids, expected.scores) is None


def test_p95_at_least_takes_few_queries() -> None:
    # Of ten queries at most six are below p95 with probability .001, at most seven with .012, at most eight with .086.
    ten = Samples([str(number) for number in range(10)], np.arange(1.0, 11.0))
    assert p95_at_least(ten) == 8
    assert p95_at_least(Samples(("a", "a"), np.array([5.0, 3.0]))) == 3
    many = Samples(tuple(f"q{number}" for number in range(80)), np.exp(np.random.default_rng(7).normal(2, 0.5, 80)))
    assert p95_at_least(many) == summary(many)["p95_low"]
