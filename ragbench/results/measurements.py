"""Measurements as tidy tables and as a folder of plain files.

    <folder>/experiment.json        name, command, benchmark, environment, arms
    <folder>/summary.csv            arm, level, split, type, measure, mean, n
    <folder>/latency.csv            arm, stage, p50, p95, p99 ... of the service time in milliseconds
    <folder>/verdicts.csv           effects, intervals, costs, verdicts; of several arms also best_arm.csv
    <folder>/topics.parquet         qid, split, type, text, need, area
    <folder>/documents.qrels, sections.qrels   the judgments of these topics, in TREC form
    <folder>/documents.csv          docno, path: where run files and judgments name documents by path
    <folder>/arms/<arm>/config.yaml, pipeline.txt, run.trec, sections.trec, quotes.trec, metadata.yaml,
                       per_query.parquet, top.parquet, diagnosis.parquet,
                       contexts.parquet, latency.parquet, done.json

`ragbench.results.store` writes the folder and checks that its files are unchanged. The verdicts are computed once, at
the end of an experiment, and read wherever they are shown.
"""

from __future__ import annotations

import copy
import csv
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ragbench.base import registry
from ragbench.base.columns import Column, Columns
from ragbench.base.files import write_text
from ragbench.base.types import BoundaryError, ResultsError, counted, probability, why_unreadable, with_interval
from ragbench.benchmark.benchmark import Benchmark
from ragbench.benchmark.native import FILE_NAMES
from ragbench.benchmark.runs import Run, new_name, read_run, renamed
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config.settings import Settings
from ragbench.evaluation import contexts, diagnosis
from ragbench.evaluation.machine import WAITED
from ragbench.evaluation.measures import PRIMARY, WITHOUT_JUDGMENTS
from ragbench.evidence import best_arm
from ragbench.evidence.arms import LATENCY, TYPES, VERDICT_COLUMNS, Arms, JudgedContrast, Policy, by_type, verdict_table
from ragbench.evidence.cost import NET
from ragbench.results import comparisons, labels, store, top_hits

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.label_health import FollowedLabels

TOPICS, TOP, DIAGNOSIS, PER_QUERY = "topics.parquet", "top.parquet", "diagnosis.parquet", "per_query.parquet"
DOCUMENTS, SECTIONS, QUOTES = "run.trec", "sections.trec", "quotes.trec"
CONTEXTS = "contexts.parquet"
CONFIG, PIPELINE, DESIGN = "config.yaml", "pipeline.txt", "design.txt"
VERDICTS, BEST_ARM = "verdicts.csv", "best_arm.csv"
TOPIC_COLUMNS = Columns.of("qid", "split", "type", "text", "need", "area")
METADATA = "metadata.yaml"
ARMS = Columns.of(
    Column("arm", "configuration", text=True),
    Column("documents", note="mean over queries"),
    Column("passages", note="of passages as they are returned"),
    Column("p50", "p50 ms", "median service time of a new query"),
    Column("p95", "p95 ms", "service time of a new query, with its 95% CI"),
    Column("index", "index MB", "size of the index artefacts that it reads"),
    Column("memory", "peak MB", "memory of a process that answers one query"),
    Column("verdict", note="against the base", text=True),
    Column("changes", note="in the pipeline", text=True),
)
"""What is known of every arm, under the same headings wherever arms are listed."""
PER_QUERY_COLUMNS = Columns.of("arm", "level", "split", "type", "qid", "measure", "value")


@dataclass(frozen=True)
class Measurements:
    """The outcome of an experiment.

    `per_query`: arm, level (document, section, quote or passage), split, type, qid, measure, value. `latency`: arm,
    stage, p50, p95, p99 and more, in milliseconds; empty when time was not measured.
    """

    folder: Path
    record: Mapping[str, Any]
    per_query: pd.DataFrame
    latency: pd.DataFrame

    @property
    def arms(self) -> list[str]:
        """The arms, in the order they were given."""
        return [str(arm) for arm in self.record["arms"]]

    def arm_path(self, arm: str) -> Path:
        """The folder of an arm's files."""
        return store.arm_path(self.folder, arm)

    def run(self, arm: str, file: str = DOCUMENTS) -> dict[str, list[tuple[str, float]]]:
        """A run file of an arm, with the docnos of the documents that it names by path."""
        return renamed(read_run(self.arm_path(arm) / file), self._docnos)

    @cached_property
    def file_names(self) -> dict[str, str]:
        """Paths by docno; empty where run files have docnos."""
        return {docno: path for path, docno in self._docnos.items()}

    def named(self, target: str) -> str:
        """A document or section as run files name it."""
        return new_name(target, self.file_names)

    @cached_property
    def _docnos(self) -> dict[str, str]:
        """Docnos by path; empty where run files have docnos."""
        path = self.folder / FILE_NAMES
        if not path.is_file():
            return {}
        with path.open(encoding="utf-8", newline="") as file:
            return {row["path"]: row["docno"] for row in csv.DictReader(file)}

    def config(self, arm: str) -> Mapping[str, Any]:
        """The configuration of an arm. Raises ResultsError when it cannot be read."""
        if arm not in self._configs:
            self._configs[arm] = _read_config(self.arm_path(arm) / CONFIG)
        return self._configs[arm]

    def settings(self, arm: str) -> Settings:
        """The configuration of an arm as objects."""
        return Settings(arm, self.config(arm))

    @cached_property
    def _configs(self) -> dict[str, Mapping[str, Any]]:
        return {}

    @property
    def shared_config(self) -> Mapping[str, Any]:
        """The configuration of the first arm, which decides for all how they are judged and what they may cost."""
        return self.config(self.arms[0])

    @property
    def preliminary(self) -> str:
        """`preliminary, on 900 of 2,809 pages` for a run on a part of a collection, else empty."""
        benchmark = self.record["benchmark"]
        if not (whole := benchmark.get("drawn_from")):
            return ""
        return f"preliminary, on {benchmark['documents']:,} of {whole:,} pages"

    @property
    def primary(self) -> str:
        """The document measure of the verdicts."""
        return self.settings(self.arms[0]).primary

    @property
    def context_tokens(self) -> int:
        """How many tokens of hits a reader reads, for the recall of passages."""
        return self.settings(self.arms[0]).context_tokens

    @property
    def parameters(self) -> Mapping[str, Mapping[str, Any]]:
        """By arm, the options and values that make it; config.yaml has the whole configuration."""
        return dict(self.record["parameters"])

    @property
    def topics_origin(self) -> str:
        """The origin of the topics, such as `synthetic queries`, for table titles; empty if human-written."""
        return str(self.record["benchmark"].get("topics", ""))

    @cached_property
    def topics(self) -> pd.DataFrame:
        """qid, split, type, text, need and area of the topics, sorted by qid; texts and areas may be empty."""
        import pandas as pd

        frame = pd.read_parquet(self.folder / TOPICS).sort_values("qid", ignore_index=True)
        return frame[list(TOPIC_COLUMNS)]

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the queries by qid."""
        return dict(self.topics[["qid", "text"]].itertuples(index=False))

    @cached_property
    def labels(self) -> FollowedLabels | None:
        """What had become of the judged pages when it was measured; None for benchmarks that are not files."""
        return labels.read(self.folder)

    @property
    def judged(self) -> bool:
        """Whether an answer of any topic is judged."""
        return len(self.judged_queries) > 0

    @property
    def judged_queries(self) -> list[str]:
        """The ids of the queries that were measured by judgments."""
        return list(self.per_query.loc[~self.per_query["measure"].isin(WITHOUT_JUDGMENTS), "qid"].unique())

    @property
    def without_answers(self) -> str:
        """A sentence on the arms that return no relevant document for any judged query; empty without such arms."""
        frame = self.per_query[~self.per_query["measure"].isin(WITHOUT_JUDGMENTS)]
        best = frame[frame["level"] == "document"].groupby("arm", sort=False)["value"].max()
        if not len(names := [str(name) for name in best.index[best == 0]]):
            return ""
        return (
            f"{', '.join(names)}: no relevant document was returned for any judged query, so all values are 0; "
            "probably ids of results and judgments differ, or judgments are for other documents (ragbench data check)"
        )

    @property
    def comparison(self) -> int:
        """The number of this comparison on its queries, from 1; 0 where no arms were compared."""
        return int(self.record.get("comparison", 0))

    @property
    def exploratory(self) -> str:
        """The label of an exploratory comparison; empty for the first one on its queries."""
        return comparisons.describe(self.comparison)

    @property
    def interval(self) -> str:
        """The confidence of the intervals, such as `95%`."""
        return f"{100 * float(self.shared_config['statistics']['confidence']):.4g}%"

    def title_with_origin(self, title: str) -> str:
        """A title for a table of these results, with the origin of the topics."""
        return f"{title}; {self.topics_origin}" if self.topics_origin else title

    def summary(self, by: Sequence[str] = ("split",), level: str = "document") -> pd.DataFrame:
        """Means over queries: one row per arm (and the columns in `by`), one column per measure, and `n` topics.

        `n` does not count topics without an answer: `Silence` and the number of their hits measure those.
        """
        frame = self.per_query[self.per_query["level"] == level]
        keys = ["arm", *by]
        means = frame.pivot_table(index=keys, columns="measure", values="value", aggfunc="mean", observed=True)
        counted = frame[~frame["measure"].isin(WITHOUT_JUDGMENTS)].groupby(keys, observed=True)["qid"].nunique()
        means.insert(0, "n", counted.reindex(means.index).fillna(0).astype(int))
        order = {arm: rank for rank, arm in enumerate(self.arms)}
        return means.reset_index().sort_values(["arm", *by], key=lambda c: c.map(order) if c.name == "arm" else c)

    def values(self, arm: str, measure: str = PRIMARY, split: str = "all", level: str = "document") -> pd.Series:
        """One measure of one arm by qid, sorted by qid."""
        series = self._series.get((arm, measure, level))
        if series is None:
            return self.per_query[:0].set_index("qid")["value"]
        if split != "all":
            series = series[series.index.isin(self._qids_by_split.get(split, ()))]
        return series.copy()

    def arm_tables(self, name: str, columns: Iterable[str], others: bool = False) -> pd.DataFrame:
        """The tables that arms wrote under a file name as one, with a column `arm`; no rows where no arm wrote one.

        `others` also keeps further columns: an arm that did not write one has NaN there.
        """
        import pandas as pd

        if name not in self._tables:
            paths = {arm: self.arm_path(arm) / name for arm in self.arms}
            frames = [pd.read_parquet(path).assign(arm=arm) for arm, path in paths.items() if path.is_file()]
            empty = pd.DataFrame(columns=list(columns))
            filled = [frame for frame in frames if len(frame)] or frames[:1]  # pandas 2 warns of empty ones
            self._tables[name] = pd.concat(filled, ignore_index=True) if filled else empty
        table = self._tables[name]
        return table[[*columns, *(column for column in table.columns if others and column not in columns)]]

    @cached_property
    def _tables(self) -> dict[str, pd.DataFrame]:
        return {}

    @cached_property
    def _qids_by_split(self) -> Mapping[Any, frozenset[str]]:
        qids = self.per_query.groupby("split", observed=True)["qid"].unique()
        return {split: frozenset(of_split) for split, of_split in qids.items()}

    @cached_property
    def _series(self) -> Mapping[Any, pd.Series]:
        """By arm, measure and level, the values by qid."""
        values = self.per_query.set_index("qid").sort_index(kind="stable")
        return dict(list(values.groupby(["arm", "measure", "level"], sort=False)["value"]))

    def p95_ms(self, arm: str) -> float | None:
        """The 95th percentile of the time of a whole query in milliseconds, None for an arm that was not timed."""
        total = self.latency[(self.latency["arm"] == arm) & (self.latency["stage"] == "total")]
        return float(total["p95"].iloc[0]) if len(total) else None

    @property
    def net_p95_ms(self) -> Mapping[str, float]:
        """By arm, p95 without the time spent waiting for a CPU, where the verdicts compare such times; else empty."""
        if not any(NET in str(reason) for reason in self.verdicts["reason"]):
            return {}
        import numpy as np

        samples = self.arm_tables(LATENCY, ("arm", "qid", "total"), others=True)
        net = samples["total"] - samples[WAITED]
        return {str(arm): float(np.nanpercentile(times, 95)) for arm, times in net.groupby(samples["arm"])}

    @property
    def peak_memory_mb(self) -> Mapping[str, float]:
        """By arm, the largest resident set of a process that answers one query, in MiB; empty when not measured."""
        return {str(arm): float(mb) for arm, mb in self.record.get("peak_memory_mb", {}).items()}

    @property
    def design(self) -> str:
        """The design of an ablation in words, empty for other experiments."""
        path = self.folder / DESIGN
        return path.read_text(encoding="utf-8").strip() if path.is_file() else ""

    def pipeline(self, arm: str) -> str:
        """The pipeline of an arm as a sentence, empty where it was not written."""
        path = self.arm_path(arm) / PIPELINE
        return path.read_text(encoding="utf-8").strip() if path.is_file() else ""

    @cached_property
    def verdicts(self) -> pd.DataFrame:
        """Effects with intervals, costs and verdicts: of an ablation's factors, else of every arm against the first."""
        return VERDICT_COLUMNS.read(self.folder / VERDICTS)

    @property
    def lacks_judgments(self) -> bool:
        """Whether an effect is open because its sign depends on results without a judgment."""
        return bool((self.verdicts["needs_judgments"] == 1).any())

    @property
    def best_arm(self) -> pd.DataFrame:
        """How likely each arm is the best, which are ruled out, and how many more topics would separate the others."""
        return best_arm.COLUMNS.read(self.folder / BEST_ARM)

    @property
    def top_hits(self) -> pd.DataFrame:
        """The first hits of every arm for every query, with grades."""
        return self.arm_tables(TOP, ("arm", *top_hits.COLUMNS))

    @cached_property
    def fates(self) -> pd.DataFrame:
        """The fate of every relevant section, or document, in every arm, and its stage; each named by its file."""
        frame = self.arm_tables(DIAGNOSIS, diagnosis.COLUMNS)
        return frame.assign(section=frame["section"].map(self.named))

    @property
    def losses(self) -> pd.DataFrame:
        """How many relevant sections (documents where no section was judged) had each outcome, by arm and stage."""
        order = {arm: n for n, arm in enumerate(self.arms)}
        return diagnosis.losses(self.fates).sort_values(
            ["arm", "sections"], key=lambda c: c.map(order) if c.name == "arm" else -c, kind="stable"
        )

    def by_kind(self, of: Literal["type", "area"] = "type") -> pd.DataFrame:
        """Every query type, or area of the collection, and arm against the first arm: see `evidence.arms.by_type`."""
        first = self.arms[0]
        policy = Policy.of(self.config(first))
        reference = self.values(first, policy.measure)
        if not len(reference):
            return TYPES.frame()
        kinds = self.topics.set_index("qid")[of].reindex(reference.index)
        values = {arm: self.values(arm, policy.measure).reindex(reference.index) for arm in self.arms}
        return by_type(values, first, list(kinds), policy)

    @property
    def delivered(self) -> pd.DataFrame:
        """The tokens of every query's context by folder and type: arm and the columns of `evaluation.contexts`."""
        return self.arm_tables(CONTEXTS, ("arm", *contexts.COLUMNS))

    def _repr_html_(self) -> str:
        return self.summary().to_html(index=False, float_format="{:.4f}".format, na_rep="")


def load(folder: Path) -> Measurements:
    """Read the results of the run in `folder`. Raises ResultsError when they are damaged."""
    import pandas as pd

    record = store.read(folder)
    frames = [pd.read_parquet(store.arm_path(folder, arm) / PER_QUERY) for arm in record["arms"]]
    latency = folder / "latency.csv"
    return Measurements(
        folder,
        record,
        pd.concat(frames, ignore_index=True),
        pd.read_csv(latency) if latency.is_file() else pd.DataFrame({"arm": [], "stage": []}),
    )


def find_arm(folder: Path, arm: str | None = None, like: str | None = None) -> tuple[Measurements, str]:
    """A run and the name of one of its arms: `folder` is that of the run, or of the arm inside it.

    `arm` may be omitted for a run of one arm. Of several arms without `arm`, the one named `like`. Raises ResultsError
    for an unknown run or arm, and for a preliminary verdict.
    """
    loaded = load(store.run_folder(folder))
    if loaded.preliminary:
        raise ResultsError(
            f"the verdict of {loaded.folder} is {loaded.preliminary}: measure the whole, "
            "for example with ragbench run data.sample=off"
        )
    if loaded.folder != folder:
        named = [name for name in loaded.arms if store.arm_folder(name) == folder.name and arm in (None, name)]
    elif arm is not None:
        named = [name for name in loaded.arms if name == arm]
    else:
        named = [like] if like in loaded.arms else loaded.arms
    if not named:
        raise ResultsError(f"the run {loaded.folder} has no arm '{arm or folder.name}'; arms: {', '.join(loaded.arms)}")
    if len(named) > 1:
        raise ResultsError(
            f"the run {loaded.folder} has several arms ({', '.join(named)}): specify one, such as "
            f"{loaded.folder.name}/{named[-1]} (arm='{named[-1]}' in Python)"
        )
    return loaded, named[0]


def _read_config(path: Path) -> Mapping[str, Any]:
    try:
        facts = path.stat()
        return copy.deepcopy(_config_of(path, (facts.st_ino, facts.st_mtime_ns, facts.st_size)))
    except (OSError, BoundaryError) as error:
        reason = why_unreadable(error)
        raise ResultsError(f"{path} cannot be read ({reason}): run the experiment again") from None


@lru_cache(maxsize=64)
def _config_of(path: Path, state: tuple[int, ...]) -> dict[str, Any]:
    """The content of a file in a state, for several readers of one run."""
    return dict(read_yaml_file(path, aliases=True))


def trec(run: Run, tag: str) -> str:
    """A run in TREC form: qid Q0 id rank score tag, queries sorted, scores in the fewest digits that lose nothing."""
    lines = (
        f"{qid} Q0 {target} {rank} {score!r} {tag}\n"
        for qid in sorted(run)
        for rank, (target, score) in enumerate(run[qid], start=1)
    )
    return "".join(lines)


def write_verdicts(
    results: Measurements,
    judged_contrasts: Sequence[JudgedContrast],
    standard_errors: Mapping[str, float] | None = None,
) -> None:
    """Write the verdicts of the experiment."""
    frame = verdict_table(judged_contrasts, standard_errors)
    write_text(results.folder / VERDICTS, frame.to_csv(index=False))
    vars(results).pop("verdicts", None)  # which may have been read before there were any


def against_first(results: Measurements) -> None:
    """Judge every arm against the first, and store the verdicts; a single arm has none."""
    if len(results.arms) > 1:
        arms = Arms.of(results)
        write_verdicts(results, arms.against())
        best = best_arm.table(arms)
        if len(best):
            write_text(results.folder / BEST_ARM, best.to_csv(index=False))


def labelled(row: Mapping[Any, Any]) -> str:
    """The verdict of a row of the table, with its basis where it is not quality and latency: `adopt (by quality)`."""
    return f"{row['verdict']} (by quality)" if row["judged_by"] == "quality" else str(row["verdict"])


SURE = 0.9
"""The least probability of being better that an export on expectation needs."""


@dataclass(frozen=True)
class Prediction:
    """Predicted effects of an arm next to its base, in nDCG@10; `known` says from how many collections of which topics.

    `effect` has the 95% interval from `low` to `high`, and is positive with probability `better`. `topics` counts the
    run's own queries that the prediction includes, `queries` is the kind of queries that it holds for.
    """

    arm: str
    base: str
    topics: int
    effect: float
    low: float
    high: float
    better: float
    known: str
    elsewhere: str = ""
    queries: str = "all kinds of queries"

    @property
    def suffices(self) -> bool:
        """Whether it is enough for an export."""
        return self.better >= SURE

    @property
    def sentence(self) -> str:
        """The prediction in words."""
        numbers = with_interval(self.effect, self.low, self.high)
        verb, share = ("beats", self.better) if self.better >= 0.5 else ("is worse than", 1 - self.better)
        own = f" and your {counted(self.topics, 'query')}" if self.topics else ""
        return (
            f"prediction from {self.known}{self.elsewhere}{own}: {self.arm} {verb} {self.base} with probability "
            f"{probability(share)} ({numbers} {PRIMARY} on {self.queries})"
        )


def predictions_of_run(
    results: Measurements, arms: Sequence[str] | None = None, base: str | None = None
) -> Sequence[Prediction]:
    """The predictions for arms of a run (default: all) against one of them (default: the first), as far as known."""
    predict = registry.find("hook", "predictions")
    predicted: Sequence[Prediction] = predict(results, arms, base) if predict else ()
    return predicted


def prediction_of_change(change: str, base: str, questions: str) -> Prediction | None:
    """Predicted effects of a change before anything is measured; None where too little is known."""
    predict = registry.find("hook", "prediction_of_change")
    predicted: Prediction | None = predict(change, base, questions) if predict else None
    return predicted


_OF_DATA = ("data=", "data.", "topics=", "topics.")


def benchmark_of(results: Measurements, *, judged_since: bool = False) -> Benchmark:
    """The benchmark that a run recorded, read again; ResultsError when it has changed since.

    With `judged_since` judgments may have changed, documents and topics may not.
    """
    benchmark = results.settings(results.arms[0]).benchmark()
    require_benchmark(results, benchmark, judged_since=judged_since)
    return benchmark


def require_benchmark(results: Measurements, benchmark: Benchmark, *, judged_since: bool = False) -> None:
    """Raise ResultsError unless the benchmark is the one a run measured."""
    recorded = results.record["benchmark"]
    if recorded["digest"] == benchmark.digest:
        return
    if recorded["name"] != benchmark.name:
        raise ResultsError(
            f"{results.folder} measured '{recorded['name']}' and not '{benchmark.name}': omit data=, or name a "
            f"run over '{benchmark.name}'"
        )
    parts = (("documents", benchmark.collection, "collection"), ("topics", benchmark.questions, "questions"))
    changed = next((part for part, current, key in parts if recorded.get(key) != current), "judgments")
    if changed != "judgments" or not judged_since:
        raise ResultsError(
            f"the {changed} of '{benchmark.name}' have changed since {results.folder} was measured: run it again"
        )


def refuse_other_data(results: Measurements, config: Mapping[str, Any], overrides: Sequence[str]) -> None:
    """Raise ResultsError when words of a command name other data than the run measured."""
    if not names_data(overrides):
        return
    recorded = results.shared_config
    if any(_without_judgments(config[key]) != _without_judgments(recorded[key]) for key in ("data", "topics")):
        raise ResultsError(
            f"{results.folder} measured '{results.record['benchmark']['name']}', which these settings do not read: "
            "leave data= and topics= out, or name a run over those data"
        )


def names_data(overrides: Sequence[str]) -> bool:
    """Whether words of a command name data."""
    return any(override.lstrip("+").startswith(_OF_DATA) for override in overrides)


def _without_judgments(node: Any) -> Any:
    """The settings of data without those of judgments, to which some may be added, and of a preliminary verdict."""
    if not isinstance(node, Mapping):
        return node
    return {key: value for key, value in node.items() if key not in ("qrels", "sample")}


def require_same_benchmark(first: Measurements, second: Measurements) -> None:
    """Raise ResultsError unless two runs measured the same benchmark."""
    recorded, current = (run.record["benchmark"] for run in (first, second))
    if recorded["digest"] != current["digest"]:
        raise ResultsError(
            f"{first.folder} measured '{recorded['name']}' ({recorded['digest'][:12]}) and {second.folder} "
            f"'{current['name']}' ({current['digest'][:12]}): compare runs over the same documents, "
            "queries and judgments"
        )
