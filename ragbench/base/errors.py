"""Errors a person can act on: each message is one sentence that names the thing and the remedy.

The command line prints the message and exits with code 2; no traceback is shown for these.
"""


class RagbenchError(Exception):
    """Base of every error that ragbench raises on purpose."""


class BoundaryError(RagbenchError, ValueError):
    """Content from outside that cannot be used; the message is the reason alone, such as `invalid JSON at line 3`."""


class ConfigError(RagbenchError):
    """A configuration key or value that cannot be used."""


class CorpusError(RagbenchError):
    """Documents that cannot be read."""


class BenchmarkError(RagbenchError):
    """Topics, judgments or splits that cannot be used."""


class IndexError_(RagbenchError):  # noqa: N801 -- stays apart from Python's own
    """An index artefact that is missing, foreign or damaged."""


class ModelError(RagbenchError):
    """A model that cannot be found, verified or loaded."""


class JavaError(RagbenchError):
    """No usable Java runtime."""


class LiveError(RagbenchError):
    """A search that runs elsewhere and gives no usable answer."""


class ArmsFailed(RagbenchError):
    """Arms of an experiment that failed; all other arms are complete. The command line exits with code 1."""


class TrackingError(RagbenchError):
    """The MLflow store cannot be used."""


class ResultsError(RagbenchError):
    """A results folder that is missing or unreadable."""


class BundleError(RagbenchError):
    """An exported bundle that is missing, damaged, or made for other documents or another version."""
