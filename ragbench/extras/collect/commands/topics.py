"""`ragbench topics`."""

from __future__ import annotations

import argparse
import logging
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ragbench.base import console, minimums
from ragbench.base.bounds import as_options
from ragbench.base.errors import BenchmarkError, ConfigError
from ragbench.base.files import has_text
from ragbench.base.fingerprint import plain
from ragbench.base.formatting import counted
from ragbench.config import project
from ragbench.config.overrides import key_of, section_of
from ragbench.extras.collect import model_options

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.benchmark.benchmark import Topic
    from ragbench.config.settings import Settings
    from ragbench.extras.collect.topics.derive import DerivedTopics
    from ragbench.results.measurements import Measurements
    from ragbench.workbench import Experiment

_LOG = logging.getLogger(__name__)

HUMAN, DERIVED = "human", "derived"
_VALIDATED = ("baseline", "lexical_only", "dense_only", "plain_hybrid", "phase1", "recommended")
"""The arms of `validate` where none are named."""
DESCRIPTION = "Show which query types of a collection have too few queries, or generate queries."
EXAMPLES = """examples:
  ragbench topics                                      number of queries of each type, and how many are missing
  ragbench topics derive data=vault data.corpus=notes  synthetic queries from the documents, into topics.jsonl
  ragbench topics derive data=vault data.corpus=notes topics.limit=100 topics.kinds=[description,link]
  ragbench topics from-log searches.jsonl data=vault data.corpus=notes   user queries, sampled by frequency
  ragbench topics from-log export.csv --limit 200 --tail 0.3 --least-sessions 3
  ragbench topics threads issues.json --site https://docs.example.org --out questions data=vault data.corpus=docs
                                                       questions of an issue tracker, judged by the pages linked there
  ragbench topics draft --endpoint http://localhost:11434/v1 --model NAME data=vault data.corpus=notes
  ragbench topics find-evidence                       possible answers, found by lexical search and links
  ragbench topics validate --against human             do synthetic queries lead to the same conclusions as yours?
  ragbench topics validate @1 --against @2             the same of two finished runs over the same arms
  ragbench topics perturb --kinds typos,keywords      loss of each arm on variants of the same queries
then: ragbench run -m exp=baseline,phase1 data=vault data.corpus=notes topics=derived
or, after you have corrected the generated queries: ... data.queries=topics.jsonl
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The task, its inputs and where to write."""
    tasks = ", ".join((*_TASKS, *RUNNING))
    parser.add_argument("words", nargs="*", metavar="task|key=value", help=f"one of {tasks} (default: show), settings")
    parser.add_argument(
        "--out", metavar="FILE", help="the file to write (topics.jsonl; pool.csv of find-evidence); threads: the folder"
    )
    parser.add_argument("--replace", action="store_true", help="overwrite an existing file")
    parser.add_argument(
        "--limit", type=int, metavar="N", help="number of queries to generate (default 100; derive: topics.limit)"
    )
    parser.add_argument("--seed", type=int, metavar="N", help="random seed for sampling (default 13)")
    parser.add_argument(
        "--against",
        default=HUMAN,
        metavar="human|RUN",
        help="validate: compare with the queries of the data (human, default) or with a run on human-written queries",
    )
    parser.add_argument(
        "--depth", type=int, default=5, metavar="N", help="find-evidence: number of sections for each query (default 5)"
    )
    parser.add_argument(
        "--kinds", metavar="KIND,KIND", help="perturb: typos, case, keywords, word_order, quotes, drop (default: all)"
    )
    model_options.add(parser, "draft: the language model; sections of the documents are sent to it")
    threads = parser.add_argument_group("threads")
    threads.add_argument(
        "--site", metavar="URL", help="base URL of the published documents; links to it become judgments"
    )
    threads.add_argument("--redirects", metavar="FILE", help="lines `OLD NEW` of paths that have moved")
    threads.add_argument(
        "--per-page", type=int, default=5, metavar="N", help="maximum number of queries for each page (default 5)"
    )
    log = parser.add_argument_group("from-log")
    log.add_argument(
        "--tail",
        type=float,
        default=0.25,
        metavar="SHARE",
        help="share of the sample for queries that were sent only once (default 0.25)",
    )
    log.add_argument(
        "--least-sessions", type=int, default=1, metavar="N", help="minimum number of sessions with a query (default 1)"
    )
    log.add_argument(
        "--least-clicks",
        type=int,
        default=2,
        metavar="N",
        help="minimum number of clicks on a relevant document (default 2)",
    )
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Compose the configuration and do the task."""
    from ragbench.config import composition

    overrides = [argument for argument in arguments.words if "=" in argument and not Path(argument).exists()]
    task, *arguments.inputs = [argument for argument in arguments.words if argument not in overrides] or ["show"]
    if task not in (*_TASKS, *RUNNING):
        raise ConfigError(f"ragbench topics has no task '{task}': use {', '.join((*_TASKS, *RUNNING))}")
    if task == "derive":
        options = {"topics": DERIVED, "topics.limit": arguments.limit, "topics.seed": arguments.seed}
        keys = {key_of(override) for override in overrides}
        overrides += [f"{key}={value}" for key, value in options.items() if value is not None and key not in keys]
    arguments.limit = 100 if arguments.limit is None else arguments.limit
    arguments.seed = 13 if arguments.seed is None else arguments.seed
    if task in RUNNING:
        RUNNING[task](overrides, arguments)
        return 0
    default = {"find-evidence": "pool.csv", "threads": "questions"}.get(task, "topics.jsonl")
    arguments.out = Path(arguments.out or default)
    _TASKS[task](composition.compose(overrides), arguments)
    return 0


def _show(settings: Settings, arguments: argparse.Namespace) -> None:
    from ragbench.config.benchmark import load

    benchmark = load(settings.config)
    table = _overview(benchmark.topics)
    if arguments.json:
        console.print_json(table)
        return
    _print_overview(benchmark.topics, f"{benchmark.name}: {counted(len(benchmark.topics), 'query')}")
    if table["short by"].any():
        print(f"A mean over fewer than {minimums.PER_TYPE} queries is unstable (Buckley and Voorhees 2000).")


def _overview(topics: Sequence[Topic]) -> pd.DataFrame:
    """One row for each kind and author: type, provenance, topics in each split, and how many are missing to 25."""
    import pandas as pd

    counts = Counter((topic.type, topic.provenance or "given", topic.split) for topic in topics)
    splits = sorted({split for _, _, split in counts})
    rows = []
    for kind in sorted({(kind, author) for kind, author, _ in counts}):
        row = [counts[*kind, split] for split in splits]
        missing = {split: minimums.PER_TYPE - n for split, n in zip(splits, row, strict=True)}
        short = [f"{n} in {split}" for split, n in missing.items() if n > 0]
        rows.append((*kind, *row, ", ".join(short)))
    return pd.DataFrame(rows, columns=["type", "provenance", *splits, "short by"])


def _print_overview(topics: Sequence[Topic], title: str) -> None:
    console.print_table(_overview(topics).rename(columns={"short by": f"needed for {minimums.PER_TYPE}"}), title)


def _derive(settings: Settings, arguments: argparse.Namespace) -> None:
    from ragbench.base.build import build
    from ragbench.config.benchmark import documents
    from ragbench.extras.collect.topics.derive import choose
    from ragbench.extras.collect.topics.spec import DeriveSpec

    options = {key: value for key, value in settings.config["topics"].items() if key != "kind"}
    benchmark = documents(settings.config["data"])
    topics = choose(benchmark.documents, build(DeriveSpec, options, "topics"), benchmark.name)
    _write_derived(topics, "synthetic query", len(benchmark.documents), arguments)
    if arguments.json:
        return
    if settings.config["data"]["loader"] == "vault":
        _print_next(settings, arguments, " topics=given")
        return
    print(f"wrote {arguments.out}")
    console.next_command(f"run -m exp=baseline,recommended topics=derived{project.data_overrides(settings.overrides)}")


def _from_log(settings: Settings, arguments: argparse.Namespace) -> None:
    from ragbench.benchmark import load as data
    from ragbench.extras.collect import search_log as log
    from ragbench.extras.collect.topics import from_log
    from ragbench.extras.collect.topics.topics_file import write

    if len(arguments.inputs) != 1:
        raise ConfigError("ragbench topics from-log reads one file: ragbench topics from-log FILE")
    with as_options():
        spec = from_log.LogSpec(
            limit=arguments.limit,
            tail=arguments.tail,
            least_sessions=arguments.least_sessions,
            least_clicks=arguments.least_clicks,
            seed=arguments.seed,
        )
    logged = log.read(Path(arguments.inputs[0]))
    opened = any(search.clicked for search in logged.searches)
    documents = data.load(settings.config["data"], topics=False).documents if opened else ()
    topics = from_log.choose(logged, spec, from_log.finder(documents))
    write(arguments.out, topics.topics, topics.document_qrels, replace=arguments.replace)
    for reason, count in logged.skipped.items():
        if reason.startswith("with "):
            _LOG.warning(f"{count} searches {reason} are excluded; read {arguments.out} before you share it")
    if topics.in_collection < topics.named:
        _LOG.warning(
            f"{topics.named - topics.in_collection} of {topics.named} relevant documents of the log are not "
            "in this collection: name its data with data=vault data.corpus=FOLDER"
        )
    if arguments.json:
        summary = {
            "file": arguments.out,
            "searches": topics.searches,
            "queries": topics.queries,
            "topics": len(topics.topics),
            "left_out": logged.skipped,
            "judged_by_clicks": len(topics.document_qrels),
            "opened_by_rank": [round(float(rate), 4) for rate in topics.rates],
        }
        console.print_json(summary)
        return
    n_topics, n_queries = counted(len(topics.topics), "topic"), counted(topics.queries, "query")
    _print_overview(topics.topics, f"{n_topics} of {n_queries} in {topics.searches} searches")
    _print_counts("left out", logged.skipped)
    if opened:
        percentages = ", ".join(f"{rate:.1%}" for rate in topics.rates[:5])
        bias = (
            f"opened by rank: {percentages}" if percentages else "the log lacks the results shown: expect position bias"
        )
        print(f"weak judgments from clicks: {counted(len(topics.document_qrels), 'topic')} ({bias})")
    _print_next(settings, arguments)


def _threads(settings: Settings, arguments: argparse.Namespace) -> None:
    from ragbench.benchmark import load as data
    from ragbench.benchmark.lines import write_atomically
    from ragbench.extras.collect.topics import threads
    from ragbench.extras.collect.topics.topics_file import require_new, write

    if len(arguments.inputs) != 1 or not arguments.site:
        raise ConfigError("ragbench topics threads reads one file: ragbench topics threads FILE --site URL")
    with as_options():
        spec = threads.ThreadSpec(per_page=arguments.per_page)
    sheet, path = arguments.out / "review.csv", arguments.out / "topics.jsonl"
    require_new(path, replace=arguments.replace)
    issue_threads = threads.read(Path(arguments.inputs[0]))
    moved = threads.read_redirects(Path(arguments.redirects)) if arguments.redirects else {}
    pages = threads.Pages(data.load(settings.config["data"], topics=False).documents, arguments.site, moved)
    topics = threads.choose(issue_threads, pages, spec)
    if all(topic.type == threads.NAMED for topic in topics.topics):
        raise BenchmarkError(
            f"none of {len(issue_threads)} threads links to a document below {arguments.site}: name the address under "
            "which data.corpus is published, and old paths with --redirects"
        )
    text = threads.review_sheet(topics)
    if sheet.exists() and not arguments.replace and not has_text(sheet, text):
        raise BenchmarkError(f"{sheet} exists already: rename it, or add --replace")
    write_atomically(sheet, text)  # first, so that a call that is killed in between can be repeated
    write(path, topics.topics, topics.document_qrels, replace=arguments.replace)
    kinds = Counter(topic.type for topic in topics.topics)
    if arguments.json:
        summary = {"file": str(path), "review": str(sheet), "threads": len(issue_threads), "topics": len(topics.topics)}
        console.print_json({**summary, "evidence": kinds, "dropped": topics.dropped})
        return
    _print_overview(topics.topics, f"{counted(len(topics.topics), 'topic')} of {counted(len(issue_threads), 'thread')}")
    _print_counts("evidence", kinds)
    _print_counts("not used", topics.dropped)
    print(f"wrote {sheet}; put `no` into keep, or shorten text, then: ragbench topics threads-reviewed {sheet}")
    arguments.out = path
    _print_next(settings, arguments)


def _threads_reviewed(settings: Settings, arguments: argparse.Namespace) -> None:
    from ragbench.extras.collect.topics import threads
    from ragbench.extras.collect.topics.topics_file import write

    if len(arguments.inputs) != 1:
        raise ConfigError(
            "ragbench topics threads-reviewed reads one review sheet: ragbench topics threads-reviewed FILE"
        )
    sheet = Path(arguments.inputs[0])
    topics, qrels, dropped = threads.read_review(sheet)
    arguments.out = sheet.with_name("topics.jsonl")
    write(arguments.out, topics, qrels, replace=True)
    if arguments.json:
        console.print_json({"file": arguments.out, "topics": len(topics), "dropped": dropped})
        return
    print(f"{counted(len(topics), 'topic')} kept, {dropped} dropped")
    _print_next(settings, arguments)


def _draft(settings: Settings, arguments: argparse.Namespace) -> None:
    from ragbench.config.benchmark import documents
    from ragbench.extras.collect.topics.draft import DraftSpec, draft
    from ragbench.extras.collect.topics.topics_file import require_new

    with as_options():
        spec = DraftSpec(limit=arguments.limit, seed=arguments.seed)
    model = settings.models().chat(model_options.spec_of(arguments))
    require_new(arguments.out, replace=arguments.replace)
    benchmark = documents(settings.config["data"])
    with console.progress(arguments.quiet or arguments.json):
        topics = draft(benchmark.documents, model.complete, spec)
    _write_derived(topics, "drafted topic", len(benchmark.documents), arguments)
    if not arguments.json:
        _print_next(settings, arguments)


def _write_derived(topics: DerivedTopics, kind: str, n_documents: int, arguments: argparse.Namespace) -> None:
    """Write the topics into `--out`, and print how many there are."""
    from ragbench.extras.collect.topics.topics_file import write

    write(arguments.out, topics.topics, topics.document_qrels, topics.section_qrels, replace=arguments.replace)
    if arguments.json:
        console.print_json({"file": arguments.out, "topics": len(topics.topics), "dropped": topics.dropped})
        return
    _print_overview(topics.topics, f"{counted(len(topics.topics), kind)} from {counted(n_documents, 'document')}")
    _print_counts("not used", topics.dropped)


def _print_counts(title: str, counts: Mapping[str, int]) -> None:
    if counts:
        print(f"{title}: {', '.join(f'{count} {reason}' for reason, count in sorted(counts.items()))}")


def _print_next(settings: Settings, arguments: argparse.Namespace, more: str = "") -> None:
    """Print which file was written and what to do with it."""
    overrides = f"{project.data_overrides(settings.overrides)}{more} {shlex.quote(f'data.queries={arguments.out}')}"
    print(f"wrote {arguments.out}; read and correct it, then use it with{overrides}")
    console.next_command(f"run -m exp=baseline,recommended{overrides}")


def _find_evidence(settings: Settings, arguments: argparse.Namespace) -> None:
    from ragbench.config.benchmark import load
    from ragbench.extras.collect import pool
    from ragbench.extras.collect.topics.answer_candidates import unjudged_sections

    benchmark = load(settings.config)
    rows = unjudged_sections(benchmark, arguments.depth)
    path = arguments.out
    written = pool.write_pool(path, rows, benchmark, replace=arguments.replace)
    pool.write_source(path, benchmark, settings.config)
    topics = counted(len({row.qid for row in rows}), "topic")
    print(f"{counted(written, 'unjudged pair')} of {topics} in {path}, found by lexical search and links")
    console.next_command(f"judge {path}")


def _validate(overrides: Sequence[str], arguments: argparse.Namespace) -> None:
    from ragbench.config import composition
    from ragbench.evidence.arms import Arms
    from ragbench.extras.collect.query_set_agreement import validate
    from ragbench.results import measurements
    from ragbench.workbench.runs import find

    if len(arguments.inputs) > 1:
        raise ConfigError("ragbench topics validate takes one run, and the other with --against RUN")
    settings = composition.compose([override for override in overrides if section_of(override) == "paths"])

    def of(name: str) -> measurements.Measurements:
        return measurements.load(find(name, settings))

    quiet = arguments.quiet or arguments.json
    human = _measure(overrides, "given", quiet) if arguments.against == HUMAN else of(arguments.against)
    if human.topics_origin:
        _LOG.warning(f"{human.folder.name} measured {human.topics_origin}, which are not human-written")
    kind = next((override.partition("=")[2] for override in overrides if key_of(override) == "topics"), DERIVED)
    second = of(arguments.inputs[0]) if arguments.inputs else _measure(overrides, kind, quiet)
    validity = validate(Arms.of(human), Arms.of(second))
    if arguments.json:
        folders = [human.folder, second.folder]
        console.print_json({"runs": folders, **plain(validity), "effects": validity.effects})
        return
    name = second.topics_origin or "topics"
    of_people, of_others = validity.topics
    title = f"{validity.measure} against {validity.base}: {of_people} human-written queries, {of_others} {name}"
    console.print_table(validity.effects, title, dict.fromkeys(validity.effects.columns, "+.3f"))
    for sentence in validity.sentences:
        print(sentence)


def _perturb(overrides: Sequence[str], arguments: argparse.Namespace) -> None:
    from dataclasses import replace

    from ragbench.evidence.arms import Arms
    from ragbench.extras.collect.topics.perturb import COLUMNS, KINDS, SEPARATOR, losses, with_variants

    if arguments.inputs:
        raise ConfigError("ragbench topics perturb takes overrides only: ragbench topics perturb exp=baseline,phase1")
    kinds = (arguments.kinds or ",".join(KINDS)).split(",")
    for kind in kinds:
        if kind not in KINDS:
            raise ConfigError(f"--kinds must be some of {', '.join(KINDS)}, got '{kind}'")
    experiment = _sweep(overrides, ("baseline", "recommended"))
    varied = replace(experiment, given=with_variants(experiment.benchmark, [*dict.fromkeys(kinds)], arguments.seed))
    with console.progress(arguments.quiet or arguments.json):
        results = varied.run()
    variants: dict[str, dict[str, str]] = {kind: {} for kind in kinds}
    for topic in varied.benchmark.topics:
        base, _, kind = topic.qid.rpartition(SEPARATOR)
        if base and kind in variants:
            variants[kind][base] = topic.qid
    arms = Arms.of(results)
    table = losses(arms, variants)
    if arguments.json:
        console.print_json({"folder": results.folder, "losses": table})
        return
    console.print_table(table, f"{arms.policy.measure} of the topics and of variants of their queries", COLUMNS.forms)
    print(f"every topic and every variant: {console.short_path(results.folder)}")


def _measure(overrides: Sequence[str], topics: str, quiet: bool) -> Measurements:
    """A run of the arms on one kind of topics."""
    # Keys such as topics.limit exist for derived topics only.
    kept_overrides = [override for override in overrides if key_of(override) != "topics"]
    kept_overrides = [override for override in kept_overrides if topics != "given" or section_of(override) != "topics"]
    with console.progress(quiet):
        return _sweep([*kept_overrides, f"topics={topics}"], _VALIDATED).run()


def _sweep(overrides: Sequence[str], arms: Sequence[str]) -> Experiment:
    """A sweep on all topics, without times and tracking unless asked for; over `arms` where no `exp=` names others."""
    from ragbench.workbench import Experiment

    keys = {key_of(override) for override in overrides}
    swept = [*overrides]
    swept += [] if keys & {"exp", "+exp"} else [f"exp={','.join(arms)}"]
    defaults = {"split": "all", "latency.enabled": "false", "tracking.enabled": "false"}
    swept += [f"{key}={value}" for key, value in defaults.items() if key not in keys]
    return Experiment.sweep(*swept)


_TASKS: Mapping[str, Callable[[Settings, argparse.Namespace], None]] = {
    "show": _show,
    "derive": _derive,
    "from-log": _from_log,
    "threads": _threads,
    "threads-reviewed": _threads_reviewed,
    "draft": _draft,
    "find-evidence": _find_evidence,
}
RUNNING: Mapping[str, Callable[[Sequence[str], argparse.Namespace], None]] = {
    "validate": _validate,
    "perturb": _perturb,
}
"""Tasks that run arms, from the words of a sweep."""
