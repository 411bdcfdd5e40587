"""Words that a page shows against words that are indexed, by construct: docs/research/reading.md.

python -m research.visible_words FOLDER [FOLDER ...]

A page is rendered by markdown-it-py (CommonMark and tables) as it is written and as ragbench reads it. Words of the
first that the second lacks are lost, the reverse are invented. Each is counted under the first construct with it.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from pathlib import Path

import lxml.html
from markdown_it import MarkdownIt

from ragbench.corpus.markdown import is_mdx
from ragbench.corpus.reader import _split_frontmatter, decoded, read_vault
from ragbench.corpus.visible import visible

CONSTRUCTS = {
    "tag of a component": r"</?[A-Z](?:[^<>\"{]|\"[^\"]*\"|\{[^{}]*\})*>",
    "attribute of a tag": r"<[A-Za-z](?:[^<>\"]|\"[^\"]*\")*>",
    "destination of a link": r"\]\([^()\n]*\)|^\[[^\]\n]+\]:.*$",
    "id of a heading": r"\{(?::|/\*)?[^{}\n]*#[^{}\n]*\}[ \t]*$",
    "line of an admonition or tab": r"^[ \t>]*(?::::|/{3}|!!!|\?\?\?|===).*$",
    "list of attributes": r"\{[:.#][^{}\n]*\}",
    "icon": r":(?:material|octicons|fontawesome|simple|lucide)-[\w-]+:",
}
"""What markdown-it-py shows or hides, unlike a site; what is excluded has kinds (`ragbench.corpus.file_warning`)."""

REST = "none of these"


def words(written: str) -> Counter[str]:
    """How often the HTML of a markdown text shows each word; alternative texts of images are shown."""
    tree = lxml.html.fromstring(f"<div>{MarkdownIt('commonmark').enable('table').render(written)}</div>")
    for element in tree.xpath("//script|//style|//template|//svg|//comment()|//*[@hidden]"):
        element.drop_tree()
    texts = [*tree.itertext(), *tree.xpath("//img/@alt")]
    return Counter(re.findall(r"\w+", " ".join(texts)))


def measure(folder: Path, lost: Counter[str], invented: Counter[str]) -> tuple[int, int, int]:
    """Add the lost and invented words of the pages of a folder by construct; pages, words shown, words indexed."""
    shown_words = indexed_words = 0
    documents = read_vault(folder, drafts=True).documents
    for document in documents:
        written, _ = decoded(document.path, (folder / document.path).read_bytes())
        begin = _split_frontmatter(written).body
        front, written = written[:begin], written[begin:]
        shown, indexed = words(written), words(document.text)
        shown_words += shown.total()
        indexed_words += indexed.total()
        held = [
            (kind, Counter(re.findall(r"\w+", text))) for kind, text in visible(written, is_mdx(document.path)).left_out
        ]
        held.append(("front matter of a home page", Counter(re.findall(r"\w+", front))))
        for construct, pattern in CONSTRUCTS.items():
            found = " ".join(re.findall(pattern, written, re.MULTILINE))
            held.append((construct, Counter(re.findall(r"\w+", found))))
        for counts, difference in ((lost, shown - indexed), (invented, indexed - shown)):
            for construct, inside in held:
                common = difference & inside
                counts[construct] += common.total()
                difference -= common
            counts[REST] += difference.total()
    return len(documents), shown_words, indexed_words


def main(names: list[str]) -> None:
    """Print the shares of lost and invented words of each folder, and the counts by construct of all."""
    lost, invented, totals = Counter[str](), Counter[str](), [0, 0, 0]
    for name in names:
        before = lost[REST], invented[REST]
        pages, shown, indexed = measure(Path(name), lost, invented)
        totals = [total + count for total, count in zip(totals, (pages, shown, indexed), strict=True)]
        shares = (lost[REST] - before[0]) / shown, (invented[REST] - before[1]) / indexed
        print(f"{name}: {pages} pages, {shown} words, lost {shares[0]:.2%}, invented {shares[1]:.2%} in {REST}")
    print(f"{totals[0]} pages, {totals[1]} words shown, {totals[2]} indexed")
    for title, counts, total in (("lost", lost, totals[1]), ("invented", invented, totals[2])):
        print(f"{title}: {counts.total() / total:.2%}")
        for construct, count in (+counts).most_common():
            print(f"| {construct} | {count} | {count / total:.2%} |")


if __name__ == "__main__":
    main(sys.argv[1:])
