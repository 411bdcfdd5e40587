"""Where the hits of other searches lie in the small vault of the tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.corpus.reader import read_vault
from ragbench.extras.remote.live import hit_matching
from ragbench.extras.remote.live.hit_matching import HitMatcher, LiveHit
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index, IndexSpec
from ragbench.models.resolve import Models


@pytest.fixture
def docno_at(index):
    def at(prefix: str = "", **fields: str) -> str | None:
        chunk = HitMatcher(index.chunks, prefix).chunk(LiveHit(**{"document": "", **fields}))
        return None if chunk is None else index.chunks.chunk_ids[chunk]

    return at


@pytest.mark.parametrize(
    "name",
    [
        "guides/authentication",
        "guides/authentication.md",
        "/Guides/Authentication.html",
        "https://example.org/guides/authentication/?lang=en#top",
        "https://example.org/en/latest/guides/authentication",
        "authentication",
        "guides\\\\authentication.md",
        "guides/authentication/index.html",
    ],
)
def test_paths_and_addresses_name_documents(docno_at, name: str) -> None:
    assert docno_at(document=name) == "guides/authentication#0"


def test_prefix_is_cut_and_names_of_other_folders_differ(docno_at, index) -> None:
    assert index.chunks.docnos.count("index") == 1
    assert docno_at("docs", document="https://example.org/docs/index.html") == "index#0"
    assert docno_at("docs", document="https://example.org/docs/") == "index#0"
    assert docno_at("docs", document="https://example.org/docs/guides/authentication").startswith("guides/")
    assert docno_at(document="https://example.org/blog/errors") is None
    assert docno_at(document="nothing/like/it") is None and docno_at(document="") is None


def test_title_names_the_one_document_that_has_it(docno_at, index) -> None:
    title = index.chunks.titles[index.chunks.document_number["guides/authentication"]]
    assert docno_at(document=title.upper()) == "guides/authentication#0"


def test_heading_or_anchor_names_the_chunk(docno_at, index) -> None:
    table = index.chunks
    wanted = next(
        table.chunk_ids[chunk]
        for chunk in range(table.n_retrievable)
        if "guides/authentication#authentication/accounts-for-people" in table.section_ids[chunk]
    )
    assert docno_at(document="guides/authentication", section="Accounts for people") == wanted
    assert docno_at(document="guides/authentication.md#accounts-for-people") == wanted


def test_text_finds_its_chunk_with_and_without_a_document(docno_at, index) -> None:
    table = index.chunks
    last = table.chunks_of(table.document_number["guides/authentication"])[1] - 1
    text = " ".join(table.text(last).split()[-12:])
    assert docno_at(document="guides/authentication", text=f"<em>{text}</em>") == table.chunk_ids[last]
    assert docno_at(text=text) == table.chunk_ids[last]
    assert docno_at(document="https://elsewhere.org/x/y", text=text) == table.chunk_ids[last]
    assert docno_at(text="words that stand nowhere in this collection at all") is None
    half = f"{text} and then as many words again which are not in it, so that it is too much"
    assert docno_at(text=half) is None


@pytest.fixture
def matcher_of(tmp_path: Path):
    def of(prefix: str = "", **pages: str) -> HitMatcher:
        for name, text in pages.items():
            (tmp_path / f"{name}.md").write_text(text)
        documents = read_vault(tmp_path).documents
        index = Index(IndexSpec(), "x", lambda: documents, ArtefactStore(tmp_path / "index"), Models())
        index.prepare(frozenset({"chunks"}))
        return HitMatcher(index.chunks, prefix)

    return of


def test_names_that_are_remembered_are_bounded(matcher_of, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hit_matching, "_NAMES_KEPT", 2)
    matcher = matcher_of(a="Keys open doors.\n")
    assert [matcher.chunk(LiveHit(name)) for name in ("a", "b", "c", "d", "a")] == [0, None, None, None, 0]
    assert matcher._document.cache_info().currsize == 2


def test_addresses_in_the_frontmatter_are_names(matcher_of) -> None:
    matcher = matcher_of(
        "docs",
        a="---\nurl: /how-to/keys/\naliases: [/old/keys]\n---\nKeys open doors.\n",
        b="---\naliases: [/old/keys]\n---\nDoors close.\n",
    )
    assert matcher.chunk(LiveHit("https://example.org/docs/how-to/keys")) == 0
    assert matcher.chunk(LiveHit("https://example.org/docs/old/keys")) is None  # two documents had it


def test_addresses_that_a_site_makes_of_file_names_are_names(matcher_of) -> None:
    pages = {"02-set up": "Ropes.\n", "2024-01-05-fair": "Stalls.\n", "set-up 2": "Knots.\n"}
    matcher = matcher_of(**pages)
    addresses = ("/set-up/", "/2024/01/05/fair.html", "/set-up-2", "/set-up+2")
    assert [matcher.chunk(LiveHit(name)) for name in addresses] == [0, 1, 2, 2]


def test_anchors_of_the_site_name_the_chunk(matcher_of) -> None:
    text = " ".join(f"word{n}" for n in range(400))
    heads = ("Top", "Limits", "Fees", "Limits", "\U0001f680 Gr\u00f6\u00dfe")
    matcher = matcher_of(a="".join(f"{'#' * (n > 0)}# {head}\n\n{text} {n}\n\n" for n, head in enumerate(heads)))
    first = {name: matcher.chunk(LiveHit(f"/a.md#{name}")) for name in ("top", "limits", "limits-1", "limits_1")}
    assert first["top"] == 0 < first["limits"] < first["limits-1"] == first["limits_1"]
    assert matcher.chunk(LiveHit("/a.md#-gr%C3%B6%C3%9Fe")) > first["limits-1"]


def test_section_without_visible_text_is_the_start_of_a_page_without_lead(matcher_of) -> None:
    text = " ".join(f"word{n}" for n in range(400))
    matcher = matcher_of(a=f"# Top\n\n{text}\n\n## Limits\n\n{text} again\n")
    assert matcher.chunk(LiveHit("/a.md", section="\u200b")) == 0  # the text of links beside headings
