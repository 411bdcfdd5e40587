"""Topics drafted by a language model: questions about sections, kept only when they pass several checks.

The model is asked for a question that the section answers. A question is dropped when it repeats the section verbatim,
when title or heading contain it, when the model then says that the section does not answer it, and when several other
sections answer it: the most likely ones are found by lexical search and shown to the model one by one. Round-trip
filtering after Alberti et al., ACL 2019, and Dai et al. (Promptagator), ICLR 2023."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from ragbench.base import progress
from ragbench.base.fingerprint import shuffle_key, text_digest
from ragbench.base.types import BenchmarkError, Document, Section
from ragbench.benchmark.benchmark import Topic, area, best_sections, with_splits
from ragbench.benchmark.phrases import Finder, words
from ragbench.corpus.sections import section_id
from ragbench.extras.collect.masked import WIDE
from ragbench.extras.collect.similarity import near_duplicates
from ragbench.extras.collect.topics.collected import CollectedTopics
from ragbench.extras.collect.topics.derive import interleave
from ragbench.index.spans import body_start

_DRAFTED = "model"
_LEAST_WORDS = 30  # of a section that is asked about
_SHOWN = 4_000  # characters of a section that the model is shown
_LIKENESS = 0.7
_K1, _B = 1.2, 0.75  # of BM25
_STEM = 6  # letters to which words are cut
_HEADINGS = 3  # times that headings and title count
_SEED = 13  # of the order of sections and of the splits
_TRAIN = 0.5  # share of the topics for tuning
_TRIES = 3  # sections that are tried for each topic
_OTHERS, _ANSWERS = 5, 2  # other sections that are tried, and the most that may answer a question, its own included

ASK = """Below is a section of a documentation. Write one question that this section answers and that somebody might \
type into the search box who has the problem but has not read the section.

Use the words of that person and not those of the section: copy no phrase of it, do not mention "the section" or "the \
documentation", and name products or commands only where the question makes no sense without them. Answer with the \
question alone, in the language of the section, on one line, in at most 20 words.

Title: {title}
Heading: {heading}

{text}

Question:"""
_CHECK = """Does the text answer the question? Answer "yes" only when somebody who reads nothing but the text can \
answer the whole question; otherwise answer "no". Answer with one word.

Question: {question}

Title: {title}
Heading: {heading}

{text}

Answer:"""

Ask = Callable[[str], str]
"""From a prompt to the model's text."""


@dataclass(frozen=True)
class Passage:
    """A section with its document."""

    document: Document
    section: Section

    @property
    def id(self) -> str:
        """Its section id."""
        return section_id(self.document, self.section)

    @property
    def heading(self) -> str:
        """Its headings, or the title of its document where it has none."""
        return " > ".join(self.section.path) or self.document.title

    @property
    def body(self) -> str:
        """Its text without its heading."""
        return self.document.text[body_start(self.document.text, self.section) : self.section.end].strip()


def passages(documents: Iterable[Document]) -> list[Passage]:
    """Every section of the documents that has text below its heading."""
    all_passages = (Passage(document, section) for document in documents for section in document.sections)
    return [passage for passage in all_passages if passage.body]


class SectionFinder:
    """Finds sections that may answer a question by BM25; it shares no index with the configurations compared."""

    def __init__(self, documents: Sequence[Document]) -> None:
        """Count the words of every section."""
        self.passages = passages(documents)
        self._postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
        lengths = []
        for number, passage in enumerate(self.passages):
            counted = Counter(_stems(passage.body))
            for stem in _stems(f"{passage.document.title} {passage.heading}"):
                counted[stem] += _HEADINGS
            lengths.append(sum(counted.values()))
            for stem, count in counted.items():
                self._postings[stem].append((number, count))
        mean = sum(lengths) / max(1, len(lengths)) or 1.0
        self._norms = [_K1 * (1 - _B + _B * length / mean) for length in lengths]

    def find(self, text: str, n: int) -> list[Passage]:
        """The `n` sections most like a text, best first."""
        scores: dict[int, float] = defaultdict(float)
        for stem, times in Counter(_stems(text)).items():
            postings = self._postings.get(stem, ())
            idf = math.log(1 + (len(self.passages) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings:
                scores[number] += times * idf * count * (_K1 + 1) / (count + self._norms[number])
        best = sorted(scores, key=lambda number: (-scores[number], number))[:n]
        return [self.passages[number] for number in best]


def _stems(text: str) -> list[str]:
    return [word[:_STEM] for word in words(text)]


def draft(documents: Sequence[Document], ask: Ask, limit: int) -> CollectedTopics:
    """Up to `limit` topics. BenchmarkError when no question passes the checks, ModelError where the model fails."""
    evidence = SectionFinder(documents)
    dropped: Counter[str] = Counter()
    kept_by_id: dict[str, tuple[Passage, list[str]]] = {}
    for number, passage in enumerate(_order(evidence.passages)):
        if len(kept_by_id) == limit or number == _TRIES * limit:
            break
        question = _line(ask(_prompt(ASK, passage)))
        answers, reason = _answers(question, passage, evidence, ask)
        if not reason and any(near_duplicates([question, *kept_by_id], _LIKENESS)):
            reason = "near-duplicates"
        if reason:
            dropped[reason] += 1
        else:
            kept_by_id[question] = passage, answers
            progress.report("drafting topics", len(kept_by_id), limit)
    if not kept_by_id:
        reasons = (
            ", ".join(f"{count} {reason}" for reason, count in dropped.most_common()) or "no section has enough text"
        )
        raise BenchmarkError(f"no drafted question passes the checks ({reasons}): use a larger model, or topics derive")
    qids = {question: f"m-{text_digest(question, 10)}" for question in kept_by_id}
    sections = {qids[question]: dict.fromkeys(answers, 1) for question, (_, answers) in kept_by_id.items()}
    judged = best_sections(sections)
    listed = [
        Topic(qids[question], question, "question", group=passage.document.docno, provenance=_DRAFTED)
        for question, (passage, _) in kept_by_id.items()
    ]
    return CollectedTopics(with_splits(listed, judged, _SEED, _TRAIN), judged, sections, dict(dropped))


def _answers(question: str, passage: Passage, evidence: SectionFinder, ask: Ask) -> tuple[list[str], str]:
    """The ids of the sections that answer a question, and the reason to drop it, empty to keep it."""
    question_words = words(question)
    if not 3 <= len(question_words) <= 40:
        return [], "too short or too long"
    runs = Finder(question_words[i : i + WIDE] for i in range(len(question_words) - WIDE + 1))
    if passage.body in runs:
        return [], "word for word from its section"
    if any(text in Finder([question_words]) for text in (passage.document.title, passage.heading)):
        return [], "given away by title or heading"
    if not _says_yes(ask(_prompt(_CHECK, passage, question))):
        return [], "not answered by its section"
    answers = [passage.id]
    near = evidence.find(question, _OTHERS + 1)
    for neighbour in [neighbour for neighbour in near if neighbour.id != passage.id][:_OTHERS]:
        if _says_yes(ask(_prompt(_CHECK, neighbour, question))):
            answers.append(neighbour.id)
            if len(answers) > _ANSWERS:
                return [], "answered by many sections"
    return answers, ""


def _order(unordered: Sequence[Passage]) -> list[Passage]:
    """Passages of enough words in a seeded order: areas in proportion, every document once before one comes again."""
    turns: Counter[str] = Counter()
    areas: dict[str, list[tuple[int, int, Passage]]] = defaultdict(list)
    for number, passage in enumerate(sorted(unordered, key=lambda passage: shuffle_key(_SEED, passage.id))):
        if len(words(passage.body)) >= _LEAST_WORDS:
            docno = passage.document.docno
            areas[area(docno)].append((turns[docno], number, passage))
            turns[docno] += 1
    for members in areas.values():
        members.sort(key=lambda entry: entry[:2])
    return [passage for _, _, passage in interleave(areas, lambda name, _: name)]


def _prompt(prompt: str, passage: Passage, question: str = "") -> str:
    values = {
        "title": passage.document.title,
        "heading": passage.heading,
        "text": passage.body[:_SHOWN],
        "question": question,
    }
    return prompt.format(**values)


def _line(answer: str) -> str:
    """The first line of an answer without quotation marks, white space and the prefix `Question:`."""
    first = next((line for line in answer.splitlines() if words(line)), "")
    return " ".join(first.split()).removeprefix("Question:").strip(" \"'*`\u201c\u201d")


def _says_yes(answer: str) -> bool:
    return words(answer)[:1] == ("yes",)
