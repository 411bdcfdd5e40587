"""The same bytes of results, whatever the seed of hashes, the number of threads and the order of the topics.

    python -m research.faults.determinism [data=...]     prints a table; exit code 1 where two differ

Without words it measures the small vault of the tests. Every variant has a process, an index and a cache of its own.
"""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from ragbench.results import store
from research.faults.campaign import QUERIES, VAULT, tables

SEEDS, THREADS, ORDERS = ("0", "1", "77"), ("1", "2"), ("forward", "backward")
ARMS = "exp=baseline,recommended"
Variant = tuple[str, str, str]
"""A seed of hashes, a number of threads, an order of topics."""


def variants() -> list[Variant]:
    """All combinations."""
    return list(itertools.product(SEEDS, THREADS, ORDERS))


def measure(variant: Variant, folder: Path, arms: str = ARMS) -> dict[str, bytes]:
    """The tables of a run of both arms in a process of its own, by arm and name."""
    seed, threads, order = variant
    folder.mkdir(parents=True)
    head, *lines = QUERIES.splitlines()
    queries = folder / "queries.csv"
    queries.write_text("\n".join([head, *(lines if order == "forward" else lines[::-1])]) + "\n")
    pools = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS")
    environment = {**os.environ, "PYTHONHASHSEED": seed, **dict.fromkeys(pools, threads)}
    words = ("data=vault", f"data.corpus={VAULT}", f"data.queries={queries}", "split=all")
    places = (f"paths.results={folder / 'results'}", f"paths.cache={folder / 'cache'}")
    off = ("latency.enabled=false", "tracking.enabled=false", "--quiet")
    command = (sys.executable, "-m", "ragbench", "run", "-m", arms, *words, *places, *off)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return tables(store.latest(folder / "results"))


def differences(found: dict[Variant, dict[str, bytes]]) -> Iterator[str]:
    """One line for every table of a variant that is not, byte for byte, that of the first."""
    first, *others = found
    for other in others:
        for name, content in found[first].items():
            if found[other].get(name) != content:
                yield f"{name}: {first} and {other} differ"


def main(words: Sequence[str] = ()) -> int:
    """Measure all variants."""
    with tempfile.TemporaryDirectory() as folder:
        found = {each: measure(each, Path(folder) / "-".join(each)) for each in variants()}
        unlike = list(differences(found))
        print("| variants | tables | differences |", "| ---: | ---: | ---: |", sep="\n")
        print(f"| {len(found)} | {sum(map(len, found.values()))} | {len(unlike)} |", *unlike, sep="\n")
    return int(bool(unlike))


if __name__ == "__main__":
    raise SystemExit(main())
