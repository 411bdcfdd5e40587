"""An experiment as a value: arms over one benchmark, which can be printed, planned, searched and run."""

from __future__ import annotations

import dataclasses
import logging
import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragbench.base import console, minimums, registry
from ragbench.base.files import write_text
from ragbench.base.fingerprint import text_digest
from ragbench.base.html import render
from ragbench.base.options import build
from ragbench.base.progress import Report
from ragbench.base.types import BenchmarkError, ConfigError, RagbenchError, short_path
from ragbench.benchmark.benchmark import TRAIN, Benchmark, has_halves
from ragbench.benchmark.frames import is_run, read_run_table
from ragbench.benchmark.runs import trec_eval_order
from ragbench.config import available, composition, project
from ragbench.config.overrides import changes, key_of, section_of, word, words
from ragbench.config.settings import ArmBuilder, Settings
from ragbench.corpus.file_warning import grouped_by_kind
from ragbench.evaluation.measures import decreasing
from ragbench.experiment import ablate
from ragbench.experiment.ablate import Ablation
from ragbench.results import comparisons, measurements
from ragbench.results.measurements import Measurements, names_data, trec
from ragbench.search.engine.answer import Answer, SearchOptions, answer
from ragbench.search.engine.pipeline import Pipeline
from ragbench.search.function_stage import FunctionStage
from ragbench.workbench.composed import Composed, words_of
from ragbench.workbench.results import Results

if TYPE_CHECKING:
    from ragbench.experiment.run import Plan

_LOG = logging.getLogger(__name__)

Design = Literal["leave_one_out", "add_one", "factorial", "shapley"]

Split = Literal["train", "test", "all"]

_QUICK = ("latency.enabled=false", "tracking.enabled=false")

_WARNINGS = 10
"""The most warnings about the data that a run prints."""


@dataclass(frozen=True)
class Experiment:
    """Arms over one benchmark, ready to run. Constructors compose and check; only `run` computes.

    Attributes:
        settings: The configurations of the arms; the first has the values that all share.
        given: The benchmark that was passed, else None.
        ablation: The design of an ablation, else None.
        explores: No `split` was given: the train queries are measured, or all if they are too few to split.
        only: The ids of the queries to measure; by default all of the split.
        held: The Python objects among the arms.
        quick: Quality only, without a report and MLflow.
    """

    settings: tuple[Settings, ...]
    given: Benchmark | None = None
    ablation: Ablation | None = None
    explores: bool = False
    only: frozenset[str] | None = None
    held: tuple[object, ...] = dataclasses.field(default=(), compare=False, repr=False)
    quick: bool = False

    @classmethod
    def of_run(cls, folder: Path) -> Experiment:
        """The arms of a finished run, as they were measured."""
        finished = measurements.load(folder)
        return cls(tuple(map(finished.settings, finished.arms)))

    @classmethod
    def confirm(cls, folder: Path, arm: str, *overrides: str) -> Experiment:
        """An arm of a finished run against the first one, on judged queries on which no arms were compared before.

        `overrides` may name other data, such as `data.queries=new.csv`. Raises BenchmarkError without such queries.
        """
        finished = measurements.load(folder)
        settings = [finished.settings(name).with_values({"split": "all"}) for name in (finished.arms[0], arm)]
        if names_data(overrides):
            data = composition.compose(overrides).data
            settings = [arm.with_values({"data": data}) for arm in settings]
        experiment = cls(tuple(settings))
        benchmark = experiment.benchmark
        used = comparisons.used(benchmark.name)
        unused = frozenset(topic.qid for topic in benchmark.with_answer(benchmark.topics) if topic.qid not in used)
        if len(unused) < minimums.FOR_MDE:
            raise BenchmarkError(
                f"a confirmation needs {minimums.FOR_MDE} judged queries that no comparison used, and "
                f"'{benchmark.name}' has {len(unused)}: add queries with answers, such as data.queries=new.csv"
            )
        return dataclasses.replace(experiment, only=unused)

    @classmethod
    def sweep(cls, *overrides: str, benchmark: Benchmark | None = None, **values: Any) -> Experiment:
        """Return every combination of comma-separated values, or values in lists, as `ragbench run -m`.

        Args:
            *overrides: Overrides such as `"p6=on,off"`.
            benchmark: A benchmark instead of the one that `data` names.
            **values: Overrides by key; a list is varied.

        Returns:
            The experiment, with an arm per combination.

        Raises:
            ConfigError: An override is unknown or has an invalid value.

        Example:
            >>> list(Experiment.sweep("exp=baseline", p6=[False, True]).pipelines)
            ['baseline p6=off', 'baseline p6=on']
        """
        varied = {key: value for key, value in values.items() if isinstance(value, list)}
        swept = []
        for key, listed in varied.items():
            pairs = [_words((), {key: value})[-1].partition("=") for value in listed]
            swept.append(f"{pairs[0][0]}={','.join(value for _, _, value in pairs)}")
        fixed = {key: value for key, value in values.items() if key not in varied}
        settings = tuple(composition.sweep([*_words(overrides, fixed), *swept]))
        return cls(settings, benchmark, explores=not names_split(settings))

    @classmethod
    def arms(
        cls,
        arms: Mapping[str, Any],
        benchmark: Benchmark | None = None,
        *overrides: str,
        quick: bool = False,
        **values: Any,
    ) -> Experiment:
        """Return arms by name; the first is the baseline.

        Args:
            arms: By name, an override or a list of overrides and your own stages; a retriever, which is a function of
                `(query, k)` or an object of LangChain, LlamaIndex, Haystack, PyTerrier or BM25S, or a list with
                overrides after it; or results, as a run file, a DataFrame or a mapping by qid.
            benchmark: A benchmark instead of the one that `data` names.
            *overrides: Overrides of all arms.
            quick: Measure quality only, without a report and MLflow; `Results.time`, `report` and `to_mlflow` add them.
            **values: Overrides of all arms by key.

        Returns:
            The experiment.

        Raises:
            ConfigError: An arm cannot be used; the message names it.

        Example:
            >>> Experiment.arms({"plain": [], "deep": ["p6=on", "p6.depth=50"], "mine": lambda query, k: ["keys"]})
            Experiment(plain, deep, mine)
        """
        shared = _words(overrides, values)
        if quick:
            shared = [*(override for override in _QUICK if key_of(override) not in map(key_of, shared)), *shared]
        in_memory: list[object] = []
        settings = tuple(
            composition.compose([*shared, *_parts_of(name, arm, shared, in_memory)]) for name, arm in arms.items()
        )
        return cls(settings, benchmark, explores=not names_split(settings), held=tuple(in_memory), quick=quick)

    @classmethod
    def ablate(
        cls,
        *overrides: str,
        benchmark: Benchmark | None = None,
        design: Design | None = None,
        split: Split | None = None,
        candidates: Mapping[str, Sequence[str]] | None = None,
        **values: Any,
    ) -> Experiment:
        """A designed ablation, as `ragbench ablate`, by overrides or by values.

        >>> Experiment.ablate(exp="phase1", design="leave_one_out", factors=["p2", "p4"], split="train")
        Experiment(phase1, p4, p2)

        `candidates` are overrides by name, each a factor; with them the design is add_one unless another is named.
        """
        chosen = {"design": design, "split": split}
        options = {**{key: value for key, value in chosen.items() if value is not None}, **values}
        overrides = tuple(_words(overrides, options))
        if candidates and "design" not in map(key_of, overrides):
            overrides = ("design=add_one", *overrides)
        ablation = ablate.plan(composition.compose(overrides), composition.compose, candidates)
        return cls(ablation.settings, benchmark, ablation, not names_split(ablation.settings))

    @property
    def pipelines(self) -> dict[str, Pipeline]:
        """The pipeline of every arm by name; a pipeline prints as a sentence."""
        return {arm.name: arm.pipeline for arm in self.settings}

    @cached_property
    def benchmark(self) -> Benchmark:
        """The benchmark that was given, else the one that `data` names, read when first asked for."""
        return self.settings[0].benchmark() if self.given is None else self.given

    @cached_property
    def settings_to_measure(self) -> tuple[Settings, ...]:
        """The settings with the benchmark and the topics that are measured."""
        record = (lambda settings: settings) if self.given is None else composition.recorder(self.given)
        settings = tuple(map(record, self.settings))
        if not self.explores:
            return settings
        split = TRAIN if has_halves(self.benchmark.topics) else "all"
        return tuple(_on_split(arm, split) for arm in settings)

    @property
    def command(self) -> str:
        """The command that runs this; an experiment continues only one that the same command began."""
        return "ablate" if self.ablation else "run"

    def run(self, progress: Report | None = None) -> Results:
        """Measure quality, then latency; write the files, the report, and MLflow where tracking is on.

        Messages go to the logger `ragbench`, which prints them on standard error:
        `logging.getLogger("ragbench").setLevel("ERROR")` hides notes and warnings.

        Args:
            progress: Called with the name of a task, the rows done and all rows; by default a bar is shown.

        Returns:
            The results; `Results.load(folder)` reads them again.

        Raises:
            BenchmarkError: The benchmark has no query to measure.
            ConfigError: A configuration does not fit the benchmark.
        """
        with console.progress_to(progress):
            return self.keep(self.measure())

    def measure(self, show: Callable[[Results], None] | None = None) -> Results:
        """Measure and judge, and write that; `keep` does what may come after the results are shown.

        `show` is called as soon as there are verdicts, before fresh processes are started to time a cold start.
        """
        from ragbench.experiment.run import run

        shared = self.settings[0]
        if shared.tracking.enabled and (tracking := registry.find("hook", "tracking")):
            tracking.check(tracking.target_of(shared))
        warnings = grouped_by_kind(self.benchmark.warnings)
        for sentence in first_lines(shared, has_benchmark=self.given is not None):
            _LOG.info(sentence)
        texts = [document.text for document in self.benchmark.documents]
        note_on_languages = registry.find("hook", "note_on_languages")
        if note_on_languages and (spoken := note_on_languages(self.settings_to_measure, texts)):
            _LOG.info(spoken)
        if self.ablation:
            for note in self.ablation.notes:
                _LOG.info(note)
        for warning in warnings[:_WARNINGS]:
            _LOG.warning(warning)
        if len(warnings) > _WARNINGS:
            _LOG.warning(f"{len(warnings) - _WARNINGS} more about the data: ragbench data check shows them all")
        if self.explores:
            _LOG.info(_exploring_sentence(self.benchmark, self.settings_to_measure[0].split))
        planned = self._planned()
        if show is not None and (first := self._preliminary(planned)):
            show(first)
            _LOG.info("measuring the whole collection now; Ctrl-C stops, and the same command continues")
        measured = run(
            self.settings_to_measure,
            self.benchmark,
            command=self.command,
            only=self.only,
            conclude=lambda measured: self._conclude(measured, show),
            planned=planned,
        )
        if measured.without_answers:
            _LOG.warning(measured.without_answers)
        return dataclasses.replace(Results.of(measured, self.given), held=self.held)

    def preliminary(self) -> Results | None:
        """Measure quality on a part of the documents (`data.sample`), with the same queries, and write those results.

        Returns:
            The results, which cannot be exported; None if `data.sample` is off, or auto and the whole does not take
            much longer.
        """
        return self._preliminary(self._planned())

    def _planned(self) -> Plan:
        from ragbench.experiment.run import plan

        settings = self.settings_to_measure
        return plan(settings, self.command, ArmBuilder.of(settings[0], self.benchmark), self.only)

    def _preliminary(self, planned: Plan) -> Results | None:
        from ragbench.experiment.preliminary import AUTO, draw
        from ragbench.experiment.run import run

        settings, sample = self.settings_to_measure, self.settings[0].data.get("sample", AUTO)
        part = draw(planned, sample, settings[0].basics.seed)
        if part is None:
            return None
        changes = {
            "latency.enabled": False,
            "paths.results": str(settings[0].results / "preliminary"),
            "paths.index": str(settings[0].index_folder),
            "paths.cache": str(settings[0].cache_folder),
        }
        recorded = [composition.recorder(part)(arm).with_values(changes) for arm in settings]
        measured = run(recorded, part, command=self.command, only=self.only, conclude=self._write_verdicts)
        return Results.of(measured, part)

    def remeasure_latency(self, folder: Path, show: Callable[[Results], None] | None = None) -> Results:
        """The results of a finished run with latency re-measured, as a separate run."""
        from ragbench.experiment.run import remeasure_latency

        timed = remeasure_latency(measurements.load(folder), lambda measured: self._conclude(measured, show))
        return Results.of(timed)

    def keep(self, results: Results) -> Results:
        """Write the report, then MLflow where tracking is on; the results with their run there."""
        if len(self.settings) > 1 and not self.quick and registry.find("hook", "report"):
            try:
                results.report()
            except (RagbenchError, OSError) as error:
                _LOG.warning(f"the report could not be written ({error}); results are kept: ragbench report makes it")
        if self.settings[0].tracking.enabled and (tracking := registry.find("hook", "tracking")):
            run_id = tracking.log(tracking.target_of(self.settings[0]), results.folder)
            results = dataclasses.replace(results, tracking_run=run_id)
        return results

    def _conclude(self, measured: Measurements, show: Callable[[Results], None] | None) -> None:
        self._write_verdicts(measured)
        if show is not None:
            show(Results.of(measured, self.given))

    def _write_verdicts(self, measured: Measurements) -> None:
        if self.ablation:
            ablate.conclude(self.ablation, measured)
        else:
            measurements.against_first(measured)

    def search(self, query: str, arm: str | None = None, top: int = 10, **options: Any) -> Answer:
        """Search with one query and explain each hit.

        Args:
            query: The text of the query.
            arm: The name of an arm; by default the first.
            top: The number of hits.
            **options: Options of a search, such as `mode="keyword"` (`ragbench.search.engine.answer.SearchOptions`).

        Returns:
            The hits, and the milliseconds and ranks of every stage.
        """
        search_options = build(SearchOptions, options, "options")
        selected = [arm_settings for arm_settings in self.settings if arm in (None, arm_settings.name)]
        if not selected:
            raise ConfigError(f"unknown arm '{arm}'; the arms are {', '.join(self.pipelines)}")
        with console.progress():
            (built,) = ArmBuilder.of(selected[0], self.benchmark).arms(selected[:1])
            built.index.prepare(built.pipeline.needs | {"facets"})
        return answer(query, built.pipeline, built.index, top, options=search_options, explain=True)

    def __repr__(self) -> str:
        untimed = "" if self.settings[0].latency.enabled else "; quality only"
        return f"Experiment({', '.join(self.pipelines)}{untimed})"

    def _repr_html_(self) -> str:
        base = self.settings[0].overrides
        arms = [(arm.name, changes(base, arm.overrides), arm.pipeline) for arm in self.settings]
        return render(_HTML, arms=arms)


_HTML = """\
<dl class="ragbench-experiment">
{% for name, changed, pipeline in arms %}
<dt><b>{{ name }}</b>{% if changed %} <code>{{ changed }}</code>{% endif %}</dt>
<dd><ol>
{% for stage_name, stage in pipeline %}
<li><b>{{ stage_name }}</b> {{ stage.describe() }}</li>
{% endfor %}
</ol></dd>
{% endfor %}
</dl>
"""


def _on_split(settings: Settings, split: str) -> Settings:
    """The settings with another split, also among the overrides, so that these give the same settings."""
    changed = settings.with_values({"split": split})
    return dataclasses.replace(changed, overrides=(*settings.overrides, f"split={split}"))


def names_split(settings: Sequence[Settings]) -> bool:
    """Whether an override sets the split."""
    return any(key_of(override) == "split" for arm in settings for override in arm.overrides)


def _exploring_sentence(benchmark: Benchmark, split: str) -> str:
    if split == TRAIN:
        return "exploring on the train queries: confirm what you choose with split=test, once"
    return (
        f"'{benchmark.name}' has {len(benchmark.topics)} queries, too few for a test split: all are measured, so "
        "confirm what you choose on other queries"
    )


def _words(overrides: Sequence[str], values: Mapping[str, Any]) -> list[str]:
    """Overrides as words, and values by key after them."""
    return [*overrides, *words(values, available.read())] if values else list(overrides)


def _parts_of(name: str, arm: Any, shared: Sequence[str], in_memory: list[object]) -> list[str]:
    """An arm as overrides, after those it shares. Retrievers are added to `in_memory`: it keeps them alive.

    Raises ConfigError for a value that is not an arm, BenchmarkError for results that cannot be read.
    """
    arm = list(arm.parts) if isinstance(arm, Composed) else arm
    several = isinstance(arm, (list, tuple))
    parts = [part for item in (arm if several else [arm]) for part in _part(name, item, shared, in_memory, several)]
    return [*parts, word("name", name)]


def _part(name: str, part: Any, shared: Sequence[str], in_memory: list[object], several: bool) -> list[str]:
    if isinstance(part, (str, os.PathLike)):
        text = os.fspath(part)
        if "=" not in text and not Path(text).expanduser().is_file():
            raise ConfigError(f"arm '{name}' is '{text}', which is neither a file of results nor key=value")
        if "=" not in text:
            return ["live=trec", word("live.path", text)]
        return [text] if several else list(shlex.split(text))
    if isinstance(part, FunctionStage):
        return words_of([part])
    if is_run(part):
        return ["live=trec", word("live.path", str(_file_of(name, part, shared)))]
    retriever_of = registry.find("hook", "python_retriever")
    retriever = retriever_of(name, part) if retriever_of else None
    if retriever is None:
        raise ConfigError(
            f"arm '{name}' is a {type(part).__name__}: give overrides, a function of (query, k), a retriever of "
            "LangChain, LlamaIndex, Haystack, PyTerrier or BM25S, a run file or a DataFrame"
        )
    in_memory.append(retriever)
    overrides = ["live=python", word("live.retriever", retriever.name)]
    overrides += [word("live.number", retriever.number)] if retriever.number else []
    return [*overrides, *([word("live.parameters", dict(retriever.parameters))] if retriever.parameters else [])]


def _file_of(name: str, table: Any, shared: Sequence[str]) -> Path:
    """The results as a run file in the results folder, so that others can measure them again."""
    run = {qid: decreasing(trec_eval_order(hits)) for qid, hits in read_run_table(table, f"arm '{name}'").items()}
    text = trec(run, "ragbench")
    path = composition.compose(shared).results / "given" / f"{text_digest(text, 16)}.trec"
    if not path.is_file():
        write_text(path, text)
    return path.absolute()


_NOTES = ("notes", "docs", "content", "wiki")
"""Names that folders of notes often have."""


def first_lines(settings: Settings, has_benchmark: bool = False) -> list[str]:
    """The first lines of a run; `has_benchmark` if a script passes a benchmark."""
    lines = [f"writing results to {_shown(settings.results)}"]
    typed = {section_of(override) for override in settings.overrides}
    if not has_benchmark and "data" not in typed and project.find() is None:
        notes = next((name for name in _NOTES if Path(name).is_dir()), "FOLDER")
        lines.append(
            f"no {project.FILE} here or above: measuring the built-in benchmark, documentation of a fictional product; "
            f"to measure your own notes, run ragbench init {notes}"
        )
    return lines


def _shown(results: Path) -> str:
    """The folder, and whose it is."""
    project_file = project.find()
    if project_file is not None and results.is_relative_to(project_file.file.parent):
        return f"{results.relative_to(project_file.file.parent)} next to {short_path(project_file.file)}"
    return f"{short_path(results)} in this folder" if results.is_relative_to(Path.cwd()) else str(results)
