"""The `config.json` of Librarian, seed 004."""

from __future__ import annotations

import json

import pytest

from ragbench.base import locations
from ragbench.extras.systems.librarian_export import render, replayed
from tests.tables import rows

# Every key of "Updated config.json".
KEYS = {
    "docs": ["root_path", "file_extensions", "max_file_size_mb", "watch_for_changes", "index_on_startup"],
    "search": [
        "max_results",
        "snippet_length",
        "context_lines",
        "min_keyword_length",
        "mode",
        "rerank_candidates",
        "rerank_keyword_threshold",
    ],
    "embeddings": ["enabled", "model", "persist_directory", "semantic_weight"],
    "chunking": ["enabled", "chunk_size", "chunk_overlap", "strategy"],
    "metadata": ["extract_tags", "infer_doc_type", "track_modifications"],
    "mcp": ["transport", "host", "port", "endpoint"],
}
PRESETS = sorted(path.stem for path in (locations.configuration() / "exp").glob("*.yaml"))


@pytest.fixture
def rendered(composed):
    def read(*overrides: str) -> tuple[dict, list[str]]:
        text, missing = render(composed(*overrides), ["about"])
        sections = json.loads(text)
        assert sections.pop("ragbench") == {"about": ["about"], "not_expressed": missing}
        return sections, missing

    return read


@pytest.mark.parametrize("preset", PRESETS)
def test_librarian_export_every_preset_gives_every_key_and_no_other(rendered, preset: str) -> None:
    sections, _ = rendered(f"+exp={preset}")
    assert {name: list(section) for name, section in sections.items()} == KEYS


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid", "rerank"])
def test_librarian_export_presets_of_librarian_are_its_modes(rendered, mode: str) -> None:
    sections, missing = rendered(f"+exp=librarian_{mode}")
    assert sections["search"]["mode"] == mode
    assert sections["search"]["max_results"] == 50
    assert sections["chunking"] == {"enabled": True, "chunk_size": 512, "chunk_overlap": 50, "strategy": "semantic"}
    assert sections["embeddings"]["enabled"] is (mode != "keyword")
    rest = [key for key in missing if not key.startswith(("lexical.", "index.lexical", "index.dense", "index.encoder"))]
    assert rest == ["docs, metadata and mcp were not measured: they have the values of Librarian's example"]


def test_librarian_export_values_of_the_configuration(rendered) -> None:
    sections, _ = rendered(
        *("+exp=librarian_rerank", "keywords.depth=80", "keywords.threshold=0.2", "keywords.min_length=3"),
        *("chunking=librarian_fixed", "index.chunking.chunk_size=300", "cut.top_n=20"),
    )
    assert sections["search"] | {"snippet_length": 0, "context_lines": 0} == {
        "max_results": 20,
        "snippet_length": 0,
        "context_lines": 0,
        "min_keyword_length": 3,
        "mode": "rerank",
        "rerank_candidates": 80,
        "rerank_keyword_threshold": 0.2,
    }
    assert sections["chunking"] == {"enabled": True, "chunk_size": 300, "chunk_overlap": 50, "strategy": "fixed"}


@pytest.mark.parametrize("mode", ["keyword", "semantic", "hybrid", "rerank"])
def test_librarian_export_replays_the_units_that_were_measured(composed, mode: str) -> None:
    settings = composed(f"exp=librarian_{mode}")
    again = replayed(settings)
    units = [[stage.index for name, stage in each.pipeline if name == "lexical"] for each in (again, settings)]
    assert units[0] == units[1] and again.index == settings.index


def test_librarian_export_share_of_the_vectors(rendered) -> None:
    sections, _ = rendered("+exp=librarian_hybrid", "average.weights.dense=3.0", "average.weights.lexical=1.0")
    assert sections["embeddings"]["semantic_weight"] == 0.75


@pytest.mark.parametrize(
    ("overrides", "sentence_start"),
    rows("systems_librarian", "librarian_export_lists_missing_settings"),
)
def test_librarian_export_lists_missing_settings(rendered, overrides: list[str], sentence_start: str) -> None:
    _, missing = rendered(*overrides)
    assert any(sentence.startswith(sentence_start) for sentence in missing), missing
