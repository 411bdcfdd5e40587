"""Headings, code blocks, links and tags of markdown, by the CommonMark parser markdown-it-py with some added rules.

The added rules: wikilinks and tags of notes, the indented blocks of MkDocs (`!!! note`, `??? note`, `=== "Tab"`),
components of MDX (`<Tabs>`), and the attributes of headings (`{#id}`, `{: #id }`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise, takewhile
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.rules_block.heading import heading
from markdown_it.rules_block.html_block import html_block
from markdown_it.rules_block.reference import reference
from markdown_it.rules_inline import StateInline
from markdown_it.token import Token

from ragbench.base.types import CodeBlock, Link
from ragbench.corpus.sections import Heading

_WIKILINK = re.compile(r"!?\[\[([^\[\]\n]+)\]\]")
# A tag has a letter (`#42` is an issue number) and a blank or bracket before it: `C#` and `page#part` are not tags.
_TAG = re.compile(r"#(?=[\d_/-]*[^\W\d_])(\w[\w/-]*)")
_BEFORE_TAG = "([,;*_"  # nor in braces or quotation marks: `{#id}`, `"#ffffff"`
_ATTRIBUTES = 80  # characters before a tag among which the brace of a list of attributes is looked for
_IN_BRACES = re.compile(r"\{[^{}\n]*\Z")
_HEADING_ATTRIBUTES = re.compile(r"(?:\s+#+)?\s*\{(?:\s*[#.:][^{}]*|/\*.*\*/)\}\s*$")
_MKDOCS_BLOCK = re.compile(r"(?:!!!|\?\?\?\+?|===\+?!?)[ \t]+\S")
_COMPONENT = re.compile(r"</?[A-Z][\w.]*[a-z]")  # `<Tabs>`; `<DIV>` is HTML
_MODULE = re.compile(r"^(?:import|export)\s", re.MULTILINE)
_IMPORT = re.compile(r"import\s+([\w$*{][^'\"`;]*[\s}]from\s*)?(['\"])[^'\"\n]+\2[ \t]*;?[ \t]*(?:\n|\Z)")
_EXPORT = re.compile(r"export\s+(?:default|const|let|var|function|class|async|\{|\*)")
_INDENTED = re.compile(r" {4}| {0,3}\t")
_FOOTNOTE = re.compile(r"\[\^[^\]\s]+\]:")
_LANGUAGE = re.compile(r"(?:\{(?:code|code-block|code-cell|sourcecode)\}\s+)?\{?\.?([^\s{},:=]+)")
_SIGNS = {
    "table": re.compile(r"^[ \t>:]*(?:\||-[ \t:-]*\|)[ \t|:-]*$", re.MULTILINE),
    "reference": re.compile(r"\]:"),
    "html_block": re.compile("<"),
    "blockquote": re.compile(">"),
    "mkdocs": re.compile(r"!!!|\?\?\?|==="),
    "hr": re.compile(r"^[ \t>*+_\d.)-]{3,}$", re.MULTILINE),
    "lheading": re.compile(r"\n[ \t>]*(?:=+|-+)[ \t]*$", re.MULTILINE),
}
"""Rules of blocks, and what a text must hold for one of them to match anything."""
_PLAIN = re.compile(
    r"[^\W\d_]|[(\"'{}/.,@$&%^;)\]\\]|\d+(?![\d.)])|\*{1,2}[^\s*]|_{1,2}[^\s_]|`{1,2}[^`]|!(?!!!)"
    r"|\[(?:\[|[^\[\]\\\n]*\]\()"
)
"""How a line begins that begins no block but a paragraph, and ends none."""
_LINK_OR_TAG = re.compile(
    r"\[\[|\]\([ \t\n]*(?!<?(?:[a-zA-Z][a-zA-Z0-9+.-]*:|//|#[^\s()]*\)))|(?:^|\s|(?<!\])\(|[\[,;*_])#\w"
)
"""Inline text without any of this has neither links inside the collection nor tags, if it defines no links."""
_BRACKET_OR_TAG = re.compile(r"[\[#]")
_MARKUP = re.compile(r"[\\`*_\[\]<>&#\n]")
_EXTERNAL = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:|//|#|$")


@dataclass(frozen=True, slots=True)
class Markup:
    """What the parser found in one text. Links have no target yet; `unclosed` are the lines of fences without an end.

    Lines count from `first_line`. `headings` are those of the top level: headings inside a list or a quotation make no
    section.
    """

    headings: tuple[Heading, ...]
    code_blocks: tuple[CodeBlock, ...]
    links: tuple[Link, ...]
    tags: tuple[str, ...]
    unclosed: tuple[int, ...]


def is_mdx(path: str) -> bool:
    """Whether a file is MDX, in which indentation makes no code."""
    return path.lower().endswith(".mdx")


def parse_markdown(text: str, first_line: int = 1, mdx: bool = False, written: str = "") -> Markup:
    """Read a markdown text with LF line ends whose first line is number `first_line` of the file; never raises.

    `written` is the text before it was edited; blocks that are the same in both are not parsed again.
    """
    starts = [0, *(match.end() for match in re.finditer("\n", text))]
    headings: list[Heading] = []
    blocks: list[CodeBlock] = []
    links: list[Link] = []
    tags: list[str] = []
    unclosed: list[int] = []
    opened: Token | None = None
    tokens, environment = _blocks_of_edited(text, written, mdx) if written else blocks_of(text, mdx)
    for token in tokens:
        if token.type == "heading_open":
            opened = token
        elif token.type == "fence" and token.map:
            blocks.append(_code_block(len(blocks), token, text, starts, first_line))
            n_lines = token.content.count("\n") + (not token.content.endswith("\n")) * bool(token.content)
            if n_lines > token.map[1] - token.map[0] - 2:  # no closing line
                unclosed.append(first_line + token.map[0])
        elif token.type == "inline":
            content, title = token.content, ""
            if (_MARKUP if opened else _BRACKET_OR_TAG if environment.get("references") else _LINK_OR_TAG).search(
                content
            ):
                children: list[Token] = []
                parser().inline.parse(content, parser(), environment, children)
                links.extend(links_in(children))
                tags.extend(child.content for child in children if child.type == "hashtag")
                title = plain_text(children) if opened is not None else ""
            elif opened is not None:
                title = content
            if opened is not None and opened.map and opened.level == 0:
                title, start = _HEADING_ATTRIBUTES.sub("", title), starts[opened.map[0]]
                if not _INDENTED.match(text, start):  # in a component of MDX
                    headings.append(Heading(int(opened.tag[1]), " ".join(title.split()), start))
            opened = None
    return Markup(tuple(headings), tuple(blocks), tuple(links), tuple(tags), tuple(unclosed))


@lru_cache(2)
def blocks_of(text: str, mdx: bool) -> tuple[Sequence[Token], dict[str, Any]]:
    """The blocks of a text and the links that it defines; of a page without edits they are asked for twice."""
    environment: dict[str, Any] = {}
    return _parse(text, mdx, environment), environment


def _parse(text: str, mdx: bool, environment: dict[str, Any]) -> list[Token]:
    needed = tuple(rule for rule, sign in _SIGNS.items() if sign.search(text))
    return parser(mdx, needed).parse(text, environment)


def _blocks_of_edited(text: str, written: str, mdx: bool) -> tuple[Sequence[Token], dict[str, Any]]:
    """The blocks of an edited text: those of what was `written`, and of the parts between blank lines that differ."""
    lines, lines_before = text.split("\n"), written.split("\n")
    if text == written or len(lines) != len(lines_before):
        return blocks_of(text, mdx)
    tokens, definitions = blocks_of(written, mdx)
    environment: dict[str, Any] = {"references": {}}
    for label, definition in definitions.get("references", {}).items():
        start, stop = definition["map"]
        if lines[start:stop] == lines_before[start:stop]:
            environment["references"][label] = definition
    result: list[Token] = []
    cuts = [(0, 0)]
    for number, token in enumerate(tokens):
        start = token.map[0] if token.level == 0 and token.nesting >= 0 and token.map else 0
        if start and not lines[start - 1].strip() and not lines_before[start - 1].strip():
            cuts.append((start, number))
    changed: int | None = None
    for (start, number), (stop, after) in pairwise([*cuts, (len(lines), len(tokens))]):
        if lines[start:stop] != lines_before[start:stop]:
            changed = start if changed is None else changed
            continue
        result += blocks_of_lines(lines, changed, start, mdx, environment)
        result += tokens[number:after]
        changed = None
    return [*result, *blocks_of_lines(lines, changed, len(lines), mdx, environment)], environment


def blocks_of_lines(
    lines: list[str], start: int | None, stop: int, mdx: bool, environment: dict[str, Any]
) -> Iterator[Token]:
    """The blocks of the lines from `start`, if any, with the numbers that their lines have in the whole text."""
    for token in () if start is None else _parse("\n".join(lines[start:stop]), mdx, environment):
        if token.map and start is not None:
            token.map = [line + start for line in token.map]
        yield token


def module_lines(text: str, tokens: Sequence[Token], mdx: bool = False) -> Iterator[tuple[int, int]]:
    """The lines, from 0, of the modules of MDX: `import ... from` and, in MDX only, `export`. Fences have none.

    Docusaurus reads `.md` as MDX, too, so that an import of names (not Go's `import "fmt"`) counts in every text.
    """
    if not _MODULE.search(text):
        return
    lines, opened, done = text.split("\n"), "", 0
    for token in tokens:
        if token.type == "inline" and token.level == 1 and opened == "paragraph_open" and token.map:
            begin, end = token.map[0], 0
            while (match := _IMPORT.match(token.content, end)) and (mdx or match[1]):
                end = match.end()
            stop = begin + (token.content[:end].rstrip("\n").count("\n") + 1 if end else 0)
            if mdx and _EXPORT.match(token.content, end):
                stop = _end_of_block(lines, begin)
            if stop > begin >= done:
                yield begin, stop
                done = stop
        opened = token.type


def _end_of_block(lines: list[str], begin: int) -> int:
    """The first empty line after a statement outside its brackets; the first empty line if they never close."""
    first = next((n for n in range(begin, len(lines)) if not lines[n].strip()), len(lines))
    depth = 0
    for number in range(begin, len(lines)):
        if not lines[number].strip() and depth <= 0:
            return number
        depth += sum("{[(".count(sign) - "}])".count(sign) for sign in lines[number])
    return len(lines) if depth <= 0 else first


def _code_block(number: int, token: Token, text: str, starts: list[int], first_line: int) -> CodeBlock:
    assert token.map is not None
    begin, end = token.map
    stop = starts[end] - 1 if end < len(starts) else len(text)
    language = _LANGUAGE.match(token.info.strip())
    return CodeBlock(
        number=number,
        language=language[1].lower() if language else "",
        code=token.content,
        start_line=first_line + begin,
        end_line=first_line + end - 1,
        start=starts[begin],
        end=stop,
    )


def links_in(children: list[Token]) -> Iterator[Link]:
    """The links among inline tokens, without those that lead outside."""
    for position, child in enumerate(children):
        if child.type == "wikilink":
            path, _, heading = child.content.partition("|")[0].partition("#")
            kind = "transclusion" if child.markup == "!" else "wikilink"
            if path.strip("\\ "):  # else a link to a heading of the same document
                yield Link(kind, child.content.strip(), None, heading.strip("\\ ") or None)
        elif child.type == "link_open":
            href = str(child.attrs["href"])
            if not _EXTERNAL.match(href):
                inside = takewhile(lambda at: children[at].type != "link_close", range(position + 1, len(children)))
                label = " ".join(plain_text([children[at] for at in inside]).split())
                yield Link("markdown", href, None, href.partition("#")[2] or None, label)


def plain_text(children: list[Token]) -> str:
    """The text as a reader sees it: anchor texts, code without backticks, no markup."""
    parts: list[str] = []
    for child in children:
        if child.type in ("softbreak", "hardbreak"):
            parts.append(" ")
        elif child.type == "wikilink":
            destination, _, label = child.content.partition("|")
            parts.append(label or destination.rstrip("\\"))
        elif child.type == "hashtag":
            parts.append(f"#{child.content}")
        elif child.type == "image":
            parts.append(plain_text(child.children or []))
        elif child.type in ("text", "code_inline", "text_special"):
            parts.append(child.content)
    return "".join(parts)


def _plain_paragraph(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A heading with `#`, or a paragraph whose lines look `_PLAIN`: no other rule matches it, and most text is this."""
    if state.is_code_block(start):
        return False
    if state.src.startswith("#", state.bMarks[start] + state.tShift[start]):
        return heading(state, start, end, silent)
    last = start
    while last < end and not state.isEmpty(last):
        if not _PLAIN.match(state.src, state.bMarks[last] + state.tShift[last]):
            return False
        last += 1
    if not silent:
        state.line = last
        state.push("paragraph_open", "p", 1).map = [start, last]
        token = state.push("inline", "", 0)
        token.content = state.getLines(start, last, state.blkIndent, False).strip()
        token.map, token.children = [start, last], []
        state.push("paragraph_close", "p", -1)
    return True


def _mkdocs_block(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """A line such as `!!! note` or `=== "Tab"` with the lines below it that are indented by four more columns."""
    if state.is_code_block(start):
        return False
    if not _MKDOCS_BLOCK.match(state.src, state.bMarks[start] + state.tShift[start], state.eMarks[start]):
        return False
    inside = state.sCount[start] + 4
    stop = last = start + 1
    while last < end and (state.isEmpty(last) or state.sCount[last] >= inside):
        last += 1
        stop = stop if state.isEmpty(last - 1) else last
    if stop == start + 1:
        return False
    if not silent:
        outside = state.parentType, state.lineMax, state.blkIndent
        state.parentType, state.lineMax, state.blkIndent = "container", stop, inside
        state.push("container_open", "div", 1).map = [start, stop]
        state.md.block.tokenize(state, start + 1, stop)
        state.push("container_close", "div", -1)
        state.parentType, state.lineMax, state.blkIndent = outside
        state.line = stop
    return True


def _definition_but_footnote(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """CommonMark's definition of a link; a footnote of one word would be one, too."""
    footnote = _FOOTNOTE.match(state.src, state.bMarks[start] + state.tShift[start])
    return not footnote and reference(state, start, end, silent)


def _html_but_components(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    """CommonMark's HTML block, which ends at a blank line only; a component contains markdown instead."""
    component = _COMPONENT.match(state.src, state.bMarks[start] + state.tShift[start])
    return not component and html_block(state, start, end, silent)


def _wikilink(state: StateInline, silent: bool) -> bool:
    match = _WIKILINK.match(state.src, state.pos, state.posMax)
    if match is None or not match[1].strip():
        return False
    if not silent:
        token = state.push("wikilink", "", 0)
        token.content = match[1]
        token.markup = "!" if match[0][0] == "!" else ""
    state.pos = match.end()
    return True


def _hashtag(state: StateInline, silent: bool) -> bool:
    if state.src[state.pos] != "#":
        return False
    previous = state.src[state.pos - 1] if state.pos else " "
    match = _TAG.match(state.src, state.pos, state.posMax)
    if match is None or not (previous.isspace() or previous in _BEFORE_TAG):
        return False
    if _IN_BRACES.search(state.src, max(0, state.pos - _ATTRIBUTES), state.pos):
        return False
    if not silent:
        state.push("hashtag", "", 0).content = match[1]
    state.pos = match.end()
    return True


@cache
def parser(mdx: bool = False, needed: tuple[str, ...] = tuple(_SIGNS)) -> MarkdownIt:
    """The parser of blocks, which leaves inline text alone, with the `needed` ones of the rules in `_SIGNS`."""
    made = MarkdownIt("commonmark").enable("table")
    # Inline text is parsed on demand: two thirds of all texts hold neither link nor tag.
    made.core.ruler.disable(["inline", "text_join"])
    made.block.ruler.at("html_block", _html_but_components, {"alt": ["paragraph", "reference", "blockquote"]})
    made.block.ruler.at("reference", _definition_but_footnote, {"alt": []})
    made.block.ruler.before("fence", "mkdocs", _mkdocs_block, {"alt": ["paragraph", "blockquote", "list"]})
    made.block.ruler.before("table", "plain", _plain_paragraph, {"alt": []})
    made.disable([rule for rule in _SIGNS if rule not in needed] + ["code"] * mdx)
    made.inline.ruler.before("link", "wikilink", _wikilink)
    made.inline.ruler.before("link", "hashtag", _hashtag)
    # Keep destinations as written: nothing here follows them.
    made.normalizeLink = lambda url: url  # type: ignore[method-assign]
    made.validateLink = lambda url: True  # type: ignore[method-assign]
    return made
