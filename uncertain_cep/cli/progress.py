"""Messages of a command on stderr while it works."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from uncertain_cep.errors import RuntimeEnvironmentError

__all__ = ["announced_kernels", "check_stdout", "compiling_aside", "note", "of_ticks", "show", "working"]


def note(message: str) -> None:
    """Print a line on stderr."""
    click.echo(message, err=True)


def show(text: str) -> None:
    """Print what was asked for on stdout."""
    check_stdout()
    click.echo(text)


def check_stdout() -> None:
    """Refuse to print results where stdout is closed."""
    if sys.stdout is None:
        raise RuntimeEnvironmentError("stdout is closed: redirect it, or name a place for the result with -o")


def of_ticks(tick: str | None, floored: int) -> str:
    """Return the end of a message on some events: their tick, and how many were rounded down to it."""
    if tick is None:
        return ""
    rounded = f" ({floored:,} with an offset or length rounded down to ticks)" if floored else ""
    return f" with ticks of {tick}{rounded}"


@contextmanager
def working(message: str, *, beside_rows: bool = False) -> Iterator[Callable[[str], None]]:
    """Show that something is going on: a moving line on a terminal, else one plain line.

    Yields what takes a new message for the moving line, such as a count. There is none ``beside_rows`` that
    are printed meanwhile, if these go to a terminal, too.
    """
    if not sys.stderr.isatty() or (beside_rows and sys.stdout.isatty()):
        note(f"{message} ...")
        yield lambda _: None
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(message)) as status:
        yield lambda update: status.update(Text(update))


def announced_kernels() -> None:
    """Have it said if kernels are compiled from now on."""
    from uncertain_cep.running.compiling import announce_compilation

    announce_compilation(note)


@contextmanager
def compiling_aside() -> Iterator[Callable[[], None]]:
    """Compile the kernels in a process of its own while this one prepares the work.

    Workers of Spark that find no compiled kernels would each compile them. Yields what waits until they are
    there; should that process fail, they are compiled where they are needed.
    """
    command = [sys.executable, "-c", "import uncertain_cep; uncertain_cep.warm_up()"]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:

        def wait() -> None:
            if process.poll() is None:
                with working("compiling kernels (first use on this machine, up to half a minute)"):
                    process.wait()

        try:
            yield wait
        finally:
            process.terminate()
