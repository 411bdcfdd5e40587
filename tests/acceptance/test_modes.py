"""Every preset in every mode: what a request may ask for is answered, or refused in a sentence, never silent."""

from __future__ import annotations

import re

import pytest

from ragbench.base import locations
from ragbench.base.types import ConfigError, Query
from ragbench.config import composition
from ragbench.search.engine.answer import SearchOptions, adapted_pipeline
from ragbench.search.engine.modes import ModeSpec
from tests.composed import composed
from tests.naming import naming

PRESETS = sorted(path.stem for path in (locations.configuration() / "exp").glob("*.yaml"))
MODES = ("keyword", "semantic", "hybrid", "rerank")
WORDS = {"lexical", "documents", "code"}
ANSWERED = ("caching?", "drop jobs that wait", "getAuthToken", "authentication", "how does a backup work")


# A cross-encoder reads every hit of every mode; Pyserini imports PyTorch.
SLOW = ("pyserini", "all", "ragdocs_phase2", "ragdocs_phase3", "ragdocs_phase4")
# Source 004 re-ranks by words as typed and drops hits without any, so a word with a question mark finds nothing.
AS_TYPED = ("librarian_hybrid", "librarian_rerank", "librarian_semantic")


@pytest.mark.parametrize("preset", [pytest.param(item, marks=[pytest.mark.slow] * (item in SLOW)) for item in PRESETS])
def test_mode_no_preset_is_silent_in_any_mode(handbook, preset: str) -> None:
    settings = composed(f"+exp={preset}")
    index, answered = handbook.index(f"+exp={preset}"), 0
    queries = [Query(f"q{number}", text, hypothesis=text) for number, text in enumerate(ANSWERED)]
    for mode in MODES:
        try:
            pipeline = adapted_pipeline(settings.pipeline, SearchOptions(mode=mode), 10)
        except ConfigError as refusal:
            assert re.fullmatch(
                rf"mode {mode} cannot be used: this pipeline has no (lexical|dense) retriever", str(refusal)
            )
            continue
        answered += 1
        silent = set()
        for state in pipeline(queries, index):
            assert state.fused is not None
            silent |= set() if len(state.fused) else {state.query.text}
            if mode in ("semantic", "rerank"):
                assert not WORDS & set(state.rankings)
            elif mode == "keyword":
                assert "dense" not in state.rankings
        assert silent == ({"caching?"} if mode == "rerank" and preset in AS_TYPED else set()), mode
    assert answered


@pytest.mark.parametrize("preset", ["baseline", "phase1", "phase3", "recommended", "semantic_v3", "librarian_hybrid"])
def test_mode_rerank_is_seventy_percent_cosine_and_thirty_percent_words(handbook, preset: str) -> None:
    settings, index = composed(f"+exp={preset}"), handbook.index(f"+exp={preset}")
    pipeline = adapted_pipeline(settings.pipeline, SearchOptions(mode="rerank"), 10)
    (state,) = pipeline([Query("q", "which jobs wait in the queue")], index)
    keywords = dict(pipeline)["keywords"]
    cosines = dict(zip(state.rankings["dense"].chunks.tolist(), state.rankings["dense"].scores.tolist(), strict=True))
    assert len(state.fused)
    for chunk, score in zip(state.fused.chunks.tolist(), state.fused.scores.tolist(), strict=True):
        text = "\n\n".join(map(index.chunks.text, state.contexts.get(chunk, (chunk,))))
        assert score == pytest.approx(0.7 * cosines[chunk] + 0.3 * keywords.score(state.query.text, text), abs=1e-5)


def test_mode_preset_may_compose_its_modes_itself(handbook) -> None:
    settings = composed("+exp=phase3", "modes.keyword.without=[p1,p6]")
    names = [name for name, _ in adapted_pipeline(settings.pipeline, SearchOptions(mode="keyword"), 10)]
    assert names[:3] == ["p3", "lexical", "p7"] and not {"p6", "dense", "p1"} & set(names)
    assert settings.pipeline == composed("+exp=phase3").pipeline  # what is measured is the same


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("modes.keyword.sources=letters", r"modes\.keyword\.sources must be one of words, meaning, all"),
        ("modes.rerank.without=[p77]", r"modes\.rerank\.without names 'p77', which is not a stage; did you mean p7"),
    ],
)
def test_mode_that_means_nothing_is_refused(override: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        composition.compose([override])


def test_mode_pipeline_without_modes_says_so(handbook) -> None:
    from dataclasses import replace

    pipeline = replace(composition.compose([]).pipeline, modes={"keyword": ModeSpec()})
    with pytest.raises(ConfigError, check=naming("semantic")):
        adapted_pipeline(pipeline, SearchOptions(mode="semantic"), 10)
