"""Write a configuration as the `config.json` of Librarian (seed 004), all six of its sections.

JSON has no comments: what the format cannot express stands under the key `ragbench`, which Librarian ignores, since it
looks up its sections by name. Sections about files and transport are not part of a retrieval configuration; they have
the values of Librarian's example, `librarian.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ragbench.base.fingerprint import plain
from ragbench.boundary.json import read_json_file
from ragbench.config.settings import Settings
from ragbench.extras.export import file_format
from ragbench.extras.export.translation import Reading
from ragbench.extras.systems.librarian_chunking import CHARS_PER_TOKEN, LibrarianFixedChunker, LibrarianSemanticChunker
from ragbench.extras.systems.stages.librarian import AddNeighbours, AverageScores, RerankByKeywords
from ragbench.index.lexical import LexicalSpec
from ragbench.models import bundled
from ragbench.search.stages import cut, fuse, retrieve

_SYSTEM = "Librarian"
_EXAMPLE = Path(__file__).with_name("librarian.json")
_KNOWN = (
    retrieve.RetrieveDense,
    retrieve.RetrieveLexical,
    fuse.Fuse,
    AverageScores,
    AddNeighbours,
    RerankByKeywords,
    cut.Cut,
)

_FIXED: dict[tuple[str, str], Any] = {
    ("AddNeighbours", "neighbours"): 1,
    ("RerankByKeywords", "weight"): 0.3,
    ("RerankByKeywords", "cap"): 5,
    ("RerankByKeywords", "as_typed"): True,
    ("RetrieveLexical", "fields"): {"content": 1.0},
    ("RetrieveLexical", "index"): plain(LexicalSpec(unit="document")),
    ("index", "passage.headings"): False,
    ("index", "encoder.query_prefix"): None,
    ("index", "encoder.passage_prefix"): None,
    ("index", "encoder.instruction"): False,
}


def values(settings: Settings) -> tuple[dict[str, Any], list[str]]:
    """The sections by name, and a sentence for everything they cannot express."""
    read = Reading(settings)
    dense, lexical = read.stage(retrieve.RetrieveDense) is not None, read.stage(retrieve.RetrieveLexical) is not None
    reranks = dense and read.stage(RerankByKeywords) is not None
    mode = "rerank" if reranks else "hybrid" if dense and lexical else "semantic" if dense else "keyword"
    candidates = int(read.value(RerankByKeywords, "depth", 50))
    limit = int(read.value(cut.Cut, "top_n", 50))
    read.value(fuse.Fuse, "k", None)  # said once, with the fusion
    weights = {**read.value(fuse.Fuse, "weights", {}), **read.value(AverageScores, "weights", {})}
    of_dense = float(weights.get("dense", 1.0)) if dense else 0.0
    of_lexical = float(weights.get("lexical", 1.0)) if lexical else 0.0
    model = str(read.index_value("encoder.name"))
    packed = bundled.find(model)
    sections: dict[str, Any] = read_json_file(_EXAMPLE)
    sections["search"] |= {
        "max_results": limit,
        "min_keyword_length": int(read.value(RerankByKeywords, "min_length", 2)),
        "mode": mode,
        "rerank_candidates": candidates,
        "rerank_keyword_threshold": float(read.value(RerankByKeywords, "threshold", 0.1)),
    }
    sections["embeddings"] |= {
        "enabled": dense,
        "model": packed.aliases[0] if packed and packed.aliases else model,
        "semantic_weight": round(of_dense / (of_dense + of_lexical), 6) if of_dense + of_lexical else 0.5,
    }
    sections["chunking"] |= _chunking(read)
    # Seed 004, "Update Semantic Search": it fetches three times as many chunks as wanted documents.
    depths = {
        ("RetrieveDense", "depth"): 3 * (candidates if reranks else limit),
        ("RetrieveLexical", "depth"): 3 * limit,
    }
    missing = read.left_over(_KNOWN, {**_FIXED, **depths}, _SYSTEM)
    return sections, missing + _differences(read, mode, lexical, weights)


def replayed(settings: Settings) -> Settings:
    """What the system runs with a file of this configuration, as far as its steps are like ours."""
    from ragbench.config import composition

    read = Reading(settings)
    sections, _ = values(settings)
    search, weight = sections["search"], sections["embeddings"]["semantic_weight"]
    preset = composition.compose([f"+exp=librarian_{search['mode']}"]).config
    sizes = {key: sections["chunking"][key] for key in ("chunk_size", "chunk_overlap")}
    entries = ("average", "context", "keywords", "cut", "dense", "lexical")
    always: dict[str, Any] = {entry: preset.get(entry) or {} for entry in entries}
    always["index.chunking"] = {**preset["index"]["chunking"], **sizes}
    if always["average"]:
        always["average.weights"] = {"dense": weight, "lexical": round(1 - weight, 6)}
    if always["keywords"]:
        always["keywords.depth"] = search["rerank_candidates"]
    always["cut.top_n"] = search["max_results"]
    whole = {} if preset.get("lexical") is None else {("RetrieveLexical", "index"): preset["lexical"]["index"]}
    changed = read.replayed(_KNOWN, whole, always)
    return changed.with_values({"index.passage": preset["index"]["passage"]})


def render(settings: Settings, origin: Sequence[str]) -> tuple[str, list[str]]:
    """The file, and sentences for what it cannot express; `origin` are sentences for the key `ragbench`."""
    sections, missing = values(settings)
    note = {"about": list(origin), "not_expressed": missing}
    return json.dumps({**sections, "ragbench": note}, indent=2, ensure_ascii=True) + "\n", missing


def _chunking(read: Reading) -> dict[str, Any]:
    """Sizes in tokens; sizes of other chunkers are converted from characters."""
    read.index_value("chunker")
    size, overlap = read.index_value("chunker.chunk_size"), read.index_value("chunker.chunk_overlap")
    if size is None:
        chars, overlap_chars = read.index_value("chunker.max_chars"), read.index_value("chunker.overlap_chars")
        size = max(1, round((chars or 512 * CHARS_PER_TOKEN) / CHARS_PER_TOKEN))
        overlap = round((overlap_chars or 0) / CHARS_PER_TOKEN)
    fixed = isinstance(read.index.chunker, LibrarianFixedChunker)
    return {"chunk_size": size, "chunk_overlap": overlap, "strategy": "fixed" if fixed else "semantic"}


def _differences(read: Reading, mode: str, lexical: bool, weights: Mapping[str, Any]) -> list[str]:
    """A sentence for everything that the system always does and this configuration does not, or does in another way."""
    sentences = []
    if read.stage(RerankByKeywords) is not None and mode != "rerank":
        sentences.append(f"keywords: {_SYSTEM} re-ranks candidates of the semantic search, which is off")
    if mode == "rerank" and lexical:
        sentences.append(f"lexical is on: {_SYSTEM} re-ranks candidates of the semantic search alone")
    if read.stage(fuse.Fuse) is not None and mode in ("hybrid", "rerank"):
        sentences.append(f"fuse: {_SYSTEM} calculates with the scores, where reciprocal ranks were measured")
    for source, weight in sorted(weights.items()):
        if source not in ("dense", "lexical") and weight != 1.0:
            sentences.append(f"fuse.weights.{source} = {weight:g}: {_SYSTEM} has no such source")
    if mode != "keyword" and read.stage(AddNeighbours) is None:
        sentences.append(f"context is off: {_SYSTEM} always returns the best chunk of a document with its neighbours")
    chunker = read.index.chunker
    if not isinstance(chunker, (LibrarianFixedChunker, LibrarianSemanticChunker)):
        sentences.append(
            f"index.chunker = {type(chunker).__name__}: {_SYSTEM} cuts at headings of level 2 and 3 or at fixed sizes, "
            f"of {CHARS_PER_TOKEN} characters a token"
        )
    sentences.append(f"docs, metadata and mcp were not measured: they have the values of {_SYSTEM}'s example")
    return sentences


FORMAT = file_format.FileFormat(".json", render, lambda settings: replayed(settings))
