"""The checks of a bundle: files, models, documents, index, rankings, speed; `verify` runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ragbench.base import files, progress
from ragbench.base.types import BenchmarkError, ConfigError, CorpusError, ModelError, RagbenchError, counted
from ragbench.benchmark import load
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config.settings import Settings
from ragbench.evaluation import intervals, latency
from ragbench.evaluation.machine import Watch
from ragbench.extras.export.gate import Check
from ragbench.extras.ship import bundle, generation
from ragbench.extras.ship.bundle import Golden
from ragbench.extras.ship.generation import Generation
from ragbench.extras.ship.loaded_bundle import LoadedBundle, StoredBundle, load_folder
from ragbench.extras.ship.refresh import differences, digests_of
from ragbench.index.artefacts import damage_of
from ragbench.index.chunks import ChunkTable
from ragbench.models import resolve
from ragbench.results import environment
from ragbench.search.engine.pipeline import Arm

SCORE_TOLERANCE = 1e-4
"""Scores are equal that differ by at most this share of the larger one: CPUs round differently."""
NUMERICS = {"vectors": 0.02, "scores": 1.0}
"""How much a model's outputs may differ from those at the export without counting as a failure.

Vectors by 1 - cosine, cross-encoders by their logits. int8 inference rounds differently on other kinds of CPUs:
`docs/limits.md` has what was measured.
"""
_TIMINGS = 3
"""How often latency is measured before it counts as too high: a slow machine stays slow, an episode of load ends."""


@dataclass(frozen=True)
class Options:
    """What a search is checked against.

    `corpus`: the folder of the documents now; `latency_tolerance`: how much higher p95 may be than the measured one, as
    a share of it (None: latency is not measured).
    """

    corpus: Path | None = None
    latency_tolerance: float | None = None


def of_folder(folder: Path, options: Options) -> Iterator[Check]:
    """The outcome of every check of the folder of a bundle. Raises BundleError for another folder."""
    with bundle.reading(folder):
        stored = StoredBundle.read(folder)
        for check in STORED:
            yield from check(stored, options)
        try:
            loaded = load_folder(stored, None)
        except RagbenchError as error:
            yield Check("index", "fails", str(error))
            for part in ("rankings", "latency"):
                yield Check(part, "not checked", "the bundle does not open")
            return
        with loaded:
            for check_open in OPENED:
                yield check_open(loaded, options)


def same_ranking(expected: Golden, ids: Sequence[str], scores: Sequence[float]) -> str | None:
    """What differs in a ranking, None if nothing does; hits with equal scores may have any order."""
    if len(ids) != len(expected.ids):
        return f"{len(ids)} hits instead of {len(expected.ids)}"
    expected_scores = dict(zip(expected.ids, expected.scores, strict=True))
    for rank, (name, score, expected_id, score_before) in enumerate(
        zip(ids, scores, expected.ids, expected.scores, strict=True), start=1
    ):
        if name != expected_id and not (name in expected_scores and _close(expected_scores[name], score_before)):
            return f"rank {rank} is {name} instead of {expected_id}"
        if not _close(score, score_before):
            return f"rank {rank} has the score {score:.6g} instead of {score_before:.6g}"
    return None


def _record(stored: StoredBundle, _: Options) -> Iterator[Check]:
    """Whether everything that the pipeline uses is listed; what is not listed is not compared."""
    record = stored.record
    try:
        pipeline, golden = stored.settings.pipeline, bundle.read_golden(stored.folder)
    except RagbenchError as error:
        yield Check("record", "fails", str(error))
        return
    kinds = Counter(str(entry["kind"]) for entry in record["models"])
    used = Counter({"encoder": len(pipeline.encoders), "cross-encoder": len(bundle.cross_encoders(pipeline))})
    missing = [f"{kind} among the models" for kind in sorted(used - kinds)]
    missing += [f"{need} among the artefacts" for need in sorted(bundle.needs(pipeline) - set(record["artefacts"]))]
    missing += [f"{name} among the files" for name in bundle.SEALED if name not in record["files"]]
    if len(golden) != record["golden"] or not golden:
        missing.append("any golden query" if not golden else f"{record['golden'] - len(golden)} golden queries")
    if missing:
        yield Check("record", "fails", f"it lacks {', '.join(missing)}: export the bundle again")
        return
    listed = counted(len(record["models"]), "model")
    yield Check("record", "passes", f"{listed}, {len(record['artefacts'])} fingerprints")


def _files(stored: StoredBundle, _: Options) -> Iterator[Check]:
    changed = []
    for name, digest in stored.record["files"].items():
        try:
            current = files.sha256(stored.folder / name)
        except OSError:
            current = ""
        if current != digest:
            changed.append(name)
    if changed:
        yield Check("files", "fails", f"{', '.join(changed)} changed after the export")
    else:
        yield Check("files", "passes", f"{len(stored.record['files'])} files match their digests")


def models(record: Mapping[str, Any]) -> Iterator[Check]:
    """Whether every model that a record lists is the same here."""
    return map(_model, record["models"])


def _model(entry: Mapping[str, Any]) -> Check:
    """Whether a model has the same weights and the same settings."""
    part = f"model {entry['name']}"
    try:
        model: Any = (
            resolve.load_encoder(resolve.EncoderSpec(**entry["spec"]))
            if entry["kind"] == "encoder"
            else resolve.load_cross_encoder(resolve.CrossEncoderSpec(**entry["spec"]))
        )
        weights, digest = dict(model.weights), model.digest
        local = getattr(model, "numerics", "")
        recorded = entry["numerics"]
    except (ModelError, ConfigError) as error:
        return Check(part, "fails", str(error))
    if weights != entry["weights"]:
        return Check(part, "fails", "its weights differ from the measured ones")
    if digest != entry["digest"]:
        return Check(part, "fails", "its weights are the same, but its settings or the library that runs it differ")
    numerics_note = f"; its numerics were {recorded} at the export and are {local} here" if recorded != local else ""
    return Check(part, "passes", f"digest {digest[:12]}{numerics_note}")


def _documents(stored: StoredBundle, options: Options) -> Iterator[Check]:
    yield _compare_documents(stored, options.corpus)


def _compare_documents(stored: StoredBundle, corpus: Path | None) -> Check:
    try:
        benchmark = _documents_of(stored.settings, corpus)
    except (CorpusError, BenchmarkError, ConfigError) as error:
        if corpus is None:
            return Check(
                "documents",
                "not checked",
                f"they are not on this machine: specify their folder with --corpus ({error})",
            )
        return Check("documents", "fails", str(error))
    serves = generation.current(stored.folder, stored.record)
    if benchmark.collection != serves.collection:
        event, remedy = ("refresh", "refresh again") if serves.number else ("export", "run and export again")
        counts = f"{len(benchmark.documents)} now, {len(serves.modified)} then"
        return Check("documents", "fails", f"they have changed since the {event} ({counts}): {remedy}")
    origin = f"of generation {serves.number}{_since(stored, serves)}" if serves.number else "unchanged"
    return Check("documents", "passes", f"{len(benchmark.documents)} documents, {origin}")


def _since(stored: StoredBundle, serves: Generation) -> str:
    """Return how many documents differ from the measured ones."""
    table = ChunkTable(stored.folder / bundle.INDEX / "chunks" / str(stored.record["artefacts"]["chunks"]))
    added, changed, deleted = map(len, differences(digests_of(table), serves.digests))
    return f": {added} added, {changed} changed, {deleted} deleted since the measurement"


def _documents_of(settings: Settings, corpus: Path | None) -> Benchmark:
    """The benchmark's documents, from where the configuration says or from `corpus`."""
    data = dict(settings.data)
    if corpus is not None:
        data["folder" if data.get("loader") == "beir" else "corpus"] = str(corpus)
    return load.load(data, topics=False)


def _index(loaded: LoadedBundle, _: Options) -> Check:
    expected = loaded.serves.artefacts
    fingerprints = loaded.index.fingerprints(expected)
    differing = sorted(name for name, fingerprint in expected.items() if fingerprints[name] != fingerprint)
    if differing:
        return Check("index", "fails", f"this version would build {', '.join(differing)} differently")
    artefacts = loaded.index.artefacts()
    for artefact in artefacts:
        if reason := damage_of(artefact.manifest, artefact.kind, artefact.fingerprint, artefact.folder, in_full=True):
            return Check("index", "fails", f"{artefact.kind} {artefact.fingerprint} is damaged: {reason}")
    return Check("index", "passes", f"{len(artefacts)} artefacts match their digests")


def rankings(loaded: LoadedBundle) -> Check:
    """Whether golden queries have the hits and scores that they had.

    A query whose ranking differs is answered again with the recorded outputs of the models: if it has the same ranking
    then, only numerics differ, within `NUMERICS`.
    """
    golden = loaded.golden()
    queries = progress.steps("replaying queries", [Golden(query.query) for query in golden])
    replayed = list(bundle.replay(loaded.pipeline, loaded.index, queries))
    failed = [
        query for query, answer in zip(golden, replayed, strict=True) if same_ranking(query, answer.ids, answer.scores)
    ]
    vectors, scores = _numerics(golden, replayed)
    note = f"vectors differ by up to {vectors:.2g} (1 - cosine), scores of a cross-encoder by {scores:.2g}"
    if failed and not (vectors <= NUMERICS["vectors"] and scores <= NUMERICS["scores"]):
        return Check("rankings", "fails", f"the models return other values than at the export: {note}")
    with_outputs = bundle.replay(loaded.pipeline, loaded.index, failed)
    differences = {
        query.query.qid: same_ranking(query, answer.ids, answer.scores)
        for query, answer in zip(failed, with_outputs, strict=True)
    }
    if differing := [f"{qid}: {difference}" for qid, difference in differences.items() if difference]:
        listed = "; ".join(differing[:3])
        return Check("rankings", "fails", f"{len(differing)} of {len(golden)} queries return other results ({listed})")
    note = f", {len(failed)} of them only with the recorded model outputs: {note}" if failed else ""
    return Check("rankings", "passes", f"{len(golden)} golden queries return the same results{note}")


def _numerics(recorded: Sequence[Golden], replayed: Sequence[Golden]) -> tuple[float, float]:
    """How far model outputs differ at most from those recorded: 1 - cosine of vectors, difference of scores."""
    vectors, scores = [0.0], [0.0]
    for old, new in zip(recorded, replayed, strict=True):
        computed = new.arrays()
        for key, value in old.arrays().items():
            if len(value) != len(computed.get(key, value)):
                return float("inf"), float("inf")
            a, b = (np.frombuffer(raw, "<f4").astype(float) for raw in (value, computed.get(key, value)))
            scores.append(abs(float(a[0] - b[0]))) if len(a) == 1 else vectors.append(1 - float(a @ b))
    return float(np.max(vectors)), float(np.max(scores))  # not a number if one is not


def drift(loaded: LoadedBundle) -> Check:
    """How far the served documents have moved from the measured ones; it never fails, since documents may change."""
    serves = loaded.serves
    if not serves.number:
        return Check("drift", "passes", "none: the index has not changed since it was measured")
    moved = serves.drift
    return Check(
        "drift",
        "passes",
        f"generation {serves.number}: {moved.chunks_changed:.1%} of the chunks differ from the measured ones, "
        f"golden queries keep {moved.agreement:.1%} of their top results",
    )


def _latency(loaded: LoadedBundle, options: Options) -> Check:
    recorded, tolerance = loaded.record["latency_ms"], options.latency_tolerance
    if tolerance is None:
        return Check("latency", "not checked", "skipped with --no-latency")
    if recorded is None:
        return Check("latency", "not checked", "the run did not measure time")
    arm = Arm(loaded.name, loaded.pipeline, loaded.index)
    spec = replace(loaded.settings.latency, enabled=True, cold_start=False)
    limit = recorded["p95"] * (1 + tolerance)
    for _ in range(_TIMINGS):
        with Watch() as watch:
            timing = latency.measure([arm], [query.query for query in loaded.golden()], spec, again=False)[loaded.name]
        samples = timing.samples()
        measured = intervals.summary(samples)
        # The lower bound without waiting counts, so that a machine that is busy for a moment does not fail the check.
        low = intervals.p95_at_least(intervals.Samples(samples.qids, samples.ms - timing.waited_ms))
        bound = f"at least {low:.1f}"
        text = f"p95 {measured['p95']:.1f} ms ({bound}), {recorded['p95']:.1f} ms at export; limit {limit:.1f} ms"
        if low <= limit:
            return Check("latency", "passes", text)
    busy = watch.record()["busy"]
    return Check("latency", "fails", f"{text}; {busy}: verify again on a quiet machine" if busy else text)


def environment_of(record: Mapping[str, Any]) -> Check:
    """Which packages and whether the CPU differ from those of the export; it never fails."""
    recorded, current = record["environment"]["export"], environment.describe()
    changed = [
        f"{name} {recorded['packages'].get(name, 'not there')} -> {version}"
        for name, version in current["packages"].items()
        if recorded["packages"].get(name) != version
    ]
    if recorded["processor"] != current["processor"]:
        changed.append("another CPU")
    return Check(
        "environment",
        "passes",
        f"differs ({', '.join(changed)})" if changed else "same packages and CPU as at export",
    )


def _close(a: float, b: float) -> bool:
    return a == b or abs(a - b) <= SCORE_TOLERANCE * max(abs(a), abs(b))


STORED: Sequence[Callable[[StoredBundle, Options], Iterator[Check]]] = (
    _record,
    _files,
    lambda stored, _: models(stored.record),
    _documents,
)
"""The checks of a folder before it is opened."""
OPENED: Sequence[Callable[[LoadedBundle, Options], Check]] = (
    _index,
    lambda loaded, _: rankings(loaded),
    _latency,
    lambda loaded, _: drift(loaded),
    lambda loaded, _: environment_of(loaded.record),
)
"""The checks of an open bundle."""
