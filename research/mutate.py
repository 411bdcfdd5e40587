"""Change a value of the seeds, and see the tests fail that a row of research/conformance.yaml names for it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from research.conformance import read

ROOT = Path(__file__).resolve().parents[1]
_COPIED = ("ragbench", "conf", "tests", "research")
_STAGES, _V3 = "ragbench/search/stages", "ragbench/extras/systems/stages"


@dataclass(frozen=True)
class Mutation:
    """The text `before` of a file becomes `after`; the tests of the row `id` must then fail."""

    id: str
    file: str
    before: str
    after: str


MUTATIONS = (
    Mutation("p1-top-3", f"{_STAGES}/expand.py", "top_k: Count = 3", "top_k: Count = 2"),
    Mutation("p1-threshold", f"{_STAGES}/expand.py", "threshold: Cosine = 0.5", "threshold: Cosine = 0.8"),
    Mutation("p1-stop-words", "ragbench/index/vocabulary.py", "a an the and", "an the and"),
    Mutation("p3-weights", f"{_STAGES}/classify.py", "exploratory: Weight = 1.3", "exploratory: Weight = 1.2"),
    Mutation("p3-in-the", f"{_STAGES}/signals.py", r"|\bin the \w+", ""),
    Mutation("p3-more-factual", "conf/exp/phase3.yaml", "signals: seed", "signals: more"),
    Mutation("p4-standard", "conf/exp/ragdocs.yaml", "analyzer: standard", "analyzer: english"),
    Mutation("p6-depth", f"{_STAGES}/rerank.py", "depth: Count = 10", "depth: Count = 20"),
    Mutation("p7-parallel", "conf/exp/phase3.yaml", "route: always", "route: content"),
    Mutation("p8-merged", f"{_STAGES}/redundancy.py", "threshold: Cosine = 0.85", "threshold: Cosine = 0.999"),
    Mutation("p7-weight", "conf/config.yaml", "code: 1.0", "code: 0.5"),
    Mutation("p9-fields", "ragbench/config/sections.py", '"author": 1.0', '"author": 9.0'),
    Mutation("p10-default-001", f"{_STAGES}/calibrate.py", "threshold: Share = 0.3", "threshold: Share = 0.4"),
    Mutation("p10-formula", f"{_STAGES}/calibrate.py", "threshold: float = 0.035", "threshold: float = 0.03"),
    Mutation("p11-lambda", f"{_STAGES}/redundancy.py", "Share = 0.7", "Share = 0.6"),
    Mutation("p11-relevance", "conf/exp/phase4.yaml", "scale: score", "scale: minmax"),
    Mutation("p12-threshold", f"{_STAGES}/redundancy.py", "le=1)] = 0.7", "le=1)] = 0.8"),
    Mutation("p13-overlap", "ragbench/index/chunking.py", "child_overlap: Natural = 100", "child_overlap: int = 9"),
    Mutation("measures", "conf/config.yaml", '"nDCG@5", ', ""),
    Mutation("order", "conf/config.yaml", "- community\n  - recency\n", "- recency\n  - community\n"),
    Mutation("rrf-weights", "conf/config.yaml", "graph: 1.0", "graph: 2.0"),
    Mutation("rrf-formula", f"{_STAGES}/fuse.py", "k: Weight = 60.0", "k: Weight = 50.0"),
    Mutation("community-factor", f"{_STAGES}/links.py", "factor: Factor = 1.1", "factor: Factor = 1.2"),
    Mutation("weights-variance", "conf/exp/ragdocs_full.yaml", "measure: variance", "measure: decisiveness"),
    Mutation("sys-recency-tiers", f"{_STAGES}/recency.py", "((7.0, 1.2)", "((7.0, 1.3)"),
    Mutation("sys-graph-all", "conf/exp/ragdocs.yaml", "new_only: false", "new_only: true"),
    Mutation("hyde-tool", "ragbench/extras/ship/serving/tools.py", "top_n: int = 5", "top_n: int = 9"),
    Mutation("v3-recall-limit", f"{_V3}/lexical_v3.py", "= 200", "= 300"),
    Mutation("v3-results", "conf/exp/semantic_v3.yaml", "top_n: 30", "top_n: 40"),
    Mutation("lib-best-chunk", "conf/exp/librarian_hybrid.yaml", "dense:\n  depth: 150", "dense:\n  depth: 50"),
    Mutation(
        "lib-size",
        "ragbench/extras/systems/librarian_chunking.py",
        "chunk_overlap: Natural = 50",
        "chunk_overlap: int = 60",
    ),
    Mutation("lib-keyword-whole", "conf/exp/librarian_hybrid.yaml", "unit: document", "unit: chunk"),
    Mutation("lib-split", "conf/exp/librarian_rerank.yaml", "as_typed: true", "as_typed: false"),
    Mutation("lib-dates", "ragbench/index/filters.py", "<= filters.modified_before", "< filters.modified_before"),
    Mutation(
        "p1-before-vectors",
        "ragbench/search/stages/expand.py",
        '    threshold: Cosine = 0.5\n    sources: tuple[str, ...] = ("dense",)',
        '    threshold: Cosine = 0.5\n    sources: tuple[str, ...] = ("dense", "lexical")',
    ),
    Mutation(
        "p3-navigational", "ragbench/search/stages/signals.py", "chapter|guide|tutorial|page", "chapter|guide|page"
    ),
    Mutation(
        "p3-priority",
        "ragbench/search/stages/classify.py",
        "    if names_something_exact(text, seed=seed):",
        "    if names_something_exact(text, seed=seed) and not names_a_location(text, seed=seed):",
    ),
    Mutation(
        "p5-function-words",
        "ragbench/search/stages/expand.py",
        "function_words: bool = False",
        "function_words: bool = True",
    ),
    Mutation("p6-model", "ragbench/search/stages/rerank.py", '"ms-marco-MiniLM-L-12-v2"', '"ms-marco-MiniLM-L-6-v2"'),
    Mutation("p6-tail", "conf/exp/phase2.yaml", "tail: drop", "tail: keep"),
    Mutation("p6-lazy", "ragbench/search/stages/rerank.py", "if len(head) == 0:", "if False:"),
    Mutation(
        "p8-semantic",
        "ragbench/search/stages/stage.py",
        "close = similarity >= threshold",
        "close = similarity > threshold",
    ),
    Mutation(
        "p9-related-missing", "ragbench/index/chunks.py", 'for link in row if link["target"]]', "for link in row]"
    ),
    Mutation(
        "p9-filters",
        "ragbench/index/filters.py",
        "self._modified >= filters.modified_after",
        "self._modified > filters.modified_after",
    ),
    Mutation(
        "p9-missing",
        "ragbench/corpus/metadata.py",
        "if isinstance(value, str) and separator is not None:",
        "if separator is not None:",
    ),
    Mutation(
        "p11-negative",
        "ragbench/search/stages/redundancy.py",
        "np.clip(index.dense.similarities(head.chunks), 0.0, 1.0)",
        "np.clip(-index.dense.similarities(head.chunks), 0.0, 1.0)",
    ),
    Mutation(
        "p6-scores",
        "ragbench/search/stages/rerank.py",
        "return order, 1.0 / (1.0 + np.exp(-np.clip(logits[order], -700, 700)))",
        "return order, logits[order]",
    ),
    Mutation(
        "sys-encoder-int8",
        "ragbench/models/resolve.py",
        'name: ModelName = "bge-small-en-v1.5"',
        'name: ModelName = "all-MiniLM-L6-v2"',
    ),
    Mutation("p7-capitals", "ragbench/index/languages.py", 'r"(\\p{Lu}{2,}(?!\\p{Ll})|', 'r"('),
    Mutation(
        "v3-whole",
        "ragbench/extras/systems/stages/guarantee.py",
        "contexts={**state.contexts, **whole_notes}",
        "contexts={**state.contexts, **{c: (c,) for c in whole_notes}}",
    ),
    Mutation("v3-recall-lengths", "ragbench/extras/systems/parts/scan.py", "in term) else 3)", "in term) else 2)"),
    Mutation(
        "v3-graph",
        "ragbench/extras/systems/stages/adjust.py",
        "max_candidates: Count = 20",
        "max_candidates: Count = 30",
    ),
    Mutation("v3-search-limit", "ragbench/extras/systems/stages/lexical_v3.py", "3 * n", "2 * n"),
    Mutation(
        "p13-ids",
        "ragbench/index/chunking.py",
        "str(len(children)), part, parent=parent.chunk_id",
        "f'c{len(children)}', part, parent=parent.chunk_id",
    ),
    Mutation("lib-keyword-score", "ragbench/extras/systems/stages/librarian.py", "cap: Count = 5", "cap: Count = 6"),
    Mutation(
        "lib-one-character",
        "ragbench/extras/systems/stages/librarian.py",
        "for word in words if len(word) >= self.min_length)",
        "for word in words)",
    ),
    Mutation(
        "lib-contains", "ragbench/extras/systems/stages/librarian.py", "relevance >= self.threshold", "relevance >= 0"
    ),
    Mutation(
        "lib-hybrid",
        "ragbench/extras/systems/stages/librarian.py",
        "return scores / max(1.0, float(scores.max(initial=0.0)))",
        "return scores",
    ),
    Mutation(
        "lib-headings",
        "ragbench/extras/systems/librarian_chunking.py",
        "_HEADING_LEVELS = (2, 3)",
        "_HEADING_LEVELS = (2,)",
    ),
    Mutation(
        "lib-any-tag",
        "ragbench/index/filters.py",
        "not lineage.isdisjoint(filters.tags)",
        "lineage.issuperset(filters.tags)",
    ),
    Mutation(
        "lib-filters",
        "ragbench/index/filters.py",
        '("category", "doc_type", "product", "component"):',
        '("category", "doc_type", "product"):',
    ),
    Mutation(
        "lib-config",
        "ragbench/extras/systems/librarian_export.py",
        'candidates = int(read.value(RerankByKeywords, "depth", 50))',
        "candidates = 50",
    ),
    Mutation("p10-absolute", "ragbench/search/stages/calibrate.py", "lists: Natural = 2 ", "lists: Natural = 0 "),
    Mutation("rrf-example", "ragbench/search/stages/recency.py", "((7.0, 1.2)", "((7.0, 1.1)"),
    Mutation("lucene", "ragbench/index/lexical.py", "k1: Weight = 0.9", "k1: Weight = 1.2"),
    Mutation("lib-doc-type", "ragbench/index/doc_type.py", "api|endpoint", "api"),
    Mutation("lib-snippet", "ragbench/search/engine/snippet.py", "LENGTH = 200", "LENGTH = 300"),
)


def survives(mutation: Mutation, tests: Sequence[str], copy: Path) -> bool:
    """Whether all tests pass with the change, in a copy of the project."""
    path = copy / mutation.file
    before = path.read_text(encoding="utf-8")
    path.write_text(before.replace(mutation.before, mutation.after), encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "", "-p", "no:cacheprovider", *tests]
    try:
        return subprocess.run(command, cwd=copy, env=environment, capture_output=True, check=False).returncode == 0
    finally:
        path.write_text(before, encoding="utf-8")


def main(names: Sequence[str]) -> int:
    """Try the mutations, or those of the rows that are named; print one line each, return 1 if one survives."""
    rows = {row.id: row for row in read()}
    survivors = 0
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder)
        for each in ROOT.iterdir():
            if each.name in _COPIED:
                shutil.copytree(each, copy / each.name, ignore=shutil.ignore_patterns("__pycache__"))
            elif not each.name.startswith(".") and each.name != "results":
                (copy / each.name).symlink_to(each)
        chosen = [each for each in MUTATIONS if not names or each.id in names]
        for mutation in chosen:
            alive = survives(mutation, rows[mutation.id].tests, copy)
            survivors += alive
            change = f"{mutation.before!r} -> {mutation.after!r}"
            print(f"{'SURVIVES' if alive else 'caught':8} {mutation.id}: {change} in {mutation.file}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} changes make the named tests fail")
    return int(survivors > 0)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
