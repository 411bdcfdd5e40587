"""The verdicts of an experiment: computed once at its end, stored with the results, read wherever they are shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragbench.base.files import write_text
from ragbench.evidence import areas as areas_
from ragbench.evidence import field as field_
from ragbench.evidence import halves as halves_
from ragbench.evidence import table
from ragbench.evidence.arms import Arms, JudgedContrast
from ragbench.results.measurements import AREAS, FIELD, HALVES, VERDICTS, Measurements

if TYPE_CHECKING:
    import pandas as pd


def write(
    results: Measurements,
    judged_contrasts: Sequence[JudgedContrast],
    standard_errors: Mapping[str, float] | None = None,
) -> None:
    """Write the verdicts of the experiment."""
    frame = table.table(judged_contrasts, standard_errors)
    write_text(results.folder / VERDICTS, frame.to_csv(index=False))
    topics, arms = results.topics, Arms.of(results)
    contrasts = [each.contrast for each in judged_contrasts if len(each.contrast.factors) == 1]
    sides = halves_.halves(arms, contrasts, dict(zip(topics["qid"], topics["split"], strict=True)))
    if len(sides):
        write_text(results.folder / HALVES, sides.to_csv(index=False))
    by_area = areas_.areas(arms, judged_contrasts, dict(zip(topics["qid"], topics["area"], strict=True)))
    if len(by_area):
        write_text(results.folder / AREAS, by_area.to_csv(index=False))


def against_first(results: Measurements) -> None:
    """Judge every arm against the first, and store the verdicts; a single arm has none."""
    if len(results.arms) > 1:
        arms = Arms.of(results)
        write(results, arms.against())
        found = field_.field(arms)
        if len(found):
            write_text(results.folder / FIELD, found.to_csv(index=False))


def read(results: Measurements) -> pd.DataFrame:
    """The verdicts of an experiment, without rows where it compared nothing."""
    return table.COLUMNS.read(results.folder / VERDICTS)


def field(results: Measurements) -> pd.DataFrame:
    """How likely each of several arms is the best, with the columns of `ragbench.evidence.field`; possibly empty."""
    return field_.COLUMNS.read(results.folder / FIELD)


def halves(results: Measurements) -> pd.DataFrame:
    """The effects on train and test, with the columns of `ragbench.evidence.halves`; possibly empty."""
    return halves_.COLUMNS.read(results.folder / HALVES)


def areas(results: Measurements) -> pd.DataFrame:
    """The effects with intervals over areas, with the columns of `ragbench.evidence.areas`; possibly empty."""
    return areas_.COLUMNS.read(results.folder / AREAS)
