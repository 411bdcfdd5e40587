"""Which document a link means."""

from typing import Any

import pytest

from ragbench.base.types import Document, Link
from ragbench.corpus.file_warning import FileWarning
from ragbench.corpus.links import collection_digest, resolve_links
from ragbench.corpus.reader import parse_document
from tests.tables import rows


def document(docno: str, text: str = "Text.\n") -> Document:
    return parse_document(docno, f"{docno}.md", text.encode(), 0.0)[0]


COLLECTION = (
    "index",
    "gate/index",
    "gate/api-keys",
    "gate/access-tokens",
    "gate/adr/0007-opaque",
    "store/_index",
    "store/index-tuning",
    "store/with%20blank",
    "stream/v2/retention",
    "stream/v3/retention",
    "README",
    "Case",
    "case",
)


def resolve(written: str, source: str = "gate/source", **others: str) -> tuple[str | None, list[str]]:
    """Target and warnings of the one link in `written`, put into the document `source` of the collection."""
    documents = [document(docno, others.get(docno, "Text.\n")) for docno in COLLECTION]
    resolved, warnings = resolve_links([*documents, document(source, written)])
    (link,) = resolved[-1].links
    return link.target, [warning.name for warning in warnings]


@pytest.mark.parametrize(("written", "target"), rows("corpus_links", "links_targets"))
def test_links_targets(written: str, target: str | None) -> None:
    assert resolve(written) == (target, [])


def test_links_prefer_the_own_folder() -> None:
    assert resolve("[[retention]]", source="stream/v3/source") == ("stream/v3/retention", [])


@pytest.mark.parametrize("written", ["[[retention]]", "![[Retention]]"])
def test_links_to_a_name_of_several_documents_are_ambiguous(written: str) -> None:
    assert resolve(written) == (None, ["ambiguous-link"])


def test_links_aliases() -> None:
    aliased = {"gate/api-keys": "---\naliases: [Key Rotation, api keys]\n---\nText"}
    assert resolve("[[key rotation]]", **aliased) == ("gate/api-keys", [])
    assert resolve("[[Key Rotation|rotate]]", **aliased) == ("gate/api-keys", [])
    assert resolve("[x](<key rotation>)", **aliased) == (None, [])


def test_links_prefer_documents_then_aliases_then_ends_of_paths() -> None:
    aliased = {"gate/api-keys": "---\naliases: [index, 0007-opaque]\n---\nText"}
    assert resolve("[[index]]", **aliased) == ("index", [])
    assert resolve("[[0007-opaque]]", **aliased) == ("gate/api-keys", [])


def test_links_to_an_alias_of_two_documents_are_ambiguous() -> None:
    both = dict.fromkeys(("gate/api-keys", "gate/access-tokens"), "---\naliases: secret\n---\nText")
    assert resolve("[[secret]]", **both) == (None, ["ambiguous-link"])


@pytest.mark.parametrize(
    "written", ["[x](../../README.md)", "[[../../README]]", "[x](../../../etc/passwd)", "[[../..]]"]
)
def test_links_out_of_the_folder(written: str) -> None:
    assert resolve(written) == (None, ["link-escapes"])


def test_links_warn_once_for_a_file() -> None:
    source = document("a/b", "[x](../../one.md) [y](../../two.md) [[../../three]]\n")
    _, (warning,) = resolve_links([source])
    assert str(warning) == (
        "a/b.md: link-escapes: the link ../../one.md (and 2 more) leads out of the folder; link to documents inside it."
    )


def test_links_of_the_related_field() -> None:
    text = (
        "---\nrelated:\n  - gate/api-keys\n  - '[[access-tokens#Limits|tokens]]'\n  - nowhere\n  - ../index\n---\nText"
    )
    resolved, warnings = resolve_links([*map(document, COLLECTION), document("gate/source", text)])
    assert resolved[-1].links == (
        Link("related", "gate/api-keys", "gate/api-keys"),
        Link("related", "[[access-tokens#Limits|tokens]]", "gate/access-tokens", "Limits", "tokens"),
        Link("related", "nowhere", None),
        Link("related", "../index", "index"),
    )
    assert warnings == []


def test_links_ignore_composition_of_letters() -> None:
    decomposed = document("cafe\u0301")
    resolved, _ = resolve_links([decomposed, document("a", "[[caf\u00e9]] [x](caf%C3%A9.md)")])
    assert [link.target for link in resolved[1].links] == [decomposed.docno] * 2


def test_links_order_and_everything_else_stay() -> None:
    documents = [document("b", "[[a]]"), document("a")]
    resolved, _ = resolve_links(documents)
    assert [d.docno for d in resolved] == ["b", "a"]
    assert resolved[1] == documents[1]
    assert documents[0].links[0].target is None


def labelled(text: str, **options: Any) -> tuple[list[tuple[str | None, str | None, str]], list[FileWarning]]:
    """Target, heading and label of the links of one text beside the collection."""
    resolved, warnings = resolve_links([*map(document, COLLECTION), document("source", text)], **options)
    return [(link.target, link.heading, link.label) for link in resolved[-1].links], warnings


def test_labels_are_what_a_reader_sees() -> None:
    text = (
        "[[gate/api-keys]] [[gate/api-keys#Rotate|rotate *it*]] [see `keys`](gate/api-keys.md) ![[gate/api-keys|300]]"
    )
    resolved, _ = labelled(text, dialect="obsidian")
    assert resolved == [
        ("gate/api-keys", None, ""),
        ("gate/api-keys", "Rotate", "rotate *it*"),
        ("gate/api-keys", None, "see keys"),
        ("gate/api-keys", None, ""),
    ]


def test_link_of_dendron_begins_with_the_label() -> None:
    text = "[[Rotate them|gate/api-keys#rotate]] [[x|dendron://notes/gate/api-keys]]"
    resolved, warnings = labelled(text, dialect="dendron")
    assert resolved == [("gate/api-keys", "rotate", "Rotate them"), ("gate/api-keys", None, "x")]
    assert warnings == []


def test_links_auto_takes_the_dialect_with_more_targets() -> None:
    two_of_three = "[[keys|gate/api-keys]] [[tokens|gate/access-tokens]] [[gate/api-keys|keys]] [[index]]"
    resolved, (warning,) = labelled(two_of_three)
    assert [target for target, _, _ in resolved] == ["gate/api-keys", "gate/access-tokens", None, "index"]
    assert warning.name == "link-dialect"
    assert "of 3 links 2 have a target as [[label|target]] and 1 as [[target|label]]" in warning.message
    one_each = "[[keys|gate/api-keys]] [[gate/api-keys|keys]]"
    resolved, warnings = labelled(one_each)
    assert [target for target, _, _ in resolved] == [None, "gate/api-keys"]
    assert warnings == []


def test_links_dialect_changes_the_digest() -> None:
    """Artefacts hold where links lead: an index made for one reading is not used for the other."""
    notes = [document("gate/api-keys"), document("source", "[[keys|gate/api-keys]]")]
    read = {dialect: collection_digest(resolve_links(notes, dialect)[0]) for dialect in ("auto", "dendron", "obsidian")}
    assert read["auto"] == read["dendron"] != read["obsidian"]
    plain = [document("gate/api-keys"), document("source", "[[gate/api-keys]] [[a|a]] ![[gate/api-keys|300]]")]
    assert len({collection_digest(resolve_links(plain, dialect)[0]) for dialect in ("dendron", "obsidian")}) == 1


SITE = ("index", "01-guides/index", "01-guides/02-set-up", "02-reference/1.%20limits", "02-reference/0007-opaque")


def targets(written: str, docnos: tuple[str, ...] = SITE, source: str = "01-guides/source") -> list[str | None]:
    """Targets of the links in `written`, in a site whose files are ordered by numbers."""
    resolved, _ = resolve_links([*map(document, docnos), document(source, written)])
    return [link.target for link in resolved[-1].links]


@pytest.mark.parametrize(
    ("written", "target"),
    [
        ("[x](/guides/set-up)", "01-guides/02-set-up"),
        ("[x](set-up.mdx#part)", "01-guides/02-set-up"),
        ("[x](../reference/limits)", "02-reference/1.%20limits"),
        ("[x](../reference/limits.html)", "02-reference/1.%20limits"),
        ("[x](/guides/)", "01-guides/index"),
        ("[[guides/set-up]]", "01-guides/02-set-up"),
        ("[x](/reference/opaque)", None),  # four digits are a name
    ],
)
def test_links_ignore_numbers_that_order_pages(written: str, target: str | None) -> None:
    assert targets(written) == [target]


def test_links_to_an_address_of_two_pages_are_unresolved() -> None:
    assert targets("[x](/set-up) [y](/1-set-up)", ("1-set-up", "2-set-up")) == [None, "1-set-up"]


def test_links_reveal_the_address_of_the_site() -> None:
    written = "[a](/docs/guides) [b](/docs/guides/set-up#x) [c](/docs/index) [d](/docs) [e](/docs/gone) [f](/x/index)"
    resolved = ["01-guides/index", "01-guides/02-set-up", "index", "index", None, None]
    assert targets(written) == resolved
    assert targets(written.replace("/docs", "/en/docs")) == resolved
    two_lead_below_it = "[a](/docs/guides) [b](/docs/guides/set-up) [e](/docs/gone)"
    assert targets(two_lead_below_it) == [None, None, None]


def test_links_prefer_the_folder_to_the_address_of_the_site() -> None:
    written = "[a](/docs/index) [b](/docs/guides) [c](/docs/guides/set-up) [d](/docs/reference/0007-opaque)"
    assert targets(written, (*SITE, "docs/index"))[0] == "docs/index"


@pytest.mark.parametrize("written", ["[x](api-keys.html)", "[x](api-keys.mdx)", "[x](./api-keys.html#rotate)"])
def test_links_pages_by_other_endings(written: str) -> None:
    assert resolve(written) == ("gate/api-keys", [])


def test_related_links_below_a_title() -> None:
    text = "---\nrelated:\n  title: Next steps\n  links: [gate/api-keys, index]\n---\nText"
    assert targets(text, COLLECTION) == ["gate/api-keys", "index"]
