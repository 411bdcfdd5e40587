"""Take changed documents into a bundle: a new generation of its index is built next to the one that answers.

Only what is new is embedded and analysed: vectors, scores and segments of words are kept by content in the bundle's
folder `cache/`. Artefacts are named by content, so a refresh gives the same as a new build. A file that cannot be used
now (half-saved, emptied, broken) keeps its earlier version, and a sentence names it.
"""

from __future__ import annotations

import datetime
import json
import logging
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Event

from filelock import FileLock

from ragbench.base import files, progress
from ragbench.base.fingerprint import short_digest, text_digest
from ragbench.base.types import BundleError, CorpusError, Document, IndexError_, counted
from ragbench.config.settings import Settings
from ragbench.corpus import markdown, reader
from ragbench.corpus.links import Dialect, collection_digest, resolve_links
from ragbench.extras.ship import bundle, generation
from ragbench.extras.ship.bundle import Golden
from ragbench.extras.ship.documents import stored_document
from ragbench.extras.ship.generation import Change, Drift, Generation
from ragbench.extras.ship.loaded_bundle import BundleStore, settings_of
from ragbench.index import lexical
from ragbench.index.artefacts import ArtefactStore
from ragbench.index.chunks import ChunkTable
from ragbench.index.index import Index
from ragbench.index.lexical import LexicalSpec
from ragbench.models import resolve, store
from ragbench.search.engine.pipeline import Pipeline

_LOG = logging.getLogger(__name__)

CACHE = "cache"
UNUSABLE = frozenset(
    {
        "unreadable",
        "too-large",
        "encoding",
        "nul-bytes",
        "empty-file",
        "frontmatter-malformed",
        "frontmatter-unclosed",
        "unclosed-fence",
    }
)
"""Warnings about files whose earlier version, if there is one, stays served."""

_TOP = 10  # hits of a golden query that are compared
_FOLDERS = ("builtin", "native", "vault")  # loaders that read a folder of markdown
_PIECE_DOCUMENTS = 256
QUIET_MS = 100
"""Changes that follow each other within this time are one change."""
_MOST_MS = 2_000  # a folder that is never quiet is refreshed after this time
_LOOK_MS = 500


@dataclass(frozen=True)
class Refreshed:
    """The generation that answers from now on, and the docnos of files that were added, changed and deleted.

    `generation` is the earlier one when nothing has changed.
    """

    generation: Generation
    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    deleted: tuple[str, ...] = ()

    @property
    def anything(self) -> bool:
        """Whether there is a new generation."""
        return bool(self.added or self.changed or self.deleted)


class Refresher:
    """Keeps a bundle up to date with a folder; files and models that it has read are reused by the next refresh.

    If another bundle replaces `folder`, the next refresh opens it. `corpus` is the folder of the documents
    (None: the one that the bundle names), `pipeline` gives what is served by the settings. Raises BundleError for a
    bundle whose documents do not come from a folder of markdown.
    """

    def __init__(
        self,
        folder: Path,
        corpus: Path | None = None,
        *,
        pipeline: Callable[[Settings], Pipeline] = lambda settings: settings.pipeline,
    ) -> None:
        self.folder = folder.expanduser()
        self._make_pipeline = pipeline
        self._read: dict[tuple[str, str], reader.ReadFile] = {}
        self._open()
        named = corpus or self._data.get("corpus")
        if not named:
            raise BundleError("the bundle does not record where its documents are: specify the folder with --corpus")
        self.corpus = Path(named).expanduser()

    @property
    def beside(self) -> Path:
        """The record, which another bundle replaces."""
        return self.folder / bundle.RECORD

    def refresh(self, allow_shrink: bool = False, ready: Callable[[Index], None] = lambda index: None) -> Refreshed:
        """Serve what is in the folder now. Raises CorpusError when less than half of the documents are left.

        `allow_shrink` accepts that. `ready` is called with the index of a new generation, before queries are replayed
        in it. Of two processes at the same time, the second waits and then finds nothing new.
        """
        (self.folder / CACHE).mkdir(exist_ok=True)
        with FileLock(self.folder / CACHE / "refresh.lock"):
            return self._refresh(allow_shrink, ready)

    def _refresh(self, allow_shrink: bool, ready: Callable[[Index], None]) -> Refreshed:
        if generation.file_version(self.folder / bundle.RECORD) != self._identity:
            self._open()
        previous = generation.current(self.folder, self._record)
        last = self._index(previous, BundleStore(self.folder / bundle.INDEX))
        with bundle.reading(self.folder):
            last.chunks.check()
            digests = previous.digests or digests_of(last.chunks)
        documents, kept_files = self._documents(last, digests)
        if not allow_shrink and 2 * len(documents) < len(digests):
            raise CorpusError(
                f"{self.corpus} has {counted(len(documents), 'document')} and {len(digests)} are served, so the bundle "
                "does not change: restore the folder, or add --allow-shrink"
            )
        refreshed = Refreshed(
            previous, *differences(digests, {document.docno: document.digest for document in documents})
        )
        if not refreshed.anything and kept_files == previous.kept:
            last.close()
            self._prune(previous)
            return refreshed
        with bundle.reading(self.folder):
            self._keep_vectors(last)
        self._report_numerics(last)
        built = self._build(previous, documents, kept_files, ready)
        if generation.file_version(self.folder / bundle.RECORD) != self._identity:
            last.close()
            raise BundleError(f"another bundle has taken the place of {self.folder}: refresh again")
        generation.publish(self.folder, built)
        last.close()
        self._prune(previous, built)  # who opens the earlier one at this moment finds it until the next refresh
        return Refreshed(built, refreshed.added, refreshed.changed, refreshed.deleted)

    def _open(self) -> None:
        identity = generation.file_version(self.folder / bundle.RECORD)
        record = bundle.read_record(self.folder)
        bundle.check_files(self.folder, record)
        settings = settings_of(self.folder, record)
        data = dict(settings.data)
        if data.get("loader") not in _FOLDERS:
            loader = data.get("loader")
            raise BundleError(
                f"{self.folder} was made with data.loader={loader}: only a folder of markdown can be followed"
            )
        self._identity, self._record, self._settings, self._data = identity, record, settings, data
        self._pipeline = self._make_pipeline(settings)
        self._models = resolve.Models(cache=self.folder / CACHE)

    def _documents(self, last: Index, digests: Mapping[str, str]) -> tuple[Sequence[Document], tuple[str, ...]]:
        """The documents to serve, links resolved, and a sentence for each file that keeps its earlier version."""
        options = {name: self._data[name] for name in ("include", "dialect") if self._data.get(name)}
        vault = reader.read_vault(self.corpus, memory=self._read, **options)
        documents = {document.docno: document for document in vault.documents}
        current = {(document.path, document.digest) for document in vault.documents}
        self._read = {key: read for key, read in self._read.items() if key in current}
        kept_files = []
        for warning in vault.warnings:
            docno = reader.docno_of(warning.path)
            document = documents.get(docno)
            if warning.name not in UNUSABLE or docno not in digests or (document and document.digest == digests[docno]):
                continue
            documents[docno] = _before(last, docno, digests[docno])
            kept_files.append(f"{warning}")
        if not kept_files:
            return vault.documents, ()
        dialect: Dialect = self._data.get("dialect") or "auto"
        resolved, _ = resolve_links([documents[docno] for docno in sorted(documents)], dialect)
        return resolved, tuple(kept_files)

    def _build(
        self,
        previous: Generation,
        documents: Sequence[Document],
        kept_files: tuple[str, ...],
        ready: Callable[[Index], None],
    ) -> Generation:
        """Build the index of the documents and replay the golden queries in it."""
        modified = {document.docno: document.modified for document in documents}
        built = Generation(
            number=previous.number + 1,
            made=_now(),
            collection=collection_digest(documents),
            artefacts={},
            digests={document.docno: document.digest for document in documents},
            modified=modified,
            golden=(),
            kept=kept_files,
        )
        index = self._index(built, ArtefactStore(self.folder / bundle.INDEX), documents)
        needs = bundle.needs(self._pipeline)
        index.prepare(needs)
        ready(index)
        measured = generation.at_export(self.folder, self._record)
        golden = tuple(bundle.replay(self._pipeline, index, progress.steps("replaying queries", measured.golden)))
        table = self._measured_chunks()
        drift = Drift(_share_changed(table, index.chunks), *_agreement(measured.golden, golden, table, index.chunks))
        fingerprints = index.fingerprints(needs)
        index.close()
        return replace(built, artefacts=fingerprints, golden=golden, drift=drift)

    def _index(self, serves: Generation, store: ArtefactStore, documents: Sequence[Document] = ()) -> Index:
        return Index(
            self._settings.index,
            serves.collection,
            lambda: documents,
            store,
            self._models,
            times=lambda: serves.modified,
            builders={"lexical": partial(build_words, self.folder / CACHE / "words")},
        )

    def _measured_chunks(self) -> ChunkTable:
        folder = self.folder / bundle.INDEX / "chunks" / str(self._record["artefacts"]["chunks"])
        with bundle.reading(self.folder):
            table = ChunkTable(folder)
            table.check()
        return table

    def _keep_vectors(self, last: Index) -> None:
        """Put the vectors of the index into the cache if there is none yet: a bundle is exported without one."""
        kinds = (need.partition(":") for need in self._pipeline.needs)
        sources = [source for kind, _, source in kinds if kind == "dense"]
        if not sources or (self.folder / CACHE / "embeddings.sqlite").exists():
            return

        cache = store.Store(self.folder / CACHE / "embeddings.sqlite", "embeddings")
        for source in sorted(sources):
            encoder, dense = (last.part(f"{kind}:{source}".rstrip(":")) for kind in ("encoder", "dense"))
            passages = last.spec.vectors(source).passage.passages(last.chunks)
            digest = encoder.passage_digest + getattr(encoder, "numerics", "")
            pairs = zip(passages, dense.vectors, strict=True)
            cache.write({store.embedding_key(digest, text): vector.astype("<f4").tobytes() for text, vector in pairs})
        cache.close()

    def _report_numerics(self, index: Index) -> None:
        """Report models that round differently here than where the bundle was exported."""
        for need, entry in zip(self._pipeline.encoders, self._record["models"], strict=False):
            local = getattr(index.part(need), "numerics", "")
            if (recorded := entry["numerics"]) != local:
                _LOG.info(
                    f"{entry['name']} rounds differently here ({local}) than at the export ({recorded}): "
                    "the vectors of changed documents differ a little from those of others"
                )

    def _prune(self, *served: Generation) -> None:
        """Delete artefacts that neither these generations nor the measurement name."""
        names = [self._record["artefacts"], *(kept.artefacts for kept in served)]
        stays = {fingerprint for digest in names for fingerprint in digest.values()}
        for artefact in (self.folder / bundle.INDEX).glob("*/*"):
            if artefact.name not in stays:  # also what a killed refresh left
                shutil.rmtree(artefact, ignore_errors=True)


def _now() -> str:
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")


def differences(
    old: Mapping[str, str], new: Mapping[str, str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the docnos that are added, changed and deleted, by the digests of their files."""
    changed = (docno for docno in new.keys() & old.keys() if new[docno] != old[docno])
    return tuple(sorted(new.keys() - old.keys())), tuple(sorted(changed)), tuple(sorted(old.keys() - new.keys()))


def digests_of(table: ChunkTable) -> dict[str, str]:
    """Return the digest of every document's file, by docno."""
    return dict(zip(table.docnos, table.document_column("digest"), strict=True))


def _before(last: Index, docno: str, digest: str) -> Document:
    """A document as the index has it, links not yet resolved."""
    stored = stored_document(last, docno)
    if stored is None:
        raise BundleError(f"{docno} is not in the index: export the bundle again")
    return Document(
        docno=docno,
        path=stored.path,
        title=stored.title,
        text=stored.text,
        frontmatter=stored.frontmatter,
        sections=stored.sections,
        code_blocks=markdown.parse_markdown(stored.text, stored.first_line, markdown.is_mdx(stored.path)).code_blocks,
        links=stored.links,
        tags=stored.metadata.tags,
        modified=float(last.modified[last.chunks.document_number[docno]]),
        size_bytes=stored.metadata.file_size,
        digest=digest,
        first_line=stored.first_line,
    )


def _contents(table: ChunkTable) -> Counter[tuple[str, int]]:
    docnos = table.docnos
    pairs = zip(table.document.tolist(), table.content_hash.tolist(), strict=True)
    return Counter((docnos[document], content) for document, content in pairs)


def _share_changed(measured: ChunkTable, current: ChunkTable) -> float:
    common = (_contents(measured) & _contents(current)).total()
    return 1 - common / max(len(measured), len(current), 1)


def _agreement(
    measured: Sequence[Golden], replayed: Sequence[Golden], old_table: ChunkTable, new_table: ChunkTable
) -> tuple[float, tuple[Change, ...]]:
    """The mean agreement of the golden queries, and the changed ones with the reason for every lost hit."""
    digests, present = digests_of(old_table), digests_of(new_table)
    changes, shares = [], []
    for golden, now_golden in zip(measured, replayed, strict=True):
        had, has = (
            {name.rpartition("#")[0]: name for name in reversed(answer.ids[:_TOP])} for answer in (golden, now_golden)
        )
        share = len(had.keys() & has.keys()) / len(had) if had else float(not has)
        shares.append(share)
        if golden.ids[:_TOP] != now_golden.ids[:_TOP]:
            lost = {had[docno]: _change(docno, digests, present) for docno in had if docno not in has}
            changes.append(Change(golden.query.text, round(share, 4), lost))
    return (round(sum(shares) / len(shares), 6) if shares else 1.0), tuple(changes)


def _change(docno: str, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    if docno not in new:
        return "deleted"
    return "outranked" if old.get(docno) == new[docno] else "changed"


def build_words(kept: Path, name: str, folder: Path, index: Index) -> None:
    """Build the part of an index with this name (`lexical`), with pieces in a folder of its own below `kept`."""
    table, spec = index.chunks, index.spec.words(name.partition(":")[2])
    tick = progress.task_ticks("indexing terms", table.n_retrievable if spec.unit == "chunk" else table.n_documents)
    source = index.artefact("chunks").folder
    build_from_pieces(folder, spec, source, kept / short_digest([name, index.spec]), tick)


def build_from_pieces(folder: Path, spec: LexicalSpec, source: Path, kept: Path, tick: Callable[[int], None]) -> None:
    """The Lucene index of the chunk table in `source`, with a segment for every 256 documents.

    The folder `kept` holds the segments, named by their content: unchanged ones are those of earlier builds.
    """

    def pieces() -> list[Path]:
        table, pieces_read = ChunkTable(source), []
        _ = table.labels  # read once for all parts
        for first in range(0, table.n_documents, _PIECE_DOCUMENTS):
            last = min(first + _PIECE_DOCUMENTS, table.n_documents)
            rows = list(lexical.indexed_rows(table.part(first, last), spec))
            number = first if spec.unit == "document" else table.chunks_of(first)[0]
            piece = kept / text_digest(json.dumps([lexical.VERSION, spec.fields, spec.analyzer, number, rows]), 32)
            if not piece.is_dir():
                kept.mkdir(parents=True, exist_ok=True)
                draft = files.draft_of(piece)
                lexical.build_lexical(draft, spec, rows, number=number)
                files.publish_folder(draft, piece)
            pieces_read.append(piece)
            tick(len(rows))
        return pieces_read

    places = pieces()
    try:
        lexical.merge_lexical(folder, spec, places)
    except IndexError_:  # a piece is damaged
        shutil.rmtree(kept)
        lexical.merge_lexical(folder, spec, pieces())
    for unused in set(kept.iterdir()) - set(places):
        shutil.rmtree(unused, ignore_errors=True)


def changes(folder: Path, beside: Path, stop: Event | None = None) -> Iterator[None]:
    """Yield when it begins to watch, for every burst of changes below `folder`, and when the file `beside` is replaced.

    Changes that come while an item is handled give the next item. Ends when `stop` is set or with Ctrl-C.
    """
    from watchfiles import watch

    last_version, begun = None, False
    for burst in watch(
        folder,
        watch_filter=None,
        debounce=_MOST_MS,
        step=QUIET_MS,
        stop_event=stop,
        rust_timeout=_LOOK_MS,
        yield_on_timeout=True,
        raise_interrupt=True,
    ):
        version = generation.file_version(beside)
        if burst or not begun or (version is not None and version != last_version):
            last_version, begun = version or last_version, True
            yield
