"""The group of commands: options of all, exit codes, and what a user sees of an error."""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Final, NoReturn, TextIO

import click

from uncertain_cep.boundary import our_error
from uncertain_cep.cli.casestudy import casestudy
from uncertain_cep.cli.decide import decide
from uncertain_cep.cli.doctor import doctor
from uncertain_cep.cli.event_pairs import join, order
from uncertain_cep.cli.explain import explain
from uncertain_cep.cli.generate import generate
from uncertain_cep.cli.infer_offsets import infer_offsets
from uncertain_cep.cli.init import init
from uncertain_cep.cli.interrupts import Interrupts, lasting_interrupts
from uncertain_cep.cli.match import match
from uncertain_cep.cli.progress import note
from uncertain_cep.cli.report import report
from uncertain_cep.cli.rules import rules
from uncertain_cep.cli.stream import stream
from uncertain_cep.cli.validate import validate
from uncertain_cep.cli.warm_up import warm_up
from uncertain_cep.cli.why_not import why_not
from uncertain_cep.errors import (
    InternalError,
    MatchExistsError,
    MatchLimitError,
    MemoryLimitError,
    RuntimeEnvironmentError,
    TimeLimitError,
    UncertainCepError,
    UncertainCepWarning,
)
from uncertain_cep.running.installation import VERSION

__all__ = ["main"]

FAILED: Final = 1
BAD_INPUT: Final = 2
BY_SIGNAL: Final = 128
"""With the number of the signal added, as shells do."""

PIPE_CLOSED: Final = BY_SIGNAL + 13
"""SIGPIPE, which Python itself ignores."""


class _Commands(click.Group):
    """A group that turns every error into one message on stderr and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        _occupy_closed_streams()
        with lasting_interrupts() as interrupts, _printed_warnings():
            return self._reported(ctx, interrupts)

    def _reported(self, ctx: click.Context, interrupts: Interrupts) -> Any:
        try:
            try:
                return super().invoke(ctx)
            finally:
                if sys.stdout is not None:
                    sys.stdout.flush()
        except (click.ClickException, click.exceptions.Exit):
            raise
        except (click.Abort, KeyboardInterrupt):
            _interrupted(ctx, interrupts)
        except Exception as error:
            if isinstance(error, BrokenPipeError):
                _end_quietly(ctx)
            if interrupts.seen:
                _interrupted(ctx, interrupts)
            if ctx.params["traceback"]:
                raise
            _report(ctx, error)


def _occupy_closed_streams() -> None:
    """Give closed standard streams a file, or what is opened next would get what others write to them."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115


@contextmanager
def _printed_warnings() -> Iterator[None]:
    """Print each of our warnings once, as one line on stderr; those of libraries are shown as ever."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", UncertainCepWarning)
        shown, said = warnings.showwarning, set[str]()

        def show(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if not issubclass(category, UncertainCepWarning):
                shown(message, category, filename, lineno, file, line)
            elif str(message) not in said:
                said.add(str(message))
                note(f"warning: {message}")

        warnings.showwarning = show
        yield


_FAILURES: Final = (
    InternalError,
    MatchExistsError,
    MatchLimitError,
    MemoryLimitError,
    RuntimeEnvironmentError,
    TimeLimitError,
)
"""What ends a command though its input may be sound."""


def _interrupted(ctx: click.Context, interrupts: Interrupts) -> NoReturn:
    number = interrupts.seen or signal.SIGINT
    _say("Aborted!" if number == signal.SIGINT else f"Ended by {signal.Signals(number).name}.")
    ctx.exit(BY_SIGNAL + number)


def _end_quietly(ctx: click.Context) -> NoReturn:
    """End as the reader of a pipe, such as head, has seen enough."""
    for file in (sys.stdout, sys.stderr):
        # What is left in the buffer could not be written at the end, either.
        with suppress(OSError, ValueError, AttributeError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), file.fileno())
    ctx.exit(PIPE_CLOSED)


def _say(message: str) -> None:
    # The terminal may be gone.
    with suppress(OSError):
        click.echo(message, err=True)


def _report(ctx: click.Context, error: Exception) -> NoReturn:
    ours = error if isinstance(error, UncertainCepError) else our_error(error)
    _say(f"error: {ours}")
    if isinstance(ours, InternalError):
        _say("'uncertain-cep --traceback COMMAND ...' shows where it was.")
    ctx.exit(FAILED if isinstance(ours, _FAILURES) or isinstance(error, OSError) else BAD_INPUT)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION)
@click.option("--traceback", is_flag=True, help="Show the traceback of an error.")
def main(traceback: bool) -> None:
    """Find event patterns in traces whose times are only known as intervals.

    Exit codes: 0 done, 1 failed, 2 wrong usage or bad input, 128 + N ended by signal N: 130 interrupted, 141
    nobody reads stdout any more, 143 terminated.
    """


for _command in (
    *(match, stream, report, explain, decide, why_not, init, validate),
    *(order, join, rules, infer_offsets, generate, casestudy, warm_up, doctor),
):
    main.add_command(_command)
