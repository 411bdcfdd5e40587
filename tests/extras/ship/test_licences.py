"""Licences of models, as their cards have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.extras.ship.bundle import _card, licence_of
from ragbench.models import bundled


def test_licence_of_every_bundled_model() -> None:
    assert {model.name: licence_of(model.name, model.kind) for model in bundled.BUNDLED} == {
        "bge-small-en-v1.5": "MIT",
        "multilingual-e5-small": "MIT",
        "ms-marco-MiniLM-L-12-v2": "Apache-2.0",
        "all-MiniLM-L6-v2": "Apache-2.0",
    }
    assert licence_of("openai:text-embedding-3-small", "encoder") is None


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("---\nlicense: mit\n---\n# A model\n", "mit"),
        ("---\nlicense: [mit]\n---\n", None),
        ("---\n: : :\n---\n", None),
        ("# A model\n", None),
    ],
)
def test_licence_of_a_model_card(tmp_path: Path, card: str, licence: str | None) -> None:
    (tmp_path / "README.md").write_text(card)
    assert _card(tmp_path / "README.md") == licence
    assert _card(tmp_path / "none.md") is None
