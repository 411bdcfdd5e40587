"""Measuring the changes of the atlas: what is measured is not measured again, and what fails leaves the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragbench.base.types import ConfigError
from research.atlas import measure as atlas
from tests.naming import naming

HANDBOOK = Path(__file__).parents[2] / "tests" / "data" / "phases"


@pytest.mark.slow
def test_atlas_measures_a_group_once(tmp_path: Path, caplog) -> None:
    (tmp_path / "questions.csv").write_text(
        "text,relevant\nlargest file I may send,configuration.md\ncounters,metrics.md\n", encoding="utf-8"
    )
    (tmp_path / "collections.yaml").write_text(
        f"""
small:
  data: data=vault data.name=small data.corpus={HANDBOOK} data.queries={tmp_path}/questions.csv
  kind: guides
  questions: authors
broken:
  data: data=vault data.corpus={tmp_path}/nowhere data.queries={tmp_path}/questions.csv
""",
        encoding="utf-8",
    )
    listed = atlas.collections(tmp_path / "collections.yaml")
    words = [f"paths.results={tmp_path}/results"]
    first = atlas.measure(listed, words, ["passages"])
    assert any("'broken' is excluded" in message for message in caplog.messages)
    assert set(first.effects["change"]) == {"chunks_750", "chunks_3000", "recommended-path"}
    (facts,) = first.collections.to_dict(orient="records")
    assert (facts["collection"], facts["kind"], facts["questions"], facts["topics"]) == (
        "small",
        "guides",
        "authors",
        2,
    )
    runs = list((tmp_path / "results" / "runs").iterdir())
    again = atlas.measure(listed, words, ["passages"])
    assert list((tmp_path / "results" / "runs").iterdir()) == runs
    assert again.effects.equals(first.effects)


def test_atlas_refuses_lists_of_another_form(tmp_path: Path) -> None:
    path = tmp_path / "collections.yaml"
    for text, sentence in (
        ("- a", "lists no collections"),
        ("a: {kind: guides}", "has no data"),
        ("a: {data: data=vault, kinds: x}", "did you mean kind"),
    ):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(ConfigError, match=sentence):
            atlas.collections(path)
    with pytest.raises(ConfigError, check=naming("'chunk'")):
        atlas.measure([], groups=["chunk"])
