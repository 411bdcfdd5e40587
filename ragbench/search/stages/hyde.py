"""HyDE: embed a passage that might answer the query instead of the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from ragbench.base.bounds import Name, Prompt
from ragbench.base.errors import ModelError
from ragbench.base.progress import track
from ragbench.base.types import QueryState
from ragbench.models.chat import ChatFields
from ragbench.search.stages.stage import NOTHING, Fact

if TYPE_CHECKING:
    from ragbench.index.index import Index

_PROMPT = (
    "Write a short passage of technical documentation that answers this question.\n\nQuestion: {query}\n\nPassage:"
)


@dataclass(frozen=True)
class SupposeAnswer(ChatFields):
    """Give dense retrieval a hypothesis, which it embeds as a passage.

    Gao et al., ACL 2023; seed 001, "HyDE". The hypothesis is `text` if it is set (the same for every query), else the
    one that comes with the query, else the answer of the model at `endpoint` to `prompt`, in which `{query}` stands for
    the query. Without any of them, or when the endpoint fails, the query itself is embedded. The other parameters are
    those of `ragbench.models.chat.ChatSpec`.
    """

    text: Name | None = None  # one hypothesis for every query, as `ragbench search --hypothesis` sets it
    prompt: Prompt = _PROMPT

    options: ClassVar[frozenset[str]] = frozenset({"hypothesis"})
    needs: ClassVar[frozenset[str]] = NOTHING
    requires: ClassVar[frozenset[str]] = NOTHING
    provides: ClassVar[frozenset[str]] = frozenset({Fact.HYPOTHESIS})
    forbids: ClassVar[Mapping[str, str]] = {
        Fact.RANKINGS: "a source has been searched already",
        Fact.HYPOTHESIS: "there is a hypothesis already",
    }

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Put a hypothesis into every state that can have one."""
        return [self._with_hypothesis(state, index) for state in track("writing hypotheses", states)]

    def _with_hypothesis(self, state: QueryState, index: Index) -> QueryState:
        known = self.text or state.query.hypothesis
        if known and known.strip():
            return _add_hypothesis(state, known, "the one given")
        if self.endpoint is None:
            return state.with_note("no hypothesis: the query itself is embedded")
        try:
            passage = index.chat(self.spec(self.endpoint)).complete(self.prompt.replace("{query}", state.query.text))
        except ModelError as error:
            return state.with_note(f"no hypothesis, the query itself is embedded: {error}")
        return _add_hypothesis(state, passage, f"by {self.model}")

    def describe(self) -> str:
        return "suppose an answer"


def _add_hypothesis(state: QueryState, hypothesis: str, origin: str) -> QueryState:
    return state.with_text("hypothesis", hypothesis).with_note(f"hypothesis, {origin}: {hypothesis}")
