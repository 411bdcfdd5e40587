"""An index of words made of kept pieces answers as one made at once, and makes only what is new."""

from __future__ import annotations

import shutil
from pathlib import Path

from ragbench.extras.ship import refresh
from ragbench.index.index import Index
from ragbench.index.lexical import LexicalIndex

QUESTIONS = ("how do lamps know when the sun sets", "LNT-301", "wrong passwords", "certificates for controllers")


def test_lexical_pieces_are_made_once_and_answer_the_same(index: Index, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(refresh, "_PIECE_DOCUMENTS", 2)
    kept, made = tmp_path / "kept", []
    build_lexical = refresh.lexical.build_lexical

    def counted_build(*arguments, **options):
        if "number" in options:  # of a piece, not of the whole index
            made.append(options["number"])
        return build_lexical(*arguments, **options)

    monkeypatch.setattr(refresh.lexical, "build_lexical", counted_build)

    def built(name: str) -> int:
        """How many pieces are made by another build."""
        before = len(made)
        folder, spec, source = tmp_path / name / "words", index.spec.lexical, index.artefact("chunks").folder
        refresh.build_from_pieces(folder, spec, source, kept, lambda done: None)
        lexical = LexicalIndex(folder, spec)
        for question in QUESTIONS:
            assert lexical.search(question, 20) == index.lexical.search(question, 20)
        lexical.close()
        return len(made) - before

    count = built("first")
    assert count == -(-index.chunks.n_documents // 2)
    assert built("again") == 0
    (kept / "of a collection before").mkdir()
    shutil.rmtree(next(kept.iterdir()))
    assert built("one is missing") <= 1
    assert len(list(kept.iterdir())) == count
    damaged = max(next(kept.iterdir()).iterdir(), key=lambda path: path.stat().st_size)
    damaged.write_bytes(b"damaged")
    assert built("one is damaged") == count
