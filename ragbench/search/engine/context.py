"""Hits as cited markdown within a token budget, for language models.

More than half of the budget goes to whole passages, best expected gain per token first; the rest to cuts of further
hits, each the sentences that match the query best. Tokens are approximated without a model: up to six characters of a
word, or one sign, are one token. On the built-in documentation that is within 12% of the bundled encoder's tokenizer
for nine of ten documents.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from ragbench.base.types import ConfigError, Hit
from ragbench.index.openings import opening
from ragbench.search.engine.snippet import stems

DEPTH = 30
"""Hits from which passages are chosen, at least."""
MAX_BUDGET = 100_000

_TOKEN = re.compile(r"\w{1,6}|[^\w\s]")
_WHOLE = 0.6  # share of the budget for whole passages; it and the next two lines were chosen on the train queries
_CUT = 0.7  # share of its tokens that a further hit keeps
_RANK_OFFSET, _LENGTH_POWER = 4, 0.25  # expected gain per token: 1 / (rank + offset) / length ** power
_LONGEST_TOKEN = 8  # characters per token, more than in any text
_SHORT = 60  # tokens of a hit that is never cut
_SMALLEST = 16  # tokens of a citation and a sentence
_WORD = re.compile(r"[^\W_]+")
_PIECE = re.compile(
    r"^[ ]{0,3}(?P<fence>`{3,}|~{3,})[^\n]*\n(?:.*?^[ ]{0,3}(?P=fence)[`~]*[ \t]*$|.*)"  # a code block, to its end
    r"|^[ \t]*(?:[-*+|>]|\d+[.)]|\#{1,6}[ ])[^\n]*"  # a list item, a table row, a heading
    r"|[^\n].*?(?:[.!?](?=\s)|(?=\n[ \t]*(?:\n|[-*+|>#`~]|\d+[.)]))|\Z)",  # a sentence
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class _Passage:
    """Cited text: `number` is that of its citation, `start` and `end` are offsets into the text of the document."""

    number: int
    docno: str
    path: str
    heading: str
    start: int
    end: int
    start_line: int
    end_line: int
    text: str

    @property
    def citation(self) -> str:
        """`[1] path#heading:12-40`, lines from 1, both included."""
        return f"[{self.number}] {_place(self.path, self.heading)}:{self.start_line}-{self.end_line}"


@dataclass(frozen=True)
class Context:
    """Passages within a token budget, in the order of their best hits; `tokens` counts citations, too."""

    passages: tuple[_Passage, ...]
    tokens: int

    @property
    def text(self) -> str:
        """The passages as markdown, each below its citation."""
        return "\n\n".join(f"{passage.citation}\n{passage.text}" for passage in self.passages)


@dataclass
class _Part:
    """A contiguous part of a document that was chosen, with the rank of its best hit."""

    hit: Hit
    rank: int
    start: int
    text: str
    start_line: int
    lead: str = ""  # the lines that the text continues, such as the header of its table

    @property
    def end(self) -> int:
        return self.start + len(self.text)

    @property
    def end_line(self) -> int:
        return self.start_line + self.text.rstrip().count("\n")


@lru_cache(4096)  # searches return the same hits again
def count_tokens(text: str) -> int:
    """Approximate the number of tokens of a text; the sum over texts that white space separates is exact."""
    return len(_TOKEN.findall(text))


def check_budget(max_tokens: int) -> None:
    """Raise ConfigError unless a token budget is between 1 and 100,000."""
    if not 1 <= max_tokens <= MAX_BUDGET:
        raise ConfigError(f"max_tokens must be between 1 and {MAX_BUDGET:,}, got {max_tokens}")


def context(query: str, hits: Sequence[Hit], max_tokens: int) -> Context:
    """Choose and cut passages of hits, best first, so that with their citations they fit into `max_tokens`.

    Sentences and code blocks stay whole, neighbouring hits become one passage, and no text is repeated. The context is
    empty if nothing fits. Raises ConfigError unless `max_tokens` is between 1 and 100,000.
    """
    check_budget(max_tokens)
    pending = sorted(
        (hit for hit in hits if hit.text.strip()),
        key=lambda hit: ((hit.rank + _RANK_OFFSET) * len(hit.text) ** _LENGTH_POWER, hit.rank),
    )
    parts: list[_Part] = []
    prefixes, seen, spent = tuple(stems(query)), set(), 0
    for share, limit in ((1.0, int(_WHOLE * max_tokens)), (_CUT, max_tokens), (0.0, max_tokens)):
        postponed = []
        for hit in pending:
            part = _fitted(prefixes, hit, share, limit - spent)
            if part is None:
                postponed.append(hit)
            elif (normalised := " ".join(hit.text.split())) not in seen:
                seen.add(normalised)
                spent += _overhead(hit) + count_tokens(part.lead + part.text)
                parts.append(part)
        pending = postponed
    passages = tuple(
        _Passage(
            number,
            part.hit.docno,
            part.hit.path,
            _heading(part.hit),
            part.start,
            part.end,
            part.start_line,
            part.end_line,
            part.lead + part.text.rstrip(),
        )
        for number, part in enumerate(sorted(_merged(parts), key=lambda part: part.rank), start=1)
    )
    return Context(passages, sum(count_tokens(passage.citation) + count_tokens(passage.text) for passage in passages))


def pieces(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of sentences, list items, table rows and whole code blocks of a markdown text, in order."""
    for piece in _PIECE.finditer(text):
        if piece[0].strip():
            yield piece.span()


def _fitted(prefixes: tuple[str, ...], hit: Hit, share: float, budget: int) -> _Part | None:
    """The hit, or about a `share` of a long one (0: all that fits); None if that needs more than `budget` tokens."""
    if budget < _SMALLEST or share * len(hit.text) > _LONGEST_TOKEN * budget:  # which saves counting
        return None
    budget, size = budget - _overhead(hit), count_tokens(hit.text)
    if size <= budget and (share == 1 or size <= _SHORT):
        return _Part(hit, hit.rank, hit.start, hit.text[hit.lead :], hit.start_line, hit.text[: hit.lead])
    return (
        None if share == 1 or share * size > budget else _extract(prefixes, hit, round(share * size) or budget, budget)
    )


def _extract(prefixes: tuple[str, ...], hit: Hit, target: int, budget: int) -> _Part | None:
    """The consecutive pieces of a hit, of about `target` tokens, with the most distinct matches of the query.

    None if no piece fits into `budget`.
    """
    spans, best = [span for span in _spans(hit.text) if span.start >= hit.lead], None
    matches = [{word[:5] for word in span.words if word.startswith(prefixes)} for span in spans]
    for first, span in enumerate(spans):
        last, size, covered = first, span.tokens, set(matches[first])
        if size > budget:
            continue
        while last + 1 < len(spans) and size + spans[last + 1].more <= target:
            last += 1
            size += spans[last].more
            covered |= matches[last]
        if best is None or len(covered) > best[0]:
            best = len(covered), first, last
    if best is None:
        return None
    start, end = spans[best[1]].start, spans[best[2]].end
    lead = opening(hit.text, start)
    if count_tokens(lead + hit.text[start:end]) > budget:
        lead = ""
    return _Part(
        hit,
        hit.rank,
        hit.start + start - hit.lead,
        hit.text[start:end],
        hit.start_line + hit.text.count("\n", hit.lead, start),
        lead,
    )


class _Span(NamedTuple):
    """A piece of a text: its tokens, those since the end of the piece before it, its words in lower case."""

    start: int
    end: int
    tokens: int
    more: int
    words: frozenset[str]


@lru_cache(4096)
def _spans(text: str) -> list[_Span]:
    """The pieces of a text, without its headings."""
    spans, counted, ends = [], 0, [token.end() for token in _TOKEN.finditer(text)]
    for start, end in pieces(text):
        if not text.startswith("#", start):
            at, to = bisect_right(ends, start), bisect_right(ends, end)
            spans.append(_Span(start, end, to - at, to - counted, frozenset(_WORD.findall(text[start:end].lower()))))
            counted = to
    return spans


def _merged(parts: Iterable[_Part]) -> list[_Part]:
    """The parts, those of one document that overlap or only white space separates as one."""
    merged: list[_Part] = []
    for part in sorted(parts, key=lambda part: (part.hit.docno, part.start, part.end)):
        last = merged[-1] if merged else None
        if last is None or last.hit.docno != part.hit.docno or part.start > last.end + 2 or not part.hit.end:
            merged.append(part)
            continue
        gap = part.start - last.end
        if gap > 0:  # white space: that of the file, or the end of a chunk that was stripped
            lines = part.start_line - last.end_line
            last.text = last.text.rstrip() + ("\n" * lines or " " * gap) + part.text
        elif part.end > last.end:
            last.text += part.text[-gap:] if gap else part.text
        last.rank = min(last.rank, part.rank)
    return merged


def _heading(hit: Hit) -> str:
    return hit.header_path[-1] if hit.header_path else ""


def _place(path: str, heading: str) -> str:
    return f"{path}#{heading}" if heading else path


def _overhead(hit: Hit) -> int:
    """The tokens of a citation, at most: three numbers of up to six digits and their signs."""
    return count_tokens(_place(hit.path, _heading(hit))) + 7
