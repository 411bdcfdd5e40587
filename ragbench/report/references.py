"""The works that the methods text cites, and the stages that they describe."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass


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
    family, given = author.split(", ", 1)
    return " ".join([*(f"{name[0]}." for name in given.split()), family])


def _key(family: str, year: int) -> str:
    plain = unicodedata.normalize("NFKD", family).encode("ascii", "ignore").decode()
    return re.sub(r"\W", "", plain).lower() + str(year)


def _work(authors: str, title: str, venue: str, year: int, doi: str = "") -> Reference:
    names = tuple(authors.split("; "))
    return Reference(_key(names[0].split(",")[0], year), names, title, venue, year, doi)


NDCG = _work(
    "Järvelin, Kalervo; Kekäläinen, Jaana",
    "Cumulated gain-based evaluation of IR techniques",
    "ACM Transactions on Information Systems 20(4)",
    2002,
    "10.1145/582415.582418",
)
IR_MEASURES = _work(
    "MacAvaney, Sean; Macdonald, Craig; Ounis, Iadh", "Streamlining Evaluation with ir-measures", "ECIR", 2022
)
RANDOMISATION = _work(
    "Smucker, Mark D.; Allan, James; Carterette, Ben",
    "A comparison of statistical significance tests for information retrieval evaluation",
    "CIKM",
    2007,
    "10.1145/1321440.1321528",
)
NEVER_ZERO = _work(
    "Phipson, Belinda; Smyth, Gordon K.",
    "Permutation P-values should never be zero: calculating exact P-values when permutations are randomly drawn",
    "Statistical Applications in Genetics and Molecular Biology 9(1)",
    2010,
    "10.2202/1544-6115.1585",
)
NOT_WORSE = _work(
    "Berger, Roger L.",
    "Multiparameter Hypothesis Testing and Acceptance Sampling",
    "Technometrics 24(4)",
    1982,
    "10.2307/1267823",
)
MAX_T = _work("Westfall, Peter H.; Young, S. Stanley", "Resampling-Based Multiple Testing", "Wiley", 1993)
TOST = _work(
    "Schuirmann, Donald J.",
    "A comparison of the Two One-Sided Tests Procedure and the Power Approach for assessing the equivalence of average "
    "bioavailability",
    "Journal of Pharmacokinetics and Biopharmaceutics 15(6)",
    1987,
    "10.1007/BF01068419",
)
FEW_TOPICS = _work(
    "Buckley, Chris; Voorhees, Ellen M.",
    "Evaluating evaluation measure stability",
    "SIGIR",
    2000,
    "10.1145/345508.345543",
)
RRF = _work(
    "Cormack, Gordon V.; Clarke, Charles L. A.; Büttcher, Stefan",
    "Reciprocal rank fusion outperforms Condorcet and individual rank learning methods",
    "SIGIR",
    2009,
    "10.1145/1571941.1572114",
)
BM25 = _work(
    "Robertson, Stephen; Zaragoza, Hugo",
    "The Probabilistic Relevance Framework: BM25 and Beyond",
    "Foundations and Trends in Information Retrieval 3(4)",
    2009,
    "10.1561/1500000019",
)
BM25F = _work(
    "Robertson, Stephen; Zaragoza, Hugo; Taylor, Michael",
    "Simple BM25 extension to multiple weighted fields",
    "CIKM",
    2004,
    "10.1145/1031171.1031181",
)
ANSERINI = _work(
    "Yang, Peilin; Fang, Hui; Lin, Jimmy",
    "Anserini: Enabling the Use of Lucene for Information Retrieval Research",
    "SIGIR",
    2017,
    "10.1145/3077136.3080721",
)
FAISS = _work(
    "Douze, Matthijs; Guzhva, Alexandr; Deng, Chengqi; Johnson, Jeff; Szilvasy, Gergely; Mazaré, Pierre-Emmanuel; "
    "Lomeli, Maria; Hosseini, Lucas; Jégou, Hervé",
    "The Faiss library",
    "arXiv:2401.08281",
    2024,
)
BGE = _work(
    "Xiao, Shitao; Liu, Zheng; Zhang, Peitian; Muennighoff, Niklas; Lian, Defu; Nie, Jian-Yun",
    "C-Pack: Packed Resources For General Chinese Embeddings",
    "SIGIR",
    2024,
    "10.1145/3626772.3657878",
)
CROSS_ENCODER = _work("Nogueira, Rodrigo; Cho, Kyunghyun", "Passage Re-ranking with BERT", "arXiv:1901.04085", 2019)
MINILM = _work(
    "Wang, Wenhui; Wei, Furu; Dong, Li; Bao, Hangbo; Yang, Nan; Zhou, Ming",
    "MiniLM: Deep Self-Attention Distillation for Task-Agnostic Compression of Pre-Trained Transformers",
    "NeurIPS",
    2020,
)
MMR = _work(
    "Carbonell, Jaime; Goldstein, Jade",
    "The use of MMR, diversity-based reranking for reordering documents and producing summaries",
    "SIGIR",
    1998,
    "10.1145/290941.291025",
)
HYDE = _work(
    "Gao, Luyu; Ma, Xueguang; Lin, Jimmy; Callan, Jamie",
    "Precise Zero-Shot Dense Retrieval without Relevance Labels",
    "ACL",
    2023,
    "10.18653/v1/2023.acl-long.99",
)
LOUVAIN = _work(
    "Blondel, Vincent D.; Guillaume, Jean-Loup; Lambiotte, Renaud; Lefebvre, Etienne",
    "Fast unfolding of communities in large networks",
    "Journal of Statistical Mechanics: Theory and Experiment",
    2008,
    "10.1088/1742-5468/2008/10/P10008",
)
WORDNET = _work(
    "Miller, George A.",
    "WordNet: A Lexical Database for English",
    "Communications of the ACM 38(11)",
    1995,
    "10.1145/219717.219748",
)
FRACTIONS = _work(
    "Box, George E. P.; Hunter, J. Stuart",
    "The 2^(k-p) Fractional Factorial Designs, Part I",
    "Technometrics 3(3)",
    1961,
    "10.1080/00401706.1961.10489951",
)
SHAPLEY = _work(
    "Castro, Javier; Gómez, Daniel; Tejada, Juan",
    "Polynomial calculation of the Shapley value based on sampling",
    "Computers and Operations Research 36(5)",
    2009,
    "10.1016/j.cor.2008.04.004",
)

OF_STAGE = {
    "RetrieveDense": FAISS,
    "RetrieveLexical": BM25,
    "Fuse": RRF,
    "Rerank": CROSS_ENCODER,
    "Diversify": MMR,
    "SupposeAnswer": HYDE,
    "BoostCommunity": LOUVAIN,
    "ExpandSynonyms": WORDNET,
}
"""The work that a stage follows, by the class of the stage."""


class Citations:
    """Numbers works in the order they are first cited: `[1]`, `[2, 3]`."""

    def __init__(self) -> None:
        """No work cited yet."""
        self.works: list[Reference] = []

    def __call__(self, *works: Reference) -> str:
        """The numbers of these works in brackets."""
        for work in works:
            if work not in self.works:
                self.works.append(work)
        return f"[{', '.join(str(self.works.index(work) + 1) for work in works)}]"


def bibliography(works: Iterable[Reference]) -> str:
    """All works as BibTeX."""
    return "\n\n".join(work.bibtex for work in works)
