"""Measure a published benchmark with a published search, and print how far off the published figure is.

    python -m research.reproduce scifact                        fetched by ir_datasets where the network allows
    python -m research.reproduce scifact --folder beir/scifact [--dense]

BM25 is compared with the figure that pyserini ships for its flat index, which must be met within .002. With --dense the
bundled encoder, in 8 bits, is compared with the figure of its model card (.01), and recommended with the baseline. Exit
code 1 if a published figure is missed.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base.types import ConfigError, with_interval

if TYPE_CHECKING:
    from ragbench.workbench import Results

_DATASETS = {
    "scifact": "beir/scifact/test",
    "nfcorpus": "beir/nfcorpus/test",
    "scidocs": "beir/scidocs",
    "fiqa": "beir/fiqa/test",
}
_CARDS = {"scifact": 0.713}
"""nDCG@10 of bge-small-en-v1.5 by its model card."""
_BM25_WITHIN, _DENSE_WITHIN = 0.002, 0.01
_WHOLE = "index.chunking.min_chars=100000 index.chunking.max_chars=1000000"  # a document is one passage
_ARMS = {"bm25": f"exp=lexical_only calibration=off {_WHOLE}"}
_DENSE = {
    "dense": f"exp=dense_only calibration=off index.encoder.instruction=true {_WHOLE}",
    "baseline": "exp=baseline",
    "recommended": "exp=recommended",
}


def main() -> int:
    """Measure, compare, print; 1 where a published figure is missed."""
    from ragbench.workbench import Experiment

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=list(_DATASETS), help="the benchmark")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="the benchmark in BEIR format")
    parser.add_argument("--dense", action="store_true", help="also the encoder, the baseline and recommended")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="such as paths.cache=DIR")
    arguments = parser.parse_args()
    name = arguments.name
    figure = _published(name)  # before anything is measured: it may be missing
    folder = arguments.folder
    data = ["data=beir", f"data.folder={folder}"] if folder else ["data=ir_datasets", f"data.id={_DATASETS[name]}"]
    arms = _ARMS | (_DENSE if arguments.dense else {})
    quiet = ["latency.enabled=false", "tracking.enabled=false"]
    experiment = Experiment.arms(arms, None, *data, "split=test", *quiet, *arguments.overrides)
    rows = list(_rows(name, experiment.run(), figure))
    for row in rows:
        print(_line(row))
    return int(not all(row["within"] for row in rows if row["published"] is not None))


def _rows(name: str, results: Results, bm25: float) -> list[dict[str, Any]]:
    """A row for every arm: measured, published, the greatest difference allowed, and whether it is met."""
    published = {"bm25": (bm25, _BM25_WITHIN), "dense": (_CARDS.get(name), _DENSE_WITHIN)}
    rows = []
    for arm in results.arms:
        values = results.values(arm, "nDCG@10")
        figure, allowed = published.get(arm, (None, None))
        measured = float(values.mean())
        met = figure is None or abs(round(measured, 4) - figure) <= (allowed or 0.0) + 1e-9
        rows.append(
            {"arm": arm, "topics": len(values), "ndcg_at_10": measured, "published": figure, "allowed": allowed}
            | {"within": met}
        )
    if "recommended" in results.arms:
        from ragbench.evidence.statistics import compare

        ours, theirs = (results.values(arm, "nDCG@10") for arm in ("recommended", "baseline"))
        comparison = compare(ours.to_numpy(), theirs.to_numpy(), seed=13)
        rows[-1] |= {"gain": comparison.difference, "low": comparison.ci_low, "high": comparison.ci_high}
    return rows


def _line(row: dict[str, Any]) -> str:
    line = f"{row['arm']}: nDCG@10 {row['ndcg_at_10']:.4f} on {row['topics']} topics"
    if row["published"] is not None:
        word = "met" if row["within"] else "MISSED"
        off = row["ndcg_at_10"] - row["published"]
        line += f"; published {row['published']:g}, {off:+.4f} off, {row['allowed']:g} allowed: {word}"
    if "gain" in row:
        line += f"; on baseline {with_interval(row['gain'], row['low'], row['high'])}"
    return line


def _published(name: str) -> float:
    """nDCG@10 of BM25 on the flat index, from the reproductions that pyserini ships (importing it takes long)."""
    from importlib.util import find_spec

    from ragbench.boundary.yaml import read_yaml_file

    spec = find_spec("pyserini")
    path = Path(str(spec.origin)).parent / "2cr" / "beir.yaml" if spec else Path("pyserini/2cr/beir.yaml")
    if not path.is_file():
        raise ConfigError(f"{path} is missing, which has the figures: run `pip install --no-deps pyserini==1.6.0`")
    for condition in read_yaml_file(path)["conditions"]:
        for dataset in condition["datasets"] if condition["name"] == "bm25-flat" else ():
            if dataset["dataset"] == name:
                return float(dataset["scores"][0]["nDCG@10"])
    raise ConfigError(f"{path} has no figure of BM25 for {name}: install the pinned version of pyserini")


if __name__ == "__main__":
    raise SystemExit(main())
