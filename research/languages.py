"""Search of sites in other languages than English, with the keys of `ragbench init` and with those of English.

    python -m research.languages FOLDER ... [--work results/languages]

Each folder is a site as in `research/mixed_languages.py`; `research/questions.py` makes two of them.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ragbench.base.types import with_interval
from ragbench.evidence.statistics import compare_all
from ragbench.extras.collect.languages import languages, suited_to
from ragbench.workbench import Experiment
from research.mixed_languages import PRIMARY, table

_ARMS = {
    "baseline, English keys": "exp=baseline",
    "recommended, English keys": "exp=recommended",
    "baseline": "exp=baseline {keys}",
    "without ranker": "exp=recommended ranker=off {keys}",
    "recommended": "exp=recommended {keys}",
}
_PAIRS = (
    ("recommended", "baseline"),
    ("recommended", "without ranker"),
    ("recommended", "recommended, English keys"),
)


def keys_of(folder: Path) -> str:
    """The keys that `ragbench init` proposes for a vault, as words of the command line."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(folder.rglob("*.md")))
    keys, _ = suited_to(languages(texts))
    return " ".join(f"{key}={value}" for key, value in keys.items())


def measure(folder: Path, work: Path) -> dict[str, list[float]]:
    """The value of every question by arm, for one site."""
    data = ["data=vault", f"data.corpus={folder / 'vault'}", f"data.queries={folder / 'queries.jsonl'}"]
    data += [f"data.qrels={folder / 'qrels' / 'test.tsv'}", "split=all", f"paths.cache={work / 'cache'}"]
    data += [f"paths.results={work / folder.name}", f"paths.index={work / 'index'}"]
    keys = keys_of(folder / "vault")
    arms = {name: arm.format(keys=keys).split() for name, arm in _ARMS.items()}
    results = Experiment.arms(arms, None, *data, quick=True).run()
    return {name: [float(value) for value in results.values(name, PRIMARY)] for name in _ARMS}


def differences(values: Mapping[str, Sequence[float]]) -> list[str]:
    """Paired differences of arms over the same questions, with intervals that hold together."""
    ours, theirs = (np.array([values[pair[side]] for pair in _PAIRS]) for side in (0, 1))
    compared = compare_all(ours, theirs, seed=0)
    return [with_interval(each.difference, each.ci_low, each.ci_high) for each in compared]


def main(words: list[str] | None = None) -> None:
    """Print the mean of every arm and paired differences, by site and over all; the sites are taken as independent."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--work", type=Path, default=Path("results/languages"))
    options = parser.parse_args(words)
    values = {folder.name: measure(folder, options.work) for folder in options.folders}
    values["all"] = {arm: [value for site in values.values() for value in site[arm]] for arm in _ARMS}
    print(table("site", list(_ARMS), {site: [float(np.mean(of[arm])) for arm in _ARMS] for site, of in values.items()}))
    print(f"\n| difference ({PRIMARY}) | {' | '.join(values)} |\n| --- {'| --- ' * len(values)}|")
    for (arm, base), *row in zip(_PAIRS, *map(differences, values.values()), strict=True):
        print(f"| {arm} - {base} | {' | '.join(row)} |")


if __name__ == "__main__":
    main()
