"""How long a run embeds: the chunks whose vectors are in no cache, times the measured time of a chunk."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ragbench.base.errors import RagbenchError
from ragbench.base.progress import in_words, report
from ragbench.experiment.plan import Plan
from ragbench.models.cache import CachedEncoder
from ragbench.models.functions import is_endpoint

if TYPE_CHECKING:
    from ragbench.models import Encoder
    from ragbench.models.resolve import EncoderSpec

_SAMPLE = 16
"""Chunks that are embedded to measure the time of one."""


@dataclass(frozen=True)
class Estimate:
    """The number of `chunks` to embed, and the `seconds` that they take."""

    chunks: int
    seconds: float

    @property
    def sentence(self) -> str:
        """Both in words, such as `2,044 chunks to embed, about 4 min`."""
        return f"{self.chunks:,} chunks to embed, about {in_words(self.seconds)}"


def estimate(plan: Plan) -> Estimate:
    """Estimate how long the arms embed; chunk tables are built, and the vectors of a sample go into the cache.

    A model behind an endpoint is excluded, because each call may cost money.
    """
    new_by_model: dict[str, set[str]] = {}
    seconds_by_model: dict[str, float] = {}
    for _, encoder, missing in missing_passages(plan):
        if encoder.passage_digest not in seconds_by_model:
            seconds_by_model[encoder.passage_digest] = 0.0
            with suppress(RagbenchError):  # a model that fails is reported where its arm runs
                seconds_by_model[encoder.passage_digest] = _seconds_of_chunk(encoder, missing)
        new_by_model.setdefault(encoder.passage_digest, set()).update(missing)
    chunks = {model: len(texts) for model, texts in new_by_model.items()}
    return Estimate(sum(chunks.values()), sum(n * seconds_by_model.get(model, 0.0) for model, n in chunks.items()))


def missing_passages(plan: Plan) -> Iterator[tuple[EncoderSpec, Encoder, list[str]]]:
    """By vectors that the arms lack: the specification of the encoder, the encoder, and the texts in no cache.

    Chunk tables are built; vectors of models behind endpoints are excluded.
    """
    for arm in plan.arms.values():
        for need in sorted(arm.pipeline.needs):
            kind, _, source = need.partition(":")
            if kind != "dense" or arm.index.store.has("dense", arm.index.fingerprint(need)):
                continue
            vectors = arm.index.spec.vectors(source)
            if is_endpoint(vectors.encoder.name):
                continue
            encoder = arm.index.part(f"encoder:{source}".rstrip(":"))
            texts = list(dict.fromkeys(vectors.passage.passages(arm.index.chunks)))
            missing = encoder.missing(texts) if isinstance(encoder, CachedEncoder) else texts
            if missing:
                yield vectors.encoder, encoder, missing


def _seconds_of_chunk(encoder: Encoder, texts: Sequence[str]) -> float:
    report("estimating the time")
    first, *others = random.Random(0).sample(texts, min(len(texts), _SAMPLE + 1))
    encoder.encode_passages([first])  # loads the model
    began = time.perf_counter()
    encoder.encode_passages(others)
    return (time.perf_counter() - began) / max(1, len(others))
