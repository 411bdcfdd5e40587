"""Processes as Ray actors, on a running cluster or on one started for the experiment.

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
from pathlib import Path
from typing import Any, Self, TypeVar

from ragbench.base.errors import ConfigError
from ragbench.base.pools import Begin
from ragbench.config.execution_backends import Execution

T = TypeVar("T")
_TOKEN_SOURCES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_STORE_BYTES = 256 << 20
_CONNECT_SECONDS = 5.0
_JAVA_SIGNALS = (signal.SIGSEGV, signal.SIGFPE, signal.SIGILL)


def check() -> None:
    """Raise ConfigError when Ray is not installed."""
    if importlib.util.find_spec("ray") is None:
        raise ConfigError("execution=ray needs Ray, which is not installed: run pip install 'ragbench[ray]'")


class RayPool:
    """Actors, as a context. A cluster that was started for them is stopped at the end; others keep running.

    `address` is that of a running cluster; None takes RAY_ADDRESS, and without that starts one on this machine.
    Relative paths start where the driver runs, and a user's own stages are imported from where it finds them.
    """

    def __init__(self, count: int, begin: Begin = (), address: str | None = None) -> None:
        self.count = count
        self._begin = begin
        self._address = address or os.environ.get("RAY_ADDRESS") or None
        self._actors: list[Any] = []
        self._cleanup = contextlib.ExitStack()

    def __enter__(self) -> Self:
        check()
        with contextlib.ExitStack() as stack:
            # Ray reports the death of an actor on standard output, which belongs to the command's answer.
            stack.enter_context(contextlib.redirect_stdout(sys.stderr))
            ray = _connect(self._address, self.count, stack)
            # Ray would wait without end for actors that have no processor.
            self.count = max(1, min(self.count, int(ray.cluster_resources().get("CPU", 1))))
            self._shared = ray.put(self._begin)
            self._actors = [self._actor() for _ in range(self.count)]
            self._cleanup = stack.pop_all()
        return self

    def __exit__(self, *exception: object) -> None:
        import ray

        # Actors can be killed. Cancelling a task that ends at that moment aborts the whole process: a race in Ray's
        # core, like the one in pull request 54798 of ray-project/ray.
        for actor in self._actors:
            ray.kill(actor)
        self._cleanup.close()

    def submit(self, number: int, function: Callable[..., T], *arguments: Any) -> Future[T]:
        """Let an actor call a function."""
        future: Future[T] = self._actors[number].call.remote(function, *arguments).future()
        return future

    def restart(self, number: int) -> None:
        """Replace an actor that has died."""
        import ray

        ray.kill(self._actors[number])
        self._actors[number] = self._actor()

    def _actor(self) -> Any:
        import ray

        return ray.remote(num_cpus=1, max_restarts=0)(_Process).remote(Path.cwd(), sys.path, self._shared)


class _Process:
    """A process of the cluster that calls functions."""

    def __init__(self, folder: Path, path: Sequence[str], begin: Begin) -> None:
        if folder.is_dir():  # another machine may not have it
            os.chdir(folder)
        sys.path += [entry for entry in path if entry not in sys.path]
        if begin:
            begin[0](*begin[1:])

    def call(self, function: Callable[..., T], *arguments: Any) -> T:
        return function(*arguments)


def _connect(address: str | None, count: int, stack: contextlib.ExitStack) -> Any:
    """Connect to a cluster and return the module `ray`; `stack` disconnects."""
    if address is None:
        _set_own_token(os.environ)
    elif address not in ("auto", "local"):
        _check_reachable(address)
    import ray

    if ray.is_initialized():  # by a notebook, which also ends the connection
        return ray
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR", "address": address or "local"}
    if address is None:
        options |= {"num_cpus": count, "include_dashboard": False, "object_store_memory": _STORE_BYTES}
    previous = signal.getsignal(signal.SIGTERM)
    try:
        # Ray puts the working directory first on sys.path of its processes; `_Process` returns to it.
        with _keep_signal_handlers(), contextlib.chdir(sys.prefix):
            ray.init(**options)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigError(_connection_failure(address, error)) from None
    except SystemExit:
        raise ConfigError(_connection_failure(address, TimeoutError("it does not answer"))) from None
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, previous)  # Ray replaces this handler by its own
    stack.callback(_disconnect)
    return ray


def _disconnect() -> None:
    import ray

    with _keep_signal_handlers():
        ray.shutdown()


@contextlib.contextmanager
def _keep_signal_handlers() -> Iterator[None]:
    """Restore the handlers of the signals by which Java checks for null: Ray replaces them when it starts and ends.

    They are handlers in C that `signal.getsignal` does not see: the bytes that sigaction writes are passed back to it.
    """
    if sys.platform == "win32":
        yield
        return
    library = ctypes.CDLL(None)
    saved = {number: ctypes.create_string_buffer(512) for number in _JAVA_SIGNALS}
    for number, handler in saved.items():
        library.sigaction(int(number), None, handler)
    try:
        yield
    finally:
        for number, handler in saved.items():
            library.sigaction(int(number), handler, None)


def _set_own_token(environ: dict[str, str] | os._Environ[str]) -> None:
    """Set an access token for a cluster of our own in the environment; Ray would write one into the home folder."""
    # Ray reads the mode when it is imported.
    if "ray" not in sys.modules and not any(name in environ for name in _TOKEN_SOURCES):
        environ["RAY_AUTH_MODE"], environ["RAY_AUTH_TOKEN"] = "token", secrets.token_hex(32)


def _check_reachable(address: str) -> None:
    """Check at once whether the address answers; Ray would try for two minutes."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        raise ConfigError(f"execution.address must be host:port, ray://host:port or auto, got {address}")
    try:
        socket.create_connection((host, int(port)), timeout=_CONNECT_SECONDS).close()
    except OSError as error:
        remedy = "unset RAY_ADDRESS" if os.environ.get("RAY_ADDRESS") == address else "omit execution.address"
        raise ConfigError(
            f"no Ray cluster answers at {address} ({error}): start one there, or {remedy} to have one started here"
        ) from None


def _connection_failure(address: str | None, error: BaseException) -> str:
    first = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    if address is None:
        return f"a Ray cluster could not be started on this machine ({first}): use execution=joblib"
    return (
        f"the Ray cluster at {address} cannot be joined ({first}): if it wants an access token, set RAY_AUTH_MODE=token"
        " and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH to that of the cluster, and see that both run the same Ray"
    )


EXECUTION = Execution(lambda count, begin, spec: RayPool(count, begin, spec.address), check)
