"""Write a configuration as the TOML of mcp-markdown-ragdocs (seeds 000, 001 and 003).

Every key that its version of January 2026 reads is written; keys of switches that are off get the value that turns
them off. What the format cannot express is in comments at the top.

It ignores unknown keys and sections silently, so a file is right only for that version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ragbench.config.settings import Settings
from ragbench.extras.export.file_format import FileFormat
from ragbench.extras.export.translation import Reading
from ragbench.index import chunking
from ragbench.models import bundled
from ragbench.search.stages import cut, expand, fuse, links, redundancy, retrieve
from ragbench.search.stages.calibrate import Calibrate, FilterByConfidence
from ragbench.search.stages.classify import Classify
from ragbench.search.stages.recency import BoostRecent
from ragbench.search.stages.rerank import Rerank

_Read = Callable[[Reading], Any]
"""What reads the value of a key."""

_SYSTEM = "ragdocs"

_RERANKER = "cross-encoder/ms-marco-MiniLM-L-6-v2"  # the seed's default, while re-ranking is off

# The order of seed 001, "Processing Pipeline".
_ORDER: tuple[type[Any], ...] = (
    Classify,
    expand.ExpandTerms,
    expand.SupposeAnswer,
    retrieve.RetrieveDense,
    retrieve.RetrieveLexical,
    retrieve.RetrieveCode,
    links.FollowLinks,
    fuse.WeighByDecisiveness,
    fuse.Fuse,
    links.BoostCommunity,
    BoostRecent,
    Calibrate,
    FilterByConfidence,
    redundancy.DropEqualTexts,
    redundancy.DropNearCopies,
    redundancy.DropParaphrases,
    redundancy.Diversify,
    redundancy.LimitPerDocument,
    Rerank,
    cut.ExpandToParents,
    cut.Cut,
)

# What the system always does, as its documents say.
_FIXED: dict[tuple[str, str], Any] = {
    ("Classify", "factual"): 1.5,
    ("Classify", "navigational"): 1.5,
    ("Classify", "exploratory"): 1.3,
    ("Classify", "override"): None,
    ("Classify", "signals"): "seed",
    ("ExpandTerms", "top_k"): 3,
    ("ExpandTerms", "threshold"): 0.5,
    ("ExpandTerms", "sources"): ["dense"],
    ("FollowLinks", "factor"): 0.5,
    ("FollowLinks", "hops"): 1,
    ("FollowLinks", "seeds"): 1000,  # every candidate
    ("FollowLinks", "new_only"): False,
    ("FollowLinks", "share"): 1.0,
    ("RetrieveCode", "language"): None,
    ("RetrieveCode", "route"): "always",
    ("RetrieveCode", "min_match"): 0.0,
    ("Calibrate", "threshold"): 0.035,  # keys for the two exist, but the loader does not read them
    ("Calibrate", "steepness"): 150.0,
    ("Calibrate", "lists"): 0,  # the formula takes every score as it is
    ("BoostRecent", "tiers"): [[7.0, 1.2], [30.0, 1.1]],
    ("BoostRecent", "now"): None,
    ("WeighByDecisiveness", "sources"): ["dense", "lexical"],
    ("WeighByDecisiveness", "measure"): "variance",
    ("WeighByDecisiveness", "threshold"): 0.1,
    ("BoostCommunity", "include_seeds"): False,
    ("DropNearCopies", "unit"): "character",
    ("Diversify", "candidates"): 50,
    ("Diversify", "scale"): "score",
    ("Diversify", "by_class"): {},
    ("Rerank", "blend"): False,
    ("Rerank", "max_length"): 512,
    ("Rerank", "headings"): False,
    ("Rerank", "tail"): "drop",
    ("SupposeAnswer", "endpoint"): None,
    ("index", "encoder.name"): "bge-small-en-v1.5",
    ("index", "encoder.query_prefix"): None,
    ("index", "encoder.passage_prefix"): None,
    ("index", "encoder.instruction"): False,
    ("index", "encoder.max_tokens"): 512,
    ("index", "dense.kind"): "flat",
    ("index", "vocabulary.min_length"): 3,
    ("index", "lexical.analyzer"): "standard",
    ("RetrieveLexical", "k1"): 1.2,  # BM25F of Whoosh
    ("RetrieveLexical", "b"): 0.75,
    ("RetrieveLexical", "fields"): {
        "content": 1.0,
        "title": 3.0,
        "headers": 2.5,
        "keywords": 2.5,
        "description": 2.0,
        "tags": 2.0,
        "aliases": 1.5,
        "author": 1.0,
    },
    ("index", "chunker.parent_overlap"): 200,
}


def _on(cls: type[Any]) -> _Read:
    return lambda read: read.stage(cls) is not None


def _of(cls: type[Any], name: str, otherwise: Any) -> _Read:
    return lambda read: read.value(cls, name, otherwise)


def _of_chunker(name: str, otherwise: int) -> _Read:
    return lambda read: read.index_value(f"chunker.{name}") or otherwise


def _weight(cls: type[Any], source: str) -> _Read:
    return lambda read: _weights(read).get(source, 1.0) if read.stage(cls) else 0.0


def _strategy(read: Reading) -> str:
    read.index_value("chunker")  # others are listed as not expressed
    return "header_based"


def _size(name: str, otherwise: int) -> _Read:
    """A length of the chunks that are searched; with parents, these are the children."""
    return lambda read: read.index_value(f"chunker.child_{name}") or _of_chunker(f"{name}_chars", otherwise)(read)


def _weights(read: Reading) -> dict[str, float]:
    read.value(fuse.WeighByDecisiveness, "weights", {})  # the same as those of the fusion
    return dict(read.value(fuse.Fuse, "weights", {}))


def _limit(read: Reading) -> int:
    limit = int(read.value(redundancy.LimitPerDocument, "max_per_doc", 0))
    return limit if read.stage(redundancy.Diversify) is None else 0


def _reranker(read: Reading) -> str:
    model = str(read.value(Rerank, "model", _RERANKER))
    packed = bundled.find(model)
    return packed.aliases[0] if packed and packed.aliases else model


def _variance_threshold(read: Reading) -> float:
    """The threshold where it is one of variances, else that of the system: decisiveness is listed as not expressed."""
    weighs = read.stage(fuse.WeighByDecisiveness)
    if weighs is None or weighs.measure != "variance":
        return 0.1
    return float(read.value(fuse.WeighByDecisiveness, "threshold", 0.1))


_SECTIONS: Mapping[str, Mapping[str, tuple[type[Any], _Read]]] = {
    "search": {
        "semantic_weight": (float, _weight(retrieve.RetrieveDense, "dense")),
        "keyword_weight": (
            float,
            lambda read: _weight(retrieve.RetrieveLexical, "lexical")(read) if _has_source(read) else 1,
        ),
        "recency_bias": (float, _of(BoostRecent, "bias", 0)),
        "rrf_k_constant": (int, lambda read: round(read.value(fuse.Fuse, "k", 60))),
        "min_confidence": (float, _of(FilterByConfidence, "threshold", 0)),
        "max_chunks_per_doc": (int, _limit),
        "dedup_enabled": (bool, _on(redundancy.DropParaphrases)),
        "dedup_similarity_threshold": (float, _of(redundancy.DropParaphrases, "threshold", 0.85)),
        "ngram_dedup_enabled": (bool, _on(redundancy.DropNearCopies)),
        "ngram_dedup_threshold": (float, _of(redundancy.DropNearCopies, "threshold", 0.7)),
        "mmr_enabled": (bool, _on(redundancy.Diversify)),
        "mmr_lambda": (float, _of(redundancy.Diversify, "lambda_", 0.7)),
        "rerank_enabled": (bool, _on(Rerank)),
        "rerank_model": (str, _reranker),
        "rerank_top_n": (int, _of(Rerank, "depth", 10)),
        "adaptive_weights_enabled": (bool, _on(Classify)),
        "code_search_enabled": (bool, _on(retrieve.RetrieveCode)),
        "code_search_weight": (float, lambda read: _weights(read).get("code", 1)),
        "query_expansion_enabled": (bool, _on(expand.ExpandTerms)),
        "query_expansion_max_terms": (
            int,
            lambda read: read.index_value("vocabulary.size") if read.stage(expand.ExpandTerms) else 5000,
        ),
        "query_expansion_min_frequency": (int, lambda read: 1 if read.stage(expand.ExpandTerms) else 2),
        "community_detection_enabled": (bool, _on(links.BoostCommunity)),
        "community_boost_factor": (float, _of(links.BoostCommunity, "factor", 1.1)),
        "dynamic_weights_enabled": (bool, _on(fuse.WeighByDecisiveness)),
        "variance_threshold": (float, _variance_threshold),
        "min_weight_factor": (float, _of(fuse.WeighByDecisiveness, "min_factor", 0.5)),
        "hyde_enabled": (bool, _on(expand.SupposeAnswer)),
    },
    "chunking": {
        "strategy": (str, _strategy),
        "min_chunk_chars": (int, _size("min", 200)),
        "max_chunk_chars": (int, _size("max", 1500)),
        "overlap_chars": (int, _size("overlap", 100)),
        "include_parent_headers": (bool, lambda read: read.index_value("passage.headings")),
        "parent_retrieval_enabled": (bool, _on(cut.ExpandToParents)),
        "parent_chunk_min_chars": (int, _of_chunker("parent_min", 1500)),
        "parent_chunk_max_chars": (int, _of_chunker("parent_max", 2000)),
    },
    "llm": {"embedding_model": (str, lambda read: "local")},
}
"""By section and key, the type of a value and what reads it from a configuration."""


def values(settings: Settings) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The tables of the file by name, and a sentence for everything they cannot express."""
    read = Reading(settings)
    tables = _tables(read)
    missing = read.left_over(_ORDER, _fixed(read), _SYSTEM) + _differences(read) + _rounded_k(read)
    return tables, missing + read.out_of_order(_ORDER, _SYSTEM)


def _tables(read: Reading) -> dict[str, dict[str, Any]]:
    return {name: {key: kind(of(read)) for key, (kind, of) in keys.items()} for name, keys in _SECTIONS.items()}


def replayed(settings: Settings) -> Settings:
    """What the system runs with a file of this configuration, as far as its steps are known and like ours."""
    from ragbench.config import composition

    read = Reading(settings)
    _tables(read)
    defaults = composition.compose(["+exp=ragdocs"]).config
    always = {"graph": defaults["graph"]} if read.stage(links.FollowLinks) is None else {}
    if read.stage(Calibrate) is None:
        always["calibration"] = _fixed_node(Calibrate)
    if read.stage(redundancy.DropEqualTexts) is None:
        always["p8.content_hash"] = {"_target_": f"{redundancy.DropEqualTexts.__module__}.DropEqualTexts"}
    if read.stage(retrieve.RetrieveLexical) is None:
        always["lexical"] = {} if _has_source(read) else _fixed_node(retrieve.RetrieveLexical)
    without = (redundancy.LimitPerDocument,) if read.stage(redundancy.Diversify) else ()
    return read.replayed(_ORDER, _fixed(read), always, without)


def _fixed_node(cls: type[Any]) -> dict[str, Any]:
    """A stage as the system always has it."""
    fixed = {name: value for (kind, name), value in _FIXED.items() if kind == cls.__name__}
    return {"_target_": f"{cls.__module__}.{cls.__name__}", **fixed}


def _has_source(read: Reading) -> bool:
    return any(
        read.stage(retriever) for retriever in (retrieve.RetrieveDense, retrieve.RetrieveLexical, retrieve.RetrieveCode)
    )


def _rounded_k(read: Reading) -> list[str]:
    fusion = read.stage(fuse.Fuse)
    if fusion is None or float(fusion.k).is_integer():
        return []
    return [f"fuse.k = {fusion.k:g}: {_SYSTEM} has whole numbers only, so {round(fusion.k)} is written"]


def render(settings: Settings, origin: Sequence[str]) -> tuple[str, list[str]]:
    """The file, and sentences for what it cannot express; `origin` are sentences for its first comments."""
    tables, missing = values(settings)
    lines = [_comment(line) for line in [*origin, "Keys are those that ragdocs reads at version 2026-01."]]
    if missing:
        lines += ["#", "# Not expressed by this format, so not part of what this file configures:"]
        lines += [_comment(f"- {sentence}") for sentence in missing]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *(f"{key} = {_toml(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n", missing


def _fixed(read: Reading) -> Mapping[tuple[str, str], Any]:
    rerank = read.stage(Rerank)
    # The constant of a blend has no effect where nothing is blended.
    return _FIXED if rerank is None or rerank.blend else {**_FIXED, ("Rerank", "k"): rerank.k}


def _differences(read: Reading) -> list[str]:
    """A sentence for everything that the system always does and this configuration does not, or does in another way."""
    sentences, weights = [], _weights(read)
    chunker, rerank = read.index_value("chunker"), read.stage(Rerank)
    packed = None if rerank is None else bundled.find(rerank.model)
    if not _has_source(read):
        sentences.append(f"no source of this configuration exists in {_SYSTEM}: with this file it searches keywords")
    if chunker not in (chunking.HeaderChunker.__name__, chunking.ParentChildChunker.__name__):
        sentences.append(f"index.chunker = {chunker}: {_SYSTEM} cuts along headings, with other sizes for parents")
    if read.stage(links.FollowLinks) is None:
        sentences.append(f"graph is off: {_SYSTEM} always follows links, one hop at factor 0.5")
    elif weights.get("graph", 1.0) != 1.0:
        sentences.append(f"fuse.weights.graph = {weights['graph']:g}: {_SYSTEM} has no key for it")
    for source, value in sorted(weights.items()):
        if source not in ("dense", "lexical", "code", "graph") and value != 1.0:
            sentences.append(f"fuse.weights.{source} = {value:g}: {_SYSTEM} has no such source")
    if read.stage(Calibrate) is None:
        sentences.append(f"calibration by a sigmoid is off: {_SYSTEM} always applies it")
    if read.stage(redundancy.DropEqualTexts) is None:
        sentences.append(f"p8.content_hash is off: {_SYSTEM} always drops equal texts")
    if read.stage(redundancy.Diversify) is not None and read.stage(redundancy.LimitPerDocument) is not None:
        sentences.append(f"p11 and p8.limit are both on: {_SYSTEM} limits chunks per document only without MMR")
    if packed is not None and packed.backend == "onnx":
        sentences.append(f"p6.model was measured with int8 weights in ONNX form: {_SYSTEM} loads the PyTorch weights")
    if read.stage(retrieve.RetrieveDense) is not None:
        sentences.append(f"index.encoder was measured with the weights named in the run: {_SYSTEM} loads another copy")
    return sentences


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return repr(value)


def _comment(line: str) -> str:
    printable = "".join(sign if sign.isprintable() else " " for sign in line)
    return f"# {printable}"


FORMAT = FileFormat(".toml", render, replayed)
