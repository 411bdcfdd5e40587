"""How long a run will take here: passages to embed, pairs to re-rank, queries to time, by models tried for seconds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbench.base.errors import RagbenchError
from ragbench.base.progress import Step, in_words, report
from ragbench.benchmark.benchmark import Benchmark
from ragbench.config.arm_builder import ArmBuilder
from ragbench.config.settings import Settings
from ragbench.experiment.plan import arm_key, plan
from ragbench.index.artefacts import Survey
from ragbench.models.adapter import without_adapter
from ragbench.models.bundled import DRAFT
from ragbench.models.cache import CachedCrossEncoder, CachedEncoder
from ragbench.models.functions import is_endpoint
from ragbench.results import store
from ragbench.search.engine.tree import explain as explain_tree
from ragbench.search.engine.tree import tree

if TYPE_CHECKING:
    from ragbench.base.types import Query
    from ragbench.evaluation.latency import LatencySpec
    from ragbench.models import Encoder
    from ragbench.models.resolve import CrossEncoderSpec, EncoderSpec
    from ragbench.search.engine.executor import Arm

_CALIBRATION = 1.5
"""Seconds for which a model is tried."""
_AT_ONCE = 4
_SMALL, _SMALL_EACH = 64, 0.02
"""Passages for which trying a model is not worth it, and the seconds that one is taken to need."""
_QUERY, _COLD_START, _REST = 0.03, 5.0, 5.0
"""Seconds that a query takes without a cross-encoder, a fresh process, and verdicts with the report."""


@dataclass(frozen=True)
class _Pass:
    """Passages that an arm must embed: `missing` of `chunks` are in no cache; arms before it have embedded the others.

    `seconds` is None for a model that is not tried, since each call costs money.
    """

    arm: str
    chunks: int
    missing: int
    seconds: float | None


@dataclass(frozen=True)
class Forecast:
    """What a run has to do, in seconds of this machine."""

    passes: tuple[_Pass, ...]
    reranking: tuple[Step, ...]
    timing: float

    @property
    def steps(self) -> list[Step]:
        """The steps of a run, for its progress."""
        embedding = [Step("embedding", each.arm, each.seconds or 0.0) for each in self.passes if each.missing]
        return [*embedding, *self.reranking, Step("timing queries", "", self.timing)]

    @property
    def seconds(self) -> float:
        """All of it."""
        return sum(step.seconds for step in self.steps) + _REST

    @property
    def sentence(self) -> str:
        """All in words: `about 4 min here: 2 passes over 2,044 chunks (baseline 1 min, recommended 2 min)`."""
        work = [each for each in self.passes if each.missing]
        if work:
            chunks = ", ".join(dict.fromkeys(f"{each.chunks:,}" for each in work))
            times = ", ".join(f"{each.arm} {_words(each.seconds)}" for each in work)
            said = [f"{len(work)} {'pass' if len(work) == 1 else 'passes'} over {chunks} chunks ({times})"]
        else:
            said = ["all passages are embedded already"]
        if pairs := sum(step.seconds for step in self.reranking):
            said.append(f"re-ranking at most {in_words(pairs)}")
        if self.timing:
            said.append(f"timing {in_words(self.timing)}")
        return f"about {in_words(self.seconds)} here: {', '.join(said)}"


def forecast(arms: Sequence[Arm], queries: Sequence[Query], spec: LatencySpec, *, keep: bool = False) -> Forecast:
    """What the arms will take; chunk tables are built. `keep`: what is embedded to try a model goes into the cache."""
    known: dict[str, set[str]] = {}
    rates: dict[EncoderSpec | CrossEncoderSpec, float | None] = {}
    passes = []
    for arm in arms:
        chunks, missing, seconds = 0, 0, 0.0
        tried = True
        for name in sorted(need for need in arm.pipeline.needs if need.partition(":")[0] == "dense"):
            source = name.partition(":")[2]
            vectors = arm.index.spec.vectors(source)
            encoder = without_adapter(arm.index.part(f"encoder:{source}".rstrip(":")))
            key = encoder.passage_digest
            if arm.index.store.has("dense", arm.index.fingerprint(name)):
                continue
            texts = list(dict.fromkeys(vectors.passage.passages(arm.index.chunks)))
            seen = known.setdefault(key, set())
            new = [text for text in _missing(encoder, texts) if text not in seen]
            seen.update(new)
            if new and vectors.encoder not in rates:
                with suppress(RagbenchError):  # as below
                    rates[vectors.encoder] = _seconds_each(vectors.encoder, encoder, new, keep)
            rate = rates.get(vectors.encoder, 0.0)
            tried = tried and rate is not None
            chunks, missing = chunks + arm.index.chunks.n_retrievable, missing + len(new)
            seconds += len(new) * (rate or 0.0)
        passes.append(_Pass(arm.name, chunks, missing, seconds if tried else None))
    pairs = {arm.name: _seconds_of_pairs(arm, queries, rates) for arm in arms}
    reranking = [Step("running stages", arm, each * len(queries), even=False) for arm, each in pairs.items() if each]
    timing = sum(_timing(spec, pairs[arm.name]) for arm in arms) if spec.enabled else 0.0
    return Forecast(tuple(passes), tuple(reranking), timing)


def _missing(encoder: Encoder, texts: Sequence[str]) -> list[str]:
    return encoder.missing(texts) if isinstance(encoder, CachedEncoder) else list(texts)


def _seconds_each(spec: EncoderSpec, encoder: Encoder, texts: Sequence[str], keep: bool) -> float | None:
    """The seconds of a passage, by an even sample of the texts; None for a model that is not tried."""
    if is_endpoint(spec.name):
        return None
    if spec.name == DRAFT:
        return 0.0  # a look into a table
    if len(texts) <= _SMALL:
        return _SMALL_EACH
    report("estimating the time")
    tried = encoder.encoder if isinstance(encoder, CachedEncoder) and not keep else encoder
    first, *sample = texts[:: len(texts) // _SMALL]
    tried.encode_passages([first])  # loads it
    began, done = time.perf_counter(), 0
    while done < len(sample) and time.perf_counter() - began < _CALIBRATION:
        done += len(tried.encode_passages(sample[done : done + _AT_ONCE]))
    return (time.perf_counter() - began) / done


def _seconds_of_pairs(
    arm: Arm, queries: Sequence[Query], rates: dict[EncoderSpec | CrossEncoderSpec, float | None]
) -> float:
    """The seconds that the cross-encoders of an arm take for a query, 0 where there is none or it is not tried."""
    from ragbench.models.resolve import CrossEncoderSpec

    seconds = 0.0
    for _, stage in arm.pipeline:
        for spec in getattr(stage, "models", ()):
            if not isinstance(spec, CrossEncoderSpec) or not queries:
                continue
            if spec not in rates and is_endpoint(spec.name):
                rates[spec] = None
            elif spec not in rates:
                with suppress(RagbenchError):  # it fails again, and is reported, where its arm runs
                    rates[spec] = _seconds_of_pair(spec, arm, queries[0].text)
            seconds += (rates.get(spec) or 0.0) * int(getattr(stage, "depth", 10))
    return seconds


def _seconds_of_pair(spec: CrossEncoderSpec, arm: Arm, query: str) -> float:
    model = arm.index.cross_encoder(spec)
    plain = model.cross_encoder if isinstance(model, CachedCrossEncoder) else model
    texts = [arm.index.chunks.text(number) for number in range(min(_AT_ONCE, len(arm.index.chunks)))]
    plain.score(query, texts[:1])
    began = time.perf_counter()
    plain.score(query, texts)
    return (time.perf_counter() - began) / max(1, len(texts))


def _timing(spec: LatencySpec, pairs: float) -> float:
    asked = spec.warmup + spec.queries * spec.rounds + 2 * min(40, spec.queries)
    return asked * (_QUERY + pairs) + (_COLD_START if spec.cold_start else 0.0)


def _words(seconds: float | None) -> str:
    return "by its endpoint" if seconds is None else in_words(seconds)


def explain(settings: Sequence[Settings], benchmark: Benchmark, command: str) -> str:
    """The prefix tree of the arms, the artefacts to build and to reuse, the finished arms, and what is timed.

    `command` is the one that would run it: only the same command continues a stopped experiment.
    """
    shared = settings[0]
    builder = ArmBuilder(benchmark, Survey(shared.index_folder), shared.models())
    planned = plan(settings, command, builder)
    arms = [arm for _, arm in planned.arms.values()]
    stopped = store.stopped(shared.results, planned.digest)
    finished = [arm.name for arm in arms if stopped is not None and store.finished(stopped, arm.name, arm_key(arm))]
    remaining = [arm for arm in arms if arm.name not in finished]
    queries = len(planned.topics)
    lines = [explain_tree(tree(remaining), queries)] if remaining else []
    if finished:
        lines.append(f"finished already, read from {stopped}: {', '.join(finished)}")
    lines += _artefacts(arms)
    lines.append(f"embeddings and re-ranking scores computed before are found in {shared.cache_folder}")
    lines.append(forecast(remaining, planned.queries, shared.latency).sentence)
    spec = shared.latency
    if spec.enabled:
        sampled = min(spec.queries, queries)
        lines.append(f"then every arm is timed: {sampled} queries x {spec.rounds}, after {spec.warmup} to warm up")
        lines += ["and starts cold in a fresh process"] if spec.cold_start else []
        lines += [f"and is sent {spec.arrivals} queries at {rate:g} a second" for rate in spec.rates]
    return "\n".join(lines)


def expected(settings: Sequence[Settings], benchmark: Benchmark, command: str) -> Forecast:
    """How long a run of the settings will take here; the models are tried for some seconds."""
    shared = settings[0]
    builder = ArmBuilder(benchmark, Survey(shared.index_folder), shared.models())
    planned = plan(settings, command, builder)
    return forecast([arm for _, arm in planned.arms.values()], planned.queries, shared.latency)


def _artefacts(arms: Sequence[Arm]) -> list[str]:
    """A line for every artefact: whether it is found or must be built, and which arms read it."""
    readers: dict[tuple[str, str], list[str]] = {}
    missing: dict[tuple[str, str], bool] = {}
    for arm in arms:
        for artefact in arm.index.artefacts(arm.pipeline.needs):
            key = artefact.kind, artefact.fingerprint
            readers.setdefault(key, []).append(arm.name)
            missing[key] = artefact.built
    lines = [f"{len(missing)} artefacts, {sum(missing.values())} to build"]
    for key, names in sorted(readers.items()):
        who = "all arms" if len(names) == len(arms) else ", ".join(names)
        lines.append(f"  {key[0]} {key[1]}: {'to build' if missing[key] else 'found'}, for {who}")
    return lines
