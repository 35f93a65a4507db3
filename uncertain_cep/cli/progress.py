"""What a command says on stderr while it works."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import click

__all__ = ["compiled_kernels", "note", "working"]

COMPILING_AFTER: Final = 2.5
"""Seconds after which loading the kernels from the cache on disk would long be over."""


def note(message: str) -> None:
    """Print a line on stderr."""
    click.echo(message, err=True)


@contextmanager
def working(message: str) -> Iterator[Callable[[str], None]]:
    """Show that something is going on: a moving line on a terminal, else one plain line.

    Yields
    ------
    callable
        Takes a new message for the moving line, such as a count.
    """
    if not sys.stderr.isatty():
        note(f"{message} ...")
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(message)) as status:
        yield lambda update: status.update(Text(update))


def compiled_kernels() -> None:
    """Load the compiled kernels; if that takes long, say that they are being compiled, and why."""
    from uncertain_cep import warm_up

    message = "compiling kernels (first use on this machine, about 20 s) ..."
    timer = threading.Timer(COMPILING_AFTER, note, [message])
    timer.daemon = True
    timer.start()
    try:
        warm_up()
    finally:
        timer.cancel()
