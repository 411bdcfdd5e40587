"""MLflow: written from finished results. No other package imports it."""

from ragbench.tracking.store import Target, check, folder_of, target_of
from ragbench.tracking.write import comparison, log, log_missing, prepare

__all__ = ["Target", "check", "comparison", "folder_of", "log", "log_missing", "prepare", "target_of"]
