"""Texts of a collection that read like a query for one of its documents: the sources of derived topics.

Known-item topics need no judge: the text was written about one document, which is then the answer. Azzopardi, de Rijke
and Balog, SIGIR 2007; texts of links as queries: Dang and Croft, WSDM 2010.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from markdown_it.token import Token

from ragbench.base.types import Document, Link
from ragbench.benchmark.phrases import Finder, words
from ragbench.corpus import markdown
from ragbench.corpus.metadata import read_metadata
from ragbench.corpus.sections import section_id
from ragbench.extras.collect.topics.spec import KINDS, Kind
from ragbench.index.spans import body_start

Titles = Mapping[str, str]
"""The title of every document by docno."""

_ADDRESS = re.compile(r"[/\\]|://|\.(?:md|markdown|html?)\b", re.IGNORECASE)
_LEADS_ON = re.compile(
    r"^(?:(?:for|to)\b[^,]{0,60},\s*)?(?:please\s+)?(?:see|refer to|read|check|visit|cf\.?)\b\s*(?:also\b\s*)?:?\s*",
    re.IGNORECASE,
)
_LEADS_OUT = re.compile(r"[\s,;:(]*\b(?:for that\s+)?(?:see|cf|refer to|start at)\s*(?:also)?[\s,:.)]*$", re.IGNORECASE)
_MARKS = re.compile(
    r"""\{\{.*?\}\} | \[![A-Za-z]+\][+-]?         # shortcodes, call-outs
      | (?<![\w:]):[a-z][a-z0-9_+-]*:(?![\w:])   # emoji and icons by name
      | \A\[[^\[\]]*\]\Z""",
    re.VERBOSE,
)


_HOW = re.compile(
    r"(?:how|why|what|when|where|which|can|do|does|is|are|should)\b(?=.*\s)|troubleshoot\w*\s", re.IGNORECASE
)
_FAILS = re.compile(
    r"""\b(?:errors?|fail(?:s|ed|ures?|ing)?|unable\sto|not\s(?:found|work(?:ing)?|recognized|responding)|crash(?:es|ed)?
      | time(?:s|d)?\s?out|denied|refused|stuck|hangs?|unexpected(?:ly)?|conflicts?)\b""",
    re.VERBOSE | re.IGNORECASE,
)
_CONDITION = re.compile(
    r"^(?:if|when|whenever|in case)\s+(?:(?:you|your users|they)\s+(?:see|get|encounter|receive|have)\s+)?(.{15,}?),\s",
    re.IGNORECASE,
)
_MESSAGE = re.compile(
    r"^\W*(?:[\w./-]+:\s*)?(?:(?:fatal|syntax|type|reference|module\w*)?\s?error|ERR[_!]\w*|fatal|panic|warning)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A query and its only answer: `text` as a user may type it, `masked` the text to remove from the documents.

    `docno` is the document that answers it; `target` is that docno, or a section id where a section answers.
    """

    kind: Kind
    docno: str
    target: str
    text: str
    masked: str


def candidates(documents: Sequence[Document], kinds: Sequence[Kind] = KINDS) -> Iterator[Candidate]:
    """All candidates of the given kinds, in the order of the documents."""
    titles = {document.docno: document.title for document in documents}
    for document in documents:
        reads = {"link", "first_sentence", "faq", "symptom"} & {*kinds}
        spoken = list(sentences(document.text, markdown.is_mdx(document.path))) if reads else []
        for kind in kinds:
            yield from _SOURCES[kind](document, spoken, titles)


def _descriptions(document: Document, _: Sequence[Sentence], __: Titles) -> Iterator[Candidate]:
    """The first sentence of the frontmatter's description; all of it is masked."""
    description = read_metadata(document.frontmatter).description
    first = next((sentence.text for sentence in sentences(description)), "")
    if first:
        yield Candidate("description", document.docno, document.docno, query(first), description)


def _aliases(document: Document, _: Sequence[Sentence], __: Titles) -> Iterator[Candidate]:
    for alias in read_metadata(document.frontmatter).aliases:
        if not _ADDRESS.search(alias):  # static sites keep old addresses there
            yield Candidate("alias", document.docno, document.docno, query(alias), alias)


def _links(document: Document, spoken: Sequence[Sentence], titles: Titles) -> Iterator[Candidate]:
    """Sentences that begin or end with a link to another document: they say something about that document.

    Its name, and words that only announce the link, are excluded.
    """
    targets = {(link.kind, link.text): link.target for link in document.links}
    for sentence in spoken:
        if len(sentence.links) != 1:
            continue
        ((link, label),) = sentence.links
        target = targets.get((link.kind, link.text))
        text_before, _, text_after = sentence.text.partition(label)
        if target is None or target == document.docno or (words(text_before) and words(text_after)):
            continue
        named = link.kind != "markdown" and link.text.startswith(label)  # shown as its address
        if named or any(name in Finder([words(label)]) for name in (target, titles[target])):
            label = " "
        text = _LEADS_OUT.sub("", _LEADS_ON.sub("", f"{text_before}{label}{text_after}"))
        yield Candidate("link", target, target, query(text), sentence.raw)


def _questions(document: Document, _: Sequence[Sentence], __: Titles) -> Iterator[Candidate]:
    """Headings below the first level that end in a question mark and are followed by text."""
    for section in document.sections:
        title = section.path[-1] if section.path else ""
        asks = section.level > 1 and title.rstrip().endswith(("?", "\uff1f"))
        if asks and body_start(document.text, section) < section.end:
            yield Candidate("question", document.docno, section_id(document, section), query(title), title)


def _how_to(document: Document, _: Sequence[Sentence], __: Titles) -> Iterator[Candidate]:
    """Headings below the first level that read like a question without its mark, and are followed by text."""
    for section in document.sections:
        title = section.path[-1] if section.path else ""
        asks = section.level > 1 and _HOW.match(title) and not title.rstrip().endswith(("?", "\uff1f"))
        if asks and body_start(document.text, section) < section.end:
            yield Candidate("how_to", document.docno, section_id(document, section), query(title), title)


def _faq(document: Document, spoken: Sequence[Sentence], _: Titles) -> Iterator[Candidate]:
    """Sentences of the text that ask, and are followed by another."""
    for sentence in spoken[:-1]:
        if sentence.text.rstrip("*_\"') ").endswith(("?", "\uff1f")):
            yield Candidate("faq", document.docno, document.docno, query(sentence.text), sentence.raw)


def _symptoms(document: Document, spoken: Sequence[Sentence], _: Titles) -> Iterator[Candidate]:
    """Sentences that tell a failure; of "if it fails so, do this" only the failure: who asks does not know the rest."""
    for sentence in spoken:
        if _FAILS.search(sentence.text):
            condition = _CONDITION.match(sentence.text)
            text = condition[1] if condition and _FAILS.search(condition[1]) else sentence.text
            yield Candidate("symptom", document.docno, document.docno, query(text), sentence.raw)


def _messages(document: Document, _: Sequence[Sentence], __: Titles) -> Iterator[Candidate]:
    """Lines of code blocks that read like the message of an error or a warning."""
    for block in document.code_blocks:
        for line in document.text[block.start : block.end].splitlines():
            if _MESSAGE.match(line):
                yield Candidate("message", document.docno, document.docno, query(line), line)


def _first_sentences(document: Document, spoken: Sequence[Sentence], _: Titles) -> Iterator[Candidate]:
    first = next((candidate for candidate in spoken if n_words(query(candidate.text))), None)
    if first is not None:
        yield Candidate("first_sentence", document.docno, document.docno, query(first.text), first.raw)


_SOURCES: Mapping[Kind, Callable[[Document, Sequence[Sentence], Titles], Iterator[Candidate]]] = {
    "description": _descriptions,
    "alias": _aliases,
    "link": _links,
    "question": _questions,
    "first_sentence": _first_sentences,
    "how_to": _how_to,
    "faq": _faq,
    "symptom": _symptoms,
    "message": _messages,
}


def query(text: str) -> str:
    """A text as a query: on one line, without shortcodes, marks of call-outs, icons and punctuation at its ends.

    Of a text that is all in brackets nothing is left: `[Available since 2.0]`.
    """
    return " ".join(_MARKS.sub(" ", text).split()).strip(" .:;,\u2013\u2014\u2026\u3002*_\"'-")


def n_words(text: str) -> int:
    """How many words a text has."""
    return len(words(text))


_END = re.compile(
    r"""[.!?\u2026][\"'\u201d\u2019)\]*_`]*\s+(?=[^\sa-z])  # no lower-case letter follows
      | [\u3002\uff01\uff1f][\u300d\u300f\uff09]?            # the same in Chinese and Japanese
    """,
    re.VERBOSE,
)
_MODULE_LINE = re.compile(r"(?:import|export)\s|\{/\*")  # of MDX; a reader does not see them
_ADMONITION = re.compile(
    r"""^[ \t]*(?: :::.*                                       # `:::note Title` and `:::` of Docusaurus and VitePress
      | (?:Note|Tip|Info|Important|Warning|Caution|Danger|Example|Abstract|Todo|Success|Question|Failure|Bug|Quote)
      )[ \t]*$""",  # a call-out without a title, which a page shows by its kind
    re.MULTILINE | re.VERBOSE,
)
_ABBREVIATION = re.compile(r"\b(?:e\.g|i\.e|cf|vs|etc|resp|approx|no|fig|dr|mr|mrs|ms|st)\.\s+\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Sentence:
    """`raw` as written, `text` without markup, and the links in it with the words they are shown as."""

    raw: str
    text: str
    links: tuple[tuple[Link, str], ...] = ()


def sentences(text: str, mdx: bool = False) -> Iterator[Sentence]:
    """The sentences of a markdown text; headings, code and tables hold none.

    A sentence ends at `.`, `!`, `?` or an ellipsis before white space and no lower-case letter, at the full stops of
    Chinese and Japanese, and with its paragraph. An item of a list is a paragraph.
    """
    references: dict[str, object] = {}
    for paragraph in _paragraphs(text, mdx, references):
        for raw in _split(paragraph):
            visible, links = _as_read(raw, references)
            if visible:
                yield Sentence(raw, visible, links)


def _split(paragraph: str) -> Iterator[str]:
    begin = 0
    for match in _END.finditer(paragraph):
        if not _ABBREVIATION.search(paragraph, begin, match.end()):
            yield paragraph[begin : match.end()].strip()
            begin = match.end()
    if remainder := paragraph[begin:].strip():
        yield remainder


def _paragraphs(text: str, mdx: bool, references: dict[str, object]) -> Iterator[str]:
    """The paragraphs of a markdown text as written, those of lists and quotations included, and its `references`.

    Headings, code, tables, and imports, exports and comments of MDX are excluded. A line `:::note Title` ends a
    paragraph and belongs to none.
    """
    opened = ""
    for token in markdown.parser(mdx).parse(text, references):
        unseen = mdx and _MODULE_LINE.match(token.content)
        if token.type == "inline" and opened == "paragraph_open" and not unseen:
            yield from (part.strip() for part in _ADMONITION.split(token.content) if part.strip())
        opened = token.type


def _as_read(part: str, references: dict[str, object]) -> tuple[str, tuple[tuple[Link, str], ...]]:
    """A part of a paragraph as a reader sees it, and its links, each with its visible words."""
    children: list[Token] = []
    markdown.parser().inline.parse(part, markdown.parser(), references, children)
    links: list[tuple[Link, str]] = []
    for position, child in enumerate(children):
        label = [child]
        if child.type == "link_open":
            end = next(n for n in range(position, len(children)) if _closes(children[n], child))
            label = children[position + 1 : end]
        links += [(link, " ".join(markdown.plain_text(label).split())) for link in markdown.links_in([child])]
    return " ".join(markdown.plain_text(children).split()), tuple(links)


def _closes(token: Token, opening: Token) -> bool:
    return token.type == "link_close" and token.level == opening.level
