"""Worker processes as Ray actors, on a cluster that runs already or on one started for the experiment.

This module prevents what `ray.init` does by default: it reports usage, writes an access token into the home folder,
waits two minutes for a missing cluster and then ends the process, and takes over signals that a running Java machine
needs.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import os
import secrets
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Self

from ragbench.errors import ConfigError
from ragbench.experiment.worker import Worker

if TYPE_CHECKING:
    from ragbench.configuration import Settings
    from ragbench.engine.executor import Outcome
    from ragbench.experiment.worker import Failure, Job

_TOKEN_SOURCES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_STORE_BYTES = 256 << 20
_PATIENCE_SECONDS = 5.0
_JAVA_SIGNALS = (signal.SIGSEGV, signal.SIGFPE, signal.SIGILL)


def check() -> None:
    """Raise ConfigError when Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("execution=ray needs Ray, which is not installed: run pip install 'ragbench[ray]'")


class RayWorkers:
    """Actors for a job, as a context. A cluster that was started for them is stopped at the end; others keep running.

    `address` is that of a running cluster; None takes RAY_ADDRESS, and without that starts one on this machine.
    """

    def __init__(self, job: Job, count: int, address: str | None = None) -> None:
        self.count = count
        self._job = job
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        self._actors: list[Any] = []
        self._leaving = contextlib.ExitStack()

    def __enter__(self) -> Self:
        check()
        with contextlib.ExitStack() as stack:
            # Ray reports the death of an actor on standard output, which belongs to the command's answer.
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
            ray = _connected(self._address, self.count, stack)
            # Actors that no processor is left for would be waited for without end.
            self.count = max(1, min(self.count, int(ray.cluster_resources().get("CPU", 1))))
            self._shared = ray.put(self._job)
            self._actors = [self._actor() for _ in range(self.count)]
            self._leaving = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        import ray

        for actor in self._actors:
            ray.kill(actor)
        self._leaving.close()

    def submit(self, number: int, settings: Settings) -> Future[Outcome | Failure]:
        """Let a worker run an arm."""
        future: Future[Outcome | Failure] = self._actors[number].run.remote(settings).future()
        return future

    def restart(self, number: int) -> None:
        """Replace a worker that has died."""
        import ray

        ray.kill(self._actors[number])
        self._actors[number] = self._actor()

    def _actor(self) -> Any:
        import ray

        return ray.remote(num_cpus=1, max_restarts=0)(Worker).remote(self._shared)


@contextlib.contextmanager
def tasks(
    function: Callable[..., None], jobs: Sequence[tuple[Any, ...]], address: str | None = None
) -> Iterator[Callable[[], int]]:
    """Call a function beside this process, once for each tuple of arguments.

    Yields a function that waits for all calls and returns how many failed. Calls that still run when the context ends
    are killed.
    """
    check()
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.redirect_stdout(sys.stderr))
        ray = _connected(address or os.environ.get("RAY_ADDRESS") or None, len(jobs), stack)
        # Actors, which can be killed: cancelling a task that ends at that moment aborts the whole process (a race in
        # Ray's core, pull request 54798 of ray-project/ray tells of another of its kind).
        actors = [ray.remote(num_cpus=1, max_restarts=0)(_Beside).remote() for _ in jobs]
        calls = {actor.call.remote(function, *job): actor for actor, job in zip(actors, jobs, strict=True)}

        def failures() -> int:
            failed = 0
            while calls:
                (ended,), _ = ray.wait(list(calls), num_returns=1)
                try:
                    ray.get(ended)
                except ray.exceptions.RayError as error:
                    print(str(error).splitlines()[0], file=sys.stderr)
                    failed += 1
                ray.kill(calls.pop(ended))  # another may wait for its processor
            return failed

        try:
            yield failures
        finally:
            for actor in calls.values():
                ray.kill(actor)


class _Beside:
    """A process of the cluster that calls functions."""

    def call(self, function: Callable[..., None], *arguments: Any) -> None:
        function(*arguments)


def _connected(address: str | None, count: int, stack: contextlib.ExitStack) -> Any:
    """The module `ray`, connected; `stack` undoes that."""
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None:
        _own_token(os.environ)
    elif address not in ("auto", "local"):
        _reachable(address)
    import ray

    if ray.is_initialized():  # by a notebook: it is hers to stop
        return ray
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "address": address or "local"}
    if address is None:
        options |= {"num_cpus": count, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
    before = signal.getsignal(signal.SIGTERM)
    try:
        with _handlers_kept():
            ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigError(_refusal(address, error)) from None
    except SystemExit:
        raise ConfigError(_refusal(address, TimeoutError("it does not answer"))) from None
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)  # Ray puts a handler of its own there
    stack.callback(_disconnect)
    return ray


def _disconnect() -> None:
    import ray

    with _handlers_kept():
        ray.shutdown()


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
    """Give back the handlers of signals by which Java checks for null; Ray takes them first and resets them last.

    They belong to C, where `signal.getsignal` does not see them: what sigaction fills in is given back unread.
    """
    if sys.platform == "win32":
        yield
        return
    library = ctypes.CDLL(None)
    kept = {number: ctypes.create_string_buffer(512) for number in _JAVA_SIGNALS}
    for number, handler in kept.items():
        library.sigaction(int(number), None, handler)
    try:
        yield
    finally:
        for number, handler in kept.items():
            library.sigaction(int(number), handler, None)


def _own_token(environ: dict[str, str] | os._Environ[str]) -> None:
    """An access token for a cluster of our own, kept in the environment, where Ray would write one into the home."""
    # Ray reads the mode when it is imported.
    if "ray" not in sys.modules and not any(name in environ for name in _TOKEN_SOURCES):
        environ["RAY_AUTH_MODE"], environ["RAY_AUTH_TOKEN"] = "token", secrets.token_hex(32)


def _reachable(address: str) -> None:
    """Check at once whether the address answers; Ray would try for two minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise ConfigError(f"execution.address must be host:port, ray://host:port or auto, got {address}")
    try:
        socket.create_connection((host, int(port)), timeout=_PATIENCE_SECONDS).close()
    except OSError as error:
        stale = "unset RAY_ADDRESS" if os.environ.get("RAY_ADDRESS") == address else "leave execution.address out"
        raise ConfigError(
            f"there is no Ray cluster at {address} ({error}): start one there, or {stale} to have one started here"
        ) from None


def _refusal(address: str | None, error: BaseException) -> str:
    first = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    if address is None:
        return f"a Ray cluster could not be started on this machine ({first}): use execution=joblib"
    return (
        f"the Ray cluster at {address} cannot be joined ({first}): if it wants an access token, set RAY_AUTH_MODE=token"
        " and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH to that of the cluster, and see that both run the same Ray"
    )
