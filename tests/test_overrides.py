"""Words as a person types them: names of switches, signs, groups given twice, what is no word at all."""

import pytest

from ragbench.base.types import ConfigError
from ragbench.config import available, composition, names
from ragbench.config.overrides import canonical, named_arms
from ragbench.corpus.reader import parse_document
from ragbench.extras.systems.environment import from_environment
from tests.naming import naming
from tests.tables import rows

KNOWN = available.read()


@pytest.mark.parametrize(
    ("typed", "made"),
    rows("overrides", "overrides_become_those_that_are_composed"),
)
def test_overrides_become_those_that_are_composed(typed: list[str], made: list[str]) -> None:
    assert canonical(typed, KNOWN) == made


@pytest.mark.parametrize(("home", "made"), [("/home/ada", "/home/ada/notes"), ("/home/a b", "'/home/a b/notes'")])
def test_overrides_expand_a_tilde(home: str, made: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", home)
    assert canonical(["data.corpus=~/notes"], KNOWN) == [f"data.corpus={made}"]
    assert composition.compose(["data=vault", "data.corpus=~/notes"]).config["data"]["corpus"] == f"{home}/notes"


@pytest.mark.parametrize(("typed", "message"), rows("overrides", "overrides_refuse_what_is_no_override"))
def test_overrides_refuse_what_is_no_override(typed: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        canonical([typed], KNOWN)
    assert str(caught.value).startswith(message)


def test_overrides_take_names_of_proposals() -> None:
    assert set(names.ALIASES) == {f"p{n}" for n in range(1, 14)} <= {group.name for group in KNOWN.switches}
    assert not set(names.ALIASES.values()) & (KNOWN.names | set(KNOWN.by_group))
    for number, name in names.ALIASES.items():
        assert composition.compose([f"{name}=on"]).config == composition.compose([f"{number}=on"]).config
        assert names.label(number) == f"{number} {name}"


def test_arms_have_names_and_overrides() -> None:
    assert named_arms(["base=", "mine=rerank=on p6.depth=20", "said=name='two words' exp=phase1"]) == {
        "base": (),
        "mine": ("rerank=on", "p6.depth=20"),
        "said": ("name=two words", "exp=phase1"),
    }


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["p6"], "--arm 'p6' has no name: write --arm mine="),
        (["=p6=on"], "--arm '=p6=on' has no name"),
        (["a=p6=on", "a=p6=off"], "--arm a is given twice"),
        (["a=name='x"], "--arm a: a quote is not closed in name='x"),
    ],
)
def test_arms_refuse_wrong_definitions(given: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        named_arms(given)
    assert str(caught.value).startswith(message)


def test_variables_of_librarian_stand_before_what_is_typed() -> None:
    environment = {"CHUNK_SIZE": "256", "CHUNK_OVERLAP": " 20 ", "CHUNK_STRATEGY": "Fixed", "HOME": "/"}
    words = ["exp=librarian_hybrid", "index.chunking.chunk_overlap=5"]
    assert from_environment(words, environment) == ["chunking=librarian_fixed", "index.chunking.chunk_size=256", *words]
    assert from_environment(["exp=phase1"], environment) == ["exp=phase1"]
    with pytest.raises(ConfigError, check=naming("CHUNK_SIZE", "'many'")):
        from_environment(words, {"CHUNK_SIZE": "many"})
    assert from_environment(words, {"EXTRACT_TAGS": "0"}) == ["index.metadata.tags=false", *words]
    with pytest.raises(ConfigError, check=naming("INFER_DOC_TYPE", "'perhaps'")):
        from_environment(words, {"INFER_DOC_TYPE": "perhaps"})


def test_variables_of_librarian_shape_its_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CHUNK_SIZE", "256")
    assert composition.compose(["+exp=librarian_rerank"]).index.chunker.chunk_size == 256
    assert "chunk_size" not in composition.compose([]).config["index"]["chunking"]
    monkeypatch.setenv("INFER_DOC_TYPE", "False")
    metadata = composition.compose(["+exp=librarian_rerank"]).index.metadata
    assert (metadata.tags, metadata.infer_doc_type) == (True, False)
    monkeypatch.setenv("ENABLE_CHUNKING", "false")
    text = "## A\n\ntext\n\n## B\n\n" + "word " * 5000
    document, _ = parse_document("d", "d.md", text.encode(), 0.0)
    assert len(composition.compose(["+exp=librarian_rerank"]).index.chunker.chunk(document)) == 1
    assert (
        len(composition.compose(["+exp=librarian_rerank", "chunking=librarian_semantic"]).index.chunker.chunk(document))
        == 1
    )
