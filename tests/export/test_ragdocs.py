"""The TOML of ragdocs: every key of the seeds, values of the configuration, and nothing dropped silently."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ragbench import locations
from ragbench.export.ragdocs import _comment, _toml, render, values

# Every key of the configuration sections of seeds 000 (7 and each proposal), 001 and 003 (7).
KEYS = {
    "search": {
        "semantic_weight",
        "keyword_weight",
        "recency_bias",
        "rrf_k_constant",
        "adaptive_weights_enabled",
        "query_expansion_enabled",
        "code_search_enabled",
        "code_search_weight",
        "score_calibration_threshold",
        "score_calibration_steepness",
        "min_confidence",
        "max_chunks_per_doc",
        "ngram_dedup_enabled",
        "ngram_dedup_threshold",
        "dedup_enabled",
        "dedup_similarity_threshold",
        "mmr_enabled",
        "mmr_lambda",
        "rerank_enabled",
        "rerank_model",
        "rerank_top_n",
        "parent_retrieval_enabled",
    },
    "advanced": {
        "community_detection_enabled",
        "community_boost_factor",
        "dynamic_weights_enabled",
        "variance_threshold",
        "hyde_enabled",
    },
    "chunking": {
        "parent_retrieval_enabled",
        "parent_chunk_min_chars",
        "parent_chunk_max_chars",
        "child_chunk_min_chars",
        "child_chunk_max_chars",
    },
}
PRESETS = sorted(path.stem for path in (locations.configuration() / "exp").glob("*.yaml"))


@pytest.fixture
def rendered(composed):
    def read(*overrides: str) -> tuple[dict, list[str]]:
        text, missing = render(composed(*overrides), ["about"])
        assert all(f"# - {sentence}" in text.splitlines() for sentence in missing)
        return tomllib.loads(text), missing

    return read


@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_gives_every_key_and_no_other(rendered, preset: str) -> None:
    tables, _ = rendered(f"+exp={preset}")
    advanced = tables["search"].pop("advanced")
    assert {"search": set(tables["search"]), "advanced": set(advanced), "chunking": set(tables["chunking"])} == KEYS


def test_switches_that_are_on(rendered) -> None:
    tables, missing = rendered(
        *("+exp=all", "recency=on", "recency.bias=0.4", "hyde=on", "p10.threshold=0.2", "p11.lambda_=0.6"),
        *("fuse.weights.dense=1.3", "fuse.weights.code=0.8", "fuse.k=40", "p6.depth=7", "p13.chunking.child_max=500"),
    )
    search, advanced = tables["search"], tables["search"].pop("advanced")
    assert all(
        value for key, value in {**search, **advanced}.items() if key.endswith("_enabled") and key != "dedup_enabled"
    )
    assert not search["dedup_enabled"]  # p11 replaces it
    assert (search["semantic_weight"], search["keyword_weight"], search["code_search_weight"]) == (1.3, 1.0, 0.8)
    assert (search["recency_bias"], search["rrf_k_constant"], search["rerank_top_n"]) == (0.4, 40, 7)
    assert (search["min_confidence"], search["mmr_lambda"], search["max_chunks_per_doc"]) == (0.2, 0.6, 2)
    assert search["rerank_model"] == "cross-encoder/ms-marco-MiniLM-L-12-v2"
    assert tables["chunking"]["child_chunk_max_chars"] == 500
    assert not any("graph is off" in sentence for sentence in missing)


def test_switches_that_are_off_are_written_so_that_they_are_off(rendered) -> None:
    tables, _ = rendered("+exp=lexical_only")
    search = tables["search"]
    assert (search["semantic_weight"], search["recency_bias"], search["min_confidence"]) == (0.0, 0.0, 0.0)
    assert search["max_chunks_per_doc"] == 0
    assert not any(value for key, value in search.items() if key.endswith("_enabled"))


OTHER = (
    *("p5=on", "p1=on", "p1.sources=[dense,lexical]", "filters=on", "calibration=off", "chunking=librarian_fixed"),
    *("dense.depth=30", "index.lexical.k1=1.1", "+fuse.weights.grep=2.0"),
)


@pytest.mark.parametrize(
    ("overrides", "said"),
    [
        (OTHER, "p5 (add 2 synonyms a word): ragdocs has no such step"),
        (OTHER, "filters (filter by nothing): ragdocs has no such step"),
        (OTHER, "dense.depth = 30: ragdocs has no key for it"),
        (OTHER, "index.lexical.k1 = 1.1: ragdocs always has 1.2"),
        (OTHER, 'p1.sources = ["dense", "lexical"]: ragdocs always has ["dense"]'),
        (OTHER, "calibration by a sigmoid is off: ragdocs always applies it"),
        (OTHER, "index.chunker = LibrarianFixedChunker: ragdocs cuts along headings"),
        (OTHER, "fuse.weights.grep = 2: ragdocs has no such source"),
        (("+exp=lexical_v3",), "no source of this configuration exists in ragdocs"),
        (("+exp=all",), "p11 and p8.limit are both on: ragdocs applies max_chunks_per_doc only without MMR"),
    ],
)
def test_what_the_format_cannot_say_is_listed(rendered, overrides: tuple[str, ...], said: str) -> None:
    _, missing = rendered(*overrides)
    assert any(sentence.startswith(said) for sentence in missing), missing


def test_what_the_system_does_in_the_same_way_is_not_listed(rendered) -> None:
    _, missing = rendered("index.lexical.k1=1.2", "index.lexical.b=0.75", "p2=on")
    assert not any(word in sentence for sentence in missing for word in ("k1", "lexical.b", "headings"))


def test_another_order_is_said(composed) -> None:
    order = list(composed("recency=on", "p8=on").config["order"])
    order.remove("p8.content_hash")
    order.insert(order.index("recency"), "p8.content_hash")
    settings = composed("recency=on", "p8=on").with_value("order", order)
    assert "order: p8.content_hash runs before recency here; ragdocs runs it after" in values(settings)[1]


@given(st.text(), st.text())
def test_any_name_reads_back_and_any_heading_stays_a_comment(name: str, heading: str) -> None:
    assert tomllib.loads(f"{_comment(heading)}\nname = {_toml(name)}\n") == {"name": name}
