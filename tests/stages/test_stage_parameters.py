"""Parameters that a stage refuses: the refusal names the stage and the key that holds the value."""

from __future__ import annotations

import dataclasses
import math
import typing
from typing import Any

import pytest

from ragbench.base.options import Refused
from ragbench.extras.systems.stages.adjust import BoostConnected, BoostFolder, KeepDiverse, NormaliseScores
from ragbench.extras.systems.stages.expand_queries import ExpandQueries
from ragbench.extras.systems.stages.guarantee import GuaranteeNotes
from ragbench.extras.systems.stages.lexical_v3 import MergeScores, RankCandidates, RecallBySubstring
from ragbench.extras.systems.stages.librarian import AddNeighbours, AverageScores, RerankByKeywords
from ragbench.search.stages.calibrate import Calibrate, CalibrateByCurve, FilterByConfidence
from ragbench.search.stages.classify import Classify
from ragbench.search.stages.cut import Cut
from ragbench.search.stages.expand import ExpandSynonyms, ExpandTerms, SupposeAnswer
from ragbench.search.stages.filters import FilterDocuments
from ragbench.search.stages.fuse import Fuse, WeighByDecisiveness
from ragbench.search.stages.links import BoostCommunity, FollowLinks
from ragbench.search.stages.recency import BoostRecent
from ragbench.search.stages.redundancy import Diversify, DropNearCopies, DropParaphrases, LimitPerDocument
from ragbench.search.stages.rerank import Rerank
from ragbench.search.stages.retrieve import RetrieveCode, RetrieveDense, RetrieveLexical
from tests.stage_classes import stage_classes

NAN = math.nan
ENDPOINT = {"endpoint": "http://localhost/v1"}
BEFORE_AFTER = {"after": "2026-02-01", "before": "2026-01-01"}
REFUSED: list[tuple[type, str, dict[str, Any]]] = [
    (AddNeighbours, "neighbours", {"neighbours": -1}),
    (AverageScores, "weights.dense", {"weights": {"dense": -1}}),
    (BoostCommunity, "factor", {"factor": 0.9}),
    (BoostCommunity, "seeds", {"seeds": 0}),
    (BoostConnected, "max_candidates", {"max_candidates": 0}),
    (BoostConnected, "max_factor", {"max_factor": 0.5}),
    (BoostFolder, "min_docs", {"min_docs": 0}),
    (BoostFolder, "min_ratio", {"min_ratio": 1.1}),
    (BoostFolder, "max_factor", {"max_factor": 0.9}),
    (BoostRecent, "bias", {"bias": 1.1}),
    (BoostRecent, "tiers[0][0]", {"tiers": ((-1.0, 1.2),)}),
    (BoostRecent, "tiers[0][1]", {"tiers": ((7.0, NAN),)}),
    (BoostRecent, "now", {"now": "yesterday"}),
    (Calibrate, "steepness", {"steepness": 0.0}),
    (Calibrate, "steepness", {"steepness": math.inf}),
    (CalibrateByCurve, "x", {"x": (), "y": ()}),
    (CalibrateByCurve, "x", {"x": (1.0,), "y": (0.1, 0.2)}),
    (CalibrateByCurve, "x", {"x": (1.0, 1.0), "y": (0.1, 0.2)}),
    (CalibrateByCurve, "x[0]", {"x": (NAN,), "y": (0.1,)}),
    (CalibrateByCurve, "y", {"x": (1.0, 2.0), "y": (0.2, 0.1)}),
    (CalibrateByCurve, "y[1]", {"x": (1.0, 2.0), "y": (0.2, 1.1)}),
    (CalibrateByCurve, "y[0]", {"x": (1.0,), "y": (NAN,)}),
    (Classify, "factual", {"factual": -0.1}),
    (Cut, "top_n", {"top_n": 0}),
    (Diversify, "lambda_", {"lambda_": 1.3}),
    (Diversify, "candidates", {"candidates": 0}),
    (Diversify, "by_class.factual", {"by_class": {"factual": -0.1}}),
    (Diversify, "by_class", {"by_class": {"factal": 0.5}}),
    (DropNearCopies, "threshold", {"threshold": 0.0}),
    (DropNearCopies, "threshold", {"threshold": 1.01}),
    (DropParaphrases, "threshold", {"threshold": -1.1}),
    (DropParaphrases, "threshold", {"threshold": 1.1}),
    (ExpandQueries, "max_variants", {"max_variants": 11}),
    (ExpandQueries, "min_term_length", {"min_term_length": 0}),
    (ExpandQueries, "cache_size", {"cache_size": 0}),
    (ExpandQueries, "prompt", {"prompt": "ask"}),
    (ExpandQueries, "model", ENDPOINT),
    (ExpandSynonyms, "max_synonyms", {"max_synonyms": 0}),
    (ExpandSynonyms, "synsets", {"synsets": 9}),
    (ExpandTerms, "top_k", {"top_k": 0}),
    (ExpandTerms, "threshold", {"threshold": -1.5}),
    (FilterByConfidence, "threshold", {"threshold": 1.1}),
    (FilterDocuments, "category", {"category": " "}),
    (FilterDocuments, "author", {"author": ""}),
    (FilterDocuments, "tags", {"tags": ("auth", "#AUTH")}),
    (FilterDocuments, "tags", {"tags": ("#",)}),
    (FilterDocuments, "file_types[0]", {"file_types": ("*.md",)}),
    (FilterDocuments, "modified_after", {"modified_after": "soon"}),
    (FilterDocuments, "modified_after", {"modified_after": "2026-01-01", "modified_before": "2026-01-01"}),
    (FollowLinks, "factor", {"factor": 1.5}),
    (FollowLinks, "hops", {"hops": 0}),
    (FollowLinks, "hops", {"hops": 4}),
    (FollowLinks, "seeds", {"seeds": 0}),
    (FollowLinks, "share", {"share": 1.1}),
    (Fuse, "k", {"k": -1.0}),
    (Fuse, "weights.dense", {"weights": {"dense": -0.5}}),
    (Fuse, "method", {"method": "borda"}),
    (GuaranteeNotes, "limit", {"limit": 0}),
    (GuaranteeNotes, "after", {"after": "soon"}),
    (GuaranteeNotes, "after", BEFORE_AFTER),
    (KeepDiverse, "top_k", {"top_k": 0}),
    (LimitPerDocument, "max_per_doc", {"max_per_doc": -1}),
    (MergeScores, "tag_match_boost", {"tag_match_boost": 0.9}),
    (NormaliseScores, "high", {"low": 0.5, "high": 0.5}),
    (NormaliseScores, "high", {"high": 1.1}),
    (RankCandidates, "depth", {"depth": 0}),
    (RankCandidates, "weights", {"weights": {"colour": 1}}),
    (RankCandidates, "weights.body", {"weights": {"body": -1}}),
    (RecallBySubstring, "limit", {"limit": 9}),
    (RecallBySubstring, "limit", {"limit": 1001}),
    (Rerank, "depth", {"depth": 0}),
    (Rerank, "max_length", {"max_length": 7}),
    (Rerank, "max_length", {"max_length": 513}),
    (Rerank, "model", {"model": " "}),
    (RerankByKeywords, "cap", {"cap": 0}),
    (RerankByKeywords, "min_length", {"min_length": 0}),
    (RerankByKeywords, "weight", {"weight": 1.5}),
    (RerankByKeywords, "threshold", {"threshold": 1.5}),
    (RetrieveCode, "min_match", {"min_match": 1.1}),
    (RetrieveCode, "language", {"language": " "}),
    (RetrieveDense, "depth", {"depth": 0}),
    (RetrieveLexical, "fields.title", {"fields": {"title": -1.0}}),
    (RetrieveLexical, "fields.title", {"fields": {"title": NAN}}),
    (RetrieveLexical, "fields", {"fields": {"title": 0}}),
    (RetrieveLexical, "fields", {"fields": {}}),
    (RetrieveLexical, "fields", {"fields": {"colour": 1}}),
    (RetrieveLexical, "k1", {"k1": math.inf}),
    (RetrieveLexical, "b", {"source": "whole", "b": 1.5}),
    (SupposeAnswer, "prompt", {"prompt": "no place"}),
    (SupposeAnswer, "endpoint", {"endpoint": "ftp://x", "model": "m"}),
    (SupposeAnswer, "model", ENDPOINT),
    (SupposeAnswer, "timeout_s", {**ENDPOINT, "model": "m", "timeout_s": 0.0}),
    (WeighByDecisiveness, "threshold", {"threshold": 0.0}),
    (WeighByDecisiveness, "min_factor", {"min_factor": 1.5}),
]


@pytest.mark.parametrize(("stage", "key", "parameters"), REFUSED)
def test_stage_names_the_refused_key(stage: type, key: str, parameters: dict[str, Any]) -> None:
    with pytest.raises(Refused) as refused:
        stage(**parameters)
    assert refused.value.key == key
    assert str(refused.value).startswith(f"{stage.__name__}.{key} ")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("language", "advice"), [("pyhton", "did you mean python?"), ("qqqqqq", "such as python, json or bash")]
)
def test_unknown_language_of_code_is_refused_with_advice(language: str, advice: str) -> None:
    with pytest.raises(Refused) as refused:
        RetrieveCode(language=language)
    assert refused.value.key == "language" and advice in refused.value.reason


def numbers() -> list[tuple[type, str, float]]:
    """Every parameter that is a number, with what it refuses: no number, and one that is absurdly small."""
    cases = []
    for stage in stage_classes():
        fields, hints = dataclasses.fields(stage), typing.get_type_hints(stage)
        if any(field.default is field.default_factory for field in fields):  # one must be given
            continue
        for field in fields:
            if hints[field.name] is float:
                cases.append((stage, field.name, NAN))
            if hints[field.name] in (float, int) and (stage, field.name) != (Calibrate, "threshold"):
                cases.append((stage, field.name, hints[field.name](-1e9)))
    return cases


@pytest.mark.parametrize(("stage", "name", "value"), numbers())
def test_stage_refuses_absurd_numbers_by_name(stage: type, name: str, value: float) -> None:
    with pytest.raises(Refused) as refused:
        stage(**{name: value})
    assert refused.value.key == name


def test_stages_have_numbers_to_refuse() -> None:
    assert len(numbers()) > 90
