"""Load a benchmark from a mapping with a loader and its options: the `data` group of the configuration."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, Literal

from ragbench.base import registry
from ragbench.base.options import Count, Natural, Refused, Validated, build, check_field, option
from ragbench.base.types import BenchmarkError, ConfigError, did_you_mean, shown
from ragbench.benchmark.benchmark import Benchmark, resplit
from ragbench.benchmark.judgments import Grades, check_grades
from ragbench.corpus.links import Dialect

VERSION = 2
"""The version of the built-in benchmark that `data=builtin` reads."""
MEMORY = "memory"
"""The recorded loader of a benchmark that a script built in memory: nothing can read it again."""
_Loader = Callable[..., Benchmark]
_VALUES = {"id": "ID", "url": "URL", "commit": "COMMIT"}


@dataclass(frozen=True)
class DataSpec(Validated):
    """What every kind of data has next to the parameters of its loader."""

    resplit: Natural | None = None  # random seed of a new train-test split, stratified by type and area
    # documents that a run measures first, for a preliminary verdict: off, a number, or auto, which takes as many as
    # embed in about two minutes if all take more than twice as long
    sample: Literal["off", "auto"] | Count = "auto"


def load(spec: Mapping[str, Any], topics: bool = True) -> Benchmark:
    """Load the benchmark that `spec` describes: `loader`, the options of that loader, and optionally `resplit`.

    `resplit: SEED` replaces the splits by new halves, train and test, stratified by type and area. With `topics=False`
    only the documents are read, nothing is masked in them, and no option that names queries or judgments is needed.
    With the extra `follow`, doubtful judgments (`Followed.doubtful`) are excluded, and `warnings` counts them. Raises
    ConfigError for an unknown or unusable option, BenchmarkError or CorpusError for data that cannot be read.
    """
    name, loader, options, seed = _parse(spec)
    loaded = loader(**_complete(name, loader, options, topics), topics=topics)
    if any(topic.masked for topic in loaded.topics):
        loaded = registry.required("hook", "without_sources", "the column masked of the topics")(loaded)
    if seed is not None and topics:
        loaded = resplit(loaded, seed)
    loaded = loaded.read_from({"data": dict(spec)})
    followed = registry.find("hook", "followed_labels") if topics else None
    return followed.without_doubtful(loaded) if followed else loaded


def load_benchmark(loader: str = "builtin", **options: Any) -> Benchmark:
    """Load a benchmark by keywords.

    Args:
        loader: One of the following, each with its main options (all of them: `ragbench list parameters data`):

            - `builtin`: the bundled benchmark; `version`
            - `native`: `corpus`, `qrels`: folders of markdown and of judgments
            - `beir`: `folder` with corpus.jsonl, queries.jsonl and qrels/
            - `trec`: `corpus`, `queries`, `qrels`
            - `ir_datasets`: `id`, such as `beir/scifact/test`
            - `vault`: `corpus`, a folder of markdown; `queries`, a CSV, TSV or JSONL file; optionally `qrels`
        **options: Options of the loader. `resplit=SEED` draws new train and test splits.

    Returns:
        The benchmark.

    Raises:
        ConfigError: The loader or an option is unknown.
        BenchmarkError: Queries or judgments cannot be read.
        CorpusError: Documents cannot be read.

    Example:
        >>> from ragbench import load_benchmark
        >>> load_benchmark("builtin").splits
        ('test', 'train')
    """
    return load({"loader": loader, **options})


def check(spec: Mapping[str, Any]) -> None:
    """Raise ConfigError for an unknown or unusable option; reads nothing and does not check for missing options."""
    _parse(spec)


def _builtin(name: str, about: str, **values: Any) -> Callable[[_Loader], _Loader]:
    return option(f"data={name}", about, plain=True, name=name, dialect="${links.dialect}", **values)


@_builtin("builtin_v21", "Version 2.1: questions that state a need, documents linked like a vault.", version=2.1)
@_builtin("builtin_v2", "Version 2 of the built-in benchmark, by a name that stays when the default changes.")
@_builtin(
    "builtin_v1", "Version 1 of the built-in benchmark: smaller and quicker than version 2, the default.", version=1
)
@_builtin("builtin", "The benchmark that comes with ragbench: version 2.")
def load_builtin(
    corpus: Path | None = None,  # another folder of documents instead
    qrels: Path | None = None,  # another folder of topics and judgments instead
    name: str = "builtin",
    # 1: 86 documents, 180 topics; 2: 521, 541 (qrels/v2/DATASHEET.md); 2.1: 497, 821 (qrels/v21/DATASHEET.md)
    version: int | float = VERSION,
    dialect: Dialect = "auto",
    topics: bool = True,
) -> Benchmark:
    """The benchmark that comes with ragbench; `corpus` and `qrels` replace its folders.

    Version 2 has documents in the kinds and lengths of real collections; version 1 has 86 of them. Version 2.1 has
    documents of its own, and keeps the judgments of version 2 where it makes none.
    """
    from ragbench.base import locations
    from ragbench.benchmark.native import listed_documents, read_benchmark
    from ragbench.corpus.metadata import read_metadata

    judgments_folder = builtin_judgments(version)
    listed = listed_documents(judgments_folder)
    if corpus is not None and qrels is None and topics and not any((corpus / file).is_file() for file in listed or ()):
        raise ConfigError(
            f"data.corpus={corpus} holds none of the documents that the built-in topics are about: "
            "add data=vault for your own notes"
        )
    only = listed if corpus is None else None
    documents_folder = corpus or locations.builtin() / "corpus" / ("v21" if version == 2.1 else "v2")
    earlier = builtin_judgments(2) if version == 2.1 and qrels is None else None
    benchmark = read_benchmark(
        documents_folder, qrels or judgments_folder, name, "fail", dialect, topics, only, earlier
    )
    if corpus is not None or qrels is not None:
        return benchmark
    # Mistakes in the frontmatter and links of these documents are part of the collection, so they give no warnings.
    # The times of the files are those of this copy: a document without a date gets 1970, so that it is not recent.
    documents = [
        document if read_metadata(document.frontmatter).modified else replace(document, modified=0.0)
        for document in benchmark.documents
    ]
    return replace(benchmark, documents=documents, warnings=())


def builtin_judgments(version: int | float = VERSION) -> Path:
    """The folder of topics and judgments of a version of the built-in benchmark. Raises ConfigError for no version."""
    from ragbench.base import locations

    folder = locations.builtin() / "qrels"
    folders = {1: folder / "v1", 2: folder / "v2", 2.1: folder / "v21"}
    if version not in folders:
        raise ConfigError(f"data.version must be one of {', '.join(map(str, folders))}, got {version}")
    return folders[version]


def _parse(spec: Mapping[str, Any]) -> tuple[str, Callable[..., Benchmark], dict[str, Any], int | None]:
    """The loader of a specification by name, its options in the types of its signature, and the seed of `resplit`."""
    options = {str(key): value for key, value in spec.items()}
    name = options.pop("loader", None)
    if name == MEMORY:
        raise BenchmarkError(
            f"'{options['name']}' was built in memory by a script and cannot be read again: measure what "
            "ragbench.save_benchmark(benchmark, FOLDER) returns, or export with the Results of the script"
        )
    known = registry.names("loader")
    if not isinstance(name, str) or name not in known:
        raise ConfigError(f"data.loader must be one of {', '.join(known)}, got {shown(name)}")
    of_all = {field.name: options.pop(field.name) for field in fields(DataSpec) if field.name in options}
    seed = build(DataSpec, of_all, "data").resplit
    loader: Callable[..., Benchmark] = registry.load("loader", name, "data.loader")
    parameters = _parameters(loader)
    for key in options:
        if key not in parameters:
            hint = did_you_mean(key, (f"data.{parameter}" for parameter in parameters), "options")
            raise ConfigError(f"data.{key} is not an option of data={name}{hint}")
    hints, options = typing.get_type_hints(loader), {k: value for k, value in options.items() if value is not None}
    try:
        values = {key: check_field(loader, key, _as_wanted(value, hints[key])) for key, value in options.items()}
    except Refused as refusal:
        raise Refused("data", refusal.key, refusal.reason) from None
    return name, loader, values, seed


def _parameters(loader: Callable[..., Benchmark]) -> dict[str, inspect.Parameter]:
    return {key: parameter for key, parameter in inspect.signature(loader).parameters.items() if key != "topics"}


def _complete(name: str, loader: Callable[..., Benchmark], options: dict[str, Any], topics: bool) -> dict[str, Any]:
    """The options, after a check that the required ones are there. ConfigError names the missing ones."""
    for key, parameter in _parameters(loader).items():
        if key in options or parameter.default is not inspect.Parameter.empty:
            continue
        if not topics and key in ("queries", "qrels"):
            options[key] = Path() if typing.get_type_hints(loader)[key] is Path else None
            continue
        hint = " (data=builtin is the benchmark that comes with ragbench)" if name == "native" else ""
        raise ConfigError(f"data.{key} is not set: add data.{key}={_VALUES.get(key, 'PATH')}{hint}")
    return options


def _as_wanted(value: Any, hint: Any) -> Any:
    """A text where a path is wanted as a path, and grades with numbers for keys, which JSON writes as texts."""
    if hint == Grades | None and isinstance(value, Mapping):
        return check_grades(value)
    is_path = hint in (Path, Path | None) and isinstance(value, str) and value.strip()
    return Path(value).expanduser() if is_path else value
