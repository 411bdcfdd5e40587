"""How long a run will take: passages to embed, pairs to re-rank, queries to time, by models tried for some seconds.

Models are timed without the time spent waiting for a CPU, so that the estimate is that of a quiet machine; `pace` is
how many times as long they took just now. Passages are counted in characters, because a sample of them is small.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragbench.base.errors import RagbenchError
from ragbench.base.progress import Step, in_words, report
from ragbench.evaluation.machine import waited_ms
from ragbench.experiment.plan import Plan
from ragbench.models.cache import CachedCrossEncoder, CachedEncoder
from ragbench.models.functions import is_endpoint
from ragbench.search.engine.executor import Arm

if TYPE_CHECKING:
    from ragbench.base.types import Query
    from ragbench.evaluation.latency import LatencySpec
    from ragbench.models import Encoder
    from ragbench.models.resolve import CrossEncoderSpec, EncoderSpec

_CALIBRATION = 1.5

"""Seconds of a quiet machine for which a model is tried."""

_FIRST = 8

"""Passages that show how many can be tried, and pairs that are tried."""

_LONGEST = 2_000

"""Characters of a passage that count: encoders cut longer ones."""

_SMALL, _SMALL_EACH = 64, 0.02

"""Passages for which trying a model is not worth it, and the seconds that one is taken to need."""

_QUERY, _COLD_START, _REST = 0.02, 4.0, 8.0

"""Seconds that a query takes without a cross-encoder, a fresh process, and reading, verdicts and the report."""

_BUSY = 1.3

"""The pace from which the time at the current load is shown, too."""


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
    """What a run has to do, in seconds of this machine without other programs; `pace` times as long at its load."""

    passes: tuple[_Pass, ...]
    reranking: tuple[Step, ...]
    timing: float
    pace: float = 1.0

    @property
    def steps(self) -> list[Step]:
        """The steps of a run at the current load, for its progress."""
        return [replace(step, seconds=step.seconds * self.pace) for step in self._quiet_steps]

    @property
    def seconds(self) -> float:
        """All of it on a quiet machine."""
        return sum(step.seconds for step in self._quiet_steps) + _REST

    @property
    def _quiet_steps(self) -> list[Step]:
        embedding = [Step("embedding", work.arm, work.seconds or 0.0) for work in self.passes]
        return [*embedding, *self.reranking, Step("timing queries", "", self.timing)]

    @property
    def sentence(self) -> str:
        """All in words: `about 3 min on a quiet machine: 1 pass over 2,044 chunks (baseline 2 min)`."""
        number = len(self.passes)
        if self.passes:
            chunks = ", ".join(dict.fromkeys(f"{work.chunks:,}" for work in self.passes))
            times = ", ".join(
                f"{work.arm} {'by its endpoint' if work.seconds is None else in_words(work.seconds)}"
                for work in self.passes
            )
            parts = [f"{number} embedding pass{'es' * (number > 1)} over {chunks} chunks ({times})"]
        else:
            parts = ["all passages are embedded already"]
        if pairs := sum(step.seconds for step in self.reranking):
            parts.append(f"re-ranking at most {in_words(pairs)}")
        if self.timing:
            parts.append(f"timing {in_words(self.timing)}")
        at_current_load = (
            f"; about {in_words(self.seconds * self.pace)} at the current load" if self.pace > _BUSY else ""
        )
        return f"about {in_words(self.seconds)} on a quiet machine: {', '.join(parts)}{at_current_load}"


def forecast(plan: Plan, *, keep: bool = False) -> Forecast:
    """What the arms will take; chunk tables are built. `keep`: what is embedded to try a model goes into the cache."""
    arms, queries, spec = list(plan.arms.values()), plan.queries, plan.latency
    texts_by_model: dict[str, set[str]] = {}
    rates: dict[EncoderSpec | CrossEncoderSpec, _Speed | None] = {}
    passes = []
    for arm in arms:
        chunks, missing, seconds = 0, 0, 0.0
        tried = True
        for name in sorted(need for need in arm.pipeline.needs if need.partition(":")[0] == "dense"):
            source = name.partition(":")[2]
            vectors = arm.index.spec.vectors(source)
            encoder = arm.index.part(f"encoder:{source}".rstrip(":"))
            if arm.index.store.has("dense", arm.index.fingerprint(name)):
                continue
            texts = list(dict.fromkeys(vectors.passage.passages(arm.index.chunks)))
            counted = texts_by_model.setdefault(encoder.passage_digest, set())
            missing_texts = encoder.missing(texts) if isinstance(encoder, CachedEncoder) else texts
            new = [text for text in missing_texts if text not in counted]
            counted.update(new)
            if new and vectors.encoder not in rates:
                with suppress(RagbenchError):  # as below
                    rates[vectors.encoder] = _speed(vectors.encoder, encoder, new, keep)
            rate = rates.get(vectors.encoder, _Speed(0.0))
            tried = tried and rate is not None
            chunks, missing = chunks + arm.index.chunks.n_retrievable, missing + len(new)
            seconds += _characters(new) * (rate.each if rate else 0.0)
        if missing:
            passes.append(_Pass(arm.name, chunks, missing, seconds if tried else None))
    pairs = {arm.name: _seconds_of_pairs(arm, queries, rates) for arm in arms}
    reranking = [
        Step("running stages", arm, seconds * len(queries), even=False) for arm, seconds in pairs.items() if seconds
    ]
    timing = sum(_timing(spec, pairs[arm.name]) for arm in arms) if spec.enabled else 0.0
    pace = max((rate.pace for rate in rates.values() if rate), default=1.0)
    return Forecast(tuple(passes), tuple(reranking), timing, min(pace, _pace_of_last_minute()))


def _pace_of_last_minute() -> float:
    """How many times as long a process takes that shares the CPUs with as many others as the last minute had.

    It bounds what a model needed, because a burst while it was tried for a second does not last for the run.
    """
    if not hasattr(os, "getloadavg"):  # Windows
        return 1.0
    return 1 + os.getloadavg()[0] / (os.cpu_count() or 1)


@dataclass(frozen=True)
class _Speed:
    """Seconds that a model takes for each unit of work on a quiet machine; just now it took `pace` times as long."""

    each: float
    pace: float = 1.0


def _measured(work: Callable[[], object], units: int) -> _Speed:
    """The speed of some work, by the clock without the time that this thread, one of the workers, waited for a CPU."""
    began, waited_before = time.perf_counter(), waited_ms()
    work()
    clock = time.perf_counter() - began
    quiet = max(clock - (waited_ms() - waited_before) / 1000, clock / 50)
    return _Speed(quiet / units, clock / quiet)


def _characters(texts: Sequence[str]) -> int:
    return sum(min(len(text), _LONGEST) for text in texts)


def _speed(spec: EncoderSpec, encoder: Encoder, texts: Sequence[str], keep: bool) -> _Speed | None:
    """The speed for each character of a passage, by a sample of the texts; None for a model that is not tried."""
    if is_endpoint(spec.name):
        return None
    if len(texts) <= _SMALL:
        return _Speed(_SMALL_EACH * len(texts) / max(1, _characters(texts)))
    report("estimating the time")
    tried = encoder.encoder if isinstance(encoder, CachedEncoder) and not keep else encoder
    one, *sample = random.Random(0).sample(list(texts), _SMALL)
    tried.encode_passages([one])  # loads it
    few, others = sample[:_FIRST], sample[_FIRST:]
    speed = _measured(lambda: tried.encode_passages(few), _characters(few))
    more = others[: int(_CALIBRATION * _FIRST / max(speed.each * _characters(few), 1e-9))]
    return _measured(lambda: tried.encode_passages(more), _characters(more)) if len(more) >= _FIRST else speed


def _seconds_of_pairs(
    arm: Arm, queries: Sequence[Query], rates: dict[EncoderSpec | CrossEncoderSpec, _Speed | None]
) -> float:
    """The seconds that the cross-encoders of an arm take for a query, 0 where there is none or it is not tried."""
    from ragbench.models.resolve import CrossEncoderSpec

    seconds = 0.0
    for _, stage in arm.pipeline:
        for spec in getattr(stage, "models", ()):
            if not isinstance(spec, CrossEncoderSpec) or not queries:
                continue
            if spec not in rates:
                with suppress(RagbenchError):  # it fails again, and is reported, where its arm runs
                    rates[spec] = _speed_of_pair(spec, arm, queries[0].text)
            rate = rates.get(spec)
            seconds += (rate.each if rate else 0.0) * int(getattr(stage, "depth", 10))
    return seconds


def _speed_of_pair(spec: CrossEncoderSpec, arm: Arm, query: str) -> _Speed | None:
    """The speed for each pair of a query and a passage; None for a model that is not tried."""
    if is_endpoint(spec.name):
        return None
    model = arm.index.models.cross_encoder(spec)
    plain = model.cross_encoder if isinstance(model, CachedCrossEncoder) else model
    chunks = arm.index.chunks
    texts = [chunks.text(number) for number in range(0, len(chunks), max(1, len(chunks) // _FIRST))][:_FIRST]
    plain.score(query, texts[:1])
    return _measured(lambda: plain.score(query, texts), len(texts))


def _timing(spec: LatencySpec, pairs: float) -> float:
    searches = spec.warmup + spec.queries * spec.rounds + 2 * min(40, spec.queries)
    return searches * (_QUERY + pairs) + (_COLD_START if spec.cold_start else 0.0)
