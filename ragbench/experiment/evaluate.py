"""What an arm found, measured: in this process, or by a worker, which then sends tables instead of states."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from ragbench.benchmark.runs import file_names, renamed
from ragbench.evaluation import contexts, diagnosis, measures, passages
from ragbench.evaluation.contexts import Contexts
from ragbench.results import measurements, top_hits
from ragbench.search.engine.hits import problems

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.experiment.run import Plan
    from ragbench.index.index import Index
    from ragbench.search.engine.pipeline import Arm, Outcome

_RUN_FILES = {
    measures.DOCUMENT: measurements.DOCUMENTS,
    measures.SECTION: measurements.SECTIONS,
    measures.QUOTE: measurements.QUOTES,
}


@dataclass(frozen=True)
class Evaluated:
    """The measures of an arm by query, and the contents of its files by name.

    `notes` counts what stages decided by query; `problems` are sentences about hits.
    """

    arm: str
    per_query: pd.DataFrame
    files: Mapping[str, str | pd.DataFrame]
    notes: Mapping[str, int]
    problems: Sequence[str]


class _Asked(NamedTuple):
    context_tokens: int
    measures: tuple[str, ...]
    primary: str


@dataclass(frozen=True)
class ArmEvaluator:
    """Evaluates the arms of a plan; what arms over one index have in common is computed once.

    It can be sent to another process: of the documents it has only their names in run files. `facts` are the columns
    qid, split and type of the topics; `asked` is by arm.
    """

    benchmark: Benchmark
    names: Mapping[str, str]
    facts: pd.DataFrame
    asked: Mapping[str, _Asked]
    _contexts: dict[int, Contexts] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, plan: Plan, facts: pd.DataFrame) -> ArmEvaluator:
        """The evaluator of a plan's arms."""
        asked = {
            name: _Asked(arm.settings.context_tokens, tuple(arm.settings.measures), arm.settings.primary)
            for name, arm in plan.arms.items()
        }
        judged = replace(plan.benchmark, documents=plan.benchmark.documents[:1], labels=None, missing=())
        return cls(judged, file_names(plan.benchmark), facts, asked)

    @property
    def portable(self) -> bool:
        """Whether another process knows every measure: not one of the user's own, whose function may be only here."""
        return not any(measures.is_own(name) for asked in self.asked.values() for name in asked.measures)

    def __call__(self, arm: Arm, outcome: Outcome) -> Evaluated:
        """Measure what an arm found; its index must be prepared."""
        import pandas as pd

        table, benchmark, asked = arm.index.chunks, self.benchmark, self.asked[arm.name]
        frames: list[pd.DataFrame] = []
        runs: dict[str, str] = {}
        levels = measures.levels(outcome.final, table, benchmark)
        for level in levels:
            # Written without judgments, too: `ragbench data pool` reads from it what must still be judged.
            named = level.run if level.name == measures.QUOTE else renamed(level.run, self.names)
            runs[_RUN_FILES[level.name]] = measurements.trec(named, "ragbench")
            if level.name == measures.DOCUMENT or level.qrels:
                frames.append(level.evaluate(asked.measures, benchmark.unanswerable))
        frames.append(measures.leaks(outcome.final, levels[0].run, arm.index))
        of_index = self._contexts_of(arm.index)
        frames.append(passages.evaluate(outcome.final, of_index.passages, asked.context_tokens, asked.primary))
        context = of_index.delivered(outcome.final, asked.context_tokens)
        frames.append(contexts.evaluate(context, asked.context_tokens))
        filled = [frame for frame in frames if len(frame)] or frames[:1]  # pandas 2 warns of empty ones
        per_query = self.facts.merge(pd.concat(filled, ignore_index=True), on="qid")
        per_query.insert(0, "arm", arm.name)
        per_query = per_query[list(measurements.PER_QUERY_COLUMNS)]
        files: dict[str, str | pd.DataFrame] = {
            measurements.TOP: top_hits.top_hits(outcome.final, table, benchmark),
            measurements.DIAGNOSIS: diagnosis.of_benchmark(outcome, table, benchmark),
            **runs,
            measurements.PER_QUERY: per_query,
            measurements.CONTEXTS: context,
        }
        notes = Counter(note for state in outcome.final for note in state.notes)
        return Evaluated(arm.name, per_query, files, dict(notes), tuple(problems(outcome.final)))

    def _contexts_of(self, index: Index) -> Contexts:
        table = index.chunks
        if id(table) not in self._contexts:
            units = passages.Passages(table, index.encoder.count_tokens, self.benchmark)
            self._contexts[id(table)] = Contexts(units)
        return self._contexts[id(table)]
