"""How much is enough for what: the one table of the fewest topics, queries, arms, areas and sites.

Below a number nothing is computed, concluded or learned; each line says what.
"""

from __future__ import annotations

HALVES = 100
"""Topics of which half can be held out. Fewer are explored whole; searched whole, repeated nested folds judge."""

ADVICE = 50
"""Topics with a relevant document, from which more topics are no longer the first advice."""

CONCLUSION = 25
"""Topics of a kind for a stable conclusion; fewer are marked. Buckley and Voorhees, SIGIR 2000."""

DETECTABLE = 20
"""Queries, and changed queries, for a detectable effect and for equivalence: with fewer neither is reliable."""

ORDER = 20
"""Topics that an order is learned from: folds of less than four show nothing."""

GRADED = 10
"""Topics that annotators must have judged to estimate the error of a model."""

HALF = 5
"""Topics in each half for which train and test are compared."""

LEVEL = 20
"""Topics with judgments at a level (documents or passages), or half of those of the other level: else
it is excluded. It could show nothing, and its comparisons would cost the others their power."""

BOUND_FREE = 30
"""Queries from which a gain needs no bound that holds for every distribution."""

INTERVAL = 3
"""Queries for an interval of a mean."""

P95 = 72
"""Queries that bear an upper bound of p95: .95^72 = .0249 is the chance that all are below it."""

AREAS = 4
"""Areas of a collection for intervals in which whole areas are drawn."""

SITES = 3
"""Sites that an order for others is learned from: with each excluded in turn, there are at least two."""

FIELD = 3
"""Arms of a field; with fewer, the verdict says enough."""

SHARED = 3
"""Arms or changes that two runs share for a rank correlation: two can only agree or disagree in order."""

CLICKS = 2
"""Searches that must have opened a document before it counts as relevant."""

JUDGED_TIMES = 3
"""Grades of one judge from which the time that is left is estimated."""

FUNCTION_WORDS = 3
"""Function words of a language from which a document is said to be in it."""

_SAMPLED = 5
"""Topics from which a first answer is shown before the whole one."""

WITHOUT_EXPECTATION = 100
"""Topics from which a run speaks for itself, without what other collections lead to expect."""

COLLECTIONS = 10
"""Collections from which an effect is said to hold in general."""
