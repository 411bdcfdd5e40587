"""Do the predictions of the atlas hold, and does choosing by them lose less than choosing by few topics?

    python -m tests.bench.atlas_validation                                  coverage, from the tables that are shipped
    python -m tests.bench.atlas_validation DIR                              and from those of `tools.atlas measure`
    python -m tests.bench.atlas_validation COLLECTIONS.yaml paths.results=DIR     and regret, from the runs behind them

Coverage: each collection is excluded in turn, and the others predict its effect; the observed one has its own sampling
error, which widens the interval. Regret: n topics of the collection that was excluded are what a person has. A search
is chosen by these topics alone, by the other collections alone, and by both (*expected*); what is lost is nDCG@10 on
the topics that were not drawn, against the best search there. Sizes that leave no topics are not in the table.
Printed as markdown, for docs/research/methods.md.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from ragbench.base import minimums
from ragbench.base.console import markdown
from ragbench.extras.atlas import changes, meta
from ragbench.extras.atlas.changes import BASE
from ragbench.extras.atlas.tables import Atlas
from tests.bench.atlas_transfer import tables

SIZES = (10, 20, 50, 100)
DRAWS, SEED = 400, 13
_LEAST = 5  # collections that predict


def coverage(atlas: Atlas, questions: str | None = None) -> pd.DataFrame:
    """How often the interval of .95 from the other collections holds the effect that was excluded, by change."""
    rows = []
    for change in atlas.changes():
        found = atlas.rows(change, questions=questions)
        if len(found) <= _LEAST or not found["effect"].any():
            continue
        effects, topics = found["effect"].to_numpy(), found["topics"].to_numpy()
        errors = meta.steadied(found["error"].to_numpy(), topics)
        held = [_holds(effects, errors, left) for left in range(len(found))]
        rows.append({"change": change, "collections": len(found), "held": int(sum(held))})
    frame = pd.DataFrame(rows, columns=["change", "collections", "held"])
    total = {"change": "all", "collections": int(frame["collections"].sum()), "held": int(frame["held"].sum())}
    frame = pd.concat([frame, pd.DataFrame([total])], ignore_index=True)
    return frame.assign(share=frame["held"] / frame["collections"])


def carried(atlas: Atlas) -> pd.DataFrame:
    """How often the interval of .95 from collections with real user questions covers the effect on the others."""
    held: dict[str, list[bool]] = {}
    for change in atlas.changes():
        found = atlas.rows(change)
        people = (found["questions"] == "people").to_numpy()
        if people.sum() < minimums.COLLECTIONS or people.all() or not found["effect"].any():
            continue
        errors = meta.steadied(found["error"].to_numpy(), found["topics"].to_numpy())
        known = (found["effect"].to_numpy()[people], errors[people])
        for place in (~people).nonzero()[0]:
            effects = np.append(known[0], found["effect"].iloc[place])
            held.setdefault(str(found["collection"].iloc[place]), []).append(
                _holds(effects, np.append(known[1], errors[place]), len(known[0]))
            )
    rows = [{"collection": name, "changes": len(each), "held": sum(each)} for name, each in held.items()]
    rows.append({"collection": "all", **{key: sum(int(row[key]) for row in rows) for key in ("changes", "held")}})
    return pd.DataFrame(rows).assign(share=lambda frame: frame["held"] / frame["changes"])


def _holds(effects: np.ndarray, errors: np.ndarray, left: int) -> bool:
    others = np.arange(len(effects)) != left
    known = meta.pool(effects[others], errors[others])
    wide = np.hypot(stats.t.ppf(0.975, known.collections - 1) * known.sd, stats.norm.ppf(0.975) * errors[left])
    return bool(abs(effects[left] - known.effect) <= wide)


def regret(values: Mapping[str, pd.DataFrame], choices: list[str]) -> pd.DataFrame:
    """nDCG@10 lost by each way to choose, a row for every number of topics; collections weigh the same."""
    generator = np.random.default_rng(SEED)
    names = [name for name, frame in values.items() if set(choices) <= set(frame.columns)]
    gains = {name: values[name][choices].sub(values[name][BASE], axis=0).to_numpy() for name in names}
    rows = []
    for size in SIZES:
        lost: dict[str, list[float]] = {"own topics": [], "atlas": [], "expected": []}
        used = [name for name in names if len(gains[name]) >= size + _LEAST]
        for name in used:
            known, typical = _priors({other: each for other, each in gains.items() if other != name})
            mine = gains[name]
            by_atlas = int(np.argmax([each.effect for each in known]))
            for _ in range(DRAWS):
                order = generator.permutation(len(mine))
                own, truth = mine[order[:size]], mine[order[size:]].mean(axis=0)
                expected = [
                    meta.expect(known[place], own[:, place].tolist(), typical[place]).effect
                    for place in range(len(choices))
                ]
                chosen = (int(own.mean(axis=0).argmax()), by_atlas, int(np.argmax(expected)))
                for way, place in zip(lost, chosen, strict=True):
                    lost[way].append(truth.max() - truth[place])
        if not used:
            continue
        rows.append(
            {"topics": size, "collections": len(used), **{way: float(np.mean(each)) for way, each in lost.items()}}
        )
    return pd.DataFrame(rows)


def _priors(others: Mapping[str, np.ndarray]) -> tuple[list[meta.Pooled], list[float]]:
    count = next(iter(others.values())).shape[1]
    topics = np.array([len(each) for each in others.values()])
    known, typical = [], []
    for place in range(count):
        columns = [each[:, place] for each in others.values()]
        errors = np.array([column.std(ddof=1) / len(column) ** 0.5 for column in columns])
        known.append(meta.pool([column.mean() for column in columns], meta.steadied(errors, topics)))
        typical.append(float((topics @ (errors**2 * topics) / topics.sum()) ** 0.5))
    return known, typical


def _values(listed: Path, words: list[str]) -> dict[str, pd.DataFrame]:
    from ragbench.config import composition
    from ragbench.config.benchmark import load
    from ragbench.extras.atlas import ingest
    from tools import atlas_measure

    found = {}
    for each in atlas_measure.collections(listed):
        (settings,) = composition.arms({BASE: ()}, [*each.words, "split=all", *words])
        values = ingest.values_of(atlas_measure.finished(settings, load(settings.config)))
        if BASE in values and len(values.columns) > 1:
            found[each.name] = values
    return found


def main(words: list[str]) -> None:
    """Print the tables."""
    paths = [Path(word) for word in words if "=" not in word]
    atlas = tables([path for path in paths if path.is_dir()])
    print(markdown(coverage(atlas), {"share": ".3f"}))
    print(f"\n{markdown(coverage(atlas, 'people').tail(1), {'share': '.3f'})}")
    print(f"\n{markdown(carried(atlas), {'share': '.3f'})}")
    if listed := [path for path in paths if path.is_file()]:
        values = _values(listed[0], [word for word in words if "=" in word])
        facts = atlas.collections.set_index("collection")
        people = {name: frame for name, frame in values.items() if facts.at[name, "questions"] == "people"}
        unseen = {name: frame for name, frame in values.items() if not facts.at[name, "learned"]}
        # What brings the learned order is no choice where it was learned from some of the collections.
        for said, chosen, order in (
            ("all collections", values, False),
            ("real user questions", people, False),
            ("collections that the order was not learned from", unseen, True),
        ):
            if not chosen:
                continue
            counts = pd.Series([name for frame in chosen.values() for name in frame.columns]).value_counts()
            usual = set(counts.index[counts >= _MOST * len(chosen)])
            choices = [name for name in changes.changes() if name in usual and (order or not changes.has_ranker(name))]
            table = markdown(regret(chosen, choices), dict.fromkeys(_WAYS, ".4f"))
            print(f"\n{said}: {len(choices)} searches to choose from\n\n{table}")


_WAYS = ("own topics", "atlas", "expected")
_MOST = 0.9  # of the collections have what can be chosen; the others are left out

if __name__ == "__main__":
    main(sys.argv[1:])
