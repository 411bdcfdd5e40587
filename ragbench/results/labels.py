"""Where judged pages were when a run was measured, and what the run is worth by labels that follow them."""

from __future__ import annotations

import csv
import io
import logging
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import registry
from ragbench.base.types import RagbenchError
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.label_health import Followed, FollowedLabels
from ragbench.evaluation import measures

if TYPE_CHECKING:
    from ragbench.results.measurements import Measurements

_LOG = logging.getLogger(__name__)

LABELS = "labels.csv"
"""A row for each judgment of a run: what became of the judged page or section, and where it is now."""
_COLUMNS = ("qid", "judged", "grade", "outcome", "now", "confidence", "doubtful", "section", "reason")


def files(benchmark: Benchmark, qids: Collection[str]) -> dict[str, str]:
    """The file of labels by name; none for benchmarks that are not folders of markdown, and if git cannot be read."""
    labels, follow = benchmark.labels, registry.find("hook", "followed_labels")
    try:
        if labels is None and follow:
            labels = follow.follow_labels(benchmark)
    except (RagbenchError, OSError) as error:
        _LOG.warning(f"label health is unknown, because the earlier documents cannot be read: {error}")
        return {}
    if labels is None:
        return {}
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(_row(qid, name, grade, labels.by_name[name]) for qid, name, grade in labels.judged if qid in qids)
    return {LABELS: text.getvalue()}


def _row(qid: str, name: str, grade: int, one: Followed) -> tuple[Any, ...]:
    now = ";".join(one.targets)
    flags = int(one.doubtful), int(one.is_section)
    return qid, name, grade, one.outcome, now, f"{one.confidence:.3f}", *flags, f"{one.target}: {one.reason}"


def read(folder: Path) -> FollowedLabels | None:
    """The labels of a run; None for one that has none."""
    path = folder / LABELS
    if not path.is_file():
        return None
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return FollowedLabels(
        {row["judged"]: _followed(row) for row in rows},
        [(row["qid"], row["judged"], int(row["grade"])) for row in rows],
    )


def _followed(row: Mapping[str, Any]) -> Followed:
    target, _, reason = row["reason"].partition(": ")
    targets = tuple(filter(None, row["now"].split(";")))
    doubtful, is_section = (row[name] == "1" for name in ("doubtful", "section"))
    return Followed(target, row["outcome"], targets, float(row["confidence"]), reason, doubtful, is_section)


def followed_values(results: Measurements, arm: str) -> dict[str, float]:
    """By qid, the measure of documents of an arm with labels that follow the judged pages; empty without labels."""
    labels = results.labels
    if labels is None:
        return {}
    measure = measures.PRIMARY if measures.tokens_of(results.primary) else results.primary
    qrels = labels.document_qrels()
    run = {qid: hits for qid, hits in results.run(arm).items() if qid in qrels}
    frame = measures.evaluate(run, qrels, [measure])
    values = frame[frame["measure"] == measure].set_index("qid")["value"]
    return {str(qid): float(value) for qid, value in values.items()}
