"""The content of a report, read from the files of a run: comparisons, effects, losses, topics, top hits.

Every function takes `Measurements` and returns a table. A table that the run did not write (no section
judgments) is empty with the same columns, and the report then says what is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from ragbench.evaluation import diagnosis
from ragbench.evaluation.contexts import COLUMNS as CONTEXT_COLUMNS
from ragbench.evidence import table
from ragbench.evidence.policy import Policy
from ragbench.results import measurements
from ragbench.results.measurements import CONTEXTS, DIAGNOSIS, TOP
from ragbench.results.top_hits import COLUMNS as TOP_COLUMNS

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

JUDGED = "Judged@10"


def rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table as mappings from column to value."""
    names = [str(name) for name in frame.columns]
    # Reading by columns takes a third of the time of `to_dict(orient="records")`.
    columns = [frame[name].tolist() for name in frame.columns]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def pipeline(results: Measurements, arm: str) -> str:
    """An arm's pipeline as a sentence, empty when it was not written."""
    path = results.arm_path(arm) / "pipeline.txt"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def design(results: Measurements) -> str:
    """The sentence that describes the design of an ablation, empty for other runs."""
    path = results.folder / "design.txt"
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""


def top_hits(results: Measurements) -> pd.DataFrame:
    """The first hits of every arm for every query: arm and the columns of `experiment.top_hits`."""
    return results.arm_tables(TOP, ("arm", *TOP_COLUMNS))


def fates(results: Measurements) -> pd.DataFrame:
    """The fate of every relevant section, or document, in every arm: the columns of `evaluation.diagnosis`."""
    return results.arm_tables(DIAGNOSIS, diagnosis.COLUMNS)


def contexts(results: Measurements) -> pd.DataFrame:
    """The tokens of every query's context by folder and type: arm and the columns of `evaluation.contexts`."""
    return results.arm_tables(CONTEXTS, ("arm", *CONTEXT_COLUMNS))


def losses(results: Measurements) -> pd.DataFrame:
    """How many relevant sections, and which share, had each outcome at each stage: a row for arm, outcome and stage."""
    frame = diagnosis.losses(fates(results))
    order = {arm: n for n, arm in enumerate(results.arms)}
    return frame.sort_values(["arm", "sections"], key=lambda c: c.map(order) if c.name == "arm" else -c, kind="stable")


def effects(results: Measurements) -> pd.DataFrame:
    """The verdicts that the run wrote: on the factors of an ablation, else on every arm against the first."""
    return measurements.read_verdicts(results)


def lacks_judgments(results: Measurements) -> bool:
    """Whether an effect is open because its sign depends on results without a judgment."""
    return bool((effects(results)["needs_judgments"] == 1).any())


def by_kind(results: Measurements, of: Literal["type", "area"] = "type") -> pd.DataFrame:
    """Every query type, or area of the collection, and arm against the first arm: see `evidence.table.by_type`."""
    first = results.arms[0]
    chosen = Policy.of(results.config(first))
    reference = results.values(first, chosen.measure)
    if not len(reference):
        return table.TYPES.frame()
    of_topic = results.topics.set_index("qid")[of].reindex(reference.index)
    values = {arm: results.values(arm, chosen.measure).reindex(reference.index) for arm in results.arms}
    return table.by_type(values, first, list(of_topic), chosen)
