"""Minimum sample sizes; numbers without another unit are queries.

Below a minimum nothing is computed, concluded or trained; each docstring says what.
"""

from __future__ import annotations

TO_SPLIT = 100
"""Queries from which half are held out. With fewer, all are explored, and `tune` judges by repeated nested folds."""

FOR_ADVICE = 50
"""Queries with a relevant document from which the first advice is no longer to collect more queries."""

PER_TYPE = 25
"""Queries of a type for a stable conclusion; smaller groups are marked. Buckley and Voorhees, SIGIR 2000."""

FOR_MDE = 20
"""Queries, and changed queries, for a minimum detectable effect and for equivalence; fewer make both unreliable."""

FOR_RANKER = 20
"""Queries to train a ranker: folds of fewer than four show nothing."""

HUMAN_GRADED = 10
"""Queries that annotators must have judged to estimate the error of an LLM judge."""

PER_LEVEL = 20
"""Judged queries at a level (documents or passages), or half of those of the other level: with fewer the level
is excluded. It could show nothing, and its comparisons would reduce the power of the others."""

WITHOUT_BOUND = 30
"""Queries from which a gain does not need a distribution-free bound."""

FOR_CI = 3
"""Queries for the confidence interval of a mean."""

FOR_P95_CI = 72
"""Queries for an upper bound of p95: .95^72 = .0249 is the probability that all are below it."""

ARMS = 3
"""Arms for the probability of being the best; with fewer, the verdict is enough."""

CLICKS = 2
"""Searches in which a document must have been opened before it counts as relevant."""

GRADES = 3
"""Grades of one annotator from which the remaining time is estimated."""

FUNCTION_WORDS = 3
"""Function words of a language from which a document counts as written in it."""

WITHOUT_PRIOR = 100
"""Queries from which a run is reported without a prediction from other collections."""

COLLECTIONS = 10
"""Collections from which an effect is reported as general, and from which effects are predicted."""
