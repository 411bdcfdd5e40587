"""The methods section of a paper about a run: every number from the record of the run, every method with its source.

`methods.j2` is the text, `references.toml` the works that it cites.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ragbench.base import minimums
from ragbench.base.build import active
from ragbench.base.formatting import counted
from ragbench.evaluation.measures import PRIMARY
from ragbench.evaluation.passages import recall_within
from ragbench.evidence import arms
from ragbench.evidence.policy import Policy
from ragbench.evidence.power import POWER
from ragbench.evidence.statistics import UNSEEN
from ragbench.report import evidence
from ragbench.report.html import start_time
from ragbench.report.page_tables import join_names

if TYPE_CHECKING:
    from ragbench.results.measurements import Measurements

_FOLDER = Path(__file__).parent
_STRUCTURES = {
    "flat": "exact search",
    "hnsw": "an HNSW graph",
    "ivf_sq8": "an inverted file of one byte a component, its candidates scored again exactly,",
    "auto": "exact search or an index chosen by the number of chunks",
}
_DESIGN_WORKS = {"fractional": "fractions", "shapley": "shapley"}


@dataclass(frozen=True)
class Methods:
    """Titled paragraphs and the works they cite, in the order of their numbers."""

    paragraphs: tuple[tuple[str, str], ...]
    works: tuple[Reference, ...]

    @property
    def bibtex(self) -> str:
        """The works as entries of BibTeX."""
        return bibliography(self.works)

    @property
    def text(self) -> str:
        """Everything as plain text."""
        paragraphs = [f"{title}. {text}" for title, text in self.paragraphs]
        entries = [f"[{number}] {work.text}" for number, work in enumerate(self.works, start=1)]
        return "\n\n".join([*paragraphs, "\n".join(["References", *entries])])


def methods(results: Measurements) -> Methods:
    """The methods text of a run."""
    from jinja2 import Environment, StrictUndefined

    cite = Citations()
    configs = {arm: results.config(arm) for arm in results.arms}
    values = {
        **_collection(results),
        **_systems(results, configs),
        **_measures(results, configs[results.arms[0]]),
        **_latency(results),
        **_environment(results),
    }
    templates = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = templates.from_string((_FOLDER / "methods.j2").read_text(encoding="utf-8"))
    text = template.render(cite=cite, counted=counted, join_names=join_names, results=results, **values)
    paragraphs = (paragraph.partition("\n") for paragraph in f"\n{text}".split("\n# ")[1:])
    titled = [(title, " ".join(lines.split())) for title, _, lines in paragraphs]
    return Methods(tuple((title, text) for title, text in titled if text), tuple(cite.works))


def _collection(results: Measurements) -> dict[str, Any]:
    kinds = Counter(results.topics["type"].fillna("untyped"))
    ordered = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    return {
        "record": results.record,
        "benchmark": results.record["benchmark"],
        "answerable": len(results.values(results.arms[0], results.primary)),
        "kinds": join_names(f"{count} {kind}" for kind, count in ordered),
    }


def _systems(results: Measurements, configs: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    config = configs[results.arms[0]]
    settings = sorted({(node["k1"], node["b"]) for config in configs.values() for node in _of_words(config)})
    return {
        "configs": configs,
        "config": config,
        "design": evidence.design(results),
        "design_work": _DESIGN_WORKS.get(str(config.get("design"))),
        "pipeline": evidence.pipeline(results, results.arms[0]),
        "used": {stage for config in configs.values() for stage in stages(config)},
        "fields": {field for config in configs.values() for field in _fields(config)},
        "bm25_parameters": join_names([f"k1 = {k1:g} and b = {b:g}" for k1, b in settings]),
        "encoder": config["index"]["encoder"]["name"],
        "structure": _STRUCTURES[config["index"]["dense"]["kind"]],
        "fusions": _fusions(configs),
        "stage_sentences": _SENTENCES,
        "stage_works": OF_STAGE,
        "rerankers": sorted({c["p6"]["model"] for c in configs.values() if "_target_" in (c.get("p6") or {})}),
    }


_FUSIONS = {
    "rrf": ("Rankings are fused by reciprocal rank", "rrf"),
    "convex": ("Rankings are fused by a weighted sum of normalised scores", "convex"),
    "dbsf": ("Rankings are fused by a sum of scores, scaled by three standard deviations around their mean", ""),
}
"""The sentence for a method of fusion and the name of the work that it follows."""

_SENTENCES = {
    "ExpandSynonyms": "Synonyms come from WordNet",
    "SupposeAnswer": "Hypothetical answers are embedded instead of queries",
    "BoostCommunity": "Communities of the link graph are found by the Louvain method",
    "Diversify": "Results are diversified by maximal marginal relevance",
    "Rerank": "The first results are re-ranked by a cross-encoder",
}


def stages(config: Mapping[str, Any]) -> Iterator[str]:
    """The class names of the stages that a configuration turns on, in the order they run."""
    return (str(node["_target_"]).rpartition(".")[2] for _, node in active(config))


def _fusions(configs: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, str]]:
    """The sentences and works of the fusions of all configurations."""
    nodes = [node for config in configs.values() for _, node in active(config)]
    methods = {node.get("method", "rrf") for node in nodes if str(node["_target_"]).endswith(".Fuse")}
    return [_FUSIONS[method] for method in _FUSIONS if method in methods]


def _fields(config: Mapping[str, Any]) -> set[str]:
    nodes = (*_of_words(config), config.get("p4") or {}, config.get("p9") or {})
    return {str(name) for node in nodes for name in (node.get("fields") or {})}


def _of_words(config: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The lexical retrieval stages."""
    return [node for _, node in active(config) if str(node["_target_"]).endswith(".RetrieveLexical")]


def _measures(results: Measurements, config: Mapping[str, Any]) -> dict[str, Any]:
    primary = results.primary
    return {
        "primary": primary,
        "secondary": [str(name) for name in config["measures"] if name != primary],
        "levels": set(results.per_query["level"]),
        "passage_measure": PRIMARY,
        "policy": Policy.of(config) if len(results.arms) > 1 else None,
        "unseen": UNSEEN,
        "power": POWER,
        "per_type": minimums.PER_TYPE,
        "recall_measure": recall_within(config["context_tokens"]),
        "recall_effects": len(results.arms) > 1 and evidence.effects(results)["recall_effect"].notna().any(),
    }


def _latency(results: Measurements) -> dict[str, Any]:
    spec = results.record["latency"]
    timed = min(int(spec["queries"]), int(results.record["topics"])) if spec["enabled"] else 0
    return {
        "latency": spec,
        "timed": timed,
        "warmup": min(int(spec["warmup"]), timed) if spec["enabled"] else 0,
        "disturbed": arms.disturbed(results.record),
        "cold_start": len(results.latency) and results.latency["stage"].str.startswith("cold ").any(),
    }


def _environment(results: Measurements) -> dict[str, Any]:
    described = results.record["environment"]
    models = {name: digest for models in results.record["models"].values() for name, digest in models.items()}
    return {
        "environment": described,
        "packages": [f"{name} {version}" for name, version in sorted(described["packages"].items())],
        "models": sorted(models.items()),
        "started": start_time(results),
    }


@dataclass(frozen=True)
class Reference:
    """A publication; `authors` are `Family, Given` in order, `doi` is empty where there is none."""

    key: str
    authors: tuple[str, ...]
    title: str
    venue: str
    year: int
    doi: str = ""

    @property
    def text(self) -> str:
        """An entry of a list of references, without a link: the report makes no requests and has no outside links."""
        names = ", ".join(map(_short, self.authors))
        return f"{names}: {self.title}. {self.venue}, {self.year}." + (f" doi:{self.doi}" if self.doi else "")

    @property
    def bibtex(self) -> str:
        """As BibTeX, accents kept as Unicode."""
        fields = {
            "author": " and ".join(self.authors),
            "title": f"{{{self.title}}}",
            "howpublished": self.venue,
            "year": str(self.year),
            "doi": self.doi,
        }
        lines = "".join(f"  {name:<12} = {{{value}}},\n" for name, value in fields.items() if value)
        return f"@misc{{{self.key},\n{lines}}}"


def _short(author: str) -> str:
    family, first_names = author.split(", ", 1)
    return " ".join([*(f"{name[0]}." for name in first_names.split()), family])


def _key(family: str, year: int) -> str:
    plain = unicodedata.normalize("NFKD", family).encode("ascii", "ignore").decode()
    return re.sub(r"\W", "", plain).lower() + str(year)


def _work(authors: str, title: str, venue: str, year: int, doi: str = "") -> Reference:
    names = tuple(authors.split(" and "))
    return Reference(_key(names[0].split(",")[0], year), names, title, venue, year, doi)


_TOML = (_FOLDER / "references.toml").read_text(encoding="utf-8")
WORKS: Mapping[str, Reference] = {name: _work(**work) for name, work in tomllib.loads(_TOML).items()}
"""The works by name."""

OF_STAGE = {
    "RetrieveDense": "faiss",
    "RetrieveLexical": "bm25",
    "Rerank": "cross-encoder",
    "Diversify": "mmr",
    "SupposeAnswer": "hyde",
    "BoostCommunity": "louvain",
    "ExpandSynonyms": "wordnet",
}
"""The name of the work that a stage follows, by the class of the stage."""


class Citations:
    """Numbers works in the order they are first cited: `[1]`, `[2, 3]`."""

    def __init__(self) -> None:
        """No work cited yet."""
        self.works: list[Reference] = []

    def __call__(self, name: str) -> str:
        """The number of a work of `WORKS` in brackets."""
        if WORKS[name] not in self.works:
            self.works.append(WORKS[name])
        return f"[{self.works.index(WORKS[name]) + 1}]"


def bibliography(works: Iterable[Reference]) -> str:
    """All works as BibTeX."""
    return "\n\n".join(work.bibtex for work in works)
