"""The same changes on several collections."""

from __future__ import annotations

import pandas as pd
import pytest

from ragbench.base.errors import ResultsError
from ragbench.extras.atlas.compare_effects import agreement, effects


def verdicts(**found: float) -> pd.DataFrame:
    rows = [(name, "main", value, value - 0.02, value + 0.02) for name, value in found.items()]
    rows.append(("p1", "interaction", 9.0, 8.0, 10.0))
    return pd.DataFrame(rows, columns=["factor", "kind", "effect", "ci_low", "ci_high"])


def test_shared_changes_stand_side_by_side() -> None:
    frame = effects({"a": verdicts(p1=0.1, p2=0.03, p3=-0.05), "b": verdicts(p3=-0.01, p1=0.2, p2=-0.04, p9=1)})
    assert frame["change"].tolist() == ["p1", "p2", "p3"]
    assert frame["b effect"].tolist() == [0.2, -0.04, -0.01]
    assert frame["a high"].tolist() == pytest.approx([0.12, 0.05, -0.03])


def test_agreement_is_that_worked_by_hand() -> None:
    frame = effects({"a": verdicts(p1=0.1, p2=0.03, p3=-0.05), "b": verdicts(p3=-0.01, p1=0.2, p2=-0.04)})
    (row,) = agreement(frame).to_dict(orient="records")
    assert row["rank_correlation"] == pytest.approx(0.5)  # ranks 3 2 1 and 3 1 2: 1 - 6 * 2 / (3 * 8)
    assert row["same_sign"] == pytest.approx(2 / 3)
    assert (row["sure"], row["sure_alike"]) == (2, 1)  # p1 and p2; b is not sure of p3


def test_every_two_of_three() -> None:
    same = verdicts(p1=0.1, p2=0.03, p3=-0.05)
    found = agreement(effects({"a": same, "b": same, "c": same}))
    assert found[["first", "second"]].to_numpy().tolist() == [["a", "b"], ["a", "c"], ["b", "c"]]
    assert (found["rank_correlation"] == 1).all()


def test_what_cannot_be_compared_is_one_sentence() -> None:
    with pytest.raises(ResultsError, match="name two runs or more"):
        effects({"a": verdicts(p1=0.1)})
    with pytest.raises(ResultsError, match="share 1 changes by name, and 3 are needed"):
        effects({"a": verdicts(p1=0.1, p2=0.1), "b": verdicts(p1=0.1, p3=0.1)})
