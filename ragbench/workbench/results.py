"""Results as data frames and figures, to be read, reported and exported."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import console, locations, registry
from ragbench.base.types import ConfigError, short_path
from ragbench.config.settings import Settings
from ragbench.evaluation import contexts
from ragbench.report import screen, tables
from ragbench.results import measurements, store
from ragbench.results.measurements import Measurements

if TYPE_CHECKING:
    import pandas as pd
    import plotly.graph_objects as go

    from ragbench.benchmark.benchmark import Benchmark


@dataclass(frozen=True)
class Results(Measurements):
    """Results of a run: verdicts, means, losses and figures. In a notebook it shows the verdicts.

    Attributes:
        folder: The folder of the run.
        record: The run's record, experiment.json.
        per_query: A row per arm, level, measure and query.
        latency: Milliseconds, a row per arm, query, round and stage; empty without timing.
        tracking_run: The id of the run in MLflow, else None.
        benchmark: The benchmark that was passed to the experiment, else None.
        held: The Python objects among the arms.
    """

    tracking_run: str | None = None
    benchmark: Benchmark | None = dataclasses.field(default=None, compare=False, repr=False)
    held: tuple[object, ...] = dataclasses.field(default=(), compare=False, repr=False)

    def __repr__(self) -> str:
        untimed = "" if len(self.latency) else "; quality only, .time() measures latency"
        return f"Results({', '.join(self.arms)}; in {self.folder.name}{untimed})"

    @classmethod
    def load(cls, folder: str | Path | None = None) -> Results:
        """Load the results of a finished run.

        Args:
            folder: The folder of the run; by default the newest in the results folder.

        Returns:
            The results.

        Raises:
            ResultsError: The folder has no finished run.
        """
        return cls.of(measurements.load(Path(folder) if folder else store.latest(locations.results())))

    @classmethod
    def of(cls, measured: Measurements, benchmark: Benchmark | None = None) -> Results:
        """The same results, with their evidence."""
        fields = {field.name: getattr(measured, field.name) for field in dataclasses.fields(measured)}
        return cls(**fields, benchmark=benchmark)

    @property
    def whereabouts(self) -> str:
        """A sentence on where the files are, and the run in MLflow."""
        tracked = f", MLflow run {self.tracking_run}" if self.tracking_run else ""
        return f"results in {short_path(self.folder)}{tracked}"

    def as_json(self) -> dict[str, Any]:
        """What `ragbench run --json` prints, or `ragbench ablate --json` for an ablation, as plain values."""
        values: dict[str, Any] = {
            "folder": str(self.folder),
            "mlflow_run": self.tracking_run,
            "comparison": self.comparison,
        }
        if self.labels is not None and self.labels.doubtful:
            values["labels"] = screen.label_sentences(self)
        tables = {"verdicts": self.verdicts}
        if self.record["command"] != "ablate":
            tables |= {"summary": self.summary(("split",)), "best_arm": self.best_arm}
            tables["latency"] = self.latency
            values["peak_memory_mb"] = dict(self.peak_memory_mb)
        return values | {name: frame.to_dict(orient="records") for name, frame in tables.items()}

    @property
    def next_command(self) -> str:
        """The command to type next: export the arm that is adopted with the largest effect, else the baseline.

        If an arm is better and only its latency is unknown, it is measured again first, once. Without a judgment,
        judging comes first. If queries leave an arm open, their power comes first, or what the arms lose.
        """
        if not self.judged:
            return "data pool"
        commands = registry.entries("command")
        without = "compare" if len(self.arms) > 1 else "run"  # the core has these
        explain = next((name for name in ("diagnose", "report") if name in commands), without)
        if len(self.arms) == 1:
            return explain
        frame = self.verdicts
        adopted = frame[(frame["verdict"] == "adopt") & frame["factor"].isin(self.arms)]
        exploratory = frame[(frame["verdict"] == "confirm") & frame["factor"].isin(self.arms)]
        if not len(adopted) and len(exploratory):
            return f"run --confirm {shlex.quote('@1/' + str(exploratory.sort_values('effect')['factor'].iloc[-1]))}"
        better = frame[(frame["quality"] == "better") & (frame["cost"] == "open") & frame["factor"].isin(self.arms)]
        local = [arm for arm in self.arms if not self.config(arm).get("live")]
        timed_again = "timed-again" in self.folder.name
        if not len(adopted) and len(better) and not timed_again:
            return "run --remeasure-latency @1"
        chosen = adopted if len(adopted) else better
        arm = str(chosen.sort_values("effect")["factor"].iloc[-1]) if len(chosen) else self.arms[0]
        if arm not in local:
            return explain
        if not len(chosen) and self._faster and "export" in commands:
            return f"export {shlex.quote(f'@1/{self._faster}')} --out bundle --force"
        if not len(chosen) and self._open:
            wanted = "data pool" if self.lacks_judgments else "data power"
            return wanted if wanted.replace(" ", ".") in commands else explain
        force = "" if len(adopted) or not len(better) else " --force"
        return self._export(arm) + force if "export" in commands else explain

    def _export(self, arm: str) -> str:
        new = next(name for n in count(1) if not Path(name := f"bundle-{n}" if n > 1 else "bundle").exists())
        return f"export {shlex.quote(f'@1/{arm}')} --out {new}"

    @property
    def _open(self) -> bool:
        """Whether the queries leave open if an arm is better than the first one."""
        frame = self.verdicts
        return bool(((frame["quality"] == "open") & frame["factor"].isin(self.arms)).any())

    @property
    def next_reason(self) -> str:
        """Lines on why `next_command` is recommended, where no verdict explains it; empty otherwise."""
        if len(self.arms) == 1 or not self.judged or (self.verdicts["quality"] == "better").any():
            return ""
        if not (faster := self._faster):
            if not self._open or self.config(self.arms[0]).get("live"):
                return ""
            commands = registry.entries("command")
            read = "read the losing queries" + (" (ragbench diagnose)" if "diagnose" in commands else "")
            undecided = f"undecided: add queries, decide by another measure (primary=), or {read}"
            keep = f"\nto keep {self.arms[0]}: ragbench {self._export(self.arms[0])}" if "export" in commands else ""
            return undecided + keep
        means, base = self._means, self.arms[0]
        scores = f"{means[faster]:.3f} against {means[base]:.3f}"
        times = f"{self.p95_ms(faster) or 0.0:.0f} against {self.p95_ms(base) or 0.0:.0f} ms"
        return f"{faster} scores no less than {base} ({scores}) and is much faster ({times}); no gain is established"

    @property
    def _means(self) -> dict[str, float]:
        return {arm: float(self.values(arm, self.primary).mean()) for arm in self.arms}

    @property
    def _faster(self) -> str:
        """The arm of the highest mean, no lower than that of the first arm, at no more than half its p95; or empty."""
        means, base = self._means, self.arms[0]
        p95 = {arm: self.p95_ms(arm) for arm in self.arms}
        faster = [arm for arm, ms in p95.items() if ms is not None and 2 * ms <= (p95[base] or 0.0)]
        return max((arm for arm in faster if means[arm] >= means[base]), key=means.__getitem__, default="")

    @property
    def dashboard(self) -> str:
        """The command that opens MLflow on the store of these results."""
        settings = self.settings(self.arms[0])
        named = {"paths.results": settings.paths.results, "tracking.uri": settings.tracking.uri}
        return " ".join(["track", "ui", *(shlex.quote(f"{key}={value}") for key, value in named.items() if value)])

    @property
    def by_type(self) -> pd.DataFrame:
        """The primary measure: a row per query type, a column per arm."""
        return tables.by_type(self)

    @property
    def contexts(self) -> pd.DataFrame:
        """Shares of useful, duplicate and polluting tokens in contexts of `context_tokens`, a row for every arm."""
        return contexts.shares(self.delivered)

    @property
    def polluters(self) -> pd.DataFrame:
        """Shares of each folder and document type in every arm's contexts, the most polluting first."""
        return contexts.polluters(self.delivered)

    def side_by_side(self, qid: str, arms: Sequence[str] | None = None, depth: int = 5) -> pd.DataFrame:
        """The first hits of one query in several arms, with grades: a row per rank, three columns per arm."""
        frame = self.top_hits
        frame = frame[(frame["qid"] == qid) & (frame["rank"] <= depth)]
        if frame.empty:
            raise ConfigError(f"no hits of query '{qid}' in {self.folder}")
        arms_to_show = [arm for arm in self.arms if arms is None or arm in arms]
        shown_columns = ("chunk_id", "header_path", "section_grade")
        wide = frame.pivot(index="rank", columns="arm", values=list(shown_columns)).swaplevel(axis=1)
        return wide.reindex(columns=[(arm, column) for arm in arms_to_show for column in shown_columns])

    def summary(self, by: Sequence[str] = ("split",), level: str = "document") -> pd.DataFrame:
        """Return means over queries: a row per arm and value of `by`, a column per measure, and `n` queries.

        Args:
            by: Columns that divide the queries, such as `split` and `type`.
            level: `document`, `section` or another level that was measured.

        Returns:
            The means. `p50_ms` and `p95_ms` are the median and the 95th percentile of the service time of new queries
            in milliseconds: the same in all rows of an arm, NaN for an arm that was not timed, absent without timing.
        """
        frame = super().summary(by, level)
        total = self.latency[self.latency["stage"] == "total"].set_index("arm")
        return frame.assign(**{f"{p}_ms": frame["arm"].map(total[p]) for p in ("p50", "p95")}) if len(total) else frame

    def report(self) -> Path:
        """Write the report, one HTML file that opens offline; its path. Parts that cannot be made are logged."""
        path: Path = registry.required("hook", "report", "Results.report").write(self)
        return path

    def export(
        self,
        out: str | Path | None = None,
        *,
        arm: str | None = None,
        format: str = "ragbench",
        baseline: str | None = None,
        force: bool = False,
    ) -> Any:
        """Write an arm for production, as `ragbench export`.

        Args:
            out: The folder or file to write.
            arm: The name of the arm; by default the one that is adopted.
            format: `ragbench` for a bundle that `ragbench.load` opens, or the name of another system.
            baseline: The arm that it must beat; by default the first.
            force: Export an arm without a significant gain.

        Returns:
            What was written: `out`, its path, `format`, `arm`, `evidence`, `missing`, sentences on what the format
            cannot express, and `replay`, what the arm scores in another system.

        Raises:
            ConfigError: The gain over `baseline` is not significant.
        """
        write = registry.required("hook", "export", "Results.export")
        path = Path(out).expanduser() if out is not None else None
        with console.progress():
            return write(
                self.folder,
                path,
                benchmark=self.benchmark,
                arm=arm,
                format=format,
                baseline=baseline,
                force=force,
            )

    def time(self) -> Results:
        """Measure the latency of these arms in a separate run, with the quality that this run measured.

        Returns:
            The results of the new run.

        Raises:
            ResultsError: These are the results of an ablation.
        """
        from ragbench.experiment.run import remeasure_latency

        with console.progress():
            timed = remeasure_latency(self, benchmark=self.benchmark)
        return dataclasses.replace(Results.of(timed, self.benchmark), held=self.held)

    def to_mlflow(self, uri: str | None = None) -> str | None:
        """Record the run in MLflow.

        Args:
            uri: The address of a tracking store; by default that of the configuration.

        Returns:
            The id of the run in MLflow, or None if it could not be recorded.
        """
        tracking = registry.required("hook", "tracking", "Results.to_mlflow")
        settings = Settings(self.arms[0], self.shared_config)
        chosen = settings if uri is None else settings.with_values({"tracking.uri": uri})
        target = tracking.target_of(chosen)
        tracking.check(target)
        run_id: str | None = tracking.log(target, self.folder)
        return run_id

    def claims(self, claimed: Mapping[str, float]) -> pd.DataFrame:
        """Return published effects next to the measured ones.

        Args:
            claimed: Differences of the primary measure, by `"ARM beats ARM"`.

        Returns:
            A row per claim: the claimed and the measured difference, its confidence interval and the verdict.
        """
        return tables.claims(self.verdicts, self.arms[0], claimed)

    def to_markdown(self) -> str:
        """The verdicts as a markdown table."""
        return tables.to_markdown(self.verdicts)

    def to_latex(self) -> str:
        """The verdicts as a LaTeX table with rules of booktabs."""
        return tables.to_latex(self.verdicts)

    def plot(self) -> go.Figure:
        """The most informative figure: effects by verdict, or where one arm alone lost relevant documents."""
        return self.plot_effects() if len(self.verdicts) else self.plot_losses()

    def _repr_html_(self) -> str:
        if (table := registry.find("hook", "notebook_table")) is None:
            return super()._repr_html_()
        title = f"{self.primary} against {self.arms[0]}" if not self.design else self.design
        untimed = "" if len(self.latency) else "quality only: .time() measures latency"
        notes = [note for note in (self.exploratory, untimed) if note]
        shown: str = table(self.verdicts, self.summary(), title, notes)
        return shown

    def plot_effects(self) -> go.Figure:
        """Effects with intervals, by verdict."""
        return _figures().plot_effects(self)

    def plot_latency(self) -> go.Figure:
        """Mean milliseconds of every stage."""
        return _figures().plot_latency(self)

    def plot_interactions(self) -> go.Figure:
        """Two-way interactions as a heat map, where the design has them."""
        return _figures().plot_interactions(self)

    def plot_losses(self) -> go.Figure:
        """Where relevant sections or documents were lost."""
        return _figures().plot_losses(self)

    def plot_pareto(self) -> go.Figure:
        """Quality against latency, with the arms that no other beats in both."""
        return _figures().plot_pareto(self)


def _figures() -> Any:
    """The module that draws figures. ConfigError where no installed extra has it."""
    return registry.required("hook", "figures", "a figure")
