"""MLflow: written from finished results. No other package imports it. The core finds these names as `hook.tracking`."""

from ragbench.extras.tracking.store import check, folder_of, state, target_of
from ragbench.extras.tracking.write import log

__all__ = ["check", "folder_of", "log", "state", "target_of"]
