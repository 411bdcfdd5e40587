"""Pipelines: checked when built, read as a sentence, searched."""

import pytest

from ragbench.base.types import ConfigError, Query
from ragbench.models.chat import ChatSpec
from ragbench.models.resolve import CrossEncoderSpec
from ragbench.search.engine.answer import answer
from ragbench.search.engine.pipeline import Pipeline, clean, start
from ragbench.search.stages.calibrate import Calibrate
from ragbench.search.stages.cut import Cut
from ragbench.search.stages.expand import SupposeAnswer
from ragbench.search.stages.fuse import Fuse
from ragbench.search.stages.rerank import Rerank
from ragbench.search.stages.retrieve import RetrieveDense, RetrieveLexical

HYBRID = (
    ("dense", RetrieveDense(depth=20)),
    ("lexical", RetrieveLexical(depth=20)),
    ("fuse", Fuse()),
    ("calibration", Calibrate()),
    ("cut", Cut(top_n=10)),
)


def test_pipeline_names_the_models_that_its_stages_use(index) -> None:
    pipeline = Pipeline((*HYBRID[:4], ("p6", Rerank(depth=3, max_length=64)), HYBRID[4]))
    (spec,) = pipeline.models
    assert spec == CrossEncoderSpec("ms-marco-MiniLM-L-12-v2", 64)
    assert pipeline.digests(index) == {
        "bge-small-en-v1.5": index.encoder.digest,
        "ms-marco-MiniLM-L-12-v2": index.models.cross_encoder(spec).digest,
    }
    assert Pipeline((HYBRID[1], HYBRID[2])).digests(index) == {}


def test_pipeline_has_the_model_of_an_endpoint() -> None:
    asking = SupposeAnswer(endpoint="http://127.0.0.1:9", model="m")
    assert asking.models == (ChatSpec("http://127.0.0.1:9", "m"),)
    assert SupposeAnswer().models == Fuse().models == ()


def test_pipeline_reads_as_a_sentence() -> None:
    assert repr(Pipeline(HYBRID)) == (
        "retrieve 20 by vector similarity, then retrieve 20 by BM25, then fuse by reciprocal rank (k 60), "
        "then calibrate (confidence 0.5 at score 0.035), then keep 10."
    )


@pytest.mark.parametrize(
    ("order", "reason"),
    [
        ([2, 0, 1, 3, 4], "stage 'fuse' needs a ranking, which no stage before it provides"),
        ([0, 3, 2, 4], "stage 'calibration' needs a fused ranking"),
        ([0, 2, 1, 3, 4], "stage 'lexical' cannot follow 'fuse': its ranking would come too late to be fused"),
        ([0, 1], "the pipeline has no fusion"),
        ([], "the pipeline retrieves nothing"),
    ],
)
def test_pipeline_refuses_a_senseless_order_with_the_reason(order: list[int], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Pipeline(tuple(HYBRID[number] for number in order))


def test_pipeline_finds_what_was_asked_for(index) -> None:
    hits = answer("which error says that the certificate was not renewed", Pipeline(HYBRID), index, 3).hits
    assert [hit.rank for hit in hits] == [1, 2, 3]
    assert "LNT-301" in hits[0].text
    assert hits[0].score >= hits[1].score >= hits[2].score
    assert hits[0].chunk_id.startswith(f"{hits[0].docno}#")


def test_pipeline_needs_are_the_union_of_the_stages(index) -> None:
    assert Pipeline(HYBRID).needs == {"dense", "encoder", "lexical"}


def test_pipeline_fingerprint_changes_with_a_parameter() -> None:
    other = (*HYBRID[:2], ("fuse", Fuse(k=20)), *HYBRID[3:])
    assert Pipeline(HYBRID).fingerprint != Pipeline(other).fingerprint


def test_query_loses_control_characters() -> None:
    assert clean("\x00 how\tdo\nI \x07") == "how do I"
    assert len(clean("x" * 20_000)) == 10_000


def test_pipeline_start_notes_a_query_that_is_cut() -> None:
    whole, cut = start([Query("q1", "lamp"), Query("q2", "x" * 10_001)])
    assert (whole.notes, len(cut.query.text)) == ((), 10_000)
    assert cut.notes == ("only the first 10,000 characters of the query are used",)
