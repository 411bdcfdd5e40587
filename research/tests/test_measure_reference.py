"""The reference tables, and the effects in the pages of the documentation."""

from __future__ import annotations

import re
from pathlib import Path

import pandas as pd
import pytest

from ragbench.base import locations
from ragbench.base.types import ConfigError
from ragbench.config import composition
from ragbench.config.benchmark import load
from ragbench.experiment import ablate
from ragbench.experiment.run import run
from research import measure_reference
from research.measure_reference import PAGE, _verdicts, effects, every_preset, updated, with_presets
from tests.naming import naming

HANDBOOK = Path(__file__).parents[2] / "tests" / "data" / "phases"
REFERENCE = """
## Leaving each proposal out of `all`, test split

| factor | verdict | documents [95% CI] | passages [95% CI] | measured |
|---|---|---|---|---|
| p6 | confirm | +0.049 [+0.017, +0.079] | +0.061 [+0.020, +0.090] | a |
| p8 | reject | -0.016 [-0.031, -0.004] | -0.020 [-0.041, +0.001] | a |

## Adding each proposal to `baseline`, test split

| factor | verdict | documents [95% CI] | passages [95% CI] | latency ms | measured | timed |
|---|---|---|---|---|---|---|
| p6 | reject | -0.008 [-0.040, +0.025] | +0.001 [-0.030, +0.031] | +131.0 | a | a |
"""
P6 = (
    "| `p6 rerank` | Re-rank the first results with a cross-encoder. "
    "| +0.049 [+0.017, +0.079]; +0.061 [+0.020, +0.090]; **confirm** "
    "| -0.008 [-0.040, +0.025]; +0.001 [-0.030, +0.031]; +131.0 ms; **reject** |"
)


def test_reference_effects_have_every_measured_switch() -> None:
    head, _, *rows = effects(REFERENCE).splitlines()
    assert head == "| option | what it does | on top of all others | alone on `baseline` |"
    p8 = "Drop equal texts, then paraphrases; limit results per document"
    assert rows == [P6, f"| `p8 dedup` | {p8}. | -0.016 [-0.031, -0.004]; -0.020 [-0.041, +0.001]; **reject** |  |"]


def test_page_of_options_has_the_effects_of_the_reference() -> None:
    page = (PAGE.parents[1] / "optional-features.md").read_text(encoding="utf-8")
    assert effects(PAGE.read_text(encoding="utf-8")) in page, "run: python -m research.measure_reference --effects"


def test_reference_verdicts_of_ablations_are_exploratory() -> None:
    row = dict.fromkeys(("effect", "ci_low", "passage_effect", "passage_ci_low"), 0.01)
    row |= {"factor": "p6", "verdict": "adopt", "ci_high": 0.02, "passage_ci_high": 0.02, "latency_ms": float("nan")}
    assert _verdicts(pd.DataFrame([row]))["verdict"].tolist() == ["confirm"]


def test_reference_measures_every_preset() -> None:
    names = {path.stem for path in (locations.configuration() / "exp").glob("*.yaml")}
    assert set(every_preset()) == names
    assert every_preset()[0] == "baseline"
    for ground in ("baseline", "ragdocs"):
        factors = ablate.plan(
            composition.compose([f"+exp={ground}", "design=add_one"]), composition.compose
        ).design.factors
        assert {f"p{number}" for number in range(1, 14)} <= set(factors)


def test_reference_refuses_a_page_with_a_preset_not_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "README.md"
    page.write_text("<!-- presets: baseline phase1 -->\n<!-- end of presets -->\n", encoding="utf-8")
    assert measure_reference.main(["--presets", "baseline,all", "--no-ablations", "--readme", str(page)]) == 2
    assert "has a table of preset 'phase1', which --presets leaves out: add it" in capsys.readouterr().err


def test_reference_page_gets_the_presets_it_names(settings_of, tmp_path: Path) -> None:
    rows = (
        "text,relevant,split\nhow do programs prove their identity,authentication.md,test\ncounters,metrics.md,test\n"
    )
    (tmp_path / "queries.csv").write_text(rows, encoding="utf-8")
    notes = [
        "data=vault",
        f"data.corpus={HANDBOOK}",
        f"data.queries={tmp_path / 'queries.csv'}",
        "latency.enabled=false",
    ]
    settings = [settings_of(tmp_path, f"+exp={name}", *notes) for name in ("baseline", "lexical_only")]
    results = run(settings, load(settings[0].config), folder=tmp_path / "run")
    page = "# Title\n\n<!-- presets: baseline lexical_only -->\nold\n<!-- end of presets -->\n\nMore.\n"
    written = with_presets(page, results)
    assert "old" not in written and written.endswith("<!-- end of presets -->\n\nMore.\n")
    assert "| `baseline`: Content-only BM25, plain dense retrieval, reciprocal rank fusion |" in written
    assert "\n\nphases: 19 documents and 2 answerable test queries.\n\n| search |" in written
    assert written.count("inconclusive") == 1, "the first is compared with nothing"
    assert with_presets(written, results) == written, "a second time changes nothing"
    timed = re.sub(r"\| inconclusive \|.*\|", "| reject | 230 |", written)
    assert with_presets(timed, results) == timed, "a verdict that weighed latency stays where no time was measured"


HEAD = "# Reference results\n\nGenerated, on the benchmark {topics}.\n\n"
OLD, NEW = "a" * 12, "b" * 12
BEFORE = (
    HEAD.format(topics="made (9 topics)")
    + f"""## Runs

| commit | command | machine |
|---|---|---|
| {OLD} | `ragbench run` | this |

## Presets, test queries

| arm | RR | p95 ms | measured | timed |
|---|---:|---:|---|---|
| one | 0.1 | 7.0 | {OLD} | {OLD} |
| two | 0.2 | 8.0 | {OLD} | {OLD} |

## Leaving out

| factor | effect | measured |
|---|---:|---|
| p1 | +0.100 | {OLD} |
| p2 | +0.200 | {OLD} |

## Columns

Old words.
"""
)
AFTER = (
    HEAD.format(topics="made (9 topics)")
    + f"""## Runs

| commit | command | machine |
|---|---|---|
| {NEW} | `ragbench run again` | that |

## Presets, test queries

| arm | RR | P@5 | measured |
|---|---:|---:|---|
| two | 0.3 | 0.5 | {NEW} |
| new | 0.4 | 0.6 | {NEW} |

## Columns

New words.
"""
)


def test_reference_update_keeps_older_measurements() -> None:
    written = updated(BEFORE, AFTER)
    assert "| arm | RR | P@5 | p95 ms | measured | timed |\n|---|---:|---:|---:|---|---|\n" in written
    assert f"| one | 0.1 |  | 7.0 | {OLD} | {OLD} |" in written
    assert f"| two | 0.3 | 0.5 | 8.0 | {NEW} | {OLD} |" in written, "its time is still that of then"
    assert f"| new | 0.4 | 0.6 |  | {NEW} |  |" in written
    assert f"| p2 | +0.200 | {OLD} |" in written and f"| {OLD} | `ragbench run` | this |" in written
    assert written.endswith("## Columns\n\nNew words.\n")
    assert updated(written, AFTER) == written, "a second time changes nothing"


def test_reference_update_replaces_verdicts() -> None:
    again = (
        BEFORE.replace(OLD, NEW).replace("| p1 | +0.100 |", "| p1 | +0.300 |").replace(f"| p2 | +0.200 | {NEW} |\n", "")
    )
    written = updated(BEFORE, again)
    assert "+0.300" in written and "p2" not in written, "verdicts are adjusted together"
    assert OLD not in written and f"| {NEW} | `ragbench run` | this |" in written


def test_reference_appendix_has_its_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Seed 000, appendix A, from the committed reference; a time of another commit has a star."""
    arms = ["baseline", *(f"{family}phase{n}" for family, first in (("", 1), ("tuned_", 2)) for n in range(first, 5))]
    rows = [f"| {arm} | 0.5 | 0.6 | 0.7 | 0.{n} | 7.0 | 8.0 | {NEW} | {NEW} |" for n, arm in enumerate(arms)]
    rows[1] = rows[1].replace(f"{NEW} | {NEW}", f"{NEW} | {OLD}")
    columns = ("arm", "nDCG@5", "nDCG@10", "RR", "R@10", "p50 ms", "p95 ms", "measured", "timed")
    table = "\n".join([f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}", *rows])
    reference, page = tmp_path / "reference.md", tmp_path / "page.md"
    reference.write_text(f"# Reference\n\n## Presets, test queries\n\n{table}\n", encoding="utf-8")
    page.write_text("<!-- appendix -->\n<!-- end of appendix -->\n", encoding="utf-8")
    assert measure_reference.main(["--appendix", str(page), "--out", str(reference)]) == 0
    printed = capsys.readouterr().out.strip()
    assert printed.splitlines()[0] == "| phase | NDCG@5 | NDCG@10 | MRR | Recall@10 | p50 | p95 |"
    assert "| `baseline` | 0.500 | 0.600 | 0.700 | 0.000 | 7.0 | 8.0 |" in printed
    assert "| `phase1` | 0.500 | 0.600 | 0.700 | 0.100 | 7.0* | 8.0* |" in printed
    assert printed in page.read_text(encoding="utf-8") and printed.count("phase") == 8


def test_reference_update_refuses_other_topics() -> None:
    with pytest.raises(ConfigError, check=naming("9 topics", "8 topics")):
        updated(BEFORE, AFTER.replace("9 topics", "8 topics"))


def test_reference_refuses_other_topics_before_measuring(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "reference.md"
    file.write_text(BEFORE, encoding="utf-8")
    words = ["--presets", "baseline", "--update", "--out", str(file), f"paths.results={tmp_path}/runs"]
    assert measure_reference.main([*words]) == 2
    assert "of other topics (made (9 topics); now builtin (521 documents" in capsys.readouterr().err
    assert file.read_text("utf-8") == BEFORE and not (tmp_path / "runs").exists()
