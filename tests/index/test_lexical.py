"""BM25F against the formula in plain Python, ties, masks, explanations, and every way an artefact can be bad."""

import math
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from ragbench.base.types import ConfigError, IndexError_
from ragbench.index import jvm, lexical
from ragbench.index.lexical import Bm25F, LexicalIndex, LexicalSpec, build_lexical, merge_lexical
from tests.naming import naming

WORDS = [f"{a}{b}{c}o" for a in "bdfgk" for b in "aeiu" for c in "lmrtz"]  # a hundred, none of which is stemmed
FIELDS = (("content", 1.0), ("title", 3.0), ("headers", 2.5), ("tags", 2.0))
SPEC = LexicalSpec(tuple(name for name, _ in FIELDS))
SCORING = Bm25F(FIELDS)
Row = Mapping[str, str]


def stored_length(length: int) -> int:
    """What is left of a length after Lucene's SmallFloat.intToByte4 and back: four significant bits above 24."""
    rest = length - 24
    if rest < 16:
        return length
    cut = rest.bit_length() - 4
    return 24 + (rest >> cut << cut)


def bm25f(rows: Sequence[Row], spec: Bm25F, query: str) -> list[float]:
    """Robertson's formula with Lucene's idf and lengths, for texts whose words are their terms."""
    weights = dict(spec.weights)
    texts = [{name: row.get(name, "").split() for name in weights} for row in rows]
    filled = max(sum(bool(text[name]) for text in texts) for name in weights)
    total = 0.0
    for name in sorted(weights):
        total += weights[name] * sum(len(text[name]) for text in texts)
        if len(weights) > 1:
            total = math.floor(total)  # Lucene cuts the sum at each field
    mean = total / filled
    scores = [0.0] * len(rows)
    for term, count in Counter(query.split()).items():
        holders = max(sum(term in text[name] for text in texts) for name in weights)
        idf = math.log(1 + (filled - holders + 0.5) / (holders + 0.5))
        for number, text in enumerate(texts):
            tf = sum(weight * text[name].count(term) for name, weight in weights.items())
            length = sum(weight * stored_length(len(text[name])) for name, weight in weights.items())
            if len(weights) > 1:
                length = stored_length(math.floor(length + 0.5))
            scores[number] += count * idf * tf / (tf + spec.k1 * (1 - spec.b + spec.b * length / mean)) if tf else 0
    return scores


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    chance = np.random.default_rng(3)
    odds = 1 / (5 + np.arange(len(WORDS)))

    def words(n: int) -> str:
        return " ".join(chance.choice(WORDS, size=n, p=odds / odds.sum()).tolist())

    lengths = {"content": 120, "title": 5, "headers": 12, "tags": 4}
    rows = [{name: words(int(chance.integers(0, n))) for name, n in lengths.items()} for _ in range(400)]
    for copy in range(200, 240):
        rows[copy] = rows[7]  # forty copies of one chunk: ties
    return rows


@pytest.fixture(scope="module")
def folder(rows: list[Row], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lexical")
    build_lexical(folder, SPEC, rows)
    return folder


@pytest.fixture(scope="module")
def index(folder: Path) -> LexicalIndex:
    return LexicalIndex(folder, SPEC, SCORING)


@pytest.fixture(scope="module")
def queries() -> list[str]:
    chance = np.random.default_rng(4)
    return [" ".join(chance.choice(WORDS, size=size).tolist()) for size in (1, 2, 3, 5, 8, 13)]


def built(folder: Path, rows: Sequence[Row | None], scoring: Bm25F | None = None) -> LexicalIndex:
    scoring = scoring or Bm25F()
    spec = LexicalSpec(tuple(name for name, _ in scoring.weights))
    build_lexical(folder, spec, rows)
    return LexicalIndex(folder, spec, scoring)


# scores ---------------------------------------------------------------------------------------------------------


def test_bm25_worked_by_hand(tmp_path: Path) -> None:
    index = built(tmp_path, [{"content": "harbour lamp"}, {"content": "harbour harbour ship"}])
    ranking = index.search("harbour", 10)
    # idf = ln(1 + 0.5 / 2.5) = 0.182322; mean length 2.5; k1 = 0.9, b = 0.4
    # chunk 1: 2 / (2 + 0.9 * (0.6 + 0.4 * 3 / 2.5)) = 2 / 2.972
    # chunk 0: 1 / (1 + 0.9 * (0.6 + 0.4 * 2 / 2.5)) = 1 / 1.828
    assert ranking.chunks.tolist() == [1, 0]
    np.testing.assert_allclose(ranking.scores, [0.182322 * 2 / 2.972, 0.182322 / 1.828], rtol=1e-5)


def test_bm25f_worked_by_hand(tmp_path: Path) -> None:
    spec = Bm25F((("content", 1.0), ("title", 3.0)))
    rows = [{"content": "ship lamp", "title": "harbour"}, {"content": "harbour harbour ship", "title": "lamp"}]
    ranking = built(tmp_path, rows, spec).search("harbour", 10)
    # The title counts three times, so chunk 0 has tf 3, length 2 + 3 = 5 and chunk 1 has tf 2, length 3 + 3 = 6.
    # idf = ln(1 + (2 - 1 + 0.5) / (1 + 0.5)) = ln 2, the term stands in one chunk per field; mean length 5.5
    first = math.log(2) * 3 / (3 + 0.9 * (0.6 + 0.4 * 5 / 5.5))
    second = math.log(2) * 2 / (2 + 0.9 * (0.6 + 0.4 * 6 / 5.5))
    assert ranking.chunks.tolist() == [0, 1]
    np.testing.assert_allclose(ranking.scores, [first, second], rtol=1e-6)


@pytest.mark.parametrize(
    "spec",
    [
        Bm25F(FIELDS),
        Bm25F(FIELDS, k1=1.2, b=0.75),
        Bm25F(FIELDS, k1=0.0),
        Bm25F((("content", 1.0), ("title", 1.0)), b=1.0),
        Bm25F((("content", 1.0),)),
        Bm25F((("content", 4.0),)),
        Bm25F((("content", 0.5),)),
    ],
    ids=str,
)
def test_lexical_scores_are_those_of_the_formula(
    tmp_path: Path, rows: list[Row], queries: list[str], spec: Bm25F
) -> None:
    index = built(tmp_path, rows, spec)
    for query in queries:
        expected = np.array(bm25f(rows, spec, query))
        ranking = index.search(query, len(rows))
        assert len(ranking) == np.count_nonzero(expected)
        np.testing.assert_allclose(ranking.scores, expected[ranking.chunks], rtol=2e-6)


def test_lexical_weights_below_one_are_scaled_with_k1(tmp_path: Path, queries: list[str]) -> None:
    """Exact while weighted lengths stay below 40 terms, where Lucene keeps them exactly."""
    rows = [{"content": " ".join(WORDS[n : n + 6]), "title": WORDS[n // 2]} for n in range(60)]
    spec = Bm25F((("content", 0.5), ("title", 1.5)))
    index = built(tmp_path, rows, spec)
    for query in queries:
        expected = np.array(bm25f(rows, spec, query))
        ranking = index.search(query, len(rows))
        # Lucene rounds the weighted length to a whole number; doubled weights keep it whole, halves would not.
        doubled = bm25f(rows, Bm25F((("content", 1.0), ("title", 3.0)), k1=1.8), query)
        np.testing.assert_allclose(ranking.scores, np.array(doubled)[ranking.chunks], rtol=2e-6)
        np.testing.assert_allclose(ranking.scores, expected[ranking.chunks], rtol=0.03)


def test_lexical_scores_leave_java_exactly(index: LexicalIndex, queries: list[str]) -> None:
    for query in queries:
        with jvm.LOCK:
            hits = index._searcher.search(lexical._any_of(Counter(index.terms(query)), index._clause, 1), 100).scoreDocs
            expected = [(hit.doc, hit.score) for hit in hits]
        ranking = index.search(query, 100)
        assert list(zip(ranking.chunks.tolist(), ranking.scores.tolist(), strict=True)) == expected


def test_lexical_repeated_term_counts_as_often_as_it_occurs(index: LexicalIndex) -> None:
    once, thrice = (index.search(text, 50) for text in (WORDS[3], " ".join([WORDS[3]] * 3)))
    assert once.chunks.tolist() == thrice.chunks.tolist()
    np.testing.assert_allclose(thrice.scores, 3 * once.scores, rtol=1e-6)


def test_lexical_terms_have_factors(index: LexicalIndex) -> None:
    whole = index.search(f"{WORDS[3]} {WORDS[3]} {WORDS[4]}", 50)
    assert whole == index.search_terms({WORDS[3]: 2.0, WORDS[4]: 1.0}, 50)
    assert len(index.search_terms({}, 50)) == 0


def test_lexical_hits_hold_the_least_number_of_terms(tmp_path: Path) -> None:
    index = built(tmp_path, [{"content": "lamp"}, {"content": "lamp lamp sea"}, {"content": "lamp sea wind"}])
    weights = {"lamp": 1.0, "sea": 1.0, "wind": 2.0}
    assert [sorted(index.search_terms(weights, 5, at_least=n).chunks.tolist()) for n in (1, 2, 3, 4)] == [
        [0, 1, 2],
        [1, 2],
        [2],
        [],
    ]


def test_lexical_field_without_a_weight_is_not_searched(folder: Path, rows: list[Row], tmp_path: Path) -> None:
    silent = LexicalIndex(folder, SPEC, SCORING).with_scoring(Bm25F((("content", 1.0),)))
    alone = built(tmp_path, rows)
    for word in WORDS[:10]:
        assert silent.search(word, 100) == alone.search(word, 100)


def test_lexical_title_outweighs_a_mention(tmp_path: Path) -> None:
    rows = [{"content": "the harbour is far from the lamp", "title": "Lamps"}, {"content": "ships", "title": "Harbour"}]
    assert built(tmp_path, rows, SCORING).search("harbours", 2).chunks.tolist() == [1, 0]


# order ----------------------------------------------------------------------------------------------------------


def test_lexical_ties_are_in_chunk_order_at_every_cut_off(index: LexicalIndex, queries: list[str]) -> None:
    for query in queries:
        full = index.search(query, 400)
        assert np.array_equal(np.lexsort((full.chunks, -full.scores)), np.arange(len(full)))
        for depth in (1, 5, 30, 47, 100):
            assert index.search(query, depth) == full.head(depth)


def test_lexical_many_segments_keep_the_order(
    rows: list[Row], queries: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    some = rows[190:250]  # forty of them are equal
    at_once = built(tmp_path / "whole", some, SCORING)
    monkeypatch.setattr(lexical, "_RAM_BUFFER_MB", 0.02)  # less than one document needs: a segment for each
    merged = built(tmp_path / "merged", some, SCORING)
    names = [path.name for path in (tmp_path / "merged").glob("*.si")]
    assert len(names) == 1 and names != ["_0.si"]
    for query in queries:
        for depth in (3, 20, 60):
            assert merged.search(query, depth) == at_once.search(query, depth)


def test_lexical_threads_get_what_one_thread_gets(index: LexicalIndex, queries: list[str]) -> None:
    expected = [index.search(query, 50) for query in queries]

    def work(_: int) -> list[object]:
        rankings = [index.search(query, 50) for query in queries]
        jvm.detach()
        return rankings

    with ThreadPoolExecutor(4) as threads:
        assert all(rankings == expected for rankings in threads.map(work, range(40)))


# what is found --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "  \n", "the of and", "!?", "unheardof", "\ud800", "\x00"])
def test_lexical_index_may_have_no_hit(index: LexicalIndex, text: str) -> None:
    assert len(index.search(text, 10)) == 0


def test_lexical_index_takes_very_long_queries(index: LexicalIndex) -> None:
    text = " ".join(f"{word}{n}" for word in WORDS for n in range(30)) + f" {WORDS[0]}"
    assert index.search(text, 20) == index.search(WORDS[0], 20)


def test_lexical_index_may_be_empty(tmp_path: Path) -> None:
    for name, rows in (("none", []), ("hidden", [None, None]), ("blank", [{"content": ""}, {}])):
        index = built(tmp_path / name, rows)
        assert len(index) == len(rows)
        assert len(index.search("harbour", 5)) == 0
        index.check()


def test_lexical_rows_without_text_are_never_hits(tmp_path: Path) -> None:
    index = built(tmp_path, [{"content": "harbour"}, None, {"content": "harbour ship"}, None])
    assert len(index) == 4
    assert sorted(index.search("harbour ship", 9).chunks.tolist()) == [0, 2]
    assert index.search("harbour", 9, np.array([False, True, True, True])).chunks.tolist() == [2]


def test_lexical_index_takes_odd_texts(tmp_path: Path) -> None:
    index = built(tmp_path, [{"content": "x" * 70_000}, {"content": "\ud800 harbour \x00 \U0001f600"}])
    assert index.search("harbour", 5).chunks.tolist() == [1]


# masks ----------------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    chunks=st.sets(st.integers(0, 399)), words=st.lists(st.sampled_from(WORDS), max_size=6), depth=st.integers(1, 60)
)
def test_lexical_mask_gives_what_is_left_of_the_whole_ranking(
    index: LexicalIndex, chunks: set[int], words: list[str], depth: int
) -> None:
    mask = np.zeros(400, dtype=bool)
    mask[list(chunks)] = True
    query = " ".join(words)
    full = index.search(query, 400)
    assert index.search(query, depth, mask) == full.keep(mask[full.chunks]).head(depth)


def test_lexical_mask_may_cover_more_chunks_than_were_indexed(index: LexicalIndex, queries: list[str]) -> None:
    mask = np.ones(500, dtype=bool)
    assert index.search(queries[2], 10, mask) == index.search(queries[2], 10)


def test_lexical_refuses_a_short_mask(index: LexicalIndex) -> None:
    with pytest.raises(IndexError_, check=naming("3 chunks", 400)):
        index.search(WORDS[0], 5, np.ones(3, dtype=bool))


def test_lexical_mask_may_exceed_the_cache_of_lucene(tmp_path: Path) -> None:
    index = built(tmp_path, [{"content": f"{WORDS[n % 7]} {WORDS[n % 11]}"} for n in range(12_000)])
    mask = np.arange(12_000) % 3 == 1
    full = index.search(WORDS[5], 12_000)
    for _ in range(12):  # Lucene keeps the mask as bits from its sixth use on
        assert index.search(WORDS[5], 200, mask) == full.keep(mask[full.chunks]).head(200)


# what can be wrong ----------------------------------------------------------------------------------------------


def test_lexical_unknown_analyzer_is_refused() -> None:
    with pytest.raises(ConfigError, check=naming("analyzer", "english", "'klingon'")):
        LexicalSpec(analyzer="klingon")


def test_lexical_refuses_a_field_that_is_not_indexed(index: LexicalIndex) -> None:
    with pytest.raises(ConfigError, check=naming("'colour'", "content, title")):
        index.with_scoring(Bm25F((("colour", 1.0),)))


def test_lexical_views_score_in_their_own_ways(index: LexicalIndex, rows: list[Row], queries: list[str]) -> None:
    ways = [
        Bm25F(FIELDS),
        Bm25F(FIELDS, k1=2.0, b=0.1),
        Bm25F((("title", 1.0),)),
        Bm25F((("content", 2.0), ("tags", 1.0))),
    ]
    for query in queries:
        for way in ways:
            expected = np.array(bm25f(rows, way, query))
            ranking = index.with_scoring(way).search(query, len(rows))
            np.testing.assert_allclose(ranking.scores, expected[ranking.chunks], rtol=2e-6)
    assert index.with_scoring(ways[1]) is index.with_scoring(Bm25F(FIELDS, k1=2.0, b=0.1))


def test_lexical_depth_must_be_positive(index: LexicalIndex) -> None:
    with pytest.raises(ConfigError, check=naming("depth", "got 0")):
        index.search(WORDS[0], 0)


def test_lexical_missing_folder_stays_missing(tmp_path: Path) -> None:
    with pytest.raises(IndexError_, check=naming(tmp_path / "none")):
        LexicalIndex(tmp_path / "none", LexicalSpec())
    assert not (tmp_path / "none").exists()
    with pytest.raises(IndexError_, check=naming(tmp_path)):
        LexicalIndex(tmp_path, LexicalSpec())


def test_lexical_another_layout_is_refused(folder: Path) -> None:
    with pytest.raises(IndexError_, check=naming("analyzer english", "analyzer code")):
        LexicalIndex(folder, replace(SPEC, analyzer="code"), SCORING)
    with pytest.raises(IndexError_, check=naming("fields content;")):
        LexicalIndex(folder, LexicalSpec(("content",)))


def test_lexical_foreign_lucene_index_is_refused(tmp_path: Path) -> None:
    with jvm.LOCK:
        directory = lexical._directory(tmp_path)
        writer = lexical._writer(directory, "english")
        writer.commit()
        writer.close()
        directory.close()
    with pytest.raises(IndexError_, check=naming(tmp_path, f"version {lexical.VERSION}")):
        LexicalIndex(tmp_path, LexicalSpec())


@pytest.mark.parametrize("version", [1, 99])
def test_lexical_index_of_another_lucene_is_refused(folder: Path, tmp_path: Path, version: int) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    (commit,) = (tmp_path / "copy").glob("segments_*")
    content = bytearray(commit.read_bytes())
    content[13:17] = version.to_bytes(4, "big")  # behind the magic number and the name of the codec
    commit.write_bytes(content)
    with pytest.raises(IndexError_, check=naming(tmp_path / "copy", "version of Lucene")):
        LexicalIndex(tmp_path / "copy", SPEC, SCORING)


@pytest.mark.parametrize("position", [0.0, 0.5, 1.0])
def test_lexical_check_notices_one_changed_byte(folder: Path, tmp_path: Path, position: float) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    for path in sorted(copy.iterdir()):
        good = path.read_bytes()
        bad = bytearray(good)
        bad[int(position * (len(bad) - 1))] ^= 0x10
        path.write_bytes(bad)
        with pytest.raises(IndexError_, match=r"delete the folder and build it again|build it first"):
            LexicalIndex(copy, SPEC, SCORING).check()
        path.write_bytes(good)
    LexicalIndex(copy, SPEC, SCORING).check()


def test_lexical_check_names_damage_after_opening(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "copy")
    index = LexicalIndex(tmp_path / "copy", SPEC, SCORING)
    index.check()
    (postings,) = (tmp_path / "copy").glob("*.doc")
    with postings.open("r+b") as stream:
        stream.seek(postings.stat().st_size // 2)
        byte = stream.read(1)[0]
        stream.seek(-1, 1)
        stream.write(bytes([byte ^ 1]))
    with pytest.raises(IndexError_, check=naming("CorruptIndexException", postings.name)):
        index.check()


def test_lexical_closed_index_says_so(folder: Path) -> None:
    index = LexicalIndex(folder, SPEC, SCORING)
    index.close()
    index.close()
    for use in (lambda: index.search(WORDS[0], 5), index.check):
        with pytest.raises(IndexError_, match="is closed; open it again"):
            use()


def test_lexical_build_that_fails_leaves_no_index(tmp_path: Path) -> None:
    def rows() -> Iterator[Row]:
        yield {"content": "harbour"}
        raise RuntimeError("the reader broke")

    with pytest.raises(RuntimeError, check=naming("the reader broke")):
        build_lexical(tmp_path, LexicalSpec(), rows())
    with pytest.raises(IndexError_, check=naming(tmp_path)):
        LexicalIndex(tmp_path, LexicalSpec())
    assert built(tmp_path, [{"content": "harbour"}]).search("harbour", 1).chunks.tolist() == [0]


def test_lexical_build_names_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(IndexError_, check=naming(tmp_path / "file", "File exists")):
        build_lexical(tmp_path / "file", LexicalSpec(), [])


def test_lexical_build_leaves_only_files_of_lucene(folder: Path) -> None:
    assert not (folder / "write.lock").exists()
    assert {path.name.partition(".")[0].partition("_")[0] for path in folder.iterdir()} == {"", "segments"}


def test_lexical_index_keeps_notes(tmp_path: Path) -> None:
    build_lexical(tmp_path, LexicalSpec(), [], notes={"colour": "blau\u00e4"})
    assert LexicalIndex(tmp_path, LexicalSpec()).notes["colour"] == "blau\u00e4"


def test_lexical_merge_keeps_the_order_of_segments(tmp_path: Path) -> None:
    spec = LexicalSpec(("content",))
    rows = [{"content": f"lamp number{n} {'mast ' * (n % 4)}"} for n in range(30)]
    build_lexical(tmp_path / "whole", spec, rows)
    for start in (0, 10, 20):
        build_lexical(tmp_path / f"{start}", spec, rows[start : start + 10], number=start)
    merge_lexical(tmp_path / "merged", spec, [tmp_path / f"{start}" for start in (0, 10, 20)])
    whole, merged = (LexicalIndex(tmp_path / name, spec) for name in ("whole", "merged"))
    for text in ("lamp", "mast", "number17 mast"):
        hits = whole.search(text, 30)
        assert len(hits) and merged.search(text, 30) == hits
