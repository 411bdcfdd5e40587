"""The page's tables of results."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ragbench.base import fewest
from ragbench.config.catalogue import label
from ragbench.evaluation import headroom as room
from ragbench.evaluation.diagnosis import FOUND, unit
from ragbench.evaluation.latency import NOTABLE
from ragbench.evaluation.levels import PASSAGE
from ragbench.evaluation.measures import ANSWERED, FALSE_SILENCE, HITS, PRIMARY, SILENCE, UNPLACED
from ragbench.evaluation.passages import TOKENS
from ragbench.evidence import areas as areas_
from ragbench.evidence import field as field_
from ragbench.evidence import halves as halves_
from ragbench.report import evidence
from ragbench.report.cells import MARKS, Cell, Table, direction, interval, join_names, p_value, plain, signed
from ragbench.report.figures import fate, main_effects
from ragbench.results import verdicts as verdicts_

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

THIN, TIMES = "\u2009", "\u00d7"
SECONDARY = ("RR", "R@10", "R@100", "Success@1", evidence.JUDGED)


def verdicts(results: Measurements) -> Table:
    """The effects at both levels with verdict and reason."""
    measure, effects = evidence.primary(results), main_effects(results)
    ablation, timed = bool(evidence.design(results)), bool(effects["latency_ms"].notna().any())
    passages = bool(effects["passage_effect"].notna().any())
    rows = []
    for row in evidence.rows(effects):
        sampled = f"sampling error {row['standard_error']:.3f}" if row["standard_error"] > 0 else ""
        aliased = f"with {row['aliases']}" if row["aliases"] else ""
        rows.append(
            (
                Cell(label(row["factor"]), aliased or sampled),
                Cell(f"{MARKS[row['verdict']]} {row['verdict']}", "", f"verdict {row['verdict']}"),
                _effect(row),
                *([_effect(row, "passage_")] if passages else []),
                *([_cost(row)] if timed else []),
                Cell(p_value(row["p"]), p_value(row["passage_p"]) if passages else ""),
                _counts(row),
                Cell(plain(row["mde"])),
            )
        )
    subject = "Effect of turning each proposal on" if ablation else f"Every configuration against '{results.arms[0]}'"
    return Table(
        f"{subject}, largest gain first",
        (
            ("Proposal" if ablation else "Configuration", ""),
            ("Verdict", ""),
            (f"{measure}, documents", "mean difference over queries with its interval; all of the table hold together"),
            *([(f"{PRIMARY}, passages", "the same for passages as they are returned")] if passages else []),
            *([("p95, ms", "what it adds to the p95 of a query, and the budget")] if timed else []),
            ("p", "adjusted for all comparisons of this table, at both levels; below it that of passages"),
            ("W / T / L", "queries that win, tie and lose, by documents"),
            ("MDE", "the true difference of documents that 80% of such comparisons find"),
        ),
        tuple(rows),
        tuple(map(str, effects["reason"])),
    )


def field(results: Measurements) -> Table:
    """How likely each configuration is the best of the field."""
    frame = verdicts_.field(results)
    passages = bool(frame["passage_mean"].notna().any())
    rows = tuple(
        (
            Cell(row["arm"]),
            Cell(plain(row["mean"])),
            Cell(f"{row['best']:.0%}"),
            *([Cell(plain(row["passage_mean"])), Cell(f"{row['passage_best']:.0%}")] if passages else []),
            Cell(row["ruled_out_by"], "", "word"),
            Cell(plain(row["more_topics"], 0)),
        )
        for row in evidence.rows(frame)
    )
    heads = field_.COLUMNS.heads
    columns = (
        ("Configuration", ""),
        (f"{evidence.primary(results)}, documents", ""),
        *heads("best"),
        *([(f"{PRIMARY}, passages", ""), *heads("passage_best")] if passages else []),
        *heads("ruled_out_by", "more_topics"),
    )
    return Table("How likely each configuration is the best", columns, rows)


def halves(results: Measurements) -> Table:
    """The effects on both halves of the topics."""
    frame = verdicts_.halves(results)
    rows = tuple(
        (
            Cell(row["factor"]),
            Cell(f"{row['level']}s", "", "word"),
            Cell(signed(row["train"]), f"{row['n_train']} topics"),
            Cell(signed(row["test"]), f"{row['n_test']} topics"),
            Cell(p_value(row["p"])),
        )
        for row in evidence.rows(frame)
    )
    columns = halves_.COLUMNS.heads("factor", "level", "train", "test", "p")
    return Table("Effects on train and on test topics", columns, rows)


def areas(results: Measurements) -> Table:
    """The effects with intervals over topics, and over whole areas."""
    rows = tuple(
        (
            Cell(row["factor"]),
            Cell(f"{row['level']}s", "", "word"),
            Cell(signed(row["effect"]), interval(row["low"], row["high"]), direction(row["low"], row["high"])),
            Cell(interval(row["area_low"], row["area_high"]), f"{row['areas']} areas"),
            Cell(signed(row["without"]), f"without {row['weakest']}"),
        )
        for row in evidence.rows(verdicts_.areas(results))
    )
    columns = areas_.COLUMNS.heads("factor", "level", "effect", "area_low", "weakest")
    return Table("Effects over topics and over areas", columns, rows)


def _effect(row: Mapping[str, Any], level: str = "") -> Cell:
    low, high = row[f"{level}ci_low"], row[f"{level}ci_high"]
    return Cell(signed(row[f"{level}effect"]), interval(low, high), direction(low, high))


def arms(results: Measurements) -> Table:
    """Every arm with its means, by documents and by passages, its time and its size."""
    measure = evidence.primary(results)
    means = results.summary(by=()).set_index("arm")
    passages = results.summary(by=(), level=PASSAGE).set_index("arm")
    others = [name for name in (*SECONDARY, UNPLACED, *ANSWERED) if name in means.columns and name != measure]
    context = [str(name) for name in passages.columns if name == TOKENS or str(name).endswith("tokens")]
    total = results.latency[results.latency["stage"] == "total"].set_index("arm") if len(results.latency) else None
    columns = [("Configuration", ""), (f"{measure}, documents", "mean over topics")]
    if len(passages):
        columns.append((f"{PRIMARY}, passages", "of passages as they are returned"))
    if total is not None:
        columns += [("p50, ms", "median service time of a query"), ("p95, ms", "with its 95% interval")]
    columns += [(name, _MEANING.get(name, "")) for name in others]
    columns += [(name, _MEANING.get(name, "share of the relevant sections' grades that fit")) for name in context]
    columns.append(("Index, MB", "bytes of all artefacts it reads"))
    if results.peak_memory_mb:
        columns.append(("Memory, MB", "peak of a process that answers one query"))
    rows = []
    for arm in results.arms:
        cells = [Cell(arm), Cell(plain(_at(means, arm, measure)))]
        if len(passages):
            cells.append(Cell(plain(_at(passages, arm, PRIMARY))))
        if total is not None:
            low, high = (_at(total, arm, f"p95_{end}") for end in ("low", "high"))
            p95 = f"[{low:.0f}, {high:.0f}]" if arm in total.index and high == high else ""
            cells += [Cell(plain(_at(total, arm, "p50"), 1)), Cell(plain(_at(total, arm, "p95"), 1), p95)]
        cells += [Cell(plain(_at(means, arm, name))) for name in others]
        cells += [Cell(plain(_at(passages, arm, name), 0 if name == TOKENS else 3)) for name in context]
        cells.append(Cell(f"{results.record['index_bytes'][arm] / 1e6:.1f}"))
        if results.peak_memory_mb:
            # A search that runs elsewhere has its memory there.
            cells.append(Cell(plain(results.peak_memory_mb.get(arm, math.nan), 0)))
        rows.append(tuple(cells))
    return Table("Means over all measured topics", tuple(columns), tuple(rows))


_MEANING = {
    "RR": "reciprocal rank of the first relevant document",
    "R@10": "share of the relevant documents among the first 10",
    "R@100": "share of the relevant documents among the first 100",
    "Success@1": "share of queries whose first document is relevant",
    evidence.JUDGED: "share of the first 10 documents that were judged",
    UNPLACED: "share of the first 10 hits of a live search that are in no document of the collection",
    TOKENS: "tokens of the first ten hits",
    SILENCE: "share of the topics without an answer that got no result",
    FALSE_SILENCE: "share of the topics with an answer that got no result",
    HITS: "documents among the first 10, of all topics",
}


def kinds(results: Measurements, of: Literal["type", "area"]) -> tuple[Table, str]:
    """The primary measure by query type or area, and a sentence that names those with few queries."""
    frame = evidence.by_kind(results, of)
    groups = evidence.rows(frame.drop_duplicates("kind"))
    cells = {(row["arm"], row["kind"]): row for row in evidence.rows(frame)}
    first = results.arms[0]
    rows = []
    for arm in results.arms:
        line = [Cell(arm)]
        for group in groups:
            row = cells[arm, group["kind"]]
            note = "" if arm == first else f"{signed(row['difference'])} {interval(row['low'], row['high'], 2)}"
            line.append(Cell(plain(row["mean"]), note, direction(row["low"], row["high"]) if arm != first else ""))
        rows.append(tuple(line))
    columns = [(f"{each['kind']} ({each['n']}{', few' if each['warning'] else ''})", "") for each in groups]
    few = [f"{each['kind']} {each['n']}" for each in groups if each["warning"]]
    said = (
        f"By {of}: {join_names(few)}. It takes at least {fewest.CONCLUSION} queries to make a conclusion stable."
        if few
        else ""
    )
    table = Table(
        f"{evidence.primary(results)} by {'query type' if of == 'type' else of} (number of queries)",
        (("Configuration", ""), *columns),
        tuple(rows),
    )
    return table, said


def losses(results: Measurements) -> Table:
    """How many relevant sections had each fate, a row for every arm."""
    counts: dict[tuple[str, str], int] = {}
    totals: Counter[str] = Counter()
    for row in evidence.rows(evidence.losses(results)):
        name = fate(row["outcome"], row["stage"])
        counts[row["arm"], name] = counts.get((row["arm"], name), 0) + int(row["sections"])
        totals[name] += int(row["sections"])
    order = sorted(totals, key=lambda name: (name != FOUND, -totals[name], name))
    rows = []
    for arm in results.arms:
        cells = [counts.get((arm, name), 0) for name in order]
        total = sum(cells)
        rows.append((Cell(arm), *(Cell(str(count), f"{count / total:.0%}" if count else "") for count in cells)))
    return Table(
        f"Relevant {unit(evidence.fates(results))} by what became of them",
        (("Configuration", ""), *((name, "") for name in order)),
        tuple(rows),
    )


def headroom(results: Measurements) -> Table | None:
    """What ordering and retrieval could still bring to every arm; None where the run did not write it."""
    frame = evidence.headroom(results)
    if not len(frame):
        return None
    sources = room.sources(frame)
    columns = [("Configuration", ""), (room.VALUE, "as it ranks the documents")]
    columns += [
        (f"best order of {depth}", f"{room.VALUE} of the best order of the first {depth}") for depth in room.DEPTHS
    ]
    columns += [
        ("ordering", f"what the best order of the first {room.DEPTHS[-1]} would add"),
        ("retrieval", "what documents would add that no source found"),
        ("topics lost", "share of the topics without a relevant document among the first 10"),
    ]
    columns += [(f"recall of {name}", "relevant documents that this source found") for name in sources]
    columns.append(("recall together", "relevant documents that any source found"))
    names = [room.VALUE, *(f"oracle_{depth}" for depth in room.DEPTHS)]
    rows = [
        (
            Cell(row["arm"]),
            *(Cell(plain(row[name])) for name in names),
            Cell(room.signed(row["ordering"])),
            Cell(room.signed(row["retrieval"])),
            Cell(f"{row['lost']:.0%}"),
            *(Cell(plain(row[f"{room.RECALL}{name}"])) for name in (*sources, "together")),
        )
        for row in room.summary(frame).to_dict(orient="records")
    ]
    return Table("What ordering and retrieval could still bring", tuple(columns), tuple(rows))


def interactions(results: Measurements) -> Table:
    """All interactions, the one with the smallest p first."""
    frame = evidence.effects(results)
    frame = frame[frame["kind"] == "interaction"].sort_values(["p", "factor", "other"], kind="stable")
    rows = [
        (
            Cell(f"{row['factor']} {TIMES} {row['other']}", f"with {row['aliases']}" if row["aliases"] else ""),
            Cell(
                signed(row["effect"]), interval(row["ci_low"], row["ci_high"]), direction(row["ci_low"], row["ci_high"])
            ),
            Cell(p_value(row["p"])),
            _counts(row),
        )
        for row in evidence.rows(frame)
    ]
    columns = (("Pair", ""), ("Interaction", f"with its {results.interval} interval"), ("p", ""), ("W / T / L", ""))
    return Table("How much the effect of one grows when the other is on", columns, tuple(rows))


def latency(results: Measurements) -> Table:
    """Milliseconds by arm and stage, the cold start where it was measured, and times of repeats where they differ."""
    percentiles = ("mean", "p50", "p95", "p99")
    rows = [
        (
            Cell(str(row["arm"])),
            Cell(str(row["stage"]), "", "word"),
            *(Cell(plain(float(row.get(name, math.nan)), 1)) for name in percentiles),
            *(_again(row, name) for name in ("p50", "p95")),
        )
        for row in evidence.rows(results.latency)
    ]
    columns = (("Configuration", ""), ("Stage", ""), *((name, "milliseconds") for name in percentiles))
    columns += (("p50 asked again", "where it differs by over 10%"), ("p95 asked again", ""))
    return Table("Milliseconds of a query by stage", columns, tuple(rows))


def _again(row: Mapping[str, Any], name: str) -> Cell:
    value = float(row.get(f"again_{name}", math.nan))
    return Cell(plain(value if abs(value - row[name]) > NOTABLE * row[name] else math.nan, 1))


def _counts(row: Mapping[str, Any]) -> Cell:
    return Cell(f"{row['wins']:.0f}{THIN}/{THIN}{row['ties']:.0f}{THIN}/{THIN}{row['losses']:.0f}")


def _cost(row: Mapping[str, Any]) -> Cell:
    whole = round(row["latency_ms"]) + 0.0  # no negative zero
    return Cell(signed(whole, 0), "no budget" if math.isnan(row["budget_ms"]) else f"of {row['budget_ms']:.0f} allowed")


def _at(frame: pd.DataFrame, arm: str, column: str) -> float:
    return float(frame[column][arm]) if arm in frame.index and column in frame.columns else math.nan
