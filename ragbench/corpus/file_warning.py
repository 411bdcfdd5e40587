"""What can be wrong with one file of a collection, and what a collection excludes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

FAILURES: dict[str, str] = {
    "unreadable": "the file cannot be opened; it is skipped",
    "symlink-outside": "a symbolic link leads out of the folder; it is not followed",
    "too-large": "the file is over the size limit; it is skipped",
    "encoding": "the file is not UTF-8; it is read with a guess",
    "nul-bytes": "the file holds NUL bytes; each is read as U+FFFD",
    "empty-file": "the file holds nothing; it is skipped",
    "frontmatter-malformed": "the frontmatter is not a YAML mapping; it counts as absent, unless it names a draft",
    "frontmatter-unclosed": "the frontmatter has no closing line; it is read as text",
    "unclosed-fence": "a code fence has no closing line; it runs to the end of what holds it",
    "link-escapes": "a link leads out of the folder; it has no target",
    "duplicate-docno": "another file has the same document id; this one is skipped",
}
"""What is wrong with a file by name, and what becomes of the file."""

_NOTICES: dict[str, str] = {
    "case-duplicate": "another document id differs in case only; both are kept",
    "ambiguous-link": "a wikilink fits several documents; it has no target",
    "link-dialect": "more links with a bar have a target when read as Dendron writes them; they are read so",
    "no-text": "the file has frontmatter and no text; its title and description are its only chunk",
    "output-folder": "a folder has a name that is usual for build output or dependencies; it is read",
    "bytes": "encoded bytes, such as an image, are excluded from the text",
}
"""What is unusual about a file by name, and how it is read."""

LEFT_OUT: dict[str, str] = {
    "dependencies": "a folder of dependencies",
    "build-output": "a folder of build output",
    "ignored": "named in .gitignore",
    "excluded": "named in data.exclude",
    "hidden": "the name begins with a dot",
    "linked-folder": "a link to a folder, which is read at its real place",
    "unpublished": "a draft, or not listed or searched on the site; data.drafts=true reads it",
    "comment": "a comment",
    "invisible": "an element that is never shown, such as a script or style",
    "template": "a template, shortcode or expression",
    "module": "an import or export of MDX",
    "include": "a line that includes another file",
    "block-id": "the id of a block",
    "plug-in-data": "the data or query of a plug-in",
}
"""What a collection excludes, although nothing is wrong: files and folders, then parts of pages."""


@dataclass(frozen=True, slots=True)
class FileWarning:
    """Something about one file: its path below the root, a name of `FAILURES`, `_NOTICES` or `LEFT_OUT`, a sentence."""

    path: str
    name: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.name}: {self.message}"


def counted_by_kind(left_out: Iterable[FileWarning]) -> list[str]:
    """How often something of each kind was excluded, in the order of `LEFT_OUT`, with an example.

    >>> counted_by_kind([FileWarning("b/", "hidden", ""), FileWarning("a.md", "comment", "<!-- x -->")])
    ['hidden (the name begins with a dot): 1, such as b/', 'comment (a comment): 1, such as <!-- x --> in a.md']
    """
    found = list(left_out)
    sentences = []
    for kind, meaning in LEFT_OUT.items():
        if group := [warning for warning in found if warning.name == kind]:
            path, message = group[0].path, group[0].message
            example = path if message in ("", meaning) else f"{message} in {path}"
            sentences.append(f"{kind} ({meaning}): {len(group)}, such as {example}")
    return sentences


def grouped_by_kind(sentences: Iterable[str]) -> list[str]:
    """Merge warnings of the same kind into one sentence: their number and the first of them. The order is kept.

    >>> grouped_by_kind(["a.md: no-text: it is short.", "limits: none", "b.md: no-text: it is short."])
    ['no-text in 2 files, such as a.md: it is short.', 'limits: none']
    """
    kinds: dict[str, list[str]] = {}
    for sentence in sentences:
        parts = sentence.split(": ", 2)
        is_named = len(parts) > 2 and parts[1] in {*FAILURES, *_NOTICES}
        kinds.setdefault(parts[1] if is_named else sentence, []).append(sentence)
    groups = []
    for kind, (first, *others) in kinds.items():
        path, *remainder = first.split(": ", 2)
        groups.append(
            f"{kind} in {len(others) + 1} files, such as {path}: {remainder[-1]}" if others and remainder else first
        )
    return groups
