"""nDCG@10 of presets on judged collections, by site and pooled, with what `recommended` gains over each.

    python tests/bench/questions.py FILE
    python tests/bench/questions.py FILE baseline strong_hybrid 'strong_hybrid fuse.method=rrf' paths.cache=FOLDER

FILE lists collections, as for `ragbench fit order --collections`. Words that begin with `KEY=` are overrides of all
arms. Collections of the kind `questions` are measured; the others only take part in learning. `recommended` is measured
with an order that was learned without the site, since the shipped one has seen these questions. Intervals are of sites,
resampled whole.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ragbench.base import console
from ragbench.config import composition
from ragbench.evidence.areas import reach
from ragbench.fit import order
from ragbench.fit.order import Collection, Part

ARMS = ("lexical_only", "dense_only", "baseline", "plain_hybrid", "strong_hybrid", "context_grid")
OWN, KIND, DRAWS = "recommended", "questions", 10_000


def parts_of(arm: str, collections: Sequence[Collection], shared: Sequence[str]) -> list[Part]:
    """What the first stages of an arm answer to every collection."""
    words = [f"exp={arm.split()[0]}", "rank=off", *arm.split()[1:], *shared]
    return [order.part(each, composition.compose([*words, *each.words])) for each in collections]


def difference(gains: np.ndarray, sites: np.ndarray) -> str:
    """The mean gain, with its interval over sites, and on how many sites it is above zero."""
    counts = np.bincount(sites).astype(float)
    sums = np.bincount(sites, gains)
    half = float(reach(sums[None], counts[None], order.SPEC.seed, DRAWS, 0.95)[0])
    mean = gains.mean()
    return f"{mean:+.3f} [{mean - half:+.3f}, {mean + half:+.3f}], up on {(sums > 0).sum()} of {len(counts)}"


def main() -> None:
    given = sys.argv[1:]
    if not given or given[0].startswith("-"):
        sys.exit(__doc__)
    collections = order.read(Path(given[0]))
    shared = [word for word in given[1:] if "=" in word.split()[0]]
    arms = [word for word in given[1:] if word not in shared] or list(ARMS)
    asked = [each for each in collections if each.kind == KIND]
    values = {}
    for arm in arms:
        parts = parts_of(arm, asked, shared)
        values[arm] = [dict(zip(part.sample.qids, part.sample.fused, strict=True)) for part in parts]
        console.say(f"{arm}: {np.mean([v for site in values[arm] for v in site.values()]):.4f}")
    learned = order.learn(parts_of(OWN, collections, shared))
    for name, found in ((f"{OWN} rank=off", [part.sample.fused for part in learned.parts]), (OWN, learned.held_out)):
        values[name] = [
            dict(zip(part.sample.qids, scores, strict=True))
            for part, scores in zip(learned.parts, found, strict=True)
            if part.collection.kind == KIND
        ]
    qids = [sorted(site) for site in values[OWN]]
    table = {arm: [np.array([site.get(q, 0.0) for q in ids]) for site, ids in zip(found, qids, strict=True)]
             for arm, found in values.items()}  # fmt: skip
    sites = np.repeat(np.arange(len(qids)), [len(ids) for ids in qids])
    print(f"| questions about | topics | {' | '.join(f'`{arm}`' for arm in table)} |")
    print("|---|" + "---:|" * (1 + len(table)))
    for number, each in enumerate(asked):
        print(
            f"| {each.name} | {len(qids[number])} | {' | '.join(f'{v[number].mean():.3f}' for v in table.values())} |"
        )
    flat = {arm: np.concatenate(found) for arm, found in table.items()}
    print(f"| all {len(asked)} sites | {len(sites)} | {' | '.join(f'{v.mean():.3f}' for v in flat.values())} |")
    print("\n| against | `recommended rank=off` gains | `recommended` gains |\n|---|---|---|")
    for arm in [*arms, f"{OWN} rank=off"]:
        gains = [difference(flat[name] - flat[arm], sites) for name in (f"{OWN} rank=off", OWN)]
        print(f"| `{arm}` | {gains[0] if arm in arms else ''} | {gains[1]} |")


if __name__ == "__main__":
    main()
