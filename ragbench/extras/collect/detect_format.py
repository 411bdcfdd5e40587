"""Recognise the kind of collection in a folder by the names of its files; `survey` opens them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ragbench.base.errors import ConfigError
from ragbench.corpus.folder import MARKDOWN, find_files

OTHERS = ("**/*.txt", "**/*.docx")
"""Files that are read without markdown, or on request."""
_QUERIES = ("queries.csv", "queries.tsv", "queries.jsonl", "questions.csv", "topics.jsonl")
_JUDGED = ("sections.qrels", "documents.qrels")


@dataclass(frozen=True)
class Recognised:
    """What a folder holds: `said` in words, `data` as settings that read it, the files of documents."""

    lines: str
    data: Mapping[str, Any]
    queries: bool


def recognise(folder: Path) -> Recognised:
    """Look at a folder. Raises ConfigError for a folder without documents."""
    if not folder.is_dir():
        problem = "is not a folder" if folder.exists() else "does not exist"
        raise ConfigError(f"{folder} {problem}: name the folder of your notes")
    if _has(folder, "corpus.jsonl") and _has(folder, "queries.jsonl"):
        return Recognised("a collection in BEIR format", {"data": "beir", "data.folder": str(folder)}, True)
    if (folder / "qrels" / "topics.jsonl").is_file() and (folder / "corpus").is_dir():
        places = {"data.corpus": str(folder / "corpus"), "data.qrels": str(folder / "qrels")}
        return Recognised("a collection in ragbench's own form", {"data": "native", **places}, True)
    data: dict[str, Any] = {"data": "vault", "data.corpus": str(folder)}
    if not find_files(folder, MARKDOWN)[0]:
        if not find_files(folder, OTHERS)[0]:
            raise ConfigError(f"no markdown file below {folder}: name the folder of your notes")
        data["data.include"] = list(OTHERS)
    around = dict.fromkeys((Path(), folder, folder.parent))
    queries = next(
        (directory / name for directory in around for name in _QUERIES if (directory / name).is_file()), None
    )
    if queries is not None:
        data["data.queries"] = str(queries)
        data |= judgments_of(queries)
    return Recognised("a folder of notes", data, queries is not None)


def judgments_of(queries: Path) -> dict[str, str]:
    """The setting that reads the judgments in the folder `qrels` next to a file of queries; empty without one."""
    qrels = queries.parent / "qrels"
    tables = sorted(qrels.glob("*.tsv"))
    test = [table for table in tables if table.stem == "test"]
    if any((qrels / name).is_file() for name in _JUDGED):
        return {"data.qrels": str(qrels)}
    return {"data.qrels": str((test or tables)[0])} if test or len(tables) == 1 else {}


def _has(folder: Path, name: str) -> bool:
    return any((folder / suffix).is_file() for suffix in (name, f"{name}.gz"))
