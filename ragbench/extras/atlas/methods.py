"""The methods section of a paper about a run: every number from the record of the run, every method with its source."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ragbench.base import minimums
from ragbench.base.build import active
from ragbench.base.formatting import counted
from ragbench.evaluation.measures import PASSAGE, PRIMARY, SECTION
from ragbench.evaluation.passages import recall_within
from ragbench.evidence import arms
from ragbench.evidence.policy import Policy
from ragbench.evidence.power import POWER
from ragbench.evidence.statistics import UNSEEN
from ragbench.extras.atlas.references import OF_STAGE, Citations, Reference, bibliography
from ragbench.report import evidence
from ragbench.report.html import start_time
from ragbench.report.page_tables import join_names

if TYPE_CHECKING:
    from ragbench.results.measurements import Measurements

_DIGITS = 12  # of a digest, enough to tell collections and models apart in print
_STRUCTURES = {
    "flat": "exact search",
    "hnsw": "an HNSW graph",
    "ivf_sq8": "an inverted file of one byte a component, its candidates scored again exactly,",
    "auto": "exact search or an index chosen by the number of chunks",
}


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
    cite = Citations()
    configs = {arm: results.config(arm) for arm in results.arms}
    paragraphs = [
        ("Collection", _collection(results)),
        ("Systems", _systems(results, configs, cite)),
        ("Measures", _measures(results, configs[results.arms[0]], cite)),
        ("Statistics", _statistics(results, configs[results.arms[0]], cite)),
        ("Latency", _latency(results)),
        ("Environment", _environment(results)),
    ]
    return Methods(tuple((title, text) for title, text in paragraphs if text), tuple(cite.works))


def _collection(results: Measurements) -> str:
    benchmark, topics = results.record["benchmark"], results.topics
    answerable = len(results.values(results.arms[0], evidence.primary(results)))
    kinds = Counter(topics["type"].fillna("untyped"))
    ordered = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    counts = join_names(f"{count} {kind}" for kind, count in ordered)
    text = (
        f"The benchmark '{benchmark['name']}' (digest {benchmark['digest'][:_DIGITS]}) has {benchmark['documents']} "
        f"documents. We ran the {counted(len(topics), 'query')} of the split '{results.record['split']}' ({counts})."
    )
    if results.topics_origin:
        text += f" Not all of them are human-written queries: they are {results.topics_origin}; {benchmark['version']}."
    if answerable < len(topics):
        text += (
            f" {answerable} of them have a relevant document. The others are excluded from these measures; for them we "
            "report the share without results (Silence)."
        )
    return text


def _systems(results: Measurements, configs: Mapping[str, Mapping[str, Any]], cite: Citations) -> str:
    first = results.arms[0]
    design, sentence = evidence.design(results), evidence.pipeline(results, first)
    parts = [f"We compare {len(configs)} configurations." if len(configs) > 1 else "We measure one configuration."]
    if design:
        parts.append(f"Design: {design}{_design_source(configs[first], cite)}")
    if sentence:
        parts.append(f"The pipeline of '{first}' is: {sentence}")
    index = configs[first]["index"]
    used = {stage for config in configs.values() for stage in stages(config)}
    if "RetrieveLexical" in used:
        fields = {f for config in configs.values() for f in _fields(config)}
        formula = f"BM25F {cite('bm25f')}" if len(fields) > 1 else f"BM25 {cite('bm25')}"
        settings = sorted({(node["k1"], node["b"]) for config in configs.values() for node in _of_words(config)})
        parameters = join_names([f"k1 = {k1:g} and b = {b:g}" for k1, b in settings])
        parts.append(
            f"Lexical retrieval uses {formula} with {parameters} in Lucene, as "
            f"packaged by Anserini {cite('anserini')}, analyzer '{index['lexical']['analyzer']}'."
        )
    if "RetrieveDense" in used:
        encoder, kind = index["encoder"]["name"], index["dense"]["kind"]
        source = f" {cite('bge')}" if encoder.startswith("bge-") else ""
        exact = _STRUCTURES[kind]
        parts.append(
            f"Dense retrieval uses the inner product of unit vectors from {encoder}{source}, {exact} in FAISS "
            f"{cite('faiss')}."
        )
    parts += [f"{sentence} {cite(work)}." if work else f"{sentence}." for sentence, work in _fusions(configs)]
    for stage, sentence in _SENTENCES.items():
        if stage in used:
            parts.append(f"{sentence} {cite(OF_STAGE[stage])}.")
    rerankers = sorted({c["p6"]["model"] for c in configs.values() if "_target_" in (c.get("p6") or {})})
    if rerankers:
        source = f" {cite('minilm')}" if any("MiniLM" in name for name in rerankers) else ""
        parts.append(f"The cross-encoder is {join_names(rerankers)}{source}.")
    return " ".join(parts)


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


def _design_source(config: Mapping[str, Any], cite: Citations) -> str:
    source = {"fractional": "fractions", "shapley": "shapley"}.get(str(config.get("design")))
    return f" {cite(source)}" if source else ""


def _measures(results: Measurements, config: Mapping[str, Any], cite: Citations) -> str:
    primary = evidence.primary(results)
    others = [str(name) for name in config["measures"] if name != primary]
    source = f" with linear gain {cite('ndcg')}" if primary.startswith("nDCG") else ""
    version = results.record["environment"]["packages"].get("ir-measures", "")
    text = (
        f"The primary measure of documents is {primary}{source}, fixed before the experiment. Secondary measures are "
        f"{join_names(others)}. "
        if others
        else f"The only measure of documents is {primary}{source}. "
    )
    text += f"All are computed by ir-measures {version} {cite('ir-measures')}. A document is scored by its best chunk"
    levels = set(results.per_query["level"])
    if SECTION in levels:
        text += "; judged sections are evaluated too, each by the best chunk that overlaps it"
    if PASSAGE in levels:
        text += (
            f". The second primary measure is {PRIMARY} of passages as they are returned: the gain of a result is "
            "the best grade among the judged sections that it covers and no earlier result covered. The ideal ranking "
            f"uses the same chunks. Tokens, and recall within {config['context_tokens']:,} tokens, are counted by the "
            f"tokenizer of {config['index']['encoder']['name']}"
        )
    return text + "."


def _statistics(results: Measurements, config: Mapping[str, Any], cite: Citations) -> str:
    if len(results.arms) < 2:
        return ""
    policy = Policy.of(config)
    spec, budget = policy.statistics, policy.budget
    limit = (
        "no latency budget is set"
        if budget.p95_ms is None
        else f"the budget is {budget.p95_ms:g} ms of added p95 latency"
        + (f", or {budget.of_rerank_ms:g} ms if re-ranking is turned on" if budget.of_rerank_ms is not None else "")
    )
    second = (
        f"{recall_within(config['context_tokens'])} of passages is a secondary measure: its comparisons are a separate "
        "family, and no verdict depends on them. "
        if evidence.effects(results)["recall_effect"].notna().any()
        else ""
    )
    return (
        "Comparisons are paired by query; the test statistic is t of the mean difference. p values are adjusted for "
        f"all comparisons of a table, at both levels, by single-step max-T {cite('max-t')}. The null distribution is "
        f"computed twice: by {spec.draws:,} sign flips of whole queries (all, if there are fewer) "
        f"{cite('randomisation')} and by as many bootstrap samples centred at 0; p = (b + 1) / (m + 1) "
        f"{cite('never-zero')}, and the larger p counts. A confidence interval contains the means that this test does "
        f"not reject. The intervals are simultaneous at {results.interval}, and allow for {UNSEEN[0]} (from 60 "
        f"queries: {UNSEEN[1]}) unseen queries that lose or gain everything. A configuration is equivalent to the "
        f"baseline if two one-sided tests {cite('tost')} place the difference within ±{spec.smallest_effect:g}. The "
        "minimum detectable effect is the true difference that a comparison detects with a power of "
        f"{100 * POWER:.0f}%, simulated from the observed differences. Quality is better if documents or passages are "
        f"significantly better and the other level is non-inferior: its one-sided {100 * spec.confidence:g}% bound "
        f"excludes a loss of {spec.smallest_effect:g} {cite('not-worse')}. Unjudged results count as not relevant. If "
        "the sign of an effect changes when they get the average relevance of judged results at their rank, the "
        "effect is inconclusive; this is not checked for known-item queries. A configuration is adopted if quality "
        f"is better and latency is within the budget ({limit}), and rejected if quality is worse or latency is over "
        f"the budget. Means for query types with fewer than {minimums.PER_TYPE} queries are marked as unstable "
        f"{cite('few-topics')}. {second}The seed is {policy.seed}."
    )


def _latency(results: Measurements) -> str:
    spec = results.record["latency"]
    if not spec["enabled"] or not len(results.latency):
        return "Latency was not measured."
    queries = min(int(spec["queries"]), int(results.record["topics"]))
    warmup = min(int(spec["warmup"]), queries)
    text = (
        f"Service time in a closed loop: after {warmup} warm-up queries, every configuration answers {queries} "
        f"sampled queries {_times(int(spec['rounds']))}, one at a time, on {_count(int(spec['threads']), 'thread')} "
        "and without caches of earlier queries. The order of configurations is random for every query (seed "
        f"{spec['seed']}). Percentiles are interpolated linearly. Their 95% confidence intervals come from a smoothed "
        "bootstrap over queries (p50) and from order statistics (p95)."
    )
    if reason := arms.disturbed(results.record):
        text += f" The machine was busy ({reason}), so the intervals of added latency are wider."
    if results.latency["stage"].str.startswith("cold ").any():
        text += " Cold start is the latency of the first query in a new process."
    return text


def _environment(results: Measurements) -> str:
    described = results.record["environment"]
    git, packages = described["git"], described["packages"]
    commit = f" (commit {git['commit'][:_DIGITS]}{', with local changes' if git['dirty'] else ''})" if git else ""
    models = {name: digest for models in results.record["models"].values() for name, digest in models.items()}
    weights = "".join(f", {name} (SHA-256 {digest[:_DIGITS]})" for name, digest in sorted(models.items()))
    return (
        f"ragbench {described['ragbench']}{commit} on Python {described['python']} with "
        f"{join_names(f'{name} {version}' for name, version in sorted(packages.items()))}{weights}; "
        f"{described['processor']}, "
        f"{_count(int(described['cpus']), 'CPU')}, {described['memory_bytes'] / 2**30:.0f} GiB of memory, "
        f"{described['platform']}. The run of {start_time(results)} took {results.record['seconds']:.0f} s and at most "
        f"{results.record['peak_memory_bytes'] / 2**20:.0f} MiB."
    )


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
