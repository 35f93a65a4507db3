"""How the rows of raw files become events, as a schema declares it: values only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from uncertain_cep.errors import TraceError, TraceFault
from uncertain_cep.traces.bounds import columns
from uncertain_cep.traces.by_value import by_value
from uncertain_cep.traces.offsets import clock_offset
from uncertain_cep.traces.uncertainty import (
    Uncertainty,
    exact,
    granularity,
    histogram,
    plus_minus,
    window,
)

__all__ = ["KINDS", "OTHERWISE", "EventsSchema", "Kind", "UncertaintySpec"]

OTHERWISE: Final = "*"
"""In a table of uncertainties by value: what holds for all other values."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of uncertainty: its rule's maker and the arguments it takes, in order."""

    make: Callable[..., Uncertainty]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    durations: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """All arguments, in the order in which a flag lists them."""
        return self.required + self.optional


KINDS: Final[dict[str, Kind]] = {
    "exact": Kind(exact),
    "plus_minus": Kind(plus_minus, ("by",), durations=("by",)),
    "granularity": Kind(granularity, ("of",), durations=("of",)),
    "window": Kind(window, ("length",), durations=("length",)),
    "clock_offset": Kind(clock_offset, ("table",), ("key", "host", "lower", "upper", "unit")),
    "columns": Kind(columns, ("lower", "upper")),
    "histogram": Kind(histogram, ("pmf",), ("lower",)),
}


@dataclass(frozen=True, slots=True)
class UncertaintySpec:
    """An uncertainty as declared.

    Attributes
    ----------
    kind : str
        A key of `KINDS`, or ``by_value``.
    arguments : tuple of (str, str or int)
    column : str or None
        For ``by_value``: the column.
    values : tuple of (str, UncertaintySpec)
        For ``by_value``: what holds for each value; `OTHERWISE` stands for all others.
    """

    kind: str
    arguments: tuple[tuple[str, str | int], ...] = ()
    column: str | None = None
    values: tuple[tuple[str, UncertaintySpec], ...] = ()

    @property
    def tables(self) -> tuple[str, ...]:
        """The files of clock offsets that the rule reads, as they are named."""
        own = tuple(str(value) for name, value in self.arguments if name == "table")
        return own + tuple(table for _, spec in self.values for table in spec.tables)

    def rule(self, folders: Sequence[Path] = ()) -> Uncertainty:
        """Return the rule; a table of clock offsets is looked for in each folder in turn.

        Raises
        ------
        TraceError
            If the table of clock offsets is not found or cannot be used.
        """
        if self.column is not None:
            rules = {value: spec.rule(folders) for value, spec in self.values}
            otherwise = rules.pop(OTHERWISE, None)
            return by_value(self.column, rules, otherwise)
        arguments: dict[str, Any] = dict(self.arguments)
        if self.kind == "clock_offset":
            arguments["table"] = _found(Path(str(arguments["table"])), folders)
        return KINDS[self.kind].make(**arguments)


def _found(table: Path, folders: Sequence[Path]) -> Path:
    places = list(dict.fromkeys(folder / table for folder in folders)) or [table]
    for place in places:
        if place.is_file():
            return place
    looked = ", ".join(str(place) for place in places)
    raise TraceError(
        TraceFault(f"the table of clock offsets is not there; looked for {looked}", file=str(table))
    )


@dataclass(frozen=True, slots=True)
class EventsSchema:
    """How one raw row becomes one event.

    Attributes
    ----------
    uncertainty : UncertaintySpec
    type : str or None
        The type of all these events; or
    type_column : str or None
        the column that holds it.
    id : str or None
        A column, or a template of columns such as ``"{attempt}:finish"``. Default: the column ``id`` if the
        file has one, else a running number.
    time : str or None
        Column of the stamps.
    unit : str or None
        Unit of numeric stamps.
    files : str or None
        Glob of the files these events come from. Default: all.
    where : str or None
        Condition on the columns of a raw row, in the query language.
    attributes : tuple of (str, str) or None
        New names and columns. Default: all columns that became nothing else.
    missing : {"error", "drop"}
        What to do with a row without a time or offset.
    """

    uncertainty: UncertaintySpec
    type: str | None = None
    type_column: str | None = None
    id: str | None = None
    time: str | None = None
    unit: str | None = None
    files: str | None = None
    where: str | None = None
    attributes: tuple[tuple[str, str], ...] | None = None
    missing: Literal["error", "drop"] = "error"
