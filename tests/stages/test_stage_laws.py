"""Laws of every stage that a configuration file names, and of every subset of switches.

A stage keeps length and order, never changes what it is given, answers one query alone as in any company, answers alike
every time, keeps nothing of a query but in the memory that timing empties, and drops no guaranteed hit. A pipeline of
any subset of switches gives at most `top_n` hits, none twice, in an order that its scores agree with.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings, strategies as st

import ragbench.extras.fit.stages
import ragbench.extras.systems.stages
import ragbench.search.stages
from ragbench.base.fingerprint import canonical, short_digest
from ragbench.base.options import TARGET, flat
from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import Query
from ragbench.config import available
from ragbench.config.settings import Settings
from ragbench.extras.remote.chat import EndpointModel
from ragbench.extras.systems.stages.expand_queries import ExpandQueries
from ragbench.extras.systems.stages.lexical_v3 import RecallBySubstring
from ragbench.models.resolve import Models
from ragbench.search.engine.pipeline import Arm, execute, start
from ragbench.search.stages.stage import Retriever, Stage
from tests.composed import composed
from tests.stage_classes import stage_classes

PACKAGE = str(Path(ragbench.__path__[0]))
WITH_STAGES = sorted(
    f"{group.name}={option.name}"
    for group in available.read().switches
    for option in group.options
    if group.name != "live"
    and any(".stages." in str(value) for key, value in flat(option.content).items() if key.endswith(TARGET))
)
# What a switch needs beside it to be used for real.
COMPANY = {
    "p13=on": ["p8=on"],
    "filters=on": ["filters.tags=[lantern]"],
    "dynamic_weights=on": ["p3=on"],
    "p11=on": ["p3=on"],
}
QUERIES = (
    Query("t1", "LNT-301"),
    Query("t2", "how do lamps know when the sun sets"),
    Query("t3", "getAuthToken", hypothesis="A function that exchanges a secret for a token."),
    Query("t4", "too many wrong passwords in the authentication guide"),
    Query("t5", "zzz"),
    Query("t6", ""),
    Query("t7", "who may open [[auth]] and [[schedules]] #lantern/setup"),
)


def stages_of(settings_: Settings, group: str | None = None) -> Iterator[tuple[int, str, Stage]]:
    for number, (name, stage) in enumerate(settings_.pipeline):
        if group is None or name.split(".")[0] == group:
            yield number, name, stage


# What is composed, and the group whose stages are tried; nothing is composed while tests are collected.
CASES: list[tuple[tuple[str, ...], str | None]] = [((), None)]
CASES += [((o, *COMPANY.get(o, ())), o.split("=")[0]) for o in WITH_STAGES]


def id_of(case: tuple[tuple[str, ...], str | None]) -> str:
    return case[0][0] if case[0] else "default"


@pytest.fixture(scope="module")
def cases(request, make_index) -> list[tuple[Stage, list[QueryState], object]]:
    """Each stage of the group, the states it meets in its pipeline, and the index."""
    overrides, group = request.param
    settings_ = composed(*overrides)
    index = make_index(settings_.index)
    cases = []
    for number, _, stage in stages_of(settings_, group):
        states = start(QUERIES)
        for _, earlier in settings_.pipeline.stages[:number]:
            states = earlier(states, index)
        cases.append((stage, states, index))
    assert cases
    return cases


every_stage = pytest.mark.parametrize("cases", CASES, indirect=True, ids=id_of)


@every_stage
def test_stage_keeps_length_and_order(cases) -> None:
    for stage, states, index in cases:
        assert [state.query for state in stage(states, index)] == [state.query for state in states]
        assert stage([], index) == []


@every_stage
def test_stage_does_not_change_its_input(cases) -> None:
    for stage, states, index in cases:
        before = copy.deepcopy(states)
        stage(states, index)
        assert states == before


@every_stage
def test_stage_treats_a_batch_as_single_queries(cases) -> None:
    for stage, states, index in cases:
        together = stage(states, index)
        assert together == [stage([state], index)[0] for state in states]
        assert together == stage(states[::-1], index)[::-1]


@every_stage
def test_stage_is_deterministic(cases) -> None:
    for stage, states, index in cases:
        assert stage(states, index) == stage(states, index) == copy.deepcopy(stage)(states, index)


@every_stage
def test_stage_describes_itself_and_has_a_fingerprint(cases) -> None:
    for stage, _, _ in cases:
        assert isinstance(stage, Stage)
        assert stage.describe().strip()
        assert "\n" not in stage.describe()
        assert canonical(stage) == canonical(copy.deepcopy(stage))


@every_stage
def test_stage_gives_sound_rankings(cases) -> None:
    for stage, states, index in cases:
        for after in stage(states, index):
            for ranking in [*after.rankings.values(), *([after.fused] if after.fused is not None else [])]:
                assert len(set(ranking.chunks.tolist())) == len(ranking)
                assert np.all(np.diff(ranking.scores) <= 0)
                assert np.isfinite(ranking.scores).all()


@every_stage
def test_stage_drops_no_guaranteed_hit(cases) -> None:
    for stage, states, index in cases:
        for state in states:
            if state.fused is None or not len(state.fused):
                continue
            last_two = dict.fromkeys(state.fused.chunks[-2:].tolist(), "title-match")
            (after,) = stage([dataclasses.replace(state, guaranteed=last_two)], index)
            assert len(after.guaranteed) >= 1  # two children may have one parent
            assert set(after.guaranteed) <= set(after.fused.chunks.tolist())


@every_stage
def test_stage_finds_nothing_among_no_hits(cases) -> None:
    for stage, states, index in cases:
        for state in states:
            if state.fused is not None:
                empty = dataclasses.replace(state, rankings={}, fused=Ranking.empty(), guaranteed={})
                (after,) = stage([empty], index)
                assert after.fused is not None and set(after.fused.chunks) <= set(after.guaranteed)


@every_stage
def test_retriever_depends_on_its_questions_only(cases) -> None:
    for stage, states, index in cases:
        if isinstance(stage, Retriever):
            for state in states:
                twin = dataclasses.replace(
                    state, query=Query("other", state.query.text), notes=("x",), weights={"dense": 9}
                )
                assert stage.question(twin) == stage.question(state)
                assert stage.retrieve([twin], index) == stage.retrieve([state], index)
                hash(stage.question(state))


# Stages that ask a language model, with an endpoint that a test replaces.
ASKING = [
    ((f"{group}=on", f"{group}.endpoint=http://127.0.0.1:9/v1", f"{group}.model=m"), group)
    for group in ("expansion", "hyde")
]


@pytest.fixture(scope="module")
def bare() -> Models:
    return Models(threads=1)


@pytest.mark.parametrize(
    "case",
    # The cross-encoder reads everything three times.
    [pytest.param(case, marks=[pytest.mark.slow] * (id_of(case) == "p6=on")) for case in (*CASES, *ASKING)],
    ids=lambda case: f"{id_of(case)}{':asks' * (case in ASKING)}",
)
def test_stage_repeats_the_work_for_a_forgotten_query(case, make_index, bare, monkeypatch) -> None:
    """The functions that run are counted: what anything but `QueryCache` kept of the first ask would be missing."""
    overrides, group = case
    prompts: list[str] = []
    monkeypatch.setattr(EndpointModel, "complete", lambda self, prompt: prompts.append(prompt) or "no elements")
    pipeline = composed(*overrides).pipeline
    index = make_index(composed(*overrides).index).with_models(bare)

    def before(suffix: str, number: int) -> list[QueryState]:
        """The states that the stage meets for queries that no test has asked before."""
        word = suffix + short_digest([overrides, number])
        states = start([dataclasses.replace(query, text=f"{query.text} {word}") for query in QUERIES])
        for _, earlier in pipeline.stages[:number]:
            states = earlier(states, index)
        return states

    prompted = False
    for number, name, stage in stages_of(composed(*overrides), group):
        warm, asked = before("zw", number), before("zq", number)
        stage(warm, index)
        held = copy.deepcopy(vars(stage))
        counts = []
        for _ in range(2):
            index.memory.forget()
            prompts.clear()
            counts.append(calls(stage, asked, index))
            counts[-1]["prompts"] = len(prompts)
        prompted |= counts[0]["prompts"] > 0
        assert counts[0] == counts[1], name
        assert vars(stage) == held, name
    assert prompted == (case in ASKING)


def calls(stage: Stage, states: list[QueryState], index: object) -> Counter[str]:
    """How often each function of the package runs while a stage answers."""
    counted: Counter[str] = Counter()

    def count(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            counted[f"{frame.f_globals['__name__']}.{frame.f_code.co_qualname}"] += 1

    sys.setprofile(count)
    try:
        stage(states, index)
    finally:
        sys.setprofile(None)
    return counted


def test_stage_memory_saves_work_until_it_is_forgotten(make_index, bare, monkeypatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(EndpointModel, "complete", lambda self, prompt: asked.append(prompt) or "lamps")
    index = make_index().with_models(bare)
    expand = ExpandQueries(endpoint="http://127.0.0.1:9/v1", model="m", cache_size=2)
    for text, n_asked in (("a1", 1), ("a1", 1), ("a2", 2), ("a3", 3), ("a1", 4)):
        expand(start([Query("q", text)]), index)
        assert len(asked) == n_asked, text
    index.memory.forget()
    expand(start([Query("q", "a1")]), index)
    assert len(asked) == 5
    recall, states = RecallBySubstring(), start([Query("q", "lamps never asked for")])
    index.memory.forget()
    first, again = calls(recall, states, index), calls(recall, states, index)
    assert first["ragbench.extras.systems.parts.scan.ScanIndex._in_content"] == 1
    assert again["ragbench.extras.systems.parts.scan.ScanIndex._in_content"] == 0


def test_stages_can_all_be_configured() -> None:
    configured = {type(stage) for overrides, _ in CASES for _, _, stage in stages_of(composed(*overrides))}
    assert {cls.__name__ for cls in stage_classes()} == {cls.__name__ for cls in configured}


# Subsets of switches ------------------------------------------------------------------------------------------------

SWITCHES = {
    **{f"p{n}": ("off", "on") for n in range(1, 13)},
    "p13": ("off", "on", "expand_only"),
    "graph": ("off", "on"),
    "community": ("off", "on"),
    "recency": ("off", "on"),
    "dynamic_weights": ("off", "on"),
    "hyde": ("off", "on"),
    "filters": ("off", "on"),
    "calibration": ("on", "off", "table"),
    **dict.fromkeys(("expansion", "recall", "rank_v3", "folder_boost", "graph_boost", "normalise"), ("off", "on")),
    **dict.fromkeys(("diverse", "merge", "average", "guarantee", "context", "keywords"), ("off", "on")),
}
DETAILS = {
    "p6=on": [(), ("p6.blend=true", "p6.depth=3")],
    "p8=on": [(), ("p8.limit.max_per_doc=1",)],
    "p11=on": [(), ("p11.scale=score",), ("p11.lambda_=0.3", "p11.candidates=4")],
    "p12=on": [(), ("p12.unit=word", "p12.threshold=0.4")],
    "graph=on": [(), ("graph.hops=2",)],
    "filters=on": [("filters.tags=[lantern]",), ("filters.author=ada quist",), ("filters.category=nothing",)],
}


@st.composite
def overrides(draw: st.DrawFn) -> tuple[str, ...]:
    chosen = {group: draw(st.sampled_from(options)) for group, options in SWITCHES.items()}
    if chosen["p10"] == "on" and chosen["calibration"] == "off":
        chosen["calibration"] = "on"
    if chosen["merge"] == "on":
        chosen["average"] = "off"
    words = [f"{group}={option}" for group, option in chosen.items()]
    for word in list(words):
        words += draw(st.sampled_from(DETAILS.get(word, [()])))
    return (*words, f"cut.top_n={draw(st.integers(1, 12))}")


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
@given(words=overrides())
def test_pipeline_of_every_subset_of_switches_keeps_invariants(words: tuple[str, ...], make_index) -> None:
    settings_ = composed(*words)
    index = make_index(settings_.index)
    states = settings_.pipeline(QUERIES, index)
    assert [answered.query.qid for answered in states] == [answered.qid for answered in QUERIES]
    bounded = not {"calibration=off", "p6=off", "p11=off"} <= set(words)
    event(f"{sum(word.endswith('=on') for word in words)} switches on")
    for state in states:
        ranking = state.fused
        assert len(ranking) - len(state.guaranteed) <= settings_.config["cut"]["top_n"]
        assert set(state.guaranteed) <= set(ranking.chunks.tolist())
        assert np.all(np.diff(ranking.scores) <= 0)
        assert np.all(ranking.scores >= 0)
        assert not bounded or np.all(ranking.scores <= 1)
        assert len(set(ranking.chunks.tolist())) == len(ranking)
        assert "p13=off" not in words or np.all(ranking.chunks < index.chunks.n_retrievable)
        if state.filters is not None:
            assert index.allowed(state.filters)[ranking.chunks].all()
        left = [n for _, n in state.counts]
        assert left == sorted(left, reverse=True)
    assert settings_.pipeline(QUERIES, index) == states
    assert [settings_.pipeline([query], index)[0] for query in QUERIES] == states
    (outcome,) = execute([Arm("all", settings_.pipeline, index)], QUERIES)
    assert list(outcome.final) == states
