"""From finished runs to the tables: the topics of a collection by change, and the facts about the collection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version
from statistics import mean, median
from typing import TYPE_CHECKING, Any

from ragbench.base.errors import ConfigError, ResultsError
from ragbench.base.files import locked
from ragbench.evaluation.measures import PRIMARY
from ragbench.extras.atlas import changes
from ragbench.extras.atlas.tables import (
    COLLECTION_COLUMNS,
    COLLECTIONS,
    EFFECTS,
    QUESTIONS,
    Atlas,
    effects_of,
    own_folder,
)

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.results.measurements import Measurements


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


def add(run: Measurements, benchmark: Benchmark, facts_row: Mapping[str, Any], questions: str | None = None) -> Atlas:
    """Add what a finished run measured to this user's own tables; the new rows are returned.

    Raises ResultsError where the run holds no two arms that the atlas can compare.
    """
    import pandas as pd

    values = values_of([run])
    new = tables([(facts(benchmark, facts_row, len(values), questions), values)])
    folder, both = own_folder(), new
    with locked(folder / EFFECTS):
        if (folder / EFFECTS).is_file() and (folder / COLLECTIONS).is_file():
            old = Atlas.load(folder)
            effects = old.effects[old.effects["collection"] != benchmark.name]
            collections = old.collections[old.collections["collection"] != benchmark.name]
            both = Atlas(pd.concat([effects, new.effects]), pd.concat([collections, new.collections]))
        both.write(folder)
    return new
