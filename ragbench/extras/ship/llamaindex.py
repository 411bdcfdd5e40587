"""A bundle as a retriever of LlamaIndex: `pip install ragbench[llamaindex]`.

retriever = BundleRetriever.open("bundle", top_n=5)
retriever.retrieve("how do I rotate a key")
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode
except ImportError:
    raise ImportError("llama-index-core is not installed: pip install ragbench[llamaindex]") from None

from ragbench.extras.ship.loaded_bundle import LoadedBundle, load, metadata


class BundleRetriever(BaseRetriever):
    """Retrieves hits of a bundle. `options` are options of its search, such as `mode="keyword"`."""

    def __init__(self, bundle: LoadedBundle, top_n: int = 10, **options: Any) -> None:
        super().__init__()
        self._bundle = bundle
        self._top_n = top_n
        self._options = options

    @classmethod
    def open(cls, folder: str | Path, top_n: int = 10, **options: Any) -> BundleRetriever:
        """Open a bundle. Raises what `ragbench.load` raises."""
        return cls(load(folder), top_n, **options)

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._bundle.search(query_bundle.query_str, self._top_n, **self._options)
        return [
            NodeWithScore(node=TextNode(id_=hit.chunk_id, text=hit.passage, metadata=metadata(hit)), score=hit.score)
            for hit in hits
        ]
