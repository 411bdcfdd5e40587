"""Indexes of Lucene as Anserini's own program writes them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from ragbench.index import jvm


def build(records: Sequence[dict[str, str]], folder: Path, *options: str) -> Path:
    """An index of records, written by Anserini's own program."""
    docs = folder / "docs"
    docs.mkdir(parents=True)
    (docs / "docs.jsonl").write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    home, _ = jvm._find_java(os.environ)
    program = [str(home / "bin" / "java"), "-cp", str(jvm.lucene_jar()), "io.anserini.index.IndexCollection"]
    what = ["-collection", "JsonCollection", "-input", str(docs), "-index", str(folder / "index")]
    how = ["-generator", "DefaultLuceneDocumentGenerator", "-threads", "1", *options]
    done = subprocess.run([*program, *what, *how], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "index"
