"""A bundle that is loaded searches as the run did."""

from __future__ import annotations

import io
import json
import os
import random
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml

import ragbench
from ragbench.base.types import BundleError, ConfigError, IndexError_
from ragbench.boundary.json import write_checksummed
from ragbench.boundary.permissions import trust
from ragbench.commands import cli
from ragbench.extras.export import measured_arm
from ragbench.extras.ship import bundle
from ragbench.extras.ship.loaded_bundle import LoadedBundle
from ragbench.extras.ship.refresh import Refresher
from ragbench.index.lexical import build_lexical
from ragbench.index.texts import lexical_rows
from ragbench.results.measurements import Measurements
from ragbench.search.engine.pipeline import Pipeline
from ragbench.search.stages.stage import Stage, StateProperty
from tests.naming import naming
from tests.sealing import reseal, rewrite, rewrite_part


@pytest.fixture(scope="module")
def docs(bundle_of) -> LoadedBundle:
    return ragbench.load(bundle_of("baseline"))


@pytest.mark.parametrize("preset", ["baseline", "phase4", "lexical_v3", "librarian_rerank"])
def test_search_gives_the_rankings_of_the_run(
    preset: str, bundle_of, finished: Measurements, questions: list[str]
) -> None:
    run = finished.run(preset)
    with ragbench.load(bundle_of(preset)) as loaded:
        golden = loaded.golden()
        assert {row.query.text for row in golden} == set(questions)
        for row in golden:
            hits = loaded.search(row.query.text, top_n=200)
            assert [hit.chunk_id for hit in hits[: bundle.GOLDEN_DEPTH]] == list(row.ids)
            assert [hit.score for hit in hits[: bundle.GOLDEN_DEPTH]] == pytest.approx(row.scores)
            best = {hit.docno: hit.score for hit in reversed(hits)}
            expected = run.get(row.query.qid, [])
            assert list(dict.fromkeys(hit.docno for hit in hits)) == [docno for docno, _ in expected]
            assert best == pytest.approx(dict(expected), rel=1e-5)


@pytest.mark.slow
def test_load_and_search_print_nothing_else(bundle_of, tmp_path: Path) -> None:
    code = (
        "import ragbench\n"
        f"docs = ragbench.load({str(bundle_of('baseline'))!r})\n"
        "print(docs.search('how do programs prove their identity')[0].docno)"
    )
    root = Path(ragbench.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    assert (done.stdout, done.stderr) == ("authentication\n", "")
    assert list(tmp_path.iterdir()) == []


def test_hits_have_their_contexts(bundle_of) -> None:
    with ragbench.load(bundle_of("librarian_rerank")) as loaded:
        hit = loaded.search("how do programs prove their identity")[0]
        assert hit.text in hit.context


def test_search_within_tokens_gives_cited_passages(docs: LoadedBundle) -> None:
    context = docs.search("how do programs prove their identity", max_tokens=300)
    assert 0 < context.tokens <= 300 and context.text.startswith("[1] ")
    for passage in context.passages:
        document = docs.document(passage.docno, (passage.start_line, passage.end_line))
        assert document is not None and passage.text in document.text
    with pytest.raises(ConfigError, check=naming("max_tokens")):
        docs.search("x", max_tokens=0)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"text": " \n"}, "the query is empty"),
        ({"text": "x", "top_n": 0}, "top_n must be at least 1, got 0"),
        ({"text": "x", "hypothesis": "y"}, "hypothesis cannot be used"),
        ({"text": "x", "filters": {"colour": "red"}}, "no document has 'colour' in its frontmatter"),
        ({"text": "x", "filters": {"tags": [7]}}, "filters.tags"),
        ({"text": "x", "top_n": "3"}, "top_n must be a whole number of at least 1, got '3'"),
    ],
)
def test_impossible_searches_are_refused(docs: LoadedBundle, arguments: dict, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        docs.search(**arguments)


class _Broken(Stage):
    """A stage with a mistake of its own."""

    provides = frozenset({StateProperty.RANKINGS, StateProperty.FUSED})

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __call__(self, states, index):
        raise self.error

    def describe(self) -> str:
        return "broken"


@pytest.mark.parametrize("error", [ValueError("a bug"), KeyError("a bug"), ConnectionError("of an engine")])
def test_stage_errors_stay_what_they_are(copied: Path, error: Exception) -> None:
    with ragbench.load(copied) as loaded:
        loaded.pipeline = Pipeline((("broken", _Broken(error)),))
        with pytest.raises(type(error), match=str(error)):
            loaded.search("cache")


def test_threads_get_the_answers_of_one(docs: LoadedBundle, questions: list[str]) -> None:
    texts = questions * 3
    alone = [docs.search(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(docs.search, texts)) == alone


def test_load_refuses_other_folders(tmp_path: Path) -> None:
    with pytest.raises(BundleError, check=naming("is not a bundle")):
        ragbench.load(tmp_path)
    with pytest.raises(BundleError):
        ragbench.load("\ud800")
    with pytest.raises(AttributeError):
        ragbench.lode  # noqa: B018 -- the attribute access is what is tried


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("bundle.json", "{", "cannot be read"),
        ("bundle.json", '{"format": 99}', "another version"),
        ("bundle.json", f'{{"format": {bundle.FORMAT}, "name": "x"}}', "cannot be read .*seal. is missing"),
        ("config.yaml", "- 1", "is not a configuration"),
        ("config.yaml", "index: {}", "is not a configuration"),
        ("config.yaml", ": [", "is not a configuration"),
        ("modified.json", "{}", "cannot be read"),
    ],
)
def test_damaged_files_are_one_sentence(copied: Path, name: str, text: str, reason: str) -> None:
    if name == bundle.RECORD:
        (copied / name).write_text(text)
    else:
        rewrite(copied, name, text)
    with pytest.raises(BundleError, match=reason) as caught:
        ragbench.load(copied)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("time", [[], "x", None, {}, 1e300, -1e15])
def test_impossible_times_are_one_sentence(copied: Path, time: object) -> None:
    times = json.loads((copied / bundle.MODIFIED).read_text())
    rewrite(copied, bundle.MODIFIED, json.dumps({**times, "team": time}))
    with pytest.raises(BundleError, check=naming("modified")):
        ragbench.load(copied)


@pytest.mark.parametrize("name", bundle.SEALED)
def test_changed_files_are_not_used(copied: Path, name: str) -> None:
    content = (copied / name).read_bytes()
    for changed in (content.replace(b"1", b"2", 1), "nothing", "a pipe", "a device"):
        if isinstance(changed, bytes):
            (copied / name).write_bytes(changed)
        else:
            (copied / name).unlink(missing_ok=True)
            if changed == "a pipe":
                os.mkfifo(copied / name)
            elif changed == "a device":
                (copied / name).symlink_to("/dev/zero")
        with pytest.raises(BundleError, check=naming(name)):
            ragbench.load(copied)
        with pytest.raises(BundleError, check=naming(name)):
            Refresher(copied, copied)


def test_encoder_of_the_hub_needs_leave_to_send(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragbench.models import resolve

    names = ("own/cached", "own/incomplete", "owner/model")
    for name, files in zip(names[:2], (("tokenizer.json", "model.onnx"), ("tokenizer.json",)), strict=True):
        (tmp_path / name).mkdir(parents=True)
        for file in files:
            (tmp_path / name / file).touch()
    monkeypatch.setattr(resolve, "_hub_cached", lambda name: tmp_path / name if (tmp_path / name).is_dir() else None)
    assert [resolve.is_remote(name) for name in names] == [False, True, True]


def test_recommended_search_answers_in_every_mode(recommended: Measurements, tmp_path: Path) -> None:
    arm = measured_arm.find(recommended.folder)
    out = tmp_path / "recommended"
    bundle.write(arm, out, evidence=measured_arm.evidence(arm))
    with ragbench.load(out) as loaded:
        for mode in ("keyword", "semantic", "hybrid"):
            assert loaded.search("nightly archive", 3, mode=mode)[0].docno == "archive-nightly"


def test_record_without_a_key_is_refused(copied: Path) -> None:
    write_checksummed(copied / bundle.RECORD, {"format": bundle.FORMAT, "name": "x"})
    with pytest.raises(BundleError, check=naming("artefacts")):
        ragbench.load(copied)


@pytest.mark.parametrize(
    ("key", "value", "reason"),
    [("files", 1e300, "'files' cannot be 1e+300"), ("models", {}, "'models' cannot be {}"), ("name", None, "null")],
)
def test_record_values_of_other_types_are_refused(copied: Path, key: str, value: object, reason: str) -> None:
    reseal(copied / bundle.RECORD, **{key: value})
    with pytest.raises(BundleError, match=re.escape(reason)):
        ragbench.load(copied)


def test_record_notices_flipped_bits(copied: Path) -> None:
    """300 flips, the bundle unsigned: each is refused, or the record is read as it was written."""
    content, known, chance = (copied / bundle.RECORD).read_bytes(), bundle.read_record(copied), random.Random(3)
    noticed = 0
    for _ in range(300):
        changed, bit = bytearray(content), chance.randrange(len(content) * 8)
        changed[bit // 8] ^= 1 << bit % 8
        (copied / bundle.RECORD).write_bytes(changed)
        try:
            assert bundle.read_record(copied) == known
        except BundleError:
            noticed += 1
    assert noticed > 250  # the others turned white space into other white space


STAGE = """
from dataclasses import dataclass
from pathlib import Path

Path({mark!r}).write_text("ran")

from ragbench.search.stages.cut import Cut


@dataclass(frozen=True)
class Mine(Cut):
    pass
"""


def test_untrusted_bundle_can_neither_execute_nor_send(
    copied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A class of its own, a program and a server: each is refused before it is reached without --trust."""
    mark = tmp_path / "ran"
    (tmp_path / "evil_to_load.py").write_text(STAGE.format(mark=str(mark)))
    monkeypatch.syspath_prepend(str(tmp_path))
    path = copied / bundle.CONFIG
    config = yaml.safe_load(path.read_text())
    hyde = {
        "_target_": "ragbench.search.stages.expand.SupposeAnswer",
        "endpoint": "http://127.0.0.1:9/v1",
        "model": "m",
    }
    live = {
        "_target_": "ragbench.extras.remote.live.stages.LiveCommand",
        "program": ["touch", str(mark)],
        "hits": "h",
        "text": "t",
    }
    for changed, reason in (
        ({"cut": {**config["cut"], "_target_": "evil_to_load.Mine"}}, "evil_to_load.Mine, which is not a class of"),
        ({"hyde": hyde}, "hyde.endpoint is http://127.0.0.1:9/v1, which sends texts to a server"),
        ({"order": ["live"], "live": live}, "which starts a program"),
        (
            {"index": {**config["index"], "encoder": {"name": "openai:m"}}},
            "index.encoder.name is openai:m, which sends texts",
        ),
        (
            {"index": {**config["index"], "encoder": {"name": "owner/model"}}},
            "index.encoder.name is owner/model, which sends",
        ),
    ):
        rewrite(copied, bundle.CONFIG, yaml.safe_dump({**config, **changed}))
        with pytest.raises(BundleError, match=reason.replace(".", r"\.")) as refused:
            ragbench.load(copied)
        assert "add --trust" in str(refused.value)
        assert not mark.exists()
    mine = {**config["cut"], "_target_": "evil_to_load.Mine"}
    rewrite(copied, bundle.CONFIG, yaml.safe_dump({**config, "cut": mine}))
    with trust():
        ragbench.load(copied).close()
    with pytest.raises(BundleError, check=naming("evil_to_load")):
        ragbench.load(copied)
    assert mark.read_text() == "ran"


@pytest.mark.parametrize(
    ("position", "kind"),
    [(b"# Authentication", "ArrowInvalid"), (b"authentication.md", "ArrowInvalid"), (-60, "OSError")],
)
def test_changed_and_sealed_index_is_one_sentence(
    copied: Path, position: bytes | int, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (documents,) = copied.glob(f"{bundle.INDEX}/chunks/*/documents.arrow")
    content = bytearray(documents.read_bytes())
    for start in (
        [position] if isinstance(position, int) else [match.start() for match in re.finditer(position, content)]
    ):
        content[start] ^= 0x80
    rewrite_part(documents, bytes(content))
    message = f"{copied} cannot be read ({kind}): export the bundle again"
    with pytest.raises(BundleError) as caught:
        ragbench.load(copied)
    assert str(caught.value) == message
    assert cli.main(["verify", str(copied), "--no-latency"]) == 1
    assert message in capsys.readouterr().out
    assert cli.main(["refresh", str(copied), "--corpus", str(copied.parent)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "column", "row"), [("chunks", "document", 10**6), ("chunks", "parent", -2), ("blocks", "chunk", 10**6)]
)
def test_rows_that_do_not_exist_are_one_sentence(copied: Path, name: str, column: str, row: int) -> None:
    (file,) = copied.glob(f"{bundle.INDEX}/chunks/*/{name}.arrow")
    table = pa.ipc.open_file(pa.BufferReader(file.read_bytes())).read_all()
    at = table.schema.get_field_index(column)
    wrong = pa.array([row] * len(table), table.schema.field(at).type)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table.set_column(at, table.schema.field(at), wrong))
    rewrite_part(file, sink.getvalue().to_pybytes())
    assert len(table)
    with pytest.raises(BundleError, check=naming("ValueError")):
        ragbench.load(copied)


def test_array_with_a_damaged_header_is_one_sentence(copied: Path) -> None:
    (vectors,) = copied.glob(f"{bundle.INDEX}/dense/*/vectors.npy")
    rewrite_part(vectors, vectors.read_bytes().replace(b"}", b"{", 1))
    with pytest.raises(BundleError, match=r"\(\w+Error\)"):
        ragbench.load(copied)


@pytest.mark.parametrize("more", [-1, 1, 100])
def test_vectors_unlike_the_chunks_are_one_sentence(
    copied: Path, more: int, capsys: pytest.CaptureFixture[str]
) -> None:
    (vectors,) = copied.glob(f"{bundle.INDEX}/dense/*/vectors.npy")
    array = np.load(vectors)
    content = io.BytesIO()
    np.save(content, np.resize(array, (len(array) + more, array.shape[1])))
    rewrite_part(vectors, content.getvalue())
    message = (
        f"{vectors} has {len(array) + more} rows instead of {len(array)}: export the bundle again, or delete the index"
    )
    with pytest.raises(IndexError_) as caught:
        ragbench.load(copied)
    assert str(caught.value) == message
    assert cli.main(["verify", str(copied), "--no-latency"]) == 1
    assert message in capsys.readouterr().out


def test_lexical_rows_unlike_the_chunks_are_one_sentence(copied: Path, tmp_path: Path) -> None:
    with ragbench.load(copied) as loaded:
        table, spec = loaded.index.chunks, loaded.index.spec.words("")
        rows = list(lexical_rows(table, spec.fields, spec.unit))
    build_lexical(tmp_path / "more", spec, [*rows, rows[-1]])
    (folder,) = copied.glob(f"{bundle.INDEX}/lexical/*")
    for file in (tmp_path / "more").iterdir():
        if file.name != "write.lock":
            rewrite_part(folder / file.name, file.read_bytes())
    with pytest.raises(IndexError_, check=naming(f"{len(rows) + 1} rows instead of {len(rows)}")):
        ragbench.load(copied)


def test_damaged_golden_queries_are_refused(copied: Path) -> None:
    whole = json.loads((copied / bundle.GOLDEN).read_text().splitlines()[0])
    wrong = {"ids": [None], "scores": ["x"], "outputs": {"a": []}}
    rows = [{**whole, key: value} for key, value in wrong.items()]
    rows += [{**whole, "query": {**whole["query"], key: value}} for key, value in (("text", 5), ("hypothesis", ["x"]))]
    for row in ({"qid": "1"}, {**whole, "scores": whole["scores"][1:]}, *rows):
        rewrite(copied, bundle.GOLDEN, json.dumps(row))
        with pytest.raises(BundleError, check=naming("golden")):
            ragbench.load(copied)


def test_sealed_bundle_rebuilds_nothing(copied: Path) -> None:
    (artefact,) = (copied / bundle.INDEX / "dense").iterdir()
    part = max((path for path in artefact.iterdir() if path.name != "manifest.json"), key=lambda p: p.stat().st_size)
    part.write_bytes(part.read_bytes()[:-1] + b"\x7f")
    with pytest.raises(IndexError_, check=naming("damaged")):
        ragbench.load(copied)
    shutil.rmtree(artefact)
    with pytest.raises(IndexError_, check=naming("no dense artefact")):
        ragbench.load(copied)
