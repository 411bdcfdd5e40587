"""Search of a collection in several languages: which analyzer and which encoder find its pages.

    python -m research.mixed_languages FOLDER FOLDER [FOLDER ...] [--parts 2] [--work WORK]

Each folder is a site in one language: `vault/`, `queries.jsonl` and `qrels/test.tsv`, with the same paths and query ids
in all. A mixed vault takes each page from one folder: the pages are divided into `--parts` parts by a digest of their
path, of which each further folder gives one and the first folder the others. Each part has its turn with each folder. A
query is asked in the language of its best page (`same`), and in every other one (`other`).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ragbench.index.language_detection import language
from ragbench.index.languages import analyzers_for
from ragbench.workbench import Experiment

PRIMARY = "nDCG@10"


@dataclass(frozen=True)
class Site:
    """A site in one language, named by its folder."""

    folder: Path
    pages: frozenset[str]
    queries: Mapping[str, str]
    best: Mapping[str, str]  # the page with the highest grade of a query
    qrels: Mapping[str, list[tuple[str, int]]]

    @staticmethod
    def of(folder: Path) -> Site:
        """Read the site in a folder."""
        rows = [line.split("\t") for line in (folder / "qrels" / "test.tsv").read_text().splitlines()[1:]]
        qrels: dict[str, list[tuple[str, int]]] = {}
        for qid, page, grade in rows:
            qrels.setdefault(qid, []).append((page, int(grade)))
        queries = [json.loads(line) for line in (folder / "queries.jsonl").read_text().splitlines()]
        pages = frozenset(path.relative_to(folder / "vault").as_posix() for path in (folder / "vault").rglob("*.md"))
        best = {qid: max(pages_of, key=lambda judged: judged[1])[0] for qid, pages_of in qrels.items()}
        return Site(folder, pages, {row["_id"]: row["text"] for row in queries}, best, qrels)


def analyzer_of(site: Site) -> str:
    """The analyzer of the language of the site's longest page."""
    longest = max((site.folder / "vault").rglob("*.md"), key=lambda path: path.stat().st_size)
    return analyzers_for(language(longest.read_text(encoding="utf-8")))[0]


def part_of(page: str, parts: int) -> int:
    """The part of a page, by a digest of its path."""
    return int(hashlib.sha256(page.encode()).hexdigest(), 16) % parts


def mixes(sites: list[Site], parts: int, work: Path) -> Iterator[tuple[Path, Mapping[str, Site]]]:
    """Every mixed vault with its queries, and the site of every page."""
    common = frozenset.intersection(*(site.pages for site in sites))
    for turn in range(parts):
        given = {page: (part_of(page, parts) - turn) % parts for page in common}
        site_of = {page: sites[number] if number < len(sites) else sites[0] for page, number in given.items()}
        folder = work / f"mixed-{'-'.join(site.folder.name for site in sites)}-{parts}-{turn}"
        shutil.rmtree(folder, ignore_errors=True)
        for page, site in site_of.items():
            place = folder / "vault" / page
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(site.folder / "vault" / page, place)
        yield folder, site_of


def write_queries(folder: Path, sites: list[Site], site_of: Mapping[str, Site]) -> Mapping[str, tuple[str, str]]:
    """Write queries and judgments; by query id the kind (`same`, `other`) and the language in which it is asked."""
    kinds, lines, judged = {}, [], ["query-id\tcorpus-id\tscore"]
    for site in sites:
        for qid, text in site.queries.items():
            home = site_of.get(site.best.get(qid, ""))
            if home is None:
                continue
            name = f"{site.folder.name}.{qid}"
            kinds[name] = ("same" if home is site else "other", site.folder.name)
            lines.append(json.dumps({"_id": name, "text": text}))
            judged += [f"{name}\t{page}\t{grade}" for page, grade in site.qrels[qid] if page in site_of]
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n")
    (folder / "test.tsv").write_text("\n".join(judged) + "\n")
    return kinds


def arms(names: list[str]) -> dict[str, str]:
    """The analyzer and encoder of each arm: each language alone, and all together."""
    together = "+".join(dict.fromkeys(names))
    multilingual = "index.encoder.name=multilingual"
    return {
        "English keys": "",
        **{f"{name}, multilingual": f"index.lexical.analyzer={name} {multilingual}" for name in dict.fromkeys(names)},
        f"{together}, English encoder": f"index.lexical.analyzer={together}",
        f"{together}, multilingual": f"index.lexical.analyzer={together} {multilingual}",
    }


def main(words: list[str] | None = None) -> None:
    """Print the mean of every arm by kind and language of the query."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--parts", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path("results/mixed-languages"))
    options = parser.parse_args(words)
    sites = [Site.of(folder) for folder in options.folders]
    chosen = arms([analyzer_of(site) for site in sites])
    found: dict[str, dict[tuple[str, str], list[float]]] = {name: {} for name in chosen}
    for folder, site_of in mixes(sites, options.parts, options.work):
        kinds = write_queries(folder, sites, site_of)
        data = ["data=vault", f"data.corpus={folder / 'vault'}", f"data.queries={folder / 'queries.jsonl'}"]
        data += [f"data.qrels={folder / 'test.tsv'}", "split=all", f"paths.results={folder / 'results'}"]
        data += [f"paths.cache={options.work / 'cache'}", f"paths.index={options.work / 'index'}"]
        results = Experiment.arms(
            {name: words.split() for name, words in chosen.items()}, None, "exp=recommended", *data, quick=True
        ).run()
        for name in chosen:
            for qid, value in results.values(name, PRIMARY).items():
                found[name].setdefault(kinds[str(qid)], []).append(float(value))
    columns = sorted({column for values in found.values() for column in values}, reverse=True)
    first = found[next(iter(found))]
    heads = [f"{kind}, {name} ({len(first[kind, name])})" for kind, name in columns]
    rows = {name: [float(np.mean(values[column])) for column in columns] for name, values in found.items()}
    print(table("arm", heads, rows))


def table(first: str, heads: Sequence[str], rows: Mapping[str, Sequence[float]]) -> str:
    """A table of markdown of means by row and column."""
    lines = [f"| {first} | {' | '.join(heads)} |", "| --- " * (len(heads) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(f'{mean:.3f}' for mean in means)} |" for name, means in rows.items()]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
