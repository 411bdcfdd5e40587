"""Laws of parser and chunkers over generated markdown and over arbitrary bytes."""

import re
from itertools import pairwise

from hypothesis import given, settings, strategies as st

from ragbench.base.types import Chunk, Document
from ragbench.corpus.links import resolve_links
from ragbench.corpus.metadata import read_metadata
from ragbench.corpus.reader import _split_frontmatter, parse_document
from ragbench.index.chunking import Chunker, HeaderChunker, ParentChildChunker
from ragbench.index.spans import body_start

WORDS = st.sampled_from(
    ["token", "`getUserById`", "C++", "Größe", "[[a|b]]", "[x](../y.md)", "#tag/x", "e.g.", "**bold**"]
)
SENTENCE = st.lists(WORDS, min_size=1, max_size=12).map(lambda words: "A " + " ".join(words) + ". ")
LINE = st.text(st.characters(exclude_categories=["Cs"]), max_size=60).map(lambda line: re.sub(r"[\r\n]", " ", line))
PARAGRAPH = st.lists(SENTENCE, min_size=1, max_size=12).map("".join)
CODE = st.lists(st.one_of(LINE, st.just(""), st.just("# no heading"), st.just("~~")), max_size=12).map("\n".join)


def fenced(code: str, marker: str, language: str) -> str:
    return f"{marker}{language}\n{code.replace('`', '').replace('~~~', '')}\n{marker}"


FENCE = st.builds(fenced, CODE, st.sampled_from(["```", "~~~", "`````"]), st.sampled_from(["", "sh", "C++ {a=b}"]))
BLOCK = st.one_of(
    st.builds(
        lambda level, text: f"{'#' * level} {text}", st.integers(1, 6), st.sampled_from(["Limits", "A b", "", "!"])
    ),
    st.builds(lambda text, rule: f"{text}\n{rule}", st.sampled_from(["Setext", "Two\nlines"]), st.sampled_from("=-")),
    PARAGRAPH,
    FENCE,
    FENCE.map(lambda fence: "- item\n\n" + "\n".join(f"  {line}" for line in fence.split("\n"))),
    PARAGRAPH.map(lambda text: f"> # quoted\n> {text}"),
    st.lists(SENTENCE, min_size=1, max_size=20).map(lambda items: "\n".join(f"* {item}" for item in items)),
    st.lists(SENTENCE, max_size=20).map(lambda rows: "\n".join(["| a |", "|---|", *(f"| {row} |" for row in rows)])),
    st.just("<div>\n# html\n</div>"),
    st.just("    # indented code"),
    st.just("***"),
    st.integers(1, 900).map(lambda length: "x" * length),
    LINE,
)
BODY = st.builds(
    lambda blocks, joint, end: joint.join(blocks) + end,
    st.lists(BLOCK, max_size=25),
    st.sampled_from(["\n\n", "\n", "\n\n\n"]),
    st.sampled_from(["", "\n", "\n```\nnever closed\n\n# x"]),
)


@st.composite
def chunkers(draw: st.DrawFn) -> HeaderChunker:
    overlap = draw(st.integers(0, 120))
    least = draw(st.integers(0, 300))
    return HeaderChunker(least, least + overlap + draw(st.integers(1, 800)), overlap)


@st.composite
def parent_chunkers(draw: st.DrawFn) -> ParentChildChunker:
    child, parent = draw(chunkers()), draw(chunkers())
    more = max(0, child.max_chars - parent.max_chars)
    return ParentChildChunker(
        child.min_chars, child.max_chars, child.overlap_chars,
        parent.min_chars, parent.max_chars + more, parent.overlap_chars,
    )  # fmt: skip


def parsed(text: str) -> Document:
    return parse_document("a/b", "a/b.md", text.encode("utf-8", "replace"), 0.0)[0]


@settings(deadline=None)
@given(BODY)
def test_sections_tile_the_text(text: str) -> None:
    document = parsed(text)
    sections = document.sections
    assert [section.number for section in sections] == list(range(len(sections)))
    assert len({section.anchor for section in sections}) == len(sections)
    assert bool(sections) == bool(document.text.strip())
    for section, following in pairwise(sections):
        assert section.end == following.start
    for section in sections:
        own = document.text[section.start : section.end]
        assert section.start < section.end
        assert (section.level == 0) == (section.path == ())
        if section.level:
            assert section.anchor.count("/") == len(section.path) - 1
            assert section.start == 0 or document.text[section.start - 1] == "\n"
            underlined = re.match(r"\s{0,3}\S(?:.*\n)+?\s{0,3}[=-]+\s*$", own, re.MULTILINE)
            assert own.lstrip().startswith("#" * section.level) or underlined
            assert section.start < body_start(document.text, section) <= section.end
    if sections:
        assert not document.text[: sections[0].start].strip()
        assert sections[-1].end == len(document.text)


@settings(deadline=None)
@given(BODY)
def test_code_blocks_are_where_they_say(text: str) -> None:
    document = parsed(text)
    lines = document.text.split("\n")
    for number, block in enumerate(document.code_blocks):
        span = document.text[block.start : block.end]
        assert block.number == number
        assert span == "\n".join(
            lines[block.start_line - document.first_line : block.end_line - document.first_line + 1]
        )
        assert "```" in span.split("\n")[0] or "~~~" in span.split("\n")[0]
        assert all(line.strip() in span for line in block.code.split("\n"))
    for block, following in pairwise(document.code_blocks):
        assert block.end < following.start


def check_chunks(document: Document, chunks: list[Chunk], names: str) -> None:
    """The laws of one level: exact spans, ids in order, full cover, whole fences, true sections and breadcrumbs."""
    text, sections = document.text, {section.number: section for section in document.sections}
    assert [chunk.chunk_id for chunk in chunks] == [f"a/b#{names}{number}" for number in range(len(chunks))]
    covered = bytearray(len(text))
    for chunk in chunks:
        assert chunk.text == text[chunk.start : chunk.end]
        assert chunk.text == chunk.text.strip() != ""
        covered[chunk.start : chunk.end] = b"\1" * len(chunk.text)
        overlapped = [s for s in document.sections if s.start < chunk.end and s.end > chunk.start]
        assert chunk.sections == tuple(section.number for section in overlapped)
        assert chunk.header_path == sections[chunk.sections[0]].path
    assert all(mark or char.isspace() for mark, char in zip(covered, text, strict=True))
    for chunk, following in pairwise(chunks):
        assert chunk.start < following.start
        assert chunk.end < following.end
    for block in document.code_blocks:
        fence = text[block.start : block.end]
        start = block.start + len(fence) - len(fence.lstrip())
        end = block.start + len(fence.rstrip())
        for chunk in chunks:
            assert chunk.end <= start or chunk.start >= end or (chunk.start <= start and end <= chunk.end)


def check_sizes(document: Document, chunks: list[Chunk], least: int, most: int, overlap: int) -> None:
    """No chunk over the limit but for a fence, and no overlap over its own or across sections."""
    for chunk in chunks:
        inside = [b for b in document.code_blocks if b.start < chunk.end and b.end > chunk.start]
        longest = max((block.end - block.start for block in inside), default=0)
        headings = [document.sections[number] for number in chunk.sections]
        heading_length = sum(body_start(document.text, section) - section.start for section in headings)
        other = len(chunk.text) - longest - heading_length
        assert len(chunk.text) <= most or other <= (least if longest else most)
    for chunk, following in pairwise(chunks):
        assert chunk.end - following.start <= overlap
        if chunk.end > following.start:
            assert chunk.sections[-1] == following.sections[0]


@settings(deadline=None)
@given(BODY, st.one_of(st.just(HeaderChunker()), chunkers()))
def test_header_chunker_keeps_its_laws(text: str, chunker: HeaderChunker) -> None:
    document = parsed(text)
    chunks = chunker.chunk(document)
    check_chunks(document, chunks, "")
    check_sizes(document, chunks, chunker.min_chars, chunker.max_chars, chunker.overlap_chars)
    assert all(chunk.parent is None and not chunk.is_parent for chunk in chunks)


@settings(deadline=None)
@given(BODY, st.one_of(st.just(ParentChildChunker()), parent_chunkers()))
def test_parent_child_chunker_keeps_its_laws(text: str, chunker: ParentChildChunker) -> None:
    document = parsed(text)
    chunks = chunker.chunk(document)
    children = [chunk for chunk in chunks if not chunk.is_parent]
    parents = [chunk for chunk in chunks if chunk.is_parent]
    check_chunks(document, children, "")
    check_chunks(document, parents, "p")
    check_sizes(document, children, chunker.child_min, chunker.child_max, chunker.child_overlap)
    check_sizes(document, parents, chunker.parent_min, chunker.parent_max, chunker.parent_overlap)
    by_id = {parent.chunk_id: parent for parent in parents}
    assert list(dict.fromkeys(child.parent for child in children)) == list(by_id)
    for child in children:
        parent = by_id[child.parent or ""]
        assert parent.start <= child.start < child.end <= parent.end
    same_as_alone = HeaderChunker(chunker.parent_min, chunker.parent_max, chunker.parent_overlap).chunk(document)
    assert [chunk.text for chunk in same_as_alone] == [parent.text for parent in parents]


@settings(deadline=None)
@given(
    st.one_of(st.binary(), st.text().map(lambda text: text.encode("utf-8", "replace"))),
    st.sampled_from([b"", b"---\n", b"```\n"]),
)
def test_decoding_takes_any_bytes(raw: bytes, before: bytes) -> None:
    document, warnings = parse_document("a/b", "a/b.md", before + raw, 1.5)
    resolved, more = resolve_links([document])
    assert all(warning.path == "a/b.md" for warning in [*warnings, *more])
    chunker: Chunker
    for chunker in (HeaderChunker(), ParentChildChunker(), HeaderChunker(0, 1, 0)):
        chunks = chunker.chunk(resolved[0])
        assert bool(chunks) == bool(document.text.strip())
    document.text.encode()
    document.title.encode()


YAML_ALPHABET = st.text(st.sampled_from(list("ab:-[]{}'\"#&*!|>%@`,?~\n  0129._<=\t\\xu")), max_size=80)


@settings(deadline=None, max_examples=300)
@given(YAML_ALPHABET)
def test_frontmatter_takes_any_yaml(yaml: str) -> None:
    result = _split_frontmatter(f"---\n{yaml}\n---\nText")
    read_metadata(result.fields)
    assert result.fields == {} or result.problem is None or result.problem[0] == "frontmatter-malformed"


JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=20), st.dates(), st.datetimes()),
    lambda values: st.one_of(st.lists(values, max_size=4), st.dictionaries(st.text(max_size=5), values, max_size=4)),
    max_leaves=10,
)
KEYS = [
    "title",
    "description",
    "summary",
    "keywords",
    "tags",
    "aliases",
    "author",
    "type",
    "date",
    "modified",
    "related",
]


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(KEYS), JUNK))
def test_metadata_takes_any_field(fields: dict[str, object]) -> None:
    result = read_metadata(fields)
    for values in (result.keywords, result.tags, result.aliases, result.authors, result.related):
        assert len(set(values)) == len(values)
        assert all(value.strip() for value in values)
    assert all(tag == tag.lower() and not tag.startswith("#") for tag in result.tags)
