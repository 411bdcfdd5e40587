"""MLflow: written from finished results. No other package imports it."""

from ragbench.tracking.nights import nights
from ragbench.tracking.store import Target, check, folder_of, target_of
from ragbench.tracking.write import log, log_missing, mlflow_metrics, pages

__all__ = [
    "Target",
    "check",
    "folder_of",
    "log",
    "log_missing",
    "mlflow_metrics",
    "nights",
    "pages",
    "target_of",
]
