"""Run a function in a fresh process with its own environment, memory limit and time limit."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Final, ParamSpec, TypeVar

__all__ = ["ONE_THREAD", "IsolatedError", "end_on_request", "run_isolated"]

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_GRACE_SECONDS: Final = 10.0

ONE_THREAD: Final = {"POLARS_MAX_THREADS": "1", "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""Environment that keeps every contender to one thread; read by them when they are imported."""


class IsolatedError(RuntimeError):
    """The function failed, ran out of its memory or took too long."""


def run_isolated(
    function: Callable[..., Result],
    *arguments: object,
    environment: Mapping[str, str] | None = None,
    memory_gigabytes: float | None = None,
    seconds: float | None = None,
) -> Result:
    """Run a function in a new process and return its result.

    Parameters
    ----------
    function : callable
        Importable; arguments and result travel by pickle.
    *arguments : object
    environment : mapping, optional
        Variables set before the new process starts.
    memory_gigabytes : float, optional
        Limit on the address space, where the system has one.
    seconds : float, optional
        The process is ended after this long.

    Raises
    ------
    IsolatedError
        If the function raised, died or did not end in time.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, memory_gigabytes, function, arguments))
    with _environment(environment or {}):
        process.start()
    sender.close()
    answered = False
    try:
        if not receiver.poll(seconds):
            raise IsolatedError(f"not done after {seconds:.0f} s")
        good, outcome = receiver.recv()
        answered = True
    except EOFError:
        process.join()
        raise IsolatedError(f"the process died with exit code {process.exitcode}") from None
    finally:
        _end(process, patience=_GRACE_SECONDS if answered else 0)
        receiver.close()
    if not good:
        raise IsolatedError(outcome)
    result: Result = outcome
    return result


def _end(process: BaseProcess, patience: float) -> None:
    """Wait for a process that is done, and end one that is not with all that it started."""
    process.join(patience)
    if process.is_alive():
        process.terminate()
        process.join(_GRACE_SECONDS)
    if process.is_alive():
        process.kill()
    process.join()


def end_on_request() -> None:
    """Make a request to end this process run its clean-up, which ends the processes it started."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))


def _child(
    sender: Connection,
    memory_gigabytes: float | None,
    function: Callable[..., object],
    arguments: tuple[object, ...],
) -> None:
    end_on_request()
    if memory_gigabytes is not None:
        with contextlib.suppress(ImportError, ValueError, OSError):
            import resource

            limit = int(memory_gigabytes * 1e9)
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    outcome: tuple[bool, object]
    try:
        outcome = True, function(*arguments)
    except Exception as error:
        outcome = False, f"{type(error).__name__}: {error}"
    # Nobody listens any more if the one who asked was ended.
    with contextlib.suppress(BrokenPipeError):
        sender.send(outcome)
    sender.close()


@contextlib.contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
