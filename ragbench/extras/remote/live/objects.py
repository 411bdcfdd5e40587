"""Python objects that search: functions, and retrievers of other libraries, which are recognized by their methods.

No other library is imported here, except BM25S where one of its own objects needs it to split a query into tokens.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import inspect
import logging
import math
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np

from ragbench.base import foreign, registry
from ragbench.base.fingerprint import text_digest
from ragbench.base.types import FAILURES, ConfigError, LiveError, Query, did_you_mean, failure
from ragbench.benchmark.runs import trec_eval_order
from ragbench.extras.remote.live.hit_matching import HitMatcher, LiveHit

_LOG = logging.getLogger(__name__)

_Answers = Callable[[Sequence[Query], int], Sequence[Any]]
"""Asks an object: from queries and a depth, its raw answer to each."""

_DOCUMENT = ("docno", "doc_id", "document_id", "source", "file_path", "path", "url", "file_name")
_ID = ("id", "_id", "docid", "id_", "node_id", "ref_doc_id")  # an id may be that of a passage, so it comes last
_TEXT = ("text", "page_content", "content", "contents", "body", "passage")
_SECTION = ("section", "heading", "header_path", "anchor", *(f"Header {level}" for level in range(6, 0, -1)))
_SCORE = ("score", "_score", "relevance_score", "similarity")
_LISTS = ("documents", "hits", "results", "nodes", "source_nodes", "docs", "matches")
_DEPTHS = ("k", "top_k", "top_n", "topk", "n", "depth", "limit", "num_results", "similarity_top_k")
_MANY = ("queries", "topics", "questions")
_FILTER = "filter"
_USABLE = "return docnos, (docno, score) pairs, dicts with docno and score, a DataFrame or documents, best first"


@dataclass(frozen=True)
class _Call:
    """How to ask an object; `parameter_names` are those that it takes (None: any), `batch`: all queries at once.

    `filtered`: it takes the filter of its query, so that queries with different ones are asked one by one.
    """

    answers: _Answers
    parameter_names: frozenset[str] | None = frozenset()
    batch: bool = False
    filtered: bool = False


@dataclass(eq=False)
class PythonRetriever:
    """A Python object as a retriever, under a name; `parameters` are keyword arguments of a function.

    `decorated`: decorated with `@ragbench.retriever`, so that its name alone finds it.
    """

    name: str
    target: Any = field(repr=False)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    decorated: bool = False
    number: int = 0

    def __post_init__(self) -> None:
        self.parameter_names = _asking(self.target, {}).parameter_names
        self.content = _content(self.target)
        self._bound: dict[str, _Call] = {}
        self._warned = False
        self.__module__ = str(getattr(self.target, "__module__", ""))

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Call the function itself."""
        return self.target(*arguments, **{**self.parameters, **named})

    def with_(self, **parameters: Any) -> PythonRetriever:
        """The same retriever with other values of its parameters. Raises ConfigError for an unknown one."""
        return replace(self, parameters=self.require({**self.parameters, **parameters}))

    def require(self, parameters: Mapping[str, Any]) -> Mapping[str, Any]:
        """The parameters. Raises ConfigError for one that the function does not have."""
        for name in parameters:
            if self.parameter_names is not None and name not in self.parameter_names:
                known = did_you_mean(name, sorted(self.parameter_names), "parameters") or ": it has none"
                raise ConfigError(f"retriever '{self.name}' has no parameter '{name}'{known}")
        return parameters

    def ask(self, queries: Sequence[Query], depth: int, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """The raw answer to each query. Raises LiveError, with the exception of the object as its cause."""
        arguments = {**self.parameters, **parameters}
        if (key := repr(sorted(arguments.items()))) not in self._bound:
            self._bound[key] = _asking(self.target, arguments)
        way = self._bound[key]
        has_filters = any(query.filter for query in queries)
        if has_filters and not way.filtered and not self._warned:
            self._warned = True
            _LOG.warning(
                f"retriever '{self.name}' takes no filter, so queries with one are answered from all documents: give "
                "it a keyword argument 'filter'"
            )
        groups = [queries] if way.batch and not (has_filters and way.filtered) else [[query] for query in queries]
        return [answer for group in groups for answer in self._answers(way, group, depth)]

    def _answers(self, way: _Call, queries: Sequence[Query], depth: int) -> Sequence[Any]:
        try:
            answers = way.answers(queries, depth)
        except FAILURES as error:
            raise LiveError(f"retriever '{self.name}' failed on {_of(queries)}: {failure(error)}") from error
        if len(answers) != len(queries):
            raise LiveError(
                f"retriever '{self.name}' returned {len(answers)} answers to {len(queries)} queries: return a list of "
                "hits for each query"
            )
        return answers

    def hits(self, answer: Any, query: Query, depth: int, places: HitMatcher) -> list[LiveHit]:
        """The first `depth` hits of an answer. Raises LiveError for an answer of another form."""
        try:
            return [_hit(item, places) for item in _items(answer)[:depth]]
        except _Unusable as unusable:
            raise LiveError(
                f"retriever '{self.name}' returned {unusable} for {_of([query])}: {unusable.remedy}"
            ) from None


class _Unusable(Exception):
    """Why an answer cannot be used, as the object of `returned`."""

    def __init__(self, returned: str, remedy: str = _USABLE) -> None:
        super().__init__(returned)
        self.remedy = remedy


_HELD: weakref.WeakValueDictionary[tuple[str, int], PythonRetriever] = weakref.WeakValueDictionary()


def retriever(function: Any = None, *, name: str | None = None) -> Any:
    """Register a function or an object as a retriever, for `source=python:NAME` and as an arm.

    Args:
        function: Takes a query and optionally `k`, and returns docnos, (docno, score) pairs, dicts or a DataFrame.
            A parameter `filter` gets the filter of the query, a dict, where it has one. Further parameters need
            defaults; `live.parameters` and `with_` vary them.
        name: The name; the function's own by default.

    Returns:
        The retriever; without `function`, a decorator.

    Raises:
        ConfigError: The object is not a retriever.

    Example:
        >>> import ragbench
        >>> @ragbench.retriever
        ... def newest(query, k):
        ...     return ["changelog"][:k]
    """
    if function is None:
        return functools.partial(retriever, name=name)
    new_retriever = PythonRetriever(
        name or str(getattr(function, "__name__", type(function).__name__)), function, decorated=True
    )
    registry.register("retriever", new_retriever.name, new_retriever)
    return new_retriever


def hold(name: str, target: Any) -> PythonRetriever:
    """A retriever for an object, found by name and number as long as the returned value is referenced."""
    number = 0
    while (existing := _HELD.get((name, number))) is not None and existing.target is not target:
        number += 1
    if existing is None:
        existing = _HELD[name, number] = PythonRetriever(name, target, number=number)
    return existing


def of_object(name: str, value: Any) -> PythonRetriever | None:
    """A retriever as it is, an object that can be asked as one under this name; None for anything else."""
    if isinstance(value, PythonRetriever):
        return value
    return None if _method(value) is None else hold(name, value)


def find(name: str, number: int) -> PythonRetriever:
    """The retriever of this name. Raises LiveError for one that this process does not have."""
    registered: PythonRetriever | None = _HELD.get((name, number)) or registry.find("retriever", name)
    if registered is None:
        raise LiveError(
            f"retriever '{name}' is not known in this process: measure it where it is made (execution=local), or "
            "decorate it with @ragbench.retriever in a module that RAGBENCH_PLUGINS names"
        )
    return registered


def _method(value: Any) -> str | None:
    """The method of an object that is asked, `""` for the object itself; None for something else."""
    if isinstance(value, (str, bytes, Mapping, list, tuple, type)):
        return None
    for name in ("retrieve", "invoke", "similarity_search_with_score", "transform", "run", "search"):
        if callable(getattr(value, name, None)):
            return name
    return "" if callable(value) else None


def _asking(target: Any, parameters: Mapping[str, Any]) -> _Call:
    """How to ask an object, with these parameters. Raises ConfigError for one that cannot be asked."""
    method = _method(target)
    if method == "retrieve" and hasattr(target, "get_scores"):
        return _Call(_of_bm25s(target))
    if method == "transform":
        return _Call(_of_pyterrier(target), batch=True)
    if method == "run" and callable(getattr(target, "inputs", None)):
        return _Call(_each(lambda query, depth: target.run(_haystack_inputs(target, query))))
    if method in ("retrieve", "invoke"):
        ask = getattr(target, method)
        return _Call(_each(lambda query, depth: ask(query)))
    if method is None:
        raise ConfigError(
            f"{_shown(target)} is not a retriever: give a function of (query, k), or an object of LangChain, "
            "LlamaIndex, Haystack, PyTerrier or BM25S"
        )
    function = getattr(target, method) if method else target
    try:
        places = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a function of C without one
        places = []
    depth_name = _depth_of([place for place in places[1:] if place.name != _FILTER])
    others = places[2:] if depth_name is True else places[1:]
    names = frozenset(parameter.name for parameter in others if parameter.name != depth_name)
    names_taken = None if any(parameter.kind is parameter.VAR_KEYWORD for parameter in others) else names
    named = [p for p in places[1:] if p.name == _FILTER and p.kind is not p.POSITIONAL_ONLY]
    filtered = bool(named) and _FILTER not in parameters
    required = filtered and named[0].default is named[0].empty

    def bound(query: Query) -> Callable[[Any, int], Any]:
        conditions = {_FILTER: dict(query.filter)} if required or (filtered and query.filter) else {}
        return functools.partial(_call, functools.partial(function, **parameters, **conditions), depth_name)

    def of_each(queries: Sequence[Query], depth: int) -> list[Any]:
        return [_listed(bound(query)(query.text, depth)) for query in queries]

    def of_all(queries: Sequence[Query], depth: int) -> list[Any]:
        return list(bound(queries[0])([query.text for query in queries], depth))

    if places and (places[0].name in _MANY or _is_list(places[0].annotation)):
        return _Call(of_all, names_taken, batch=True, filtered=filtered)
    return _Call(of_each, names_taken, filtered=filtered)


def _each(ask: Callable[[str, int], Any]) -> _Answers:
    return lambda queries, depth: [_listed(ask(query.text, depth)) for query in queries]


def _listed(answer: Any) -> Any:
    """An answer, with a generator run to its end, so that its work counts as the time of the query."""
    return list(answer) if inspect.isgenerator(answer) else answer


def _call(function: Callable[..., Any], depth_name: str | bool, query: Any, depth: int) -> Any:
    if isinstance(depth_name, str):
        returned = function(query, **{depth_name: depth})
    else:
        returned = function(query, depth) if depth_name else function(query)
    return _complete(returned) if inspect.isawaitable(returned) else returned


def _depth_of(places: Sequence[inspect.Parameter]) -> str | bool:
    """The name of the parameter that takes the depth, True for the second in place, False for none."""
    named = next(
        (
            parameter.name
            for parameter in places
            if parameter.name in _DEPTHS and parameter.kind is not parameter.POSITIONAL_ONLY
        ),
        None,
    )
    if named is not None:
        return named
    first = places[0] if places else None
    return (
        first is not None
        and first.kind in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD)
        and (first.default is first.empty)
    )


def _is_list(annotation: Any) -> bool:
    text = annotation if isinstance(annotation, str) else str(annotation)
    return text.rpartition(".")[2].lower().startswith(("list[str", "sequence[str", "iterable[str"))


def _of_pyterrier(transformer: Any) -> _Answers:
    """Ask a transformer for all queries at once."""

    def answers(queries: Sequence[Query], depth: int) -> list[Any]:
        import pandas as pd

        topics = pd.DataFrame([(query.qid, query.text) for query in queries], columns=["qid", "query"])
        frame = transformer.transform(topics)
        if not {"qid", "docno"} <= set(frame.columns):
            raise ValueError(f"the transformer returns no column docno, only {', '.join(map(str, frame.columns))}")
        by_qid = dict(list(frame.groupby(frame["qid"].astype(str), sort=False)))
        return [by_qid.get(query.qid, frame[:0]) for query in queries]

    return answers


def _of_bm25s(index: Any) -> _Answers:
    """Ask an index of BM25S, whose corpus names the documents that its rows stand for."""

    def answer(query: str, depth: int) -> Any:
        if getattr(index, "corpus", None) is None:
            raise ValueError("the index has no corpus: pass bm25s.BM25(corpus=[{'docno': ..., 'text': ...}, ...])")
        tokens = importlib.import_module("bm25s").tokenize([query], show_progress=False)
        rows, scores = index.retrieve(tokens, k=min(depth, len(index.corpus)), show_progress=False)
        return [(item, float(score)) for item, score in zip(rows[0], scores[0], strict=True) if score > 0]

    return _each(answer)


def _haystack_inputs(pipeline: Any, query: str) -> dict[str, dict[str, str]]:
    """The query for every input of a pipeline that takes one."""
    inputs = {
        component: {name: query for name in ("query", "text", "question") if name in sockets}
        for component, sockets in pipeline.inputs().items()
    }
    return {component: inputs_of_component for component, inputs_of_component in inputs.items() if inputs_of_component}


@functools.cache
def _loop() -> asyncio.AbstractEventLoop:
    """An event loop in a thread of its own: a notebook has one already, in which nothing can be waited for."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="ragbench async retrievers", daemon=True).start()
    return loop


def _complete(awaitable: Any) -> Any:
    async def wait() -> Any:
        return await awaitable

    return asyncio.run_coroutine_threadsafe(wait(), _loop()).result()


def _items(answer: Any) -> list[Any]:
    """The hits of an answer, best first: by score where it is a table, in its own order where it is a list."""
    if answer is None or isinstance(answer, (str, bytes, bool, Real)):
        raise _Unusable(_shown(answer))
    if hasattr(answer, "to_dict") and hasattr(answer, "columns"):
        return _rows(answer)
    if isinstance(answer, Mapping):
        return _of_mapping(answer)
    for name in _LISTS:
        if not isinstance(answer, Sequence) and isinstance(getattr(answer, name, None), (list, tuple)):
            return list(getattr(answer, name))
    if not isinstance(answer, Iterable):
        raise _Unusable(_shown(answer))
    return list(answer)


def _of_mapping(answer: Mapping[Any, Any]) -> list[Any]:
    for name in _LISTS:
        if isinstance(answer.get(name), (list, tuple)):
            return list(answer[name])
    for part in reversed(list(answer.values())):  # of a pipeline: what its last component gives
        if isinstance(part, Mapping):
            return _of_mapping(part)
    return trec_eval_order([(str(docno), _score(score)) for docno, score in answer.items()])


def _rows(frame: Any) -> list[Any]:
    rows = frame.to_dict("records")
    name = next((name for name in (*_DOCUMENT, *_ID) if name in frame.columns), None)
    if rows and name is None:
        raise _Unusable(f"a DataFrame with the columns {', '.join(map(str, frame.columns))}", "name one docno")
    if "score" in frame.columns:
        by_id = sorted(rows, key=lambda row: str(row[name]), reverse=True)
        return sorted(by_id, key=lambda row: -float(np.float32(_score(row["score"]))))  # as trec_eval orders
    return sorted(rows, key=lambda row: row["rank"]) if "rank" in frame.columns else rows


def _hit(item: Any, places: HitMatcher) -> LiveHit:
    score = None
    if isinstance(item, tuple) and not hasattr(item, "_fields"):
        if len(item) != 2 or isinstance(item[0], Real):
            raise _Unusable(f"the hit {_shown(item)}", "a tuple must be (docno, score)")
        item, score = item[0], _score(item[1])
    if isinstance(item, (str, int)) and not isinstance(item, bool):
        name = str(item)
        if not name.strip():
            raise _Unusable("a hit without a docno")
        return LiveHit(name, score=score)
    if getattr(item, "dtype", None) is not None and getattr(item, "shape", None) == ():
        return _hit(item.item() if score is None else (item.item(), score), places)  # a number or text of NumPy
    fields = _fields(item)
    metadata = fields.get("metadata") or fields.get("meta") or {}
    holders = (fields, metadata if isinstance(metadata, Mapping) else {})
    names = [
        str(holder[key])
        for keys in (_DOCUMENT, _ID)
        for key in keys
        for holder in holders
        if isinstance(holder.get(key), (str, int)) and str(holder[key]).strip()
    ]
    text = next((str(holder[key]) for key in _TEXT for holder in holders if isinstance(holder.get(key), str)), "")
    if not names and not text.strip():
        raise _Unusable(f"the hit {_shown(item)}, which has neither a docno nor a text")
    section = next((holder[key] for key in _SECTION for holder in holders if holder.get(key)), "")
    section = section[-1] if isinstance(section, (list, tuple)) else section
    if score is None:
        raw_score = next((fields[key] for key in _SCORE if fields.get(key) is not None), None)
        score = None if raw_score is None else _score(raw_score)
    matched = [name for name in names if places.knows(name)] or [
        name for name in names if places.chunk(LiveHit(name)) is not None
    ]
    return LiveHit(next(iter([*matched, *names]), ""), section if isinstance(section, str) else "", text, score)


def _fields(item: Any) -> Mapping[str, Any]:
    """The values of a hit by name: those of a mapping, or attributes; of a scored node also those of its node."""
    if isinstance(item, Mapping):
        return item
    inner = getattr(item, "node", item)
    names = (*_DOCUMENT, *_ID, *_TEXT, *_SECTION, *_SCORE, "metadata", "meta")
    return {
        name: value for source in (inner, item) for name in names if (value := getattr(source, name, None)) is not None
    }


def _score(value: Any) -> float:
    if isinstance(value, bool) or (not isinstance(value, Real) and not hasattr(value, "__float__")):
        raise _Unusable(f"the score {_shown(value)}", "a score must be a number")
    number = float(value)
    if not math.isfinite(number):
        raise _Unusable(f"the score {number}", "a score must be a finite number")
    return number


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:80]}..."


def _of(queries: Sequence[Query]) -> str:
    first = f"query {queries[0].qid} '{queries[0].text[:60]}'"
    return first if len(queries) == 1 else f"{len(queries)} queries, the first of them {first}"


def _content(target: Any, depth: int = 3) -> str:
    """A digest of what is known of an object: the code of a function, its defaults and what it encloses."""
    if isinstance(target, functools.partial):
        return text_digest(f"{_content(target.func)} {target.args!r} {sorted(target.keywords.items())!r}")
    if inspect.ismethod(target):
        return text_digest(f"{_content(target.__func__)} {_content(target.__self__)}")
    if inspect.isfunction(target):
        cells = inspect.getclosurevars(target).nonlocals.values() if target.__closure__ else ()
        enclosed = [_value(cell, depth) for cell in (*(target.__defaults__ or ()), *cells)]
        return text_digest(f"{foreign.code_digest(target)} {enclosed}")
    plain = {name: value for name, value in sorted(getattr(target, "__dict__", {}).items()) if _is_plain(value)}
    return text_digest(f"{type(target).__module__}.{type(target).__qualname__} {plain!r}")


def _value(value: Any, depth: int) -> str:
    if _is_plain(value):
        return repr(value)
    return _content(value, depth - 1) if depth and callable(value) else type(value).__qualname__


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (str, int, float, bool))
