"""What the page's query explorer shows, as plain values: every query's measures, top hits and losses in every arm.

A passage that several arms return for a query is stored once. Collections with very many topics keep the texts of those
on which the arms differ most; the numbers are kept for all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragbench.experiment.top import stems
from ragbench.report import evidence
from ragbench.report.figures import fate

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.experiment.results import Results

MOST_TEXTS = 400
"""Topics whose hits are embedded, at most: more would make the file slow to open."""


def explorer(results: Results, most: int = MOST_TEXTS) -> dict[str, Any]:
    """A value that JSON can say.

    `arms`; `measures` (names, the primary first); `queries`: qid, text, need, type, stems, `values` by measure and arm
    (None where the query has no value) and, for those that keep texts, `passages` ([docno, title, headings, snippet,
    document grade, section grade]), `hits` by arm ([passage, score]) and `lost` ([section, grade, fate by arm]).
    """
    arms, measures, values = _values(results)
    hits, fates = evidence.top_hits(results), evidence.fates(results)
    hits_of = dict(list(hits.groupby("qid", sort=False))) if len(hits) else {}
    fates_of = dict(list(fates.groupby("qid", sort=False))) if len(fates) else {}
    topics = evidence.topics(results)
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


def _values(results: Results) -> tuple[list[str], list[str], dict[str, list[list[float | None]]]]:
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
    told = (frame[name].tolist() for name in ("qid", "arm", "value"))
    for name, qid, arm, value in zip(named, *told, strict=True):
        cells = values.setdefault(qid, [[None] * len(arms) for _ in measures])
        cells[place[name]][column[arm]] = round(value, 4)
    return arms, measures, values


def _spread(values: list[float | None]) -> float:
    known = [value for value in values if value is not None]
    return max(known) - min(known) if known else 0.0


def _passages(frame: pd.DataFrame, arms: list[str]) -> dict[str, Any]:
    numbers: dict[str, int] = {}
    passages: list[list[Any]] = []
    hits: list[list[list[Any]]] = [[] for _ in arms]
    place = {arm: n for n, arm in enumerate(arms)}
    for row in evidence.rows(frame):
        # Arms may chunk differently: the same id is the same passage only with the same words.
        key = row["chunk_id"] + "\n" + row["snippet"]
        if key not in numbers:
            numbers[key] = len(passages)
            passages.append(
                [
                    row["docno"],
                    row["title"],
                    row["header_path"],
                    row["snippet"],
                    _grade(row["document_grade"]),
                    _grade(row["section_grade"]),
                ]
            )
        hits[place[row["arm"]]].append([numbers[key], float(f"{row['score']:.4g}")])
    return {"passages": passages, "hits": hits}


def _grade(value: Any) -> int | None:
    import pandas as pd

    return None if pd.isna(value) else int(value)


def _losses(frame: pd.DataFrame, arms: list[str]) -> list[list[Any]]:
    """[section, grade, what became of it in every arm], best grade first."""
    told: dict[str, list[Any]] = {}
    place = {arm: n for n, arm in enumerate(arms)}
    for row in evidence.rows(frame):
        entry = told.setdefault(row["section"], [row["section"], int(row["grade"]), [""] * len(arms)])
        rank = f" at {row['rank']}" if row["rank"] else ""
        entry[2][place[row["arm"]]] = fate(row["outcome"], row["stage"]) + rank
    return sorted(told.values(), key=lambda entry: (-entry[1], entry[0]))
