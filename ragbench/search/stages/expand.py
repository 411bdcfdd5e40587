"""Expand what is searched for: the collection's terms (P1), synonyms (P5), a hypothetical document (HyDE)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar

from annotated_types import Interval

from ragbench.base.options import Cosine, Count, Prompt, option
from ragbench.base.progress import track
from ragbench.base.types import ModelError
from ragbench.index.vocabulary import FUNCTION_WORDS
from ragbench.models.chat import ChatFields
from ragbench.search.stages.stage import Index, QueryState, Stage, StateProperty, StateStage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ragbench.index.vocabulary import Vocabulary


@option("p1", "Append the vocabulary's nearest terms to the embedded query text (sources 000 P1, 001).")
@dataclass(frozen=True)
class ExpandTerms(Stage):
    """Append to the text for `sources` the `top_k` (at least 1) vocabulary terms nearest to the query.

    Terms need a cosine of at least `threshold` (-1 to 1) and must not be in the query. Seeds 000 (P1) and 001 have 3
    and 0.5, on the semantic channel. One matrix product per query.
    """

    top_k: Count = 3  # number of terms to append
    threshold: Cosine = 0.5  # minimum cosine of a term and the query
    sources: tuple[str, ...] = ("dense",)  # retrievers that get the terms

    needs: ClassVar[frozenset[str]] = frozenset({"encoder", "vocabulary"})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.RANKINGS: "a source has been searched already"}

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Expand the texts of every state."""
        vectors = index.encoder.encode_queries([state.query.text for state in states])
        return [
            self._expanded(state, self.nearest_terms(state.query.text, vector, index.vocabulary))
            for state, vector in zip(states, vectors, strict=True)
        ]

    def nearest_terms(self, text: str, vector: NDArray[np.float32], vocabulary: Vocabulary) -> list[tuple[str, float]]:
        """The terms to add to a query of this text and unit vector, each with its cosine."""
        present = set(re.findall(r"[\w-]+", text.lower()))
        nearest = vocabulary.nearest(vector, self.top_k)
        return [(term, cosine) for term, cosine in nearest if cosine >= self.threshold and term not in present]

    def _expanded(self, state: QueryState, added: Sequence[tuple[str, float]]) -> QueryState:
        if not added:
            return state
        for source in self.sources:
            state = state.with_text(source, " ".join([state.text_for(source), *(term for term, _ in added)]))
        return state.with_note("expanded with " + ", ".join(f"{term} ({cosine:.2f})" for term, cosine in added))

    def describe(self) -> str:
        return f"expand by {self.top_k} near terms"


@option("p5", "WordNet synonyms for the query terms, lexical retriever only (source 000 P5).")
@dataclass(frozen=True)
class ExpandSynonyms(StateStage):
    """Add after every word of the text for `sources` at most `max_synonyms` synonyms from its first `synsets` meanings.

    Seed 000, P5 has 2 and 2, on the lexical channel. `function_words` expands English function words, too, as the seed
    does: in WordNet `a` is a vitamin, `in` an inch and `who` an organisation.
    """

    max_synonyms: Annotated[int, Interval(ge=1, le=8)] = 2  # maximum synonyms of a word
    synsets: Annotated[int, Interval(ge=1, le=8)] = 2  # meanings of a word whose synonyms are used
    function_words: bool = False  # also synonyms of function words
    sources: tuple[str, ...] = ("lexical",)  # retrievers that get the synonyms

    needs: ClassVar[frozenset[str]] = frozenset({"synonyms"})
    forbids: ClassVar[Mapping[str, str]] = {StateProperty.RANKINGS: "a source has been searched already"}

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Expand the texts of a state."""
        added: dict[str, list[str]] = {}
        for word in map(_without_punctuation, state.query.text.split()):
            if word not in added and (self.function_words or word.lower() not in FUNCTION_WORDS):
                added[word] = index.synonyms.of(word, self.synsets, self.max_synonyms)
        expansions = {word: synonyms for word, synonyms in added.items() if synonyms}
        if not expansions:
            return state
        for source in self.sources:
            words = state.text_for(source).split()
            text = " ".join(part for word in words for part in [word, *expansions.get(_without_punctuation(word), [])])
            state = state.with_text(source, text)
        return state.with_note(
            "synonyms: " + "; ".join(f"{word}: {', '.join(each)}" for word, each in expansions.items())
        )

    def describe(self) -> str:
        return f"add {self.max_synonyms} synonyms a word"


def _without_punctuation(word: str) -> str:
    """A word without the punctuation round it; signs that belong to a name, as in C++, stay."""
    return word.strip(".,;:?!()[]{}\"'`\u201c\u201d\u2018\u2019")


_PROMPT = (
    "Write a short passage of technical documentation that answers this question.\n\nQuestion: {query}\n\nPassage:"
)


@option(
    "hyde", "Embed a hypothetical answer instead of the query (source 001): from the query file, or written by a model."
)
@dataclass(frozen=True)
class SupposeAnswer(ChatFields, Stage):
    """Give dense retrieval a hypothesis, which it embeds as a passage.

    Gao et al., ACL 2023; seed 001, "HyDE". The hypothesis is the one that comes with the query, else the answer of the
    model at `endpoint` to `prompt`, in which `{query}` stands for the query. Without any of them, or when the endpoint
    fails, the query itself is embedded. The other parameters are those of `ragbench.models.chat.ChatSpec`.
    """

    prompt: Prompt = _PROMPT  # text sent to the language model; {query} is the query

    options: ClassVar[frozenset[str]] = frozenset({"hypothesis"})
    provides: ClassVar[frozenset[str]] = frozenset({StateProperty.HYPOTHESIS})
    forbids: ClassVar[Mapping[str, str]] = {
        StateProperty.RANKINGS: "a source has been searched already",
        StateProperty.HYPOTHESIS: "there is a hypothesis already",
    }

    def __call__(self, states: Sequence[QueryState], index: Index) -> list[QueryState]:
        """Put a hypothesis into every state that can have one."""
        return [self._with_hypothesis(state, index) for state in track("writing hypotheses", states)]

    def _with_hypothesis(self, state: QueryState, index: Index) -> QueryState:
        hypothesis = state.query.hypothesis
        if hypothesis and hypothesis.strip():
            return _add_hypothesis(state, hypothesis, "the one given")
        if self.endpoint is None:
            return state.with_note("no hypothesis: the query itself is embedded")
        try:
            model = index.models.chat(self.spec(self.endpoint))
            passage = model.complete(self.prompt.replace("{query}", state.query.text))
        except ModelError as error:
            return state.with_note(f"no hypothesis, the query itself is embedded: {error}")
        return _add_hypothesis(state, passage, f"by {self.model}")

    def describe(self) -> str:
        return "suppose an answer"


def _add_hypothesis(state: QueryState, hypothesis: str, origin: str) -> QueryState:
    return state.with_text("hypothesis", hypothesis).with_note(f"hypothesis, {origin}: {hypothesis}")
