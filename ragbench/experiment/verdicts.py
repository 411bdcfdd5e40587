"""The verdicts of an experiment: made once when it ends, kept beside the results, read by all that show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from ragbench.comparison.arms import Arms, Judged
from ragbench.comparison.table import COLUMNS, WORDS, table
from ragbench.experiment.results import VERDICTS, Results
from ragbench.files import write_text

if TYPE_CHECKING:
    import pandas as pd


def write(results: Results, judged: Sequence[Judged], standard_errors: Mapping[str, float] | None = None) -> None:
    """Keep verdicts as those of the experiment."""
    frame = table(judged, standard_errors)
    write_text(results.folder / VERDICTS, frame.to_csv(index=False))


def against_first(results: Results) -> None:
    """Judge every arm against the first, and keep the verdicts; of one arm there are none."""
    if len(results.arms) > 1:
        write(results, Arms.of(results).against())


def read(results: Results) -> pd.DataFrame:
    """The verdicts of an experiment, without rows where it compared nothing."""
    import pandas as pd

    path = results.folder / VERDICTS
    if not path.is_file():
        return pd.DataFrame(columns=list(COLUMNS))
    return pd.read_csv(path, dtype=dict.fromkeys(WORDS, "str"), keep_default_na=True).fillna(dict.fromkeys(WORDS, ""))
