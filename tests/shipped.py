"""`qrels/v2/vectors.npz`: the vectors of the built-in benchmark (`ragbench.models.bundled_vectors`).

    python -m tests.shipped [key=value ...]     writes it anew: two minutes of two processors

It holds the passages of the presets below, and the queries of the test topics. `cache.shipped=on` computes only what
the present file lacks and keeps its other vectors bit by bit. `paths.cache=FOLDER` continues one that was stopped.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.config.settings import ArmBuilder
from ragbench.models.bundled_vectors import _KEY_BYTES as KEY_BYTES, packed, shipped
from ragbench.models.cache import CachedEncoder
from ragbench.models.store import embedding_key

ARMS = ("baseline", "plain_hybrid", "recommended")


@dataclass(frozen=True)
class Group:
    """Texts that one model embeds in one way."""

    name: str
    digest: str
    texts: Sequence[str]
    embed: Callable[[Sequence[str]], np.ndarray]
    numerics: Set[str] = frozenset()


def groups(overrides: Sequence[str]) -> Iterator[Group]:
    """The groups of the file; what a later one shares with an earlier one is excluded."""
    seen: set[tuple[str, str]] = set()
    settings = composition.arms({name: (f"exp={name}",) for name in ARMS}, ["cache.shipped=off", *overrides])
    benchmark = load(settings[0].config)
    for arm in ArmBuilder.of(settings[0], benchmark).arms(settings):
        encoder, passages = arm.index.encoder, arm.index.spec.passage.passages(arm.index.chunks)
        assert isinstance(encoder, CachedEncoder)
        queries = [topic.text for topic in benchmark.select("test")]
        for kind, digest, texts, embed in (
            ("passages", encoder.passage_digest, passages, encoder.encode_passages),
            ("queries", encoder.digest, queries, encoder.encode_queries),
        ):
            new = [text for text in dict.fromkeys(texts) if (digest, text) not in seen]
            seen.update((digest, text) for text in new)
            if new:
                yield Group(f"{arm.name}, {kind}", digest, new, embed, _numerics(encoder, digest, new))


def _numerics(encoder: CachedEncoder, digest: str, texts: Sequence[str]) -> set[str]:
    """How the CPUs round that compute the vectors of these texts, or that computed those in the present file."""
    kept = encoder.shipped.present(digest, texts) if encoder.shipped else set()
    kinds = set(encoder.shipped.numerics.split(", ")) if encoder.shipped and kept else set()
    return kinds | ({encoder.numerics} if len(kept) < len(texts) else set())


def write(path: Path, all_groups: Sequence[Group]) -> None:
    """The archive: the same bytes for the same vectors."""
    keys = [embedding_key(group.digest, text)[:KEY_BYTES] for group in all_groups for text in group.texts]
    arrays = {f"group-{number}": packed(group.embed(group.texts)) for number, group in enumerate(all_groups)}
    ends = np.cumsum([len(group.texts) for group in all_groups])
    table = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, KEY_BYTES)
    numerics = np.array(", ".join(sorted(set[str]().union(*(group.numerics for group in all_groups)))))
    np.savez_compressed(path, keys=table, ends=ends, numerics=numerics, **arrays)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        all_groups = list(groups([f"paths.results={folder}", *sys.argv[1:]]))
        write(shipped().path, all_groups)
    for group in all_groups:
        print(f"{group.name}: {len(group.texts):,} vectors")
    print(f"{shipped().path}: {shipped().path.stat().st_size / 1e6:.2f} MB")


if __name__ == "__main__":
    main()
