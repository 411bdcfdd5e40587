"""Measure the seeds: presets and curves on sites of user questions, curves and criteria on the built-in benchmark."""

from __future__ import annotations

import logging
import random
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base.types import ConfigError, ResultsError
from ragbench.benchmark.benchmark import Benchmark, Topic
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.evaluation.measures import FALSE_SILENCE, PRIMARY
from ragbench.index.vocabulary import VocabularySpec, frequent_terms
from ragbench.models.resolve import EncoderSpec, load_encoder
from ragbench.results import measurements, store

if TYPE_CHECKING:
    import pandas as pd

    from ragbench.results.measurements import Measurements

_LOG = logging.getLogger(__name__)

BASE, BUILTIN = "baseline", "builtin"
COLUMNS = ("collection", "arm", "questions", "mean", "effect", "error", "silent", "hits", "three")
ARMS = Path(__file__).with_name("arms.yaml")
MEASURED = Path(__file__).with_name("measured.csv")
_WORDS = ("latency.enabled=false", "tracking.enabled=false")
_HEADINGS, _TERMS = 300, 500
_NAME = re.compile(r"\b[a-z]+(?:[A-Z][a-z0-9]+)+\b")


def arms(*groups: str) -> dict[str, tuple[str, ...]]:
    """The overrides of every arm of some groups of `arms.yaml`, the baseline first."""
    listed = read_yaml_file(ARMS)
    named = {name: words for group in groups or listed for name, words in listed[group].items()}
    return {name: tuple(words.split()) for name, words in {BASE: f"exp={BASE}", **named}.items()}


def sites(folder: Path, names: Sequence[str] = ()) -> dict[str, tuple[str, ...]]:
    """The overrides that read each site in a folder: `vault`, `queries.jsonl`, `qrels/test.tsv` in a folder of its own.

    A site without `vault` has it in the folder of its name beside `folder`. Raises ConfigError where none is there.
    """
    found = {}
    for queries in sorted(folder.glob("*/queries.jsonl")):
        site = queries.parent
        vault = next((each for each in (site / "vault", folder.parent / site.name / "vault") if each.is_dir()), None)
        if vault is not None and (not any(names) or site.name in names):
            data = {"corpus": vault, "queries": queries, "qrels": site / "qrels" / "test.tsv", "name": site.name}
            found[site.name] = ("data=vault", "split=all", *(f"data.{key}={value}" for key, value in data.items()))
    if not found:
        raise ConfigError(f"{folder} has no site: a site is a folder with vault, queries.jsonl and qrels/test.tsv")
    return found


def measure(folder: Path, names: Sequence[str] = (), overrides: Sequence[str] = ()) -> pd.DataFrame:
    """Measure all sites and the built-in benchmark; the rows are those of `measured.csv`. What is finished stays."""
    import pandas as pd

    rows: list[dict[str, object]] = []
    for name, data in {**sites(folder, names), BUILTIN: ("data=builtin", "split=test")}.items():
        shared = [*data, *_WORDS, *overrides]
        rows += rows_of(name, _measured(arms("curves") if name == BUILTIN else arms(), shared))
    chosen = {**arms("presets"), "p7": ("exp=baseline", "p7=on")}
    chosen = {name: chosen[name] for name in (BASE, "phase1", "p7")}
    asked = criteria(load(composition.compose([*_WORDS, *overrides]).config))
    rows += criteria_rows(asked, _measured(chosen, [*_WORDS, *overrides], asked))
    rows += costs(asked)
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _measured(
    chosen: Mapping[str, Sequence[str]], shared: Sequence[str], benchmark: Benchmark | None = None
) -> dict[str, Measurements]:
    """The measurements of each arm: of finished runs on the same benchmark, else of a run that is made now."""
    from ragbench.experiment.run import run

    settings = list(composition.arms(chosen, shared))
    benchmark = benchmark or load(settings[0].config)
    of: dict[str, Measurements] = {}
    for folder in reversed(store.finished_runs(settings[0].results)):
        try:
            record = store.read(folder)
        except ResultsError:
            continue
        if record["benchmark"]["digest"] == benchmark.digest and record["split"] == settings[0].config["split"]:
            finished = measurements.load(folder)
            of |= {arm: finished for arm in finished.arms if _is(chosen, arm, record)}
    missing = [each for each in settings if each.name not in of]
    if missing:
        _LOG.info(f"{benchmark.name}: {len(missing)} arms on {len(benchmark.topics)} questions")
        made = run(missing, benchmark, command="scorecard", conclude=lambda measured: None)
        of |= dict.fromkeys(made.arms, made)
    return {name: of[name] for name in chosen}


def _is(chosen: Mapping[str, Sequence[str]], arm: str, record: Mapping[str, Any]) -> bool:
    given = {word.lstrip("+") for word in record["overrides"][arm]}
    return arm in chosen and set(chosen[arm]) <= given


def rows_of(collection: str, measured: Mapping[str, Measurements]) -> Iterator[dict[str, object]]:
    """A row for each arm: nDCG@10 of documents, its change and standard error against the baseline, and what is shown.

    `silent` is the share of answerable questions without a hit, `hits` the mean number among ten, `three` the share of
    questions whose first five hits are of three documents or more.
    """
    import pandas as pd

    base = measured[BASE].values(BASE, PRIMARY)
    for arm, of in measured.items():
        values = of.values(arm, PRIMARY)
        change = values - base
        top = pd.read_parquet(of.arm_path(arm) / measurements.TOP)
        first = top[(top["rank"] <= 5) & top["qid"].isin(values.index)].groupby("qid")["docno"].nunique()
        yield {
            **{"collection": collection, "arm": arm, "questions": len(values), "mean": values.mean()},
            **{"effect": change.mean(), "error": change.std(ddof=1) / len(change) ** 0.5},
            **{"silent": of.values(arm, FALSE_SILENCE).mean(), "hits": of.values(arm, "Hits@10").mean()},
            "three": float((first >= 3).sum()) / len(values),
        }


def criteria(benchmark: Benchmark) -> Benchmark:
    """The built-in documents, asked for by their titles, headings, keywords and names in code.

    Topics have the type title, heading, keyword or name; what several documents hold is left out.
    """
    asked: dict[str, dict[str, set[str]]] = {kind: {} for kind in ("title", "heading", "keyword", "name")}
    for document in benchmark.documents:
        keywords = document.frontmatter.get("keywords") or ()
        code = " ".join(document.text[block.start : block.end] for block in document.code_blocks)
        texts: Mapping[str, Sequence[str]] = {
            "title": [document.title],
            "heading": [section.path[-1] for section in document.sections if section.level > 1],
            "keyword": keywords.split(",") if isinstance(keywords, str) else [str(each) for each in keywords],
            "name": _NAME.findall(code),
        }
        for kind, listed in texts.items():
            for text in listed:
                asked[kind].setdefault(text.strip(), set()).add(document.docno)
    single = {
        kind: [(text, next(iter(of))) for text, of in sorted(texts.items()) if text and len(of) == 1]
        for kind, texts in asked.items()
    }
    single["heading"] = sorted(random.Random(13).sample(single["heading"], min(_HEADINGS, len(single["heading"]))))
    named = {f"{kind}-{number}": (kind, *pair) for kind, pairs in single.items() for number, pair in enumerate(pairs)}
    topics = tuple(Topic(qid, text, type=kind) for qid, (kind, text, _) in named.items())
    qrels = {qid: {docno: 1} for qid, (_, _, docno) in named.items()}
    return replace(benchmark, name="criteria", topics=topics, document_qrels=qrels, section_qrels={}, quotes=())


def criteria_rows(asked: Benchmark, measured: Mapping[str, Measurements]) -> Iterator[dict[str, object]]:
    """A row for each arm and kind of topic: the share whose document is first, in three or in five, as `mean`."""
    kinds = {topic.qid: topic.type for topic in asked.topics}
    within = {"title": 1, "heading": 3, "keyword": 5, "name": 10}
    for arm, of in measured.items():
        run = of.run(arm)
        for kind, first in within.items():
            qids = [qid for qid, its_kind in kinds.items() if its_kind == kind]
            good = [
                bool({docno for docno, _ in run.get(qid, [])[:first]} & set(asked.document_qrels[qid])) for qid in qids
            ]
            yield {"collection": kind, "arm": arm, "questions": len(qids), "mean": sum(good) / max(1, len(good))}


def costs(asked: Benchmark) -> Iterator[dict[str, object]]:
    """The CPU time of embedding a term of the vocabulary, in milliseconds, as `mean` over 500 terms."""
    encoder = load_encoder(EncoderSpec(), threads=1)
    terms = frequent_terms((document.text for document in asked.documents), VocabularySpec())[:_TERMS]
    encoder.encode_passages(terms[:10])
    before = time.process_time()
    encoder.encode_passages(terms)
    spent = 1000 * (time.process_time() - before) / len(terms)
    yield {"collection": "costs", "arm": "term", "questions": len(terms), "mean": spent}
