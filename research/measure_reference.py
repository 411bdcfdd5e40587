"""The reference tables as markdown: presets by split, verdicts of ablations, and where they were measured."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ragbench.base import console
from ragbench.base.console import markdown
from ragbench.base.errors import BAD_INPUT, ConfigError, RagbenchError
from ragbench.base.files import write_text
from ragbench.base.formatting import with_interval
from ragbench.benchmark.split import TEST
from ragbench.config import catalogue
from ragbench.config.catalogue.names import label
from ragbench.evaluation.measures import ANSWERED, DOCUMENT, PASSAGE, PRIMARY
from ragbench.evaluation.passages import TOKENS
from ragbench.evidence.arms import Arms
from ragbench.evidence.table import table as verdict_table
from ragbench.results.measurements import ARMS
from tools.pages import write_between

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements
    from ragbench.workbench import Experiment, Results

_SHOWN = ("nDCG@5", PRIMARY, "RR", "R@10", "P@5", *ANSWERED, "Judged@10")
RUNS, WORDS = "Runs", "What the words mean"
_APPENDIX = {"baseline": "`baseline`", **{f"phase{n}": f"`phase{n}`" for n in (1, 2, 3, 4)}}
_APPENDIX |= {f"tuned_phase{n}": f"`tuned_phase{n}`" for n in (2, 3, 4)}
_APPENDIX_MEASURES = {"NDCG@5": "nDCG@5", "NDCG@10": "nDCG@10", "MRR": "RR", "Recall@10": "R@10"}
_COMMIT = re.compile(r"\| ([0-9a-f]{12})")
_PRESETS = r"<!-- presets: ([\w ]+) -->.*?<!-- end of presets -->"
_FORMATS = {
    **dict.fromkeys(("p50 ms", "p95 ms", "latency ms"), ".1f"),
    **dict.fromkeys(("effect", "ci low", "ci high"), "+.3f"),
    **dict.fromkeys(("passage effect", "passage ci low", "passage ci high"), "+.3f"),
    **dict.fromkeys(("p", "passage p", "mde", "passages"), ".3f"),
    TOKENS: ".0f",
}


def document(presets: Measurements, ablations: Mapping[str, pd.DataFrame], commands: Sequence[str]) -> str:
    """The whole file; `ablations` are verdict tables by title, and every row says at which commit it was measured."""
    record = presets.record
    at, benchmark = _commit(record), record["benchmark"]
    parts = [
        head(benchmark["name"], benchmark["documents"], record["topics"], benchmark["digest"]),
        f"## {RUNS}\n\n" + markdown(_runs(presets, commands)),
        "## Presets by split\n\n" + markdown(_presets(presets).pipe(_measured, at), _FORMATS),
        *(
            f"## {PRIMARY} by query type (topics), {split} split\n\n"
            + markdown(_by_type(presets, split).pipe(_measured, at), _FORMATS)
            for split in sorted(set(presets.per_query["split"]))
        ),
        *(
            f"## {title}\n\n{markdown(_verdicts(frame).pipe(_measured, at), _FORMATS)}"
            for title, frame in ablations.items()
        ),
        f"## {WORDS}",
        "Latency is the service time of one query without caches, in milliseconds. `Silence` is the share of topics "
        "without an answer that were answered with nothing, `FalseSilence` that of topics with one, `Hits@10` the "
        "documents among the first ten of a query, `passages` nDCG@10 of passages as they are returned. A verdict "
        "weighs the effects on documents and passages (omission: of the proposal with all others on; adding: of the "
        "proposal alone), adjusted together, and the budget of time. `measured` and `timed` are commits; where they "
        "differ, times are of the search as it was then. The order of `recommended` has seen the train topics, not the "
        "test topics.",
    ]
    return "\n\n".join(parts) + "\n"


def head(benchmark: str, documents: int, topics: int, digest: str) -> str:
    """What stands before the first table: the benchmark, its numbers of documents and topics, its digest."""
    about = f"{benchmark} ({documents} documents, {topics} topics, digest {digest[:12]})"
    return f"# Reference results\n\nGenerated, not written by hand, on the benchmark {about}."


def require_same_topics(before: str, now: str) -> None:
    """Raise ConfigError where two files, or what stands before their tables, are of different topics."""
    old, new = _topics(before), _topics(now)
    if old != new:
        raise ConfigError(f"the file to update is of other topics ({old}; now {new})")


def updated(before: str, after: str) -> str:
    """The file `before` with what `after` measured: rows of presets, by arm and split, and whole tables of verdicts.

    What was not measured again stays, with its commit: other rows, other tables, and times where no time was measured.
    Runs of which nothing is left are not listed. Raises ConfigError where the two are of different topics.
    """
    require_same_topics(before, after)
    (top, sections), (_, new) = _sections(before), _sections(after)
    last = new.pop(WORDS)
    sections.pop(WORDS, None)
    for title, body in new.items():
        whole = title not in sections or "| factor |" in body
        sections[title] = body if whole else _merged(sections[title], body)
    used = "".join(body for title, body in sections.items() if title != RUNS)
    runs = sections[RUNS].splitlines()
    sections[RUNS] = "\n".join(row for row in runs if not (at := _COMMIT.match(row)) or at[1] in used)
    return top + "\n".join(f"## {title}\n{body.rstrip()}\n" for title, body in [*sections.items(), (WORDS, last)])


def _sections(text: str) -> tuple[str, dict[str, str]]:
    """What stands before the first title, and what stands below each."""
    top, *parts = re.split(r"^## ", text, flags=re.M)
    return top, {title: body for title, _, body in (part.partition("\n") for part in parts)}


def _merged(before: str, after: str) -> str:
    """A table with the rows of a later one; a cell whose column the later one lacks keeps its value."""
    (old, rule, rows), (new, new_rule, new_rows) = _cells(before), _cells(after)
    columns = dict(zip(old, rule, strict=True))
    for place, name in enumerate(new):
        if name not in columns:
            earlier = list(columns.items())
            at = 1 + list(columns).index(new[place - 1]) if place else 0
            columns = dict([*earlier[:at], (name, new_rule[place]), *earlier[at:]])
    keys = [name for name in ("arm", "split", "commit", "command") if name in new]
    table = {tuple(row[key] for key in keys): row for row in rows}
    for row in new_rows:
        key = tuple(row[name] for name in keys)
        table[key] = table.get(key, {}) | row
    cells = [list(columns), *([row.get(name, "") for name in columns] for row in table.values())]
    first, *others = [f"| {' | '.join(line)} |" for line in cells]
    return "\n" + "\n".join([first, f"|{'|'.join(columns.values())}|", *others]) + "\n"


def _cells(section: str) -> tuple[list[str], list[str], list[dict[str, str]]]:
    """The heads, the marks of alignment and the rows of the table in a section."""
    lines = [line.strip("|").split("|") for line in section.splitlines() if line.startswith("|")]
    heads, rule, *rows = [[cell.strip() for cell in line] for line in lines]
    return heads, rule, [dict(zip(heads, row, strict=True)) for row in rows]


def _topics(text: str) -> str:
    return " ".join(text.partition("on the benchmark")[2].partition("\n## ")[0].split()).rstrip(".")


def effects(verdicts: Mapping[str, pd.DataFrame]) -> str:
    """Return the table of docs/optional-features.md: a row for each measured switch, a column for each ablation.

    `verdicts` are verdict tables by the head of their column.
    """
    import pandas as pd

    rows = [
        {
            "option": f"`{label(group.name)}`",
            **{head: _effect(frame, group.name) for head, frame in verdicts.items()},
        }
        for group in catalogue.read().switches
        if any(group.name in set(frame["factor"]) for frame in verdicts.values())
    ]
    return markdown(pd.DataFrame(rows))


def appendix(reference: str) -> str:
    """Return the table of appendix A of seed 000 from the reference tables: baseline and phases, test topics.

    A time that was measured at another commit than the quality of its row has a star.
    """
    import pandas as pd

    _, _, rows = _cells(_sections(reference)[1]["Presets by split"])
    of = {row["arm"]: row for row in rows if row["split"] == TEST}
    table = []
    for arm, name in _APPENDIX.items():
        row = of[arm]
        later = "" if row.get("timed") == row["measured"] else "*"
        times = {head: f"{row[f'{head} ms']}{later}" for head in ("p50", "p95") if row.get(f"{head} ms")}
        quality = {head: f"{float(row[key]):.3f}" for head, key in _APPENDIX_MEASURES.items()}
        table.append({"phase": name, **quality, **times})
    return markdown(pd.DataFrame(table).fillna(""))


def with_presets(page: str, presets: Measurements) -> str:
    """A page with the table of presets between its marks `<!-- presets: baseline all -->`, `<!-- end of presets -->`.

    Values are of the test topics; verdicts against the first preset are adjusted for all presets that were measured.
    """

    def replace_mark(mark: re.Match[str]) -> str:
        names = mark[1].split()
        benchmark, n = presets.record["benchmark"], len(presets.values(names[0], PRIMARY, TEST))
        about = f"{benchmark['name']}: {benchmark['documents']} documents and {n} answerable test queries."
        table = markdown(_preset_table(presets, names))
        return f"<!-- presets: {mark[1]} -->\n\n{about}\n\n{table}\n\n<!-- end of presets -->"

    return re.sub(_PRESETS, replace_mark, page, flags=re.S)


def presets_named(page: str) -> list[str]:
    """The presets in the marks of a page, for `with_presets`."""
    return [name for names in re.findall(_PRESETS, page, flags=re.S) for name in names.split()]


def _preset_table(presets: Measurements, names: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    table = verdict_table(Arms.of(presets, split=TEST).against(names[0]))
    judged = {str(row["factor"]): row for _, row in table.iterrows()}
    known = catalogue.read()
    rows = []
    for name in names:
        documents, passages = (presets.values(name, PRIMARY, TEST, level).mean() for level in (DOCUMENT, PASSAGE))
        p95 = presets.p95_ms(name)
        row = {
            "search": f"`{name}`: {known.experiment(name).description.split(':')[-1].strip().rstrip('.')}",
            "documents": f"{documents:.3f}",
            "passages": f"{passages:.3f}",
            "change in documents [95% CI]": "",
            "change in passages [95% CI]": "",
            "verdict": "",
            ARMS["p95"].title: "" if p95 is None else f"{p95:.0f}",
        }
        if name != names[0]:
            of = judged[name]
            row["change in documents [95% CI]"] = _change(of, "")
            row["change in passages [95% CI]"] = _change(of, "passage_")
            row["verdict"] = str(of["verdict"])
        rows.append(row)
    return pd.DataFrame(rows)


def _change(of: pd.Series, prefix: str) -> str:
    effect, low, high = (of[f"{prefix}{name}"] for name in ("effect", "ci_low", "ci_high"))
    return "" if np.isnan(effect) else with_interval(effect, low, high)


def _effect(frame: pd.DataFrame, factor: str) -> str:
    if factor not in set(frame["factor"]):
        return ""
    of = frame[frame["factor"] == factor].iloc[0]
    passages = "" if np.isnan(of["passage_effect"]) else f", {of['passage_effect']:+.3f}"
    cost = "" if np.isnan(of["latency_ms"]) else f", {of['latency_ms']:+.1f} ms"
    return f"{_change(of, '')}{passages}{cost}, **{of['verdict']}**"


def _commit(record: Mapping[str, Any]) -> str:
    git = record["environment"]["git"] or {}
    return f"{str(git.get('commit'))[:12]}{' with changes' if git.get('dirty') else ''}"


def _runs(presets: Measurements, commands: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    environment = presets.record["environment"]
    machine = f"{environment['processor']}, {environment['cpus']} CPUs, Python {environment['python']}"
    timed = f", {presets.record['latency']['threads']} thread per query" if len(presets.latency) else ""
    rows = [(_commit(presets.record), f"`{command}`", machine + timed) for command in commands]
    return pd.DataFrame(rows, columns=["commit", "command", "machine"])


def _measured(frame: pd.DataFrame, at: str) -> pd.DataFrame:
    """The rows with the commit at which they were measured, and timed where they have times."""
    times = [name for name in ("p95 ms", "latency ms") if name in frame and frame[name].notna().any()]
    return frame.assign(measured=at, **({"timed": at} if times else {}))


def _presets(results: Measurements) -> pd.DataFrame:
    frame = results.summary(("split",))
    frame = frame[["arm", "split", "n", *(name for name in _SHOWN if name in frame.columns)]].copy()
    passages = results.summary(("split",), level=PASSAGE).set_index(["arm", "split"])
    keys = list(zip(frame["arm"], frame["split"], strict=True))
    for name in [PRIMARY, *(str(each) for each in passages.columns if "okens" in str(each))]:
        if name in passages.columns:
            column = "passages" if name == PRIMARY else name
            beside = name == PRIMARY and PRIMARY in frame.columns
            place = list(frame.columns).index(PRIMARY) + 1 if beside else len(frame.columns)
            frame.insert(place, column, passages[name].reindex(keys).to_numpy())
    if len(results.latency):
        total = results.latency[results.latency["stage"] == "total"].set_index("arm")
        for column in ("p50", "p95"):
            frame[f"{column} ms"] = frame["arm"].map(total[column])
    return frame


def _by_type(results: Measurements, split: str) -> pd.DataFrame:
    frame = results.per_query
    frame = frame[(frame["level"] == "document") & (frame["measure"] == PRIMARY) & (frame["split"] == split)]
    counts = frame.groupby("type", observed=True)["qid"].nunique()
    table = frame.pivot_table(index="arm", columns="type", values="value", observed=True).loc[results.arms]
    table.columns = [f"{name} ({counts[name]})" for name in table.columns]
    return table.reset_index()


def _verdicts(frame: pd.DataFrame) -> pd.DataFrame:
    names = [
        *("factor", "verdict", "effect", "ci_low", "ci_high", "p", "wins", "ties", "losses", "mde"),
        *("passage_effect", "passage_ci_low", "passage_ci_high", "passage_p", "latency_ms", "quality", "cost"),
    ]
    return frame[names].rename(columns=lambda name: str(name).replace("_", " "))


DESCRIPTION = "Measure the presets and both one-at-a-time ablations and write the reference tables."
EXAMPLES = """examples:
  python -m research.measure_reference                                    into results/REFERENCE.md
  python -m research.measure_reference --out /tmp/REFERENCE.md latency.queries=10
  python -m research.measure_reference --presets baseline,all --no-ablations
  python -m research.measure_reference --presets recommended --no-ablations --out REFERENCE.md --update
  python -m research.measure_reference --appendix docs/research/systems.md    print and write the table of the phases
  python -m research.measure_reference --effects docs/optional-features.md --readme docs/findings.md    into pages too
"""

# By the head of its column in the table of effects: the title of the ablation, and its command.
_ABLATIONS = {
    "on top of all others": (
        "Leaving each proposal out of `all`, test split",
        ("exp=all", "design=leave_one_out", "split=test"),
    ),
    "alone on `baseline`": (
        "Adding each proposal to `baseline`, test split",
        ("exp=baseline", "design=add_one", "split=test"),
    ),
    "alone on `ragdocs`": (
        "Adding each proposal to `ragdocs`, test split",
        ("exp=ragdocs", "design=add_one", "split=test"),
    ),
}


def _parser() -> argparse.ArgumentParser:
    form = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=DESCRIPTION, epilog=EXAMPLES, formatter_class=form)
    parser.add_argument("--presets", metavar="NAME,NAME", help="comma-separated experiments (default: all of conf/exp)")
    parser.add_argument("--no-ablations", action="store_true", help="only the presets")
    parser.add_argument(
        "--update", action="store_true", help="keep what the file has of other presets; every row names its commit"
    )
    parser.add_argument("--out", metavar="FILE", help="the file to write (default: REFERENCE.md in the results folder)")
    parser.add_argument(
        "--effects", metavar="FILE", help="a page whose mark <!-- effects --> gets the table of measured effects"
    )
    parser.add_argument(
        "--appendix",
        metavar="FILE",
        help="only print the table of the phases from --out, and write it into a page between its marks",
    )
    parser.add_argument(
        "--readme", metavar="FILE", help="a page whose mark <!-- presets: baseline all --> gets a table"
    )
    console.add_overrides(parser)
    console.add_output(parser)
    return parser


def main(words: Sequence[str] | None = None) -> int:
    """Run everything, then write one file; print one sentence and return 2 for what cannot be used."""
    try:
        return _measure(_parser().parse_intermixed_args(words))
    except RagbenchError as error:
        print(f"measure_reference: {error}", file=sys.stderr)
        return BAD_INPUT


def _measure(arguments: argparse.Namespace) -> int:
    from ragbench.workbench import Experiment

    if arguments.appendix:
        table = appendix(Path(arguments.out or "results/REFERENCE.md").read_text(encoding="utf-8"))
        write_between(Path(arguments.appendix), "appendix", f"\n{table}\n")
        print(table)
        return 0
    if arguments.effects and (arguments.no_ablations or "<!-- effects -->" not in Path(arguments.effects).read_text()):
        raise ConfigError("--effects needs a page with <!-- effects --> and <!-- end of effects -->, and the ablations")
    readme = Path(arguments.readme).read_text("utf-8") if arguments.readme else ""
    chosen = arguments.presets.split(",") if arguments.presets else every_preset()
    if missing := [name for name in presets_named(readme) if name not in chosen]:
        raise ConfigError(
            f"--readme {arguments.readme} has a table of preset '{missing[0]}', which --presets leaves out: add it"
        )
    if arguments.update and not (arguments.out and Path(arguments.out).is_file()):
        raise ConfigError("--update needs --out with a file that this command wrote")
    before = Path(arguments.out).read_text("utf-8") if arguments.update else ""
    quiet = arguments.quiet or arguments.json
    sweep = [f"exp={','.join(chosen)}", "split=all", *arguments.overrides]
    experiment = Experiment.sweep(*sweep)
    if arguments.update:
        of = experiment.benchmark
        require_same_topics(before, head(of.name, len(of.documents), len(of.topics), of.digest))
    presets = _run(experiment, quiet)
    commands = [_command_line("run -m", sweep)]
    ablations: dict[str, Results] = {}
    for begins, (_, overrides) in {} if arguments.no_ablations else _ABLATIONS.items():
        words = [*overrides, *arguments.overrides]
        ablations[begins] = _run(Experiment.ablate(*words), quiet)
        commands.append(_command_line("ablate", words))
    path = Path(arguments.out) if arguments.out else presets.folder.parent.parent / "REFERENCE.md"
    verdicts = {begins: each.verdicts for begins, each in ablations.items()}
    tables = {_ABLATIONS[begins][0]: frame for begins, frame in verdicts.items()}
    written = document(presets, tables, commands)
    write_text(path, updated(before, written) if arguments.update else written)
    if arguments.readme:
        write_text(Path(arguments.readme), with_presets(readme, presets))
    if arguments.effects:
        write_between(Path(arguments.effects), "effects", f"\n{effects(verdicts)}\n")
    if arguments.json:
        console.print_json(
            {"reference": str(path), "folders": [str(each.folder) for each in (presets, *ablations.values())]}
        )
        return 0
    print(f"wrote {path}")
    return 0


def _command_line(command: str, words: Sequence[str]) -> str:
    """The command line, without the folders of this machine."""
    return " ".join(["ragbench", command, *(word for word in words if not word.startswith("paths."))])


def every_preset() -> list[str]:
    """The names of all experiments, the baseline first."""
    from ragbench.config import catalogue

    names = [each.name for each in catalogue.read().experiments]
    return sorted(names, key=lambda name: name != "baseline")


def _run(experiment: Experiment, quiet: bool) -> Results:
    with console.progress(quiet):
        return experiment.run()


if __name__ == "__main__":
    raise SystemExit(main())
