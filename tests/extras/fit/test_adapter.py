"""A map of the vectors of queries: learned where their words stand for words of pages, and only where it is sure."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import ragbench
from ragbench.base import extensions, pinned_text
from ragbench.base.errors import ConfigError, ModelError
from ragbench.benchmark.benchmark import Topic
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.extras.fit import adapted_encoder as adapters
from ragbench.extras.fit import adapter, ranker
from ragbench.extras.fit.adapted_encoder import KEY, AdaptedEncoder, Adapter
from ragbench.extras.fit.adapter import AdapterSpec, Pairs, grow, is_question
from ragbench.models.resolve import EncoderSpec, load_encoder

DIM, WORDS = 48, 12
SPEC = AdapterSpec(epochs=60)


def by_words(texts: list[str]) -> list[np.ndarray]:
    """`ask3` and `say3` have unrelated vectors, though one means the other; any other word has none."""
    found = []
    for text in texts:
        vector = np.full(DIM, 1e-3)
        for word in text.lower().replace("?", " ").split():
            if word[:3] in ("ask", "say") and word[3:].isdigit():
                vector[int(word[3:]) + (WORDS if word.startswith("say") else 0)] += 1.0
        found.append(vector)
    return found


@pytest.fixture(autouse=True)
def encoder() -> None:
    extensions.register("encoder", "by_words", by_words)


def vault(folder: Path, topics: int, how: str = "how do I {}?", meaning: bool = True) -> list[str]:
    """Pages of three words each; a topic has the words that stand for them, or words that stand for nothing."""
    notes, drawn = folder / "notes", np.random.default_rng(3)
    notes.mkdir(parents=True)
    rows = ["text,relevant,split,group"]
    triples = list(combinations(range(WORDS), 3))
    of_pages, of_others = (drawn.permutation(triples)[:topics] for _ in range(2))
    for number, words in enumerate(of_pages):
        (notes / f"p{number}.md").write_text(f"# Page {number}\n\n{' '.join(f'say{word}' for word in words)}\n")
        asked = words if meaning else of_others[number]
        text = how.format(" ".join(f"ask{word}" for word in asked))
        rows.append(f"{text},p{number}.md,{'test' if number % 5 == 0 else 'train'},{number}")
    (folder / "queries.csv").write_text("\n".join(rows) + "\n")
    return [
        *("exp=dense_only", "index.encoder.name=by_words", "latency.enabled=false", "tracking.enabled=false"),
        *("data=vault", f"data.corpus={notes}", f"data.queries={folder / 'queries.csv'}"),
        f"paths.results={folder / 'results'}",
    ]


def made_pairs(n: int = 40) -> Pairs:
    drawn = np.random.default_rng(5)

    def unit(*shape: int) -> np.ndarray:
        values = drawn.standard_normal((*shape, 16))
        return values / np.linalg.norm(values, axis=-1, keepdims=True)

    number = np.arange(n)
    return Pairs("e", number, unit(n), unit(n), number, tuple(frozenset([place]) for place in range(n)))


def test_the_gradients_are_those_of_the_loss() -> None:
    pairs, spec, batch = made_pairs(), AdapterSpec(rank=3), np.arange(8)
    drawn = np.random.default_rng(1)
    down, up = drawn.standard_normal((3, 16)) / 4, drawn.standard_normal((16, 3)) / 4

    def loss(down: np.ndarray, up: np.ndarray) -> float:
        total = 0.0
        for row in batch:
            moved = pairs.query[row] + up @ (down @ pairs.query[row])
            unit = moved / np.linalg.norm(moved)
            scores = spec.temperature * pairs.answer[batch] @ unit
            total += np.log(np.exp(scores).sum()) - scores[row]
        return total / len(batch)

    found = adapter._slopes(pairs, batch, down, up, spec)
    for number, place in ((0, (1, 4)), (0, (2, 9)), (1, (3, 0)), (1, (15, 2))):
        step = [np.zeros_like(down), np.zeros_like(up)]
        step[number][place] = 1e-5
        numeric = (loss(down + step[0], up + step[1]) - loss(down - step[0], up - step[1])) / 2e-5
        assert found[number][place] == pytest.approx(numeric, rel=1e-5)


def test_the_same_numbers_for_every_count_of_threads() -> None:
    pairs, texts = made_pairs(), []
    for threads in (1, 2, 4):
        with threadpool_limits(limits=threads):
            texts.append(grow(pairs, np.arange(30), AdapterSpec()).text)
    assert len(set(texts)) == 1
    assert grow(pairs, np.arange(30), AdapterSpec(seed=14)).text not in texts


def test_an_adapter_is_kept_as_text_and_moves_queries_only() -> None:
    plain = load_encoder(EncoderSpec("by_words"))
    down, up = np.zeros((1, DIM), np.float32), np.zeros((DIM, 1), np.float32)
    down[0, 0], up[5, 0] = 2.0, 1.0
    made = Adapter(plain.digest, down, up)
    again = adapters.read(made.text)
    assert again.text == made.text and (again.down == down).all() and (again.up == up).all()
    moved = load_encoder(EncoderSpec("by_words", adapter=made.text))
    # Worked by hand: ask0 is about e0; e0 + 2 e5, of length sqrt(5).
    (vector,) = moved.encode_queries(["ask0"])
    assert vector[[0, 5]] == pytest.approx([1 / 5**0.5, 2 / 5**0.5], abs=2e-3)
    assert (moved.encode_passages(["ask0"]) == plain.encode_passages(["ask0"])).all()
    assert moved.passage_digest == plain.passage_digest and moved.digest != plain.digest
    assert moved.encode_queries([]).shape == (0, DIM)
    with pytest.raises(ModelError, match="was learned for another model or prefix than by_words"):
        AdaptedEncoder(plain, replace(made, encoder="other"))


@pytest.mark.parametrize("text", ["x", "{}", '{"form": 1, "encoder": "e", "rank": 2, "down": "AAAA", "up": "AAAA"}'])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="which is not an adapter"):
        adapters.read(text)


def test_what_reads_like_a_question() -> None:
    asks = ["Why is it slow", "is there a way", "my build stops", "build fails on start", "pnpm install?"]
    tells = ["functions for dates", "the configuration of menus", "Isolated builds in order"]
    assert [is_question(Topic("q", text)) for text in [*asks, *tells]] == [True] * len(asks) + [False] * len(tells)


@pytest.mark.slow
def test_a_sure_gain_is_kept_used_and_exported(capsys, conf: Path, tmp_path: Path) -> None:
    words = vault(tmp_path / "v", 100)
    assert cli.main(["fit", "adapter", "--epochs", "60", "--write", "mine", "--json", *words]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["learned"] and said["topics"] == said["questions"] == 80
    assert all(each["ci_low"] > 0.1 for each in said["measured"].values())
    assert said["measured"]["test topics, once"]["n"] == 20
    curve = list(said["curve"].values())
    assert curve[0] == pytest.approx(said["measured"]["held-out queries"]["mean_baseline"]) and curve[0] < curve[-1]
    text = next((conf / "adapter").glob("mine-*.txt")).read_text()
    assert said["word"] == f"{KEY}={pinned_text.named('mine', text)}"

    assert cli.main(["run", "-m", f"{KEY}='',{said['word'].partition('=')[2]}", "--json", "--quiet", *words]) == 0
    ran = json.loads(capsys.readouterr().out)
    scores = {row["arm"]: row["nDCG@10"] for row in ran["summary"]}
    arm = max(scores, key=lambda name: scores[name])
    assert scores[arm] > min(scores.values()) + 0.1
    bundle = tmp_path / "bundle"
    assert cli.main(["export", ran["folder"], "--arm", arm, "--out", str(bundle), "--force", "--quiet"]) == 0
    next((conf / "adapter").glob("mine-*.txt")).unlink()
    pinned_text.text_of.cache_clear()
    adapters.read.cache_clear()
    assert cli.main(["verify", str(bundle)]) == 0  # the bundle has the numbers themselves
    with ragbench.load(bundle) as loaded:
        assert loaded.settings.index.encoder.adapter == text
    capsys.readouterr()
    assert cli.main(["run", said["word"], "--quiet", *words]) == 2
    assert "mine.txt cannot be read" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("topics", "how", "meaning", "why"),
    [
        (26, "how do I {}?", False, "20 of the topics read like questions, and at least 25 must show the gain"),
        (60, "how do I {}?", False, "the gain is not certain"),  # labels that teach nothing
        (100, "{}", True, "0 of the topics read like questions"),  # sure, but only of words taken from pages
    ],
)
def test_nothing_is_changed_where_it_is_not_sure(capsys, conf, tmp_path, topics, how, meaning, why) -> None:
    words = vault(tmp_path / "v", topics, how, meaning)
    assert cli.main(["fit", "adapter", "--epochs", "60", "--write", "mine", "--quiet", *words]) == 0
    out = capsys.readouterr().out
    assert "Nothing learned, nothing changed" in out and why in out
    assert not (conf / "adapter").exists()


def test_an_order_never_learns_from_vectors_adapted_on_its_own_topics(conf: Path, tmp_path: Path) -> None:
    settings = composition.compose([*vault(tmp_path / "v", 60), "exp=baseline", "lexical=null"])
    benchmark = load(settings.config)
    arm = ranker.arm(settings, benchmark)
    states = adapter.cross_fitted(settings, benchmark, arm, SPEC)
    topics = adapter.judged(benchmark, "train")
    assert [state.query.qid for state in states] == [topic.qid for topic in topics]
    pairs = Pairs.of(topics, benchmark, arm.index)
    plain = arm.index.encoder
    for held in adapter.folds(topics, SPEC):
        others = grow(pairs, np.setdiff1d(np.arange(len(topics)), held), SPEC)
        for place in held.tolist():
            expected = others(plain.encode_queries([topics[place].text]))[0]
            assert (states[place].rankings["dense"].query_vector == expected).all()
