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
from ragbench.results import measurements, store

if TYPE_CHECKING:
    from pathlib import Path

    import pandas as pd

    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.results.measurements import Measurements


def runs_of(root: Path, benchmark: Benchmark) -> list[Path]:
    """The finished runs below `root` over all topics of a benchmark, the oldest first."""
    found = []
    for folder in reversed(store.finished_runs(root)):
        try:
            record = store.read(folder)
        except ResultsError:
            continue
        if record["split"] == "all" and record["benchmark"]["digest"] == benchmark.digest:
            found.append(folder)
    return found


_LANGUAGE = ("index.encoder.name=", "index.lexical.analyzer=")
"""Words that a collection in another language needs: what every arm of a run has of them does not count as a change."""


def known_arms(run: Measurements) -> dict[str, str]:
    """The arms of a run that are changes of the atlas: the change by arm."""
    given = {arm: set(run.record["overrides"].get(arm, ())) for arm in run.arms}
    shared = {word for word in set.intersection(*given.values()) if word.startswith(_LANGUAGE)}
    named = {arm: changes.name_of(words - shared) for arm, words in given.items()}
    return {arm: name for arm, name in named.items() if name is not None}


def values_of(runs: Iterable[Measurements]) -> pd.DataFrame:
    """nDCG@10 of documents, a row per topic and a column per change; of what was measured twice, the later one."""
    import pandas as pd

    columns = {name: run.values(arm, PRIMARY) for run in runs for arm, name in known_arms(run).items()}
    return pd.DataFrame(columns).dropna()


def facts(benchmark: Benchmark, about: Mapping[str, Any], topics: int, questions: str | None = None) -> dict[str, Any]:
    """The row of a collection; `about` has what its documents do not tell: kind, source, licence and so on."""
    asked = questions or ("derived" if benchmark.provenance else "people")
    if asked not in QUESTIONS:
        raise ConfigError(f"questions must be one of {', '.join(QUESTIONS)}, got {asked}")
    words = [len(document.text.split()) for document in benchmark.documents]
    code = sum(block.end - block.start for document in benchmark.documents for block in document.code_blocks)
    characters = sum(len(document.text) for document in benchmark.documents)
    row = {
        "collection": benchmark.name,
        "questions": asked,
        "kind": about.get("kind", "documentation"),
        "software": int(about.get("software", True)),
        "language": about.get("language", "en"),
        "documents": len(benchmark.documents),
        "topics": topics,
        "median_words": median(words),
        "links_per_document": mean(len(document.links) for document in benchmark.documents),
        "code_share": code / max(1, characters),
        "query_words": mean(len(topic.text.split()) for topic in benchmark.topics),
        "learned": int(about.get("learned", False)),
        "source": about.get("source", ""),
        "licence": about.get("licence", ""),
        "digest": benchmark.digest,
        "version": about.get("version", version("ragbench")),
        "command": about.get("command", ""),
    }
    return {name: row[name] for name in COLLECTION_COLUMNS}


def tables(rows: Sequence[tuple[Mapping[str, Any], pd.DataFrame]]) -> Atlas:
    """The atlas of collections, each given by its facts and its values by topic and change."""
    import pandas as pd

    effects = [row for about, values in rows for row in effects_of(str(about["collection"]), values)]
    if not effects:
        raise ResultsError("no finished run has a change of the atlas next to its base: ragbench atlas measure first")
    return Atlas(pd.DataFrame(effects), pd.DataFrame([dict(about) for about, _ in rows]))


def add(run: Measurements, benchmark: Benchmark, about: Mapping[str, Any], questions: str | None = None) -> Atlas:
    """Add what a finished run measured to this user's own tables; the new rows are returned.

    Raises ResultsError where the run holds no two arms that the atlas can compare.
    """
    import pandas as pd

    values = values_of([run])
    new = tables([(facts(benchmark, about, len(values), questions), values)])
    place, both = own_folder(), new
    with locked(place / EFFECTS):
        if (place / EFFECTS).is_file() and (place / COLLECTIONS).is_file():
            old = Atlas.load(place)
            effects = old.effects[old.effects["collection"] != benchmark.name]
            collections = old.collections[old.collections["collection"] != benchmark.name]
            both = Atlas(pd.concat([effects, new.effects]), pd.concat([collections, new.collections]))
        both.write(place)
    return new


def load(folders: Iterable[Path]) -> list[Measurements]:
    """Finished runs, read."""
    return [measurements.load(folder) for folder in folders]
