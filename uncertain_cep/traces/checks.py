"""Checks that a table holds events of the model; each check can be called by itself.

All checks are vectorised. They return faults with 1-based rows of the table given.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.config.limits import FAULT_LIMIT, MAX_TICK
from uncertain_cep.config.tolerances import PMF_TOLERANCE
from uncertain_cep.config.tuning import EXPRESSION_ROWS
from uncertain_cep.errors import TraceFault, absent_columns
from uncertain_cep.expressions.codes import codes_of, paired
from uncertain_cep.timeline.domain import Names, TimeDomain, advice_on_floats, as_int64, is_text, type_text
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, row_faults, shown
from uncertain_cep.traces.source_order import check_orders, check_sequences

__all__ = [
    "OTHER_BOUNDS",
    "OTHER_PMF",
    "RowOrigin",
    "check_clocks",
    "check_columns",
    "check_ids",
    "check_intervals",
    "check_model",
    "check_nulls",
    "check_pmfs",
    "check_probabilities",
    "check_values",
    "used_again",
]


_OTHER_ROW: Final = re.compile(r"\brow (\d+)\b")


@dataclass(frozen=True, slots=True)
class RowOrigin:
    """Where the rows of a table come from that was put together from parts of files.

    Each part has its file (None for a frame in memory), its number of rows, and for each row, (k,) int64, the
    row in its file, counted from 0 (None: the part is the whole file).
    """

    files: tuple[str | None, ...]
    lengths: tuple[int, ...]
    rows: tuple[IntArray | None, ...]

    def kept(self, rows: BoolArray) -> RowOrigin:
        """Return where those rows, (n,) bool, of the table come from."""
        places_of_files = []
        for mask, origin in zip(np.split(rows, np.cumsum(self.lengths)[:-1]), self.rows, strict=True):
            places = np.flatnonzero(mask)
            places_of_files.append(places if origin is None else origin[places])
        return RowOrigin(self.files, tuple(len(places) for places in places_of_files), tuple(places_of_files))

    def placed(self, fault: TraceFault) -> TraceFault:
        """Return a fault with the file, and the row in it, instead of the row of the table.

        So are other rows that its message names.
        """
        if fault.row is None:
            return fault if len(set(self.files)) != 1 else replace(fault, file=self.files[0])
        file, row = self._place(fault.row)

        def told(named: re.Match[str]) -> str:
            other, place = self._place(int(named[1]))
            return f"row {place}" if other == file else f"row {place} of {other}"

        return replace(fault, file=file, row=row, message=_OTHER_ROW.sub(told, fault.message))

    def _place(self, row: int) -> tuple[str | None, int]:
        """Return the file of a row of the table, and its row there, both counted from 1."""
        ends = np.cumsum(self.lengths)
        part = int(np.searchsorted(ends, row, side="left"))
        within = row - 1 - int(ends[part] - self.lengths[part])
        rows = self.rows[part]
        return self.files[part], 1 + (within if rows is None else int(rows[within]))


def check_model(
    table: pa.Table, names: Names, domain: TimeDomain, *, clocks: bool = False
) -> list[TraceFault]:
    """Return every fault of a table of events, but for ids that are used twice.

    ``clocks`` says that events may share clocks.
    """
    return check_columns(table.schema, names) or check_values(table, names, domain, clocks=clocks)


def check_values(
    table: pa.Table,
    names: Names,
    domain: TimeDomain,
    *,
    clocks: bool = False,
    extremes: tuple[int, int] | None = None,
) -> list[TraceFault]:
    """Return every fault of the values of a table whose columns have been checked, as :func:`check_model`.

    ``extremes`` are the earliest lower and the latest upper bound, ticks, if it is known that no interval
    ends before it begins.
    """
    faults = check_nulls(table, names)
    if extremes is None or not _are_near(extremes, domain):
        faults += check_intervals(table, names, domain)
    faults += check_probabilities(table, names)
    if clocks and not faults:
        faults = check_clocks(table, names, domain)
    if not clocks or not faults:
        faults += check_pmfs(table, names, domain, clocks=clocks)
    return faults


def check_columns(schema: pa.Schema, names: Names) -> list[TraceFault]:
    """Return a fault for each column of the model that is missing or of the wrong type."""
    model = (names.type, names.id, names.lower, names.upper)
    absent = [name for name in model if name not in schema.names]
    faults = absent_columns(absent, schema.names, advice=_how_to_have(absent, names))
    for name in model:
        if name in absent:
            continue
        dtype = schema.field(name).type
        if name == names.type and not is_text(dtype):
            faults.append(
                TraceFault(f"its type is {type_text(dtype)}: the type of an event is text", column=name)
            )
        if name == names.id and not (pa.types.is_integer(dtype) or is_text(dtype)):
            message = f"its type is {type_text(dtype)}: an id is a whole number or text"
            faults.append(TraceFault(message + advice_on_floats(dtype, name), column=name))
    if names.pmf in schema.names and not _is_list_of_numbers(schema.field(names.pmf).type):
        dtype = schema.field(names.pmf).type
        message = f"its type is {type_text(dtype)}: a pmf is a list of numbers, one for each tick"
        faults.append(TraceFault(message, column=names.pmf))
    if names.probability in schema.names and not _is_number(schema.field(names.probability).type):
        message = (
            f"its type is {type_text(schema.field(names.probability).type)}: the probability that an event "
            f"happened is a number from 0 to 1. {_OTHERWISE}"
        )
        faults.append(TraceFault(message, column=names.probability))
    return faults


def _how_to_have(absent: Sequence[str], names: Names) -> str:
    """Return the advice for columns of the model that are missing."""
    said = []
    if names.type in absent:
        said.append("Say of each event which type it has, as text")
    if names.id in absent:
        said.append(f"Number the events: in pandas events[{names.id!r}] = range(len(events))")
    mapped = ", ".join(
        f'"{part}": "..."' for part in ("type", "id", "lower", "upper") if getattr(names, part) in absent
    )
    return ". ".join([*said, f"If a column has another name, map it: names={{{mapped}}}"])


_OTHERWISE: Final = 'Rename the column, or map names={"probability": "..."}, to use an attribute of that name'


def check_nulls(table: pa.Table, names: Names, *, limit: int = FAULT_LIMIT) -> list[TraceFault]:
    """Return a fault for each null type, id or time, also one among the values of a dictionary.

    O(1) without nulls.
    """
    faults = []
    for name, what in (
        (names.type, "an event needs a type"),
        (names.id, "an event needs an id"),
        (names.lower, "an event needs a time"),
        (names.upper, "an event needs a time"),
    ):
        column = table.column(name)
        if column.null_count or _null_values(column):
            nulls = np.asarray(column.is_null().to_numpy())
            faults += row_faults(
                nulls, f"{what}: fill it in, or leave the row out", column=name, limit=limit, values=column
            )
    return faults


def check_intervals(
    table: pa.Table, names: Names, domain: TimeDomain, *, limit: int = FAULT_LIMIT
) -> list[TraceFault]:
    """Return a fault for each interval that ends before it begins, and each time that is no usable tick."""
    faults = []
    lower, has_lower = _times(table, names.lower)
    upper, has_upper = _times(table, names.upper)
    largest = MAX_TICK * domain.tick // domain.per_unit
    near = has_lower is None and has_upper is None and _near_and_in_order(lower, upper, largest)
    reversed_ = None if near else (lower > upper) & _both(has_lower, has_upper, len(lower))
    if reversed_ is not None and reversed_.any():
        for row in np.flatnonzero(reversed_)[:limit].tolist():
            low, high = _time_text(table, names.lower, row), _time_text(table, names.upper, row)
            message = f"the interval ends before it begins: {names.upper} is {high}"
            faults.append(TraceFault(message, row=row + 1, column=names.lower, value=low))
        faults += _rest(int(reversed_.sum()), limit, "intervals end before they begin", names.lower)
    for name, times in ((names.lower, lower), (names.upper, upper)):
        values = table.column(name)
        if not near:
            far = (times > largest) | (times < -largest)
            message = f"beyond {MAX_TICK:,} ticks, the most that can be computed with: is its unit right?"
            faults += row_faults(far, message, column=name, values=values, limit=limit)
        if domain.tick != 1:
            message = (
                f"not a whole number of ticks of {domain.describe()}: give the tick that the trace was made "
                "with, or make its intervals again"
            )
            if not domain.named:
                message = (
                    f"finer than a tick of {domain.describe()}, the default: give a shorter tick, such as "
                    'tick="1ns"'
                )
            uneven = times % domain.tick != 0
            faults += row_faults(uneven, message, column=name, values=values, limit=limit)
    return faults


def _are_near(extremes: tuple[int, int], domain: TimeDomain) -> bool:
    """Return whether no time is too large, by extremes of ticks that cannot have left int64."""
    return domain.per_unit == domain.tick == 1 and max(-extremes[0], extremes[1]) <= MAX_TICK


def _near_and_in_order(lower: IntArray, upper: IntArray, largest: int) -> bool:
    """Return whether no interval is reversed, and no time is larger than ``largest``, either way."""
    for begin in range(0, len(lower), EXPRESSION_ROWS):
        low, high = lower[begin : begin + EXPRESSION_ROWS], upper[begin : begin + EXPRESSION_ROWS]
        # Where no interval is reversed, two extremes bound all times.
        if (low > high).any() or int(low.min()) < -largest or int(high.max()) > largest:
            return False
    return True


def check_pmfs(
    table: pa.Table, names: Names, domain: TimeDomain, *, clocks: bool = False, limit: int = FAULT_LIMIT
) -> list[TraceFault]:
    """Return a fault for each pmf of the wrong length, with a negative or no number, or not summing to 1.

    A null pmf means uniform. With ``clocks``, which were checked, the pmf of an event that names one is that
    of its time by the clock. O(total length of the pmfs).
    """
    if names.pmf not in table.column_names or pa.types.is_null(table.schema.field(names.pmf).type):
        return []
    values = table.column(names.pmf)
    lists = values.cast(pa.large_list(pa.float64())).combine_chunks()
    has_pmf = np.asarray(lists.is_valid().to_numpy(zero_copy_only=False))
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False))
    numbers = np.asarray(pc.fill_null(lists.flatten(), np.nan).to_numpy(zero_copy_only=False))
    lower, has_lower = _times(table, names.lower)
    upper, has_upper = _times(table, names.upper)
    ticks = domain.ticks_of_units(upper) - domain.ticks_of_units(lower) + 1
    if clocks:
        low, high = domain.offsets(table, names)
        ticks -= (high - low) * np.asarray(table.column(names.source).is_valid().to_numpy())
    faults = []
    # Where the interval itself is at fault, the length would only be a second complaint of the same.
    wrong_length = has_pmf & (lengths != ticks) & (ticks >= 1) & _both(has_lower, has_upper, len(ticks))
    if wrong_length.any():
        of_length = "" if domain.tick_nanoseconds is None else f" of {domain.describe()}"
        hint = "" if domain.named or domain.unit == "tick" else ', or say how long a tick is, tick="1s"'
        for row in np.flatnonzero(wrong_length)[:limit].tolist():
            message = (
                f"the pmf has {lengths[row]:,} probabilities for an interval of {ticks[row]:,} ticks"
                f"{of_length}: give one for each tick{hint}"
            )
            faults.append(TraceFault(message, row=row + 1, column=names.pmf, value=_list_text(values, row)))
        faults += _rest(int(wrong_length.sum()), limit, "pmfs have the wrong length", names.pmf)
    filled = lengths > 0
    starts = (np.cumsum(lengths) - lengths)[filled]
    smallest, total = np.ones(len(lengths)), np.where(has_pmf, 0.0, 1.0)
    if len(starts):
        smallest[filled] = np.minimum.reduceat(numbers, starts)
        total[filled] = np.add.reduceat(numbers, starts)
    # A minimum or a sum over something that is no number is none either.
    unusable = ~np.isfinite(total) | (smallest < 0)
    if unusable.any():
        message = "a probability must be a number of at least 0: correct the pmf"
        faults += row_faults(unusable, message, column=names.pmf, values=values, limit=limit)
    off = ~unusable & (np.abs(total - 1) > PMF_TOLERANCE)
    if off.any():
        for row in np.flatnonzero(off)[:limit].tolist():
            message = f"the pmf sums to {total[row]:.12g} instead of 1: scale it"
            faults.append(TraceFault(message, row=row + 1, column=names.pmf, value=_list_text(values, row)))
        faults += _rest(int(off.sum()), limit, "pmfs do not sum to 1", names.pmf)
    return faults


_FOR_ALL: Final = "an offset counts for all events of a source, so an epoch of a clock is a source of its own"

OTHER_BOUNDS: Final = f"the clock has other bounds in other rows: {_FOR_ALL}"
OTHER_PMF: Final = f"the clock has another pmf in other rows: {_FOR_ALL}"


def _is_valid(column: pa.ChunkedArray) -> BoolArray:
    """Return a mask of the values that are not null."""
    return np.asarray(column.is_valid().to_numpy()) if column.null_count else np.ones(len(column), np.bool_)


def _first_alike(codes: IntArray) -> IntArray:
    """Return the first event of each one's clock, (n,) int64."""
    row = np.zeros(int(codes.max(initial=0)) + 2, np.int64)
    # Of several, the row written last counts.
    row[codes[::-1]] = np.arange(len(codes))[::-1]
    return row[codes]


def check_clocks(
    table: pa.Table, names: Names, domain: TimeDomain, *, limit: int = FAULT_LIMIT
) -> list[TraceFault]:
    """Return a fault for each event whose clock is not known, contradicts others, or leaves no own time."""
    source = table.column(names.source)
    named = _is_valid(source)
    faults = []
    for name in (names.offset_lower, names.offset_upper):
        if name not in table.column_names:
            continue
        column = table.column(name)
        dtype = column.type
        if not (pa.types.is_integer(dtype) or pa.types.is_duration(dtype) or pa.types.is_null(dtype)):
            message = f"its type is {type_text(dtype)}: an offset is a duration, or int64 ticks"
            faults.append(TraceFault(message + advice_on_floats(dtype, name), column=name))
        absent = named & ~_is_valid(column)
        message = "the event names a clock, and this bound of its offset is missing"
        faults += row_faults(absent, message, column=name, values=source, limit=limit)
    if faults:
        return faults
    low, high = domain.offsets(table, names)
    (codes,), _ = codes_of([source])
    # Those of the last event of each, with one place more for events without a clock: their code is -1.
    last_low, last_high = np.zeros((2, int(codes.max(initial=-1)) + 2), np.int64)
    last_low[codes], last_high[codes] = low, high
    if (named & ((low != last_low[codes]) | (high != last_high[codes]))).any():
        model = _first_alike(codes)
        at = int(np.argmax(named & ((low != low[model]) | (high != high[model]))))
        message = f"the clock has other bounds in row {model[at] + 1}: {_FOR_ALL}"
        return [TraceFault(message, row=at + 1, column=names.source, value=shown(source[at]))]
    lower, upper = (domain.ticks(table.column(name)) for name in (names.lower, names.upper))
    width, offset = upper - lower, high - low
    reversed_ = named & (offset < 0)
    faults += row_faults(
        reversed_, "the bounds of the offset are in the wrong order", column=names.offset_lower, limit=limit
    )
    faults += row_faults(
        named & ~reversed_ & (width < offset),
        "the interval is shorter than what the offset of the clock allows: no time by the clock is left",
        column=names.lower,
        limit=limit,
    )
    faults += check_sequences(table, names, codes, limit)
    faults = faults or _check_offset_pmfs(table, names, domain, codes)
    return faults or check_orders(table, names, codes, (lower, upper), (low, high), limit)


def _check_offset_pmfs(
    table: pa.Table, names: Names, domain: TimeDomain, codes: IntArray
) -> list[TraceFault]:
    """Return a fault for each law of an offset that is none, or not that of another row of the clock.

    ``codes``, (n,) int64, stand for clocks, -1 for none.
    """
    if names.offset_pmf not in table.column_names:
        return []
    column, source = table.column(names.offset_pmf), table.column(names.source)
    if not _is_list_of_numbers(column.type):
        message = f"its type is {type_text(column.type)}: the pmf of an offset is a list of numbers"
        return [TraceFault(message, column=names.offset_pmf)]
    if column.null_count == len(column):
        return []
    low, high = (pa.array(bounds * domain.tick) for bounds in domain.offsets(table, names))
    named = source.is_valid()
    pmf = pc.if_else(named, column, pa.scalar(None, column.type))
    offsets = pa.table({names.lower: low, names.upper: high, names.pmf: pmf})
    faults = check_pmfs(offsets, names, domain)
    if faults:
        return [replace(fault, column=names.offset_pmf) for fault in faults]
    lists = pmf.cast(pa.large_list(pa.float64())).combine_chunks()
    lengths = np.asarray(pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False))
    values, starts = np.asarray(lists.flatten().to_numpy(zero_copy_only=False)), np.cumsum(lengths) - lengths
    has, model = np.asarray(named.to_numpy()), _first_alike(codes)
    differs = has & (lengths != lengths[model])
    row = np.repeat(np.arange(len(lengths)), np.where(has & ~differs, lengths, 0))
    within = np.arange(len(row)) - np.searchsorted(row, row)
    unlike = values[starts[row] + within] != values[starts[model[row]] + within]
    differs[row[unlike]] = True
    for at in np.flatnonzero(differs)[:1].tolist():
        message = f"the clock has another pmf in row {model[at] + 1}: {_FOR_ALL}"
        return [TraceFault(message, row=at + 1, column=names.offset_pmf, value=shown(source[at]))]
    return []


def check_probabilities(table: pa.Table, names: Names, *, limit: int = FAULT_LIMIT) -> list[TraceFault]:
    """Return a fault for each probability that an event happened which is no number from 0 to 1.

    A null means 1. O(n).
    """
    if names.probability not in table.column_names:
        return []
    column = table.column(names.probability)
    if column.null_count == len(column):
        return []
    probabilities = np.asarray(pc.fill_null(column.cast(pa.float64()), 1.0).to_numpy())
    wrong = ~((probabilities >= 0.0) & (probabilities <= 1.0))
    if not wrong.any():
        return []
    message = f"the probability that an event happened is a number from 0 to 1. {_OTHERWISE}"
    return row_faults(wrong, message, column=names.probability, values=column, limit=limit)


def _times(table: pa.Table, name: str) -> tuple[IntArray, BoolArray | None]:
    column = table.column(name)
    if column.null_count == 0:
        return as_int64(column), None
    return as_int64(column.cast(pa.int64()).fill_null(0)), np.asarray(column.is_valid().to_numpy())


def _null_values(column: pa.ChunkedArray) -> bool:
    """Return whether null is among the values of a dictionary, where Arrow does not count it."""
    return pa.types.is_dictionary(column.type) and any(chunk.dictionary.null_count for chunk in column.chunks)


def _both(first: BoolArray | None, second: BoolArray | None, length: int) -> BoolArray:
    both = np.ones(length, np.bool_)
    for present in (first, second):
        if present is not None:
            both &= present
    return both


def _time_text(table: pa.Table, name: str, row: int) -> str:
    value = table.column(name)[row]
    return str(value.cast(pa.string()).as_py()) if pa.types.is_timestamp(value.type) else str(value.as_py())


def _list_text(values: pa.ChunkedArray, row: int) -> str:
    text = str(values[row].as_py())
    return text if len(text) <= 80 else f"{text[:77]}..."


def _rest(count: int, limit: int, what: str, column: str) -> list[TraceFault]:
    more = count - limit
    return [TraceFault(f"{more:,} more {what}", column=column, count=more)] if more > 0 else []


def _is_list_of_numbers(dtype: pa.DataType) -> bool:
    if pa.types.is_null(dtype):
        return True
    if pa.types.is_list(dtype) or pa.types.is_large_list(dtype) or pa.types.is_fixed_size_list(dtype):
        return _is_number(dtype.value_type)
    return False


def _is_number(dtype: pa.DataType) -> bool:
    return bool(pa.types.is_floating(dtype) or pa.types.is_integer(dtype) or pa.types.is_null(dtype))


def check_ids(
    table: pa.Table, names: Names, *, partition: Sequence[str] = (), limit: int = FAULT_LIMIT
) -> list[TraceFault]:
    """Return a fault for each id that an earlier row of the same partition has; null ids are passed over.

    The columns of ``partition`` make up the partition; a row with a null in one belongs to none. O(n) for
    increasing int64 ids, else O(n log n).
    """
    column = table.column(names.id)
    if table.num_rows < 2 or _are_unique(column):
        return []
    (codes,), _ = codes_of([column])
    for name in partition:
        codes = paired(codes, codes_of([table.column(name)])[0][0])
    rows = np.flatnonzero(codes >= 0)
    order = rows[np.argsort(codes[rows], kind="stable")]
    same = codes[order[1:]] == codes[order[:-1]]
    again = np.zeros(table.num_rows, np.bool_)
    again[order[1:][same]] = True
    if not again.any():
        return []
    return row_faults(again, used_again(partition), column=names.id, values=column, limit=limit)


def used_again(partition: Sequence[str]) -> str:
    """Return the message for an id that an earlier event of the same partition has."""
    within = f" with the same {', '.join(partition)}" if partition else ""
    return f"an earlier event{within} has this id: give each event one of its own"


def _are_unique(column: pa.ChunkedArray) -> bool:
    if column.null_count == 0 and pa.types.is_integer(column.type):
        ids = np.asarray(column.to_numpy())
        if bool((ids[1:] > ids[:-1]).all()):
            return True
        ids = np.sort(ids)
        return bool((ids[1:] != ids[:-1]).all())
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return len(column.unique()) == len(column)
