"""How the rows of raw files become events, as a schema declares it: values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, TraceError, TraceFault
from uncertain_cep.expressions.codes import places_in
from uncertain_cep.plurals import counted
from uncertain_cep.timeline.domain import Names
from uncertain_cep.traces.added_rules import added, as_rule
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, renumbered
from uncertain_cep.traces.offsets import clock_offset
from uncertain_cep.traces.raw_spans import period, rule_of_ends
from uncertain_cep.traces.time_formats import ISO, TimeFormat
from uncertain_cep.traces.time_sums import columns_in
from uncertain_cep.traces.uncertain_stamps import (
    Clocks,
    Intervals,
    Missing,
    SpanBounds,
    Stamps,
    Uncertainty,
    check_column,
)
from uncertain_cep.traces.uncertainty import (
    as_written,
    columns,
    exact,
    granularity,
    histogram,
    plus_minus,
    window,
)

__all__ = [
    "KINDS",
    "OTHERWISE",
    "READ_EVENTS",
    "Argument",
    "ByValue",
    "EventsSchema",
    "Kind",
    "UncertaintySpec",
    "by_value",
]


@dataclass(frozen=True, slots=True)
class ByValue:
    """A rule for each value, as text, of a column; ``otherwise`` is the rule of all other values, if any."""

    column: str
    rules: tuple[tuple[str, Uncertainty], ...]
    otherwise: Uncertainty | None = None

    def __repr__(self) -> str:
        return f"<rule by the value of {self.column!r}, of {counted(len(self.rules), 'value')}>"

    def _all(self) -> list[Uncertainty]:
        last = [] if self.otherwise is None else [self.otherwise]
        return [rule for _, rule in self.rules] + last

    def stamps(self, time: str | None) -> tuple[str, ...]:
        """Return the columns whose values are stamps."""
        return tuple(dict.fromkeys(name for rule in self._all() for name in rule.stamps(time)))

    def reads(self, time: str | None) -> tuple[str, ...]:
        """Return all columns that the rule reads."""
        return (
            self.column,
            *dict.fromkeys(name for rule in self._all() for name in rule.reads(time) if name != self.column),
        )

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        table = stamps.table
        values = pa.array([value for value, _ in self.rules], pa.string())
        chosen = places_in(table.column(self.column).cast(pa.string()), values)
        lower, upper = np.zeros(table.num_rows, np.int64), np.zeros(table.num_rows, np.int64)
        rests, floored = np.zeros(table.num_rows, np.int64), 0
        gaps: list[Missing] = []
        pieces: list[tuple[IntArray, pa.Array | None]] = []
        clocks: Clocks | None = None
        spans: list[tuple[IntArray, SpanBounds]] = []
        choices: list[Uncertainty | None] = [*(rule for _, rule in self.rules), self.otherwise]
        together: dict[str, BoolArray] = {}
        for number, rule in zip((*range(len(self.rules)), -1), choices, strict=True):
            for name in () if rule is None else rule.stamps(stamps.time):
                together[name] = together.get(name, False) | (chosen == number)
        stamps.read_together(together)
        for number, rule in zip((*range(len(self.rules)), -1), choices, strict=True):
            rows = np.flatnonzero(chosen == number)
            if rule is None:
                if len(rows):
                    gaps.append(self._unknown(chosen == number))
                pieces.append((rows, None))
                continue
            try:
                intervals = rule.intervals(stamps.take(rows))
            except TraceError as error:
                raise TraceError(renumbered(error.faults, rows)) from None
            lower[rows], upper[rows] = intervals.lower, intervals.upper
            for gap in intervals.missing:
                where = np.zeros(table.num_rows, np.bool_)
                where[rows[gap.rows]] = True
                gaps.append(Missing(where, gap.column, gap.message))
            pieces.append((rows, intervals.pmf))
            floored += intervals.floored
            if intervals.rests is not None:
                rests[rows] = intervals.rests
            clocks = _with_clocks(clocks, rows, intervals.clocks, table.num_rows)
            if intervals.spans is not None:
                spans.append((rows, intervals.spans))
        found_rests = rests if rests.any() else None
        return Intervals(
            lower,
            upper,
            tuple(gaps),
            _reassembled(pieces),
            found_rests,
            floored,
            clocks,
            _spans_of_all(spans, table.num_rows),
        )

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:
        """Return whether all lengths of all rules are whole ticks."""
        return all(rule.is_whole(tick, schema, unit) for rule in self._all())

    def takes_unit(self, time: str | None, schema: pa.Schema) -> bool:
        """Return whether there can be numbers that have the unit of the rows, by any rule."""
        return any(rule.takes_unit(time, schema) for rule in self._all())

    def _unknown(self, rows: BoolArray) -> Missing:
        values = ", ".join(repr(value) for value, _ in self.rules)
        message = f"no uncertainty is given for this value, only for {values}: add it, or '*' for all others"
        return Missing(rows, self.column, message)


def _with_clocks(clocks: Clocks | None, rows: IntArray, more: Clocks | None, count: int) -> Clocks | None:
    """Return the clocks of a table's rows, with those of some rows added."""
    if more is None:
        return clocks
    if clocks is None:
        clocks = Clocks(pa.nulls(count, pa.string()), np.zeros(count, np.int64), np.zeros(count, np.int64))
    mask = np.zeros(count, np.bool_)
    mask[rows] = True
    clocks.lower[rows], clocks.upper[rows] = more.lower, more.upper
    return Clocks(
        pc.replace_with_mask(clocks.source, pa.array(mask), more.source), clocks.lower, clocks.upper
    )


def _spans_of_all(pieces: Sequence[tuple[IntArray, SpanBounds]], count: int) -> SpanBounds | None:
    """Return the ends of the events of a table's rows from those of some rows, all with the same pairs."""
    if not pieces:
        return None
    lasting = np.zeros(count, np.bool_)

    def placed(pairs: Sequence[tuple[IntArray, IntArray] | None]) -> tuple[IntArray, IntArray] | None:
        bounds = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for (rows, _), pair in zip(pieces, pairs, strict=True):
            if pair is None:
                return None
            bounds[0][rows], bounds[1][rows] = pair
        return bounds

    for rows, spans in pieces:
        lasting[rows] = spans.lasting
    begin, end, length = (
        placed([getattr(spans, name) for _, spans in pieces]) for name in ("begin", "end", "length")
    )
    return SpanBounds(begin, end, length, lasting)


def _reassembled(pieces: Sequence[tuple[IntArray, pa.Array | None]]) -> pa.Array | None:
    if all(pmf is None for _, pmf in pieces):
        return None
    lists = pa.list_(pa.float64())
    parts = [pa.nulls(len(rows), lists) if pmf is None else pmf for rows, pmf in pieces]
    order = np.concatenate([rows for rows, _ in pieces])
    return pa.concat_arrays(parts).take(pa.array(np.argsort(order)))


@public
def by_value(
    column: str,
    rules: Mapping[str, Uncertainty | Sequence[Uncertainty]],
    otherwise: Uncertainty | Sequence[Uncertainty] | None = None,
) -> ByValue:
    """Give each value of a column, such as the type or the source of an event, a rule, or a list of several.

    Examples
    --------
    >>> import uncertain_cep as uc
    >>> rule = uc.by_value("type", {"CPU": uc.window("15s")}, otherwise=uc.plus_minus("5ms"))
    """
    check_column(column, "column")
    for value in rules:
        # None stands for rows without a value.
        if not isinstance(value, str | None):
            raise OptionError(
                f"by_value: {value!r} is no text, and values of {column!r} are compared as texts: write "
                f"{str(value)!r}"
            )
    rules_of_values = [(value, as_rule(rule)) for value, rule in rules.items()]
    last = as_rule(otherwise)
    for rule in (*(rule for _, rule in rules_of_values), *([] if last is None else [last])):
        if not hasattr(rule, "intervals"):
            raise OptionError(f'by_value: {rule!r} is no rule: make one, such as plus_minus("500ms")')
    return ByValue(column, tuple(rules_of_values), last)


OTHERWISE: Final = "*"
"""In a table of uncertainties by value: what holds for all other values."""


Argument: TypeAlias = "str | int | bool | tuple[str, ...] | UncertaintySpec"
"""A value of an uncertainty's table: a text, a number, a switch, a pair of columns, or an uncertainty."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of uncertainty: its rule's maker and the arguments it takes, in order."""

    make: Callable[..., Uncertainty]
    required: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    durations: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """All arguments, in the order in which a flag lists them."""
        return self.required + self.optional


KINDS: Final[dict[str, Kind]] = {
    "exact": Kind(exact),
    "plus_minus": Kind(plus_minus, ("by",), durations=("by",)),
    "granularity": Kind(granularity, ("of",), durations=("of",)),
    "window": Kind(window, ("length",), ("source",), durations=("length",)),
    "period": Kind(period, ("length",), durations=("length",)),
    "clock_offset": Kind(
        clock_offset,
        ("table",),
        ("key", "host", "lower", "upper", "unit", "epoch", "shared", "own", "default"),
        durations=("default",),
        pairs=("epoch",),
        switches=("shared",),
        rules=("own",),
    ),
    "as_written": Kind(as_written),
    "columns": Kind(columns, ("lower", "upper"), sums=("lower", "upper")),
    "histogram": Kind(histogram, ("pmf",), ("lower",), sums=("lower",)),
}


@dataclass(frozen=True, slots=True)
class UncertaintySpec:
    """An uncertainty as declared.

    ``kind`` is a key of `KINDS`, or ``by_value``: then ``column`` is that column, and ``values`` says what
    holds for each of its values; `OTHERWISE` stands for all others. Or it is ``sum``, of ``parts``.
    """

    kind: str
    arguments: tuple[tuple[str, Argument], ...] = ()
    column: str | None = None
    values: tuple[tuple[str, UncertaintySpec], ...] = ()
    parts: tuple[UncertaintySpec, ...] = ()

    @property
    def inner(self) -> tuple[UncertaintySpec, ...]:
        """The uncertainties of values, or the parts of a sum."""
        return (*(spec for _, spec in self.values), *self.parts)

    @property
    def tables(self) -> tuple[str, ...]:
        """The files of clock offsets that the rule reads, as they are named."""
        tables = tuple(str(value) for name, value in self.arguments if name == "table")
        return tables + tuple(table for spec in self.inner for table in spec.tables)

    @property
    def kinds(self) -> tuple[str, ...]:
        """All kinds that stand in it."""
        return (self.kind, *(kind for spec in self.inner for kind in spec.kinds))

    def rule(self, folders: Sequence[Path] = ()) -> Uncertainty:
        """Return the rule; a table of clock offsets is looked for in each folder in turn (TraceError)."""
        if self.column is not None:
            rules = {value: spec.rule(folders) for value, spec in self.values}
            otherwise = rules.pop(OTHERWISE, None)
            return by_value(self.column, rules, otherwise)
        if self.parts:
            return added([spec.rule(folders) for spec in self.parts])
        arguments: dict[str, Any] = dict(self.arguments)
        if self.kind == "clock_offset":
            arguments["table"] = _found(Path(str(arguments["table"])), folders)
        for name in KINDS[self.kind].rules:
            if name in arguments:
                arguments[name] = arguments[name].rule(folders)
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
    """How one raw row becomes one event; the fields are the keys of ``[[events]]``, see `TraceSchema`.

    ``attributes`` and ``value_columns`` are pairs of new names and columns. ``base`` is the ``year`` or the
    ``date``. ``time_parts`` are the columns whose texts together are ``time``, see `joined_name`.
    ``numbered`` tells that rows are numbered though there is a column of ids, ``spans`` that begins and ends
    of a format become one event.
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
    time_format: tuple[str, ...] = ()
    base: str | None = None
    time_zone: str | None = None
    value_columns: tuple[tuple[str, str], ...] = ()
    types: tuple[tuple[str, str], ...] = ()
    probability: str | None = None
    sequence: str | None = None
    source: str | None = None
    ordered: bool = False
    time_parts: tuple[str, ...] = ()
    numbered: bool = False
    fixed_date: bool = False
    optional: bool = False
    begin: str | None = None
    end: str | None = None
    duration: str | None = None
    spans: bool = False

    def rule(self, folders: Sequence[Path] = ()) -> Uncertainty:
        """Return how uncertain the times are, or begin and end of events that last, see `UncertaintySpec`."""
        return rule_of_ends(self.uncertainty.rule(folders), self.time, self.begin, self.end, self.duration)

    @property
    def format(self) -> TimeFormat | None:
        """How texts are read as times; None: as ISO 8601 in UTC."""
        if not (self.time_format or self.base or self.time_zone):
            return None
        in_order = self.ordered and self.sequence is None
        return TimeFormat(
            self.time_format or ISO.formats, self.base, self.time_zone, self.fixed_date, in_order
        )

    @property
    def time_columns(self) -> tuple[str, ...]:
        """The columns of `time`; that of the stamps is left out if it is put together of others."""
        names = () if self.time is None else columns_in(self.time)
        return names[1:] if self.time_parts else names

    @property
    def as_written(self) -> bool:
        """Whether it is told by the text of stamps how uncertain they are."""
        return "as_written" in self.uncertainty.kinds


_NAMES: Final = Names()
READ_EVENTS: Final = EventsSchema(
    UncertaintySpec("columns", (("lower", _NAMES.lower), ("upper", _NAMES.upper))),
    type_column=_NAMES.type,
    id=_NAMES.id,
)
"""Rows that are events as they are read, in columns that are named like those of the model."""
