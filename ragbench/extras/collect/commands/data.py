"""`ragbench data`."""

from __future__ import annotations

import argparse
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import console, locations
from ragbench.base.errors import FAILED, ConfigError
from ragbench.base.fingerprint import plain
from ragbench.base.formatting import counted
from ragbench.base.suggestions import did_you_mean
from ragbench.config import project

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Benchmark
    from ragbench.config.settings import Settings
    from ragbench.results.measurements import Measurements

_LOG = logging.getLogger(__name__)

DESCRIPTION = (
    "Check a benchmark for errors that distort results, split its queries, compare two annotators, or show how many "
    "results are not judged."
)
EXAMPLES = """examples:
  ragbench data check                                exit code 1 if there are errors
  ragbench data check data=native data.corpus=notes data.qrels=my-qrels
  ragbench data split --write                        new train and test splits into topics.jsonl
  ragbench data agreement --second other.qrels       Krippendorff's alpha and Cohen's kappa
  ragbench data describe                             counts by type, split and area
  ragbench data power                                the minimum detectable effect of each split
  ragbench data judged @1                            Judged@10 of each arm, and the judged share of relevant sections
  ragbench data judged --systems lexical_only,dense_only
  ragbench data comparisons                          earlier comparisons, and the unused queries
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What to do, and options of each."""
    parser.add_argument(
        "task",
        choices=(*_OF_DATA, *_OF_RUNS),
        metavar="task",
        help="check, split, agreement, describe, power, judged or comparisons",
    )
    parser.add_argument("--write", action="store_true", help="split: write the splits into topics.jsonl")
    parser.add_argument("--seed", metavar="N", type=int, default=13, help="split: seed (default 13)")
    parser.add_argument("--second", metavar="FILE", help="agreement: the second annotator's qrels")
    parser.add_argument("--run", help=argparse.SUPPRESS)  # its old name
    parser.add_argument(
        "--systems",
        metavar="ARM,ARM",
        help="judged: arms used to estimate how complete the judgments are (default: all)",
    )
    parser.add_argument(
        "--depth", metavar="N", type=int, default=10, help="judged: number of results of each arm (default 10)"
    )
    parser.add_argument(
        "words",
        nargs="*",
        metavar="run|key=value",
        help="power, judged: a run (default: @1, the newest); settings",
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Load the benchmark or a run and do the task."""
    from ragbench.config import composition
    from ragbench.config.benchmark import load
    from ragbench.results import measurements
    from ragbench.workbench.runs import find, split_words

    named, arguments.words = split_words(arguments.words)
    runs = [*named, *([arguments.run] if arguments.run else [])]
    if len(runs) > (arguments.task in _OF_RUNS):
        raise ConfigError(f"'{runs[-1]}' is not key=value: only data power and data judged take a run, and one of them")
    settings = composition.compose(arguments.words)
    if arguments.task in _OF_RUNS:
        measured = measurements.load(find((runs or ["@1"])[0], settings))
        return _OF_RUNS[arguments.task](measured, settings, arguments)
    return _OF_DATA[arguments.task](load(settings.config), settings, arguments)


def _comparisons(benchmark: Benchmark, settings: Settings, arguments: argparse.Namespace) -> int:
    import time

    import pandas as pd

    from ragbench.results import comparisons

    rows = [
        (
            number,
            time.strftime("%Y-%m-%d %H:%M", time.gmtime(comparison["at"])),
            comparison["command"],
            len(comparison["queries"]),
            ", ".join(comparison["arms"]),
        )
        for number, comparison in enumerate(comparisons.recorded(locations.ledger(), benchmark.name), start=1)
    ]
    table = pd.DataFrame(rows, columns=["comparison", "when (UTC)", "command", "queries", "arms"])
    if arguments.json:
        console.print_json(table)
        return 0
    if rows:
        console.print_table(table, f"Comparisons on queries of '{benchmark.name}'")
    else:
        print(f"no arms were compared on queries of '{benchmark.name}' yet")
    used = comparisons.used(locations.ledger(), benchmark.name)
    unused = sum(topic.qid not in used for topic in benchmark.with_answer(benchmark.topics))
    print(f"judged queries not used yet: {unused} (for ragbench run --confirm RUN/ARM)")
    return 0


def _check(benchmark: Benchmark, settings: Settings, arguments: argparse.Namespace) -> int:
    import pandas as pd

    from ragbench.extras.collect.check import check

    for warning in benchmark.warnings:
        _LOG.warning(warning)
    findings = check(benchmark)
    counts = Counter(finding.severity for finding in findings)
    code = FAILED if counts["error"] else 0
    if arguments.json:
        console.print_json(findings)
        return code
    if findings:
        console.print_table(pd.DataFrame([vars(finding) for finding in findings]))
    numbers = [(counts[severity], severity) for severity in ("error", "warning", "note")]
    print(", ".join(f"{number} {severity}{'s' * (number != 1)}" for number, severity in numbers))
    if not counts["error"]:
        console.next_command(f"run{project.data_overrides(settings.overrides, ('data', 'links', 'topics'))}")
    return code


def _split(benchmark: Benchmark, settings: Settings, arguments: argparse.Namespace) -> int:
    from ragbench.benchmark.load import builtin_judgments
    from ragbench.benchmark.native import TOPICS, write_topics
    from ragbench.benchmark.split import resplit
    from ragbench.extras.collect.topics.topics_file import write_splits

    topics = resplit(benchmark, arguments.seed).topics
    if not arguments.write:
        console.print_json(Counter(topic.split for topic in topics))
        return 0
    data = settings.config["data"]
    if data["loader"] == "vault":
        path = Path(data["queries"])
        write_splits(path, {" ".join(topic.text.split()): topic.split for topic in topics})
    elif data["loader"] in ("builtin", "native"):
        path = Path(data["qrels"] or builtin_judgments(data["version"])) / TOPICS
        write_topics(path, topics)
    else:
        raise ConfigError(f"splits cannot be written into data={data['loader']}: use data.resplit={arguments.seed}")
    print(f"wrote the splits of {counted(len(topics), 'topic')} into {console.short_path(path)}")
    console.next_command(f"run split=train{project.data_overrides(settings.overrides)}")
    return 0


def _agreement(benchmark: Benchmark, _: Settings, arguments: argparse.Namespace) -> int:
    from ragbench.benchmark.native import read_qrels
    from ragbench.extras.collect.agreement import agreement

    if not arguments.second:
        raise ConfigError("ragbench data agreement needs --second FILE, the second judge's qrels")
    first = benchmark.section_qrels or benchmark.document_qrels
    comparison = agreement(first, read_qrels(Path(arguments.second)))
    if arguments.json:
        console.print_json(plain(comparison))
        return 0
    print(
        f"{counted(comparison.n_pairs, 'pair')} of {counted(comparison.n_topics, 'topic')}: {comparison.same:.1%} "
        f"equal, Krippendorff's alpha {comparison.alpha_ordinal:.3f} (ordinal), Cohen's kappa {comparison.kappa:.3f}, "
        f"quadratic {comparison.kappa_quadratic:.3f}"
    )
    for pair in comparison.disagreements[:20]:
        print(f"  {pair.qid} {pair.target}: {pair.first} and {pair.second}")
    return 0


def _describe(benchmark: Benchmark, _: Settings, arguments: argparse.Namespace) -> int:
    import pandas as pd

    rows = pd.DataFrame([(topic.type, topic.split) for topic in benchmark.topics], columns=["type", "split"])
    table = pd.crosstab(rows["type"], rows["split"], margins=True, margins_name="all").reset_index()
    judged = sum(len(grades) for grades in (benchmark.section_qrels or benchmark.document_qrels).values())
    if arguments.json:
        console.print_json({"documents": len(benchmark.documents), "judgments": judged, "topics": table})
        return 0
    console.print_table(
        table, f"{benchmark.name}: {counted(len(benchmark.documents), 'document')}, {counted(judged, 'judgment')}"
    )
    return 0


def _judged(measured: Measurements, settings: Settings, arguments: argparse.Namespace) -> int:
    from ragbench.evaluation.measures import DOCUMENT, SECTION
    from ragbench.extras.collect.completeness import completeness
    from ragbench.report.evidence import JUDGED
    from ragbench.results import measured_data, measurements

    measured_data.refuse_other_data(measured, settings.config, arguments.words)
    benchmark = measured_data.benchmark_of(measured, judged_since=True)
    qrels, file = (
        (benchmark.section_qrels, measurements.SECTIONS)
        if benchmark.section_qrels
        else (benchmark.document_qrels, measurements.DOCUMENTS)
    )
    runs = {arm: measured.run(arm, file) for arm in measured.arms}
    levels = [level for level in (DOCUMENT, SECTION) if (measured.per_query["level"] == level).any()]
    table = measured.summary(("split",), level=DOCUMENT)[["arm", "split"]].reset_index(drop=True)
    for level in levels:
        summary = measured.summary(("split",), level=level).set_index(["arm", "split"])
        if JUDGED not in summary.columns:
            raise ConfigError(f"{measured.folder} did not measure {JUDGED}: run it again with {JUDGED} among measures")
        table[f"{level}s"] = summary[JUDGED].reindex(list(zip(table["arm"], table["split"], strict=True))).to_numpy()
    missing = {
        arm: sum(item not in qrels.get(qid, {}) for qid, hits in run.items() for item, _ in hits[: arguments.depth])
        for arm, run in runs.items()
    }
    table["unjudged pairs"] = table["arm"].map(missing)
    names = [name.strip() for name in (arguments.systems or ",".join(measured.arms)).split(",")]
    for name in names:
        if name not in runs:
            raise ConfigError(
                f"--systems {name} is not an arm of {measured.folder}{did_you_mean(name, measured.arms, 'arms')}"
            )
    estimate = completeness({name: runs[name] for name in names}, qrels, arguments.depth) if len(names) > 1 else None
    if arguments.json:
        console.print_json({"judged": table, "completeness": plain(estimate) if estimate else None})
        return 0
    console.print_table(table, f"{JUDGED} when measured, and pairs still unjudged: {benchmark.name}")
    print(
        "\n".join(f"{sentence}." for sentence in estimate.sentences())
        if estimate
        else "One arm is not enough for an estimate."
    )
    console.next_command("data pool")
    return 0


def _power(measured: Measurements, _: Settings, arguments: argparse.Namespace) -> int:
    from itertools import combinations

    import pandas as pd

    from ragbench.evaluation.measures import PRIMARY
    from ragbench.evidence.power import minimum_detectable_effect

    splits = sorted(measured.per_query["split"].unique())
    values = {(arm, split): measured.values(arm, PRIMARY, split) for arm in measured.arms for split in splits}
    rows = []
    for arm, second in combinations(measured.arms, 2):
        for split in splits:
            difference = values[arm, split] - values[second, split]
            sd = float(difference.std(ddof=1))
            rows.append((split, arm, second, len(difference), sd, minimum_detectable_effect(sd, len(difference))))
    table = pd.DataFrame(rows, columns=["split", "arm", "other", "n", "sd of differences", f"detectable {PRIMARY}"])
    if arguments.json:
        console.print_json(table)
        return 0
    table.columns = ["split", "arm", "compared with", "queries", "SD of differences", f"MDE in {PRIMARY}"]
    console.print_table(table, "Minimum detectable effect (MDE) at 80% power, alpha 5%, two-sided")
    return 0


_OF_DATA: Mapping[str, Callable[[Benchmark, Settings, argparse.Namespace], int]] = {
    "check": _check,
    "split": _split,
    "agreement": _agreement,
    "describe": _describe,
    "comparisons": _comparisons,
    "looks": _comparisons,
}
_OF_RUNS: Mapping[str, Callable[[Measurements, Settings, argparse.Namespace], int]] = {
    "power": _power,
    "judged": _judged,
}
