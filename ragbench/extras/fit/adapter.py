"""Learn a low-rank map of the vectors of queries from judged topics, and measure it on held-out queries.

Contrastive: the vector of a query moves towards the nearest chunk of the best document for it, and away from the
answers of other topics in the batch. Adapters of vectors: Yoon et al., Search-Adaptor, ACL 2024.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ragbench.base import minimums
from ragbench.base.bounds import Count, Factor, Natural, Positive, Validated
from ragbench.base.errors import BenchmarkError, ConfigError
from ragbench.base.types import QueryState
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.config.arm_builder import ArmBuilder
from ragbench.config.settings import Settings
from ragbench.evaluation.measures import ndcg
from ragbench.extras.fit import training
from ragbench.extras.fit.adapted_encoder import KEY, Adapter
from ragbench.extras.fit.training import Numbers, Values
from ragbench.index.index import Index
from ragbench.search.engine.executor import Arm
from ragbench.search.stages.stage import fused

_SHARES = (0.25, 0.5, 1.0)  # of the training topics, for the learning curve
_ASKS = re.compile(
    r"""[?\uff1f]
      | \A(?:how|what|why|when|where|which|who|is|are|can|could|do|does|did|should|would|will|has|have)\b
      | \b(?:I|I'm|I've|[Mm]y|we|our|doesn't|don't|can't|cannot|isn't|won't|fails?|failed|error)\b""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class AdapterSpec(Validated):
    """How an adapter is learned: `epochs` of Adam at `rate` over batches of topics.

    The loss is a softmax of cosines times `temperature`. `rank` is that of the map.
    """

    rank: Count = 16
    epochs: Count = 12
    rate: Positive = 2e-3
    temperature: Positive = 25.0
    batch: Count = 128
    folds: Factor = 5
    seed: Natural = 13


@dataclass(frozen=True)
class Pairs:
    """Queries and what they should move to, one entry for each topic with an answer.

    `topic` is the number of the topic, shape (n,); `query` and `answer` are unit vectors, shape (n, dim). `document` is
    the row of the answer's document, `answers` are those of all documents that answer the topic.
    """

    encoder: str
    topic: Numbers
    query: Values
    answer: Values
    document: Numbers
    answers: tuple[frozenset[int], ...]

    @staticmethod
    def of(topics: Sequence[Topic], benchmark: Benchmark, index: Index) -> Pairs:
        """The pairs of topics over the vectors of an index, without an adapter on its queries.

        The answer of a topic is the chunk nearest to it of the documents with its highest grade.
        """
        encoder = getattr(index.encoder, "of_passages", index.encoder)
        vectors, owner = np.asarray(index.dense.vectors, dtype=np.float64), index.chunks.document[: len(index.dense)]
        queries = encoder.encode_queries([topic.text for topic in topics]).astype(np.float64)
        rows: list[tuple[int, Values, Values, int, frozenset[int]]] = []
        numbers = index.chunks.document_number
        for number, topic in enumerate(topics):
            graded = {numbers[d]: g for d, g in benchmark.document_qrels.get(topic.qid, {}).items() if d in numbers}
            best = [row for row, grade in graded.items() if grade > 0 and grade == max(graded.values())]
            answer_rows = np.isin(owner, best).nonzero()[0]
            if len(answer_rows):
                nearest = answer_rows[int(np.argmax(vectors[answer_rows] @ queries[number]))]
                right = frozenset(row for row, grade in graded.items() if grade > 0)
                rows.append((number, queries[number], vectors[nearest], int(owner[nearest]), right))
        if not rows:
            raise BenchmarkError("no relevant document of the topics has text: nothing can be learned from them")
        places, question_vectors, answer, documents, answers = zip(*rows, strict=True)
        return Pairs(
            encoder.digest, np.array(places), np.array(question_vectors), np.array(answer), np.array(documents), answers
        )


def grow(pairs: Pairs, topics: Numbers, spec: AdapterSpec) -> Adapter:
    """An adapter learned from the pairs of some topics. The same numbers for every count of threads."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        return _grown(pairs, np.isin(pairs.topic, topics).nonzero()[0], spec)


def _grown(pairs: Pairs, used: Numbers, spec: AdapterSpec) -> Adapter:
    drawn = np.random.default_rng(spec.seed)
    dim = pairs.query.shape[1]
    maps = [drawn.standard_normal((spec.rank, dim)) / np.sqrt(dim), np.zeros((dim, spec.rank))]
    first, second, step = [0 * matrix for matrix in maps], [0 * matrix for matrix in maps], 0
    for _ in range(spec.epochs):
        order = drawn.permutation(used)
        for start in range(0, len(order), spec.batch):
            step += 1
            slopes = _slopes(pairs, order[start : start + spec.batch], maps[0], maps[1], spec)
            for number, slope in enumerate(slopes):
                first[number] = 0.9 * first[number] + 0.1 * slope
                second[number] = 0.999 * second[number] + 0.001 * slope**2
                size = np.sqrt(second[number] / (1 - 0.999**step)) + 1e-8
                maps[number] = maps[number] - spec.rate * first[number] / (1 - 0.9**step) / size
    down, up = (matrix.astype(np.float32) for matrix in maps)
    return Adapter(pairs.encoder, down, up)


def _slopes(pairs: Pairs, batch: Numbers, down: Values, up: Values, spec: AdapterSpec) -> tuple[Values, Values]:
    """The gradients in `down` and `up` of a batch's mean loss, -log softmax(temperature * cosine) of the answer."""
    query, answer = pairs.query[batch], pairs.answer[batch]
    hidden = query @ down.T
    moved = query + hidden @ up.T
    length = np.sqrt((moved**2).sum(axis=1, keepdims=True))
    unit = moved / length
    scores = spec.temperature * unit @ answer.T
    blocked = [[pairs.document[row] in pairs.answers[one] and one != row for row in batch] for one in batch]
    scores[np.array(blocked)] = -np.inf  # other answers of the same topic
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares /= shares.sum(axis=1, keepdims=True)
    pull = (shares - np.eye(len(batch))) @ answer
    pull *= spec.temperature / len(batch)
    pull = (pull - unit * (unit * pull).sum(axis=1, keepdims=True)) / length
    return (pull @ up).T @ query, pull.T @ hidden


@dataclass(frozen=True)
class Learned:
    """An adapter, and nDCG@10 of every topic without one and with one of other groups of topics, shape (n,).

    `are_questions` marks the topics that read like questions. `curve` has the same by the number of training topics.
    """

    adapter: Adapter
    topics: tuple[Topic, ...]
    before: Values
    held_out: Values
    curve: Mapping[int, float]

    @property
    def are_questions(self) -> NDArray[np.bool_]:
        """Which topics read like questions."""
        return np.array([is_question(topic) for topic in self.topics], dtype=np.bool_)


def learn(settings: Settings, benchmark: Benchmark, spec: AdapterSpec) -> Learned:
    """Learn an adapter from the training topics, and measure the whole search with adapters of other groups of topics.

    Raises BenchmarkError for too few topics, ConfigError for a search that embeds nothing.
    """
    settings = settings.with_values({KEY: ""})
    if "dense" not in settings.pipeline.needs:
        raise ConfigError("this pipeline has no dense retrieval, so it has no query vectors to adapt")
    topics = judged(benchmark, "train")
    parts = folds(topics, spec)
    (plain,) = ArmBuilder.of(settings, benchmark).arms([settings])
    values_before = values(training.answers(plain, topics), plain.index, benchmark)
    pairs = Pairs.of(topics, benchmark, plain.index)
    everything = np.arange(len(topics))
    curve: dict[int, Values] = {}
    for share in _SHARES:
        held_out = np.zeros(len(topics))
        sizes: list[int] = []
        for fold in parts:
            chosen = training.part_of(_groups(topics), np.setdiff1d(everything, fold), share, spec.seed)
            adapter, sizes = grow(pairs, chosen, spec), [*sizes, len(chosen)]
            held_out[fold] = with_adapter(settings, benchmark, adapter, [topics[n] for n in fold])
        curve[round(float(np.mean(sizes)))] = held_out
    points = {0: float(values_before.mean())} | {
        size: float(values_of_size.mean()) for size, values_of_size in curve.items()
    }
    return Learned(grow(pairs, everything, spec), topics, values_before, held_out, points)


def with_adapter(settings: Settings, benchmark: Benchmark, adapter: Adapter | None, topics: Sequence[Topic]) -> Values:
    """nDCG@10 of topics in the search of settings with an adapter, or without one."""
    text = "" if adapter is None else adapter.text
    (arm,) = ArmBuilder.of(settings, benchmark).arms([settings.with_values({KEY: text})])
    return values(training.answers(arm, topics), arm.index, benchmark)


def cross_fitted(settings: Settings, benchmark: Benchmark, arm: Arm, spec: AdapterSpec) -> list[QueryState]:
    """The answers of an arm's stages to the training topics, each with an adapter of other groups of topics.

    So what is learned from the answers never sees vectors that were adapted on the same topics. Topics without a
    relevant document are excluded.
    """
    topics = judged(benchmark, "train")
    pairs = Pairs.of(topics, benchmark, arm.index)
    states_by_qid: dict[str, QueryState] = {}
    for fold in folds(topics, spec):
        adapter = grow(pairs, np.setdiff1d(np.arange(len(topics)), fold), spec)
        (adapted,) = ArmBuilder.of(settings, benchmark).arms([settings.with_values({KEY: adapter.text})])
        states = training.answers(Arm(arm.name, arm.pipeline, adapted.index), [topics[n] for n in fold])
        states_by_qid |= {state.query.qid: state for state in states}
    return [states_by_qid[topic.qid] for topic in topics]


def judged(benchmark: Benchmark, split: str) -> tuple[Topic, ...]:
    """The topics of a split with a relevant document."""
    return benchmark.with_answer(benchmark.select(split))


def folds(topics: Sequence[Topic], spec: AdapterSpec) -> list[Numbers]:
    """The topics in parts, those of one group together. BenchmarkError for too few."""
    groups = _groups(topics)
    if len(topics) < minimums.FOR_RANKER or len(set(groups)) < spec.folds:
        raise BenchmarkError(
            f"an adapter is learned from at least {minimums.FOR_RANKER} judged training topics of {spec.folds:g} "
            f"groups, and there are {len(topics)} of {len(set(groups))}: judge more with `ragbench judge`"
        )
    return training.folds(groups, np.arange(len(topics)), int(spec.folds), spec.seed)


def values(states: Iterable[QueryState], index: Index, benchmark: Benchmark) -> Values:
    """nDCG@10 of documents of every state, shape (n,)."""
    docnos, per_query = index.chunks.docnos, []
    for state in states:
        grades = {docno: max(0, grade) for docno, grade in benchmark.document_qrels.get(state.query.qid, {}).items()}
        ranked = dict.fromkeys(index.chunks.document[fused(state).chunks].tolist())
        per_query.append(ndcg([float(grades.get(docnos[row], 0)) for row in ranked], list(grades.values())))
    return np.array(per_query)


def _groups(topics: Sequence[Topic]) -> list[str]:
    return [topic.cluster for topic in topics]


def is_question(topic: Topic) -> bool:
    """Whether a topic asks: it ends in a question mark, begins like a question, speaks of oneself, or tells a failure.

    The words are English; in other languages only the question mark counts.
    """
    first, remainder = topic.text[:1].lower(), topic.text[1:]
    return bool(_ASKS.search(first + remainder) or _ASKS.search(topic.text))
