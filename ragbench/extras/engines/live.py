"""An engine that ragbench loaded, as an arm: it is measured where it is deployed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from ragbench.base.bounds import Constraint, Count, Name, Positive
from ragbench.base.errors import LiveError, RagbenchError, without_secret
from ragbench.base.options import option
from ragbench.extras.remote.live.client import Expression, RequestFailed
from ragbench.extras.remote.live.stages import Live


@option("live=sqlite", "A file of `ragbench export --format sqlite`, measured as it is.")
@option("live=postgres", "A schema of PostgreSQL that `ragbench export --format postgres --load` filled.")
@option(
    "live=engine",
    "A search that `ragbench export --load` put into a server of any kind, such as OpenSearch or Elasticsearch.",
)
@dataclass(frozen=True, kw_only=True)
class LiveEngine(Live):
    """A search that `ragbench export` put into a file of SQLite, or loaded into a server.

    `order`: whether the learned order of the exported arm, if it has one, is put on top, as `ragbench serve`
    does.
    """

    engine: Annotated[
        Name,
        Constraint(without_secret, "must hold no password: write env:NAME for a variable with one"),
    ]
    order: bool = True
    hits: Expression = "@"
    document: Expression | None = "path"
    text: Expression | None = "text"
    score: Expression | None = "score"
    depth: Count = 100
    per_second: Positive = 1000.0

    @property
    def name(self) -> str:
        """The file or address."""
        return self.engine

    def asking(self) -> Callable[[str, int], Any]:
        """One connection for all queries."""
        from ragbench.extras.engines.opened import EngineDeployment

        try:
            bundle = EngineDeployment(self.engine).open(order=self.order)
        except RagbenchError as error:
            raise LiveError(f"{self.name} cannot be asked: {error}") from None

        def ask(query: str, depth: int) -> Any:
            try:
                hits = bundle.search(query, depth)
            except RagbenchError as error:
                raise RequestFailed(str(error)) from None
            return [{"path": hit.path, "text": hit.text, "score": hit.score} for hit in hits]

        return ask
