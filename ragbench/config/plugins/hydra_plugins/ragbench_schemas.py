"""Hydra finds this module by its package `hydra_plugins`; it stores the schemas of a program that imports ragbench."""

import sys

from hydra.core.config_search_path import ConfigSearchPath
from hydra.plugins.search_path_plugin import SearchPathPlugin


class RagbenchSchemas(SearchPathPlugin):
    """Gives `hydra.compose` the options and sections that the classes of ragbench declare."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Store the schemas; the search path stays as it is."""
        if "ragbench" in sys.modules:
            from ragbench.config import store

            store.register()
