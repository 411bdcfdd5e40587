"""What all engines share: their names, addresses and analyzers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ragbench.base.errors import BundleError, ConfigError
from ragbench.commands import cli
from ragbench.extras.engines.content import temporary_folder
from ragbench.extras.engines.opensearch import SYSTEMS
from ragbench.index.analyzers import analyze, analyzer


def test_export_help_names_every_engine(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["export", "--help"]) == 0
    (choices,) = re.findall(r"--format FORMAT\s+(.*?)\(", capsys.readouterr().out, flags=re.S)
    assert {"sqlite", "postgres", *SYSTEMS} <= {name.strip() for name in choices.split(",")}


@pytest.mark.parametrize("name", ["technical", "code", "standard", "english"])
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
    factories = {
        "length": lambda f: ("length", "min", str(f["min"]), "max", str(f["max"])),
        "stemmer": lambda f: ("englishPossessive",),
        "pattern_capture": lambda f: (
            *("patternCaptureGroup", "pattern", f["patterns"][0]),
            *("preserve_original", str(f["preserve_original"]).lower()),
        ),
        "lowercase": lambda f: ("lowercase",),
        "stop": lambda f: ("stop",),
        "keyword_marker": lambda f: ("keywordMarker", "pattern", f["keywords_pattern"]),
        "porter_stem": lambda f: ("porterStem",),
        "remove_duplicates": lambda f: ("removeDuplicates",),
    }
    for name_of_filter in defined["analyzer"][used]["filter"]:
        options = defined["filter"][name_of_filter]
        builder.addTokenFilter(*factories[options["type"]](options))
    text = "C++ agents' getUserById of Node.js v3.1.2, --max-lag and the HTTPResponseErrors"
    assert analyze(builder.build(), text) == analyze(analyzer(name), text)


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
    from ragbench.export.write import write

    instead = " instead of --out" if out else ""
    with pytest.raises(ConfigError, match=rf"--format {format} writes no file: use --load {address}{instead}$"):
        write(finished.folder, out, arm="baseline", format=format)


@pytest.mark.parametrize(
    ("format", "address"),
    [
        ("postgres", "postgres://127.0.0.1:1/notes"),
        ("opensearch", "opensearch://127.0.0.1:1/notes"),
    ],
)
def test_export_refuses_dead_servers_before_any_work(
    finished, monkeypatch: pytest.MonkeyPatch, format: str, address: str
) -> None:
    from ragbench.export.write import write
    from ragbench.extras.engines import load

    monkeypatch.setattr(load.Bench, "of", lambda *_: pytest.fail("it has begun"))
    with pytest.raises(BundleError) as error:
        write(finished.folder, arm="baseline", format=format, load=address, force=True)
    assert "does not answer" in str(error.value)


def test_temporary_folders_of_killed_processes_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    first = temporary_folder("ragbench-engine")
    left = first.rename(tmp_path / first.name.replace(f".{os.getpid()}-", f".{ended.pid}-"))
    (left / "config.yaml").touch()
    second = temporary_folder("ragbench-engine")
    assert list(tmp_path.iterdir()) == [second] and second.stat().st_mode & 0o777 == 0o700
