"""The type of a document, from its name and text; its product and component, from its folders (seed 004)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from ragbench.corpus.metadata import Metadata

DOC_TYPES = ("api", "architecture", "guide", "reference", "documentation")

# Words of a file's name, in the order they are tried; the first match decides. The seed has api, endpoint,
# architecture, design, guide, tutorial and reference.
_NAMES = (
    ("documentation", r"changelog|release-notes|policy|postmortem|faq"),
    ("api", r"(?<![a-z])api|endpoint"),
    ("architecture", r"architecture|design|(?<![a-z])adr(?![a-z])"),
    ("guide", r"guide|tutorial|quickstart|getting-started|how-?to|install|upgrad|migrat|troubleshoot|runbook"),
    ("reference", r"reference|glossary|configuration|settings|error|codes"),
)
_FOLDERS = (("architecture", r"adrs?|decisions|architecture|design"), ("guide", r"guides|tutorials|how-?to|runbooks"))
_DOING = re.compile(r"(?!(?:during|string|king|ring|thing|being|spring|something|anything)\b)[a-z]{2,}ing\b")
_TASK = re.compile(
    r"(?:add|ask|back up|build|change|check|choose|configure|connect|create|deploy|enable|get|install|migrate|move|open"
    r"|pause|prepare|publish|put|read|register|remove|renew|replace|restore|revoke|rotate|run|set|start|store|take|test"
    r"|update|upgrade|use|verify|watch|write)\b",
)
_STEP = re.compile(r"before you (?:start|begin)|prerequisites|step \d")
_HEADING = re.compile(r"^#{2,6}[ \t]+(?:\d+[.:)][ \t]+)?(.+)$", re.MULTILINE)
_TABLE_LINE = re.compile(r"^[ \t]*\|", re.MULTILINE)
_LINE = re.compile(r"^[ \t]*\S", re.MULTILINE)
_CODE = re.compile(r"^[ \t]*(?:export |public |async )*(?:class|function) \w+[^.\n]*[{(:]", re.MULTILINE)
_TASKS = 2  # headings that say what to do
_TABLES = 0.3  # of the lines
_HEAD = 500  # characters in which `architecture` must stand

_DECLARED: Mapping[str, str] = {
    name: kind
    for kind, names in (
        ("api", ("api",)),
        ("architecture", ("architecture", "decision", "design")),
        ("guide", ("guide", "how-to", "tutorial", "runbook", "troubleshooting")),
        ("reference", ("reference", "glossary")),
        ("documentation", ("changelog", "documentation", "explanation", "journal", "policy", "postmortem")),
    )
    for name in names
}
"""Types that authors write in frontmatter (Diataxis and similar schemes), mapped to `DOC_TYPES`."""


def _infer_doc_type(path: str, text: str, title: str = "") -> str:
    """One of `DOC_TYPES` from a file's name, folders and title, else from its text.

    Seed 004, "Infer document type", extended: the seed reads no titles, headings or tables and knows fewer names. Its
    words `class ` and `function ` count as code only where they declare something.
    """
    name = posixpath.splitext(posixpath.basename(path))[0].lower()
    for kind, names in _NAMES:
        if re.search(names, name):
            return kind
    for kind, names in _FOLDERS:
        if any(re.fullmatch(names, folder) for folder in path.lower().split("/")[:-1]):
            return kind
    headings = [heading.lower() for heading in _HEADING.findall(text)]
    tasks = sum(bool(_TASK.match(heading)) for heading in headings)
    title = title.lower()
    if _DOING.match(title) or _TASK.match(title) or tasks >= _TASKS or any(map(_STEP.match, headings)):
        return "guide"
    if len(_TABLE_LINE.findall(text)) > _TABLES * len(_LINE.findall(text)):
        return "reference"
    if _CODE.search(text):
        return "api"
    return "architecture" if "architecture" in text[:_HEAD].lower() else "documentation"


def doc_type(path: str, text: str, metadata: Metadata, title: str = "", infer: bool = True) -> str:
    """The type that the frontmatter declares (`category`, `type`) if `_DECLARED` has it, else the inferred type.

    Empty where the type is not declared and not to `infer`.
    """
    declared = _DECLARED.get(metadata.category.lower().strip(), "")
    return declared or (_infer_doc_type(path, text, title) if infer else "")


def product_of(docno: str) -> str:
    """The outermost folder of a document, `""` without a folder."""
    return docno.split("/")[0] if "/" in docno else ""


def component_of(docno: str) -> str:
    """The second folder of a document, inside the product's, `""` without one."""
    parts = docno.split("/")
    return parts[1] if len(parts) > 2 else ""
