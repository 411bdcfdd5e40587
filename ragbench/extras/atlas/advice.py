"""What to try next on a finished run: levers, the maximum gain of each, and the command that tries it."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragbench.base import minimums
from ragbench.base.console import SCREEN
from ragbench.base.errors import ResultsError
from ragbench.benchmark.loaders import MEMORY
from ragbench.evaluation import diagnosis, headroom
from ragbench.evidence import arms
from ragbench.report import evidence

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

_WORTH = 0.02  # nDCG@10; a smaller possible gain is not worth a lever
_LOST = 0.05  # share of the relevant sections that a stage may drop without being named
_JUDGED = 0.5


@dataclass(frozen=True)
class Lever:
    """Something to try: why, the most that it could add to nDCG@10 (None: unknown), and the commands that try it."""

    name: str
    why: str
    bound: float | None
    commands: tuple[str, ...]


def best_arm(results: Measurements) -> str:
    """The arm with the highest mean, the first of equals."""
    means = results.summary(by=()).set_index("arm")[results.primary]
    return str(means.reindex(results.arms).idxmax())


def advice(results: Measurements, arm: str | None = None, known: Collection[str] = ()) -> list[Lever]:
    """The levers for an arm (the best one when None), the largest bound first, without those that the run tried.

    Commands omit the `known` overrides, with which every command in this folder begins. Raises ResultsError for an
    unknown arm, and for a run that did not write its headroom.
    """
    arm = arm if arm is not None else best_arm(results)
    if arm not in results.arms:
        raise ResultsError(f"{results.folder} has no arm '{arm}'; it has {', '.join(results.arms)}")
    frame = evidence.headroom(results)
    frame = frame[frame["arm"] == arm].dropna(axis="columns", how="all")
    if not len(frame):
        raise ResultsError(
            f"{results.folder} has no headroom of '{arm}': none of its topics has a relevant judgment, or it is old"
        )
    (summary_row,) = evidence.rows(headroom.summary(frame))
    run = Run(results, arm, frame, summary_row, frozenset(known))
    return levers(run)


def levers(run: Run) -> list[Lever]:
    """What applies to an arm, the largest bound first; a search that runs elsewhere is changed there."""
    from_losses = [] if run.config.get("live") else [*_losses(run), *_ordering(run), *_depth(run), *_retrieval(run)]
    candidates = [*_measuring(run), *from_losses]
    return sorted(candidates, key=lambda lever: -(1.0 if lever.bound is None else lever.bound))


@dataclass(frozen=True)
class Run:
    """An arm of a run with the headroom of its topics: `room` by name; all commands begin with `project_overrides`."""

    results: Measurements
    arm: str
    frame: pd.DataFrame
    room: Mapping[str, Any]
    project_overrides: frozenset[str] = frozenset()

    @property
    def config(self) -> Mapping[str, Any]:
        """The configuration of the arm."""
        return self.results.config(self.arm)

    @property
    def fates(self) -> pd.DataFrame:
        """What became of the relevant sections, or documents, of the arm's topics."""
        fates = evidence.fates(self.results)
        return fates[fates["arm"] == self.arm]

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


def _measuring(run: Run) -> Iterator[Lever]:
    """Levers on the benchmark, where it cannot show a gain."""
    if arms.disturbed(run.results.record):
        yield Lever(
            "measure latency on a quiet machine",
            "other programs were busy, so latency intervals are wider; quality results are kept",
            None,
            (shlex.join(["ragbench", "run", "--remeasure-latency", run.results.folder.name]),),
        )
    topics = int(run.room["topics"])
    if topics < minimums.FOR_ADVICE:
        yield Lever(
            "add queries",
            f"{topics} queries have a relevant document; fewer than {minimums.FOR_ADVICE} detect only large effects",
            None,
            ("ragbench topics derive", f"ragbench data pool {shlex.quote(str(run.results.folder))}"),
        )
    judged = run.results.values(run.arm, evidence.JUDGED)
    # Topics with one relevant document each, such as known items, have no other judgments: nothing is missing.
    if len(judged) and judged.mean() < _JUDGED and run.room["oracle_10"] > 0.9:
        return
    if len(judged) and judged.mean() < _JUDGED and len(run.fates) > 2 * max(1, run.fates["qid"].nunique()):
        yield Lever(
            "judge what it returns",
            f"{judged.mean():.0%} of its first ten documents were judged; unjudged ones count as not relevant",
            None,
            (f"ragbench data pool {shlex.quote(str(run.results.folder))}",),
        )


def _losses(run: Run) -> Iterator[Lever]:
    """Stages that drop or rank down what was found."""
    fates = run.fates
    if not len(fates):
        return
    unit = diagnosis.unit(fates)
    for row in diagnosis.losses(fates).to_dict(orient="records"):
        stage = str(row["stage"])
        if row["share"] < _LOST or row["outcome"] not in ("dropped", "ranked down") or stage in ("cut", "fuse"):
            continue
        switch = stage.partition(".")[0]
        yield Lever(
            f"turn {stage} off, or reduce its effect",
            f"{stage}: {row['outcome']} {row['sections']} of {len(fates)} relevant {unit}",
            float(row["share"]),
            (run.with_change(f"{switch}=off"),),
        )


def _ordering(run: Run) -> Iterator[Lever]:
    bound = float(run.room["ordering"])
    if bound < _WORTH:
        return
    fused_out = float((run.frame["outcome"] == diagnosis.FUSED_OUT).mean())
    config, bounds = run.config, headroom.signed(bound)
    if config.get("fuse", {}).get("method") == "rrf" or not config["index"]["passage"].get("title"):
        yield Lever(
            "start from the recommended search",
            "titles and headings in embeddings and fields, a document retriever, score fusion; it needs no judgments",
            1 - float(run.room[headroom.VALUE]),
            (_beside_baseline(run, "exp=recommended"),),
        )
    if run.off("ranker") and run.off("rank"):
        yield Lever(
            "train a ranker on your queries",
            f"a perfect ranking of the top {headroom.DEPTHS[-1]} would gain {bounds}; training shows the held-out gain",
            bound,
            (run.command("fit ranker --from-fusion"),),
        )
    elif int(run.room["topics"]) >= minimums.FOR_ADVICE:
        yield Lever(
            "continue to train the ranker on your queries",
            "the trained ranker is kept only if it is significantly better on held-out queries",
            bound,
            (run.command("fit ranker"),),
        )
    if config.get("fuse"):
        lost = f"; {fused_out:.0%} of the queries lose their answer in fusion" if fused_out else ""
        yield Lever(
            "fit the fusion weights",
            f"better weights order the same results differently{lost}",
            bound,
            (run.command("tune", "tune=[fuse]"), run.command("tune")),
        )
    if run.off("p6") and not run.was_tried("p6=on"):
        ten = float(run.room[f"oracle_{headroom.DEPTHS[0]}"]) - float(run.room[headroom.VALUE])
        yield Lever(
            "re-rank the first ten with a cross-encoder",
            f"an oracle re-ranking of the top 10 would gain {headroom.signed(ten)}; it dominates query latency",
            ten,
            (run.with_change("p6=on"),),
        )


def _depth(run: Run) -> Iterator[Lever]:
    if run.room["depth"] >= _WORTH:
        retrievers = [name for name in ("dense", "lexical") if isinstance(run.config.get(name), Mapping)]
        depths = [f"{name}.depth={2 * int(run.config[name]['depth'])}" for name in retrievers]
        yield Lever(
            "keep more results",
            f"for documents that a retriever returned below the first {headroom.DEPTHS[-1]}",
            float(run.room["depth"]),
            (run.with_change(*depths, f"cut.top_n={2 * int(run.config['cut']['top_n'])}"),),
        )


def _retrieval(run: Run) -> Iterator[Lever]:
    bound = float(run.room["retrieval"])
    sources = headroom.sources(run.frame)
    recalls = ", ".join(f"{name} {run.room[headroom.RECALL + name]:.0%}" for name in sources)
    if bound >= _WORTH:
        suggested = [
            override for switch, override in _SOURCES.items() if run.off(switch) and not run.was_tried(override)
        ]
        yield Lever(
            "find more",
            f"documents that no retriever returned would gain {headroom.signed(bound)} (recall: {recalls})",
            bound,
            tuple(run.with_change(override) for override in suggested[:3])
            or (run.with_change("dense.depth=300", "lexical.depth=300"),),
        )


_SOURCES = {"documents": "documents=on", "graph": "graph=on", "p7": "p7=on", "p1": "p1=on"}


def _beside_baseline(run: Run, preset: str) -> str:
    """A command that compares a preset with the baseline on the data of the arm."""
    overrides = run.results.record["overrides"].get(run.arm, ())
    both = f"{preset.partition('=')[0]}=baseline,{preset.partition('=')[2]}"
    own = [override for override in overrides if override not in run.project_overrides]
    of_data = [override for override in own if override.startswith(("data", "topics"))]
    return shlex.join(["ragbench", "run", "-m", both, *of_data])


def lines(levers: Sequence[Lever], results: Measurements, arm: str) -> list[str]:
    """One screen: where the arm stands, and the levers with their commands."""
    frame = evidence.headroom(results)
    stands = headroom.sentences(frame[frame["arm"] == arm])
    output = [*(line for sentence in stands for line in textwrap.wrap(sentence, SCREEN)), ""]
    if not levers:
        return [*output, "No suggestion: every change could gain at most 0.02 nDCG@10."]
    if results.config(arm)["data"]["loader"] == MEMORY:
        saving = "call ragbench.save_benchmark(benchmark, 'FOLDER') before you run these commands"
        sentence = f"'{results.record['benchmark']['name']}' was built in memory: {saving}."
        output += [*textwrap.wrap(sentence, SCREEN), ""]
    for number, lever in enumerate(levers, start=1):
        bound = "" if lever.bound is None else f" (at most {headroom.signed(lever.bound)})"
        output += textwrap.wrap(f"{number}. {lever.name}{bound}: {lever.why}.", SCREEN, subsequent_indent="   ")
        output += [f"     {command}" for command in lever.commands]
    closing = "'at most' is the gain if the change worked perfectly. Run the command to measure the real gain."
    return [*output, "", closing]
