"""Requests to search engines: read by their own clients where these read them, key by key where they do not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ragbench.base.errors import BundleError, ConfigError
from ragbench.base.types import Query, QueryState, Ranking
from ragbench.commands.export import DESCRIPTION
from ragbench.extras.engines import hybrid
from ragbench.extras.engines.files import elasticsearch, opensearch, qdrant
from ragbench.extras.engines.opened import ALIASED
from ragbench.index.analyzers import analyze, analyzer
from ragbench.search.stages.fuse import Fuse

MODULES = {"opensearch": opensearch, "elasticsearch": elasticsearch, "qdrant": qdrant}
PRESETS = ("baseline", "recommended", "phase4", "lexical_v3", "librarian_rerank", "hyde")
HYBRID = ("calibration=off", "index.encoder.instruction=true")
FIELDS = "lexical.fields={title: 3, content: 1, tags: 0.5}"
CONVEX = ("fuse.method=convex", "fuse.weights={dense: 0.6, lexical: 0.2}")


@pytest.fixture
def told(composed):
    """The requests of a format by their path, and what it cannot say."""

    def run(format: str, *overrides: str) -> tuple[dict[str, Any], list[str]]:
        text, missing = MODULES[format].render(composed(*overrides), ["about"])
        found = json.loads(text)
        assert found["about"] == ["about"]
        assert found["not_expressed"] == missing
        return {
            "before": found["before_indexing"],
            **{each["path"]: each["body"] for each in found["requests"]},
        }, missing

    return run


def filled(body: Any, vector: list[float]) -> Any:
    return json.loads(json.dumps(body).replace('"{vector}"', json.dumps(vector)).replace("{query}", "rotate a key"))


def test_the_help_names_every_engine() -> None:
    missing = {name for name in ("sqlite", "postgres", "lancedb", *ALIASED) if name not in DESCRIPTION.casefold()}
    assert not missing


@pytest.mark.parametrize("format", MODULES)
@pytest.mark.parametrize("preset", PRESETS)
def test_every_preset_is_written_or_refused(told, composed, format: str, preset: str) -> None:
    try:
        _, missing = told(format, f"+exp={preset}")
    except ConfigError as error:
        assert "export another arm, or a bundle" in str(error)
        return
    stages = {name for name, _ in composed(f"+exp={preset}").pipeline} - {"dense", "lexical", "fuse", "cut"}
    if "document" in json.dumps(json.loads(MODULES[format].render(composed(f"+exp={preset}"), [])[0])["requests"]):
        stages.discard("documents")  # a third query
    unsaid = {name for name in stages if not any(sentence.startswith(f"{name} ") for sentence in missing)}
    assert not unsaid


def test_opensearch_has_an_index_a_pipeline_and_a_hybrid_query(told) -> None:
    requests, missing = told("opensearch", *HYBRID, FIELDS, "lexical.k1=1.2", "lexical.b=0.75")
    assert missing == []
    index = requests["/ragbench"]
    assert index["settings"]["index"]["similarity"]["default"] == {"type": "BM25", "k1": 2.4, "b": 0.75}
    assert index["mappings"]["properties"]["vector"] == {"type": "knn_vector", "dimension": 384}
    assert index["mappings"]["properties"]["title"] == {"type": "text", "analyzer": "english"}
    assert requests["/_search/pipeline/ragbench"] == {
        "phase_results_processors": [
            {
                "score-ranker-processor": {
                    "combination": {"technique": "rrf", "rank_constant": 60, "parameters": {"weights": [0.5, 0.5]}}
                }
            }
        ]
    }
    query = requests["/ragbench/_search?search_pipeline=ragbench"]["query"]["hybrid"]
    assert query["pagination_depth"] == 100
    assert query["queries"][0]["script_score"]["script"]["params"]["space_type"] == "cosinesimil"
    # A weight below 1 is refused there, so all are doubled, and k1 with them.
    assert query["queries"][1]["combined_fields"]["fields"] == ["content^2", "title^6", "tags^1"]
    assert requests["before"]["vectors"]["query_prefix"].startswith("Represent this sentence")


def test_opensearch_fuses_scores(told) -> None:
    for norm, parameters in (
        ("min_max", {}),
        ("theoretical", {"lower_bounds": [{"mode": "apply", "min_score": 0}] * 2}),
    ):
        requests, _ = told("opensearch", *HYBRID, *CONVEX, f"fuse.norm={norm}", "fuse.missing=nothing")
        (processor,) = requests["/_search/pipeline/ragbench"]["phase_results_processors"]
        normalization = processor["normalization-processor"]["normalization"]
        assert normalization == {"technique": "min_max", **({"parameters": parameters} if parameters else {})}
        combination = processor["normalization-processor"]["combination"]
        assert combination == {"technique": "arithmetic_mean", "parameters": {"weights": [0.75, 0.25]}}


def test_opensearch_reads_what_its_schemas_hold(told) -> None:
    common = pytest.importorskip("opensearch.protobufs.schemas.common_pb2", reason="install opensearch-py")
    requests, _ = told("opensearch", *HYBRID, "index.dense.kind=hnsw")
    known = {field.name for field in common.HybridQuery.DESCRIPTOR.fields}
    query = requests["/ragbench/_search?search_pipeline=ragbench"]["query"]["hybrid"]
    assert set(query) <= known
    knn = query["queries"][0]["knn"]["vector"]
    assert set(knn) <= {field.name for field in common.KnnQuery.DESCRIPTOR.fields}
    assert set(query["queries"][1]["match"]["content"]) <= {field.name for field in common.MatchQuery.DESCRIPTOR.fields}


def test_opensearch_is_sent_what_its_client_sends(told) -> None:
    opensearchpy = pytest.importorskip("opensearchpy", reason="install opensearch-py")
    sent = []

    class Recorder(opensearchpy.Connection):
        def perform_request(self, method, url, params=None, body=None, **_: Any):
            sent.append((method, url, dict(params or {}), json.loads(body)))
            return 200, {"content-type": "application/json"}, "{}"

    requests, _ = told("opensearch", *HYBRID)
    client = opensearchpy.OpenSearch("http://localhost:9200", connection_class=Recorder)
    client.indices.create(index="ragbench", body=requests["/ragbench"])
    client.search_pipeline.put(id="ragbench", body=requests["/_search/pipeline/ragbench"])
    body = requests["/ragbench/_search?search_pipeline=ragbench"]
    client.search(index="ragbench", body=body, search_pipeline="ragbench")
    assert [each[:2] for each in sent] == [
        ("PUT", "/ragbench"),
        ("PUT", "/_search/pipeline/ragbench"),
        ("POST", "/ragbench/_search"),
    ]
    assert sent[2][2]["search_pipeline"] in ("ragbench", b"ragbench")


def test_elasticsearch_has_an_index_and_retrievers(told, composed) -> None:
    requests, missing = told("elasticsearch", *HYBRID, FIELDS, "fuse.weights={dense: 2}", "lexical.depth=50")
    assert missing[0] == "lexical.depth = 50: Elasticsearch fuses the first 100 of every source"
    assert "subscription" in missing[1] and len(missing) == 2
    vector = requests["/ragbench"]["mappings"]["properties"]["vector"]
    assert vector["index_options"] == {"type": "flat"}
    retriever = requests["/ragbench/_search"]["retriever"]["rrf"]
    assert {key: retriever[key] for key in ("rank_constant", "rank_window_size")} == {
        "rank_constant": 60,
        "rank_window_size": 100,
    }
    assert [each["weight"] for each in retriever["retrievers"]] == [2.0, 1.0]
    text, _ = elasticsearch.render(composed(*HYBRID, "fuse.weights={dense: 2}"), [])
    basic = json.loads(text)["basic_licence"]
    assert basic["fusion"] == {"method": "rrf", "k": 60.0, "norm": "min_max", "weights": {"dense": 2, "lexical": 1.0}}
    assert [list(body) for body in basic["searches"].values()] == [
        ["size", "_source", "knn"],
        ["size", "_source", "query"],
    ]
    linear, _ = told("elasticsearch", *HYBRID, *CONVEX)
    assert [each["normalizer"] for each in linear["/ragbench/_search"]["retriever"]["linear"]["retrievers"]] == [
        "minmax",
        "minmax",
    ]


def test_elasticsearch_s_own_language_reads_the_mapping_and_the_queries(told) -> None:
    dsl = pytest.importorskip("elasticsearch.dsl", reason="install elasticsearch")
    requests, _ = told("elasticsearch", *HYBRID, FIELDS, "index.dense.kind=hnsw", "index.lexical.analyzer=technical")
    mapping = dsl.Mapping()
    for name, field in requests["/ragbench"]["mappings"]["properties"].items():
        mapping.field(name, field)
    assert mapping.to_dict()["properties"]["vector"]["index_options"]["type"] == "hnsw"
    dense, words = (
        each["retriever"] for each in filled(requests["/ragbench/_search"], [0.0])["retriever"]["rrf"]["retrievers"]
    )
    assert dsl.Q("knn", **dense["knn"]).to_dict() == {"knn": dense["knn"]}
    assert dsl.Q(words["standard"]["query"]).to_dict() == words["standard"]["query"]


@pytest.mark.parametrize("name", ["technical", "code", "standard", "english"])
def test_an_analyzer_of_ours_is_that_of_the_index(name: str) -> None:
    """Lucene builds the analyzer from the parts the file names, and it gives our terms."""
    from ragbench.extras.engines.files.lucene import analysis
    from ragbench.index.jvm import java

    used, defined = analysis(name)
    if name == "english":
        assert (used, defined) == ("english", {})
        return
    if name == "standard":
        assert defined["analyzer"][used] == {"type": "standard", "stopwords": "_english_"}
        return
    builder = java("org.apache.lucene.analysis.custom.CustomAnalyzer").builder()
    tokens = defined["tokenizer"]["ragbench"]
    builder.withTokenizer("pattern", "pattern", tokens["pattern"], "group", str(tokens["group"]))
    factories = {
        "length": lambda f: ("length", "min", str(f["min"]), "max", str(f["max"])),
        "stemmer": lambda f: ("englishPossessive",),
        "pattern_capture": lambda f: (
            *("patternCaptureGroup", "pattern", f["patterns"][0]),
            *("preserve_original", str(f["preserve_original"]).lower()),
        ),
        "lowercase": lambda f: ("lowercase",),
        "stop": lambda f: ("stop",),
        "keyword_marker": lambda f: ("keywordMarker", "pattern", f["keywords_pattern"]),
        "porter_stem": lambda f: ("porterStem",),
        "remove_duplicates": lambda f: ("removeDuplicates",),
    }
    for each in defined["analyzer"][used]["filter"]:
        options = defined["filter"][each]
        builder.addTokenFilter(*factories[options["type"]](options))
    text = "C++ agents' getUserById of Node.js v3.1.2, --max-lag and the HTTPResponseErrors"
    assert analyze(builder.build(), text) == analyze(analyzer(name), text)


def test_qdrant_s_client_reads_and_answers_as_we_do(told) -> None:
    """The same two rankings, fused by Qdrant's client and by us."""
    client_module = pytest.importorskip("qdrant_client", reason="install qdrant-client")
    models = client_module.models
    requests, missing = told("qdrant", *HYBRID)
    assert missing == ["index.lexical.analyzer = english: Qdrant/bm25 has its own words and stems"]
    collection = requests["/collections/ragbench"]
    models.CreateCollection(**collection)
    query = models.QueryRequest(**filled(requests["/collections/ragbench/points/query"], [1.0, 0.0]))
    assert query.query.rrf.k == 61
    assert query.prefetch[0].params.exact is True

    client = client_module.QdrantClient(":memory:")
    dense = models.VectorParams(size=2, distance="Cosine")
    sparse = models.SparseVectorParams()
    client.create_collection("ragbench", {"dense": dense}, {"lexical": sparse})
    near, words = [(1.0, 0.1), (1.0, 0.5), (1.0, 0.9)], [1.0, 3.0, 2.0]
    client.upsert(
        "ragbench",
        [
            models.PointStruct(
                id=number,
                vector={
                    "dense": list(near[number]),
                    "lexical": models.SparseVector(indices=[0], values=[words[number]]),
                },
            )
            for number in range(3)
        ],
    )
    query.prefetch[1].query = models.SparseVector(indices=[0], values=[1.0])
    found = client.query_points("ragbench", prefetch=query.prefetch, query=query.query, limit=query.limit).points
    rankings = {"dense": Ranking.of([0, 1, 2], [0.9, 0.8, 0.7]), "lexical": Ranking.of([1, 2, 0], [3.0, 2.0, 1.0])}
    ours = Fuse().fuse(QueryState(Query("q", "a"), rankings=rankings), None)
    assert [(point.id, pytest.approx(point.score)) for point in found] == [
        (chunk, float(score)) for chunk, score in zip(ours.chunks.tolist(), ours.scores, strict=True)
    ]


@pytest.mark.parametrize(
    ("format", "overrides", "said"),
    [
        ("opensearch", ("fuse.method=dbsf",), "cannot fuse by dbsf, only by convex/min_max, convex/theoretical, rrf"),
        ("opensearch", ("fuse.method=convex", "fuse.norm=z"), "cannot fuse by convex/z"),
        ("elasticsearch", ("fuse.method=convex", "fuse.norm=theoretical"), "cannot fuse by convex/theoretical"),
        ("qdrant", ("fuse.method=convex",), "cannot fuse by convex/min_max, only by dbsf, rrf"),
        ("qdrant", ("fuse.method=dbsf", "fuse.weights={dense: 2}"), "cannot fuse by dbsf with different weights"),
    ],
)
def test_what_an_engine_cannot_do_at_all_is_refused(told, format: str, overrides: tuple[str, ...], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        told(format, *HYBRID, *overrides)


def test_one_source_needs_no_fusion(told) -> None:
    for format, path in (("opensearch", "/ragbench/_search"), ("elasticsearch", "/ragbench/_search")):
        requests, _ = told(format, "+exp=lexical_only", "calibration=off")
        assert "hybrid" not in json.dumps(requests[path])
        assert '"match"' in json.dumps(requests[path])
    requests, _ = told("qdrant", "+exp=dense_only", "calibration=off")
    assert requests["/collections/ragbench/points/query"]["using"] == "dense"


def test_the_file_is_written_beside_the_run(finished, tmp_path: Path) -> None:
    from ragbench.export.write import write

    written = write(finished.folder, tmp_path / "opensearch.json", arm="baseline", format="opensearch")
    assert json.loads(written.out.read_text())["requests"]
    assert any(sentence.startswith("calibration (") for sentence in written.missing)


@pytest.mark.parametrize(
    ("format", "fields", "said"),
    [("opensearch", FIELDS, False), ("opensearch", "p1=off", True), ("elasticsearch", FIELDS, True)],
)
def test_terms_of_one_position_are_counted_as_one_or_alone(told, format: str, fields: str, said: bool) -> None:
    """OpenSearch's `combined_fields` adds up their scores, as we do; `match` and Elasticsearch take them as one."""
    _, missing = told(format, *HYBRID, fields, "index.lexical.analyzer=technical")
    assert any("counts a term and its parts as one" in sentence for sentence in missing) == said


def test_shares_keep_proportions() -> None:
    assert hybrid.shares({"dense": 3.0, "lexical": 1.0}) == [0.75, 0.25]


def test_whole_documents_are_a_third_query(told) -> None:
    """Each chunk is a child of its document, whose score it takes."""
    for format in ("opensearch", "elasticsearch"):
        requests, missing = told(format, "+exp=recommended", "ranker=off")
        properties = requests["/ragbench"]["mappings"]["properties"]
        assert properties["kind"] == {"type": "join", "relations": {"document": "chunk"}}
        assert properties["document_title"] == properties["title"]
        sent = json.dumps([body for path, body in requests.items() if "_search" in path])
        assert sent.count('"has_parent"') == 1 and "document_title^3" in sent
        assert not any(sentence.startswith("documents") for sentence in missing)


@pytest.mark.parametrize(
    ("format", "address"),
    [
        ("postgres", "postgres://127.0.0.1:1/notes"),
        ("qdrant", "qdrant://127.0.0.1:1/notes"),
        ("opensearch", "opensearch://127.0.0.1:1/notes"),
    ],
)
def test_a_server_that_does_not_answer_is_told_before_any_work(
    finished, monkeypatch: pytest.MonkeyPatch, format: str, address: str
) -> None:
    from ragbench.export.write import write
    from ragbench.extras.engines import shipping

    monkeypatch.setattr(shipping.Bench, "of", lambda *_: pytest.fail("it has begun"))
    with pytest.raises(BundleError, match="does not answer"):
        write(finished.folder, arm="baseline", format=format, load=address, force=True)
