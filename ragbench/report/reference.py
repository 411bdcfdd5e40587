"""The reference tables as markdown: presets by split, verdicts of ablations, and where they were measured."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from ragbench.base.console import markdown
from ragbench.base.numbers import with_interval
from ragbench.benchmark.split import TEST
from ragbench.config import catalogue
from ragbench.evaluation.levels import DOCUMENT, PASSAGE
from ragbench.evaluation.measures import ANSWERED, PRIMARY
from ragbench.evaluation.passages import TOKENS
from ragbench.evidence.arms import Arms
from ragbench.evidence.table import table as verdict_table

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

_SHOWN = ("nDCG@5", PRIMARY, "RR", "R@10", "P@5", *ANSWERED, "Judged@10")
_PRESETS = r"<!-- presets: ([\w ]+) -->.*?<!-- end of presets -->"
_FORMATS = {
    **dict.fromkeys(("p50 ms", "p95 ms", "latency ms"), ".1f"),
    **dict.fromkeys(("effect", "ci low", "ci high"), "+.3f"),
    **dict.fromkeys(("passage effect", "passage ci low", "passage ci high"), "+.3f"),
    **dict.fromkeys(("p", "passage p", "mde", "passages"), ".3f"),
    TOKENS: ".0f",
}


def document(presets: Measurements, ablations: Mapping[str, pd.DataFrame], commands: Sequence[str]) -> str:
    """The whole file; `ablations` are verdict tables by title."""
    record = presets.record
    environment = record["environment"]
    git = environment["git"] or {}
    parts = [
        "# Reference results",
        "Generated, not written by hand. The commands:\n\n```\n" + "\n".join(commands) + "\n```",
        f"Benchmark {record['benchmark']['name']} ({record['benchmark']['documents']} documents, "
        f"{record['topics']} topics, digest {record['benchmark']['digest'][:12]}), commit {str(git.get('commit'))[:12]}"
        f"{' with changes' if git.get('dirty') else ''}, {environment['processor']}, {environment['cpus']} processors, "
        f"Python {environment['python']}, {record['latency']['threads']} thread per query.",
        "## Presets by split\n\n" + markdown(_presets(presets), _FORMATS),
        *(
            f"## {PRIMARY} by query type (topics), {split} split\n\n{markdown(_by_type(presets, split), _FORMATS)}"
            for split in sorted(set(presets.per_query["split"]))
        ),
        *(f"## {title}\n\n{markdown(_verdicts(frame), _FORMATS)}" for title, frame in ablations.items()),
        "Latency is the service time of one query without caches, in milliseconds. `Silence` is the share of topics "
        "without an answer that were answered with nothing, `FalseSilence` that of topics with one, `Hits@10` the "
        "documents among the first ten of a query, `passages` nDCG@10 of passages as they are returned. A verdict "
        "weighs the effects on documents and passages (leaving out: of the proposal with all others on; adding: of the "
        "proposal alone), adjusted together, and the budget of time.",
    ]
    return "\n\n".join(parts) + "\n"


def with_effects(page: str, verdicts: Mapping[str, pd.DataFrame]) -> str:
    """A page of the documentation with the measured effects below its marks `<!-- effect: p6 -->`.

    `verdicts` are verdict tables by the words that begin their sentences.
    """

    def replace_mark(mark: re.Match[str]) -> str:
        sentences = [
            f"{begins} {_effect_sentence(frame[frame['factor'] == mark[1]].iloc[0])}"
            for begins, frame in verdicts.items()
            if mark[1] in set(frame["factor"])
        ]
        return "\n".join([f"<!-- effect: {mark[1]} -->", *([" ".join(sentences)] if sentences else []), ""])

    return re.sub(r"<!-- effect: (\w+) -->\n(?:[^\n]+\n)*", replace_mark, page)


def with_presets(page: str, presets: Measurements) -> str:
    """A page with the table of presets between its marks `<!-- presets: baseline all -->`, `<!-- end of presets -->`.

    Values are of the test topics; verdicts against the first preset are adjusted for all presets that were measured.
    """

    def replace_mark(mark: re.Match[str]) -> str:
        names = mark[1].split()
        benchmark, n = presets.record["benchmark"], len(presets.values(names[0], PRIMARY, TEST))
        about = f"{benchmark['name']}: {benchmark['documents']} documents, {n} test topics with an answer."
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
            "documents against the first": "",
            "passages against the first": "",
            "verdict": "",
            "p95, ms": "" if p95 is None else f"{p95:.0f}",
        }
        if name != names[0]:
            of = judged[name]
            row["documents against the first"] = _change(of, "")
            row["passages against the first"] = _change(of, "passage_")
            row["verdict"] = str(of["verdict"])
        rows.append(row)
    return pd.DataFrame(rows)


def _change(of: pd.Series, prefix: str) -> str:
    effect, low, high = (of[f"{prefix}{name}"] for name in ("effect", "ci_low", "ci_high"))
    return "" if np.isnan(effect) else with_interval(effect, low, high)


def _effect_sentence(effect: pd.Series) -> str:
    documents = f"{PRIMARY} {with_interval(effect['effect'], effect['ci_low'], effect['ci_high'])}"
    passages = f"passages {effect['passage_effect']:+.3f}" if not np.isnan(effect["passage_effect"]) else ""
    cost = f"{effect['latency_ms']:+.1f} ms on p95" if not np.isnan(effect["latency_ms"]) else ""
    return f"{', '.join(part for part in (documents, passages, cost) if part)}, **{effect['verdict']}**."


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
