"""The acceptance criteria of the seeds' phases 1 to 4, on real indexes over the handbook of a package registry.

A criterion that honest code does not meet stays here as an expected failure with what was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from operator import getitem
from pathlib import Path

import numpy as np
import pytest

from ragbench.base.rankings import CompressionStats
from ragbench.base.types import ConfigError, RagbenchError
from ragbench.config import composition
from ragbench.corpus.links import collection_digest
from ragbench.corpus.reader import read_vault
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index
from ragbench.models.resolve import Models
from ragbench.search.engine.answer import answer
from tests.composed import composed
from tests.naming import naming
from tests.notes import write_vault
from tests.tables import rows

PHASE1, PHASE2, PHASE3, PHASE4 = (f"+exp=phase{n}" for n in (1, 2, 3, 4))

# The document that answers, for questions in other words than its own.
ANSWERS = {
    "how do programs prove their identity": "authentication",
    "what happens when somebody guesses too many logins": "security",
    "switch traffic between two running versions": "deployment",
    "undo a bad release": "deployment",
    "largest file I may send": "configuration",
    "which compiler do I need": "clients",
    "how long does the cdn copy live": "caching",
    "how do I know that my copies can be used": "backup",
    "numbers for the monitoring system": "metrics",
    "everything has become slow today": "slow-requests",
    "drop jobs that wait": "queues",
    "how many processes should work on the jobs": "workers",
    "server says come back later": "uploads",
    "why is my package not visible yet": "scanning",
    "who gets woken up at night": "team",
}
# What follows fusion, as seeds 000 and 001 order it.
ORDER = ("calibration", "p10", "p8.content_hash", "p12", "p8.semantic", "p11", "p8.limit", "p6", "p13.expand", "cut")
UNANSWERED = (
    "can quay play music",
    "which colour has the logo",
    "how much does quay cost",
    "does quay run on a phone",
    "who founded the company",
)


def titles(handbook) -> dict[str, str]:
    table = handbook.index().chunks
    return dict(zip(table.docnos, table.titles, strict=True))


# Phase 1: P2, P4, P8, P9, P10 --------------------------------------------------------------------------------------


def test_phase_query_that_matches_a_title_ranks_that_document_first(handbook) -> None:
    result = {docno: handbook.docnos(title, PHASE1)[:1] for docno, title in titles(handbook).items()}
    assert result == {docno: [docno] for docno in result}


def test_phase_titles_need_the_field_to_come_first(handbook) -> None:
    # what the criterion is worth: content alone puts other documents before these
    assert handbook.docnos("Authentication")[0] == "security"
    assert handbook.docnos("Authentication", "p4=on")[0] == "authentication"


def test_phase_query_that_matches_a_header_finds_its_section_in_the_first_three(handbook) -> None:
    table = handbook.index("p4=on").chunks
    anchors, levels, headings = (table.document_column(name) for name in ("anchors", "levels", "headings"))
    copies = {"archive-backup", "archive-nightly", "backup-v2", "backup"}  # each other's sections, word for word
    asked = [
        (heading, f"{docno}#{anchor}")
        for number, docno in enumerate(table.docnos)
        for heading, anchor, level in zip(headings[number], anchors[number], levels[number], strict=True)
        if level > 1 and docno not in copies and heading != "Refresh"  # the one heading that stands in two documents
    ]
    assert len(asked) > 25
    sections = dict(zip(table.chunk_ids, table.section_ids, strict=True))

    def missed(*overrides: str) -> list[str]:
        first = {heading: handbook.hits(heading, *overrides, top_n=3) for heading, _ in asked}
        return [
            heading
            for heading, section in asked
            if all(section not in sections[hit.chunk_id] for hit in first[heading])
        ]

    assert missed(PHASE1) == []
    # what the field is worth: words alone find every section with it, and not without
    assert (missed("dense=null", "p4=on"), missed("dense=null")) == ([], ["Packages"])


def test_phase_query_that_matches_a_keyword_finds_its_document_in_the_first_five(handbook) -> None:
    table = handbook.index().chunks
    asked = [
        (k, docno) for docno, f in zip(table.docnos, table.frontmatter, strict=True) for k in f.get("keywords", [])
    ]
    assert len(asked) > 15
    for keyword, docno in asked:
        assert docno in handbook.docnos(keyword, PHASE1, top_n=5), keyword
    # "snapshot" stands nowhere in the text: without frontmatter its document is not among the first ten
    assert "backup" not in handbook.docnos("snapshot")


def test_phase_author_is_searchable_and_categories_filter(handbook) -> None:
    authored = {"authentication", "security"}
    assert set(handbook.docnos("Ines Falk", "p9=on", "dense=null")) >= {*authored, "team"}
    assert set(handbook.docnos("Ines Falk", "dense=null")) == set()
    only = handbook.docnos("authentication", "filters=on", "filters.category=reference", "p9=on")
    table = handbook.index().chunks
    assert only
    assert {table.frontmatter[table.document_number[docno]]["category"] for docno in only} == {"reference"}


def test_phase_related_makes_an_edge_to_a_document_that_exists(handbook) -> None:
    index = handbook.index()
    number = index.chunks.document_number
    assert number["security"] in index.graph.neighbours(number["authentication"])


def test_phase_same_text_under_other_headers_ranks_otherwise(handbook) -> None:
    # The section "Refresh" is word for word the same in two documents: content alone cannot tell them apart.
    def first_two(text: str, *overrides: str) -> list[str]:
        return [hit.chunk_id for hit in handbook.hits(text, "lexical=null", *overrides, top_n=2)]

    assert first_two("when does the cache need a fresh value") == ["authentication#2", "caching#1"]
    assert first_two("when does the cache need a fresh value", "p2=on") == ["caching#1", "authentication#2"]
    assert first_two("when must I ask for a fresh token", "p2=on") == ["authentication#2", "caching#1"]


def test_phase_low_confidence_returns_nothing(handbook) -> None:
    assert [len(handbook.hits(text, PHASE1)) for text in ("zzz qqq", "sourdough bread recipe")] == [0, 0]
    assert len(handbook.hits("how do I roll back a deployment", PHASE1)) > 0


def results(handbook, questions: Iterable[str]) -> float:
    """The mean number of results of phase 1."""
    return float(np.mean([len(handbook.state(text, PHASE1).fused) for text in questions]))


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="a fused score is made of ranks, and unanswerable questions have first ranks, too: "
    "10.0 hits on average pass phase 1 for them, 7.8 for answerable ones (calibration=on: 5.0 and 4.3)",
)
def test_phase_low_confidence_questions_return_fewer_results(handbook) -> None:
    assert results(handbook, UNANSWERED) < results(handbook, ANSWERS)


def test_phase_questions_return_the_number_of_results_that_was_measured(handbook) -> None:
    assert results(handbook, UNANSWERED) == pytest.approx(10.0, abs=0.05)
    assert results(handbook, ANSWERS) == pytest.approx(7.8, abs=0.05)


def test_phase_paraphrases_are_merged_and_every_step_is_counted(handbook) -> None:
    trail = handbook.trail("taking a backup every night", PHASE1)
    final = trail["cut"]
    names, left = zip(*final.counts, strict=True)
    assert names == ("original_count", "after_threshold", "after_content_dedup", "after_dedup", "after_doc_limit")
    assert left[0] == len(trail["calibration"].fused)
    assert left[0] > left[1] > left[2] > left[3] >= left[4] == len(final.fused)
    assert CompressionStats.of(final) == CompressionStats(
        original_count=left[0],
        after_threshold=left[1],
        after_content_dedup=left[2],
        after_ngram_dedup=left[2],  # P12 is off
        after_dedup=left[3],
        after_doc_limit=left[4],
        clusters_merged=left[2] - left[3],
    )
    cosines = handbook.index(PHASE1).dense.similarities(final.fused.chunks)
    assert cosines[~np.eye(len(cosines), dtype=bool)].max() < 0.85


@pytest.mark.parametrize("text", ["jobs in a queue", "queue priorities", "moving and emptying a queue"])
def test_phase_document_gives_at_most_two_hits(handbook, text: str) -> None:
    docnos = [hit.docno for hit in handbook.hits(text, PHASE1)]
    assert max(docnos.count(docno) for docno in docnos) <= 2


# Phase 2: P1, P6 ----------------------------------------------------------------------------------------------------


def test_phase_auth_finds_authentication(handbook) -> None:
    assert len(handbook.state("auth").rankings["lexical"]) == 0
    assert handbook.docnos("auth")[0] == "security"
    expanded = handbook.state("auth", "p1=on")
    assert "authentication" in expanded.text_for("dense").split()
    assert handbook.docnos("auth", "p1=on")[0] == "authentication"
    # appended to the words searched for as well, it is found by them, too
    by_words = handbook.docnos("auth", "p1=on", "p1.sources=[dense,lexical]", "dense=null")
    assert "authentication" in by_words


THRESHOLD = [f"{system}phase{n}" for system in ("", "ragdocs_") for n in (1, 2, 3, 4)] + ["all", "ragdocs_full"]
FAST = ("p6=off", "p13=off")  # neither adds nor drops a hit


@pytest.mark.parametrize("preset", THRESHOLD)
def test_phase_auth_finds_authentication_and_nonsense_nothing_in_every_preset_of_the_seeds(
    handbook, preset: str
) -> None:
    words = (f"+exp={preset}", *FAST)
    assert "authentication" in handbook.docnos("auth", *words)
    assert [handbook.docnos(text, *words) for text in ("zzz qqq", "qwerty asdf")] == [[], []]


@pytest.fixture
def found(workplace: Path, models: Models) -> Callable[..., list[bool]]:
    """A function of documents, queries and a preset: whether each query finds anything."""

    def ask(documents, queries, preset: str, *words: str) -> list[bool]:
        settings = composed(f"+exp={preset}", *words)
        store = ArtefactStore(workplace / "index")
        index = Index(settings.index, collection_digest(documents), lambda: documents, store, models)
        return [len(answer(text, settings.pipeline, index, 10).hits) > 0 for text in queries]

    return ask


@pytest.mark.parametrize("count", [12, pytest.param(500, marks=pytest.mark.slow)])
def test_phase_nonsense_finds_nothing_among_few_and_many_notes(found, tmp_path: Path, count) -> None:
    documents = read_vault(write_vault(tmp_path, count)).documents
    for preset in ("phase1", "phase3", "all", "ragdocs_phase1", "ragdocs_full"):
        queries = ("zzz qqq", "qwerty asdf", documents[0].title)
        assert found(documents, queries, preset, *FAST) == [False, False, True], preset


def test_phase_nonsense_finds_nothing_among_notes_that_link_to_one_another(found, tmp_path: Path) -> None:
    for name in ("login", "logout", "password", "roles", "tokens", "audit", "backup", "restore", "limits", "errors"):
        (tmp_path / f"{name}.md").write_text(f"# {name.title()}\n\n[[login]]\n", encoding="utf-8")
    documents = read_vault(tmp_path).documents
    for preset in ("phase1", "ragdocs_phase1"):
        queries = ("zzz qqq", "asdasd", "%%% ###", "aaaa zzzz", "auth", "rate limit")
        assert found(documents, queries, preset) == [False] * 4 + [True] * 2, preset


@pytest.mark.parametrize("preset", [PHASE2, PHASE3])
def test_phase_auth_finds_authentication_in_the_whole_of_a_phase(handbook, preset: str) -> None:
    # found by vectors alone, and nearer to them than everyday questions come: 2/61 = 0.0328, a confidence of 0.557
    assert "authentication" in handbook.docnos("auth", preset)


def test_phase_auth_finds_authentication_in_phase_2_without_the_threshold(handbook) -> None:
    trail = handbook.trail("auth", PHASE2, "p10=off")
    table = handbook.index(PHASE2).chunks
    assert table.docno(trail["p8.limit"].fused.chunks[0]) == "authentication"
    # the cross-encoder does not know the abbreviation (all logits below -10) and moves it back to the fifth document
    assert "authentication" in handbook.docnos("auth", PHASE2, "p10=off")


def ndcg_at_5(handbook, *overrides: str) -> float:
    """The mean over questions with one right document: 1 / log2(rank + 1) down to rank 5."""
    gains = []
    for text, docno in ANSWERS.items():
        result = handbook.docnos(text, *overrides)[:5]
        gains.append(1 / np.log2(result.index(docno) + 2) if docno in result else 0.0)
    return float(np.mean(gains))


@pytest.mark.xfail(
    strict=True,
    raises=AssertionError,
    reason="not on these 15 questions, in other words than the documents: nDCG@5 0.793 with it, 0.818 where it reads "
    "no title and headings, 0.833 without it; on the built-in test topics it gains (docs/research/proposals.md)",
)
def test_phase_reranking_raises_ndcg(handbook) -> None:
    assert ndcg_at_5(handbook, PHASE2) > ndcg_at_5(handbook, PHASE2, "p6=off")


def test_phase_reranking_keeps_what_it_may_not_lose(handbook) -> None:
    # the ten it reads are reordered among themselves, the rest follows in its order
    before, after = (handbook.state("drop jobs that wait", *o).fused.chunks.tolist() for o in ((), ("p6=on",)))
    assert set(before[:10]) == set(after[:10])
    assert before[10:] == after[10:]


# P5, deferred by the seed -------------------------------------------------------------------------------------------


def test_phase_synonyms_improve_recall(handbook) -> None:
    # "fault" stands nowhere; WordNet's first synonyms of it are mistake and error, and a backup may end with an error
    assert handbook.docnos("fault", "dense=null") == []
    assert "backup" in handbook.docnos("fault", "dense=null", "p5=on")


# Phase 3: P3, P7 ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["getUserById status", "parse_json_data mapping", "network.idle_timeout_s lock"])
def test_phase_factual_queries_boost_words(handbook, text: str) -> None:
    plain, adaptive = handbook.trail(text), handbook.trail(text, "p3=on")
    assert adaptive["fuse"].weights == {"lexical": 1.5}
    best = int(plain["lexical"].rankings["lexical"].chunks[0])
    scores = [
        dict(zip(s.fused.chunks.tolist(), s.fused.scores.tolist(), strict=True))
        for s in (plain["fuse"], adaptive["fuse"])
    ]
    assert scores[1][best] - scores[0][best] == pytest.approx(0.5 / 61, rel=1e-4)
    ranks = [list(item["fuse"].fused.chunks).index(best) for item in (plain, adaptive)]
    assert ranks[1] <= ranks[0]


@pytest.mark.parametrize(
    ("text", "chunk"),
    [
        ("getAuthToken", "def getAuthToken("),
        ("getUserById", "function getUserById("),
        ("parse_json_data", "def parse_json_data("),
    ],
)
def test_phase_code_search_finds_a_function_exactly(handbook, text: str, chunk: str) -> None:
    for overrides in (("p7=on", "dense=null", "lexical=null"), ("p7=on",), (PHASE3,)):
        assert chunk in handbook.hits(text, *overrides)[0].text


def test_phase_code_search_filters_by_language(handbook) -> None:
    alone = ("p7=on", "dense=null", "lexical=null")
    for language, text in (("csharp", "var client"), ("javascript", "const client")):
        (first, *_) = handbook.hits("QuayClient", *alone, f"p7.language={language}")
        assert text in first.text
    assert handbook.hits("getAuthToken", *alone, "p7.language=cpp") == []


@pytest.mark.parametrize("text", ["queue", "jobs in a queue", "queue priorities", "packages", *ANSWERS])
def test_phase_first_five_come_from_three_documents(handbook, text: str) -> None:
    assert len({hit.docno for hit in handbook.hits(text, PHASE3, top_n=5)}) >= 3


@pytest.mark.parametrize("text", ["backup", "restoring a backup"])
def test_phase_copies_of_one_document_are_not_three_documents(handbook, text: str) -> None:
    # P10 leaves the four documents about backups, which are copies of each other, and P8 merges them
    trail = handbook.trail(text, PHASE3)
    table = handbook.index(PHASE3).chunks
    left = {name: {table.docno(c) for c in trail[name].fused.chunks} for name in ("fuse", "p10", "cut")}
    assert len(left["fuse"]) > 4
    assert left["p10"] == {"backup", "backup-v2", "archive-backup", "archive-nightly"}
    assert 1 <= len(left["cut"]) <= 2
    assert len({hit.docno for hit in handbook.hits(text, PHASE3, "p10=off", top_n=5)}) >= 3


def test_phase_punctuation_can_be_kept(handbook) -> None:
    # seed 001's outlook: C++, C# and Node.js found by name
    words = ("dense=null", "index.lexical.analyzer=technical")
    for text in ("C++", "C#", "Node.js"):
        first = handbook.hits(text, *words)[0]
        assert (first.docno, text in first.text) == ("clients", True)
    plain = handbook.index("dense=null").lexical
    kept = handbook.index(*words).lexical
    assert plain.terms("C++ C#") == ["c", "c"]
    assert kept.terms("C++ C#") == ["c++", "c#"]


# Phase 4: P11, P12, P13 ---------------------------------------------------------------------------------------------


def likeness(handbook, top_n: int, *overrides: str) -> float:
    """The mean cosine between the first hits before they are re-ranked, over questions."""
    means = []
    for text in (*ANSWERS, "queue", "backup", "authentication tokens", "taking a backup"):
        chunks = handbook.trail(text, *overrides)["p8.limit"].fused.chunks[:top_n]
        cosines = handbook.index(*overrides).dense.similarities(chunks)
        if len(chunks) > 1:
            means.append(cosines[~np.eye(len(chunks), dtype=bool)].mean())
    return float(np.mean(means))


@pytest.mark.slow
@pytest.mark.parametrize("top_n", [3, 5, 10])
def test_phase_mmr_is_more_diverse_than_deduplication_by_threshold(handbook, top_n: int) -> None:
    mmr = likeness(handbook, top_n, PHASE4, "p11.lambda_=0.5")
    assert mmr < likeness(handbook, top_n, PHASE4, "p11=off")


def test_phase_ngrams_remove_more_than_nine_in_ten_exact_copies(handbook) -> None:
    trail = handbook.trail("taking a backup and restoring it", "p12=on")
    table = handbook.index("p12=on").chunks

    def copies(name: str) -> int:
        digests = table.content_hash[trail[name].fused.chunks]
        return len(digests) - len(set(digests.tolist()))

    assert copies("calibration") >= 2
    assert 1 - copies("p12") / copies("calibration") > 0.9


def test_phase_ngrams_remove_near_copies_before_the_semantic_stage_sees_them(handbook) -> None:
    overrides = ("p12=on", "p8=on", "p8.content_hash=null")
    names = [name for name, _ in composed(*overrides).pipeline]
    assert names.index("p12") < names.index("p8.semantic") < names.index("p8.limit")
    both = handbook.state("taking a backup and restoring it", *overrides)
    alone = handbook.state("taking a backup and restoring it", "p8=on", "p8.content_hash=null")
    assert dict(both.counts)["after_ngram_dedup"] < dict(alone.counts)["after_dedup"] + alone.clusters_merged
    assert both.clusters_merged < alone.clusters_merged
    assert both.fused.chunks.tolist() == alone.fused.chunks.tolist()


@pytest.mark.parametrize("late", ["p8.semantic", "p11"])
def test_phase_ngrams_after_the_semantic_stage_are_refused(late: str) -> None:
    switches = ["p8=on"] if late == "p8.semantic" else ["p11=on"]
    order = f"order=[dense,lexical,fuse,calibration,{late},p12,cut]"
    with pytest.raises(ConfigError, check=naming("n-gram")):
        composition.compose([*switches, "p12=on", order])


def test_phase_mmr_takes_the_place_of_the_semantic_stage() -> None:
    names = [name for name, _ in composed("p8=on", "p11=on").pipeline]
    assert "p11" in names
    assert "p8.semantic" not in names


@pytest.mark.parametrize("option", ["on", "expand_only"])
def test_phase_parents_contain_the_children_that_were_found(handbook, option: str) -> None:
    overrides = (f"p13={option}",)
    table = handbook.index(*overrides).chunks
    wider = []
    for text in ("jobs in a queue", "restoring a backup", "how do programs prove their identity"):
        trail = handbook.trail(text, *overrides)
        children, parents = trail["calibration"].fused.chunks, trail["p13.expand"].fused.chunks
        assert (children < table.n_retrievable).all()
        assert len(set(parents.tolist())) == len(parents)
        for parent in parents:
            held = [child for child in children if parent in (child, table.parent[child])]
            assert held
            for child in held:
                (start, end), (outer_start, outer_end) = table.span(child), table.span(parent)
                assert table.docno(child) == table.docno(parent)
                assert outer_start <= start < end <= outer_end
        wider += [len(table.text(p)) / len(table.text(c)) for p, c in zip(parents[:1], children[:1], strict=True)]
    assert np.mean(wider) > 1


def test_phase_parent_has_its_best_childs_score_and_place(handbook) -> None:
    trail = handbook.trail("jobs in a queue", "p13=on")
    table = handbook.index("p13=on").chunks
    before, after = trail["calibration"].fused, trail["p13.expand"].fused
    expected: dict[int, float] = {}
    for child, score in zip(before.chunks.tolist(), before.scores.tolist(), strict=True):
        expected.setdefault(int(table.parent[child]) if table.parent[child] >= 0 else child, score)
    assert dict(zip(after.chunks.tolist(), after.scores.tolist(), strict=True)) == expected


def test_phase_without_p13_no_chunk_has_a_parent(handbook) -> None:
    assert (handbook.index().chunks.parent == -1).all()


@pytest.mark.parametrize("preset", [PHASE1, PHASE2, PHASE3, PHASE4, "+exp=all"])
def test_phase_order_of_every_phase_and_its_invariants(handbook, preset: str) -> None:
    names = [name for name, _ in composed(preset).pipeline]
    later = [name for name in ORDER if name in names]
    assert names[names.index("calibration") :] == later
    for text in ("jobs in a queue", "getAuthToken", "auth", "zzz qqq"):
        ranking = handbook.state(text, preset, "cut.top_n=5").fused
        assert len(ranking) <= 5
        assert np.all((ranking.scores >= 0) & (ranking.scores <= 1))
        assert np.all(np.diff(ranking.scores) <= 0)
        assert len(set(ranking.chunks.tolist())) == len(ranking)


def test_phases_turn_on_what_the_seeds_list() -> None:
    def on(preset: str) -> set[str]:
        config = composed(preset).config
        switched = {f"p{n}" for n in (1, 3, 5, 6, 7, 10, 11, 12) if config[f"p{n}"]}
        switched |= {"p2"} if config["p2"]["headings"] else set()
        switched |= {p for p in ("p4", "p9") if config[p]["fields"]}
        return (
            switched | ({"p8"} if config["p8"]["limit"] else set()) | ({"p13"} if config["p13"]["chunking"] else set())
        )

    assert on("+exp=baseline") == set()
    assert on(PHASE1) == {"p2", "p4", "p8", "p9", "p10"}
    assert on(PHASE2) == on(PHASE1) | {"p1", "p6"}
    assert on(PHASE3) == on(PHASE2) | {"p3", "p7"}
    assert on(PHASE4) == on(PHASE3) | {"p11", "p12", "p13"}
    assert on("+exp=all") == {f"p{n}" for n in range(1, 14)}


VALUES_OF_THE_SEEDS = [
    # preset, key, value
    ("phase1", "p4.fields", {"title": 3.0, "headers": 2.5, "tags": 2.0}),
    ("phase1", "p10.threshold", 0.3),
    ("phase1", "index.lexical.analyzer", "english"),
    ("phase2", "p6.headings", False),
    ("phase2", "p6.tail", "drop"),
    ("phase2", "p6.max_length", 512),
    ("phase3", "p3.signals", "seed"),
    ("phase3", "p7.route", "always"),
    ("phase3", "p7.min_match", 0),
    ("phase4", "p11.scale", "score"),
    ("phase4", "p8.limit.max_per_doc", 2),
    ("all", "p5.function_words", True),
    ("ragdocs", "lexical.fields", {"content": 1.0, "aliases": 1.0, "tags": 1.0}),
    ("ragdocs", "graph.seeds", 1000),
    ("ragdocs", "graph.new_only", False),
    ("ragdocs", "graph.share", 1.0),
    ("ragdocs", "index.lexical.analyzer", "standard"),
    ("ragdocs_phase1", "p10.threshold", 0.3),
    ("ragdocs_phase2", "p6.tail", "drop"),
    ("ragdocs_phase3", "p7.route", "always"),
    ("ragdocs_phase4", "p11.scale", "score"),
    ("ragdocs_full", "community.include_seeds", False),
    ("ragdocs_full", "dynamic_weights.measure", "variance"),
    ("ragdocs_full", "dynamic_weights.threshold", 0.1),
    ("librarian_hybrid", "index.encoder.name", "all-MiniLM-L6-v2"),
    ("librarian_keyword", "lexical.index.unit", "document"),
    ("librarian_rerank", "keywords.depth", 50),
    ("librarian_rerank", "keywords.as_typed", True),
    ("librarian_hybrid", "modes.rerank.as_typed", True),
    ("lexical_v3", "cut.top_n", 30),
]


@pytest.mark.parametrize(("preset", "key", "value"), VALUES_OF_THE_SEEDS)
def test_phase_presets_have_the_values_of_the_seeds(preset: str, key: str, value: object) -> None:
    assert reduce(getitem, key.split("."), composed(f"+exp={preset}").config) == value


def test_phase_limit_per_document_follows_mmr_or_is_its_alternative() -> None:
    """Seed 003 has both, seed 001 MMR or a limit; equal texts are dropped always in both."""
    both, either = (dict(composed(f"+exp={preset}").pipeline) for preset in ("phase4", "ragdocs_full"))
    assert list(both).index("p11") < list(both).index("p8.limit") and "p8.limit" not in either
    assert {"p11", "p8.content_hash"} <= set(both) & set(either)


@pytest.mark.slow
def test_phase_real_system_is_the_ground_of_its_phases() -> None:
    # seed 000, section 2, and seed 001: what the system does before any proposal; the proposals of a phase are the same
    for phase in ("", *(f"_phase{n}" for n in (1, 2, 3, 4)), "_general", "_api", "_notes", "_research"):
        settings = composed(f"+exp=ragdocs{phase}")
        stages = dict(settings.pipeline)
        lexical = stages["lexical"]
        assert (lexical.k1, lexical.b, settings.index.lexical.analyzer) == (1.2, 0.75, "standard")
        assert {"content", "aliases", "tags"} <= set(lexical.fields)
        assert (stages["graph"].factor, stages["graph"].hops, stages["graph"].new_only) == (0.5, 1, False)
        assert "recency" in stages
        if phase.startswith("_phase"):
            plain = {name for name, _ in composed(f"+exp={phase[1:]}").pipeline}
            # seed 001, "Processing Pipeline": MMR or the limit per document
            assert set(stages) == (plain | {"graph", "recency"}) - ({"p8.limit"} if "p11" in stages else set())
            assert "p6" not in stages or (stages["p6"].max_length, stages["p6"].tail) == (512, "drop")


@pytest.mark.parametrize(
    ("profile", "weights", "bias"),
    [
        ("general", {"dense": 1.0, "lexical": 1.0}, 0.5),
        ("api", {"dense": 0.8, "lexical": 1.5}, 0.3),
        ("notes", {"dense": 1.3, "lexical": 0.7}, 0.8),
        ("research", {"dense": 1.5, "lexical": 0.5}, 0.0),
    ],
)
def test_phase_profiles_recommended_by_seed_001(profile: str, weights: dict[str, float], bias: float) -> None:
    stages = dict(composed(f"+exp=ragdocs_{profile}").pipeline)
    assert {source: stages["fuse"].weights[source] for source in weights} == weights
    assert stages["recency"].bias == bias


# The other strategies of seed 001 -------------------------------------------------------------------------------------


def test_phase_linked_document_is_found_without_the_words(handbook) -> None:
    # deployment links to configuration; "blue-green" stands only in the former
    plain = handbook.state("blue-green", "dense=null", "lexical.depth=5")
    linked = handbook.state("blue-green", "dense=null", "lexical.depth=5", "graph=on", "graph.share=0.8")
    table = handbook.index().chunks
    before, after = ({table.docno(chunk) for chunk in item.fused.chunks} for item in (plain, linked))
    assert before == {"deployment"}
    assert after == {"deployment", "configuration", "security"}
    assert table.docno(linked.fused.chunks[0]) == "deployment"


def test_phase_hyde_finds_what_the_hypothesis_describes(handbook) -> None:
    from ragbench.base.types import Query

    settings = composed("hyde=on", "lexical=null")
    query = Query(
        "q", "What do I have to do next?", "Start the new version beside the old one and move the load balancer over."
    )
    first = answer(query, settings.pipeline, handbook.index("hyde=on", "lexical=null"), 10).hits[0]
    assert first.docno == "deployment"
    assert handbook.docnos(query.text, "lexical=null")[0] != "deployment"


# What cannot be ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("overrides", "message"),
    rows("acceptance_phases", "phase_conflicts_are_refused_at_composition"),
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_phase_conflicts_are_refused_at_composition(overrides: list[str], message: str) -> None:
    with pytest.raises(RagbenchError, match=message) as caught:
        composition.compose(overrides)
    assert "\n" not in str(caught.value)


def test_phase_language_the_collection_lacks_is_refused_with_those_it_has(handbook) -> None:
    with pytest.raises(ConfigError, check=naming("p7.language")):
        handbook.hits("x", "p7=on", "p7.language=rust")
