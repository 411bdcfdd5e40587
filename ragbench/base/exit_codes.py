"""Exit codes of the command line; 0 means success."""

FAILED = 1
"""A check did not pass (`data check`, `verify`, `gate`), or arms of an experiment failed."""
BAD_INPUT = 2
"""Bad input, or a part that is missing; one sentence on stderr names it."""
NOT_CHECKED = 3
"""Nothing failed, but there are too few topics, or too uncertain times, to show what `gate` was asked to show."""
INTERRUPTED = 130
"""Stopped with Ctrl-C or SIGTERM; what was finished is kept."""
