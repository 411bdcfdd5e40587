"""nDCG@10 of presets on judged collections, by site and pooled, with what `recommended` gains over each.

    python tests/bench/questions.py FILE
    python tests/bench/questions.py FILE baseline strong_hybrid 'strong_hybrid fuse.method=rrf' paths.cache=FOLDER

    python tests/bench/questions.py FILE --page docs/research/recommended.md

FILE lists collections, as for `ragbench fit ranker --collections`. Words that begin with `KEY=` are overrides of all
arms. Collections of the kind `questions` are measured; the others only take part in learning. `recommended` is measured
with an order that was learned without the site, since the shipped one has seen these questions. Intervals are of sites,
resampled whole. `--page` also writes the tables between the marks `<!-- opponents -->` and `<!-- end of opponents -->`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ragbench.config import composition
from ragbench.evidence.cluster_bootstrap import reach
from ragbench.extras.fit import ltr_multi
from ragbench.extras.fit.ltr_multi import Collection, Part
from tools import pages

ARMS = ("lexical_only", "dense_only", "baseline", "plain_hybrid", "strong_hybrid", "context_grid")
OWN, KIND, DRAWS, MARK = "recommended", "questions", 10_000, "opponents"
Scores = dict[str, float]


def parts_of(arm: str, collections: Sequence[Collection], shared: Sequence[str]) -> list[Part]:
    """What the first stages of an arm answer to every collection."""
    words = [f"exp={arm.split()[0]}", "ranker=off", *arm.split()[1:], *shared]
    return [ltr_multi.part(each, composition.compose([*words, *each.words])) for each in collections]


def difference(gains: np.ndarray, sites: np.ndarray) -> str:
    """The mean gain, with its interval over sites, and on how many sites it is above zero."""
    counts = np.bincount(sites).astype(float)
    sums = np.bincount(sites, gains)
    half = float(reach(sums[None], counts[None], ltr_multi.SPEC.seed, DRAWS, 0.95)[0])
    mean = gains.mean()
    return f"{mean:+.3f} [{mean - half:+.3f}, {mean + half:+.3f}], up on {(sums > 0).sum()} of {len(counts)}"


def measured(arms: Sequence[str], collections: Sequence[Collection], shared: Sequence[str]) -> dict[str, list[Scores]]:
    """nDCG@10 by topic, for every arm and each site that is asked; `recommended` last, without and with its order."""
    asked = [each for each in collections if each.kind == KIND]
    values = {}
    for arm in arms:
        parts = parts_of(arm, asked, shared)
        values[arm] = [dict(zip(part.sample.qids, part.sample.fused, strict=True)) for part in parts]
        print(f"{arm}: {np.mean([v for site in values[arm] for v in site.values()]):.4f}", file=sys.stderr)
    learned = ltr_multi.learn(parts_of(OWN, collections, shared))
    found = list(zip(learned.parts, learned.held_out, strict=True))
    found = [(part, held_out) for part, held_out in found if part.collection.kind == KIND]
    values[f"{OWN} ranker=off"] = [dict(zip(part.sample.qids, part.sample.fused, strict=True)) for part, _ in found]
    values[OWN] = [dict(zip(part.sample.qids, held_out, strict=True)) for part, held_out in found]
    return values


def tables(sites: Sequence[str], values: Mapping[str, Sequence[Scores]]) -> str:
    """Markdown: every site by every arm, then what `recommended` gains over each; a topic without hits counts 0."""
    qids = [sorted(site) for site in values[OWN]]
    table = {
        arm: [np.array([site.get(qid, 0.0) for qid in ids]) for site, ids in zip(found, qids, strict=True)]
        for arm, found in values.items()
    }
    flat = {arm: np.concatenate(found) for arm, found in table.items()}
    site_of = np.repeat(np.arange(len(qids)), [len(ids) for ids in qids])
    rows = [(name, len(qids[n]), [found[n].mean() for found in table.values()]) for n, name in enumerate(sites)]
    rows.append((f"all {len(sites)} sites", len(site_of), [found.mean() for found in flat.values()]))
    heads = " | ".join(f"`{arm}`" for arm in table)
    said = [f"| questions about | topics | {heads} |", f"|---|{'---:|' * (1 + len(table))}"]
    said += [f"| {name} | {topics} | {' | '.join(f'{mean:.3f}' for mean in means)} |" for name, topics, means in rows]
    own = (f"{OWN} ranker=off", OWN)
    said += ["", f"| against | `{own[0]}` gains | `{own[1]}` gains |", "|---|---|---|"]
    for arm, found in flat.items():
        gains = ["" if arm in own[n:] else difference(flat[mine] - found, site_of) for n, mine in enumerate(own)]
        if any(gains):
            said.append(f"| `{arm}` | {gains[0]} | {gains[1]} |")
    return "\n".join(said)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--page", type=Path)
    given = parser.parse_intermixed_args()
    collections = ltr_multi.read(given.file)
    shared = [word for word in given.words if "=" in word.split()[0]]
    arms = [word for word in given.words if word not in shared] or list(ARMS)
    sites = [each.name for each in collections if each.kind == KIND]
    text = tables(sites, measured(arms, collections, shared))
    print(text)
    if given.page is not None:
        pages.write_between(given.page, MARK, text)


if __name__ == "__main__":
    main()
