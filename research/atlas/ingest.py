"""From finished runs to the tables: the topics of a collection by change, and the facts about the collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from ragbench.base import files
from ragbench.base.types import ConfigError, ResultsError
from ragbench.evaluation.measures import PRIMARY
from ragbench.extras.atlas import changes
from ragbench.extras.atlas.changes import BASE, BASES
from ragbench.extras.atlas.tables import COLLECTIONS, EFFECTS, QUESTIONS, Atlas

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.results.measurements import Measurements

EFFECT_COLUMNS = ("collection", "base", "change", "topics", "mean", "effect", "error", "better", "worse")
COLLECTION_COLUMNS = (
    *("collection", "questions", "kind", "software", "language", "documents", "topics", "median_words"),
    *(
        "links_per_document",
        "code_share",
        "query_words",
        "learned",
        "source",
        "licence",
        "digest",
        "version",
        "command",
    ),
)
_LANGUAGE = ("index.encoder.name=", "index.lexical.analyzer=")
"""Words that a collection in another language needs: what every arm of a run has of them does not count as a change."""


def known_arms(run: Measurements) -> dict[str, str]:
    """The arms of a run that are changes of the atlas: the change by arm."""
    overrides = {arm: set(run.record["overrides"].get(arm, ())) for arm in run.arms}
    shared = {override for override in set.intersection(*overrides.values()) if override.startswith(_LANGUAGE)}
    named = {arm: changes.name_of(overrides_of_arm - shared) for arm, overrides_of_arm in overrides.items()}
    return {arm: name for arm, name in named.items() if name is not None}


def values_of(runs: Iterable[Measurements]) -> pd.DataFrame:
    """nDCG@10 of documents, a row per topic and a column per change; of what was measured twice, the later one."""
    import pandas as pd

    columns = {name: run.values(arm, PRIMARY) for run in runs for arm, name in known_arms(run).items()}
    return pd.DataFrame(columns).dropna()


def facts(
    benchmark: Benchmark, metadata: Mapping[str, Any], topics: int, questions: str | None = None
) -> dict[str, Any]:
    """The row of a collection; `metadata` has what its documents do not tell: kind, source, licence and so on."""
    kind = questions or ("derived" if benchmark.provenance else "people")
    if kind not in QUESTIONS:
        raise ConfigError(f"questions must be one of {', '.join(QUESTIONS)}, got {kind}")
    word_counts = [len(document.text.split()) for document in benchmark.documents]
    code = sum(block.end - block.start for document in benchmark.documents for block in document.code_blocks)
    characters = sum(len(document.text) for document in benchmark.documents)
    row = {
        "collection": benchmark.name,
        "questions": kind,
        "kind": metadata.get("kind", "documentation"),
        "software": int(metadata.get("software", True)),
        "language": metadata.get("language", "en"),
        "documents": len(benchmark.documents),
        "topics": topics,
        "median_words": median(word_counts),
        "links_per_document": mean(len(document.links) for document in benchmark.documents),
        "code_share": code / max(1, characters),
        "query_words": mean(len(topic.text.split()) for topic in benchmark.topics),
        "learned": int(metadata.get("learned", False)),
        "source": metadata.get("source", ""),
        "licence": metadata.get("licence", ""),
        "digest": benchmark.digest,
        "version": metadata.get("version", version("ragbench")),
        "command": metadata.get("command", ""),
    }
    return {name: row[name] for name in COLLECTION_COLUMNS}


def tables(rows: Sequence[tuple[Mapping[str, Any], pd.DataFrame]]) -> Atlas:
    """The atlas of collections, each given by its facts and its values by topic and change."""
    import pandas as pd

    effects = [row for facts_row, values in rows for row in effects_of(str(facts_row["collection"]), values)]
    if not effects:
        raise ResultsError("no finished run has a change of the atlas next to its base: run both together")
    return Atlas(pd.DataFrame(effects), pd.DataFrame([dict(facts_row) for facts_row, _ in rows]))


def effects_of(collection: str, values: pd.DataFrame) -> list[dict[str, Any]]:
    """The effects of one collection: `values` has one row per topic and one column per change, no value missing.

    Everything is compared with `BASE`, what stands in `BASES` or begins with a preset also with the other bases.
    """
    rows = []
    for base in (base for base in BASES if base in values):
        for change in values:
            preset = changes.changes().get(str(change), "").split() == [f"exp={change}"]
            related = base == BASE or preset or (base == "recommended" and str(change).startswith("recommended"))
            if change == base or not related:
                continue
            gains = (values[change] - values[base]).to_numpy(dtype=float, copy=True)
            gains[abs(gains) < 1e-9] = 0.0
            error = gains.std(ddof=1) / len(gains) ** 0.5 if len(gains) > 1 else 0.0
            row = (collection, base, str(change), len(gains), values[change].mean(), gains.mean(), error)
            counted = (int((gains > 0).sum()), int((gains < 0).sum()))
            rows.append(dict(zip(EFFECT_COLUMNS, (*row, *counted), strict=True)))
    return rows


def write(atlas: Atlas, folder: Path) -> None:
    """Write both tables, sorted."""
    effects = atlas.effects.sort_values(["collection", "base", "change"])[list(EFFECT_COLUMNS)]
    collections = atlas.collections.sort_values("collection")[list(COLLECTION_COLUMNS)]
    for name, frame in ((COLLECTIONS, collections), (EFFECTS, effects)):
        files.write_text(folder / name, frame.to_csv(index=False, float_format="%.5f"))
