"""What is in a folder: its kind by the names of its files, then its notes and queries in sentences, which are read."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, NamedTuple

from ragbench.base.types import ConfigError, counted, nearest
from ragbench.benchmark.lines import read_rows_of_cases
from ragbench.benchmark.names import LANGUAGE_FOLDER, TRANSLATED, Names
from ragbench.benchmark.vault import COLUMNS, load_vault, unread_answers
from ragbench.corpus.file_warning import grouped_by_kind
from ragbench.corpus.folder import MARKDOWN, find_files
from ragbench.extras.collect.languages import languages
from ragbench.index import chunking

OTHERS = tuple(f"**/*.{suffix}" for suffix in ("txt", "mdown", "mkd", "qmd", "rmd", "rst", "adoc", "org"))
"""Files of text that are read without markdown, or on request."""
_QUERIES = ("queries.csv", "queries.tsv", "queries.jsonl", "questions.csv", "topics.jsonl")
_JUDGED = ("sections.qrels", "documents.qrels")
_WARNINGS = 4
_COPIES = {
    "versions": re.compile(
        r"(?:version-|v|release-)?\d+(?:\.(?:\d+|x))*|latest|next|current|stable|dev", re.IGNORECASE
    ),
    "languages": LANGUAGE_FOLDER,
}
_COPY_DEPTH, _COPIES_SHOWN = 4, 3
_CONFLICTS = ("*conflicted copy*", "*.sync-conflict-*")  # of Dropbox and Nextcloud, of Syncthing


def recognise(folder: Path) -> tuple[str, dict[str, Any]]:
    """The kind of collection in a folder by the names of its files, and the settings that read it.

    Raises ConfigError for a folder without documents.
    """
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
        raise ConfigError(f"{folder} {problem}: name the folder of your notes")
    if _has(folder, "corpus.jsonl") and _has(folder, "queries.jsonl"):
        return "a collection in BEIR format", {"data": "beir", "data.folder": str(folder)}
    if (folder / "qrels" / "topics.jsonl").is_file() and (folder / "corpus").is_dir():
        folders = {"data.corpus": str(folder / "corpus"), "data.qrels": str(folder / "qrels")}
        return "a collection in ragbench's own form", {"data": "native", **folders}
    data: dict[str, Any] = {"data": "vault", "data.corpus": str(folder)}
    if not find_files(folder, MARKDOWN).files:
        data["data.include"] = [glob for glob in OTHERS if find_files(folder, [glob]).files]
        if not data["data.include"]:
            raise ConfigError(f"no markdown file below {folder}: name the folder of your notes")
    around = dict.fromkeys((Path(), folder, folder.parent))
    queries = next(
        (directory / name for directory in around for name in _QUERIES if (directory / name).is_file()), None
    )
    return "a folder of notes", data | (queries_from(queries) if queries else {})


def queries_from(file: Path) -> dict[str, str]:
    """The settings that read a file of queries, and the judgments in the folder `qrels` next to it if there are any."""
    settings, qrels = {"data.queries": str(file)}, file.parent / "qrels"
    tables = sorted(qrels.glob("*.tsv"))
    test = [table for table in tables if table.stem == "test"]
    if any((qrels / name).is_file() for name in _JUDGED):
        settings["data.qrels"] = str(qrels)
    elif test or len(tables) == 1:
        settings["data.qrels"] = str((test or tables)[0])
    return settings


def _has(folder: Path, name: str) -> bool:
    return any((folder / suffix).is_file() for suffix in (name, f"{name}.gz"))


class FolderSurvey(NamedTuple):
    """What data holds and what is wrong with it, in sentences.

    `languages`: those of at least 5% of the documents, each with its number of documents, the most frequent one first.
    `is_judged`: whether a query has an answer, if there are queries.
    """

    lines: list[str]
    warnings: Sequence[str]
    languages: Sequence[tuple[str, int]] = ()
    is_judged: bool = True


def survey(corpus: Path, queries: Path | None, qrels: Path | None, **reading: Any) -> FolderSurvey:
    """Read a folder and optionally a table of queries.

    `reading` holds `include`, `exclude`, `drafts` and `site` (see `load_vault`) where they are set. Raises CorpusError,
    and BenchmarkError with file and line.
    """
    vault = load_vault(corpus, queries, qrels, topics=queries is not None, **reading)
    include, exclude = reading.get("include", MARKDOWN), reading.get("exclude", ())
    often = languages(document.text for document in vault.documents)
    chunks = sum(len(chunking.HeaderChunker().chunk(document)) for document in vault.documents)
    n = len(vault.documents)
    named = "".join(f", {'some' if number else 'mostly'} {name}" for number, (name, _) in enumerate(often))
    lines = [f"{corpus}: {counted(n, 'document')}, {counted(chunks, 'chunk')}{named}"]
    files = find_files(corpus, [glob for glob in OTHERS if glob not in include], exclude).files
    if unread := Counter(f"**/*{Path(file.path).suffix.lower()}" for file in files):
        others = ", ".join(f"{number} {glob[4:]}" for glob, number in unread.items())
        globs = ", ".join(f'"{glob}"' for glob in (*include, *unread))
        lines.append(f"files not read: {others}; to read them, add data.include: [{globs}] to ragbench.yaml")
    lines += [f"excluded: {note}" for note in vault.notes if queries is None or str(queries) not in note]
    paths = [document.path for document in vault.documents]
    lines += [*copies(paths), *conflicts(paths)]
    if queries is not None:
        lines += [note for note in vault.notes if note.startswith(f"{queries}: ")]
        answered = sum(topic.qid in vault.document_qrels for topic in vault.topics)
        without = f", {len(vault.topics) - answered} without" if answered < len(vault.topics) else ""
        lines.append(f"{queries}: {counted(len(vault.topics), 'query')}, {answered} with an answer{without}")
        lines += _columns(queries, Names(vault.documents))
    is_judged = queries is None or bool(vault.document_qrels)
    return FolderSurvey(lines, grouped_by_kind(vault.warnings)[:_WARNINGS], often, is_judged)


def copies(paths: Collection[str]) -> list[str]:
    """Folders and endings of the same pages in another version or language, and the key that excludes them."""
    pages: dict[str, set[str]] = {}
    for path in paths:
        parts = path.split("/")
        for depth in range(min(len(parts) - 1, _COPY_DEPTH)):
            pages.setdefault("/".join(parts[: depth + 1]), set()).add("/".join(parts[depth + 1 :]))
    lines = []
    for kind, pattern in _COPIES.items():
        folders: dict[str, list[str]] = {}
        for folder in pages:
            if pattern.fullmatch(folder.rpartition("/")[2]):
                folders.setdefault(folder.rpartition("/")[0], []).append(folder)
        for siblings in folders.values():
            first = max(siblings, key=lambda folder: (len(pages[folder]), folder))
            lines += _copies_of(kind, first, {f: pages[f] for f in siblings if f != first}, pages[first], "/")
    endings: dict[str, set[str]] = {}  # of translations such as `start.de.md`
    for path in paths:
        page, suffix = posixpath.splitext(path)
        translated = TRANSLATED.match(page)
        ending = f"*.{translated[2]}{suffix}" if translated else ""
        endings.setdefault(ending, set()).add(translated[1] if translated else page)
    plain = endings.pop("", set())
    first = "*.md" if any(_alike(of, plain) for of in endings.values()) else ""
    if not first and endings:
        first = max(endings, key=lambda ending: (len(endings[ending]), ending))
        plain = endings.pop(first)
    return lines + _copies_of("languages", first, endings, plain)


def conflicts(paths: Collection[str]) -> list[str]:
    """Second copies of pages that a synchronised folder made of two edits, and the key that excludes them."""
    found = [(path, glob) for path in paths for glob in _CONFLICTS if fnmatch(posixpath.basename(path), glob)]
    if not found:
        return []
    globs = ", ".join(f'"{glob}"' for glob in dict.fromkeys(glob for _, glob in found))
    return [
        f"conflicted copies of a synchronised folder: {counted(len(found), 'page')}, such as {min(found)[0]}; "
        f"to exclude them, add data.exclude: [{globs}] to ragbench.yaml"
    ]


def _copies_of(kind: str, first: str, others: Mapping[str, set[str]], pages: set[str], sign: str = "") -> list[str]:
    """The sentence about those of the `others` that have pages of `first`; their names get a `sign` in globs."""
    alike = [name for name in others if _alike(others[name], pages)]
    count = sum(len(others[name]) for name in alike)
    globs = ", ".join(f'"{name}{sign}"' for name in alike)
    shown = ", ".join(sorted(alike)[:_COPIES_SHOWN]) + (" ..." if len(alike) > _COPIES_SHOWN else "")
    sentence = (
        f"copies in other {kind} than {first}: {shown} ({counted(count, 'page')}); to exclude them, "
        f"add data.exclude: [{globs}] to ragbench.yaml"
    )
    return [sentence] if alike else []


def _alike(pages: set[str], others: set[str]) -> bool:
    return 2 * len(pages & others) >= min(len(pages), len(others)) > 0


def _columns(queries: Path, names: Names) -> list[str]:
    """Which columns of a table are read and which are not, with what may have been meant."""
    rows = [row for _, row in read_rows_of_cases(queries)]
    present = list(dict.fromkeys(name for row in rows for name in row))
    canonical_names = {alias: name for name, aliases in COLUMNS.items() for alias in aliases}
    read = [
        column if canonical_names[column] == column else f"{column} (as {canonical_names[column]})"
        for column in present
        if column in canonical_names
    ]
    lines = [f"columns read: {', '.join(read)}"]
    judged = any(canonical_names.get(column) == "relevant" for column in present)
    answers = [] if judged else unread_answers(rows, names)
    for column in present:
        if column in canonical_names or not column:
            continue
        near = nearest(column, [name for name in COLUMNS if name not in present])
        meant = "relevant" if column in answers else near[0] if near else ""
        lines.append(f"column not read: {column}" + (f"; did you mean {meant}?" if meant else ""))
    return lines
