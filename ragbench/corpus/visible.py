"""The text of a page as its reader sees it: markdown without comments, tags, templates, modules and walls of bytes.

What is excluded becomes nothing, but the line breaks in it stay: a line of the result is the same line of the file.
Code is left alone. docs/documents-and-queries.md lists what is text, structure, metadata or nothing.
"""

from __future__ import annotations

import html
import io
import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate

from markdown_it.common.html_re import HTML_OPEN_CLOSE_TAG_STR

from ragbench.corpus.markdown import blocks_of, blocks_of_lines, module_lines

_FREQUENT = re.compile(
    r"<[A-Za-z/!?>%]|\{[{%#:*!./>~-]|\{ [#.:]|%%|&[#\w]+;|:::|data:|[)`*_\]]\{|\]: *[#<]|\}`[\w/<]"
    r"|\{[\w-]+=[\"']|\*(?:(?<=\w\*)\**\w+\*|\w+\*+\w)"
)
_ICON = ":(?:material|octicons|fontawesome|simple|lucide)-"  # of Material for MkDocs
_PROPERTY = r"(?:id|collapsed|background-color|created-at|updated-at|logseq\.[\w.-]+)::[ \t]"  # of a block of Logseq
_OF_SLIDES = "layout|class|background|transition|clicks|hideInToc|routeAlias|src"  # not of other pages
_DRAWING = r"^#{1,2}[ \t]+(?:Excalidraw Data|Text Elements|Embedded Files|Element Links)$|^(?:\w{40}|\w{8}): .*$"
# Front matter of a slide in Slidev.
_SLIDE = rf"---[ \t]*\n(?=(?:(?!---)\S.*\n)*?(?:{_OF_SLIDES}):)(?:[a-z][\w-]*:(?:[ \t].*)?\n(?:[ \t]+\S.*\n)*)+"
_RARE = re.compile(
    r"(?mi)^[ \t]*(?:--8<--|<<<|/{3}|\[\[?_?TO|[A-Za-z0-9+/]{60,}={0,2}$|[`~]{3,}[ \t]*(?:dataview|tasks|base"
    rf"|button|compressed|rust|\{{)|{_PROPERTY}|{_SLIDE}|::[a-z])|:id=|^(?:(?:import|export)\s|%[ \t]|\+{{3}}|\(\S+\)=)"
    rf"|\[!(?:include|code|video|div)|{_ICON}|\^[\w-]+[ \t]*$|(?<![\w+/=-])[\w+/=-]{{160}}|#tab|#\+b|\(\([0-9a-f]{{8}}-"
    r"|[~^]\w{1,9}[~^]|:LOGBOOK:|^type_: "
)
"""A page without any of `_FREQUENT` and this is text as it stands."""
_CODE_SPAN = re.compile(r"(`(?<![`\\].)`*)(?!`)((?:(?!\n[ \t]*\n).)+?)(?<!`)\1(?!`)", re.DOTALL)
_DESTINATION = re.compile(r"\][(:][ \t]*(<[^<>\n]*>)")
_PLUG_IN_DATA = re.compile(
    r"(?i)(?:dataview(?:js)?|tasks|base|button|compressed-json|\{=(?!html)\w+\}|\{(?:toctree|tableofcontents)\})(?!\S)"
)  # code fences

_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*\}"
_TEXT_ATTRIBUTE = re.compile(
    "title|label|header|heading|summary|caption|description|content|alt(?:-text)?|text|tip|subtitle|subheading|tagline|placeholder|tooltip|code",
    re.IGNORECASE,
)
_ATTRIBUTE = re.compile(
    rf"([\w:@.-]+)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|\{{\s*[\"'`]([^\"'`]*)[\"'`]\s*\}}|({_BRACES})|([^\s\"'>{{}}]+))"
)
_LABELS = re.compile(rf"\b(?:{_TEXT_ATTRIBUTE.pattern})[\"']?\s*:\s*([\"'`])(.*?)\1")
_POSITIONAL = re.compile(
    r"\A(?:tabs?|expand|details|button|card|badge|hint|alert|note|callout|admonition)\b(?:[^\"=]*|.*\bname=)\"([^\"]*)\""
)
_NO_TITLE = re.compile(r"\{.*?\}|[\w-]+=(?:\"[^\"]*\"|'[^']*')|:::+$")
_CAPTION = re.compile(r"\b(?:alt|cap(?:tion)?|title):[ \t]*(.+)")
_DIRECTIVE = re.compile(
    r"(?P<quote>[ \t>]*)(?::::+|/{3,}(?![/\w])|`{3,}|~{3,})[ \t]*"
    r"(?:\{(?:[^{}\n]*(?P<callout>\.callout-))?(?P<braced>=?[\w:-]+)(?P<attributes>[^{}\n]*)\}"
    r"|(?P<kind>[\w-]+)(?=[\s\[{]|:::|$))?(?P<title>.*)(?P<options>(?(braced)(?:\n[ \t>]*:[\w-]+:.*)*))"
    r"(?(callout)(?:\s*\n#{1,6}[ \t]+(?P<heading>.+))?)",
    re.MULTILINE,
)
_PROSE = re.compile(  # directives of MyST that contain markdown
    r"(?i)\{(?:(?P<admonition>note|tip|hint|info|important|warning|caution|danger|attention|error|seealso|todo|details"
    r"|success|question|example|bug|failure|quote|abstract|summary|check|version-?(?:added|changed)|deprecated(?:-removed)?)"
    r"|admonition|dropdown|aside|margin|sidebar|topic|card|grid(?:-item)?(?:-card)?|tab-(?:set|item)|figure|image|table"
    r"|list-table|glossary|exercise|solution|=html)\}"
)
_OPTIONS = re.compile(r"(?:[ \t]*(?::[\w-]+:|#\|).*\n)+")  # of code in notebooks
_HIDDEN_LINE = re.compile(r"^[ \t]*#(?:[ \t].*)?$", re.MULTILINE)  # of Rust
_TABS = re.compile(r"^(:{3,})[ \t]*\{[^}\n]*\.panel-tabset.*?^\1[ \t]*$", re.DOTALL | re.MULTILINE)  # of Quarto
_VERBATIM = re.compile(
    r"(?sm)\{%-?\s*raw\b.*?\bendraw\s*-?%\}|<(\w+)[^<>]*\sv-pre\b[^<>]*>.*?</\1>|^:::+[ \t]*v-pre\b.*?^:::"
)
_HIGHLIGHT = re.compile(
    r"(?ms)^([ \t]*)\{[{%][<%]?-?[ \t]*(highlight|codeblock)\b[ \t\"]*(?:lang:)?([\w+-]*)[^\n]*(?P<code>\n.*?\n)"
    r"[ \t]*\{[{%][<%]?-?[ \t]*(?:end|/[ \t]*)\2\b[^\n]*"
)
_NO_TAG = r"(?:[^$<]|<(?![A-Za-z!/]))"
_MATH = re.compile(rf"\$(?:\${_NO_TAG}+\$\$|(?<![\\\w$]\$)(?![\s$])(?:(?!\n){_NO_TAG})+(?<![\s\\])\$(?![\w$]))")
_SHOWN_TEMPLATE = re.compile(r"\{\{.*?\}\}|\{%(?!-?\s*(?:end)?raw\b).*?%\}")
_LAST_STRING = r"(?:[\"'][^\"'\n]*[\"']\s*,\s*)?[\"'](?P<kept>[^\"'\n]+)[\"']"  # of two, in a macro of MDN
_REFERENCE = re.compile(r"(?:rel)?ref\s+\"?([^\"\s]+)|(?:link|post_url)\s+(\S+)")
_HEADING_ID = re.compile(
    r"(?m)(?:\{(?::?(?:[^{}\n]*?[ \t])?[#.][^{}\n]*|[\w-]+=[\"'][^{}\n]*|/\*[ \t]*#[^{}\n]*\*/|-)\}|:(?<=[ \t]:)id=\S+"
    r"|<!-- *\{?#[^>]*-->)[ \t]*$"
)
_ID = re.compile(r"(?:#|^\(|:id=|(?=\^))([^\s{}()#*]+)")
_UNDERLINE = re.compile(r"\n[ \t]*(?:=+|-+)[ \t]*$", re.MULTILINE)
_MARGIN = re.compile(r"^[ \t]*(?=(#{1,6}[ \t]|`{3}|~{3})?)", re.MULTILINE)
_BYTES = re.compile(
    r"(?m)(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{160,}"
    r"|(?:^[ \t>]*[A-Za-z0-9+/]{60,76}\n){4,}(?:^[ \t>]*[A-Za-z0-9+/]+={0,2}$)?"
)
_ADDRESS, _HOST = re.compile(r"://[^\s?#]*\Z"), 253  # a path in an address, unlike a token in its query, is text
_ENCODED = re.compile(r".*?[A-Za-z0-9+/=_-]{160}|[A-Za-z0-9+/]{60,76}\Z")  # a word in such bytes

_COMPONENT = re.compile(rf"<[A-Z][\w.]*(?:[^<>{{}}\"']|\"[^\"]*\"|'[^']*'|{_BRACES})*>")
_CROWDED = r"<[a-z][\w-]*\s+(?:[\w:-]+=(?:\"[^\"]*\"|'[^']*')\s*)+/?>"  # no blank between attributes
_TAG = re.compile(rf"{_COMPONENT.pattern}|{HTML_OPEN_CLOSE_TAG_STR[1:]}|{_CROWDED}|</?>")
_NAME = re.compile(r"</?([\w.-]+)(?=[\s/>])")
_HREF = re.compile(r"\shref\s*=\s*[\"']((?![a-zA-Z][\w+.-]*:|//|#)[^\"'\s]+)", re.IGNORECASE)
_NEVER_SHOWN = re.compile("template|svg|noscript|head|iframe|canvas")
_ESCAPED = re.compile(r"\\([_|/])")  # signs that people escape in markdown, hardly in HTML
_HIDDEN = re.compile(r"\shidden(?=[\s>/=])|display:\s*none", re.IGNORECASE)
_VOID = re.compile("area|base|br|col|embed|hr|img|input|link|meta|param|source|track|wbr")
_BLOCK = re.compile(
    "address|article|aside|blockquote|br|caption|center|dd|details|div|dl|dt|fieldset|figcaption|figure|footer|form|h[1-6]"
    "|header|hr|li|main|nav|ol|option|p|pre|section|summary|table|tbody|td|tfoot|th|thead|tr|ul"
)
_LOOKS_BACK = 300  # characters in which the line before a tag is looked for
_DEEP = 200  # elements that can be open


@dataclass(slots=True)
class Edit:
    """The characters `start` to `end` of a page become `text`.

    `kind` (of `ragbench.corpus.file_warning`) says what is excluded, if anything; `ids` name the place.
    """

    start: int
    end: int
    text: str = ""
    kind: str = ""
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Page:
    """The visible `text`, the ids that authors gave to places in it, by offset, and what was excluded with its kind."""

    text: str
    ids: tuple[tuple[int, str], ...] = ()
    left_out: tuple[tuple[str, str], ...] = ()


def visible(text: str, mdx: bool = False) -> Page:
    """The page without what its reader does not see; never raises."""
    if not _FREQUENT.search(text) and not _RARE.search(text) and not (mdx and "{" in text):
        return Page(text)
    edits, masked = _edits_of_rules(text, mdx)
    return _Tags(text, edits).page(masked)


def _edits_of_rules(text: str, mdx: bool) -> tuple[list[Edit], str]:
    """The edits of everything but tags, and the text with `_` for code and for all that has been read."""
    starts = [0, *accumulate(map(len, io.StringIO(text))), len(text)]
    tokens, _ = blocks_of(text, mdx)
    edits = [Edit(starts[begin], starts[end], "", "module") for begin, end in module_lines(text, tokens, mdx)]
    code = [(edit.start, edit.end) for edit in edits]
    tables = 0  # open in HTML, where no line is code
    blocks = [token for token in tokens if token.type in ("fence", "code_block", "html_block")]
    for token in blocks:
        if token.type == "html_block" or (tables > 0 and token.type == "code_block"):
            tables += token.content.count("<table") - token.content.count("</table")
        if token.map and _PROSE.match(token.info) and (opened := _DIRECTIVE.match(text, starts[token.map[0]])):
            first, last = text.count("\n", 0, opened.end()) + 1, token.map[1] - 1
            code += [opened.span(), (starts[last], starts[last + 1])]
            edits.append(Edit(*code[-2], _title_of_block(opened)))
            if token.markup in text[slice(*code[-1])]:  # its last line closes it
                edits.append(Edit(*code[-1]))
            blocks += blocks_of_lines(text.split("\n"), first, last, mdx, {})
        elif token.map and (token.type == "fence" or (token.type == "code_block" and tables <= 0)):
            code.append((starts[token.map[0]], starts[token.map[1]]))
            if _PLUG_IN_DATA.match(token.info.strip()):
                edits.append(Edit(*code[-1], "", "plug-in-data"))
            elif token.info.startswith("{") and (options := _OPTIONS.match(text, starts[token.map[0] + 1])):
                edits.append(Edit(*options.span(), "\n".join(_CAPTION.findall(options[0]))))
            elif token.info.startswith("rust"):
                edits += [Edit(*line.span(), "", "invisible") for line in _HIDDEN_LINE.finditer(text, *code[-1])]
        elif token.map and token.type in ("html_block", "code_block") and not mdx:
            # No line of HTML is markdown: not what is indented, nor what begins with a sign of a heading or fence. The
            # margin of the first line is that of the admonition or list around it.
            lines = list(_MARGIN.finditer(text, starts[token.map[0]], starts[token.map[1]]))
            margin = len(lines[0][0])
            for match in lines:
                if len(match[0]) > margin or match[1]:
                    edits.append(Edit(min(match.start() + margin, match.end()), match.end(), "\\" if match[1] else ""))
    if any(_ENCODED.match(word) for word in text.split() if len(word) >= 60):
        edits += [Edit(*match.span(), "", "bytes") for match in _BYTES.finditer(text) if _is_bytes(match)]
    masked = _masked(text, sorted(code))
    for match in _HIGHLIGHT.finditer(masked) if "{" in masked else ():
        begin, end, fence = *match.span(), f"{match[1]}````"
        edits = [edit for edit in edits if not begin <= edit.start < end]
        edits += [Edit(begin, match.start("code"), fence + match[3], "template")]
        edits += [Edit(match.end("code"), end, fence, "template")]
        masked = _masked(masked, [match.span()])
    for sign, pattern in (("`", _CODE_SPAN), ("$", _MATH)):
        if sign in masked:
            masked = _masked(masked, (match.span() for match in pattern.finditer(masked)))
    for match in _HEADING_ID.finditer(masked) if re.search(r"\{|:id=|<!--", masked) else ():
        line = masked[masked.rfind("\n", 0, match.start()) + 1 : match.start()]
        if line.lstrip(" \t>").startswith("#") or _UNDERLINE.match(masked, match.end()):
            span = len(masked[: match.start()].rstrip(" \t")), match.end()
            edits.append(Edit(*span, "", "", tuple(_ID.findall(match[0]))))
            masked = _masked(masked, [span])
    for tabs in _TABS.finditer(masked) if "panel-tabset" in masked else ():
        edits += [Edit(*sign.span()) for sign in re.compile(r"(?m)^#{1,6}[ \t]+").finditer(masked, *tabs.span())]
    if "raw" in masked or "v-pre" in masked:  # templates that are shown
        masked = _VERBATIM.sub(lambda match: _SHOWN_TEMPLATE.sub(_signs, match[0]), masked)
    lower = masked.lower()
    for sign, pattern, becomes, kind in (*_RULES, _EXPRESSION if mdx else _ATTRIBUTES):
        if sign not in lower:
            continue
        if becomes is _string:
            masked = _COMPONENT.sub(lambda match: re.sub(_BRACES, _signs, match[0]), masked)
        spans = []
        for match in pattern.finditer(masked):
            written = pattern.match(text, match.start()) or match  # with its code
            ids = tuple(_ID.findall(match[0])) if kind in ("place", "block-id") else ()
            edits.append(Edit(*match.span(), becomes(written), "" if kind == "place" else kind, ids))
            spans.append(match.span())
        if spans:
            masked = _masked(masked, spans)
            lower = masked.lower()
    return edits, _masked(masked, (match.span(1) for match in _DESTINATION.finditer(masked)))


def _masked(text: str, spans: Iterable[tuple[int, int]]) -> str:
    """The text with `_`, which means nothing, instead of each span; spans are in order."""
    parts, end = [], 0
    for start, stop in spans:
        if start >= end:
            parts += [text[end:start], _signs(text[start:stop])]
            end = stop
    return "".join([*parts, text[end:]])


def _signs(text: str | re.Match[str]) -> str:
    return "\n".join("_" * len(line) for line in (text if isinstance(text, str) else text[0]).split("\n"))


def _is_bytes(match: re.Match[str]) -> bool:
    """Whether a text looks like encoded bytes: almost as many different signs as chance would give."""
    if _ADDRESS.search(match.string, max(match.start() - _HOST, 0), match.start()):
        return False
    signs = "".join(match[0].split())
    shares = [count / len(signs) for count in Counter(signs).values()]
    entropy = -sum(share * math.log2(share) for share in shares)
    # Of 4 bits a character; signs of base64 have about 6, words joined by signs less.
    least = 3.5 if re.fullmatch(r"[0-9a-fA-F]+", signs) else 4.0
    return entropy >= least and any(map(str.isdigit, signs))


def _kept(match: re.Match[str]) -> str:
    """What stays of a match, if anything: the path of an included file, the label of a tab, a corrected text."""
    return match.groupdict().get("kept") or ""


def _role(match: re.Match[str]) -> str:
    """Nothing instead of the name of a role of MyST, which stands before code: {ref}`berths`."""
    return "" if match.string.startswith("`", match.end()) else match[0]


def _words_of_template(match: re.Match[str]) -> str:
    """The words in a shortcode or template: the texts of its attributes, or the page that it refers to."""
    inner = match["inner"].strip()
    if reference := _REFERENCE.match(inner):
        return reference[1] or reference[2]
    return " ".join(_words_of_attributes(inner) + _POSITIONAL.findall(inner))


def _words_of_attributes(tag: str) -> list[str]:
    """The attributes of a component that a reader sees as text."""
    words, is_field = [], tag.startswith(("<ParamField", "<ResponseField", "swagger"))
    for name, *quoted, braces, _ in _ATTRIBUTE.findall(tag):
        words += [text for text in quoted if text and (is_field or _TEXT_ATTRIBUTE.fullmatch(name))]
        words += [label for _, label in _LABELS.findall(braces)]
        words += re.findall(r"[\"'`]([^\"'`]+)[\"'`]", braces) if name == "items" and "{" not in braces[1:] else []
    return words


def _title_of_block(match: re.Match[str]) -> str:
    """The title of `:::note[Title]`, `::: tip Title` or `{.callout-tip}` with a heading; its kind where it has none."""
    kind = match["braced"] or match["kind"] or ""
    words = _words_of_attributes(f"{match['attributes'] or ''}{match['title']}")
    words += _CAPTION.findall(match["options"] or "")
    title = _NO_TITLE.sub("", match["title"]).strip(" \t|").removeprefix("[").removesuffix("]").strip()
    title = match["heading"] or " ".join(words) or ("" if match["braced"] in ("figure", "image") else title)
    directive = _PROSE.match(f"{{{kind}}}")
    if directive and directive["admonition"] and (not title or kind.startswith(("version", "deprecated"))):
        title = f"{kind.capitalize()} {title}".rstrip()
    return match["quote"] + title


def _character(match: re.Match[str]) -> str:
    """`&nbsp;` and the like; not signs that markdown would read again."""
    shown = html.unescape(match[0])
    return match[0] if shown in "<>&*_`[]|#\\" or len(shown) > 2 else " " if shown.isspace() else shown


def _string(match: re.Match[str]) -> str:
    """The text of an expression of MDX that is a string, `{"text"}`."""
    return "".join(re.findall(r"^\{\s*[\"'`](.*)[\"'`]\s*\}$", match[0]))


def _rule(sign: str, pattern: str, kind: str, becomes: Callable[[re.Match[str]], str] = _kept, flags: int = 0) -> _Rule:
    return sign, re.compile(pattern, re.MULTILINE | flags), becomes, kind


_Rule = tuple[str, re.Pattern[str], Callable[[re.Match[str]], str], str]
_RULES: tuple[_Rule, ...] = (
    _rule("@include", r"<!--[ \t]*@include:[ \t]*(?P<kept>[^\s{>]+).*?-->", "include"),  # VitePress
    _rule("<!--", r"<!--(?:>|->|.*?-->)|^ {0,3}<!--(?!-?>|.*?-->).*", "comment", flags=re.DOTALL),
    _rule("]:", r"^ {0,3}\[[^\]\n]*\]:[ \t]*(?:#|<>)[ \t]+(?:\(.*\)|\".*\"|'.*')[ \t]*$", "comment"),
    _rule("%%", r"%%(?:\n.*?\n[ \t]*%%|[^\n]+?%%)|^%%[^%\n]*\n.*?%%", "comment", flags=re.DOTALL),
    _rule("{", r"\{\{?/\*.*?\*/\}\}?|\{#(?=\s).*?#\}", "comment", flags=re.DOTALL),
    _rule("{", r"\{(?:%-?|\{[<%]|::)\s*comment\b.*?(?:endcomment|/comment|\{:/)\s*[-%>]*\}+", "comment", flags=re.S),
    _rule("{", r"\{>>.*?<<\}|\{--.*?--\}|\{~~.*?~>(?P<kept>.*?)~~\}", "comment"),  # CriticMarkup
    _rule("%", r"^%[ \t].*$", "comment"),
    _rule("%>", r"<%.*?%>", "template", flags=re.DOTALL),
    _rule("<![cdata[", r"(?<=-body>)<!\[CDATA\[(?P<kept>.*?)\]\]>", "", flags=re.DOTALL),  # of Confluence
    _rule("<ac:", r"<ac:parameter ac:name=\"(?!title\")[^\"]*\">[^<]*</ac:parameter>", "template"),
    _rule("<ac:", r"</?(?:ac|ri|at):[\w-]+(?:[^<>]*? ri:content-title=\"(?P<kept>[^\"]*)\")?[^<>]*>", ""),
    _rule("</s", r"<(script|style)\b[^<>]*>.*?</\1\s*>", "invisible", flags=re.DOTALL | re.IGNORECASE),
    _rule("<", r"<\?.*?\?>|<![A-Za-z\[][^>]*>", "invisible", flags=re.DOTALL),
    _rule("{{", r"\{\{[<%](?!/\*)(?P<inner>(?:\"[^\"]*\"|(?!\{\{)[^\"])*?)/?[>%]\}\}", "template", _words_of_template),
    _rule("{%", r"\{%[-+]?(?P<inner>(?:\"[^\"]*\"|(?!\{%)[^\"])*?)[-+]?%\}", "template", _words_of_template),
    _rule("{{#", r"\{\{#(?:\w*include|playground)[ \t]+(?P<kept>[^\s:}]+)[^}\n]*\}\}", "include"),
    _rule("[!", r"\[!(?:include|code)[\w-]*[ \t]*\[[^\]]*\]\((?P<kept>[^)\s]*)[^)]*\)\]", "include", flags=re.I),
    _rule("{{", rf"\{{\{{\s*(?:\w+xref|\w+Element|Glossary|HTTP\w+)\({_LAST_STRING}[^)\n]*\)\s*\}}\}}", ""),
    _rule("{{", r"\{\{(?![<%])[^{}\n]*(?:\{[^{}\n]*\}[^{}\n]*)?\}\}", "template"),
    _rule("\u26a0", rf"^==\u26a0.*\u26a0==.*$|{_DRAWING}", "plug-in-data"),
    _rule("--8<--", r"^[ \t]*--8<--(?:[ \t]*[\"'](?P<kept>[^\"'\n]*)[\"'])?.*$", "include"),
    _rule("<<<", r"^[ \t]*<<<[ \t]+(?P<kept>[^\s{]*).*$", "include"),
    _rule("{", r"^[ \t]*\{[*!] (?P<kept>\S*).* [*!]\}$", "include"),
    _rule("toc", r"^[ \t]*\[\[?_?TOC_?\]\]?[ \t]*$", "template", flags=re.IGNORECASE),
    _rule("[[_tosp_", r"^[ \t]*\[\[_TOSP_\]\][ \t]*$", "template", flags=re.IGNORECASE),  # of Azure DevOps
    _rule("^", r"(?<=[^\s|])[ \t]\^[A-Za-z0-9-]+[ \t]*$|^\^[A-Za-z0-9-]+[ \t]*$", "block-id"),
    _rule(":::", r"^:::[ \t]+(?P<kept>\w+[._]\w[\w.]*)[ \t]*(?:\n+[ \t]{4,}\S.*)*$", "include"),
    _rule(":::", rf"^{_DIRECTIVE.pattern}", "", _title_of_block),
    _rule("///", rf"^{_DIRECTIVE.pattern}", "", _title_of_block),
    _rule("(#tab/", r"^#{1,6}[ \t]+\[(?P<kept>[^\]\n]*)\]\(#tab/[^)\n]*\)[ \t]*$", ""),
    _rule(")=", r"^\(\S+\)=[ \t]*$", "place"),
    _rule("}", r"\{[A-Za-z][\w:+-]*\}(?=[`_])", "", _role),
    _rule("+++", r"^\+{3}(?:[ \t].*)?$", "template"),
    _rule("[!", r"\[!(?:VIDEO|div)\b[^\]\n]*\]", "template", flags=re.IGNORECASE),
    _rule("---", rf"^{_SLIDE}---[ \t]*$", "template"),
    _rule("::", r"^::[a-z][\w-]*::[ \t]*$", "template"),
    _rule("toc", r"^[ \t]*(?:[*+-]|1\.)[ \t].*\n[ \t]*\{:[ \t]*toc.*\}[ \t]*$", "template"),
    _rule("::", rf"^[ \t]*{_PROPERTY}.*$", "plug-in-data"),
    _rule(":logbook:", r"^[ \t]*:LOGBOOK:\n(?:.*\n)*?[ \t]*:END:", "plug-in-data"),
    _rule("type_:", r"^id: [0-9a-f]{32}\n(?:\w+:.*\n)*type_: \d+\s*\Z", "plug-in-data"),  # of Joplin
    _rule("~", r"(?<=\w)~(?P<kept>[\w+-]{1,9})~(?!~)", ""),  # H~2~O
    _rule("^", r"(?<=\w)\^(?P<kept>[\w+-]{1,9})\^", ""),
    _rule("*", r"\*((?<=[^\W_]\*))?(\*{0,2})(?P<kept>[^\W_]+)\*\2(?(1)(?!\*)|(?=[^\W_]))", ""),  # **B**erth
    _rule("#+", r"#\+BEGIN_QUERY(?:.*\n)*?.*#\+END_QUERY|#\+(?:BEGIN|END)_\w+.*$", "plug-in-data"),  # Logseq
    _rule("((", r"\(\([0-9a-f]{8}-[0-9a-f-]{27}\)\)", "block-id"),
    _rule(":", rf"{_ICON}[\w-]+:", ""),
    _rule("data:", r"(?<=\()[ \t]*<?data:[^)\s]*|(?<=\]:)[ \t]*<?data:\S*", "bytes"),
    _rule("&", r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|\w{2,31});", "", _character),
)
"""What stands between tags: a sign (lower-case) without which a text has none, a pattern, what is shown, the kind."""
_EXPRESSION = _rule("{", rf"(?<!\\){_BRACES}", "template", _string)
_ATTRIBUTES = _rule(
    "{",
    r"\{(?::(?:[^{}\n\"]|\"[^\"]*\")*\}|(?:(?<=[)`*_\]]\{)[ \t]*[.#:=]|(?<=[)\]]\{)[ \t]*[\w-]+=)[^{}\n]*\})"
    r"|^[ \t]*\{[ \t]*(?:[.#]|[\w-]+=[\"'])[^{}\n]*\}[ \t]*$|(?<=[ \t])\{#[A-Za-z][^{}\n]*\}[ \t]*$",
    "place",
)


@dataclass(slots=True)
class _Element:
    """An element that has begun: its name, start tag, and where this begins and ends. Tables collect their cells."""

    name: str
    tag: str
    start: int
    end: int
    rows: list[list[str]] = field(default_factory=list)
    has_header: bool = False

    def has_words_of(self, inner: str) -> bool:
        """Whether all the words in a table are in its cells."""
        return len(inner.split()) <= sum(len(cell.split()) for row in self.rows for cell in row)


class _Tags:
    """Replaces tags, in order, and merges the edits that were made before."""

    def __init__(self, text: str, edits: list[Edit]) -> None:
        self._text = text
        self._waiting = sorted(edits, key=lambda edit: (-edit.start, edit.end))  # the last is the next
        self._edits: list[Edit] = []
        self._open: list[_Element] = []

    def page(self, masked: str) -> Page:
        """The text with all edits; tags are found in `masked`."""
        for match in _TAG.finditer(masked):
            if "\n\n" in match[0]:
                continue
            self._take_edits_before(match.start())
            name = _NAME.match(match[0])
            if name is None:
                self._edits.append(Edit(*match.span()))
            elif match[0].startswith("</"):
                self._close(name[1].lower(), *match.span())
            else:
                self._begin(name[1], self._text[match.start() : match.end()], *match.span())
        self._take_edits_before(len(self._text) + 1)
        ids: list[tuple[int, str]] = []
        pieces, length = [], 0
        for piece, edit in self._pieces(0, len(self._text)):
            ids += [(length, name) for name in (edit.ids if edit else ())]
            length += len(piece)
            pieces.append(piece)
        left_out = [(edit.kind, self._text[edit.start : edit.end]) for edit in self._edits if edit.kind]
        return Page("".join(pieces), tuple(ids), tuple(left_out))

    def _take_edits_before(self, position: int) -> None:
        """Take the waiting edits before a position, but for those inside another one."""
        while self._waiting and self._waiting[-1].start < position:
            edit = self._waiting.pop()
            if not self._edits or edit.start >= self._edits[-1].end:
                self._edits.append(edit)

    def _begin(self, written: str, tag: str, start: int, end: int) -> None:
        name, component = written.lower(), written[0].isupper() or "-" in written
        attributes = {key: "".join(values) for key, *values in _ATTRIBUTE.findall(tag)}
        shown = ""
        if component:
            shown = " ".join(_words_of_attributes(tag))
        elif name == "img":
            shown = html.unescape(attributes.get("alt", ""))
        elif name == "li" and not self._line_before(start):
            shown = "- "
        elif (_BLOCK.fullmatch(name) and self._line_before(start)) or self._text.endswith("</span>", 0, start):
            shown = " "
        if component and shown:
            shown = f"{' ' if self._line_before(start) else ''}{shown} "
        ids = [] if component or name == "input" else [attributes[key] for key in ("id", "name") if attributes.get(key)]
        self._edits.append(Edit(start, end, shown, "", tuple(ids)))
        if not _VOID.fullmatch(name) and not tag.endswith("/>"):
            self._open.append(_Element(name, tag, start, end))
            del self._open[:-_DEEP]

    def _close(self, name: str, start: int, end: int) -> None:
        follows = self._text[end : end + 1].strip()
        self._edits.append(Edit(start, end, " " if _BLOCK.fullmatch(name) and follows else ""))
        number = next((n for n in range(len(self._open) - 1, -1, -1) if self._open[n].name == name), None)
        if number is None:
            return
        element = self._open[number]
        del self._open[number:]
        inner = self._shown(element.end, start)
        in_line = " ".join(inner.split())
        table = next((outer for outer in reversed(self._open) if outer.name == "table"), None)
        if _NEVER_SHOWN.fullmatch(name) or _HIDDEN.search(element.tag):
            self._replace(element.start, end, "", "invisible")
        elif re.fullmatch("h[1-6]", name):
            before = "\n\n" if self._line_before(element.start).strip(" >") else ""
            self._replace(element.start, end, f"{before}{'#' * int(name[1])} {in_line}" + ("\n" if follows else ""))
        elif name == "tr" and table:
            table.rows.append([])
        elif name in ("td", "th") and table:
            table.rows = table.rows or [[]]
            table.has_header |= name == "th" and len(table.rows) == 1
            table.rows[-1].append(in_line.replace("|", "\\|"))
        elif name == "table" and element.rows and not table and "```" not in inner and element.has_words_of(inner):
            before = "\n" if self._line_before(element.start) else ""
            self._replace(element.start, end, before + _table(element))
        elif name == "pre":
            code = html.unescape(re.sub(r"<[^<>\n]*>", "", self._text[element.end : start]))
            self._replace(element.start, end, "\n".join(f"    {line}".rstrip() for line in code.split("\n")))
        elif name == "code" and in_line and "`" not in inner and "\n" not in inner:
            self._replace(element.start, end, f"`{self._code(inner, start)}`")
        elif name == "a" and in_line and not re.search(r"[\[\]\n]", inner) and (href := _HREF.search(element.tag)):
            self._replace(element.start, end, f"[{in_line}]({href[1]})")

    def _code(self, inner: str, position: int) -> str:
        """What `<code>` shows, as code of markdown; in a row of a table a bar is escaped."""
        code = html.unescape(_ESCAPED.sub(r"\1", inner))
        return code.replace("|", "\\|") if self._line_before(position).startswith("|") else code

    def _line_before(self, position: int) -> str:
        """What is shown of the line before a position, empty if that is blank."""
        start = max(self._text.rfind("\n", 0, position) + 1, position - _LOOKS_BACK)
        return self._shown(start, position).strip()

    def _shown(self, start: int, end: int) -> str:
        """The characters `start` to `end` with the edits among them."""
        return "".join(piece for piece, _ in self._pieces(start, end))

    def _pieces(self, position: int, end: int) -> Iterator[tuple[str, Edit | None]]:
        """The text between the edits, and that of the edits, with the line breaks of what they replace."""
        for edit in self._edits[self._first(position) :]:
            if edit.end <= end:
                yield self._text[position : edit.start], None
                breaks = self._text.count("\n", edit.start, edit.end) - edit.text.count("\n")
                yield edit.text + "\n" * breaks, edit
                position = edit.end
        yield self._text[position:end], None

    def _replace(self, start: int, end: int, shown: str, kind: str = "") -> None:
        """One edit instead of all those from `start` on; their ids stay."""
        first = self._first(start)
        ids = tuple(name for edit in self._edits[first:] for name in edit.ids)
        self._edits[first:] = [Edit(start, end, shown, kind, ids)]

    def _first(self, position: int) -> int:
        return bisect_left(self._edits, position, key=lambda edit: edit.start)


def _table(element: _Element) -> str:
    """A table of markdown."""
    rows = [row for row in element.rows if row]
    width = max(map(len, rows))
    header = rows.pop(0) if element.has_header else []
    lines = [[*row, *[""] * (width - len(row))] for row in (header, ["---"] * width, *rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
