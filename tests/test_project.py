"""The project file: what commands inside its folder begin with, and what typed words do to it."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import pytest

from ragbench.base.types import ConfigError
from ragbench.boundary.permissions import trust
from ragbench.commands import cli
from ragbench.config import available, composition, project
from ragbench.config.overrides import word, words
from ragbench.extras.collect.topics.collected import data_overrides
from tests.naming import naming
from tests.tables import rows

FILE = """\
data: vault
data.corpus: my notes
data.queries: queries.csv
topics: derived
p6: on
budget.p95_ms: 20
paths.results: results
arms:
  plain: p6=off
  deep: p6.depth=30
"""
LOG = '{"query": "when does the sun set", "user": "u1", "clicked": [], "time": "2026-01-01T00:00:00Z"}\n'


@pytest.fixture
def project_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "ragbench.yaml").write_text(FILE, encoding="utf-8")
    (tmp_path / "my notes" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "my notes" / "deep")
    return tmp_path


def test_project_file_begins_every_configuration(project_folder: Path) -> None:
    config = composition.compose([]).config
    assert config["data"]["corpus"] == str(project_folder / "my notes")
    assert config["data"]["queries"] == str(project_folder / "queries.csv")
    assert config["paths"]["results"] == str(project_folder / "results")
    assert (config["topics"]["kind"], config["budget"]["p95_ms"]) == ("derived", 20)
    assert config["p6"]["depth"] > 0


def test_typed_words_override_project_file(project_folder: Path) -> None:
    assert composition.compose(["budget.p95_ms=7"]).config["budget"]["p95_ms"] == 7
    assert composition.compose(["p6=off"]).config["p6"] == {}
    builtin = composition.compose(["data=builtin", "topics=given"]).config
    assert builtin["data"]["loader"] == "builtin" and builtin["data"]["corpus"] is None


def test_typed_option_omits_only_what_it_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The keys of the option itself, and not those that stand below the same name."""
    (tmp_path / "ragbench.yaml").write_text(
        "tune: [p6]\ntune.trials: 7\ntune.folds: 3\np6: {depth: 20}\n"
        "chunking: librarian_fixed\nindex.chunking.chunk_size: 99\n",
        encoding="utf-8",
    )
    monkeypatch.chdir(tmp_path)
    tuned = composition.compose(["tune=[fuse]", "p6=off"])
    assert (tuned.value("tune.trials"), tuned.value("tune.folds")) == (7, 3)
    assert tuned.value("tune.space") == composition.compose_alone(["tune=[fuse]"]).value("tune.space")
    assert tuned.value("p6") == {}
    chunked = composition.compose(["chunking=header"])
    assert chunked.value("index.chunking") == composition.compose_alone([]).value("index.chunking")
    assert chunked.value("p6.depth") == 20
    Path("ragbench.yaml").write_text("p6.depth: 20\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"add p6=on \(in ragbench.yaml\)$"):
        composition.compose(["exp=baseline"])


def test_project_arms_are_measured_unless_pipeline_is_typed(project_folder: Path) -> None:
    listed = composition.standard_arms(["latency.enabled=false", "split=train"])
    assert listed is not None and [settings.name for settings in listed] == ["plain", "deep"]
    assert listed[0].config["p6"] == {} and listed[1].config["p6"]["depth"] == 30
    assert {settings.split for settings in listed} == {"train"}
    assert composition.standard_arms(["p6.depth=10"]) is None


def test_project_arm_is_a_preset(project_folder: Path) -> None:
    deep = composition.compose(["exp=deep", "p6.max_length=64"])
    assert (deep.name, deep.config["p6"]["depth"], deep.config["p6"]["max_length"]) == ("deep p6.max_length=64", 30, 64)
    assert composition.compose(["exp=plain"]).config["p6"] == {}
    assert "name=deep" in deep.overrides and not any(override.endswith("exp=deep") for override in deep.overrides)
    # Its words are those of the file: what they would start or send is asked about, and what is typed is not.
    (project_folder / "ragbench.yaml").write_text(
        FILE + "  sent: hyde=on hyde.endpoint=https://example.org hyde.model=m\n", encoding="utf-8"
    )
    with pytest.raises(ConfigError, match=r"ragbench\.yaml sets hyde\.endpoint, which .* add --trust"):
        composition.compose(["exp=sent"])
    with pytest.raises(ConfigError):
        composition.compose(["exp=deeep"])


def test_run_without_project_file_compares_recommended_with_baseline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert project.find() is None
    listed = composition.standard_arms(["data=builtin_v2", "primary=RR", "paths.results=x"])
    assert listed is not None and [settings.name for settings in listed] == ["baseline", "recommended"]
    assert {settings.config["data"]["loader"] for settings in listed} == {
        composition.compose(["data=builtin_v2"]).config["data"]["loader"]
    }
    assert listed[1].config["fuse"] == composition.compose(["exp=recommended"]).config["fuse"]
    assert composition.standard_arms(["exp=phase1"]) is None and composition.standard_arms(["fuse.k=20"]) is None
    assert composition.standard_arms(["name=mine"]) is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        *rows("project", "project_file_slip_is_one_sentence"),
        ("data: " + "[" * 5000, "nested deeper than 32 levels at line 1"),
        ("\nbudget.p95_ms: " + "9" * 6000, "the value at line 2 cannot be read"),
    ],
)
def test_project_file_slip_is_one_sentence(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ragbench.yaml").write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["list", "config"]) == 2
    err = capsys.readouterr().err
    assert reason in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (lambda path: path.mkdir(), "is a folder, not a file"),
        (lambda path: path.symlink_to("nowhere"), "is a link that leads nowhere"),
        (lambda path: path.symlink_to(path), "is a link that leads nowhere"),
        (lambda path: os.mkfifo(path), "is not a regular file"),
    ],
)
def test_project_file_of_other_kind_is_refused(
    make, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    make(tmp_path / "ragbench.yaml")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["list", "config"]) == 2
    err = capsys.readouterr().err
    assert f"ragbench.yaml {reason}" in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hyde: on\nhyde.endpoint: http://x/v1\nhyde.model: m\n", "hyde.endpoint, which sends texts to a server"),
        ("index.encoder.name: openai:m\n", "index.encoder.name, which sends texts"),
        ("tracking.uri: https://x/\n", "tracking.uri, which sends"),
        ("fuse._target_: antigravity.X\n", "names code to import"),
        ("name: ${oc.env:HOME}\n", "which can read the environment"),
        ("arms:\n  a: live=command 'live.program=[touch,x]' live.hits=h live.text=t\n", "live.program, which starts"),
        ("arms:\n  a: fuse._target_=antigravity.X\n", "names code to import"),
    ],
)
def test_project_file_needs_trust_to_send_or_start(
    text: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ragbench.yaml"
    file.write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    command = ["list", "runs" if "arms" in text else "config"]
    for _ in range(2):
        with pytest.raises(ConfigError, match=r"ragbench\.yaml (sets|has) .*add --trust if you agree") as refused:
            composition.standard_arms([]) if "arms" in text else composition.compose([])
        assert reason in str(refused.value)
        if "antigravity" not in text:
            assert cli.main([*command, "--trust"]) == 0
            with trust():
                assert composition.standard_arms([]) if "arms" in text else composition.compose([])
    assert "antigravity" not in sys.modules


def test_typed_words_need_no_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ragbench.yaml").write_text("p6: on\ndata: builtin_v1\nmeasures: [RR]\nprimary: RR\n")
    monkeypatch.chdir(tmp_path)
    typed = ["hyde=on", "hyde.endpoint=http://x/v1", "hyde.model=m"]
    assert composition.compose(typed).config["hyde"]["endpoint"] == "http://x/v1"


def test_typed_sweep_needs_no_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ragbench.yaml").write_text("data: builtin_v1\n")
    monkeypatch.chdir(tmp_path)
    arms = composition.sweep(["index.encoder.name=bge-small-en-v1.5,openai:m", "exp=recommended"])
    assert [arm.config["index"]["encoder"]["name"] for arm in arms] == ["bge-small-en-v1.5", "openai:m"]


def test_project_arm_needs_trust_for_a_key_that_was_typed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ragbench.yaml").write_text("arms:\n  a: index.encoder.name=openai:m\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, check=naming("index.encoder.name", "--trust")):
        composition.arms({"a": ["index.encoder.name=openai:m"]}, ["index.encoder.name=openai:n"], of_project=True)


def test_project_values_become_words() -> None:
    from ragbench.config import available

    known = available.read()
    given = {"exp": "phase1", "rerank": {"depth": 20}, "p5": True, "p8": False, "fuse": {"weights": {"dense": 2}}}
    assert words(given, known) == ["exp=phase1", "p6=on", "p6.depth=20", "p5=on", "p8=off", "fuse.weights={dense: 2}"]
    assert word("measures", ["nDCG@10", None, 1.5]) == "measures=[nDCG@10, null, 1.5]"


@pytest.mark.parametrize("text", ["a b", "it's", "x\\", "a\\'b", "1", "true", "null", "a=b,c", "{x}", "/p/q é", "~/n"])
def test_word_keeps_any_text(text: str) -> None:
    assert composition.compose([word("name", text)]).config["name"] == text


def test_init_writes_project_file_and_next_command(
    tmp_path: Path, vault_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").symlink_to(vault_folder)
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", "notes", "--yes"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].endswith("8 documents, 10 chunks, mostly English")
    expected = r"ragbench run: \d+ chunks to embed, about \d+ s"
    assert re.search(rf"\nwrote ragbench.yaml\n{expected}\nnext: ragbench run\n$", out)
    written = project.read(tmp_path / "ragbench.yaml")
    assert written.values["topics"] == "derived" and next(iter(written.arms)) == "baseline"
    assert len(composition.standard_arms([]) or []) == len(written.arms)


def test_init_again_changes_nothing_and_spares_edits(
    tmp_path: Path, vault_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").symlink_to(vault_folder)
    (tmp_path / "log.jsonl").write_text(LOG, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    typed = ["init", "notes", "--yes", "--log", "log.jsonl"]
    assert cli.main(typed) == 0
    made = {name: (tmp_path / name).read_text(encoding="utf-8") for name in ("ragbench.yaml", "topics.jsonl")}
    assert "data.queries: topics.jsonl" in made["ragbench.yaml"]
    for killed_before in ("ragbench.yaml", ""):
        if killed_before:
            (tmp_path / killed_before).unlink()
        assert cli.main(typed) == 0
        assert {name: (tmp_path / name).read_text(encoding="utf-8") for name in made} == made
    for name in made:
        (tmp_path / name).write_text(made[name] + "\n", encoding="utf-8")
        capsys.readouterr()
        assert cli.main(typed) == 2
        assert f"{name} exists already" in capsys.readouterr().err
        assert (tmp_path / name).read_text(encoding="utf-8") == made[name] + "\n"
        (tmp_path / name).write_text(made[name], encoding="utf-8")
    (tmp_path / "topics.jsonl").unlink()
    (tmp_path / "ragbench.yaml").write_text("data: vault\n", encoding="utf-8")
    assert cli.main(typed) == 2
    assert "ragbench.yaml exists already: edit it, or add --replace" in capsys.readouterr().err
    assert not (tmp_path / "topics.jsonl").exists()


def test_init_sees_queries_and_hides_results_inside_the_notes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.md").write_text("# A\n", encoding="utf-8")
    (tmp_path / "queries.csv").write_text("text,relevant\na,a.md\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["data.queries"] == "queries.csv" and "topics" not in printed
    assert printed["paths.results"] == ".ragbench"


def test_init_asks_at_most_three_questions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "a.md").write_text("# A\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    answers = iter(["querys.csv", "", "out", "30"])
    monkeypatch.setattr("builtins.input", lambda question: next(answers))
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert cli.main(["init", "notes"]) == 0
    values = project.read(tmp_path / "ragbench.yaml").values
    assert "querys.csv is not a file\n" in capsys.readouterr().out
    assert (values["paths.results"], values["budget.p95_ms"], values["topics"]) == ("out", 30, "derived")


def test_init_refuses_an_existing_file_before_it_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.md").write_text("# A\n", encoding="utf-8")
    (tmp_path / "ragbench.yaml").write_text("data: vault\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda question: asked.append(question) or "")
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert cli.main(["init"]) == 2
    assert "ragbench.yaml exists already: edit it, or add --replace" in capsys.readouterr().err
    assert asked == []
    assert (tmp_path / "ragbench.yaml").read_text(encoding="utf-8") == "data: vault\n"


@pytest.mark.parametrize(("folder", "reason"), [("none", "does not exist"), ("empty", "no markdown file below empty")])
def test_init_refuses_folder_without_documents(
    folder: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", folder, "--yes"]) == 2
    assert reason in capsys.readouterr().err
    assert not (tmp_path / "ragbench.yaml").exists()


def test_init_replaces_broken_project_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ragbench.yaml").write_text("data: [", encoding="utf-8")
    (tmp_path / "a.md").write_text("# A\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["init", "--yes", "--replace"]) == 0
    with pytest.raises(ConfigError):
        project.read(tmp_path / "a.md")


def test_data_overrides_are_quoted_for_shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    typed = ["data=vault", "data.include=[**/*.md]", "exp=baseline", "topics=derived", "links.dialect=obsidian"]
    assert data_overrides(typed) == " data=vault 'data.include=[**/*.md]' links.dialect=obsidian"
    assert data_overrides(typed, ["topics"]) == " topics=derived"
    Path("ragbench.yaml").write_text("data: vault\n")
    assert data_overrides(typed) == ""


def test_preset_next_to_the_project_file_is_taken_with_trust(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ragbench.yaml").write_text("data: builtin_v1\n")
    preset = tmp_path / "conf" / "exp" / "own.yaml"
    preset.parent.mkdir(parents=True)
    preset.write_text(
        '# @package _global_\ndefaults:\n  - override /p6: "on"\n  - _self_\nname: own\np6:\n  depth: 33\n'
    )
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, check=naming("conf/exp/own.yaml", "--trust")):
        composition.compose(["exp=own"])
    with trust():
        assert composition.compose(["exp=own"]).value("p6.depth") == 33


def test_option_next_to_the_project_file_extends_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ragbench.yaml").write_text("data: builtin_v1\n")
    for name in ("calibration/mine", "p6/mine"):
        option = tmp_path / "conf" / f"{name}.yaml"
        option.parent.mkdir(parents=True, exist_ok=True)
        option.write_text('defaults:\n  - "on"\n  - _self_\n')
    monkeypatch.chdir(tmp_path)
    with trust():
        known = available.read()
        for group in ("calibration", "p6"):
            keys = {parameter.key: parameter.default for parameter in known.option(group, "mine").parameters}
            assert keys == {parameter.key: parameter.default for parameter in known.option(group, "on").parameters}


def test_option_next_to_the_project_file_needs_the_package_of_its_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its values would stand below a key that nothing reads."""
    (tmp_path / "ragbench.yaml").write_text("data: builtin_v1\n")
    option = tmp_path / "conf" / "chunking" / "mine.yaml"
    option.parent.mkdir(parents=True)
    content = "defaults:\n  - header\n  - _self_\nmin_chars: 111\n"
    option.write_text(content)
    monkeypatch.chdir(tmp_path)
    with trust():
        with pytest.raises(ConfigError, check=naming("conf/chunking/mine.yaml", "# @package index.chunking")):
            composition.compose(["chunking=mine"])
        option.write_text("# @package index.chunking\n" + content)
        assert composition.compose(["chunking=mine"]).value("index.chunking.min_chars") == 111
