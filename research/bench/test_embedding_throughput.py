"""Embedding throughput against a bare onnxruntime loop over the same texts, both measured in one run.

python -m pytest research/bench/test_embedding_throughput.py --benchmark-only -s
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import numpy as np
import pytest

from ragbench.models import bundled
from ragbench.models.resolve import EncoderSpec, load_encoder

N_TEXTS, N_CHARACTERS, ROUNDS = 60, 600, 7


@pytest.fixture(scope="module")
def texts() -> list[str]:
    """Passages of about 130 tokens."""
    files = sorted((Path(__file__).parents[2] / "tests" / "data" / "vault").rglob("*.md"))
    prose = " ".join(" ".join(file.read_text(encoding="utf-8").split()) for file in files)
    step = max(1, (len(prose) - N_CHARACTERS) // N_TEXTS)
    return [prose[number * step : number * step + N_CHARACTERS] for number in range(N_TEXTS)]


def test_at_least_as_fast_as_a_bare_loop(benchmark, texts: list[str]) -> None:
    import onnxruntime
    from tokenizers import Tokenizer

    model = bundled.find("bge-small-en-v1.5")
    folder = model.locate() if model else None
    assert folder is not None
    encoder = load_encoder(EncoderSpec())
    tokenizer = Tokenizer.from_file(str(folder.root / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.enable_truncation(512)
    # As it comes: onnxruntime spreads each text over all processors.
    session = onnxruntime.InferenceSession(str(folder.graph), providers=["CPUExecutionProvider"])

    def bare() -> np.ndarray:
        vectors = []
        for text in texts:
            encoding = tokenizer.encode(text)
            feed = {
                "input_ids": np.array([encoding.ids]),
                "attention_mask": np.array([encoding.attention_mask]),
                "token_type_ids": np.array([encoding.type_ids]),
            }
            vector = session.run(None, feed)[0][0, 0]
            vectors.append(vector / np.linalg.norm(vector))
        return np.stack(vectors)

    np.testing.assert_allclose(encoder.encode_passages(texts), bare(), atol=1e-5)
    seconds: dict[str, list[float]] = {"bare": [], "ours": []}

    def timed(name: str, work) -> None:
        start = time.perf_counter()
        work()
        seconds[name].append(time.perf_counter() - start)

    # The bare loop runs as the preparation of every round: what else the machine does then touches both alike.
    benchmark.pedantic(
        lambda: timed("ours", lambda: encoder.encode_passages(texts)),
        setup=lambda: timed("bare", bare),
        rounds=ROUNDS,
        warmup_rounds=1,
    )
    ratio = statistics.median(b / o for b, o in zip(seconds["bare"], seconds["ours"], strict=True))
    per_second = {name: len(texts) / statistics.median(times) for name, times in seconds.items()}
    benchmark.extra_info.update(ratio=ratio, **per_second)
    print(
        f"\nencode_passages {per_second['ours']:.1f} texts/s, bare onnxruntime loop {per_second['bare']:.1f} texts/s, "
        f"ratio {ratio:.2f} (at least 0.9 wanted)"
    )
    assert ratio >= 0.9
