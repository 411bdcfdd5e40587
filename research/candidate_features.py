"""Features of candidates that the ranker does not have, for `research.first_ten`; each name is GROUP/NAME.

All are counts, shares and cosines of terms and vectors that the index keeps: they mean the same in any language.
"""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace
from typing import TYPE_CHECKING

import numpy as np

from ragbench.base.rankings import Ranking
from ragbench.extras.fit.training import Numbers, Values
from ragbench.models.resolve import CrossEncoderSpec
from ragbench.search.ranking.features import GAP, PERCENTILE, Candidates
from ragbench.search.stages.rerank import IN_CONTEXT
from ragbench.search.stages.stage import fused

if TYPE_CHECKING:
    from ragbench.base.rankings import QueryState
    from ragbench.index.index import Index
    from ragbench.models import CrossEncoder

SOURCES = ("fused", "dense", "lexical", "documents")
ABOUT = {
    "section": "heading of the section and title against the question",
    "rare": "fields that hold the two rarest terms; coverage weighted by rarity among the candidates",
    "passage": "coverage of the question by the best passage, by title, heading and passage together; BM25 of passages",
    "agree": "agreement of title and passage, of passage and page",
    "kind": "index page, siblings, digits in the path, code, density of headings and links",
    "copies": "number of near-duplicates among the candidates, nearest better candidate",
    "votes": "scores of similar candidates and of those in the same folder",
    "cosines": "cosines with all chunks, the first chunk and the mean of a page",
    "margins": "margins between the first documents of each retriever, overlap of retrievers, by question",
    "lead": "margin of a candidate in each retriever",
    "agreement": "ranks of a candidate over the retrievers",
    "cross": "logits of the cross-encoder for the best passages of the first five documents, cut to 128 tokens",
}
"""Groups of features."""
_QUERY = ("margins",)  # the same for all candidates of a question
_RAW_MEANS_NOTHING = ("cosines",)  # differs between collections
_AS_IT_IS = ("cross",)  # has its relative forms, and no value for documents that the model does not read
_WITH_GAP = ("passage", "cosines", "section", "votes")
CROSS_ENCODER = CrossEncoderSpec(max_length=128, numerics="exact")
_CROSS_READS = 5
_NEAR, _SAME = 0.9, 0.95  # cosines of passages and of mean vectors of near-duplicates


class Site:
    """What the features read of a collection."""

    def __init__(self, index: Index, cross_encoder: CrossEncoder) -> None:
        """Read an index with the parts `terms` and `dense` once."""
        self.table, self.terms = table, terms = index.chunks, index.part("terms")
        self.cross_encoder = cross_encoder
        self.vectors = np.asarray(index.part("dense").vectors, dtype=np.float32)
        self.titles = [self._set(title) for title in table.titles]
        self.headings = [self._set(" ".join(table.header_path(n)[-1:])) for n in range(table.n_retrievable)]
        self.heading_idf = np.array([terms.idf(of).sum() for of in self.headings])
        self.title_idf = np.array([terms.idf(of).sum() for of in self.titles])
        sums = np.zeros((table.n_documents, self.vectors.shape[1]), dtype=np.float32)
        np.add.at(sums, table.document[: len(self.vectors)], self.vectors)
        self.means = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-9)
        folders = [docno.rpartition("/")[0] for docno in table.docnos]
        names = {name: number for number, name in enumerate(dict.fromkeys(folders))}
        self.folder = np.array([names[folder] for folder in folders])
        code = np.zeros(table.n_documents)
        np.add.at(code, table.document[table.chunk_of_block], [len(text) for text in table.blocks["code"].to_pylist()])
        sizes = np.maximum(terms.standing[0], 1)
        last = [docno.rpartition("/")[2].lower() for docno in table.docnos]
        self.kinds: dict[str, Values] = {
            "kind/index": np.array(
                [
                    name in ("index", "readme", "_index") or docno in names
                    for name, docno in zip(last, table.docnos, strict=True)
                ],
                float,
            ),
            "kind/siblings": np.bincount(self.folder)[self.folder].astype(float),
            "kind/digits": np.array([sum(map(str.isdigit, docno)) / len(docno) for docno in table.docnos]),
            "kind/code": code / np.maximum(table.document_column("size_bytes"), 1),
            "kind/headings": np.array([len(of) for of in table.document_column("headings")]) / sizes,
            "kind/links": np.array([len(of) for of in table.links]) / sizes,
        }

    def _set(self, text: str) -> Numbers:
        terms = np.unique(self.terms.of(text))
        return terms[terms >= 0]


def of_links(name: str) -> bool:
    """Whether a feature reads links or their texts."""
    return name.startswith("kind/links") or "anchors" in name


def table(state: QueryState, site: Site, depth: int) -> dict[str, Values]:
    """All features of the candidates of a state's first `depth` fused hits, each of shape (n,)."""
    from scipy.stats import rankdata

    out: dict[str, Values] = {}
    for name, values in _absolute(state, site, depth).items():
        group = name.partition("/")[0]
        if group not in _RAW_MEANS_NOTHING:
            out[name] = values
        if group in _AS_IT_IS:
            continue
        if group not in _QUERY:
            out[f"{name}.{PERCENTILE}"] = (rankdata(values) - 1) / max(len(values) - 1, 1)
        if group in _WITH_GAP:
            out[f"{name}.{GAP}"] = values - values.max()
    return out


def _absolute(state: QueryState, site: Site, depth: int) -> dict[str, Values]:
    hits = fused(state).head(depth)
    at = Candidates.of(hits, SimpleNamespace(chunks=site.table))
    out = _of_words(state, site, at, hits) | _of_vectors(state, site, at) | _of_cross_encoder(state, site, at)
    out |= {name: values[at.documents] for name, values in site.kinds.items()}
    return out | _of_retrievers(state, site, at)


def _share(part: Values, whole: Values | float) -> Values:
    whole = np.broadcast_to(np.asarray(whole, dtype=float), np.shape(part))
    return np.divide(part, whole, out=np.zeros(np.shape(part)), where=whole > 0)


def _of_words(state: QueryState, site: Site, at: Candidates, hits: Ranking) -> dict[str, Values]:
    terms, docs, n = site.terms, at.documents, len(at.documents)
    query = np.array(list(dict.fromkeys(terms.of(state.query.text).tolist())) or [-1], dtype=np.int64)
    idf = terms.idf(query)
    total = float(idf.sum()) or 1.0
    chunks, counts = site.table.chunks_of_each(docs)
    starts, of = counts.cumsum() - counts, np.arange(n).repeat(counts)
    row = {int(chunk): number for number, chunk in enumerate(chunks)}
    lead = np.array([row[int(chunk)] for chunk in at.leads])
    is_hit = np.zeros(len(chunks), dtype=bool)
    is_hit[[row[int(chunk)] for chunk in hits.chunks]] = True

    def best(values: Values) -> Values:
        return np.asarray(np.maximum.reduceat(values, starts))

    def best_hit(values: Values) -> Values:
        return best(np.where(is_hit, values, 0.0))

    owner, _, which = terms.matches(chunks.astype(np.int64), query, apart=1)
    tf = np.zeros((len(chunks), len(query)))
    np.add.at(tf, (owner, which), 1.0)
    holds = tf > 0
    title, path, anchors, facts, headings, document = terms.fields(docs, at.leads, query)[0]
    in_heading = np.array([np.isin(query, site.headings[chunk]) for chunk in chunks]).reshape(holds.shape)
    named = holds | in_heading | title[of]
    lengths = terms.length(chunks.astype(np.int64))
    saturated = tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * lengths / max(lengths.mean(), 1.0))[:, None])
    cover, together, bm25 = (values @ idf / total for values in (holds, named, saturated))
    out = {
        "passage/cover.hits": best_hit(cover),
        "passage/cover.best": best(cover),
        "passage/named.lead": together[lead],
        "passage/named.hits": best_hit(together),
        "passage/named.best": best(together),
        "passage/bm25.lead": bm25[lead],
        "passage/bm25.best": best(bm25),
    }
    matched = in_heading @ idf
    heading_idf = site.heading_idf[chunks]
    f1 = _share(2 * matched, np.where(heading_idf > 0, heading_idf + total, 0.0))
    both_idf = np.array(
        [terms.idf(np.union1d(site.titles[d], site.headings[c])).sum() for d, c in zip(docs, at.leads, strict=True)]
    )
    out |= {
        "section/cover.lead": matched[lead] / total,
        "section/share.lead": _share(matched, heading_idf)[lead],
        "section/f1.lead": f1[lead],
        "section/cover.best": best(matched / total),
        "section/f1.best": best(f1),
        "section/f1.hits": best_hit(f1),
        "section/title.f1": 2 * (title @ idf) / (site.title_idf[docs] + total),
        "section/name.f1": 2 * ((title | in_heading[lead]) @ idf) / (both_idf + total),
    }
    held = np.array([k for k in np.argsort(-idf, kind="stable") if document[:, k].any()] or [0])
    fields = {"title": title, "path": path, "facts": facts, "headings": headings, "anchors": anchors, "page": document}
    for place, name in enumerate(("first", "second")):
        k = held[min(place, len(held) - 1)]
        out |= {f"rare/{name}.{field}": values[:, k].astype(float) for field, values in fields.items()}
        out |= {
            f"rare/{name}.lead": holds[lead, k].astype(float),
            f"rare/{name}.tf": np.log1p(np.add.reduceat(tf[:, k], starts)),
        }
    among = document.mean(axis=0)
    telling = np.log1p((1 - among) / (among + 1 / n))
    for name, values in (("page", document), ("lead", holds[lead]), ("named", named[lead])):
        out[f"rare/telling.{name}"] = _share(values @ telling, telling.sum())
    out["rare/lacks"] = (~document * idf).max(axis=1, initial=0.0) / total
    starts_of, body = terms._starts, terms._body
    texts = [np.unique(body[starts_of[chunk] : starts_of[chunk + 1]]) for chunk in at.leads]
    in_lead = [terms.idf(np.intersect1d(site.titles[d], text)).sum() for d, text in zip(docs, texts, strict=True)]
    out |= {
        "agree/title.in.lead": _share(np.array(in_lead), site.title_idf[docs]),
        "agree/both": (title & holds[lead]) @ idf / total,
        "agree/only.title": (title & ~holds[lead]) @ idf / total,
        "copies/same.title": np.array(
            [sum(np.array_equal(site.titles[a], site.titles[b]) for b in docs) for a in docs], float
        ),
    }
    return out


def _of_vectors(state: QueryState, site: Site, at: Candidates) -> dict[str, Values]:
    docs, norm, n = at.documents, at.norm, len(at.documents)
    query = state.rankings["dense"].query_vector
    chunks, counts = site.table.chunks_of_each(docs)
    starts = counts.cumsum() - counts
    cosine = site.vectors[chunks] @ query
    ordered = [np.sort(part)[::-1] for part in np.split(cosine, starts[1:])]
    leads, means = site.vectors[at.leads], site.means[docs]
    near, alike = leads @ leads.T, means @ means.T
    same_folder = (site.folder[docs][:, None] == site.folder[docs]).astype(float)
    others = 1 - np.eye(n)
    near_others, alike_others = near * others, alike * others
    better = norm[None, :] > norm[:, None]
    top = np.argsort(-norm, kind="stable")[:5]
    close, closer = np.exp((near - 1) * 10) * others, np.exp((alike - 1) * 20) * others
    return {
        "agree/typical": (leads * means).sum(axis=1),
        "cosines/best": np.array([part[0] for part in ordered]),
        "cosines/second": np.array([part[min(1, len(part) - 1)] for part in ordered]),
        "cosines/third": np.array([part[min(2, len(part) - 1)] for part in ordered]),
        "cosines/lead": leads @ query,
        "cosines/mean": means @ query,
        "cosines/opening": cosine[starts],
        "copies/nearest": near_others.max(axis=1),
        "copies/passages": (near_others > _NEAR).sum(axis=1).astype(float),
        "copies/pages": (alike_others > _SAME).sum(axis=1).astype(float),
        "copies/better": np.where(better, near_others, 0.0).max(axis=1),
        "votes/folder": _share((same_folder * others) @ norm, norm.sum()),
        "votes/lead": _share(close @ norm, close.sum(axis=1)),
        "votes/page": _share(closer @ norm, closer.sum(axis=1)),
        "votes/top": _share(alike[:, top] @ norm[top], norm[top].sum()),
    }


def _of_cross_encoder(state: QueryState, site: Site, at: Candidates) -> dict[str, Values]:
    first = np.argsort(-at.norm, kind="stable")[:_CROSS_READS]
    passages = [IN_CONTEXT.passage(site.table, int(chunk)) for chunk in at.leads[first]]
    logits = site.cross_encoder.score(state.query.text, passages).astype(float)
    out = {name: np.full(len(at.documents), np.nan) for name in ("cross/logit", "cross/gap", "cross/rank")}
    out["cross/logit"][first] = logits
    out["cross/gap"][first] = logits - logits.max()
    out["cross/rank"][first] = (-logits).argsort(kind="stable").argsort(kind="stable") + 1
    return out


def _of_retrievers(state: QueryState, site: Site, at: Candidates) -> dict[str, Values]:
    docs, n = at.documents.tolist(), len(at.documents)
    by_question: dict[str, float] = {}
    out: dict[str, Values] = {}
    firsts: dict[str, list[int]] = {}
    ranks = []
    for source in SOURCES:
        ranking = fused(state) if source == "fused" else state.rankings.get(source, Ranking.empty())
        scores: dict[int, float] = {}
        for document, score in zip(site.table.document[ranking.chunks].tolist(), ranking.scores.tolist(), strict=True):
            scores.setdefault(document, score)
        firsts[source] = list(scores)
        ordered = np.array(list(scores.values()) or [0.0])
        span = float(ordered[0] - ordered[-1]) or 1.0
        norm = (ordered - ordered[-1]) / span
        for place in (1, 2, 9):
            by_question[f"margins/{source}.{place}"] = 1 - float(norm[min(place, len(norm) - 1)])
        by_question[f"margins/{source}.ratio"] = float(ordered[min(1, len(ordered) - 1)] / (ordered[0] or 1.0))
        own = np.array([(scores.get(document, ordered[-1]) - ordered[-1]) / span for document in docs])
        out[f"lead/{source}"] = np.where(own >= 1, 1 - norm[min(1, len(norm) - 1)], own - 1)
        rank = {document: place for place, document in enumerate(scores, start=1)}
        ranks.append([rank.get(document, 200) for document in docs])
    for one, other in combinations(SOURCES, 2):
        by_question[f"margins/{one}.{other}"] = len({*firsts[one][:5]} & {*firsts[other][:5]}) / 5
    first = [firsts[source][0] for source in SOURCES[1:] if firsts[source]]
    by_question["margins/agreeing"] = float(len(first) - len(set(first)))
    of = np.array(ranks[1:], dtype=float)
    return (
        out
        | {name: np.full(n, value) for name, value in by_question.items()}
        | {
            "agreement/best": of.min(axis=0),
            "agreement/worst": of.max(axis=0),
            "agreement/median": np.median(of, axis=0),
            "agreement/reciprocal": (1 / of).mean(axis=0),
            "agreement/three": (of <= 3).sum(axis=0).astype(float),
            "agreement/ten": (of <= 10).sum(axis=0).astype(float),
            "agreement/ahead": np.log(of[0] / of[1]),
        }
    )
