"""How long a run embeds: the chunks whose vectors are in no cache, times the measured time of a chunk."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ragbench.base.progress import in_words, report, task_ticks
from ragbench.base.types import FAILURES, RagbenchError
from ragbench.models.cache import CachedEncoder
from ragbench.models.functions import is_endpoint

if TYPE_CHECKING:
    from ragbench.experiment.run import Plan, PlannedArm
    from ragbench.models import Encoder
    from ragbench.models.resolve import EncoderSpec

_SAMPLE = 16
"""Chunks that are embedded to measure the time of one."""
_BATCH = 256
"""Passages whose vectors are in memory at once."""


@dataclass(frozen=True)
class Missing:
    """The `texts` that an encoder, made of `spec`, has no vectors of; each once."""

    spec: EncoderSpec
    encoder: CachedEncoder
    texts: tuple[str, ...]


@dataclass(frozen=True)
class Estimate:
    """The number of `chunks` to embed, and the `seconds` that they take."""

    chunks: int
    seconds: float

    @property
    def sentence(self) -> str:
        """Both in words, such as `2,044 chunks to embed, about 4 min`."""
        return f"{self.chunks:,} chunks to embed, about {in_words(self.seconds)}"


def estimate(missing: Sequence[Missing]) -> Estimate:
    """Estimate how long the missing passages take to embed; the vectors of a sample go into the cache.

    A model that fails counts as 0 seconds: it is reported where its arm runs.
    """
    seconds = 0.0
    for each in missing:
        with suppress(RagbenchError):
            seconds += len(each.texts) * _seconds_of_chunk(each.encoder, each.texts)
    return Estimate(sum(len(each.texts) for each in missing), seconds)


def missing_passages(plan: Plan) -> list[Missing]:
    """The passages of all arms whose vectors are in no cache, by encoder.

    Chunk tables are built. Vectors of models behind endpoints are excluded, because each call may cost money, and so
    are those of an arm that fails: it is reported where it runs.
    """
    found: dict[str, Missing] = {}
    for arm in plan.arms.values():
        with suppress(*FAILURES):
            for spec, encoder, texts in _missing_of(arm):
                earlier = found.get(encoder.passage_digest, Missing(spec, encoder, ()))
                found[encoder.passage_digest] = replace(earlier, texts=tuple(dict.fromkeys((*earlier.texts, *texts))))
    return list(found.values())


def _missing_of(arm: PlannedArm) -> Iterator[tuple[EncoderSpec, CachedEncoder, list[str]]]:
    for need in sorted(arm.pipeline.needs):
        kind, _, source = need.partition(":")
        if kind != "dense" or arm.index.store.has("dense", arm.index.fingerprint(need)):
            continue
        vectors = arm.index.spec.vectors(source)
        if is_endpoint(vectors.encoder.name):
            continue
        encoder = arm.index.part(f"encoder:{source}".rstrip(":"))
        assert isinstance(encoder, CachedEncoder), "a run has caches"
        if missing := encoder.missing(list(dict.fromkeys(vectors.passage.passages(arm.index.chunks)))):
            yield vectors.encoder, encoder, missing


def embed(missing: Sequence[Missing]) -> None:
    """Put the vectors of missing passages into the cache, with one count for all arms; as `estimate` of failures."""
    tick = task_ticks("embedding", sum(len(each.texts) for each in missing)) if missing else None
    for each in missing:
        with suppress(*FAILURES):
            for start in range(0, len(each.texts), _BATCH):
                each.encoder.encode_passages(each.texts[start : start + _BATCH], tick)


def _seconds_of_chunk(encoder: Encoder, texts: Sequence[str]) -> float:
    report("estimating the time")
    first, *others = random.Random(0).sample(texts, min(len(texts), _SAMPLE + 1))
    encoder.encode_passages([first])  # loads the model
    began = time.perf_counter()
    encoder.encode_passages(others)
    return (time.perf_counter() - began) / max(1, len(others))
