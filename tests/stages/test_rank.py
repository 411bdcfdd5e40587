"""A learned order, with a model of two trees written by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from ragbench.base import locations
from ragbench.base.rankings import Ranking
from ragbench.base.types import ConfigError
from ragbench.index.terms import TermIndex, build_terms
from ragbench.search.ranking import features, trees
from ragbench.search.stages.rank import Rank, rows_of
from tests.naming import naming

HEAD = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx=1
objective=lambdarank
feature_names=cover.title links.in

"""
# The title holds over half of the query: +1, else -1; two links or more point to it: another +0.5.
MODEL = (
    HEAD
    + "Tree=0\nnum_leaves=2\nnum_cat=0\nsplit_feature=0\nthreshold=0.5\ndecision_type=2\nleft_child=-1\n"
    + "right_child=-2\nleaf_value=-1 1\nis_linear=0\nshrinkage=1\n\n"
    + "Tree=1\nnum_leaves=2\nnum_cat=0\nsplit_feature=1\nthreshold=1.5\ndecision_type=2\nleft_child=-1\n"
    + "right_child=-2\nleaf_value=0 0.5\nis_linear=0\nshrinkage=1\n\nend of trees\n"
)


@pytest.fixture
def pages(handmade, page, tmp_path: Path):
    made = handmade(
        [
            page("one", ["red lamps", "more red lamps"], links=["key rotation", "lamps"]),
            page("key rotation", ["how to rotate a key"], links=["lamps"]),
            page("lamps", ["rotate the lamp"]),
        ]
    )
    (tmp_path / "terms").mkdir()
    build_terms(tmp_path / "terms", made.chunks, "english")
    made.terms = TermIndex(tmp_path / "terms", made.chunks, "english")
    return made


def test_rank_adds_trees_to_the_fused_score(pages, state) -> None:
    # Fused: one 1, its second chunk .9, key rotation .8, lamps .5; from 0 to 1: 1, .6, 0 by document.
    # Trees: one -1, key rotation +1, lamps -1 +.5. With a prior of 2: one 1, key rotation 2.2, lamps -.5.
    (after,) = Rank(MODEL, prior=2.0)([state("rotate a key", fused=[(0, 1.0), (1, 0.9), (2, 0.8), (3, 0.5)])], pages)
    assert after.fused.chunks.tolist() == [2, 0, 1, 3]
    squashed = [0.5 + 0.5 * value / (1 + abs(value)) for value in (2.2, 1.0, 1.0, -0.5)]
    squashed[2] *= 0.9  # the share of the lead's score that it had
    assert after.fused.scores.tolist() == pytest.approx(squashed)


def test_rank_keeps_hits_below_the_depth_below(pages, state) -> None:
    (after,) = Rank(MODEL, prior=0.0, depth=2)(
        [state("rotate a key", fused=[(3, 1.0), (0, 0.9), (2, 0.8), (1, 0.5)])], pages
    )
    assert after.fused.chunks.tolist() == [3, 0, 2, 1]


@pytest.mark.parametrize("low", [0.0, -0.5])
def test_rank_takes_hits_below_the_depth_without_score(pages, state, low: float) -> None:
    fused = [(3, 1.0), (0, 0.9), (2, max(low, 0.0)), (1, low)]
    (after,) = Rank(MODEL, prior=0.0, depth=2)([state("rotate a key", fused=fused)], pages)
    assert after.fused.chunks.tolist() == [3, 0, 2, 1]
    assert after.fused.scores[2] == after.fused.scores[3] == after.fused.scores[1]


def test_rank_reads_a_source_that_is_not_searched_as_empty(pages, state) -> None:
    """Bundles have trees as text, and requests may ask for words or meaning alone."""
    fused, model = [(0, 1.0), (3, 0.5)], MODEL.replace("cover.title", "dense.norm")
    (without,) = Rank(model)([state("rotate", fused=fused)], pages)
    (empty,) = Rank(model)([state("rotate", fused=fused).with_ranking("dense", Ranking.empty())], pages)
    assert without.fused.chunks.tolist() == empty.fused.chunks.tolist()
    assert without.fused.scores.tolist() == empty.fused.scores.tolist()
    with pytest.raises(ConfigError, check=naming("Rank.model", "charm")):
        Rank(MODEL.replace("cover.title", "charm"))


def test_rank_features_worked_by_hand(pages, state) -> None:
    wanted = features.names(["lexical"])
    one = state("rotate a key", fused=[(2, 1.0), (3, 0.5), (0, 0.25)], lexical=[3, 2])
    candidates, rows = rows_of(one, pages, wanted, 10)
    assert candidates.documents.tolist() == [1, 2, 0]
    value = {name: rows[:, column].tolist() for column, name in enumerate(wanted)}
    assert value["fused.norm"] == pytest.approx([1, 1 / 3, 0])
    assert value["lexical.rank"] == [2, 1, 1000]
    assert value["lexical.norm"] == [0, 1, 0]
    # `a` is a stop word; both other terms stand in the text of `key rotation`, and in its title.
    assert value["cover.body"][0] == pytest.approx(1)
    assert value["cover.title"] == pytest.approx([1, 0, 0])
    assert value["share.title"] == pytest.approx([1, 0, 0])
    assert value["title.exact"] == [1, 0, 0]
    assert 0 < value["cover.body"][1] < 1
    assert value["phrase.body"] == [1, 0, 0]  # `rotate a key`: next to each other without the stop word
    assert value["phrase.run"] == [1, 0.5, 0]
    assert value["near.body"] == [1, 0.5, 0]
    assert value["query.terms"] == [2, 2, 2]
    assert value["links.in"] == [1, 2, 0]
    assert value["document.chunks"] == [1, 1, 2]


def test_rank_reads_features_in_any_order(pages, state) -> None:
    everything = features.names(["lexical"])
    some = ("links.in", "lexical.rank", "cover.title", "fused.score")
    one = state("rotate a key", fused=[(2, 1.0), (3, 0.5), (0, 0.25)], lexical=[3, 2])
    rows = rows_of(one, pages, everything, 10)[1]
    assert rows_of(one, pages, some, 10)[1].T.tolist() == [rows[:, everything.index(name)].tolist() for name in some]


@pytest.mark.parametrize("query", ["", "the", "zebras", "rotate"])
def test_rank_queries_of_few_words_have_all_features(pages, state, query: str) -> None:
    rows = rows_of(state(query, fused=[(2, 1.0), (0, 0.5)], lexical=[]), pages, features.names(["lexical"]), 10)[1]
    assert rows.shape == (2, len(features.names(["lexical"])))
    assert np.isfinite(rows).all()


def test_rank_trees_of_one_leaf_add_a_constant() -> None:
    alone = MODEL.partition("Tree=1")[0].replace("num_leaves=2", "num_leaves=1")
    for name in ("split_feature=0", "threshold=0.5", "decision_type=2", "left_child=-1", "right_child=-2"):
        alone = alone.replace(name, name.partition("=")[0] + "=")
    model = alone.replace("leaf_value=-1 1", "leaf_value=0.25") + "end of trees\n"
    assert trees.parse(model)(np.array([[0.0, 1.0], [9.0, 9.0]])).tolist() == [0.25, 0.25]
    mixed = MODEL.replace("end of trees", model.partition("Tree=0")[2].join(["Tree=2", ""]))
    assert trees.parse(mixed)(np.array([[0.0, 2.0], [1.0, 0.0]])).tolist() == [-0.25, 1.25]


def test_rank_relative_features_worked_by_hand(pages, state) -> None:
    # One links to both others, key rotation to lamps. Fused, from 0 to 1: key rotation 1, lamps 1/3, one 0.
    wanted = ("links.near", "links.votes", "document.share", "links.in.percentile", "fused.score.gap", "links.in")
    one = state("rotate a key", fused=[(2, 1.0), (3, 0.5), (0, 0.25)], lexical=[3, 2])
    candidates, rows = rows_of(one, pages, wanted, 10)
    assert candidates.documents.tolist() == [1, 2, 0]
    value = {name: rows[:, column].tolist() for column, name in enumerate(wanted)}
    assert value["links.near"] == [1, 2, 0]
    assert value["links.votes"] == pytest.approx([0, 1, 0])  # of one, which has 0, and of key rotation, which has 1
    assert value["document.share"] == pytest.approx([0.75, 0.25, 0])
    assert value["links.in"] == [1, 2, 0]
    assert value["links.in.percentile"] == [0.5, 1, 0]
    assert value["fused.score.gap"] == pytest.approx([0, -0.5, -0.75])


def test_rank_counts_links_between_candidates_only(pages, state) -> None:
    one = state("rotate a key", fused=[(3, 1.0), (2, 0.5)])
    candidates, rows = rows_of(one, pages, ("links.near", "links.votes", "links.in"), 10)
    assert candidates.documents.tolist() == [2, 1]
    assert rows.tolist() == [[1, 0, 2], [0, 0, 1]]  # key rotation links to lamps, and its own score is the lowest


def test_rank_gives_equal_values_one_percentile(pages, state) -> None:
    one = state("zebras", fused=[(2, 1.0), (3, 0.5), (0, 0.25)])
    rows = rows_of(one, pages, ("cover.title.percentile", "cover.title.gap"), 10)[1]
    assert rows.tolist() == [[0.5, 0], [0.5, 0], [0.5, 0]]


def test_ranker_has_a_name_and_a_digest(pages, state, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locations, "configuration", lambda: tmp_path)
    trees.text_of.cache_clear()
    trees.file_of("mine").parent.mkdir()
    text = MODEL.replace("cover.title", "dense.norm")
    trees.file_of("mine").write_text(text, encoding="utf-8")
    named = Rank(trees.named("mine", text))
    assert named.name == "mine" and named.trees == text and not Rank(MODEL).name
    assert named.describe() == Rank(text).describe()
    # A source that is not searched has found nothing: dense.norm is 0, and the trees give -1 each, so fusion decides.
    (after,) = named([state("rotate", fused=[(0, 1.0), (3, 0.5)])], pages)
    assert after.fused.chunks.tolist() == [0, 3]
    trees.file_of("mine").write_text(MODEL, encoding="utf-8")
    trees.text_of.cache_clear()
    with pytest.raises(ConfigError, check=naming("mine.txt")):
        Rank(named.model)
    with pytest.raises(ConfigError, check=naming("ranker.model", "other@0123456789ab", "other.txt")):
        Rank("other@0123456789ab")
    trees.text_of.cache_clear()
