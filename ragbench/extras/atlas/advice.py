"""What to try next on a finished run: what is lost where, and the commands that may recover it."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragbench.base import console, minimums
from ragbench.base.types import ResultsError
from ragbench.benchmark import load
from ragbench.evaluation import diagnosis, measures
from ragbench.evidence import arms

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results import measurements

_LOST = 0.05  # share of the relevant sections that may be lost without being named
_JUDGED = 0.5


@dataclass(frozen=True)
class Lever:
    """Something to try: why, the share of sections or queries that it could improve (None: unknown), its commands."""

    name: str
    why: str
    share: float | None
    commands: tuple[str, ...]


def best_arm(results: measurements.Measurements) -> str:
    """The arm with the highest mean, the first of equals."""
    means = results.summary(by=()).set_index("arm")[results.primary]
    return str(means.reindex(results.arms).idxmax())


def advice(results: measurements.Measurements, arm: str | None = None, known: Collection[str] = ()) -> list[Lever]:
    """The levers for an arm (the best one when None), the largest share first, without those that the run tried.

    Commands omit the `known` overrides, with which every command in this folder begins. Raises ResultsError for an
    unknown arm, and for one without a diagnosis.
    """
    arm = arm if arm is not None else best_arm(results)
    if arm not in results.arms:
        raise ResultsError(f"{results.folder} has no arm '{arm}'; it has {', '.join(results.arms)}")
    run = AdvisedArm(results, arm, fates_of(results, arm), frozenset(known))
    if not len(run.fates):
        raise ResultsError(f"{results.folder} has no diagnosis of '{arm}': none of its topics has a relevant judgment")
    return levers(run)


def fates_of(results: measurements.Measurements, arm: str) -> pd.DataFrame:
    """What became of the relevant sections, or documents, of the arm's topics."""
    fates = results.fates
    return fates[fates["arm"] == arm]


def levers(run: AdvisedArm) -> list[Lever]:
    """What applies to an arm, the largest share first; a search that runs elsewhere is changed there."""
    from_losses = [] if run.config.get("live") else [*_losses(run), *_ranking(run), *_retrieval(run)]
    candidates = [*_measuring(run), *from_losses]
    return sorted(candidates, key=lambda lever: -(1.0 if lever.share is None else lever.share))


@dataclass(frozen=True)
class AdvisedArm:
    """An arm of a run with the fates of its relevant sections; all commands begin with `project_overrides`."""

    results: measurements.Measurements
    arm: str
    fates: pd.DataFrame
    project_overrides: frozenset[str] = frozenset()

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration of the arm."""
        return self.results.config(self.arm)

    @property
    def topics(self) -> int:
        """The number of queries with a relevant section or document."""
        return int(self.fates["qid"].nunique())

    def share(self, *outcomes: str) -> float:
        """The share of the relevant sections, or documents, with one of these outcomes."""
        return float(self.fates["outcome"].isin(outcomes).mean())

    def command(self, name: str, *more: str) -> str:
        """A command with the words that the arm was run with, and more."""
        keys = {_key(override) for override in more}
        own = [override for override in self.overrides_of(self.arm) if override not in self.project_overrides]
        return shlex.join(["ragbench", *name.split(), *(o for o in own if _key(o) not in keys), *more])

    def overrides_of(self, arm: str) -> list[str]:
        """The words that an arm was run with, without its name and topics."""
        overrides = (str(override).lstrip("+") for override in self.results.record["overrides"].get(arm, ()))
        return [override for override in overrides if _key(override) not in ("name", "split")]

    def was_tried(self, *more: str) -> bool:
        """Whether another arm of the run is this one with these changes."""
        tried_overrides = set(self.overrides_of(self.arm)) | set(more)
        return any(set(self.overrides_of(arm)) == tried_overrides for arm in self.results.arms if arm != self.arm)

    def off(self, switch: str) -> bool:
        """Whether the arm goes without a switch."""
        return not self.config.get(switch)

    def with_change(self, *more: str) -> str:
        """A command that compares the arm as it is with the arm with `more` words."""
        return f"{self.command('run')} --arm as_is= --arm changed={shlex.quote(shlex.join(more))}"


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+")


def _more_queries(results: measurements.Measurements) -> str:
    """The command that makes more queries; synthetic ones were made from all pages already."""
    return "ragbench topics from-log searches.jsonl" if results.topics_origin else "ragbench topics derive"


def _measuring(run: AdvisedArm) -> Iterator[Lever]:
    """Levers on the benchmark, where it cannot show a gain."""
    if arms.disturbed(run.results.record):
        yield Lever(
            "measure latency on a quiet machine",
            "other programs were busy, so latency intervals are wider; quality results are kept",
            None,
            (shlex.join(["ragbench", "run", "--remeasure-latency", run.results.folder.name]),),
        )
    if run.topics < minimums.FOR_ADVICE:
        yield Lever(
            "add queries",
            f"{run.topics} queries have a relevant document; below {minimums.FOR_ADVICE} only large effects show",
            None,
            (_more_queries(run.results), f"ragbench data pool {shlex.quote(str(run.results.folder))}"),
        )
    judged = run.results.values(run.arm, "Judged@10")
    # Topics with one relevant document each, such as known items, have no other judgments: nothing is missing.
    if len(judged) and judged.mean() < _JUDGED and len(run.fates) > 2 * run.topics:
        yield Lever(
            "judge what it returns",
            f"{judged.mean():.0%} of its first ten documents were judged; unjudged ones count as not relevant",
            None,
            (f"ragbench data pool {shlex.quote(str(run.results.folder))}",),
        )


def _losses(run: AdvisedArm) -> Iterator[Lever]:
    """Stages that drop or rank down what was found."""
    unit = diagnosis.unit(run.fates)
    for row in diagnosis.losses(run.fates).to_dict(orient="records"):
        stage = str(row["stage"])
        if row["share"] < _LOST or row["outcome"] not in ("dropped", "ranked down") or stage in ("cut", "fuse"):
            continue
        switch = stage.partition(".")[0]
        yield Lever(
            f"turn {stage} off, or reduce its effect",
            f"{stage}: {row['outcome']} {row['sections']} of {len(run.fates)} relevant {unit}",
            float(row["share"]),
            (run.with_change(f"{switch}=off"),),
        )


def _ranking(run: AdvisedArm) -> Iterator[Lever]:
    """Levers on the order of what was retrieved."""
    low, config, unit = run.share(*_RANKED_LOW), run.config, diagnosis.unit(run.fates)
    if low >= _LOST:
        why = f"{low:.0%} of the relevant {unit} were retrieved, but not among the first {measures.DEPTH}"
        if config.get("fuse", {}).get("method") == "rrf" or not config["index"]["passage"].get("title"):
            yield Lever(
                "start from the recommended search",
                f"{why}; titles, headings and score fusion rank them higher, without judgments",
                low,
                (_recommended_beside_baseline(run),),
            )
        if run.off("ranker") and run.off("rank"):
            yield Lever(
                "train a ranker on your queries",
                f"{why}; training shows the gain on held-out queries",
                low,
                (run.command("fit ranker"),),
            )
        elif run.topics >= minimums.FOR_ADVICE:
            yield Lever(
                "continue to train the ranker on your queries",
                f"{why}; the trained ranker is kept only if it is significantly better on held-out queries",
                low,
                (run.command("fit ranker"),),
            )
        if config.get("fuse") and sum(bool(config.get(source)) for source in _FUSED) > 1:
            few = f"; with {run.topics} queries expect a small gain at most" if run.topics < minimums.FOR_ADVICE else ""
            yield Lever(
                "tune the fusion",
                f"{why}; {run.share(diagnosis.FUSED_OUT):.0%} were lost in fusion{few}",
                low,
                (run.command("tune", "tune=[fuse]"),),
            )
    ranks = run.fates.loc[run.fates["rank"] > 0].groupby("qid")["rank"].min()
    late = float(((ranks > 1) & (ranks <= measures.DEPTH)).sum() / run.topics)
    if late >= _LOST and run.off("p6") and not run.was_tried("p6=on"):
        yield Lever(
            "re-rank the first ten with a cross-encoder",
            f"the first relevant result of {late:.0%} of the queries is at rank 2 to {measures.DEPTH}; a cross-encoder "
            "dominates query latency",
            late,
            (run.with_change("p6=on"),),
        )


_RANKED_LOW = (diagnosis.FUSED_OUT, diagnosis.BURIED, "ranked down")


def _retrieval(run: AdvisedArm) -> Iterator[Lever]:
    """A lever on what no retriever returned."""
    never = run.share(diagnosis.NEVER)
    if never >= _LOST:
        suggested = [
            override for switch, override in _SOURCES.items() if run.off(switch) and not run.was_tried(override)
        ]
        yield Lever(
            "find more",
            f"no retriever returned {never:.0%} of the relevant {diagnosis.unit(run.fates)}",
            never,
            tuple(run.with_change(override) for override in suggested[:3])
            or (run.with_change("dense.depth=300", "lexical.depth=300"),),
        )


_FUSED = ("dense", "lexical", "documents", "graph", "p7")
"""The switches of retrievers, of which fusion needs two."""
_SOURCES = {"documents": "documents=on", "graph": "graph=on", "p7": "p7=on", "p1": "p1=on"}


def _recommended_beside_baseline(run: AdvisedArm) -> str:
    """A command that compares the recommended search with the baseline on the data of the arm."""
    overrides = run.results.record["overrides"].get(run.arm, ())
    own = [override for override in overrides if override not in run.project_overrides]
    of_data = [override for override in own if override.startswith(("data", "topics"))]
    return shlex.join(["ragbench", "run", "-m", "exp=baseline,recommended", *of_data])


def lines(levers: Sequence[Lever], results: measurements.Measurements, arm: str) -> list[str]:
    """One screen: where the arm stands, and the levers with their commands."""
    output = [*textwrap.wrap(_state(AdvisedArm(results, arm, fates_of(results, arm))), console.SCREEN), ""]
    if not levers:
        return [*output, f"No suggestion: no stage loses more than {_LOST:.0%}."]
    if results.config(arm)["data"]["loader"] == load.MEMORY:
        saving = "call ragbench.save_benchmark(benchmark, 'FOLDER') before you run these commands"
        sentence = f"'{results.record['benchmark']['name']}' was built in memory: {saving}."
        output += [*textwrap.wrap(sentence, console.SCREEN), ""]
    for number, lever in enumerate(levers, start=1):
        output += textwrap.wrap(f"{number}. {lever.name}: {lever.why}.", console.SCREEN, subsequent_indent="   ")
        output += [f"     {command}" for command in lever.commands]
    return [*output, "", "Run a command to measure the gain."]


def _state(run: AdvisedArm) -> str:
    """Where the relevant sections, or documents, of the arm are."""
    found, never = run.share(diagnosis.FOUND), run.share(diagnosis.NEVER)
    return (
        f"{run.arm}: {found:.0%} of the relevant {diagnosis.unit(run.fates)} are among the first {measures.DEPTH}, "
        f"{1 - found - never:.0%} were retrieved and lost, {never:.0%} were not retrieved"
    )
