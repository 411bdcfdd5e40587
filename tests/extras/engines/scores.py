"""That engines score alike, and find what was measured."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path

import pytest

import ragbench
from ragbench.benchmark.load import load as load_benchmark
from ragbench.config import composition
from ragbench.experiment.run import run
from ragbench.extras.engines import opened
from ragbench.extras.engines.search import Found
from ragbench.extras.export import measured_arm
from ragbench.extras.export.file_format import Written
from ragbench.extras.ship.deployment import verify
from ragbench.workbench import Results


def by_chunk(hits: Found) -> dict[str, tuple[float, dict[str, float]]]:
    """The fused score of every chunk, and its score in the sources that returned it; best first."""
    sources = {source: values.tolist() for source, values in hits.sources.items()}
    return {
        chunk: (score, {source: scores[row] for source, scores in sources.items() if not math.isnan(scores[row])})
        for row, (chunk, score) in enumerate(zip(hits.chunk_ids, hits.scores.tolist(), strict=True))
    }


def scores_alike(one: str | Path, other: str | Path, texts: Iterable[str], within: float | None = None) -> None:
    """Ask both every text, also among two chunks: the same hits, their scores, and those of every source.

    `within` is how far apart scores of a source may be besides the usual relative 1e-5.
    """
    with ragbench.load(one) as bundle, closing(opened.connect(one)) as first, closing(opened.connect(other)) as second:
        for text in texts:
            vector = bundle.index.encoder.encode_queries([text])[0]
            for only in (None, ["api-reference#0", "caching#0"]):
                these, those = (by_chunk(engine.ask(text, vector, only)) for engine in (first, second))
                assert these.keys() == those.keys()
                for chunk, (score, sources) in these.items():
                    assert those[chunk][0] == pytest.approx(score, abs=1e-5)
                    assert those[chunk][1] == pytest.approx(sources, rel=1e-5, abs=within)


def assert_measured_hits(loaded: Written, address: str, recommended: Results, questions: Sequence[str]) -> None:
    """An engine loses nothing of an exported arm, says where its ranker runs, and finds the first hits of the run."""
    assert loaded.replay.loss == pytest.approx(0, abs=0.005)
    assert "in the backend, with the ranker" in loaded.replay.sentence
    assert any("learned order, which ragbench serve" in sentence for sentence in loaded.missing)
    measured = measured_arm.find(recommended.folder)
    first = {qid: hits[0][0] for qid, hits in measured.results.run(measured.name).items()}
    topics = {topic.text: topic.qid for topic in load_benchmark(recommended.config(recommended.arms[0])["data"]).topics}
    with ragbench.load(address) as bundle:
        for text in questions:
            hits = bundle.search(text, 3)
            assert (hits[0].docno if hits else None) == first.get(topics[text])


def assert_refreshes(address: str | Path, handbook_folder: Path, folder: Path) -> None:
    """An engine takes in new and deleted notes once, and still passes its checks; `folder` is for the notes."""
    notes = Path(shutil.copytree(handbook_folder / "notes", folder / "notes"))
    (notes / "pelican.md").write_text("# Pelicans\n\nThe zyzzyva of a pelican is kept in its bill.\n", encoding="utf-8")
    (notes / "team.md").unlink()
    with closing(opened.EngineRefresher(address, notes)) as refresher:
        refreshed = refresher.refresh()
        assert (refreshed.added, refreshed.changed, refreshed.deleted) == (("pelican",), (), ("team",))
        assert refresher.refresh().anything is False
    with ragbench.load(address) as bundle:
        assert bundle.search("zyzzyva pelican", 1)[0].docno == "pelican"
        assert bundle.document("team") is None
    assert [check for check in verify(address) if check.outcome == "fails"] == []


def assert_filters_restrict(address: str | Path) -> None:
    """An engine applies filters before it cuts: as many hits as asked for, none but those that pass."""
    with ragbench.load(address) as bundle:
        hits = bundle.search("identity", 5, filters={"category": "reference"})
        assert len(hits) == 5
        assert {bundle.document(hit.docno).frontmatter["category"] for hit in hits} == {"reference"}
        assert bundle.search("identity", 5, filters={"author": "unknown"}) == []


def assert_live_scores(recommended: Results, results: Path, *overrides: str) -> None:
    """A run over a live engine scores as the arm that it was exported from; `results` is where it is written."""
    data = recommended.config(recommended.arms[0])["data"]
    around = ["data=vault", f"data.corpus={data['corpus']}", f"data.queries={data['queries']}", "name=deployed"]
    around += [f"paths.results={results}", "latency.enabled=false", "tracking.enabled=false"]
    settings = composition.compose([*overrides, *around])
    live = run([settings], load_benchmark(settings.config["data"]))
    there, here = (measured_arm.find(arm.folder).quality["nDCG@10"] for arm in (live, recommended))
    assert there == pytest.approx(here, abs=0.005)
