"""Simulate agents with fixed policies: tokens and calls until they have read a relevant section.

python -m research.agents exp=recommended
python -m research.agents --arm plain="" --arm best="exp=recommended" --max-tokens 1000

A section counts as read when half of it was returned. Queries without success count with all tokens they used. The
policies: grep and read; search and read; search and follow links. Brackets: 95% CI. The queries must be written by
people (synthetic ones occur in the documents, where grep would find them).
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from ragbench.base import console
from ragbench.base.types import Hit
from ragbench.benchmark.benchmark import TRAIN, Benchmark, has_halves
from ragbench.config import composition
from ragbench.config.overrides import named_arms
from ragbench.config.settings import ArmBuilder
from ragbench.corpus.sections import section_id
from ragbench.evidence.max_t import resamples
from ragbench.search.engine.context import DEPTH, context, count_tokens
from ragbench.search.engine.hits import hits
from ragbench.search.engine.pipeline import Arm, execute
from ragbench.search.engine.snippet import stems

GREP, READ, FOLLOW = "grep and read", "search and read", "search and follow links"
_DRAWS = 10_000

Call = tuple[int, list[tuple[str, int, int]]]
"""The tokens of a result, and what it shows: docno, start and end."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Simulate the policies and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--max-tokens", type=int, default=2000, metavar="N", help="size of one result (default: 2000)")
    parser.add_argument("--max-calls", type=int, default=10, metavar="N", help="calls per query (default: 10)")
    console.add_arms(parser)
    console.add_overrides(parser)
    given = parser.parse_args(arguments)
    named = named_arms(given.arm)
    settings = composition.arms(named, given.overrides) if named else [composition.compose(given.overrides)]
    benchmark = settings[0].benchmark()
    split = TRAIN if has_halves(benchmark.topics) else settings[0].split
    arms = ArmBuilder.of(settings[0], benchmark).arms(settings)
    rows = table(simulated(arms, benchmark, split, given.max_tokens, given.max_calls))
    title = f"Agents on {benchmark.name} ({split} split), until the first relevant section"
    console.print_table(pd.DataFrame({name: [_shown(row[name]) for row in rows] for name in rows[0]}), title)
    print("[low high] = 95% CI of the mean; saved: tokens less than grep and read; less: than the first arm")
    return 0


def simulated(
    arms: Sequence[Arm], benchmark: Benchmark, split: str, max_tokens: int = 2000, max_calls: int = 10
) -> dict[tuple[str, str], list[ReadingCost]]:
    """By policy and arm, the cost of every query of a split that has a relevant section."""
    vault = AgentVault.of(benchmark)
    topics = [topic for topic in benchmark.select(split) if vault.relevant(benchmark, topic.qid)]
    queries = [topic.query() for topic in topics]
    parts = [vault.relevant(benchmark, topic.qid) for topic in topics]

    def costs(calls: Sequence[Iterator[Call]]) -> list[ReadingCost]:
        return [cost(call, part, max_calls) for call, part in zip(calls, parts, strict=True)]

    by_policy = {(GREP, ""): costs([vault.grep_and_read(query.text, max_tokens) for query in queries])}
    final = {outcome.arm: outcome.final for outcome in execute(arms, queries)}
    for arm in arms:
        arm.index.prepare({"facets"})
        ranked = [
            (query.text, hits(state, arm.index, DEPTH)) for query, state in zip(queries, final[arm.name], strict=True)
        ]
        for policy in (READ, FOLLOW):
            calls = [vault.search_and_read(text, found, max_tokens, policy == FOLLOW) for text, found in ranked]
            by_policy[policy, arm.name] = costs(calls)
    return by_policy


class ReadingCost(NamedTuple):
    """Tokens and calls until the first relevant section, or of all calls if none was `useful`."""

    useful: bool
    tokens: int
    calls: int


def cost(calls: Iterator[Call], relevant: Mapping[tuple[str, int, int], int], max_calls: int) -> ReadingCost:
    """The cost of calls until at least half of a section of `relevant` (docno, start, end) was shown."""
    covered = {section: bytearray(section[2] - section[1]) for section in relevant}
    tokens = number = 0
    for number, (size, passages) in zip(range(1, max_calls + 1), calls, strict=False):
        tokens += size
        for docno, start, end in passages:
            for (name, first, last), read in covered.items():
                if name == docno and (length := min(end, last) - max(start, first)) > 0:
                    read[max(0, start - first) : max(0, start - first) + length] = b"\1" * length
        if any(2 * sum(read) >= len(read) for read in covered.values()):
            return ReadingCost(True, tokens, number)
    return ReadingCost(False, tokens, number)


@dataclass(frozen=True)
class AgentVault:
    """The documents as agents read them: their texts, links and lines by word."""

    texts: Mapping[str, str]
    paths: Mapping[str, str]
    links: Mapping[str, Sequence[str]]
    lines: Mapping[str, Sequence[tuple[str, int, int]]]
    """By word in lower case: docno, start and end of the lines that contain it."""
    sections: Mapping[str, tuple[str, int, int]]

    @staticmethod
    def of(benchmark: Benchmark) -> AgentVault:
        """The documents of a benchmark."""
        token_pattern = re.compile(r"[^\W_]+")
        lines: dict[str, dict[tuple[str, int, int], None]] = defaultdict(dict)
        for document in benchmark.documents:
            start = 0
            for line in document.text.splitlines(keepends=True):
                for one in set(token_pattern.findall(line.lower())):
                    lines[one][document.docno, start, start + len(line)] = None
                start += len(line)
        return AgentVault(
            {document.docno: document.text for document in benchmark.documents},
            {document.docno: document.path for document in benchmark.documents},
            {d.docno: list(dict.fromkeys(link.target for link in d.links if link.target)) for d in benchmark.documents},
            {one: list(rows_of_term) for one, rows_of_term in lines.items()},
            {section_id(d, part): (d.docno, part.start, part.end) for d in benchmark.documents for part in d.sections},
        )

    def relevant(self, benchmark: Benchmark, qid: str) -> dict[tuple[str, int, int], int]:
        """The grades of a query's relevant sections, by docno, start and end."""
        grades = benchmark.section_qrels.get(qid, {})
        return {self.sections[name]: grade for name, grade in grades.items() if grade > 0 and name in self.sections}

    def grep_and_read(self, query: str, max_tokens: int) -> Iterator[Call]:
        """One grep for all words of the query, then the documents with most different words, from the top.

        grep shows the lines of these documents first, and at most `max_tokens`.
        """
        words: dict[str, set[str]] = defaultdict(set)
        matches: dict[str, set[tuple[str, int, int]]] = defaultdict(set)
        for stem in stems(query):
            for word in [word for word in self.lines if word.startswith(stem)]:
                for line in self.lines[word]:
                    words[line[0]].add(stem)
                    matches[line[0]].add(line)
        order = sorted(matches, key=lambda docno: (-len(words[docno]), -len(matches[docno]), docno))
        spent, lines_read = 0, []
        for docno, start, end in (line for name in order for line in sorted(matches[name])):
            spent += count_tokens(f"{self.paths[docno]}:1:") + count_tokens(self.texts[docno][start:end])
            if spent > max_tokens:
                spent = max_tokens
                break
            lines_read.append((docno, start, end))
        yield spent, lines_read
        for docno in order:
            yield from self._pages(docno, max_tokens)

    def search_and_read(self, query: str, hits: Sequence[Hit], max_tokens: int, follow: bool) -> Iterator[Call]:
        """One search, then its documents from the top, each with `follow` before those that it links to."""
        excerpt = context(query, hits, max_tokens)
        yield excerpt.tokens, [(passage.docno, passage.start, passage.end) for passage in excerpt.passages]
        order: dict[str, None] = {}
        for passage in excerpt.passages:
            order.update(dict.fromkeys([passage.docno, *(self.links.get(passage.docno, ()) if follow else ())]))
        for docno in order:
            yield from self._pages(docno, max_tokens)

    def _pages(self, docno: str, max_tokens: int) -> Iterator[Call]:
        """A document, in as many calls as it has parts of `max_tokens` whole lines."""
        text = self.texts[docno]
        head = count_tokens(f"{self.paths[docno]}:1-1")
        start = end = 0
        spent = head
        for line in text.splitlines(keepends=True):
            size = count_tokens(line)
            if spent + size > max_tokens and end > start:
                yield spent, [(docno, start, end)]
                start, spent = end, head
            spent += size
            end += len(line)
        yield spent, [(docno, start, end)]


def table(costs_by_policy: Mapping[tuple[str, str], Sequence[ReadingCost]]) -> list[dict[str, object]]:
    """A row for each policy and arm: the share with success, mean tokens and calls, and the tokens saved."""
    values = {key: np.array(costs, dtype=np.float64) for key, costs in costs_by_policy.items()}
    first = next((arm for _, arm in values if arm), "")
    several = len({arm for _, arm in values}) > 2
    rows: list[dict[str, object]] = []
    for (policy, arm), rows_of in values.items():
        row: dict[str, object] = {"policy": policy, "arm": arm or "-", "success": _mean(rows_of[:, 0])}
        row |= {"tokens": _mean(rows_of[:, 1]), "calls": _mean(rows_of[:, 2])}
        row["saved"] = _mean(values[GREP, ""][:, 1] - rows_of[:, 1]) if arm else None
        if several:
            row["less"] = _mean(values[policy, first][:, 1] - rows_of[:, 1]) if arm not in ("", first) else None
        rows.append(row)
    return rows


def _mean(values: NDArray[np.float64]) -> tuple[float, float, float]:
    """The mean with its 95% interval by the bootstrap over queries."""
    n = len(values)
    means = np.concatenate([values @ counts / n for counts in resamples(n, 1, _DRAWS, 0)])
    low, high = np.percentile(means, [2.5, 97.5])
    return float(values.mean()), float(low), float(high)


def _shown(value: object) -> str:
    if not isinstance(value, tuple):
        return str(value or "")
    mean, low, high = value
    digits = 0 if max(abs(mean), abs(high)) >= 100 else 2
    return f"{mean:.{digits}f} [{low:.{digits}f} {high:.{digits}f}]"


if __name__ == "__main__":
    sys.exit(main())
