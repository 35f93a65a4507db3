"""The uncertainty of clocks that are off by a bounded amount, which differs from host to host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, TraceError, TraceFault
from uncertain_cep.expressions.codes import codes_of, places_in
from uncertain_cep.timeline.durations import Duration, number_unit, parse_duration
from uncertain_cep.traces.added_rules import Added, as_rule
from uncertain_cep.traces.clock_epochs import FIRST, Epochs, epoch_faults, instants, pair_of, said, with_gaps
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, row_faults
from uncertain_cep.traces.frames import as_arrow
from uncertain_cep.traces.instants import lengths_of, stamp_kind
from uncertain_cep.traces.time_sums import columns_in, stamps_in
from uncertain_cep.traces.uncertain_stamps import (
    Clocks,
    Intervals,
    Missing,
    Stamps,
    Uncertainty,
    check_column,
    missing_where,
    numbers_in,
    required_time,
)
from uncertain_cep.traces.units import any_numbers

__all__ = ["ClockOffset", "OffsetSource", "clock_offset"]

OffsetSource = Any
"""A pyarrow.Table, pandas or Polars frame, a mapping of hosts to pairs, or the path of a file of rows."""


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """Stamps of hosts whose clocks are off: ``[T + lower, T + upper]`` with the bounds of the row's host.

    ``key`` is the column of the events that names the host, one of ``hosts``, each of which stands there
    once, or once for each of its ``epochs``. ``lower`` and ``upper``, (k,) int64, bound what must be added to
    a stamp of the host's clock to get the true time, in nanoseconds, or in ticks if ``in_ticks``.
    """

    hosts: pa.Array = field(repr=False, hash=False)
    lower: pa.Array = field(repr=False, hash=False)
    upper: pa.Array = field(repr=False, hash=False)
    key: str
    in_ticks: bool = False
    shared: bool = False
    """Whether all events of a host, in one epoch, share its offset."""
    own: Uncertainty | None = None
    """How uncertain stamps are by the clock besides; None: not at all."""
    epochs: Epochs | None = field(default=None, repr=False, hash=False)
    """The stamps, by the clock, from which on and until which the bounds of each row hold; null: always."""
    default: int | None = None
    """The most by which clocks without a row are off, in the unit of the bounds; None: they are unknown."""

    def stamps(self, time: str | None) -> tuple[str, ...]:
        """Return the columns whose values are stamps."""
        if time is None:
            raise OptionError("uncertainty clock_offset needs the column of the stamps: say time=")
        return stamps_in(time)

    def reads(self, time: str | None) -> tuple[str, ...]:
        """Return all columns that the rule reads."""
        columns = () if self.own is None else self.own.reads(time)
        return tuple(dict.fromkeys((*self.stamps(time), *columns_in(time or "")[1:], self.key, *columns)))

    def intervals(self, stamps: Stamps) -> Intervals:
        """Return the interval of each row."""
        (column,) = self.stamps(stamps.time)
        if not self.in_ticks and stamps.grid.tick is None:
            raise OptionError(
                "clock offsets are lengths of time, but the times are plain whole numbers: say what a tick "
                'is (tick="1ms"), or the unit of the numbers (unit="ms"), or unit="tick" for the offsets too'
            )
        if self.in_ticks:
            stamps.grid.check_countable("a clock offset")
        scale = (stamps.grid.tick or 1) if self.in_ticks else 1
        keys = stamps.table.column(self.key).cast(pa.string())
        position = self._positions(stamps, column, keys)
        has_offset = self._has_offset(position, keys)
        shifts = [
            np.where(has_offset, self._shift(bounds, position, sign * (self.default or 0)) * scale, 0)
            for bounds, sign in ((self.lower, -1), (self.upper, 1))
        ]
        if self.shared:
            return self._moved_together(stamps, stamps.time or column, position, shifts, keys)
        moved = stamps.ticks(stamps.time or column, *shifts)
        (lower, upper), present = moved.moved, moved.present
        gaps = missing_where(present, column)
        gaps += self._unknown(has_offset)
        return Intervals(lower, upper, gaps, rests=moved.rests, floored=moved.floored)

    def _moved_together(
        self,
        stamps: Stamps,
        column: str,
        position: IntArray,
        shifts: list[IntArray],
        keys: pa.ChunkedArray,
    ) -> Intervals:
        """Return the intervals of times by clocks, whose offsets are widened to whole ticks."""
        if self.own is None:
            exact = stamps.ticks(column, 0)
            gaps = missing_where(exact.present, column)
            intervals = Intervals(exact.moved[0], exact.moved[0], gaps, rests=exact.rests, floored=0)
        else:
            intervals = self.own.intervals(stamps)
        tick = stamps.grid.tick or 1
        low, high = shifts[0] // tick, -(-shifts[1] // tick)
        has_offset = self._has_offset(position, keys)
        names = np.array([*self._clock_names(), None], object)[position]
        if self.default is not None:
            by_default = np.flatnonzero(has_offset & (position < 0))
            names[by_default] = keys.take(pa.array(by_default)).to_pylist()
        uneven = (shifts[0] % tick != 0) | (shifts[1] % tick != 0)
        for gap in intervals.missing:
            uneven &= ~gap.rows
        return replace(
            intervals,
            lower=intervals.lower + low,
            upper=intervals.upper + high,
            missing=(*intervals.missing, *self._unknown(has_offset)),
            floored=intervals.floored + int(uneven.sum()),
            clocks=Clocks(pa.array(names, pa.string()), low, high),
            spans=None if intervals.spans is None else intervals.spans.moved(low, high),
        )

    def _clock_names(self) -> npt.NDArray[np.object_]:
        """Return the name of the clock of each row of the table: the host, and its epoch if it has some.

        An epoch is told by where it begins, so that each table that has it calls it the same, and those of
        several tables are told apart.
        """
        hosts = np.array(self.hosts.to_pylist(), object)
        if self.epochs is None:
            return hosts
        texts = [
            said(bound, name, none)
            for bound, name, none in zip(self.epochs, ("from", "until"), (FIRST, ~FIRST), strict=True)
        ]
        names = [
            f"{host} ({begin or end or 'always'})" for host, begin, end in zip(hosts, *texts, strict=True)
        ]
        return np.array(names, object)

    def _has_offset(self, position: IntArray, keys: pa.ChunkedArray) -> BoolArray:
        """Mark the rows whose clock has bounds; by default each that is named has some."""
        has_row = position >= 0
        return has_row if self.default is None else has_row | np.asarray(keys.is_valid())

    def _unknown(self, has_offset: BoolArray) -> tuple[Missing, ...]:
        if self.default is not None:
            return missing_where(has_offset, self.key, "no host is named, so that it has no clock")
        at_the_time = "" if self.epochs is None else " at this time"
        return missing_where(has_offset, self.key, f"there is no clock offset for this host{at_the_time}")

    def _positions(self, stamps: Stamps, column: str, keys: pa.ChunkedArray) -> IntArray:
        """Return the place of each row's host and epoch, (n,) int64; -1 where there is none."""
        if self.epochs is None:
            return places_in(keys, self.hosts)
        hosts = self.hosts.unique()
        place, host = places_in(self.hosts, hosts), places_in(keys, hosts)
        values = stamps.table.column(column)
        plain = stamp_kind(column, values.type, stamps.unit).resolution is None
        begin, end = (
            instants(bound, name, stamps.unit, none, plain)
            for bound, name, none in zip(self.epochs, ("from", "until"), (FIRST, ~FIRST), strict=True)
        )
        read = stamps.times(column)
        if read is None:
            time = instants(values, column, stamps.unit, 0, plain)
        else:
            time = read.counts + read.again if stamps.later else read.counts
        # Epochs of a host do not overlap: the last one that begins in time is the only one that can hold.
        distinct = np.unique(begin)
        order = np.lexsort((begin, place))
        keyed = place[order] * (len(distinct) + 1) + np.searchsorted(distinct, begin[order]) + 1
        keys_of_rows = host * (len(distinct) + 1) + np.searchsorted(distinct, time, side="right")
        # One row more stands for none.
        row = np.append(-1, order)[np.searchsorted(keyed, keys_of_rows, side="right")]
        holds = (np.append(place, -1)[row] == host) & (host >= 0) & (time < np.append(end, FIRST)[row])
        return np.where(holds, row, -1)

    def takes_unit(self, time: str | None, schema: pa.Schema) -> bool:
        """Return whether there can be numbers that have the unit of the rows; epochs have it, too."""
        if any_numbers(bound.type for bound in self.epochs or () if not pa.types.is_null(bound.type)):
            return True
        if self.own is not None and self.own.takes_unit(time, schema):
            return True
        return numbers_in(schema, required_time(time, "uncertainty clock_offset"))

    def is_whole(self, tick: int, schema: pa.Schema, unit: str | None) -> bool:
        """Return whether all offsets are whole ticks."""
        if self.own is not None and not self.own.is_whole(tick, schema, unit):
            return False
        if self.in_ticks:
            return True
        if (self.default or 0) % tick:
            return False
        return all(not (np.asarray(bounds.to_numpy()) % tick).any() for bounds in (self.lower, self.upper))

    @staticmethod
    def _shift(bounds: pa.Array, position: IntArray, default: int) -> IntArray:
        return np.append(np.asarray(bounds.to_numpy()), default)[position]


@public
def clock_offset(
    table: OffsetSource,
    host: str = "host",
    lower: str = "offset_lo",
    upper: str = "offset_hi",
    unit: str = "ms",
    key: str | None = None,
    epoch: Sequence[str] | None = None,
    shared: bool = False,
    own: Uncertainty | Sequence[Uncertainty] | None = None,
    default: Duration | int | None = None,
) -> ClockOffset:
    """Stamps of hosts whose clocks are off by a bounded amount: ``[T + lower, T + upper]``.

    Parameters
    ----------
    table : pyarrow.Table, pandas or Polars frame, mapping, or path
        One row for each host with the bounds of its offset, true time minus clock; or a mapping of hosts to
        pairs ``(lower, upper)``; or a CSV, JSON lines or Parquet file of such rows. A host whose bounds are
        null counts as unknown.
    host, lower, upper : str
        Columns of that table.
    unit : str
        Unit of the bounds, such as ``ms``, or ``tick``.
    key : str or None
        Column of the events that names the host. Default: the same name as ``host``.
    epoch : pair of str, optional
        Columns of that table with the stamps by the host's clock from which on, and until which (exclusive),
        the bounds of a row hold; null for always. Then a host may stand there for several epochs, as in
        what `infer_offsets` and `read_clock_log` return. Numbers are of the same unit as the events' stamps.
    shared : bool
        Whether all events that a host stamps, in one epoch, are off by the same offset: they then move
        together, by the columns ``source``, ``offset_lower`` and ``offset_upper`` that are added.
    own : uncertainty, optional
        With ``shared``, how uncertain stamps are by the clock besides, such as ``uc.granularity("1s")`` for
        stamps truncated to seconds; a list of several adds up. Default: not at all.
    default : str, timedelta or int, optional
        The most by which the clock of a host is off that has no bounds, either way, such as ``"5s"``; a
        number where ``unit`` is ``tick``. It holds for hosts that the table does not name, whose bounds are
        null, and at times between the epochs of a host. Without it, these are unknown. Stamps that name no
        host stay unknown.

    Returns
    -------
    ClockOffset

    Raises
    ------
    TraceError
        If columns are missing, a host stands there twice, or for two epochs that overlap, or a lower bound is
        above the upper one.
    OptionError
        If there is no such unit, or the default is no length of it.

    Examples
    --------
    >>> import datetime as dt
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> bounds = {"offset_lo": [dt.timedelta(seconds=-2)], "offset_hi": [dt.timedelta(seconds=3)]}
    >>> rule = uc.clock_offset(pa.table({"host": ["h"], **bounds}), host="host")
    >>> stamped = pa.table({"type": ["A"], "id": [1], "at": [dt.datetime(2026, 1, 5, 10, 30)], "host": ["h"]})
    >>> events = uc.to_intervals(stamped, time="at", uncertainty=rule, tick="1s")
    >>> print(events["lower"][0], "to", events["upper"][0])
    2026-01-05 10:29:58 to 2026-01-05 10:30:03
    """
    if key is not None:
        check_column(key, "key")
    in_ticks = number_unit(unit) is None
    source = None
    if isinstance(table, (str, PathLike)):
        from uncertain_cep.traces.formats import read_file

        source = str(table)
        rows = read_file(Path(table))
    elif isinstance(table, Mapping):
        pairs = list(table.values())
        rows = pa.table(
            {host: list(table), lower: [low for low, _ in pairs], upper: [high for _, high in pairs]}
        )
    else:
        rows = as_arrow(table)
    largest = _default_bound(default, in_ticks)
    try:
        made = _checked(
            rows, host, lower, upper, None if in_ticks else unit, key or host, pair_of(epoch), largest
        )
    except TraceError as error:
        raise TraceError([replace(fault, file=source) for fault in error.faults]) from None
    if not isinstance(shared, bool):
        raise OptionError(f"shared={shared!r}: it must be True or False")
    jitter = as_rule(own)
    is_clock = isinstance(jitter.first if isinstance(jitter, Added) else jitter, ClockOffset)
    if jitter is not None and (not hasattr(jitter, "intervals") or is_clock):
        raise OptionError(f'own={own!r}: give an uncertainty of stamps, such as uc.granularity("1s")')
    if jitter is not None and not shared:
        raise OptionError("own= says what is uncertain besides a shared offset: it goes with shared=True")
    return replace(made, shared=shared, own=jitter)


def _default_bound(default: Any, in_ticks: bool) -> int | None:
    """Return the default bound, as a length as long as those of the table: in ticks, or nanoseconds."""
    if default is None:
        return None
    is_number = isinstance(default, int | np.integer) and not isinstance(default, bool | np.timedelta64)
    if is_number != in_ticks:
        unit = "a number, as the bounds are ticks" if in_ticks else "a length of time, such as 5s"
        raise OptionError(f"default={default!r}: give {unit}")
    largest = int(default) if is_number else parse_duration(default, what="default")
    if not 0 <= largest < 2**62:
        raise OptionError(f"default={default!r}: it must be at least 0, and less than 146 years")
    return largest


def _checked(
    rows: pa.Table,
    host: str,
    lower: str,
    upper: str,
    unit: str | None,
    key: str,
    epoch: tuple[str, ...],
    default: int | None,
) -> ClockOffset:
    absent = [name for name in (host, lower, upper, *epoch) if name not in rows.column_names]
    if absent:
        has = ", ".join(rows.column_names)
        raise TraceError(
            [
                TraceFault(f"the table of clock offsets has no such column; it has {has}", column=name)
                for name in absent
            ]
        )
    low, has_low = lengths_of(rows.column(lower), lower, unit)
    high, has_high = lengths_of(rows.column(upper), upper, unit)
    hosts = rows.column(host).cast(pa.string())
    bounded = has_low & has_high
    faults = row_faults(
        bounded & (low > high),
        f"the lower bound of the offset is above the upper one, {upper!r}",
        column=lower,
        values=rows.column(lower),
    )
    codes = codes_of([hosts])[0][0]
    first = np.zeros(len(hosts), np.bool_)
    first[np.unique(codes, return_index=True)[1]] = True
    named = np.asarray(hosts.is_valid().to_numpy())
    if epoch:
        faults += epoch_faults(rows, codes, epoch, hosts)
    else:
        faults += row_faults(named & ~first, "this host stands here twice", column=host, values=hosts)
    if faults:
        raise TraceError(faults)
    keep = pa.array(named & bounded)
    made = ClockOffset(
        hosts=hosts.filter(keep).combine_chunks(),
        lower=pa.array(low).filter(keep),
        upper=pa.array(high).filter(keep),
        key=key,
        in_ticks=unit is None,
        epochs=(rows.column(epoch[0]).filter(keep), rows.column(epoch[1]).filter(keep)) if epoch else None,
        default=default,
    )
    if default is None or made.epochs is None:
        return made
    # The offset in one gap says nothing of that in another.
    places, epochs = with_gaps(made.hosts, made.epochs)
    return replace(
        made,
        hosts=pa.concat_arrays([made.hosts, made.hosts.take(pa.array(places))]),
        lower=pa.concat_arrays([made.lower, pa.array(np.full(len(places), -default))]),
        upper=pa.concat_arrays([made.upper, pa.array(np.full(len(places), default))]),
        epochs=epochs,
    )
