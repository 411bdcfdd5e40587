"""Hands out models, with or without the caches, and loads each only once."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base.query_cache import QueryCache
from ragbench.models.functions import endpoint
from ragbench.models.resolve import (
    CrossEncoderSpec,
    EncoderSpec,
    is_list_reranker,
    load_cross_encoder,
    load_encoder,
)

if TYPE_CHECKING:
    from ragbench.models import CrossEncoder, Encoder
    from ragbench.models.chat import ChatModel, ChatSpec
    from ragbench.models.store import Store


@dataclass
class Models:
    """Encoders and cross-encoders by specification.

    `cache` is the folder of the embedding and score caches; None works without them. `threads` limits the threads of
    one call (None: all CPUs). `memory` holds what models and indexes of this process keep from earlier queries.
    `shipped`: take vectors that come with ragbench where there is a cache; never without one, so never to measure time.
    `recorded`: what models give, by key, is taken from here if it is there, and else put here.
    """

    cache: Path | None = None
    threads: int | None = None
    shipped: bool = False
    recorded: dict[bytes, bytes] | None = field(default=None, repr=False)
    memory: QueryCache = field(default_factory=QueryCache, repr=False)
    _encoders: dict[EncoderSpec, Encoder] = field(default_factory=dict, repr=False)
    _cross_encoders: dict[CrossEncoderSpec, CrossEncoder] = field(default_factory=dict, repr=False)
    _chats: dict[tuple[ChatSpec, int], ChatModel] = field(default_factory=dict, repr=False)
    _stores: dict[str, Store] = field(default_factory=dict, repr=False)

    def encoder(self, spec: EncoderSpec) -> Encoder:
        """The encoder of a specification."""
        if spec not in self._encoders:
            from ragbench.models.cache import CachedEncoder
            from ragbench.models.store import Recorded

            encoder = load_encoder(spec, self.threads)
            if self.cache is not None:
                from ragbench.models.bundled_vectors import shipped

                store = self._store(self.cache, "embeddings")
                encoder = CachedEncoder(encoder, store, shipped() if self.shipped else None)
            if self.recorded is not None:
                encoder = CachedEncoder(encoder, Recorded(self.recorded))
            self._encoders[spec] = encoder
        return self._encoders[spec]

    def cross_encoder(self, spec: CrossEncoderSpec) -> CrossEncoder:
        """The cross-encoder of a specification."""
        if spec not in self._cross_encoders:
            from ragbench.models.cache import CachedCrossEncoder
            from ragbench.models.store import Recorded

            model = load_cross_encoder(spec, self.threads, self.chat)
            if self.cache is not None and not is_list_reranker(spec):
                model = CachedCrossEncoder(model, self._store(self.cache, "scores"))
            if self.recorded is not None and not is_list_reranker(spec):
                model = CachedCrossEncoder(model, Recorded(self.recorded))
            self._cross_encoders[spec] = model
        return self._cross_encoders[spec]

    def chat(self, spec: ChatSpec, cache_size: int = 0) -> ChatModel:
        """The chat model of a specification; its latest `cache_size` answers stay in memory."""
        from ragbench.models.chat import RememberingChatModel

        if (spec, cache_size) not in self._chats:
            path = self.cache / "answers.sqlite" if self.cache is not None else None
            model: ChatModel = endpoint("text", spec.endpoint)(spec, path)
            self._chats[spec, cache_size] = (
                RememberingChatModel(model, self.memory, cache_size) if cache_size else model
            )
        return self._chats[spec, cache_size]

    def _store(self, folder: Path, table: str) -> Store:
        from ragbench.models.store import Store

        return self._stores.setdefault(table, Store(folder / f"{table}.sqlite", table))

    def recording(self, outputs: dict[bytes, bytes]) -> Models:
        """The same models, which record in `outputs` what they compute on this machine and take from it what it has."""
        return Models(cache=self.cache, threads=self.threads, recorded=outputs)

    def uncached(self, threads: int | None) -> Models:
        """The same models without caches on disk, for measuring time."""
        return Models(cache=None, threads=threads, memory=self.memory)
