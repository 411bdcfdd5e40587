"""The works that the methods text cites, and the stages that they describe."""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).with_name("references.toml")


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


WORKS: Mapping[str, Reference] = {
    name: _work(**work) for name, work in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}
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
