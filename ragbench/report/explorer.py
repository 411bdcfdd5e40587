"""The data of the page's query explorer: the measures, top hits and losses of every query in every arm.

A passage that several arms return for a query is stored once. With very many topics, texts are kept for those on which
the arms differ most; numbers are kept for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragbench.corpus.words import readable
from ragbench.report import evidence
from ragbench.report.figures import fate
from ragbench.search.engine.snippet import stems

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

_Row = Mapping[str, Any]

_MOST_TEXTS = 400
"""The most topics whose hits are embedded: with more, the file would open slowly."""


def explorer(results: Measurements, most: int = _MOST_TEXTS) -> dict[str, Any]:
    """The data as values for JSON.

    `arms`; `measures` (names, the primary first); `queries`: qid, text, need, type, stems, `values` by measure and arm
    (None where the query has no value) and, for those that keep texts, `passages` ([docno, title, headings, snippet,
    document grade, section grade]), `hits` by arm ([passage, score]) and `lost` ([section, grade, fate by arm]).
    """
    arms, measures, values = _values(results)
    hits_of, fates_of = _by_query(evidence.top_hits(results)), _by_query(evidence.fates(results))
    topics = results.topics
    telling = sorted(topics["qid"], key=lambda qid: (-_spread(values.get(qid, [[]])[0]), qid))
    kept = set([qid for qid in telling if qid in hits_of][:most])
    queries = []
    for topic in evidence.rows(topics):
        qid = topic["qid"]
        query = {
            "qid": qid,
            "text": topic["text"] or qid,
            "need": topic["need"] or "",
            "type": topic["type"] or "",
            "stems": stems(topic["text"]),
            "values": values.get(qid, [[None] * len(arms) for _ in measures]),
        }
        if qid in kept:
            query |= _passages(hits_of[qid], arms)
        if qid in fates_of:
            query["lost"] = _losses(fates_of[qid], arms)
        queries.append(query)
    return {"arms": arms, "measures": measures, "queries": queries, "texts": len(kept)}


def _by_query(frame: pd.DataFrame) -> dict[str, list[_Row]]:
    found: dict[str, list[_Row]] = {}
    for row in evidence.rows(frame):
        found.setdefault(row["qid"], []).append(row)
    return found


def _values(results: Measurements) -> tuple[list[str], list[str], dict[str, list[list[float | None]]]]:
    """Arms, measures, and by qid the values of shape (measures, arms)."""
    frame = results.per_query
    levels = {level: "" if level == "document" else f"{level} " for level in frame["level"].unique()}
    named = (frame["level"].map(levels) + frame["measure"]).tolist()
    primary = evidence.primary(results)
    measures = sorted(set(named), key=lambda name: (name != primary, name.startswith("section "), name))
    arms = results.arms
    place = {name: n for n, name in enumerate(measures)}
    column = {arm: n for n, arm in enumerate(arms)}
    values: dict[str, list[list[float | None]]] = {}
    columns = (frame[name].tolist() for name in ("qid", "arm", "value"))
    for name, qid, arm, value in zip(named, *columns, strict=True):
        cells = values.setdefault(qid, [[None] * len(arms) for _ in measures])
        cells[place[name]][column[arm]] = round(value, 4)
    return arms, measures, values


def _spread(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if known else 0.0


def _passages(rows: list[_Row], arms: list[str]) -> dict[str, Any]:
    numbers: dict[tuple[str, str], int] = {}
    passages: list[list[Any]] = []
    hits: dict[str, list[list[Any]]] = {arm: [] for arm in arms}
    for row in rows:
        # Arms may chunk differently, so a passage is identified by its id and its words.
        number = numbers.setdefault((row["chunk_id"], row["snippet"]), len(passages))
        if number == len(passages):
            grades = (_grade(row[f"{level}_grade"]) for level in ("document", "section"))
            shown = [readable(str(row["docno"])), *(row[name] for name in ("title", "header_path", "snippet"))]
            passages.append([*shown, *grades])
        hits[row["arm"]].append([number, float(f"{row['score']:.4g}")])
    return {"passages": passages, "hits": list(hits.values())}


def _grade(value: Any) -> int | None:
    import pandas as pd

    return None if pd.isna(value) else int(value)


def _losses(rows: list[_Row], arms: list[str]) -> list[list[Any]]:
    """[section, grade, its fate in every arm] for every relevant section, best grade first."""
    found: dict[str, list[Any]] = {}
    place = {arm: n for n, arm in enumerate(arms)}
    for row in rows:
        entry = found.setdefault(row["section"], [readable(row["section"]), int(row["grade"]), [""] * len(arms)])
        rank = f" at {row['rank']}" if row["rank"] else ""
        entry[2][place[row["arm"]]] = fate(row["outcome"], row["stage"]) + rank
    return sorted(found.values(), key=lambda entry: (-entry[1], entry[0]))
