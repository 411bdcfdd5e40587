"""The TOML of ragdocs: every key that it reads, values of the configuration, and nothing dropped silently."""

from __future__ import annotations

import tomllib
from dataclasses import replace

import pytest
from hypothesis import given, strategies as st

from ragbench.base import locations
from ragbench.extras.export.ragdocs import _SECTIONS, _comment, _toml, render, replayed, values

# Types of the keys as the system's own configuration module of January 2026 has them, apart from the package's table.
KEYS = {
    "search": "semantic_weight f keyword_weight f recency_bias f rrf_k_constant i min_confidence f "
    "max_chunks_per_doc i dedup_enabled b dedup_similarity_threshold f ngram_dedup_enabled b "
    "ngram_dedup_threshold f mmr_enabled b mmr_lambda f rerank_enabled b rerank_model s rerank_top_n i "
    "adaptive_weights_enabled b code_search_enabled b code_search_weight f query_expansion_enabled b "
    "query_expansion_max_terms i query_expansion_min_frequency i community_detection_enabled b "
    "community_boost_factor f dynamic_weights_enabled b variance_threshold f min_weight_factor f hyde_enabled b",
    "chunking": "strategy s min_chunk_chars i max_chunk_chars i overlap_chars i include_parent_headers b "
    "parent_retrieval_enabled b parent_chunk_min_chars i parent_chunk_max_chars i",
    "llm": "embedding_model s",
}
LETTERS = {"f": float, "i": int, "b": bool, "s": str}


TYPES = {
    section: {key: LETTERS[letter] for key, letter in zip(text.split()[::2], text.split()[1::2], strict=True)}
    for section, text in KEYS.items()
}


PRESETS = sorted(path.stem for path in (locations.configuration() / "exp").glob("*.yaml"))


@pytest.fixture
def rendered(composed):
    def read(*overrides: str) -> tuple[dict, list[str]]:
        text, missing = render(composed(*overrides), ["about"])
        assert all(f"# - {sentence}" in text.splitlines() for sentence in missing)
        return tomllib.loads(text), missing

    return read


def test_ragdocs_table_has_its_keys_and_types() -> None:
    assert {name: {key: kind for key, (kind, _) in keys.items()} for name, keys in _SECTIONS.items()} == TYPES


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_ragdocs_writes_every_key_for_every_preset(rendered, preset: str) -> None:
    tables, _ = rendered(f"+exp={preset}")
    assert {name: {key: type(value) for key, value in table.items()} for name, table in tables.items()} == TYPES


def test_ragdocs_chunk_lengths_are_those_searched(rendered) -> None:
    whole, _ = rendered("index.chunking.min_chars=250", "index.chunking.max_chars=900")
    chunking = whole["chunking"]
    assert (chunking["min_chunk_chars"], chunking["max_chunk_chars"], chunking["overlap_chars"]) == (250, 900, 100)
    children, _ = rendered("p13=on", "p13.chunking.child_max=500")
    chunking = children["chunking"]
    assert (chunking["min_chunk_chars"], chunking["max_chunk_chars"]) == (400, 500)
    assert (chunking["parent_chunk_min_chars"], chunking["parent_chunk_max_chars"]) == (1500, 2000)


def test_ragdocs_rounds_constants_and_says_so(rendered) -> None:
    tables, missing = rendered("fuse.k=40.4")
    assert tables["search"]["rrf_k_constant"] == 40
    assert "fuse.k = 40.4: ragdocs has whole numbers only, so 40 is written" in missing


def test_ragdocs_switches_that_are_on(rendered) -> None:
    tables, missing = rendered(
        *("+exp=all", "recency=on", "recency.bias=0.4", "hyde=on", "p10.threshold=0.2", "p11.lambda_=0.6"),
        *("fuse.weights.dense=1.3", "fuse.weights.code=0.8", "fuse.k=40", "p6.depth=7", "p13.chunking.child_max=500"),
    )
    search = tables["search"]
    assert all(value for key, value in search.items() if key.endswith("_enabled") and key != "dedup_enabled")
    assert not search["dedup_enabled"]  # p11 replaces it
    assert (search["semantic_weight"], search["keyword_weight"], search["code_search_weight"]) == (1.3, 1.0, 0.8)
    assert (search["recency_bias"], search["rrf_k_constant"], search["rerank_top_n"]) == (0.4, 40, 7)
    assert (search["min_confidence"], search["mmr_lambda"], search["max_chunks_per_doc"]) == (0.2, 0.6, 0)
    assert search["rerank_model"] == "cross-encoder/ms-marco-MiniLM-L-12-v2"
    assert tables["chunking"]["max_chunk_chars"] == 500
    assert tables["chunking"]["parent_retrieval_enabled"]
    assert not any("graph is off" in sentence for sentence in missing)


def test_ragdocs_switches_that_are_off(rendered) -> None:
    tables, _ = rendered("+exp=lexical_only")
    search = tables["search"]
    assert (search["semantic_weight"], search["recency_bias"], search["min_confidence"]) == (0.0, 0.0, 0.0)
    assert search["max_chunks_per_doc"] == 0
    assert not any(value for key, value in search.items() if key.endswith("_enabled"))


OTHER = (
    *("p5=on", "p1=on", "p1.sources=[dense,lexical]", "filters=on", "calibration=off", "chunking=librarian_fixed"),
    *("dense.depth=30", "lexical.k1=1.1", "+fuse.weights.grep=2.0"),
)


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        (OTHER, "p5 (add 2 synonyms a word): ragdocs has no such step"),
        (OTHER, "filters (filter by nothing): ragdocs has no such step"),
        (OTHER, "dense.depth = 30: ragdocs has no key for it"),
        (OTHER, "lexical.k1 = 1.1: ragdocs always has 1.2"),
        (OTHER, 'p1.sources = ["dense", "lexical"]: ragdocs always has ["dense"]'),
        (OTHER, "calibration by a sigmoid is off: ragdocs always applies it"),
        (OTHER, "index.chunker = LibrarianFixedChunker: ragdocs cuts along headings"),
        (OTHER, "fuse.weights.grep = 2: ragdocs has no such source"),
        (("+exp=lexical_v3",), "no source of this configuration exists in ragdocs"),
        (("+exp=all",), "p11 and p8.limit are both on: ragdocs limits chunks per document only without MMR"),
    ],
)
def test_ragdocs_lists_what_it_cannot_express(rendered, overrides: tuple[str, ...], reason: str) -> None:
    _, missing = rendered(*overrides)
    assert any(sentence.startswith(reason) for sentence in missing), missing


def test_ragdocs_lists_nothing_that_is_equal(rendered) -> None:
    _, missing = rendered("lexical.k1=1.2", "lexical.b=0.75", "p2=on")
    assert not any(word in sentence for sentence in missing for word in ("k1", "lexical.b = ", "passage.headings"))


def test_ragdocs_says_another_order(composed) -> None:
    order = list(composed("recency=on", "p8=on").config["order"])
    order.remove("p8.content_hash")
    order.insert(order.index("recency"), "p8.content_hash")
    settings = composed("recency=on", "p8=on").with_values({"order": order})
    assert "order: p8.content_hash runs before recency here; ragdocs runs it after" in values(settings)[1]


@given(st.text(), st.text())
def test_ragdocs_escapes_names_and_headings(name: str, heading: str) -> None:
    assert tomllib.loads(f"{_comment(heading)}\nname = {_toml(name)}\n") == {"name": name}


@pytest.mark.parametrize("preset", PRESETS)
def test_ragdocs_replays_every_value_of_the_file(composed, preset: str) -> None:
    settings = composed(f"+exp={preset}")
    again = replayed(settings)
    tables, sentences = values(again)
    assert tables == values(settings)[0]
    assert not [sentence for sentence in sentences if "always" in sentence or "no such step" in sentence]
    assert "p8.limit" not in dict(again.pipeline) or not tables["search"]["mmr_enabled"]


@pytest.mark.parametrize("preset", [preset for preset in PRESETS if preset.startswith("ragdocs_")])
def test_ragdocs_presets_replay_unchanged(composed, preset: str) -> None:
    settings = composed(f"+exp={preset}")
    again = replayed(settings)
    ours, theirs = dict(settings.pipeline), dict(again.pipeline)
    assert again.index == settings.index and list(theirs) == list(ours)
    # one list that was asked or answers alone is scaled by us alone: the formula would lose "auth" (p10-absolute)
    assert [name for name in ours if ours[name] != theirs[name]] == ["calibration"]
    assert theirs["calibration"] == replace(ours["calibration"], lists=0, noise={})
