"""What a command says on stderr while it works."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

__all__ = ["compiled_kernels", "note", "working"]


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
    """Load the compiled kernels, and say so if they have to be compiled first."""
    from uncertain_cep import warm_up
    from uncertain_cep.compiling import announce_compilation

    announce_compilation(note)
    warm_up()
