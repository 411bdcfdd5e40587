from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ragbench.base.errors import BenchmarkError
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.evidence.arms import Arm, Arms
from ragbench.evidence.policy import Policy
from ragbench.extras.collect.topics.perturb import KINDS, losses, variant, with_variants

TOPIC = Topic("t1", "How do I rotate the signing key?")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("case", "how do i rotate the signing key?"),
        ("keywords", "rotate signing key"),
        ("quotes", '"How do I rotate the signing key?"'),
    ],
)
def test_what_is_changed_without_chance(kind, text: str) -> None:
    assert variant(TOPIC, kind, 13) == text


def test_small_letters_become_capitals_and_function_words_alone_stay() -> None:
    assert variant(replace(TOPIC, text="log in"), "case", 1) == "LOG IN"
    assert variant(replace(TOPIC, text="what is this?"), "keywords", 1) == "what is this?"


def test_chance_is_seeded_by_topic_and_seed() -> None:
    for kind in ("typos", "word_order", "drop"):
        made = {variant(TOPIC, kind, seed) for seed in range(12)}
        assert len(made) >= 2 and variant(TOPIC, kind, 3) == variant(TOPIC, kind, 3)
    shuffled = variant(TOPIC, "word_order", 3)
    assert sorted(shuffled.split()) == sorted(TOPIC.text.rstrip("?").split())
    for seed in range(30):
        assert abs(len(variant(TOPIC, "typos", seed)) - len(TOPIC.text)) <= 1
        (gone,) = set(TOPIC.text.replace("?", "").split()) - set(variant(TOPIC, "drop", seed).replace("?", "").split())
        assert gone in ("rotate", "signing")


def test_code_has_no_slips() -> None:
    assert variant(replace(TOPIC, text="LNT-301 x_1 ab"), "typos", 1) == "LNT-301 x_1 ab"


def test_variants_have_the_judgments_of_their_topic(benchmark_small: Benchmark) -> None:
    made = with_variants(benchmark_small, ("quotes", "keywords"), 13)
    topics = {topic.qid: topic for topic in made.topics}
    assert "t3~keywords" not in topics  # one word of code does not change
    assert topics["t3~quotes"].text == '"getAuthToken"' and topics["t3~quotes"].split == topics["t3"].split
    assert topics["t3~quotes"].group == topics["t3"].group == "t3"
    assert made.document_qrels["t3~quotes"] == made.document_qrels["t3"]
    assert made.section_qrels["t2~quotes"] == made.section_qrels["t2"]
    with pytest.raises(BenchmarkError, match=r"no topic of .* changes by keywords"):
        with_variants(replace(benchmark_small, topics=(topics["t3"],)), ("keywords",), 13)


def test_losses_are_paired_with_the_topics() -> None:
    policy = Policy.of(composition.compose(["statistics.draws=500"]).config)
    generator = np.random.default_rng(3)
    values = {f"q{n}": float(value) for n, value in enumerate(generator.uniform(0.4, 0.9, 30))}
    values |= {f"{qid}~typos": value - 0.2 for qid, value in values.items()}
    values["q0~case"] = values["q0"]
    arms = Arms({"one": Arm({"document": values})}, policy)
    variants = {kind: {f"q{n}": f"q{n}~{kind}" for n in range(40)} for kind in ("typos", "case", "drop")}
    found = losses(arms, variants).set_index("kind")
    assert found.index.tolist() == ["typos", "case"]
    assert found["n"].tolist() == [30, 1] and found["loss"].tolist() == pytest.approx([-0.2, 0.0])
    assert found.loc["typos", "high"] < 0 < found.loc["typos", "topics"] - found.loc["typos", "variants"]


@pytest.mark.filterwarnings("ignore")
def test_the_command_says_what_each_arm_loses(tmp_path: Path, write_vault, capsys: pytest.CaptureFixture[str]) -> None:
    notes = write_vault(tmp_path / "notes", 20)
    lines = ["text,relevant", *(f'"Which chore is of {p.stem}, please?",{p.name}' for p in sorted(notes.rglob("*.md")))]
    (tmp_path / "queries.csv").write_text("\n".join(lines), encoding="utf-8")
    words = ["data=vault", f"data.corpus={notes}", f"data.queries={tmp_path / 'queries.csv'}", "statistics.draws=200"]
    words += [f"paths.results={tmp_path / 'results'}", "+exp=lexical_only", "--kinds", "quotes,keywords", "--json"]
    assert cli.main(["topics", "perturb", *words]) == 0
    found = json.loads(capsys.readouterr().out)["losses"]
    assert {row["kind"] for row in found} == {"quotes", "keywords"} and found[0]["n"] == 20


def test_unknown_kinds_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["topics", "perturb", "--kinds", "typos,smells"]) == 2
    assert f"--kinds must be some of {', '.join(KINDS)}, got 'smells'" in capsys.readouterr().err
