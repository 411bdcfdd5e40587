"""What all engines share: their names, addresses and analyzers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from ragbench.base.types import BundleError, ConfigError
from ragbench.commands import cli
from ragbench.extras.engines import words
from ragbench.extras.engines.content import temporary_folder
from ragbench.extras.engines.opensearch import SYSTEMS
from ragbench.index.analyzers import ANALYZERS, CUSTOM, analyze, analyzer
from ragbench.index.languages import LANGUAGES
from tests.naming import naming

SNOWBALL = (
    "catalan",
    "danish",
    "dutch",
    "finnish",
    "hungarian",
    "norwegian",
    "romanian",
    "russian",
    "swedish",
    "turkish",
)


def test_export_help_names_every_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", "--help"]) == 0
    (choices,) = re.findall(r"--format FORMAT\s+(.*?)\(", capsys.readouterr().out, flags=re.S)
    assert {"sqlite", "postgres", *SYSTEMS} <= {name.strip() for name in choices.split(",")}


@pytest.mark.parametrize("name", ANALYZERS)
def test_analysis_of_opensearch_gives_our_terms(name: str) -> None:
    """Lucene builds the analyzer from the parts the file names, and it gives our terms."""
    from ragbench.extras.engines.opensearch import analysis
    from ragbench.index.jvm import java

    used, defined = analysis(name)
    if name == "english":
        assert (used, defined) == ("english", {})
        return
    if name == "standard":
        assert defined["analyzer"][used] == {"type": "standard", "stopwords": "_english_"}
        return
    builder = java("org.apache.lucene.analysis.custom.CustomAnalyzer").builder()
    tokens = defined["tokenizer"]["ragbench"]
    builder.withTokenizer("pattern", "pattern", tokens["pattern"], "group", str(tokens["group"]))
    for name_of_filter in defined["analyzer"][used]["filter"]:
        builder.addTokenFilter(*_in_lucene(defined["filter"][name_of_filter], name))
    text = "C++ agents' getUserById of Node.js v3.1.2, --max-lag l'API Räder настройки 文档 and the HTTPResponseErrors"
    assert analyze(builder.build(), text) == analyze(analyzer(name), text)


def _in_lucene(options: dict[str, Any], analyzer_name: str) -> tuple[str, ...]:
    """Lucene's filter for one of OpenSearch."""
    kind = options["type"]
    if kind == "length":
        return ("length", "min", str(options["min"]), "max", str(options["max"]))
    if kind == "pattern_capture":
        kept = str(options["preserve_original"]).lower()
        return ("patternCaptureGroup", "pattern", options["patterns"][0], "preserve_original", kept)
    if kind == "keyword_marker":
        return ("keywordMarker", "pattern", options["keywords_pattern"])
    if kind == "stop":
        assert options["stopwords"] == f"_{analyzer_name if analyzer_name in LANGUAGES else 'english'}_"
        return next(f for f in CUSTOM[analyzer_name].filters if f[0] == "stop")
    if kind == "stemmer":
        stem = options["language"]
        if stem in SNOWBALL:
            return ("snowballPorter", "language", stem.title())
        names = {"possessive_english": "englishPossessive"}
        return (names.get(stem, f"{stem.removeprefix('light_')}{'Light' * stem.startswith('light_')}Stem"),)
    if kind == "lowercase":
        return (f"{options['language']}Lowercase",) if "language" in options else ("lowercase",)
    values = [word for key, value in options.items() if key != "type" for word in (key, value)]
    return (re.sub("_(.)", lambda letter: letter[1].upper(), kind), *values)


def test_engine_refuses_several_analyzers() -> None:
    from ragbench.config import composition
    from ragbench.extras.engines.plan import SearchPlan

    settings = composition.compose(["exp=recommended", "index.lexical.analyzer=german+technical"])
    with pytest.raises(
        ConfigError, match=r"--format sqlite analyses all documents alike, .*=german\+technical: export"
    ):
        SearchPlan.of(settings, "sqlite")


@pytest.mark.parametrize(
    ("format", "address"),
    [
        ("postgres", "'postgres://localhost/docs.schema=notes'"),
        ("opensearch", "opensearch://localhost:9200/notes"),
        ("elasticsearch", "elasticsearch://localhost:9200/notes"),
    ],
)
@pytest.mark.parametrize("out", [None, Path("requests.json")])
def test_export_to_a_server_needs_an_address(finished, format: str, address: str, out: Path | None) -> None:
    from ragbench.extras.export.file_format import write

    instead = " instead of --out" if out else ""
    with pytest.raises(ConfigError, match=rf"--format {format} writes no file: use --load {address}{instead}$"):
        write(finished.folder, out, arm="baseline", format=format)


@pytest.mark.parametrize(
    ("format", "address"),
    [("postgres", "postgres://127.0.0.1:1/notes"), ("opensearch", "opensearch://127.0.0.1:1/notes")],
)
def test_export_refuses_dead_servers_before_any_work(
    finished, monkeypatch: pytest.MonkeyPatch, format: str, address: str
) -> None:
    from ragbench.extras.export.file_format import Bench, write

    monkeypatch.setattr(Bench, "of", lambda *_: pytest.fail("it has begun"))
    with pytest.raises(BundleError, check=naming("does not answer")):
        write(finished.folder, arm="baseline", format=format, load=address, force=True)


def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    first = temporary_folder("ragbench-engine")
    left = first.rename(tmp_path / first.name.replace(f".{os.getpid()}-", f".{ended.pid}-"))
    (left / "config.yaml").touch()
    second = temporary_folder("ragbench-engine")
    assert list(tmp_path.iterdir()) == [second] and second.stat().st_mode & 0o777 == 0o700


UNSPACED = {
    "子路径": "子路 路径",  # inside a longer run of the document
    "路径v3": "路径 v3 3",
    "API的子路": "api 的子 子路",
    "配置": "",  # in no document
}


@pytest.mark.parametrize(("query", "expected"), UNSPACED.items())
def test_terms_of_unspaced_queries_are_known_by_pairs(query: str, expected: str) -> None:
    terms = words.Terms("cjk")
    terms.of("设置API的子路径v3。")
    forms = {form: " ".join(known) for form, known in terms.forms().items()}
    found = words.query_terms(query, lambda asked: {form: forms[form] for form in asked if form in forms})
    assert found == Counter(expected.split())
