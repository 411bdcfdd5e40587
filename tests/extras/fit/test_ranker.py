"""Learning an order, on made features where one of them is the answer."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.extras.fit.ranker import Sample, Spec, learn, values_with, weighted_sum
from ragbench.search.ranking import trees
from ragbench.search.stages.rank import Rank
from tests.naming import naming

QUICK = Spec(rounds=20, smallest=5)


def made(n: int = 40, telling: bool = True, seed: int = 1) -> Sample:
    """Queries with ten candidates in random order, of which the one with the largest feature is relevant."""
    drawn = np.random.default_rng(seed)
    rows = [drawn.random((10, 3)).round(6) for _ in range(n)]
    best = [int(row[:, 1].argmax()) if telling else int(drawn.integers(10)) for row in rows]
    return Sample(
        ("fused.norm", "cover.title", "links.in"),
        tuple(f"q{number}" for number in range(n)),
        tuple(f"g{number // 2}" for number in range(n)),
        tuple("ab"[number % 2] for number in range(n)),
        tuple(rows),
        tuple(np.linspace(1, 0, 10) for _ in range(n)),
        tuple((np.arange(10) == rank).astype(np.int64) for rank in best),
        ((),) * n,
        ((1,),) * n,
    )


@pytest.fixture(scope="module")
def learned():
    return learn(made(), QUICK)


def test_ranker_learns_the_telling_feature(learned) -> None:
    judged = made()
    assert learned.held_out.mean() > learned.fused.mean()
    assert learned.held_out.mean() > judged.fused.mean() + 0.2
    assert learned.by_folder is not None
    assert next(iter(learned.importance)) == "cover.title"
    unseen = made(seed=2)
    assert (
        values_with(unseen, Rank(learned.model, prior=QUICK.prior, depth=QUICK.depth)).mean()
        > unseen.fused.mean() + 0.2
    )


@pytest.mark.slow
def test_ranker_same_bytes_again_on_any_thread_count(learned, tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1]); import test_ranker as t\n"
        "sys.stdout.write(t.learn(t.made(), t.QUICK).model)"
    )
    for threads in ("1", "4"):
        environment = {"PATH": "", "PYTHONHASHSEED": threads, "OMP_NUM_THREADS": threads}
        paths = {"PYTHONPATH": str(Path(__file__).parents[3])}
        done = subprocess.run(
            [sys.executable, "-c", code, str(Path(__file__).parent)],
            env=environment | paths, capture_output=True, text=True, check=True,
        )  # fmt: skip
        assert done.stdout == learned.model


def test_ranker_nothing_to_learn_does_not_pay() -> None:
    learned = learn(made(24, telling=False), QUICK)
    assert learned.held_out.mean() <= learned.fused.mean()


def test_ranker_too_few_topics_are_refused() -> None:
    with pytest.raises(BenchmarkError, check=naming(20, "12 of 6")):
        learn(made(12), QUICK)
    with pytest.raises(ConfigError, check=naming("Spec.rate", "got 0")):
        Spec(rate=0)


def test_ranker_value_of_an_order_counts_what_was_not_found() -> None:
    judged = replace(made(1), ideals=((1, 1),), rest=((0, 1),))
    order = -np.arange(10.0)
    rank = int(np.argmax(judged.grades[0])) + 1
    gained = 1 / np.log2(rank + 1)  # the other relevant document stands twelfth
    assert judged.value(0, order) == pytest.approx(gained / (1 + 1 / np.log2(3)))


def test_trees_are_those_of_the_library(learned) -> None:
    import lightgbm

    rows = np.random.default_rng(3).random((200, 3))
    library = lightgbm.Booster(model_str=learned.model)
    assert trees.parse(learned.model)(rows) == pytest.approx(library.predict(rows), abs=1e-12)


@pytest.mark.parametrize(
    ("change", "to"),
    [("tree\n", ""), ("leaf_value=", "leaf_value=x"), ("decision_type=2", "decision_type=1"), ("left_child=", "l=")],
)
def test_ranker_other_texts_are_refused(learned, change: str, to: str) -> None:
    text = "" if change == "tree\n" else learned.model.replace(change, to)
    assert text != learned.model
    with pytest.raises(ConfigError, match=r"is not a LightGBM model.*let `ragbench fit ranker` write it"):
        trees.parse(text)


def model_of(names: str, *trees: tuple[str, float]) -> str:
    """The text of a model whose trees have two leaves each: tree i asks whether feature i is above a threshold."""
    head = "tree\nversion=v4\nnum_class=1\nnum_tree_per_iteration=1\nlabel_index=0\nmax_feature_idx=1\n"
    head += f"objective=lambdarank\nfeature_names={names}\nfeature_infos=[0:1] [0:9]\n\n"
    blocks = [
        f"Tree={i}\nnum_leaves=2\nnum_cat=0\nsplit_feature={i}\nthreshold={threshold}\ndecision_type=2\n"
        f"left_child=-1\nright_child=-2\nleaf_value={leaves}\nis_linear=0\nshrinkage=1\n\n"
        for i, (leaves, threshold) in enumerate(trees)
    ]
    return head + "".join(blocks) + "end of trees\n"


def test_ranker_joined_models_give_the_weighted_sum() -> None:
    import lightgbm

    first = model_of("cover.title links.in", ("-1 1", 0.5), ("0 0.5", 1.5))
    second = model_of("links.in body.share", ("-3 5", 0.5), ("0 0.5", 1.5))
    both = weighted_sum([(first, 1.0), (second, 0.5)])
    grown = trees.parse(both)
    assert grown.features == ("cover.title", "links.in", "body.share")
    rows = np.array([[0.9, 2.0, 0.0], [0.1, 0.0, 2.0]])
    # First: 1 + .5 and -1 + 0. Second, of links.in and body.share: 5 + 0 and -3 + .5, each halved.
    assert grown(rows) == pytest.approx([1.5 + 2.5, -1 - 1.25])
    assert lightgbm.Booster(model_str=both).predict(rows) == pytest.approx(grown(rows))
