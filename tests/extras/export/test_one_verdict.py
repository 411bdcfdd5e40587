"""One folder of results, one verdict: whoever is asked gives the same."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pytest

from ragbench.commands import cli
from ragbench.evidence.arms import Arms
from ragbench.extras.export import gate, measured_arm
from ragbench.extras.report import page_tables
from ragbench.extras.tracking.write import summarise
from ragbench.report import tables
from ragbench.results import measurements as files
from ragbench.results.compare import gather
from ragbench.results.measurements import Measurements
from ragbench.workbench import Results
from tests.notes import write_vault
from tests.sources import parsed

PACKAGE = Path(__file__).resolve().parents[2] / "ragbench"
QUERIES = 300
LOW = [0.4, 0.5] * 15
ARMS = {
    "good": "adopt",  # better documents, passages as before
    "slow": "reject",  # the same gain, 400 ms more
    "narrow": "reject",  # better documents, worse passages
    "same": "equivalent",
    "noisy": "inconclusive",
}
GATE = {"good": 0, "slow": 1, "narrow": 1, "same": 0, "noisy": 3}
"""Exit codes: documents of `noisy` may lose more than the margin of .01."""


@pytest.fixture(scope="module")
def run(write_results, tmp_path_factory: pytest.TempPathFactory) -> Measurements:
    generator = np.random.default_rng(3)
    base = generator.uniform(0.2, 0.6, QUERIES)
    gain = np.clip(base + generator.normal(0.12, 0.1, QUERIES), 0, 1)
    documents = {
        "base": base,
        "good": gain,
        "slow": gain,
        "narrow": gain,
        "same": base + generator.normal(0, 0.002, QUERIES),
        "noisy": np.clip(base + generator.normal(-0.03, 0.2, QUERIES), 0, 1),
    }
    passages = {
        arm: np.clip(base + generator.normal(-0.12 if arm == "narrow" else 0.0, 0.03, QUERIES), 0, 1)
        for arm in documents
    }
    folder = write_results(
        tmp_path_factory.mktemp("verdicts") / "runs" / "run",
        {arm: list(values) for arm, values in documents.items()},
        {arm: 420.0 if arm == "slow" else 20.0 for arm in documents},
        {arm: list(values) for arm, values in passages.items()},
    )
    return files.load(folder)


def told(run: Measurements) -> dict[str, tuple[str, str]]:
    frame = run.verdicts
    return {row.factor: (row.verdict, row.reason) for row in frame.itertuples()}


def test_verdict_of_the_run(run: Measurements) -> None:
    assert {arm: verdict for arm, (verdict, _) in told(run).items()} == ARMS
    assert all(reason.startswith("Quality ") and ". Latency " in reason for _, reason in told(run).values())


def test_verdict_in_report_notebook_and_comparison(run: Measurements) -> None:
    expected = told(run)
    for frame in (run.verdicts, Results.load(run.folder).verdicts):
        assert {row.factor: (row.verdict, row.reason) for row in frame.itertuples()} == expected
    page = page_tables.verdicts(run)
    assert {row[0].text: row[1].text.split()[-1] for row in page.rows} == ARMS
    for arms in (gather([run.folder]).arms, Arms.of(run)):  # the second is what a search confirms by
        result = {item.contrast.factors[0]: item.verdict for item in arms.against("base")}
        assert {arm: (verdict.outcome, verdict.reason) for arm, verdict in result.items()} == expected


def test_verdict_recall_in_a_context_is_compared_and_changes_no_verdict(write_results, tmp_path: Path) -> None:
    """`good` gains .1 for every second query, `same` nothing; a family of their own has the interval of `compare`."""
    base = [0.4, 0.5, 0.6] * 60
    arms = {"base": base, "good": [value + 0.1 for value in base], "same": base}
    recalls = {"base": base, "good": [value + 0.1 * (n % 2) for n, value in enumerate(base)], "same": base}
    times = dict.fromkeys(arms, 20.0)
    without = files.load(write_results(tmp_path / "a", arms, times, arms)).verdicts
    results = files.load(write_results(tmp_path / "b", arms, times, arms, recalls))
    frame = results.verdicts
    of_recall = [name for name in frame if name.startswith("recall_")]
    assert without[of_recall].isna().all(axis=None)
    assert frame.drop(columns=of_recall).equals(without.drop(columns=of_recall))
    values = [np.array([recalls[arm], recalls["base"]]) for arm in ("good", "same")]
    policy = Arms.of(results).policy
    expected = policy.compare([actual[0] for actual in values], [actual[1] for actual in values])
    for row, actual in zip(frame.itertuples(), expected, strict=True):
        assert (row.recall_ci_low, row.recall_ci_high, row.recall_p) == (actual.ci_low, actual.ci_high, actual.p_value)
    assert frame["recall_effect"].tolist() == pytest.approx([0.05, 0.0])
    assert frame["recall_n"].tolist() == [180, 180]
    assert frame.loc[0, "recall_mean"] - frame.loc[0, "recall_baseline"] == pytest.approx(0.05)
    page = page_tables.verdicts(results)
    assert "Recall@2000tokens, passages" in [heading for heading, _ in page.columns]
    assert "Recall@2000tokens, passages" not in [h for h, _ in page_tables.verdicts(files.load(tmp_path / "a")).columns]
    assert tables.compact(frame)["context recall (secondary)"][0].startswith("+0.050 [+0.0")


def test_verdict_recall_of_arms_with_other_topics_is_not_compared(write_results, tmp_path: Path) -> None:
    arms = {"base": LOW, "one": LOW}
    recalls = {"base": LOW, "one": LOW[:-1]}
    frame = files.load(write_results(tmp_path / "run", arms, None, arms, recalls)).verdicts
    assert frame["recall_effect"].isna().all() and frame["passage_effect"].notna().all()


def test_verdict_in_commands(run: Measurements, tmp_path: Path, capsys) -> None:
    assert cli.main(["compare", "run/good", "run/slow", f"paths.results={run.folder.parent.parent}"]) == 0
    assert capsys.readouterr().out.startswith("Change in nDCG@10 from good [95% CI]")
    assert cli.main(["compare", str(run.folder), "--json", f"paths.results={tmp_path}"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["factor"]: (row["verdict"], row["reason"]) for row in rows} == told(run)


@pytest.mark.parametrize("arm", ARMS)
def test_verdict_decides_gate_and_export(arm: str, run: Measurements, priced, tmp_path: Path, capsys) -> None:
    words = [f"paths.results={run.folder.parents[1]}"]
    assert cli.main(["gate", "run/base", f"run/{arm}", *words]) == GATE[arm]
    out = tmp_path / "config.yaml"
    refused = ARMS[arm] != "adopt"
    given = ["export", str(run.folder), "--arm", arm, "--format", "ragdocs", "--out", str(out), *words]
    assert cli.main(given) == (2 if refused else 0)
    assert out.exists() != refused
    capsys.readouterr()


@pytest.fixture(scope="module")
def own_words(workplace: Path, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Overrides that measure 24 notes, each known by its first sentence."""
    folder = tmp_path_factory.mktemp("own")
    notes = sorted(write_vault(folder / "notes", 24).rglob("*.md"))
    texts = [path.read_text(encoding="utf-8").split("\n\n")[1].split(". ")[0] for path in notes]
    rows = [f'"{text}",{path.relative_to(folder / "notes")}' for text, path in zip(texts, notes, strict=True)]
    (folder / "queries.csv").write_text("\n".join(["text,relevant", *rows]), encoding="utf-8")
    return [
        *("data=vault", f"data.corpus={folder / 'notes'}", f"data.queries={folder / 'queries.csv'}", "split=all"),
        *(f"paths.results={folder / 'results'}", f"paths.index={workplace / 'index'}", "statistics.draws=500"),
        *("latency.enabled=false", "tracking.enabled=false"),
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "command",
    [
        ["run", "-m", "+exp=lexical_only", "p8=off,on"],
        ["ablate", "+exp=lexical_only", "design=add_one", "factors=[p8,p12]"],
    ],
    ids=lambda command: command[0],
)
def test_verdict_run_and_an_ablation_say_what_their_readers_say(
    command: list[str], own_words: list[str], capsys
) -> None:
    assert cli.main([*command, *own_words, "--json"]) == 0
    output = json.loads(capsys.readouterr().out)
    expected = {row["factor"]: (row["verdict"], row["reason"]) for row in output["verdicts"]}
    actual = files.load(Path(output["folder"]))
    assert expected == told(actual) and len(expected) == len(actual.arms) - 1
    results = next(word for word in own_words if word.startswith("paths.results="))
    assert cli.main(["compare", output["folder"], "--json", results]) == 0
    compared = [(row["verdict"], row["reason"]) for row in json.loads(capsys.readouterr().out)]
    assert compared == list(expected.values())
    for (verdict, reason), arm in zip(compared, actual.arms[1:], strict=True):
        exported = measured_arm.evidence(measured_arm.find(actual.folder, arm))
        assert exported.gain == verdict and exported.sentence.endswith(reason)
        assert summarise(actual).arms[arm].tags["ragbench.verdict"] == verdict


@pytest.mark.parametrize("arm", ARMS)
def test_verdict_in_export_and_mlflow(arm: str, run: Measurements) -> None:
    verdict, reason = told(run)[arm]
    path = measured_arm.evidence(measured_arm.find(run.folder, arm))
    assert (path.gain, path.needs_force) == (verdict, verdict != "adopt")
    assert path.sentence == f"Compared with base on the test queries. {reason}"
    tags = {"verdict": verdict, "judged_by": "quality and latency", "reason": reason}
    assert summarise(run).arms[arm].tags == {f"ragbench.{name}": value for name, value in tags.items()}
    assert summarise(run).arms["base"].tags == {}


@pytest.fixture(scope="module")
def five(write_results, tmp_path_factory: pytest.TempPathFactory) -> Measurements:
    """Five arms; `low` would be worse as a single comparison (a t of -2.3), and is not among four comparisons."""
    generator = np.random.default_rng(8)
    base = generator.uniform(0.3, 0.7, 80)
    noise = generator.normal(0, 0.2, (4, 80))
    noise = (noise - noise.mean(axis=1, keepdims=True)) / noise.std(axis=1, keepdims=True) * 0.2
    effects = np.array([-2.3, 0.4, 0.8, -0.5]) * 0.2 / np.sqrt(79)
    arms = {"base": base} | dict(zip(("low", "b", "c", "d"), base + noise + effects[:, np.newaxis], strict=True))
    folder = tmp_path_factory.mktemp("five") / "runs" / "five"
    write_results(folder, {arm: list(values) for arm, values in arms.items()}, dict.fromkeys(arms, 20.0))
    return files.load(folder)


def test_verdict_every_surface_judges_an_arm_with_the_family_of_its_run(
    five: Measurements, tmp_path: Path, capsys
) -> None:
    """Contradictions between surfaces: none, whichever arms they are asked for."""
    own = five.verdicts.set_index("factor")
    outcome, reason = own.loc["low", "verdict"], own.loc["low", "reason"]
    loaded = Arms.of(five)
    alone = Arms({name: loaded.arms[name] for name in ("base", "low")}, loaded.policy).against("base")[0]
    assert (alone.verdict.quality, alone.verdict.family) == ("worse", "a single comparison")
    assert (outcome, own.loc["low", "quality"]) == ("inconclusive", "open")
    assert "(in the run of 5 arms, one of 4 comparisons corrected together)" in reason
    results = f"paths.results={five.folder.parents[1]}"
    actual = []
    for words in (["five"], ["five/base", "five/low"], ["five/base", "five/low", "five/c"]):
        assert cli.main(["compare", *words, "--json", results]) == 0
        rows = {row["factor"]: row for row in json.loads(capsys.readouterr().out)}
        assert set(rows) == ({"low", "b", "c", "d"} if words == ["five"] else {w[5:] for w in words[1:]})
        actual.append((rows["low"]["verdict"], rows["low"]["reason"]))
    for frame in (five.verdicts, Results.load(five.folder).verdicts):
        (row,) = frame[frame["factor"] == "low"].to_dict("records")
        actual.append((row["verdict"], row["reason"]))
    tags = summarise(five).arms["low"].tags
    actual.append((tags["ragbench.verdict"], tags["ragbench.reason"]))
    exported = measured_arm.evidence(measured_arm.find(five.folder, "low"))
    actual.append((exported.gain, exported.sentence.removeprefix("Compared with base on the test queries. ")))
    assert set(actual) == {(outcome, reason)}
    assert page_tables.verdicts(five).rows[0][1].text.split()[-1] == outcome
    checks = gate.gate(measured_arm.find(five.folder, "base"), measured_arm.find(five.folder, "low"))
    assert checks[1].outcome == "not checked" and checks[1].message.startswith("inconclusive: documents")
    assert reason.split(": ", 1)[1].split(". Latency")[0] in checks[1].message.replace(": inconclusive (", " (")
    assert "as a single comparison it would be significantly worse" in checks[1].message
    assert cli.main(["gate", "five/base", "five/low", "--json", results]) == 3
    assert json.loads(capsys.readouterr().out)["checks"][1]["said"] == checks[1].message


OF_EXTRAS = {"extras/atlas/meta.py", "extras/fit/ltr_multi.py"}
"""Statistics of other collections and sites, which compare no arms of a run."""
OF_TIMES = {f"evaluation/{name}.py" for name in ("intervals", "latency", "unasked", "machine")}


def test_verdict_intervals_are_computed_in_evidence_only() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path.parent.name == "evidence" or path.relative_to(PACKAGE).as_posix() in OF_TIMES | OF_EXTRAS:
            continue
        for node in ast.walk(parsed(path)):
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "module", None) or ""
            assert name not in ("scipy.stats", "bootstrap", "ttest_rel", "quantile"), f"{path} computes an interval"
