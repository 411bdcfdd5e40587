"""Search of sites in other languages than English, with the keys of `ragbench init` and with those of English.

    python -m research.languages FOLDER ... [--work results/languages]

Each folder is a site as in `research/mixed_languages.py`.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ragbench.workbench import Experiment
from research.mixed_languages import PRIMARY, Site, analyzer_of, table

_ARMS = {
    "baseline, English keys": "exp=baseline",
    "recommended, English keys": "exp=recommended",
    "baseline": "exp=baseline {keys}",
    "without ranker": "exp=recommended ranker=off {keys}",
    "recommended": "exp=recommended {keys}",
}


def main(words: list[str] | None = None) -> None:
    """Print the mean of every arm by site."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--work", type=Path, default=Path("results/languages"))
    options = parser.parse_args(words)
    rows = {}
    for folder in options.folders:
        keys = f"index.lexical.analyzer={analyzer_of(Site.of(folder))} index.encoder.name=multilingual"
        data = ["data=vault", f"data.corpus={folder / 'vault'}", f"data.queries={folder / 'queries.jsonl'}"]
        data += [f"data.qrels={folder / 'qrels' / 'test.tsv'}", "split=all", f"paths.cache={options.work / 'cache'}"]
        data += [f"paths.results={options.work / folder.name}", f"paths.index={options.work / 'index'}"]
        arms = {name: arm.format(keys=keys).split() for name, arm in _ARMS.items()}
        results = Experiment.arms(arms, None, *data, quick=True).run()
        rows[folder.name] = [float(results.values(name, PRIMARY).mean()) for name in _ARMS]
    print(table("site", list(_ARMS), rows))


if __name__ == "__main__":
    main()
