"""Freeze what ragbench does, so that a change of its structure can show that nothing else changed.

python -m research.freeze write FILE [--only help,config]      compute the parts, write them as JSON
python -m research.freeze compare FILE [--only ...]            compute them again; exit code 1 if any differs

help            `--help` of every command and sub-command                                             1 s
config          the composed configuration of every preset and of every option of every group      15 s
fingerprints    of the pipeline and of all index artefacts of every preset, over a small vault      5 s
toml            what the formats of files render of every preset                                   25 s
json            the keys of `--json` of commands over one small run                                15 s
bundle          the golden rankings of a bundle, and what it answers                               10 s
mlflow          the names of metrics, parameters and tags of an ablation                           10 s
runs            every preset on three collections: digests of run files and per-query values       10 min

Texts that name this machine, times and versions are not frozen. Embeddings and indexes are kept between calls in
`--work` (default: a folder in the system's temporary folder), so that a comparison costs less than the first call.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import hashlib
import io
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["COLUMNS"] = "100"  # the width of `--help`
os.environ.update(MLFLOW_DISABLE_TELEMETRY="true", DO_NOT_TRACK="true", NO_COLOR="1")

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "tests" / "data"
SUBSET = 12
"""How many topics of the built-in benchmark are measured: every n-th by a digest of its id."""
VAULT_QUERIES = """qid,text,relevant,split
v1,LNT-301,reference/errors#error-codes,test
v2,how do lamps know when the sun sets,guides/schedules#dusk-and-dawn,test
v3,getAuthToken,guides/authentication#certificates-for-controllers,test
v4,what happens after too many wrong passwords,guides/authentication#accounts-for-people,test
v5,can lantern play music,,test
v6,first lamp on the harbour network,guides/first-lamp.md,test
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("file", type=Path, metavar="FILE")
    parser.add_argument("--only", metavar="PART,PART", help=f"some of {', '.join(PARTS)}")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "ragbench-freeze", metavar="DIR")
    parser.add_argument("--most", type=int, default=40, metavar="N", help="differences to print of a part")
    given = parser.parse_args(arguments)
    file, work = given.file.absolute(), given.work.absolute()
    before = json.loads(file.read_text(encoding="utf-8")) if given.action == "compare" or file.exists() else {}
    kept = [part for part in PARTS if given.action == "write" or part in before]
    chosen = given.only.split(",") if given.only else kept
    if unknown := sorted(set(chosen) - set(PARTS)):
        parser.error(f"--only takes {', '.join(PARTS)}, got {unknown[0]}")
    work.mkdir(parents=True, exist_ok=True)
    unequal = 0
    for part in chosen:
        begun = time.process_time()
        with tempfile.TemporaryDirectory(dir=work) as state:  # verdicts depend on the ledger of earlier runs
            os.environ["XDG_STATE_HOME"] = state
            after = json.loads(json.dumps(PARTS[part](work)))
        spent = time.process_time() - begun
        if given.action == "write":
            before[part] = after
            print(f"{part}: {len(after)} entries, {spent:.0f} CPU-s in this process")
            file.write_text(json.dumps(before, indent=0, sort_keys=True, ensure_ascii=False), encoding="utf-8")
            continue
        unlike = list(differences(before.get(part, {}), after, ""))
        unequal += len(unlike)
        print(f"{part}: {'equal' if not unlike else f'{len(unlike)} differences'}, {spent:.0f} CPU-s in this process")
        for line in unlike[: given.most]:
            print(f"  {line}")
        if len(unlike) > given.most:
            print(f"  and {len(unlike) - given.most} more")
    return int(unequal > 0)


def differences(before: Any, after: Any, path: str) -> Iterator[str]:
    """One line for every value below `path` that differs."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            where = f"{path}/{key}" if path else key
            if key not in after:
                yield f"- {where}"
            elif key not in before:
                yield f"+ {where}"
            else:
                yield from differences(before[key], after[key], where)
    elif isinstance(before, str) and isinstance(after, str) and "\n" in before + after:
        old, new = before.splitlines(), after.splitlines()
        gone = [line for line in old if line not in new]
        come = [line for line in new if line not in old]
        if old != new:
            yield f"! {path}: {len(gone)} lines gone, {len(come)} lines new" + "".join(
                f"\n      {sign} {line}" for sign, lines in (("-", gone), ("+", come)) for line in lines[:6]
            )
    elif before != after:
        yield f"! {path}: {json.dumps(before)[:110]} -> {json.dumps(after)[:110]}"


# The parts ------------------------------------------------------------------------------------------------------------


def helps(work: Path) -> dict[str, str]:
    """Return the help of every command."""
    from ragbench import commands

    names = ["", *commands.everything()]
    return {name or "ragbench": command(*name.split(), "--help")[1] for name in names}


def configurations(work: Path) -> dict[str, Any]:
    """Return the configuration of every preset, and of every option what it changes in the default one."""
    from ragbench.config import available, composition

    known = available.read()
    frozen: dict[str, Any] = {}
    plain = {key: _portable(value) for key, value in flat(composition.compose([]).config)}
    for group, options in known.by_group.items():
        for option in options:
            word = f"{group}={option}"
            try:
                settings = composition.compose([f"{group}=[{option}]" if group == "tune" else word])
            except Exception as error:
                frozen[word] = f"{type(error).__name__}: {error}"
                continue
            values = {key: _portable(value) for key, value in flat(settings.config)}
            changed = {key for key in {*values, *plain} if values.get(key) != plain.get(key)}
            shown = values if group == "exp" else sorted(changed)
            frozen[word] = {key: values.get(key, "(absent)") for key in shown}
    return frozen


def fingerprints(work: Path) -> dict[str, Any]:
    """Return the fingerprints of every preset: its pipeline, its index specification, its artefacts."""
    from ragbench.base.fingerprint import digest
    from ragbench.config import composition
    from ragbench.config.settings import ArmBuilder

    frozen = {}
    benchmark = experiment("vault", work, []).benchmark
    for name in presets():
        settings = composition.compose([f"exp={name}", *places(work)])
        (arm,) = ArmBuilder.of(settings, benchmark).arms([settings])
        frozen[name] = {
            "pipeline": arm.pipeline.fingerprint,
            "sentence": repr(arm.pipeline),
            "index": digest(settings.index),
            "artefacts": arm.index.fingerprints(arm.pipeline.needs | {"chunks"}),
        }
    return frozen


def exported(work: Path) -> dict[str, Any]:
    """Return what the file formats render of every preset, without what says where the settings are from."""
    from ragbench.base import registry
    from ragbench.config import composition

    frozen = {}
    for form in registry.names("export"):
        file_format = registry.load("export", form, "--format")
        for name in presets():
            try:
                text, missing = file_format.render(composition.compose([f"exp={name}"]), ())
            except Exception as error:
                text, missing = f"{type(error).__name__}: {error}", []
            frozen[f"{form}/{name}"] = {"text": text, "missing": list(missing)}
    return frozen


def json_keys(work: Path) -> dict[str, Any]:
    """Return the paths of keys that `--json` of the commands prints, over one small run in a folder of its own."""
    frozen = {}
    with small_project(work) as words:
        run = "@1"
        calls = {
            "list": ["list"],
            **{f"list {kind}": ["list", kind] for kind in ("experiments", "switches", "parameters", "data", "models")},
            "list config": ["list", "config", "exp=phase3"],
            "run": ["run", "exp=baseline", *words],
            "ablate": ["ablate", "exp=phase1", "design=leave_one_out", "factors=[p2,p4]", *words],
            "run -m": ["run", "-m", "exp=baseline,recommended", *words],
            "search": ["search", "wrong passwords", "--top", "3", "--explain", *words],
            "list runs": ["list", "runs"],
            "compare": ["compare", run],
            "report": ["report", run],
            "diagnose": ["diagnose", run],
            "advise": ["advise", run],
            "gate": ["gate", f"{run}/baseline", f"{run}/recommended"],
            "export": ["export", f"{run}/recommended", "--out", "exported", "--force"],
            "export config": ["export", f"{run}/recommended", "--format", "config", "--out", "own.yaml", "--force"],
            "verify": ["verify", "exported", "--no-latency"],
            "refresh": ["refresh", "exported", "--corpus", str(_changed(DATA / "vault"))],
            "data check": ["data", "check", *words[:3]],
            "topics show": ["topics", *words[:3]],
            "topics derive": ["topics", "derive", "topics.limit=3", "--out", "derived.jsonl", *words[:3]],
            "index": ["index", *words],
            "doctor": ["doctor"],
        }
        for name, call in calls.items():
            code, out, error = command(*call, "--json")
            try:
                frozen[name] = {"code": code, "keys": sorted(set(key_paths(json.loads(out))))}
            except json.JSONDecodeError:
                frozen[name] = {"code": code, "no JSON": (error or out).strip().splitlines()[-1:]}
    return frozen


def bundles(work: Path) -> dict[str, Any]:
    """Return the golden rankings of a bundle of `recommended`, its files, and what it answers."""
    import ragbench

    frozen: dict[str, Any] = {}
    with small_project(work) as words:
        command("run", "exp=recommended", *words)
        code, _, error = command("export", "@1/recommended", "--out", "exported", "--force")
        assert code == 0, error
        folder = Path("exported")
        record = json.loads((folder / "bundle.json").read_text(encoding="utf-8"))
        frozen["keys"] = sorted(set(key_paths(record)))
        frozen["files"] = sorted(
            re.sub(r"[0-9a-f]{12,}", "DIGEST", str(p.relative_to(folder))) for p in folder.rglob("*")
        )
        golden = next(p for p in folder.rglob("*golden*") if p.is_file())
        frozen["golden"] = _rounded([json.loads(line) for line in golden.read_text(encoding="utf-8").splitlines()])
        opened = ragbench.load(folder)
        for row in csv.DictReader(io.StringIO(VAULT_QUERIES)):
            hits = opened.search(row["text"])
            frozen[f"query/{row['qid']}"] = [
                (hit.docno, list(hit.header_path), round(float(hit.score), 6)) for hit in hits
            ]
    return frozen


def tracked(work: Path) -> dict[str, Any]:
    """Return the names that an ablation has in MLflow."""
    frozen: dict[str, Any] = {}
    with small_project(work) as words:
        on = [word for word in words if not word.startswith("tracking.")]
        store = f"sqlite:///{Path.cwd() / 'mlflow.db'}"
        call = ["ablate", "exp=phase1", "design=leave_one_out", "factors=[p2,p4]", *on, f"tracking.uri={store}"]
        code, _, error = command(*call)
        assert code == 0, error
        import mlflow

        mlflow.set_tracking_uri(store)
        ids = [each.experiment_id for each in mlflow.search_experiments()]
        for run in mlflow.search_runs(ids, output_format="list"):
            frozen[run.info.run_name] = {
                "metrics": sorted(run.data.metrics),
                "parameters": {key: _portable(value) for key, value in run.data.params.items()},
                "tags": sorted(run.data.tags),
                "files": sorted(each.path for each in mlflow.MlflowClient().list_artifacts(run.info.run_id)),
            }
    return frozen


def runs(work: Path) -> dict[str, Any]:
    """Return the digests of what every preset writes on three collections, and the verdicts."""
    from ragbench.results import store

    frozen: dict[str, Any] = {}
    for collection in ("vault", "german", "builtin"):
        folder = Path(tempfile.mkdtemp(dir=work))
        sweep = experiment(collection, work, [f"exp={','.join(presets())}"], folder)
        with contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            written = sweep.measure().folder
        for arm in sweep.pipelines:
            frozen[f"{collection}/{arm}"] = _arm(store.arm_path(written, arm))
        for name in ("verdicts.csv", "summary.csv", "best_arm.csv"):
            if (written / name).is_file():
                rows = csv.DictReader(io.StringIO((written / name).read_text(encoding="utf-8")))
                frozen[f"{collection}/{name}"] = {str(n): _rounded(row) for n, row in enumerate(rows)}
        shutil.rmtree(folder, ignore_errors=True)
    return frozen


PARTS: Mapping[str, Callable[[Path], dict[str, Any]]] = {
    "help": helps,
    "config": configurations,
    "fingerprints": fingerprints,
    "toml": exported,
    "json": json_keys,
    "bundle": bundles,
    "mlflow": tracked,
    "runs": runs,
}


# What the parts share -------------------------------------------------------------------------------------------------


def command(*words: str) -> tuple[int, str, str]:
    """Run a command in this process: its exit code, standard output and standard error."""
    from ragbench.commands import cli

    out, error = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(error):
        code = cli.main(list(words))
    return code, out.getvalue(), error.getvalue()


def presets() -> tuple[str, ...]:
    """Return the names of all presets."""
    from ragbench.config import available

    return tuple(sorted(available.read().by_group["exp"]))


def places(work: Path) -> list[str]:
    """Return overrides that keep everything in `work` and measure no time."""
    kept = [f"paths.results={work / 'results'}", f"paths.index={work / 'index'}", f"paths.cache={work / 'cache'}"]
    return [*kept, "latency.enabled=false", "tracking.enabled=false"]


def experiment(collection: str, work: Path, words: Sequence[str], results: Path | None = None) -> Any:
    """Return the experiment of `words` over one of the three collections."""
    from ragbench import Experiment

    data = [] if collection == "builtin" else small_data(collection, work)
    around = [*places(work), *([f"paths.results={results}"] if results else []), "split=all", "statistics.draws=1000"]
    made = Experiment.sweep(*words, *data, *around)
    if collection != "builtin":
        return made
    benchmark = made.benchmark
    ranked = sorted(benchmark.topics, key=lambda topic: hashlib.sha256(topic.qid.encode()).hexdigest())
    kept = {topic.qid for topic in ranked[:SUBSET]}
    return replace(made, given=replace(benchmark, topics=tuple(t for t in benchmark.topics if t.qid in kept)))


def small_data(collection: str, work: Path) -> list[str]:
    """Return the overrides of a small collection."""
    if collection == "german":
        return [
            "data=vault",
            f"data.corpus={DATA / 'german' / 'vault'}",
            f"data.queries={DATA / 'german' / 'queries.csv'}",
        ]
    queries = work / "vault.csv"
    queries.write_text(VAULT_QUERIES, encoding="utf-8")
    return ["data=vault", f"data.corpus={DATA / 'vault'}", f"data.queries={queries}"]


@contextlib.contextmanager
def small_project(work: Path) -> Iterator[list[str]]:
    """Work in a new folder; yields the overrides of a small run whose results are in it."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory(dir=work) as folder:
        os.chdir(folder)
        try:
            yield [*small_data("vault", work), *places(work)[1:], "paths.results=results", "split=all"]
        finally:
            os.chdir(before)


def flat(node: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the leaves of a configuration by dotted key."""
    if isinstance(node, Mapping) and node:
        for key, value in node.items():
            yield from flat(value, f"{path}.{key}" if path else str(key))
    else:
        yield path, list(node) if isinstance(node, list | tuple) else node


def key_paths(value: Any, path: str = "") -> Iterator[str]:
    """Yield the paths of all keys of a JSON value; items of lists, and names of arms and parts, as `*`."""
    if isinstance(value, dict):
        for key, below in value.items():
            name = key if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_@ -]*", key) else "*"
            yield f"{path}/{name}"
            yield from key_paths(below, f"{path}/{name}")
    elif isinstance(value, list):
        for below in value:
            yield from key_paths(below, f"{path}/*")


def _arm(folder: Path) -> dict[str, Any]:
    import pandas as pd

    frame = pd.read_parquet(folder / "per_query.parquet").drop(columns="arm")
    frame["value"] = frame["value"].round(9)
    values = frame.sort_values(list(frame.columns[:-1])).to_csv(index=False)
    digests = {p.name: _digest(p.read_text(encoding="utf-8")) for p in sorted(folder.glob("*.trec"))}
    means = frame[frame["measure"] == "nDCG@10"].groupby("level")["value"].mean().round(6)
    return {
        **digests,
        "per_query": _digest(values),
        "nDCG@10": {str(level): float(mean) for level, mean in means.items()},
    }


def _changed(vault: Path) -> Path:
    """Return a copy of a vault, in the working directory, in which one note differs."""
    copy = shutil.copytree(vault, Path("changed"))
    with (copy / "index.md").open("a", encoding="utf-8") as note:
        note.write("\nThe harbour master keeps a second key.\n")
    return copy


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(below) for key, below in value.items()}
    if isinstance(value, list):
        return [_rounded(below) for below in value]
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            return f"{float(value):.6g}"
    return round(value, 6) if isinstance(value, float) else value


def _portable(value: Any) -> Any:
    """Return a value without the paths of this machine."""
    text = value if isinstance(value, str) else ""
    for root, name in ((str(ROOT), "ROOT"), (str(Path.cwd()), "HERE"), (tempfile.gettempdir(), "TMP")):
        text = text.replace(root, name)
    return re.sub(r"TMP/\S+", "TMP", text) if isinstance(value, str) else value


def _quiet(sentence: str) -> None:
    """Print nothing."""


if __name__ == "__main__":
    raise SystemExit(main())
