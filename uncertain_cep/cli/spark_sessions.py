"""Spark for a command: started for it, and ended with it, whatever ends the command.

Java runs in a session of its own, so that a signal for the group of the command, as Ctrl-C sends one, reaches
the command alone. The command then has Java end in order. It does not wait for that longer than a bound, and
shows nothing that Java says of being ended.
"""

from __future__ import annotations

import logging
import os
import socketserver
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any

import click

from uncertain_cep.cli.interrupts import ending_with
from uncertain_cep.cli.progress import compiling_aside, working
from uncertain_cep.config.limits import END_SECONDS
from uncertain_cep.spark.session import kill_java, start_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["session_with_kernels", "spark_session"]


@contextmanager
def session_with_kernels(master: str) -> Iterator[SparkSession]:
    """Yield a session; on this machine kernels are compiled while it starts."""
    if not master.startswith("local"):
        with spark_session(master) as spark:
            yield spark
        return
    with compiling_aside() as kernels_are_there, spark_session(master) as spark:
        kernels_are_there()
        yield spark


@contextmanager
def spark_session(master: str) -> Iterator[SparkSession]:
    """Yield a session, saying that one is being started; a signal ends it.

    Raises
    ------
    RuntimeEnvironmentError
        If it cannot be started, or its Java process is gone.
    """
    from uncertain_cep.spark.jobs import without_java

    for name in (None, "py4j.java_gateway", "py4j.clientserver"):
        logging.getLogger(name).addFilter(_is_none_of_py4j)
    java = _Java()
    with java.ending(), without_java():
        with working("starting Spark"), java.starting():
            spark = start_session(master, java=java)
        # Spark has taken Ctrl-C, to stop jobs by a connection that may be in use.
        with java.ending():
            yield spark


class _Java:
    """The Java process of a command's Spark: what it says, and its end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_heard = True
        self._asked: SimpleQueue[None] = SimpleQueue()
        self._said, self._says = os.pipe()
        self.options: Mapping[str, Any] = {"stderr": self._says}
        """How the process is to be started."""
        Thread(target=self._repeat, daemon=True).start()

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Leave what it says to be said by itself, once it is started."""
        try:
            yield
        finally:
            os.close(self._says)

    def launched(self, process: subprocess.Popen[bytes]) -> None:
        """Learn which process it is."""
        self._process = process
        # A server of pyspark's in this process shows a traceback if Java is gone.
        ignore: Callable[..., None] = lambda *_: None  # noqa: E731
        socketserver.BaseServer.handle_error = ignore  # type: ignore[method-assign]
        Thread(target=self._watch, daemon=True).start()

    @contextmanager
    def ending(self) -> Iterator[None]:
        """Have a signal end the process while the context lasts, and wait for its end then."""
        try:
            with ending_with(self._end):
                yield
        finally:
            if not self._is_heard and self._process is not None:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(2 * END_SECONDS)

    def _end(self) -> None:
        """Have it end, and hear no more of it; a handler of signals calls this."""
        self._is_heard = False
        if self._process is not None and self._process.stdin is not None:
            with suppress(OSError, ValueError):
                # Java ends in order when its input does.
                self._process.stdin.close()
        self._asked.put(None)

    def _watch(self) -> None:
        """Kill it if it does not end in time once it is asked to."""
        process = self._process
        if process is None:
            return
        self._asked.get()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            kill_java(process)

    def _repeat(self) -> None:
        """Show what it says, until it ends."""
        # Without a buffer of Python's, whose lock this thread would hold when the process ends.
        while said := os.read(self._said, 2**16):
            if self._is_heard:
                with suppress(OSError, ValueError):
                    click.echo(said.decode(errors="replace"), err=True, nl=False)
        os.close(self._said)


def _is_none_of_py4j(record: logging.LogRecord) -> bool:
    """Keep the tracebacks off stderr that py4j logs, also as root, of errors that it raises besides."""
    return record.module not in ("java_gateway", "clientserver")
