"""Variants of topics as users may type them: with typing errors, in other case, as keywords, reordered, in quotes.

These changes keep the meaning of a query, except `drop`; libraries of augmentations use language models, which change
it. Seeded by topic and kind, so a topic has the same variants in every benchmark.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ragbench.base.columns import Column, Columns
from ragbench.base.errors import BenchmarkError, ResultsError
from ragbench.base.fingerprint import shuffle_key
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.evaluation.measures import DOCUMENT
from ragbench.evidence.arms import Arms

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["typos", "case", "keywords", "word_order", "quotes", "drop"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_PERTURBED = "perturbed"
SEPARATOR = "~"
"""Between the qid of a topic and the kind of its variant."""

_PLAIN = re.compile(r"[^\W\d_]{4,}")  # a word that may get a typing error; shorter words and code do not
_WORDS_PER_SLIP = 5
_FUNCTION = frozenset(
    re.findall(
        r"\w+",
        """a an the and or but of to in on at by for from with without about into over under is are was were be been
        being am do does did done has have had can could should would will may might must shall i me my we us our
        you your it its this that these those there here he she they them what which who whom whose when where
        why how if then than as so not no please tell""",
    )
)


def with_variants(benchmark: Benchmark, kinds: Sequence[Kind], seed: int) -> Benchmark:
    """The benchmark with a variant of every topic for each kind that changes its text.

    A variant has the judgments and the split of its topic, but not its hypothesis and salient
    terms, which are for other words.
    """
    variants = [
        replace(
            topic,
            qid=f"{topic.qid}{SEPARATOR}{kind}",
            text=text,
            hypothesis=None,
            salient_terms="",
            provenance=_PERTURBED,
            group=_group(topic),
        )
        for topic in benchmark.topics
        for kind in kinds
        if (text := variant(topic, kind, seed)) != topic.text
    ]
    if not variants:
        raise BenchmarkError(f"no topic of '{benchmark.name}' changes by {', '.join(kinds)}: name other kinds")
    bases = {variant.qid: variant.qid.rpartition(SEPARATOR)[0] for variant in variants}

    quotes = (
        replace(quote, qid=qid) for qid, base in bases.items() for quote in benchmark.quotes_by_topic.get(base, ())
    )

    def with_variants_of(qrels: Mapping[str, Mapping[str, int]]) -> dict[str, Mapping[str, int]]:
        return {**qrels, **{qid: qrels[base] for qid, base in bases.items() if base in qrels}}

    return replace(
        benchmark,
        topics=(*(replace(topic, group=_group(topic)) for topic in benchmark.topics), *variants),
        document_qrels=with_variants_of(benchmark.document_qrels),
        section_qrels=with_variants_of(benchmark.section_qrels),
        quotes=(*benchmark.quotes, *quotes),
    )


def variant(topic: Topic, kind: Kind, seed: int) -> str:
    """The text of a topic changed in one way; the same text where that changes nothing."""
    return _CHANGES[kind](topic.text, random.Random(bytes.fromhex(shuffle_key(seed, f"{kind} {topic.qid}"))))


def _typos(text: str, chance: random.Random) -> str:
    """A typing error in a fifth of the words, at least in one: two letters swapped, one dropped or one doubled."""
    places = list(_PLAIN.finditer(text))
    n = min(len(places), max(1, len(text.split()) // _WORDS_PER_SLIP))
    for match in sorted(chance.sample(places, n), key=lambda match: -match.start()):
        text = f"{text[: match.start()]}{_slip(match[0], chance)}{text[match.end() :]}"
    return text


def _slip(word: str, chance: random.Random) -> str:
    position = chance.randrange(1, len(word) - 1)
    kind = chance.choice(("swap", "omit", "double"))
    if kind == "swap" and word[position] != word[position + 1]:
        return f"{word[:position]}{word[position + 1]}{word[position]}{word[position + 2 :]}"
    if kind == "double":
        return f"{word[:position]}{word[position]}{word[position:]}"
    return f"{word[:position]}{word[position + 1 :]}"


def _case(text: str, _: random.Random) -> str:
    """The text in lower case; in upper case if it is in lower case already."""
    return text.lower() if text != text.lower() else text.upper()


def _keywords(text: str, _: random.Random) -> str:
    """The text without function words and question marks; unchanged if nothing else is left."""
    kept_words = [word.strip("?!,;:") for word in text.split() if word.strip("?!,;:.'\"").casefold() not in _FUNCTION]
    return " ".join(word for word in kept_words if word) or text


def _word_order(text: str, chance: random.Random) -> str:
    listed = text.rstrip("?!.").split()
    chance.shuffle(listed)
    return " ".join(listed)


def _quotes(text: str, _: random.Random) -> str:
    return f'"{text}"'


def _drop(text: str, chance: random.Random) -> str:
    """The text without one of its words of four letters or more; unchanged if it has fewer than two of these."""
    places = list(_PLAIN.finditer(text))
    if len(places) < 2:
        return text
    dropped = chance.choice(places)
    return " ".join(f"{text[: dropped.start()]}{text[dropped.end() :]}".split())


_CHANGES: Mapping[Kind, Callable[[str, random.Random], str]] = {
    "typos": _typos,
    "case": _case,
    "keywords": _keywords,
    "word_order": _word_order,
    "quotes": _quotes,
    "drop": _drop,
}


def _group(topic: Topic) -> str:
    return topic.group or topic.qid


COLUMNS = Columns.of(
    *(Column(name, text=True) for name in ("kind", "arm")),
    "n",
    *(Column(name, form=".3f") for name in ("topics", "variants")),
    *(Column(name, form="+.3f") for name in ("loss", "low", "high")),
    Column("p", form=".3f"),
)


def losses(arms: Arms, variants: Mapping[str, Mapping[str, str]]) -> pd.DataFrame:
    """A row for every kind and arm, with `COLUMNS`, by documents. `variants[kind][qid]` is the variant of topic `qid`.

    `topics` and `variants` are means over the `n` topics that have the variant; `loss` is variants minus topics, with
    an interval that holds together with all others. Raises ResultsError where no topic has a value.
    """
    qids = sorted({qid for variant in variants.values() for qid in variant})
    rows: list[tuple[str, str]] = [(kind, arm) for kind in variants for arm in arms.arms]
    values = {arm: arm_values.levels.get(DOCUMENT, {}) for arm, arm_values in arms.arms.items()}

    def of(arm: str, names: Sequence[str | None]) -> list[float]:
        return [np.nan if name is None else values[arm].get(name, np.nan) for name in names]

    changed = np.array([of(arm, [variants[kind].get(qid) for qid in qids]) for kind, arm in rows], dtype=float)
    baseline_values = np.array([of(arm, qids) for _, arm in rows], dtype=float)
    baseline_values[np.isnan(changed)] = np.nan
    changed[np.isnan(baseline_values)] = np.nan
    measured = ~np.isnan(changed).all(axis=1)
    if not measured.any():
        raise ResultsError("no topic with an answer has a variant: name other kinds")
    compared = arms.policy.compare(changed[measured], baseline_values[measured])
    records = [
        (*row, e.n, e.mean_baseline, e.mean_candidate, e.difference, e.ci_low, e.ci_high, e.p_value)
        for row, e in zip([row for row, keep in zip(rows, measured, strict=True) if keep], compared, strict=True)
    ]
    return COLUMNS.frame(records)
