"""A bundle that is open: `ragbench.load("bundle").search("how do I rotate a key")`.

A bundle may come from a third party: without `--trust`, it executes nothing of its own and sends nothing.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property, partial
from numbers import Integral
from pathlib import Path
from types import TracebackType
from typing import Any, overload

from ragbench.base import locations
from ragbench.base.fingerprint import short_digest
from ragbench.base.options import build
from ragbench.base.types import BundleError, ConfigError, Document, Hit, IndexError_, counted, shown, why_unreadable
from ragbench.boundary import permissions
from ragbench.boundary.yaml import read_yaml_file
from ragbench.config.sections import AROUND
from ragbench.config.settings import Settings
from ragbench.config.trust import beyond_plain
from ragbench.extras.ship import bundle, documents, generation
from ragbench.extras.ship.documents import ListedDocument, StoredDocument
from ragbench.extras.ship.generation import Generation
from ragbench.index.artefacts import Artefact, ArtefactStore, Build
from ragbench.index.index import Index
from ragbench.models import resolve
from ragbench.search.engine import context
from ragbench.search.engine.answer import Answer, SearchOptions, answer
from ragbench.search.engine.pipeline import Pipeline, clean
from ragbench.search.stages.filters import FilterDocuments, filters_of

_NOT_SEARCHED = {*AROUND, "data", "topics"}


@dataclass(frozen=True)
class BundleStore(ArtefactStore):
    """A folder of artefacts in which nothing is built: a missing artefact is an error."""

    def get(self, kind: str, inputs: Any, build: Build) -> Artefact:
        """The artefact of a kind shaped by `inputs`; IndexError_ when it is missing or damaged."""
        fingerprint = short_digest([kind, inputs])
        folder = self.root / kind / fingerprint
        artefact = self._open(kind, fingerprint, folder, quietly=True)
        if artefact is not None:
            return artefact
        if folder.exists():
            raise IndexError_(f"the {kind} artefact in {folder} is damaged: export the bundle again")
        raise IndexError_(
            f"the bundle has no {kind} artefact that fits this installation ({folder} is missing): it was made with "
            "another model or another version of ragbench, so export it again here"
        )


class LoadedBundle:
    """An open bundle: its pipeline over its index. `search` may be called from several threads."""

    def __init__(
        self,
        folder: Path,
        record: Mapping[str, Any],
        settings: Settings,
        index: Index,
        serves: Generation,
        pipeline: Pipeline,
        state: Callable[[], object],
        opened_as: object,
    ) -> None:
        self.folder = folder
        self.record = record
        self.settings = settings
        self.index = index
        self.serves = serves
        self.pipeline = pipeline
        self.state = state
        """Gives what changes when other content replaces this one; None while that cannot be said."""
        self.opened_as = opened_as
        """The state before it was opened."""
        self._closing = ExitStack()
        self.on_close(index.close)

    def __repr__(self) -> str:
        return f"LoadedBundle({self.name!r}, {counted(self.index.chunks.n_documents, 'document')}: {self.pipeline!r})"

    def __enter__(self) -> LoadedBundle:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def name(self) -> str:
        """The name of the arm it was made of."""
        return str(self.record["name"])

    @overload
    def search(self, text: str, top_n: int = 10, *, max_tokens: None = None, **more: Any) -> list[Hit]: ...

    @overload
    def search(self, text: str, top_n: int = 10, *, max_tokens: int, **more: Any) -> context.Context: ...

    def search(
        self, text: str, top_n: int = 10, *, max_tokens: int | None = None, **more: Any
    ) -> list[Hit] | context.Context:
        """Return the hits of `answer`, which takes `more`; with `max_tokens`, passages that fit into that many tokens.

        Passages are chosen from the first 30 hits or `top_n`, whichever is more. For example,
        `bundle.search("rotate a key", max_tokens=2000).text` is cited markdown for a language model.
        """
        if max_tokens is None:
            return list(self.answer(text, top_n, **more).hits)
        context.check_budget(max_tokens)
        return self.answer(text, max(top_n, context.DEPTH), **more).context(max_tokens)

    def answer(
        self,
        text: str,
        top_n: int = 10,
        *,
        filters: Mapping[str, Any] | FilterDocuments | None = None,
        options: SearchOptions | None = None,
        explain: bool = False,
        deadline: float | None = None,
        **more: Any,
    ) -> Answer:
        """The best `top_n` hits (at least 1) for a query, with the notes and the times of the stages.

        `filters` are conditions such as `{"category": "guide"}`: the parameters of the stage `filters`, and any other
        name is a column of the frontmatter (`{"version": "3.2"}`). Other options are in
        `options` or given by name, such as `mode="keyword"` (`ragbench.search.engine.answer.SearchOptions`). Notes
        that the query names come in addition to `top_n`. With `explain`, every hit has its explanation. Raises
        TimeoutError at the first stage that would begin after `deadline` (of `time.monotonic`), ConfigError for an
        empty query or options that cannot be used.
        """
        if not clean(text):
            raise ConfigError("the query is empty: pass a query")
        if not isinstance(top_n, Integral):
            raise ConfigError(f"top_n must be a whole number of at least 1, got {shown(top_n)}")
        search_options = build(SearchOptions, more, "options") if options is None else options
        conditions = self._filters(filters)
        with bundle.reading(self.folder):
            return answer(
                text,
                self.pipeline,
                self.index,
                top_n,
                filters=conditions,
                options=search_options,
                explain=explain,
                deadline=deadline,
            )

    def document(self, docno: str, lines: tuple[int, int] | None = None) -> StoredDocument | None:
        """The document with this id, or those of its file's lines (from 1, both included); None when there is none."""
        with bundle.reading(self.folder):
            return documents.stored_document(self.index, docno, lines)

    def documents(self, prefix: str = "") -> list[ListedDocument]:
        """The documents whose ids begin with `prefix`, sorted by id."""
        with bundle.reading(self.folder):
            return documents.listed_documents(self.index.chunks, prefix)

    def golden(self) -> Sequence[bundle.Golden]:
        """The golden queries, with the hits that they should have among the documents that it serves."""
        return self.serves.golden

    def close(self) -> None:
        """Close the index; searches fail from now on."""
        self._closing.close()

    def on_close(self, function: Callable[[], object]) -> None:
        """Call a function after what was opened later is closed."""
        self._closing.callback(function)

    def _filters(self, filters: Mapping[str, Any] | FilterDocuments | None) -> FilterDocuments | None:
        if filters is None:
            return None
        if any(isinstance(stage, FilterDocuments) for _, stage in self.pipeline):
            raise ConfigError("filters cannot be added: the pipeline of this bundle has its own")
        return filters if isinstance(filters, FilterDocuments) else filters_of(filters)


@dataclass(frozen=True)
class StoredBundle:
    """The folder of a bundle and its record, read once; another bundle or generation has another `state`."""

    folder: Path
    state: object
    record: Mapping[str, Any]

    @staticmethod
    def read(folder: Path) -> StoredBundle:
        """What a folder holds. Raises BundleError for one that is not a bundle."""
        state = generation.state(folder)
        return StoredBundle(folder, state, bundle.read_record(folder))

    @cached_property
    def settings(self) -> Settings:
        """Its configuration, checked. Raises BundleError."""
        return settings_of(self.folder, self.record)


def load_folder(stored: StoredBundle, models: resolve.Models | None) -> LoadedBundle:
    """Open a bundle, its index and its models, as `ragbench.extras.ship.deployment.load` says."""
    folder, record, settings = stored.folder, stored.record, stored.settings
    serves = generation.current(folder, record)
    index = Index(
        settings.index,
        serves.collection,
        _no_documents,
        BundleStore(folder / bundle.INDEX),
        models or resolve.Models(cache=None),
        times=lambda: serves.modified,
    )
    with bundle.reading(folder):
        index.chunks.check()
    try:
        for time in index.modified.tolist():
            datetime.datetime.fromtimestamp(time, datetime.UTC)
    except (KeyError, ValueError, TypeError, OverflowError, OSError) as error:
        reason = "unexpected structure" if isinstance(error, OSError) else why_unreadable(error)
        raise BundleError(f"{folder / bundle.MODIFIED} cannot be read ({reason}): export the bundle again") from None
    with bundle.reading(folder):
        index.prepare(settings.pipeline.needs | {"facets"})
    for spec in bundle.cross_encoders(settings.pipeline):
        index.models.cross_encoder(spec)
    return LoadedBundle(
        folder, record, settings, index, serves, settings.pipeline, partial(generation.state, folder), stored.state
    )


def settings_of(folder: Path, record: Mapping[str, Any]) -> Settings:
    """The configuration of a bundle, checked.

    Without `--trust` (`ragbench.boundary.permissions.trust`) it may only use classes of ragbench and of installed
    extensions, start nothing and send nothing. Raises BundleError.
    """
    locations.look_also_in(folder)
    path = folder / bundle.CONFIG
    trusted = permissions.trusting()
    try:
        config = read_yaml_file(path, aliases=True)
        settings = Settings(str(record["name"]), config)
        searched = {key: node for key, node in config.items() if key not in _NOT_SEARCHED}
        for key, (effect, value) in ({} if trusted else beyond_plain(searched)).items():
            raise ConfigError(f"{key} is {str(value)[:80]}, which {effect}: only a bundle that you trust may do that")
        return settings.check_search()
    except ConfigError as error:
        if trusted:
            raise
        raise BundleError(f"{path} is refused ({error}): read it, then add --trust if you agree") from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise BundleError(f"{path} is not a configuration ({why_unreadable(error)}): export the bundle again") from None


def _no_documents() -> Sequence[Document]:
    raise IndexError_("a bundle has an index and no documents, so a missing artefact cannot be built: export it again")
