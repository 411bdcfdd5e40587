"""A bundle as a retriever of LangChain: `pip install ragbench[langchain]`.

retriever = BundleRetriever.open("bundle", top_n=5)
retriever.invoke("how do I rotate a key")
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError:
    raise ImportError("langchain-core is not installed: pip install ragbench[langchain]") from None

from pydantic import Field

from ragbench.extras.ship.loaded_bundle import LoadedBundle, load, metadata


class BundleRetriever(BaseRetriever):
    """Retrieves hits of a bundle. `options` are options of its search, such as `{"mode": "keyword"}`."""

    bundle: LoadedBundle
    top_n: int = 10
    options: dict[str, Any] = Field(default_factory=dict)

    @classmethod
    def open(cls, folder: str | Path, top_n: int = 10, **options: Any) -> BundleRetriever:
        """Open a bundle. Raises what `ragbench.load` raises."""
        return cls(bundle=load(folder), top_n=top_n, options=options)

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        hits = self.bundle.search(query, self.top_n, **self.options)
        return [Document(id=hit.chunk_id, page_content=hit.passage, metadata=metadata(hit)) for hit in hits]
