from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from ragbench.base.types import BenchmarkError, ConfigError
from ragbench.benchmark.benchmark import Benchmark, area
from ragbench.benchmark.phrases import Finder, words
from ragbench.config.benchmark import documents, load
from ragbench.corpus.reader import read_vault
from ragbench.extras.collect.check import check
from ragbench.extras.collect.topics.derive import DeriveSpec, choose, derive
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.index import Index, IndexSpec
from tests.naming import naming


@pytest.fixture(scope="module")
def plain(tmp_path_factory, write_vault) -> Benchmark:
    return documents({"loader": "vault", "corpus": str(write_vault(tmp_path_factory.mktemp("vault"), 60))})


@pytest.fixture(scope="module")
def derived(plain: Benchmark) -> Benchmark:
    return derive(plain, DeriveSpec(limit=80))


def test_derive_stratifies_by_kind_and_area(derived) -> None:
    kinds = Counter(topic.type for topic in derived.topics)
    assert set(kinds) == {"description", "alias", "link", "question", "first_sentence"}
    assert sum(kinds.values()) == 80 and max(kinds.values()) <= 2 * min(kinds.values())
    areas = Counter(area(docno) for qid in derived.document_qrels for docno in derived.document_qrels[qid])
    assert min(areas.values()) >= 20
    assert {topic.provenance for topic in derived.topics} == {"derived"}
    assert abs(sum(topic.split == "train" for topic in derived.topics) - 40) <= 2
    sides = {(docno, topic.split) for topic in derived.topics for docno in derived.document_qrels[topic.qid]}
    assert len(sides) == len({docno for docno, _ in sides})
    assert max(Counter(docno for grades in derived.document_qrels.values() for docno in grades).values()) <= 3


def test_derive_judges_sections_of_questions(derived) -> None:
    for topic in derived.topics:
        (docno,) = derived.document_qrels[topic.qid]
        if topic.type == "question":
            (section,) = derived.section_qrels[topic.qid]
            assert section.startswith(f"{docno}#") and section.endswith("/section")
        else:
            assert topic.qid not in derived.section_qrels


def test_derive_states_masking_in_version(plain, derived) -> None:
    assert derived.collection != plain.collection
    assert derived.version.startswith("the sources of 80 topics are masked in ")
    assert derived.provenance == "synthetic queries"
    assert [finding for finding in check(derived) if finding.severity == "error"] == []


def test_derived_sources_are_in_no_artefact(derived, tmp_path: Path, models) -> None:
    index = Index(IndexSpec(), derived.collection, lambda: derived.documents, ArtefactStore(tmp_path), models)
    index.prepare(frozenset({"chunks", "lexical", "names", "scan"}))
    passages = Finder(words(text) for topic in derived.topics for text in (topic.masked, topic.text))
    stored = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(stored) > 5
    for path in stored:
        assert path.read_bytes().decode("utf-8", "replace") not in passages, path
    table = index.chunks
    for text in (*table.texts(), *table.titles, *map(str, table.frontmatter), *table.document_column("path")):
        assert text not in passages, text
    for headings in table.document_column("headings"):
        assert " \n\n ".join(headings) not in passages


def test_check_finds_unmasked_source(plain, derived) -> None:
    from dataclasses import replace

    leaking = replace(derived, documents=(plain.documents[0], *derived.documents[1:]))
    reported = {finding.where for finding in check(leaking) if finding.code == "unmasked-source"}
    answered = {qid for qid, grades in derived.document_qrels.items() if plain.documents[0].docno in grades}
    assert answered and answered <= reported


def test_derive_follows_seed_and_not_hash_seed(plain, tmp_path: Path) -> None:
    code = (
        "from ragbench.config.benchmark import load\n"
        f"data = {dict(plain.source['data'])!r}\n"
        "print(load({'data': data, 'topics': {'kind': 'derived', 'limit': 30}}).digest)\n"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert digests == {derive(plain, DeriveSpec(limit=30)).digest + "\n"}
    assert derive(plain, DeriveSpec(limit=30, seed=14)).digest + "\n" not in digests


def test_derived_file_gives_same_benchmark(plain, derived, tmp_path: Path) -> None:
    made = choose(plain.documents, DeriveSpec(limit=80))
    made.write(tmp_path / "topics.jsonl")
    data = {**plain.source["data"], "queries": str(tmp_path / "topics.jsonl")}
    read = load({"data": data})
    assert read.digest == derived.digest and read.version == derived.version


def test_derive_drops_ambiguous_and_revealed_queries(tmp_path: Path) -> None:
    long = "word " * 40
    (tmp_path / "a.md").write_text(f"---\ndescription: All about the red engine room\n---\n# A\n\n{long}\n")
    (tmp_path / "b.md").write_text(f"---\ndescription: All about the red engine room\n---\n# B\n\n{long}b\n")
    (tmp_path / "c.md").write_text(
        f"---\ndescription: Engines that run on steam\n---\n# Engines that run on steam\n{long}"
    )
    (tmp_path / "d.md").write_text("---\ndescription: Ships that sail without wind\n---\n# D\n\nNothing else.\n")
    (tmp_path / "e.md").write_text(f"---\naliases: [night watch]\n---\n# E\n\nThe night watch sleeps. {long}\n")
    with pytest.raises(BenchmarkError) as raised:
        choose(read_vault(tmp_path).documents, DeriveSpec(kinds=("description", "alias")))
    for reason in ("2 near-duplicates", "2 given away by title, path or text", "1 with a short answer"):
        assert reason in str(raised.value)
    assert str(raised.value).endswith(": write queries")  # no other kind gives one
    (tmp_path / "e.md").write_text(f"# E\n\n## How do sailors wake the cook?\n\n{long}\n")
    with pytest.raises(BenchmarkError, match=r"write queries, or add question to topics\.kinds$"):
        choose(read_vault(tmp_path).documents, DeriveSpec(kinds=("description", "alias")))


def test_derive_follows_shares_of_kinds(plain) -> None:
    spec = DeriveSpec(kinds=("description", "link"), shares={"link": 3.0}, limit=40)
    kinds = Counter(topic.type for topic in choose(plain.documents, spec).topics)
    assert kinds == {"link": 30, "description": 10}


def test_derive_limits_overlap_with_answer(tmp_path: Path) -> None:
    long = " ".join(f"filler{number}" for number in range(30))
    # Of four telling words `a` has three outside the source, `b` one.
    pages = {"a": ("rusty lanterns flicker nightly", "Rusty"), "b": ("wooden ladders creak loudly", "B")}
    for name, (description, title) in pages.items():
        last = description.split()[-1] if name == "a" else ""
        text = f"# {title}\n\n{description.split()[1]} {last}. {long}\n"
        (tmp_path / f"{name}.md").write_text(f"---\ndescription: {description}\n---\n{text}")
    documents = read_vault(tmp_path).documents

    def texts(overlap: float) -> list[str]:
        spec = DeriveSpec(kinds=("description",), overlap=overlap)
        return sorted(topic.text for topic in choose(documents, spec).topics)

    assert texts(1.0) == texts(0.75) == ["rusty lanterns flicker nightly", "wooden ladders creak loudly"]
    assert texts(0.5) == texts(0.25) == ["wooden ladders creak loudly"]
    with pytest.raises(BenchmarkError, check=naming("topics.overlap")):
        texts(0.2)


def test_derive_refuses_impossible_options() -> None:
    for wrong in ({"limit": 0}, {"most_words": 1}, {"train": 1.0}, {"kinds": ()}):
        with pytest.raises(ConfigError, check=naming(*wrong)):
            DeriveSpec(**wrong)
    with pytest.raises(ConfigError, check=naming("markdown")):
        load({"data": {"loader": "beir", "folder": "x"}, "topics": {"kind": "derived"}})
    with pytest.raises(ConfigError, check=naming("guessed")):
        load({"data": {"loader": "builtin"}, "topics": {"kind": "guessed"}})


def test_bundle_holds_unmasked_documents(settings_of, tmp_path: Path, write_vault) -> None:
    from ragbench.benchmark.load import load as load_data
    from ragbench.experiment.run import run
    from ragbench.extras.export.file_format import write as export
    from ragbench.extras.ship.bundle import read_record

    data = ["data=vault", f"data.corpus={write_vault(tmp_path / 'notes', 40)}", "topics=derived", "topics.limit=10"]
    settings = settings_of(tmp_path / "results", *data, "dense=null", "latency.enabled=false", "name=words")
    measured = run([settings], load(settings.config))
    written = export(measured.folder, tmp_path / "bundle")
    assert any("the bundle contains the complete documents" in sentence for sentence in written.missing)
    whole = load_data(settings.config["data"], topics=False)
    assert read_record(tmp_path / "bundle")["collection"] == whole.collection != load(settings.config).collection
