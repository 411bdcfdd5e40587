"""What the atlas lets a run expect: advice with its own name, next to the verdict and never counted as one.

The prior of a change is the prediction for a new collection (`meta`), of collections with topics of the same kind where
there are enough; the likelihood is that of the run's own topics. Both are normal.
"""

from __future__ import annotations

from collections.abc import Sequence

from ragbench.evaluation import measures
from ragbench.extras.atlas import changes
from ragbench.extras.atlas.meta import Expected, expect
from ragbench.extras.atlas.tables import Atlas
from ragbench.results import measurements


def of_run(
    results: measurements.Measurements, arms: Sequence[str] | None = None, base: str | None = None
) -> list[measurements.Prediction]:
    """The advice on arms of a run (default: all) against one of them (default: the first), where the atlas knows any.

    Empty for another language than the atlas speaks of, and for one arm.
    """
    base = base or results.arms[0]
    atlas = Atlas.load()
    candidates = results.arms if arms is None else arms
    predictions = [_of_arm(atlas, results, base, arm) for arm in candidates if arm != base]
    return [prediction for prediction in predictions if prediction is not None]


def prior_prediction(change: str, base: str, questions: str) -> measurements.Prediction | None:
    """Predicted effects of a change before anything is measured; None where too few collections know it."""
    atlas = Atlas.load()
    if (prior := atlas.prior(change, base, questions)) is None:
        return None
    pooled, description = prior
    expected = Expected(pooled.effect, pooled.sd)
    return _prediction(change, base, 0, expected, description, "", _kind(atlas, change, base, questions))


def _of_arm(atlas: Atlas, results: measurements.Measurements, base: str, arm: str) -> measurements.Prediction | None:
    overrides = results.record.get("overrides", {})
    base_overrides, arm_overrides = overrides.get(base, ()), overrides.get(arm, ())
    known_base, change = changes.name_of(base_overrides), changes.name_of(arm_overrides)
    elsewhere = ""
    if known_base not in changes.BASES or change is None or not len(atlas.rows(change, known_base)):
        change, known_base = changes.name_on_base(base_overrides, arm_overrides), changes.BASE
        elsewhere = f", where it was added to {changes.BASE}"
    if change is None or known_base is None:
        return None
    questions = "derived" if results.topics_origin else "people"
    prior = atlas.prior(change, known_base, questions)
    if prior is None:
        return None
    pooled, description = prior
    gains = (results.values(arm, measures.PRIMARY) - results.values(base, measures.PRIMARY)).dropna().tolist()
    expected = expect(pooled, gains, atlas.typical_sd(change, known_base))
    return _prediction(
        arm, base, len(gains), expected, description, elsewhere, _kind(atlas, change, known_base, questions)
    )


def _kind(atlas: Atlas, change: str, base: str, questions: str) -> str:
    """The kind of queries that the prior of a change is known for."""
    same_kind = atlas.pooled(change, base, questions)
    if same_kind is None or not same_kind.has_enough_collections:
        return "all kinds of queries"
    return "synthetic queries; user queries may differ" if questions == "derived" else "user queries"


def _prediction(
    arm: str, base: str, topics: int, expected: Expected, description: str, elsewhere: str, queries: str
) -> measurements.Prediction:
    numbers = (topics, expected.effect, expected.low, expected.high, expected.better)
    return measurements.Prediction(arm, base, *numbers, description, elsewhere, queries)
