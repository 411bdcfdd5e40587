"""Ask a file of `ragbench export --format sqlite` without ragbench: it needs sqlite-vec, onnxruntime and tokenizers.

python ask_sqlite.py notes.sqlite FOLDER "how do I rotate a key"     FOLDER has model.onnx and tokenizer.json
"""

import json
import os
import re
import sqlite3
import sys
import unicodedata
from collections import Counter
from pathlib import Path

import numpy as np

os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # before the import: it would send data about this machine to its maker
import onnxruntime
import sqlite_vec
from tokenizers import Tokenizer

OUTER = "()[]{}<>\"'`.,;:!?*_~|/\\=\u201c\u201d\u2018\u2019\u2026"


def terms_of(db, text):
    """The terms of a query: each word with composed letters, as it stands, in lower case, or by its parts."""
    found = Counter()
    for word in (run.strip(OUTER) for run in unicodedata.normalize("NFC", text).split()):
        parts = [part.lower() for part in re.findall(r"[^\W_]+", word)]
        whole = [form for form in (word, word.lower()) if _look_up(db, form) is not None][:1]
        for form in whole or parts:
            found.update((_look_up(db, form) or "").split())
    return dict(found)


def _look_up(db, form):
    row = db.execute("SELECT terms FROM forms WHERE form = ?", (form,)).fetchone()
    return row and row[0]


def vector_of(text, folder, encoder):
    """The vector of a query, float32 as bytes."""
    tokenizer = Tokenizer.from_file(str(Path(folder, "tokenizer.json")))
    tokenizer.enable_truncation(encoder["max_tokens"])
    found = tokenizer.encode(encoder["query_prefix"] + text)
    session = onnxruntime.InferenceSession(str(Path(folder, "model.onnx")))
    arrays = {"input_ids": found.ids, "attention_mask": found.attention_mask, "token_type_ids": found.type_ids}
    tokens = session.run(None, {node.name: np.array([arrays[node.name]]) for node in session.get_inputs()})[0][0]
    vector = {"cls": lambda: tokens[0], "mean": lambda: tokens.mean(axis=0)}[encoder["pooling"]]()
    return (vector / np.linalg.norm(vector)).astype(np.float32).tobytes()


def search(db, text, folder, only=None):
    """Rows of chunk_id, score, and the score in each source."""
    about = dict(db.execute("SELECT key, value FROM about"))
    vector = vector_of(text, folder, json.loads(about["encoder"]))
    only = None if only is None else json.dumps(only)
    return db.execute(about["search"], {"terms": json.dumps(terms_of(db, text)), "vector": vector, "only": only})


if __name__ == "__main__":
    # Read-only, since `search` is a statement of the file: only ask files that you exported yourself.
    db = sqlite3.connect(f"{Path(sys.argv[1]).absolute().as_uri()}?mode=ro", uri=True)
    db.enable_load_extension(True)
    sqlite_vec.load(db)
    db.enable_load_extension(False)
    attach = sqlite3.SQLITE_ATTACH
    db.set_authorizer(lambda action, *about: sqlite3.SQLITE_DENY if action == attach else sqlite3.SQLITE_OK)
    for chunk_id, score, *_ in search(db, sys.argv[3], sys.argv[2]).fetchmany(5):
        print(f"{score:.3f}  {chunk_id}")
