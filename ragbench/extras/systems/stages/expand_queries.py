"""Query expansion of lexical search v3: other phrasings to recall by, salient terms to rank by."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, ClassVar

from annotated_types import Interval

from ragbench.base.options import Count, Positive, Prompt, option
from ragbench.base.types import ModelError
from ragbench.extras.systems.state import ExpandedQuery, SystemProperty
from ragbench.models.chat import ChatFields
from ragbench.search.stages.stage import Index, QueryState, StateStage

PROMPT = """Someone searches their notes with this query: {query}

Name the salient terms of the query: the words and #tags in it that say what is looked for, in their own language, no
action words, nothing that the query does not hold. Then phrase the query in up to {variants} other ways.

Answer in this form and with nothing else:
<salient>
<term>word</term>
</salient>
<queries>
<query>another way to ask</query>
</queries>"""

_TERM = re.compile(r"#\w[\w/-]*|\w[\w'\u2019.+#/-]*")
_TRAILING = ".'\u2019-/"
_VALID = re.compile(r"#\w[\w/-]*|\w[\w \u2019'.+#/-]*")


@option(
    "expansion", "Extract the informative query terms, and rewrite the query if a model is configured (source 002)."
)
@dataclass(frozen=True)
class ExpandQueries(ChatFields, StateStage):
    """Find the salient terms of the query, and with a model up to `max_variants` (0 to 10) other phrasings of it.

    Seed 002, "Query expansion". The model at `endpoint` answers `prompt` ({query}, {variants}) in `<term>` and
    `<query>` elements; its terms count if the query holds them. Without an endpoint, or when it fails or takes longer
    than `timeout_s`, the terms are the words of the query without other phrasings. If the caller gives
    phrasings, the model is not asked, and salient terms of the caller replace the words of the query; without given
    phrasings they are added to the terms. Terms have at least `min_term_length` characters; the query is read up to
    `max_chars`. The latest `cache_size` answers are kept.
    """

    timeout_s: Positive = 5.0
    max_tokens: Count = 300  # maximum tokens of an answer
    prompt: Prompt = PROMPT  # text sent to the language model, with {query} and {variants}
    max_variants: Annotated[int, Interval(ge=0, le=10)] = 3  # maximum other phrasings
    min_term_length: Count = 2  # minimum characters of a term
    max_chars: Count = 1000  # of the query
    cache_size: Count = 100  # number of answers that are kept

    options: ClassVar[frozenset[str]] = frozenset({"phrasings", "salient_terms"})
    provides: ClassVar[frozenset[str]] = frozenset({SystemProperty.EXPANDED})
    forbids: ClassVar[Mapping[str, str]] = {
        SystemProperty.CANDIDATES: "candidates have been recalled already",
        SystemProperty.EXPANDED: "the query has been expanded already",
    }

    def apply(self, state: QueryState, index: Index) -> QueryState:
        """Expand the query."""
        query = state.query.text[: self.max_chars]
        given_terms = self._terms(state.query.salient_terms)
        if state.query.phrasings is not None:
            phrasings = tuple(
                dict.fromkeys(phrasing[: self.max_chars] for phrasing in state.query.phrasings if phrasing != query)
            )
            terms = given_terms or self.fallback(query).salient_terms
            return state.with_fact(ExpandedQuery(query, terms, phrasings))
        state = self._ask_model(state, query, index)
        if not given_terms:
            return state
        expanded = ExpandedQuery.of(state)
        terms = tuple(dict.fromkeys((*expanded.salient_terms, *given_terms)))
        return state.with_fact(replace(expanded, salient_terms=terms))

    def _ask_model(self, state: QueryState, query: str, index: Index) -> QueryState:
        """The state with the model's expansion of the query; without a model with the words of the query."""
        if self.endpoint is None or not query:
            return state.with_fact(self.fallback(query))
        question = self.prompt.replace("{variants}", str(self.max_variants)).replace("{query}", query)
        try:
            parsed = self.parse(query, index.models.chat(self.spec(self.endpoint), self.cache_size).complete(question))
        except ModelError as error:
            return state.with_fact(self.fallback(query)).with_note(f"query not expanded: {error}")
        note = f"expanded to: {'; '.join(parsed.queries)}; salient: {', '.join(parsed.salient_terms) or 'nothing'}"
        return state.with_fact(parsed).with_note(note)

    def fallback(self, query: str) -> ExpandedQuery:
        """The words and tags of a query, each once, in order; no other phrasings."""
        return ExpandedQuery(query, self._terms(term.rstrip(_TRAILING) for term in _TERM.findall(query)))

    def parse(self, query: str, answer: str) -> ExpandedQuery:
        """The expansion in a model's answer: its terms that the query holds, else the words of the query."""
        lowered = query.lower()
        salient = self._terms(term for term in _elements("term", _block("salient", answer)) if term.lower() in lowered)
        variants: dict[str, str] = {}
        for phrasing in _elements("query", _block("queries", answer)):
            if phrasing.lower() != lowered:
                variants.setdefault(phrasing.lower(), phrasing[: self.max_chars])
        expanded = tuple(variants.values())[: self.max_variants]
        return ExpandedQuery(query, salient or self.fallback(query).salient_terms, expanded)

    def _terms(self, terms: Iterable[str]) -> tuple[str, ...]:
        """The valid terms, lower-cased, each once."""
        lowered = (term.lower() for term in terms)
        return tuple(
            dict.fromkeys(t for t in lowered if len(t.lstrip("#")) >= self.min_term_length and _VALID.fullmatch(t))
        )

    def describe(self) -> str:
        asking = f", ask {self.model} for {self.max_variants} phrasings" if self.endpoint else ""
        return f"find the salient terms{asking}"


def _block(name: str, answer: str) -> str:
    block = re.search(rf"<{name}>(.*?)(?:</{name}>|\Z)", answer, re.DOTALL | re.IGNORECASE)
    return block[1] if block else ""


def _elements(name: str, block: str) -> list[str]:
    elements = re.findall(rf"<{name}>(.*?)</{name}>", block, re.DOTALL | re.IGNORECASE)
    return [text for text in (" ".join(element.split()) for element in elements) if text]
