"""`ragbench search` (Understand a search): search the collection and explain each result."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ragbench.base import console
from ragbench.base.options import as_options
from ragbench.base.types import ConfigError

if TYPE_CHECKING:
    from ragbench.benchmark.benchmark import Benchmark

DESCRIPTION = "Search the collection with a pipeline. --explain shows the effect of each stage on each hit."
EXAMPLES = """examples:
  ragbench search "how do I rotate an api key"
  ragbench search "STR-2031" exp=phase3 --explain
  ragbench search "how do I add a tool" --hypothesis "To add a tool, register it in the server and describe its input."
  ragbench search "rotate keys" exp=lexical_v3 --phrasing "renew credentials" --term "#security"
  ragbench search "what changed" exp=lexical_v3 --after 2026-01-01
  ragbench search "clock skew" exp=librarian_hybrid --mode rerank
  ragbench search "notes about [[clocks]]" exp=lexical_v3 --xml     as XML for a language model
  ragbench search "rotate a key" --max-tokens 2000                  cited passages within a token budget
  ragbench search "retention" data=vault data.corpus=~/notes --top 5 --json
  ragbench search --source guides/rotate-keys.md data=vault data.corpus=~/notes     a page as it is indexed
  ragbench search "retention" --arm plain="" --arm recommended="exp=recommended"     one arm after the other
"""
_MODES = ("keyword", "semantic", "hybrid", "rerank")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The query, overrides and output options."""
    parser.add_argument("query", help="text to search for")
    parser.add_argument("--top", type=int, default=10, metavar="N", help="number of results (default 10)")
    parser.add_argument("--hypothesis", metavar="TEXT", help="hypothetical document to embed (HyDE)")
    parser.add_argument(
        "--phrasing", action="append", metavar="TEXT", help="another phrasing of the query (repeatable)"
    )
    parser.add_argument("--term", action="append", metavar="WORD", help="important word or #tag (repeatable)")
    parser.add_argument("--after", metavar="DATE", help="return only documents from this date on")
    parser.add_argument("--before", metavar="DATE", help="return only documents before this date")
    parser.add_argument(
        "--mode",
        choices=_MODES,
        help="lexical, dense or hybrid retrieval, or dense results re-ranked by keywords (default: environment "
        "variable SEARCH_MODE, else the pipeline)",
    )
    parser.add_argument("--all", action="store_true", help="return all results, up to 100")
    parser.add_argument("--explain", action="store_true", help="show the contribution of every stage")
    parser.add_argument(
        "--source", action="store_true", help="show a page as it is indexed next to its file; the query names the page"
    )
    parser.add_argument("--xml", action="store_true", help="print the results as XML for a language model")
    parser.add_argument(
        "--max-tokens", type=int, metavar="N", help="print the passages that fit into N tokens, as cited markdown"
    )
    console.add_arms(parser)
    console.add_overrides(parser)
    console.add_output(parser)


def main(arguments: argparse.Namespace) -> int:
    """Search and print."""
    import os

    from ragbench.config import composition
    from ragbench.config.overrides import named_arms
    from ragbench.search.engine.answer import SearchOptions
    from ragbench.search.engine.context import DEPTH, check_budget

    if arguments.top < 1:
        raise ConfigError(f"--top must be at least 1, got {arguments.top}")
    if arguments.max_tokens is not None:
        check_budget(arguments.max_tokens)
        if arguments.json or arguments.xml or arguments.explain:
            raise ConfigError("--max-tokens prints markdown: remove --json, --xml and --explain")
        arguments.top = max(arguments.top, DEPTH)
    if not arguments.query.strip():
        raise ConfigError("the query is empty: pass a query")
    if arguments.hypothesis is not None and not arguments.hypothesis.strip():
        raise ConfigError("--hypothesis must not be blank")
    with as_options():
        options = SearchOptions(
            hypothesis=arguments.hypothesis,
            phrasings=arguments.phrasing and tuple(arguments.phrasing),
            salient_terms=tuple(arguments.term or ()),
            after=arguments.after,
            before=arguments.before,
            mode=arguments.mode,
            return_all=arguments.all,
        ).in_mode(os.environ.get("SEARCH_MODE"))
    shared = [*arguments.overrides, *(["hyde=on"] if arguments.hypothesis is not None else [])]
    named = named_arms(arguments.arm)
    settings = composition.arms(named, shared) if named else [composition.compose(shared)]
    if any(arm.pipeline.recorded for arm in settings):
        raise ConfigError("a run file answers only the topics in it: measure it with ragbench run live=trec")
    from ragbench.config.settings import ArmBuilder
    from ragbench.search.engine.answer import answer, show

    benchmark = settings[0].documents()
    if arguments.source:
        return _show_source(benchmark, settings[0].data, arguments)
    with console.progress(arguments.quiet or arguments.json or arguments.xml or arguments.max_tokens):
        answers = {}
        for arm in ArmBuilder.of(settings[0], benchmark).arms(settings):
            arm.index.prepare(arm.pipeline.needs)
            answers[arm.name] = answer(
                arguments.query, arm.pipeline, arm.index, arguments.top, options=options, explain=True
            )
    if arguments.max_tokens is not None:
        contexts = {name: answer.context(arguments.max_tokens).text for name, answer in answers.items()}
        print("\n\n".join(f"{name}:\n{text}" if named else text for name, text in contexts.items()))
        return 0
    if arguments.xml:
        print("\n".join(answer.xml for answer in answers.values()))
        return 0
    if arguments.json:
        console.print_json(answers if named else next(iter(answers.values())))
        return 0
    for name, arm_answer in answers.items():
        if named:
            print(f"{name}:")
        show(arm_answer, in_full=arguments.explain)
    return 0


def _show_source(benchmark: Benchmark, data: Mapping[str, Any], arguments: argparse.Namespace) -> int:
    """Print a page line by line: ` ` as in the file, `-` in the file only, `+` as it is indexed instead."""
    from difflib import unified_diff

    from ragbench.benchmark.names import page_and_file

    page, written = page_and_file(benchmark.documents, arguments.query, data.get("corpus"))
    if arguments.json:
        sections = [" > ".join(section.path) for section in page.sections]
        facts = {"docno": page.docno, "path": page.path, "title": page.title, "tags": page.tags, "sections": sections}
        console.print_json({**facts, "frontmatter": page.frontmatter, "text": page.text, "file": written})
        return 0
    print(f"{page.path}: title '{page.title}'" + (f", tags {', '.join(page.tags)}" if page.tags else ""))
    print("  as in the file, - in the file only, + as it is indexed")
    indexed = "\n" * (page.first_line - 1) + page.text
    lines, shown = written.split("\n"), indexed.split("\n")
    difference = list(unified_diff(lines, shown, lineterm="", n=len(lines)))[3:]
    print("\n".join(line for line in difference or [f" {line}" for line in lines] if line != "+"))
    return 0
