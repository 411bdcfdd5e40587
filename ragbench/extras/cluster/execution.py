"""`execution=dask`: missing vectors are embedded in shards and arms computed in groups, by the workers of a cluster.

Vectors go to the cache of this machine, which builds each artefact and sends it, so results are those of
`execution=local`. What a cluster loses is computed here.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from ragbench.base import progress
from ragbench.base.types import FAILURES, ConfigError, Query, RagbenchError, counted, failure
from ragbench.config.sections import ExecutionSpec
from ragbench.experiment import execution
from ragbench.experiment.evaluate import ArmEvaluator, Evaluated
from ragbench.experiment.execution import failed
from ragbench.experiment.run import Plan, PlannedArm
from ragbench.extras.cluster import worker
from ragbench.index.artefacts import Artefact
from ragbench.models import functions
from ragbench.models.cache import CachedEncoder
from ragbench.models.parallel import threads_for
from ragbench.search.engine.pipeline import Arm, Outcome, in_tree_order, prefix_keys

_LOG = logging.getLogger(__name__)

_SHARD = 64
"""Texts that a worker embeds in one task."""
_GROUPS = 2
"""Groups of arms for each worker: fewer share more stages, more are balanced better."""
_WITHOUT_WORKERS = 20.0
"""Seconds between looks for a cluster without workers, on which tasks wait."""
_LAST_LOOK = 5.0
"""Seconds for the end of such a look, because a scheduler that does not answer must not keep finished results."""


def evaluated(plan: Plan, evaluator: ArmEvaluator) -> Iterator[Evaluated]:
    """Compute and evaluate the arms by the workers of a Dask cluster; live searches and recorded runs are read here.

    Raises ConfigError when no cluster answers, or a worker could give other results; ArmsFailed as `local` does.
    """
    arms = {name: arm for name, arm in plan.arms.items() if not (arm.pipeline.live or arm.pipeline.recorded)}
    errors: dict[str, BaseException] = {}
    done: set[str] = set()
    if arms:
        with _cluster(plan.execution) as (client, own), _watched(client):
            agreed = _agreed(client, list(arms.values()), own)
            _embed(client, agreed, plan)
            pool = DaskWorkers(client, agreed, plan.queries, evaluator if evaluator.portable else None)
            for name, result in _computed(pool, arms):
                done.add(name)
                if isinstance(result, BaseException):
                    errors[name] = result
                else:
                    yield evaluator(arms[name], result) if isinstance(result, Outcome) else result
    if left := {name: arm for name, arm in plan.arms.items() if name not in done}:
        yield from execution.local(replace(plan, arms=left, missing=()), evaluator)
    if errors:
        raise failed(plan, errors) from next(iter(errors.values()))


@contextmanager
def _cluster(spec: ExecutionSpec) -> Iterator[tuple[Any, bool]]:
    """The client of a cluster, and whether it was started here with the folders of this machine."""
    try:
        from distributed import Client, LocalCluster, default_client
    except ImportError:
        raise ConfigError("execution=dask needs the package distributed: pip install 'ragbench[cluster]'") from None
    if spec.address is None:
        try:
            yield default_client(), False  # made in Python by the caller
            return
        except ValueError:
            pass
        # TLS: otherwise other users of this machine could send it code.
        here = LocalCluster(spec.workers, threads_per_worker=1, dashboard_address="127.0.0.1:0", security=True)
        with _closing(here) as cluster, _closing(Client(cluster)) as client:
            bokeh = "" if find_spec("bokeh") else ", which needs the package bokeh"
            _LOG.info(f"dashboard of the cluster: {client.dashboard_link}{bokeh}")
            yield client, True
        return
    where = {"scheduler_file": spec.address} if spec.address.endswith(".json") else {"address": spec.address}
    try:
        client = Client(**where, timeout="10s")
        client.wait_for_workers(1, timeout=30)
    except (OSError, ValueError, MemoryError) as error:  # another server's answer can read as a length of exabytes
        raise ConfigError(
            f"execution.address={spec.address} has no Dask scheduler with a worker ({error}): start them with "
            "`dask scheduler` and `dask worker ADDRESS`"
        ) from None
    with _closing(client):
        _LOG.info(f"dashboard of the cluster: {client.dashboard_link}")
        yield client, False


@contextmanager
def _closing(opened: Any) -> Iterator[Any]:
    """Close a cluster or its client at the end; that it does not close in time ends no run whose results are there."""
    entered = ExitStack()
    try:
        yield entered.enter_context(opened)
    finally:
        try:
            entered.close()
        except FAILURES as error:
            _LOG.warning(f"the cluster did not close ({failure(error)}); the results do not depend on it")


@contextmanager
def _watched(client: Any) -> Iterator[None]:
    """Say so when no worker is left: tasks wait for one, because a queue or a cloud may start it later."""
    ended = threading.Event()

    def watch() -> None:
        said = False
        while not ended.wait(_WITHOUT_WORKERS):
            gone = _is_connected(client) and not _addresses(client)
            if gone and not said:
                _LOG.warning(
                    "the cluster has no worker left, and the run waits for one: start it with `dask worker ADDRESS`, "
                    "or stop here and use execution=local, which goes on from what is finished"
                )
            said = gone

    thread = threading.Thread(target=watch, name="watch workers", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(_LAST_LOOK)


def _addresses(client: Any) -> set[str]:
    """The addresses of the workers; none without a scheduler."""
    try:
        return set(client.scheduler_info(n_workers=-1).get("workers", ()))
    except FAILURES:  # of several kinds, as soon as the scheduler is gone
        return set()


def _agreed(client: Any, arms: Sequence[Arm], own: bool) -> worker.RunTerms:
    """What the workers must have. Raises ConfigError for a worker with something else."""
    needs = [(arm.index.spec, *need.partition(":")[::2]) for arm in arms for need in sorted(arm.pipeline.needs)]
    specs = [spec.vectors(source).encoder for spec, kind, source in needs if kind == "encoder" or kind == "dense"]
    models = arms[0].index.models
    assert models.cache is not None, "a run has caches"
    count = len(client.scheduler_info(n_workers=-1)["workers"])
    agreed = worker.RunTerms(
        (arms[0].index.store.root.absolute(), models.cache.absolute()) if own else None,
        max(1, threads_for(None) // count) if own else None,
        models.shipped,
        tuple(dict.fromkeys(spec for spec in specs if not functions.is_endpoint(spec.name))),
        any(kind == "lexical" for _, kind, _ in needs),
        shared.url if (shared := arms[0].index.store.shared) else None,
    )
    here = worker.facts(agreed)
    try:
        described = client.run(worker.facts, agreed, on_error="ignore")
    except OSError as error:
        raise ConfigError(
            f"the Dask cluster stopped answering ({failure(error)}): run the same command again"
        ) from None
    for address, there in described.items():
        if reason := worker.difference(address, there, here):
            raise ConfigError(reason)
    _LOG.info(f"computing with {counted(count, 'Dask worker')}; latency is measured on this machine")
    return replace(agreed, expected=tuple(here.items()))


def _embed(client: Any, agreed: worker.RunTerms, plan: Plan) -> None:
    """Fill the cache of this machine with the vectors that it lacks; those of failed shards are left to the build."""
    from distributed import as_completed

    shards: dict[Any, tuple[CachedEncoder, tuple[str, ...]]] = {}
    for each in plan.missing:
        for start in range(0, len(each.texts), _SHARD):
            shard = each.texts[start : start + _SHARD]
            shards[client.submit(worker.embed, agreed, each.spec, shard, pure=False)] = each.encoder, shard
    if not shards:
        return
    if not _is_connected(client):
        return
    tick = progress.task_ticks("embedding", sum(len(shard) for _, shard in shards.values()))
    lost = Counter[str]()
    for future in as_completed(list(shards)):
        encoder, shard = shards.pop(future)
        if future.status == "finished":
            encoder.keep(shard, future.result())
            tick(len(shard))
        else:
            lost[_fate(future)] += len(shard)
    for fate, count in lost.items():
        _LOG.warning(f"the cluster lost {counted(count, 'text')} ({fate}): embedded here")


def _is_connected(client: Any) -> bool:
    """Whether futures end that were submitted before: a client without its scheduler cancels them, but no later one."""
    return bool(client.status == "running")


def _fate(future: Any) -> str:
    """Why a future has no result."""
    return failure(future.exception()) if future.status == "error" else str(future.status)


class DaskWorkers:
    """Computes groups of arms over `queries`; more may be submitted while results are taken.

    With an `evaluator` workers evaluate them, too, so that tables travel instead of states.
    """

    def __init__(
        self, client: Any, agreed: worker.RunTerms, queries: Sequence[Query], evaluator: ArmEvaluator | None = None
    ) -> None:
        from distributed import as_completed

        self._client, self._agreed, self._evaluator = client, agreed, evaluator
        self._queries = tuple(queries)  # sent with every task: data scattered to one worker is lost with it
        self._running: dict[Any, tuple[Sequence[Arm], frozenset[str]]] = {}
        self._finished = as_completed()
        self._lost: list[tuple[Sequence[Arm], str]] = []
        self._sent: dict[tuple[str, str], Any] = {}
        self._known: set[tuple[str, str]] = set()

    def __len__(self) -> int:
        return len(_addresses(self._client))

    def submit(self, arms: Sequence[Arm]) -> None:
        """Let a worker compute arms one after another; their indexes are built here first."""
        for arm in arms:
            arm.index.prepare(arm.pipeline.needs)
        self._submit(arms, frozenset())

    def _submit(self, arms: Sequence[Arm], failed: frozenset[str]) -> None:
        """Let a worker compute arms, one that has not `failed` to do so if there is any."""
        artefacts = {(each.kind, each.fingerprint): each for arm in arms for each in _artefacts(arm)}
        works = [_work(arm) for arm in arms]
        others = {"workers": list(_addresses(self._client) - failed), "allow_other_workers": True} if failed else {}
        try:
            self._send(artefacts)
            files = {name: future for name, future in self._sent.items() if name in artefacts}
            future = self._client.submit(
                worker.compute, self._agreed, works, self._queries, files, self._evaluator, pure=False, **others
            )
        except FAILURES as error:  # of several kinds, as soon as the scheduler is gone
            self._lost.append((arms, failure(error)))
            return
        if _is_connected(self._client):
            self._running[future] = arms, failed
            self._finished.add(future)
        else:
            self._lost.append((arms, "no scheduler"))

    def __iter__(self) -> Iterator[tuple[Sequence[Arm], Mapping[str, Any]]]:
        """Each group with results or errors by name, as it is ready; those that the cluster lost have none."""
        while self._lost or self._running:
            if self._lost:
                arms, fate = self._lost.pop()
                _LOG.warning(f"the cluster lost {counted(len(arms), 'arm')} ({fate}): computed here")
                yield arms, {}
                continue
            future = next(self._finished)
            arms, failed = self._running.pop(future)
            reason = future.exception() if future.status == "error" else None
            if future.status == "finished":
                yield arms, future.result()
            elif isinstance(reason, RagbenchError):
                yield arms, {arm.name: reason for arm in arms}
            elif isinstance(reason, worker.WorkerFailed) and self._others(reason.worker, failed):
                _LOG.warning(f"{reason}: other workers compute {counted(len(arms), 'arm')}")
                self._submit(arms, failed | {reason.worker})
            else:
                self._lost.append((arms, str(reason) if isinstance(reason, worker.WorkerFailed) else _fate(future)))

    def _others(self, address: str, failed: frozenset[str]) -> bool:
        """Whether there is another worker than those that failed, if this one did not fail for a second time."""
        return address not in failed and bool(_addresses(self._client) - failed - {address})

    def _send(self, artefacts: Mapping[tuple[str, str], Artefact]) -> None:
        """Copy the artefacts that a worker lacks to every worker, once, unless `artefacts.url` has them."""
        if self._agreed.shared:
            return
        new = [name for name in artefacts if name not in self._known]
        self._known.update(new)
        # A worker that dies meanwhile is ignored: the one that replaces it gets copies from others.
        on_workers = self._client.run(worker.lacks, self._agreed, new, on_error="ignore").values() if new else ()
        lacking = {name for names in on_workers for name in names}
        for name in lacking:
            packed = [worker.packed(artefacts[name])]
            self._sent[name] = self._client.scatter(packed, broadcast=True, hash=False)[0]
        if lacking:
            size = sum(artefacts[name].size_bytes for name in lacking)
            _LOG.info(f"sent {counted(len(lacking), 'artefact')} of {size / 2**20:,.1f} MiB to every worker")


@contextmanager
def workers(spec: ExecutionSpec, arms: Sequence[Arm], queries: Sequence[Query]) -> Iterator[DaskWorkers]:
    """The workers of a cluster for arms such as these. Raises ConfigError as `outcomes`."""
    with _cluster(spec) as (client, own), _watched(client):
        yield DaskWorkers(client, _agreed(client, arms, own), queries)


def _computed(
    pool: DaskWorkers, arms: Mapping[str, PlannedArm]
) -> Iterator[tuple[str, Outcome | Evaluated | BaseException]]:
    """The result or the error of each arm; none for those that the cluster lost."""
    ready: list[PlannedArm] = []
    for arm in arms.values():
        try:
            arm.index.prepare(arm.pipeline.needs)
            ready.append(arm)
        except FAILURES as error:
            yield arm.name, error
    ordered = in_tree_order(ready, {arm.name: prefix_keys(arm) for arm in ready})
    size = -(-len(ordered) // (_GROUPS * max(1, len(pool))))
    for start in range(0, len(ordered), size or 1):
        pool.submit(ordered[start : start + size])
    tick = progress.task_ticks("computing arms", len(ordered))
    for group, results in pool:
        yield from results.items()
        tick(len(group))


def _artefacts(arm: Arm) -> list[Artefact]:
    return arm.index.artefacts(arm.pipeline.needs)


def _work(arm: Arm) -> worker.Work:
    index = arm.index
    return worker.Work(arm.name, arm.pipeline, index.spec, index.collection, index.times())
