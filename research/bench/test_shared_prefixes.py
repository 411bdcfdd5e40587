"""An ablation over the thirteen proposals against independent runs of its arms: the same measures, in less time.

python -m pytest research/bench/test_shared_prefixes.py --benchmark-only -s

Both sides do what a person would do for the same tables: `ragbench ablate` once, or `ragbench run` for every arm, on
the test topics of the built-in benchmark, quality alone. Artefacts and the caches of embeddings and re-ranking scores
are warm for both, and the same. What is saved is starting, loading and opening thirteen times, and the stages that arms
share. The second row is the stages alone, in one process, where nothing is started: what arms do not have in common has
to be computed on either side, and bounds what sharing can save there. With more topics it weighs more, so version 2,
which has three times as many test topics, gains less than version 1.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pandas as pd
import pytest

from ragbench.benchmark.load import load
from ragbench.config import composition
from ragbench.config.settings import ArmBuilder
from ragbench.experiment import ablate
from ragbench.results import measurements, store
from ragbench.results.measurements import Measurements
from ragbench.search.engine.pipeline import execute, prefix_keys

FASTER = {"builtin_v1": 5.0, "builtin_v2": 3.0}
WARM_SECONDS = 60.0
DESIGNS = {"leave_one_out": "+exp=all", "add_one": "+exp=baseline"}
FACTORS = f"factors=[{','.join(f'p{n}' for n in range(1, 14))}]"
QUALITY = ("latency.enabled=false", "tracking.enabled=false", "split=test")


def command(*words: str) -> Measurements:
    """Run ragbench; the results of the folder that it made."""
    done = subprocess.run([sys.executable, "-m", "ragbench", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    root = next(word for word in words if word.startswith("paths.results=")).partition("=")[2]
    return measurements.load(store.latest(Path(root)))


@pytest.mark.parametrize("data", FASTER)
@pytest.mark.parametrize("design", DESIGNS)
def test_sharing_gives_the_same_measures_in_less_time(benchmark, design: str, data: str, tmp_path: Path) -> None:
    here = composition.compose([])
    places = [f"data={data}", f"paths.index={here.index_folder}", f"paths.cache={here.cache_folder}", *QUALITY]
    asked = [DESIGNS[design], f"design={design}", FACTORS, *places]
    base = composition.compose(asked)
    settings = ablate.plan(base, composition.compose).settings
    arms = ArmBuilder.of(base, load(base.config["data"])).arms(settings)
    queries = [topic.query() for topic in load(base.config["data"]).select("test")]
    prefixes = {key for arm in arms for key in prefix_keys(arm)}
    for _ in execute(arms, queries):
        pass  # warms artefacts and caches for both sides

    started = time.perf_counter()
    together = benchmark.pedantic(
        command, args=("ablate", *asked, "--quiet", f"paths.results={tmp_path / 'together'}"), rounds=1
    )
    shared_seconds = time.perf_counter() - started
    alone_seconds, frames = 0.0, []
    for each in settings:
        started = time.perf_counter()
        found = command("run", *each.overrides, "--quiet", f"paths.results={tmp_path / each.name}")
        alone_seconds += time.perf_counter() - started
        frames.append(found.per_query)
        same = [run.arm_path(each.name) for run in (found, together)]
        for name in ("run.trec", "sections.trec", "per_query.parquet", "diagnosis.parquet"):
            assert (same[0] / name).read_bytes() == (same[1] / name).read_bytes(), (each.name, name)
    pd.testing.assert_frame_equal(pd.concat(frames, ignore_index=True), together.per_query, check_exact=True)

    started = time.perf_counter()
    for _ in execute(arms, queries):
        pass
    shared_stages = time.perf_counter() - started
    started = time.perf_counter()
    for arm in arms:
        arm.pipeline(queries, arm.index)
    alone_stages = time.perf_counter() - started

    runs = f"{len(prefixes)} stage runs instead of {sum(len(arm.pipeline) for arm in arms)}"
    print(f"\n{data}, {design}, {len(arms)} arms, {len(queries)} queries, caches warm: {runs}; seconds")
    print(f"{'':<28}{'alone':>8}{'together':>10}{'times faster':>14}")
    for name, alone, shared in (
        ("commands", alone_seconds, shared_seconds),
        ("stages alone, one process", alone_stages, shared_stages),
    ):
        print(f"{name:<28}{alone:>8.2f}{shared:>10.2f}{alone / shared:>14.1f}")
    benchmark.extra_info.update(commands=alone_seconds / shared_seconds, stages=alone_stages / shared_stages)
    assert alone_seconds / shared_seconds >= FASTER[data]
    assert shared_seconds < WARM_SECONDS
