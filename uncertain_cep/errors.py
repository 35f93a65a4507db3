"""The errors a user can meet, one tree under :class:`UncertainCepError`, and the one category of warnings."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType, TracebackType
from typing import Any, Final

__all__ = [
    "ConfidenceCostError",
    "Fault",
    "InternalError",
    "MatchExistsError",
    "MatchLimitError",
    "MemoryLimitError",
    "OptionError",
    "QueryError",
    "QuerySyntaxError",
    "RuntimeEnvironmentError",
    "TimeLimitError",
    "TraceError",
    "TraceFault",
    "UncertainCepError",
    "UncertainCepWarning",
    "absent_columns",
    "ignoring",
    "warn",
]


class UncertainCepError(Exception):
    """Base of every error this library raises on purpose."""


class UncertainCepWarning(UserWarning):
    """The answer is right, but something about the input or the query may not be what was meant."""


_OURS: Final = ("uncertain_cep.", "confidence.", "contextlib")
"""What the names of modules begin with that stand between the caller and what warns."""


def warn(message: str) -> None:
    """Warn the caller of the library; the command line prints one line on stderr.

    Parameters
    ----------
    message : str
        One line that says what was seen, where, and what to do.

    Notes
    -----
    The warning names the first line of code outside the library, so that Python's filters show it once
    for each place that calls and each message.
    """
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith(_OURS):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, UncertainCepWarning, stacklevel=level)


class ignoring(suppress):  # noqa: N801
    """Suppress errors of some kinds, but no MemoryError: one of Arrow is an ``ArrowException``, too."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, frames: TracebackType | None
    ) -> bool:
        """Let what is no error of these kinds, or is one of memory, go on."""
        return not isinstance(error, MemoryError) and super().__exit__(kind, error, frames)


class OptionError(UncertainCepError, ValueError):
    """An option or argument has a value that cannot be used; the message says which are allowed."""


class RuntimeEnvironmentError(UncertainCepError, RuntimeError):
    """Something outside the input is missing, such as a Java runtime or an optional package."""


class InternalError(UncertainCepError):
    """A mistake of this library; ``__cause__`` is the error that it did not expect."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault of a query.

    Attributes
    ----------
    message : str
        What is wrong and what to do.
    line, column : int
        Where, 1-based.
    text_columns : tuple of str
        The columns of text that the query takes for numbers.
    """

    message: str
    line: int
    column: int
    text_columns: tuple[str, ...] = ()


def _excerpt(text: str, line: int, column: int) -> str:
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return ""
    shown = "".join(char if char.isprintable() else "?" for char in lines[line - 1].expandtabs(1))
    if not shown.strip():
        return ""
    start = max(0, column - 61)
    clipped = shown[start : start + 120]
    return f"  {clipped}\n  {' ' * (column - 1 - start)}^"


class QuerySyntaxError(UncertainCepError):
    """The text of a query does not follow the grammar.

    Attributes
    ----------
    line, column : int
        Where reading stopped, 1-based.
    expected : tuple of str
        What could have stood there, in words a user knows.
    """

    def __init__(
        self, message: str, *, text: str, line: int, column: int, expected: Sequence[str] = ()
    ) -> None:
        self.line = line
        self.column = column
        self.expected = tuple(expected)
        expected_text = f"\n  expected: {', '.join(self.expected)}" if self.expected else ""
        excerpt = _excerpt(text, line, column)
        where = f"line {line}, column {column}"
        super().__init__(f"{where}: {message}" + (f"\n{excerpt}" if excerpt else "") + expected_text)


class QueryError(UncertainCepError):
    """A query reads well but cannot be answered; every fault is reported at once.

    Attributes
    ----------
    faults : tuple of Fault
        In the order in which they stand in the text.
    text : str
        The query; empty if it was not written as text.
    """

    def __init__(self, faults: Sequence[Fault], *, text: str = "") -> None:
        self.text = text
        self.faults = tuple(sorted(dict.fromkeys(faults), key=lambda fault: (fault.line, fault.column)))
        parts = []
        for fault in self.faults:
            excerpt = _excerpt(text, fault.line, fault.column)
            head = f"line {fault.line}, column {fault.column}: {fault.message}"
            parts.append(f"{head}\n{excerpt}" if excerpt else head)
        super().__init__("\n".join(parts))


@dataclass(frozen=True, slots=True)
class TraceFault:
    """One fault of a trace.

    Attributes
    ----------
    message : str
        What is wrong and what to do.
    file : str or None
        The file, or None for a frame in memory.
    row : int or None
        1-based number of the data row (a header line is not counted), if one row is at fault.
    column : str or None
        The column, if one is at fault.
    value : str or None
        The offending value as text.
    count : int
        How many faults of one kind it stands for, where only the first are told one by one.
    """

    message: str
    file: str | None = None
    row: int | None = None
    column: str | None = None
    value: str | None = None
    count: int = 1

    def __str__(self) -> str:
        # A name on disk may be no UTF-8.
        file = self.file and self.file.encode("utf-8", "replace").decode()
        where = [part for part in (file, None if self.row is None else f"row {self.row}") if part]
        if self.column is not None:
            where.append(f"column {self.column!r}")
        if self.value is not None:
            where.append(f"value {self.value}")
        return f"{', '.join(where)}: {self.message}" if where else self.message


def absent_columns(
    absent: Sequence[str],
    present: Sequence[str],
    *,
    of: str = "trace",
    advice: str = "",
    file: str | None = None,
    named: Mapping[str, str] = MappingProxyType({}),
) -> list[TraceFault]:
    """Return a fault for each column that is not there; the last one tells those that are, and what to do.

    ``named`` says, for a column, what names it.
    """
    has = f"the {of} has {', '.join(present)}" if present else f"the {of} has no columns"
    ending = f"; {has}. {advice}" if advice else f"; {has}"
    last = len(absent) - 1
    return [
        TraceFault(
            "there is no such column"
            + (f", but {named[name]} names it" if name in named else "")
            + (ending if number == last else ""),
            file=file,
            column=name,
        )
        for number, name in enumerate(absent)
    ]


class TraceError(UncertainCepError):
    """A trace cannot be used; the message names file, row, column and value of each fault.

    Attributes
    ----------
    faults : tuple of TraceFault
    """

    def __init__(self, faults: TraceFault | Sequence[TraceFault] | str) -> None:
        if isinstance(faults, str):
            faults = TraceFault(faults)
        # Several tables of a schema may read one column, and find the same in it.
        self.faults = (faults,) if isinstance(faults, TraceFault) else tuple(dict.fromkeys(faults))
        super().__init__("\n".join(str(fault) for fault in self.faults))


class MatchExistsError(UncertainCepError):
    """It was asked why there is no match, and there is one.

    Attributes
    ----------
    match : dict
        The match: columns and values, as of a row of :func:`uncertain_cep.match`.
    """

    def __init__(self, message: str, match: Mapping[str, Any]) -> None:
        self.match = dict(match)
        super().__init__(message)


class MatchLimitError(UncertainCepError):
    """More matches exist than ``max_matches`` allows.

    Attributes
    ----------
    found : int
        How many had been found when the search was stopped.
    """

    def __init__(self, found: int, limit: int) -> None:
        self.found = found
        super().__init__(
            f"stopped after {found:,} matches: more than max_matches={limit:,}. "
            "Ask for fewer (HAVING CONFIDENCE >= x, LIMIT k, a shorter WITHIN, an equated attribute), "
            "raise max_matches, or read them in bounded batches with iter_matches."
        )


class TimeLimitError(UncertainCepError):
    """An evaluation took longer than ``timeout`` allows.

    Attributes
    ----------
    seconds : float
        The limit.
    found : int or None
        How many matches had been found by then, if that is known.
    """

    def __init__(self, seconds: float, found: int | None = None) -> None:
        self.seconds = seconds
        self.found = found
        so_far = "" if found is None else f", with {found:,} matches found so far"
        super().__init__(
            f"stopped after {seconds:g} s{so_far}: that is the time limit. Allow more time, or ask for less "
            "(an equated attribute, a shorter WITHIN, LIMIT k, HAVING CONFIDENCE >= x); explain shows where "
            "the work is."
        )


class MemoryLimitError(UncertainCepError, MemoryError):
    """An evaluation would hold more memory than ``memory_limit`` allows, or than the system gives.

    Attributes
    ----------
    limit : int or None
        Bytes that the process may hold; None where the system gave no more.
    held : int
        Bytes that it held; 0 where that is not known.
    needed : int
        Bytes that were about to be held besides; 0 where that is not known.
    found : int or None
        How many matches had been found by then, if that is known.
    """

    def __init__(
        self, limit: int | None, held: int, needed: int = 0, found: int | None = None, *, reason: str = ""
    ) -> None:
        self.limit = limit
        self.held = held
        self.needed = needed
        self.found = found
        more = f", and {needed / 1e6:,.0f} MB more are needed" if needed else ""
        so_far = "" if found is None else f", with {found:,} matches found so far"
        less = "an equated attribute, a shorter WITHIN, LIMIT k, HAVING CONFIDENCE >= x"
        if limit is None:
            holds = f", and the process holds {held / 1e6:,.0f} MB" if held else ""
            super().__init__(
                f"there is not enough memory ({reason}){holds}. Ask for less ({less}), use fewer threads, or "
                "read batches with iter_matches; memory_limit= ends a call before memory runs out"
            )
        else:
            super().__init__(
                f"stopped at the memory limit{so_far}: the process holds {held / 1e6:,.0f} MB{more}, and "
                f"{limit / 1e6:,.0f} MB are allowed. Allow more, or ask for less ({less}); iter_matches "
                "holds one batch at a time"
            )


class ConfidenceCostError(UncertainCepError):
    """The exact confidence of a match is too dear: it would take more steps than are spent on one.

    Attributes
    ----------
    steps : int
        Steps that it would take.
    limit : int
        Most that are spent on one match.
    """

    def __init__(self, message: str, steps: int, limit: int) -> None:
        self.steps = steps
        self.limit = limit
        super().__init__(message)
