"""The methods text takes its numbers from the record and cites what it uses."""

import importlib
import pkgutil
import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

import ragbench.extras.fit.stages
import ragbench.extras.systems.stages
import ragbench.search.stages
from ragbench.extras.atlas import methods as methods_module
from ragbench.extras.atlas.methods import WORKS, methods, stages
from ragbench.results.measurements import Measurements
from ragbench.search.stages.fuse import Fuse


def test_numbers_are_those_of_the_record(ablation: Measurements) -> None:
    text = methods(ablation).text
    record = ablation.record
    for said in (
        f"'{record['benchmark']['name']}' (digest {record['benchmark']['digest'][:12]}) has "
        f"{record['benchmark']['documents']} documents",
        "We ran the 6 queries of the split 'all'",
        "5 of them have a relevant document",
        "We compare 7 configurations. Design: All 3 factors off",
        "after 1 warm-up queries, every configuration answers 2 sampled queries twice",
        "k1 = 0.9 and b = 0.4",
        "by 10,000 sign flips of whole queries",
        "the budget is 50 ms of added p95 latency, or 150 ms if re-ranking is turned on",
        "within 2,000 tokens, are counted by the tokenizer of bge-small-en-v1.5",
        f"numpy {record['environment']['packages']['numpy']}",
    ):
        assert said in text, said


@pytest.mark.parametrize("which", ["ablation", "comparison", "alone"])
def test_every_citation_has_its_work_and_every_work_is_cited(which: str, request: pytest.FixtureRequest) -> None:
    found = methods(request.getfixturevalue(which))
    body = "\n".join(text for _, text in found.paragraphs)
    cited = {int(number) for group in re.findall(r"\[([\d, ]+)\]", body) for number in group.split(",")}
    assert cited == set(range(1, len(found.works) + 1))
    assert "http" not in found.text


def test_one_arm_says_nothing_of_comparisons(alone: Measurements) -> None:
    assert "Statistics" not in [title for title, _ in methods(alone).paragraphs]


def test_stages_are_named_by_class_in_their_order() -> None:
    config = {"order": ["p8.limit", "p6", "cut"], "p8": {"limit": {"_target_": "a.b.LimitPerDocument"}}, "p6": {}}
    assert list(stages({**config, "cut": {"_target_": "a.Cut"}})) == ["LimitPerDocument", "Cut"]


def test_fusions_are_those_of_the_configurations() -> None:
    fuse = {"_target_": "ragbench.search.stages.fuse.Fuse"}
    configs = {name: {"order": ["fuse"], "fuse": {**fuse, "method": name}} for name in ("convex", "dbsf")}
    assert [work for _, work in methods_module._fusions(configs)] == ["convex", ""]
    assert [work for _, work in methods_module._fusions({"a": {"order": ["fuse"], "fuse": fuse}})] == ["rrf"]
    assert set(methods_module._FUSIONS) == set(get_args(get_type_hints(Fuse)["method"]))


def test_sources_are_of_stages_that_exist() -> None:
    names = set()
    for package in (ragbench.search.stages, ragbench.extras.fit.stages, ragbench.extras.systems.stages):
        for module in pkgutil.iter_modules(package.__path__):
            names |= set(vars(importlib.import_module(f"{package.__name__}.{module.name}")))
    assert set(methods_module.OF_STAGE) <= names
    assert set(methods_module.OF_STAGE.values()) <= set(WORKS)


def test_every_name_that_is_cited_is_that_of_a_work() -> None:
    source = Path(methods_module.__file__).with_name("methods.j2").read_text(encoding="utf-8")
    named = set(re.findall(r"cite\('([\w-]+)'\)", source)) | {
        work for _, work in methods_module._FUSIONS.values() if work
    }
    assert len(named) >= 10 and named <= set(WORKS)


def test_a_reference_in_print_and_as_bibtex() -> None:
    assert WORKS["rrf"].text == (
        "G. V. Cormack, C. L. A. Clarke, S. Büttcher: Reciprocal rank fusion outperforms Condorcet and individual rank "
        "learning methods. SIGIR, 2009. doi:10.1145/1571941.1572114"
    )
    assert WORKS["ndcg"].key == "jarvelin2002"
    assert "author       = {Järvelin, Kalervo and Kekäläinen, Jaana}," in WORKS["ndcg"].bibtex


def test_keys_are_unique() -> None:
    works = WORKS.values()
    keys = [work.key for work in works]
    assert len(keys) == len(set(keys)) >= 20
    assert methods_module.bibliography(works).count("@misc{") == len(keys)
