"""Write splits into a file of queries: one column changes, the rest stays."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path

from ragbench.base.errors import BenchmarkError
from ragbench.benchmark.lines import read_objects, read_table, write_atomically
from ragbench.benchmark.vault import TEXT_COLUMNS


def write_splits(path: Path, sides: Mapping[str, str]) -> None:
    """Set the column `split` of a CSV, TSV or JSONL file of queries; `sides` maps the text of a query to its split.

    Raises BenchmarkError for a file that cannot be read or written.
    """
    if path.suffix == ".gz":
        raise BenchmarkError(f"{path} is packed: unpack it first")
    if path.suffix in (".csv", ".tsv"):
        header, separator, rows = read_table(path)
        names = [name.strip().lower() for name in header]
        text = next(i for i, name in enumerate(names) if name in TEXT_COLUMNS)
        position = names.index("split") if "split" in names else len(header)
        written = io.StringIO()
        writer = csv.writer(written, delimiter=separator, lineterminator="\n")
        writer.writerow([*header[:position], "split", *header[position + 1 :]])
        for _, cells in rows:
            padded = cells + [""] * (len(header) - len(cells))
            writer.writerow([*padded[:position], sides.get(" ".join(cells[text].split()), ""), *padded[position + 1 :]])
        write_atomically(path, written.getvalue())
        return
    objects = [row for _, row in read_objects(path)]
    for row in objects:
        query = next(str(row[name]) for name in TEXT_COLUMNS if row.get(name))
        row["split"] = sides.get(" ".join(query.split()), "")
    write_atomically(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in objects))
