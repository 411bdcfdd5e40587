"""Files of judgments with the names that judged documents and sections have now; the old files stay as they are."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ragbench.base import files
from ragbench.base.types import BenchmarkError, BoundaryError, Document
from ragbench.benchmark import lines, quotes, vault
from ragbench.benchmark.label_health import Followed
from ragbench.benchmark.names import site_anchors
from ragbench.boundary.json import read_json, read_json_file, read_text
from ragbench.boundary.yaml import read_yaml, read_yaml_nodes

_LISTS = (*vault.COLUMNS["relevant"], "sources", "url")
"""Fields with names of documents, in tables of queries and in golden files."""
_OF_PAGES = ("id", "ids", "docno")
"""Fields with the name of a page, in an object among the expected ones of a golden file."""
_NAMED = (*_LISTS, *_OF_PAGES)
_TEXT = "tag:yaml.org,2002:str"
_PLAIN = re.compile(r"[A-Za-z_./][\w./#-]*")  # a name that YAML reads without quotes
_Rename = Callable[[str], list[str]]
"""The names to write for a name: itself, where it is now, or none."""


@dataclass(frozen=True)
class Repair:
    """The new names of judgments; `documents` are those of today, by docno."""

    followed: Mapping[str, Followed]
    documents: Mapping[str, Document]

    def names(self, written: str) -> list[str]:
        """The name to write for one, with an ending where it has one; empty for a doubtful or gone one."""
        one = self.followed.get(written)
        if one is None or (one.targets and not one.doubtful and not one.is_moved):
            return [written]
        return [] if one.doubtful else self.styled(written)

    def styled(self, written: str) -> list[str]:
        """Where a name is now, with an ending where it has one, and a short anchor where it has a short one."""
        one = self.followed[written]
        page, _, old_anchor = written.partition("#")
        with_ending = re.search(r"\.\w{2,8}$", page)
        names = []
        for docno, anchor in one.places:
            document, short = self.documents[docno], anchor.rpartition("/")[2]
            if "/" in anchor and "/" not in old_anchor and site_anchors(document.sections).get(short) == anchor[1:]:
                anchor = f"#{short}"
            names.append((document.path if with_ending else docno) + anchor)
        return names


def written_names(file: Path) -> Iterator[str]:
    """Every name of a document or section in a file of judgments, in a table of queries or in a golden file."""
    seen: dict[str, None] = {}

    def note(name: str) -> list[str]:
        seen[name] = None
        return [name]

    rewritten(file, note)
    yield from seen


def rewritten(file: Path, rename: _Rename) -> str:
    """The text of a file with other names. Raises BenchmarkError for a file of another form.

    YAML keeps its comments and its layout, JSON the order of its fields.
    """
    suffix = file.suffix.lower()
    try:
        if suffix in (".json", ".jsonl", ".ndjson"):
            return _json(file, rename)
        if suffix in (".yaml", ".yml"):
            return _yaml(read_text(file), rename)
    except BoundaryError as error:
        raise BenchmarkError(f"{file} cannot be read: {error}") from None
    if suffix == ".csv" or (suffix == ".tsv" and _is_table_of_queries(file)):
        return _table(file, rename)
    if suffix in (".qrels", ".tsv", ".txt"):
        return "".join(line for _, raw in lines.raw_lines(file) for line in _judgment(raw, rename))
    raise BenchmarkError(f"{file} cannot be repaired: it must be a .csv, .tsv, .jsonl, .json, .yaml or .qrels file")


def _is_table_of_queries(file: Path) -> bool:
    header, _, _ = lines.read_table(file)
    return any(name.strip().lower() in vault.COLUMNS["text"] for name in header)


def _judgment(line: str, rename: _Rename) -> Iterator[str]:
    """The lines for one of a qrels file: another name in the same columns, or none."""
    cells = re.findall(r"\S+", line)
    column = 2 if len(cells) == 4 else 1
    if len(cells) not in (3, 4) or not re.fullmatch(r"[+-]?\d+(\.\d*)?", cells[-1]):
        yield line  # a header or a blank line
        return
    for name in rename(cells[column]):
        places = list(re.finditer(r"\S+", line))
        yield line[: places[column].start()] + name + line[places[column].end() :]


def _table(file: Path, rename: _Rename) -> str:
    header, separator, rows = lines.read_table(file)
    columns = [number for number, name in enumerate(header) if lines.name_of_field(name) in _LISTS]
    out = io.StringIO(newline="")
    writer = csv.writer(out, delimiter=separator, lineterminator="\n")
    writer.writerow(header)
    for _, cells in rows:
        for number in columns:
            if number < len(cells):
                cells[number] = ";".join(_renamed_entries(quotes.entries(cells[number]), rename))
        writer.writerow(cells)
    return out.getvalue()


def _renamed_entries(names: list[str], rename: _Rename) -> list[str]:
    """The entries under their new names; quoted passages are found by their words and stay."""
    return [new for name in names for new in ([name] if quotes.split_target(name)[1] else rename(name))]


def _json(file: Path, rename: _Rename) -> str:
    if file.suffix.lower() != ".json":
        return "".join(_json_line(raw, rename) for _, raw in lines.raw_lines(file))
    value = read_json_file(file)
    if isinstance(value, Mapping) and not lines.cases_in(value):
        changed = {query: _names_in(pages, rename) for query, pages in value.items()}  # the expected pages by query
    else:
        changed = _walked(value, rename)
    return json.dumps(changed, ensure_ascii=False, indent=2) + "\n"


def _json_line(raw: str, rename: _Rename) -> str:
    if not raw.strip() or lines.is_comment(raw):
        return raw
    row = read_json(raw, own=True)
    changed = _walked(row, rename)
    return raw if changed == row else json.dumps(changed, ensure_ascii=False) + "\n"


def _walked(value: Any, rename: _Rename, fields: Collection[str] = _LISTS) -> Any:
    """The value with new names in these fields."""
    if isinstance(value, list):
        return [_walked(item, rename, fields) for item in value]
    if not isinstance(value, Mapping):
        return value
    return {
        key: _names_in(item, rename) if lines.name_of_field(key) in fields else _walked(item, rename, fields)
        for key, item in value.items()
    }


def _names_in(value: Any, rename: _Rename) -> Any:
    if isinstance(value, str):
        return ";".join(_renamed_entries(quotes.entries(value), rename))
    if isinstance(value, list):
        texts = [new for item in value if isinstance(item, str) for new in _renamed_entries([item], rename)]
        return texts + [_walked(item, rename, _NAMED) for item in value if not isinstance(item, str)]
    return _walked(value, rename, _NAMED)


def _yaml(text: str, rename: _Rename) -> str:
    """The text with new names in their places; an entry of a list without one loses its line."""
    root = read_yaml_nodes(text)
    if isinstance(root, yaml.MappingNode) and not lines.cases_in(read_yaml(text)):
        edits = [edit for _, value in root.value for edit in _edits(text, value, rename)]
    else:
        edits = list(_walked_nodes(text, root, rename, _LISTS))
    for start, end, new in sorted(edits, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def _walked_nodes(
    text: str, node: yaml.Node | None, rename: _Rename, fields: Collection[str]
) -> Iterator[tuple[int, int, str]]:
    """(start, end, new text) of the names in these fields."""
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _walked_nodes(text, item, rename, fields)
    elif isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if lines.name_of_field(key.value) in fields:
                yield from _edits(text, value, rename)
            else:
                yield from _walked_nodes(text, value, rename, fields)


def _edits(text: str, node: yaml.Node, rename: _Rename) -> Iterator[tuple[int, int, str]]:
    """As `_walked_nodes`, of the names in the value of one field."""
    if isinstance(node, yaml.ScalarNode) and node.tag == _TEXT:
        yield from _edit(node, [";".join(_renamed_entries(quotes.entries(node.value), rename))])
    if not isinstance(node, yaml.SequenceNode):
        yield from _walked_nodes(text, node, rename, _NAMED)
        return
    names = {
        item: _renamed_entries([item.value], rename)
        for item in node.value
        if isinstance(item, yaml.ScalarNode) and item.tag == _TEXT
    }
    if node.flow_style and all(isinstance(item, yaml.ScalarNode) for item in node.value):
        if any(new != [item.value] for item, new in names.items()):
            cells = (
                [_written(name, item.style) for name in names[item]] if item in names else [_raw(text, item)]
                for item in node.value
            )
            yield node.start_mark.index, node.end_mark.index, f"[{', '.join(cell for each in cells for cell in each)}]"
        return
    for item in node.value:
        if item not in names:
            yield from _walked_nodes(text, item, rename, _NAMED)
            continue
        start, end = text.rfind("\n", 0, item.start_mark.index) + 1, text.find("\n", item.end_mark.index) + 1
        lead = text[start : item.start_mark.index]
        if names[item] or lead.strip() != "-":
            yield from _edit(item, names[item] or [""], lead)
        else:
            yield start, end or len(text), ""


def _raw(text: str, node: yaml.Node) -> str:
    return text[node.start_mark.index : node.end_mark.index]


def _edit(node: yaml.ScalarNode, names: list[str], lead: str = "") -> Iterator[tuple[int, int, str]]:
    if names != [node.value]:
        new = f"\n{lead}".join(_written(name, node.style) for name in names)
        yield node.start_mark.index, node.end_mark.index, new


def _written(name: str, style: str | None) -> str:
    """A text of YAML, in quotes where it had some or needs them."""
    if style == "'":
        return "'" + name.replace("'", "''") + "'"
    if style is None and _PLAIN.fullmatch(name) and read_yaml(name) == name:
        return name
    return json.dumps(name, ensure_ascii=False)


def repaired_path(path: Path) -> Path:
    """The next free name for a repaired file or folder: `queries.repaired.csv`, `queries.repaired-2.csv`."""
    stem = path.name if path.is_dir() else path.stem
    stem = re.sub(r"\.repaired(-\d+)?$", "", stem)
    suffix = "" if path.is_dir() else path.suffix
    numbers = ("", *(f"-{number}" for number in range(2, 1000)))
    return next(new for n in numbers if not (new := path.with_name(f"{stem}.repaired{n}{suffix}")).exists())


def write(path: Path, repair: Repair) -> Path:
    """Write a repaired copy of a file or of a folder of judgments, whole or not at all, and return its path."""
    new = repaired_path(path)
    if not path.is_dir():
        lines.write_atomically(new, rewritten(path, repair.names))
        return new
    draft = files.draft_of(new)
    try:
        shutil.copytree(path, draft)
        for file in judgment_files(draft):
            lines.write_atomically(file, rewritten(file, repair.names))
        files.publish_folder(draft, new)
    except OSError as error:
        raise BenchmarkError(f"{new} cannot be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return new


def judgment_files(path: Path) -> list[Path]:
    """A file, or the files of judgments in a folder."""
    return [path] if not path.is_dir() else sorted([*path.glob("*.qrels"), *path.glob("*.tsv")])
