"""P5: add WordNet's synonyms to the words of the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import Interval

from ragbench.base.bounds import Checked
from ragbench.base.types import QueryState
from ragbench.index.vocabulary import FUNCTION_WORDS
from ragbench.search.stages.stage import NOTHING, Fact

if TYPE_CHECKING:
    from ragbench.index.index import Index


@dataclass(frozen=True)
class ExpandSynonyms(Checked):
    """Add after every word of the text for `sources` at most `max_synonyms` synonyms from its first `synsets` meanings.

    Seed 000, P5 has 2 and 2, on the lexical channel. `function_words` expands English function words, too, as the seed
    does: in WordNet `a` is a vitamin, `in` an inch and `who` an organisation.
    """

    max_synonyms: Annotated[int, Interval(ge=1, le=8)] = 2
    synsets: Annotated[int, Interval(ge=1, le=8)] = 2
    function_words: bool = False
    sources: tuple[str, ...] = ("lexical",)

    needs: ClassVar[frozenset[str]] = frozenset({"synonyms"})
    requires: ClassVar[frozenset[str]] = NOTHING
    provides: ClassVar[frozenset[str]] = frozenset({Fact.EXPANSION})
    forbids: ClassVar[Mapping[str, str]] = {Fact.RANKINGS: "a source has been searched already"}

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Expand the texts of every state."""
        return [self._expanded(state, index) for state in states]

    def _expanded(self, state: QueryState, index: Index) -> QueryState:
        added: dict[str, list[str]] = {}
        for word in map(_without_punctuation, state.query.text.split()):
            if word not in added and (self.function_words or word.lower() not in FUNCTION_WORDS):
                added[word] = index.synonyms.of(word, self.synsets, self.max_synonyms)
        found = {word: synonyms for word, synonyms in added.items() if synonyms}
        if not found:
            return state
        for source in self.sources:
            words = state.text_for(source).split()
            text = " ".join(part for word in words for part in [word, *found.get(_without_punctuation(word), [])])
            state = state.with_text(source, text)
        return state.with_note("synonyms: " + "; ".join(f"{word}: {', '.join(each)}" for word, each in found.items()))

    def describe(self) -> str:
        return f"add {self.max_synonyms} synonyms a word"


def _without_punctuation(word: str) -> str:
    """A word without the punctuation round it; signs that belong to a name, as in C++, stay."""
    return word.strip(".,;:?!()[]{}\"'`\u201c\u201d\u2018\u2019")
