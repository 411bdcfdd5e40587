"""A site of user questions: a checkout of a documentation, with questions and judgments of `research/data`.

    git -C REPOSITORY archive COMMIT FOLDER | tar x -C CHECKOUT
    python -m research.questions research/data/questions_zh.yaml CHECKOUT FOLDER [--words WORDS]

FOLDER becomes a site as `research/languages.py` reads it: `vault/`, `queries.jsonl` and `qrels/test.tsv`. WORDS is a
file of JSON lines with `thread` and `text`, the words that the users typed, instead of the paraphrases. The files of
`research/data/english` have threads and judgments only, so that they need WORDS.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ragbench.base.types import BAD_INPUT, BenchmarkError
from ragbench.boundary.yaml import read_yaml_file

_GRADES = {"answers": 2, "helps": 1}
_SUFFIXES = (".md", ".mdx")


def write_site(file: Path, checkout: Path, folder: Path, words: Mapping[str, str] | None = None) -> None:
    """Write the site of a file of questions. With `words`, the text by thread, only questions of those threads.

    Raises BenchmarkError where a judged page is not in the checkout, or where the file keeps no words of a question.
    """
    data = read_yaml_file(file)
    pages = checkout / data["folder"]
    shutil.rmtree(folder, ignore_errors=True)
    for page in (file for suffix in _SUFFIXES for file in pages.rglob(f"*{suffix}")):
        place = (folder / "vault" / page.relative_to(pages)).with_suffix(".md")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, place)
    lines, judged = [], ["query-id\tcorpus-id\tscore"]
    for question in data["questions"]:
        if words is not None and question["thread"] not in words:
            continue
        text = question.get("question", "") if words is None else words[question["thread"]]
        if not text:
            raise BenchmarkError(f"{file} does not have the words of {question['thread']}: give them with --words")
        lines.append(json.dumps({"_id": question["thread"], "text": text}, ensure_ascii=False))
        judged += [f"{question['thread']}\t{page}\t{grade}" for page, grade in _judged(question, folder / "vault")]
    (folder / "queries.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "qrels").mkdir()
    (folder / "qrels" / "test.tsv").write_text("\n".join(judged) + "\n", encoding="utf-8")


def _judged(question: Mapping[str, Any], pages: Path) -> list[tuple[str, int]]:
    found = [(page, grade) for key, grade in _GRADES.items() for page in question.get(key, {})]
    for page, _ in found:
        if not (pages / page).is_file():
            raise BenchmarkError(f"{question['thread']}: {page} is not in {pages}")
    return found


def main(words: list[str] | None = None) -> int:
    """Write a site. Returns an exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("checkout", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--words", type=Path)
    options = parser.parse_args(words)
    typed = None
    if options.words is not None:
        rows = [json.loads(line) for line in options.words.read_text(encoding="utf-8").splitlines()]
        typed = {row["thread"]: row["text"] for row in rows}
    try:
        write_site(options.file, options.checkout, options.folder, typed)
    except BenchmarkError as error:
        print(f"error: {error}", file=sys.stderr)
        return BAD_INPUT
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
