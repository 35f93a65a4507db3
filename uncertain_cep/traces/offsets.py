"""The uncertainty of clocks that are off by a bounded amount, which differs from host to host."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, TraceError, TraceFault
from uncertain_cep.expressions.codes import codes_of, places_in
from uncertain_cep.timeline.durations import number_unit
from uncertain_cep.traces.added_rules import Added, as_rule
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, row_faults
from uncertain_cep.traces.frames import as_arrow
from uncertain_cep.traces.instants import counts_of, lengths_of, stamp_kind
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
    epochs: tuple[pa.ChunkedArray, pa.ChunkedArray] | None = field(default=None, repr=False, hash=False)
    """The stamps, by the clock, from which on and until which the bounds of each row hold; null: always."""

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
        has_offset = position >= 0
        shifts = [self._shift(bounds, position, has_offset, scale) for bounds in (self.lower, self.upper)]
        if self.shared:
            return self._moved_together(stamps, stamps.time or column, position, shifts)
        moved = stamps.ticks(stamps.time or column, *shifts)
        (lower, upper), present = moved.moved, moved.present
        gaps = missing_where(present, column)
        gaps += self._unknown(has_offset)
        return Intervals(lower, upper, gaps, rests=moved.rests, floored=moved.floored)

    def _moved_together(
        self, stamps: Stamps, column: str, position: IntArray, shifts: list[IntArray]
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
        has_offset = position >= 0
        names = np.array([*self._clock_names(), None], object)
        uneven = (shifts[0] % tick != 0) | (shifts[1] % tick != 0)
        for gap in intervals.missing:
            uneven &= ~gap.rows
        return replace(
            intervals,
            lower=intervals.lower + low,
            upper=intervals.upper + high,
            missing=(*intervals.missing, *self._unknown(has_offset)),
            floored=intervals.floored + int(uneven.sum()),
            clocks=Clocks(pa.array(names[position], pa.string()), low, high),
        )

    def _clock_names(self) -> npt.NDArray[np.object_]:
        """Return the name of the clock of each row of the table: the host, and its epoch if it has some.

        An epoch is told by where it begins, so that each table that has it calls it the same, and those of
        several tables are told apart.
        """
        hosts = np.array(self.hosts.to_pylist(), object)
        if self.epochs is None:
            return hosts
        said = [
            _said(bound, name, none)
            for bound, name, none in zip(self.epochs, ("from", "until"), (_FIRST, ~_FIRST), strict=True)
        ]
        names = [
            f"{host} ({begin or end or 'always'})" for host, begin, end in zip(hosts, *said, strict=True)
        ]
        return np.array(names, object)

    def _unknown(self, has_offset: BoolArray) -> tuple[Missing, ...]:
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
            _instants(bound, name, stamps.unit, none, plain)
            for bound, name, none in zip(self.epochs, ("from", "until"), (_FIRST, ~_FIRST), strict=True)
        )
        read = stamps.times(column)
        if read is None:
            time = _instants(values, column, stamps.unit, 0, plain)
        else:
            time = read.counts + read.again if stamps.later else read.counts
        # Epochs of a host do not overlap: the last one that begins in time is the only one that can hold.
        distinct = np.unique(begin)
        order = np.lexsort((begin, place))
        keyed = place[order] * (len(distinct) + 1) + np.searchsorted(distinct, begin[order]) + 1
        keys_of_rows = host * (len(distinct) + 1) + np.searchsorted(distinct, time, side="right")
        # One row more stands for none.
        row = np.append(-1, order)[np.searchsorted(keyed, keys_of_rows, side="right")]
        holds = (np.append(place, -1)[row] == host) & (host >= 0) & (time < np.append(end, _FIRST)[row])
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
        return all(not (np.asarray(bounds.to_numpy()) % tick).any() for bounds in (self.lower, self.upper))

    @staticmethod
    def _shift(bounds: pa.Array, position: IntArray, has_offset: BoolArray, scale: int) -> IntArray:
        if len(bounds) == 0:
            return np.zeros(len(position), np.int64)
        return np.where(has_offset, np.asarray(bounds.to_numpy())[position] * scale, 0)


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

    Returns
    -------
    ClockOffset

    Raises
    ------
    TraceError
        If columns are missing, a host stands there twice, or for two epochs that overlap, or a lower bound is
        above the upper one.
    OptionError
        If there is no such unit.

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
    try:
        made = _checked(rows, host, lower, upper, None if in_ticks else unit, key or host, _pair(epoch))
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


_FIRST: Final = -(2**63)
"""Before all times."""


def _pair(epoch: Any) -> tuple[str, ...]:
    if epoch is None:
        return ()
    listed = isinstance(epoch, Sequence) and not isinstance(epoch, str) and len(epoch) == 2
    if not listed or not all(isinstance(name, str) for name in epoch):
        raise OptionError(f'epoch={epoch!r}: give a pair of columns, such as ("from", "until")')
    return tuple(epoch)


def _instants(
    values: pa.ChunkedArray, column: str, unit: str | None, none: int, plain: bool | None = None
) -> IntArray:
    """Return stamps as nanoseconds since 1970, or plain numbers, with what stands for null.

    An OptionError says that they are not ``plain`` numbers, or are, if that is known.
    """
    if pa.types.is_null(values.type):
        return np.full(len(values), none)
    kind = stamp_kind(column, values.type, unit)
    if plain is not None and plain != (kind.resolution is None):
        raise OptionError("the epochs of clocks and the stamps must both be times, or both plain numbers")
    counts, present = counts_of(values, column, kind, unit)
    return np.where(present, counts * (kind.resolution or 1), none)


def _said(values: pa.ChunkedArray, word: str, none: int) -> list[str]:
    """Return where epochs begin, or end, as names of clocks say it; nothing for null."""
    is_time = stamp_kind(word, values.type, None).resolution is not None
    texts = []
    for instant in _instants(values, word, None, none).tolist():
        text = str(np.datetime64(instant, "ns")) if is_time else str(instant)
        text = text.rstrip("0").removesuffix(".") if "." in text else text
        texts.append("" if instant == none else f"{word} {text}")
    return texts


def _checked(
    rows: pa.Table, host: str, lower: str, upper: str, unit: str | None, key: str, epoch: tuple[str, ...]
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
        faults += _epoch_faults(rows, codes, epoch, hosts)
    else:
        faults += row_faults(named & ~first, "this host stands here twice", column=host, values=hosts)
    if faults:
        raise TraceError(faults)
    keep = pa.array(named & bounded)
    return ClockOffset(
        hosts=hosts.filter(keep).combine_chunks(),
        lower=pa.array(low).filter(keep),
        upper=pa.array(high).filter(keep),
        key=key,
        in_ticks=unit is None,
        epochs=(rows.column(epoch[0]).filter(keep), rows.column(epoch[1]).filter(keep)) if epoch else None,
    )


def _epoch_faults(
    rows: pa.Table, codes: IntArray, epoch: tuple[str, ...], hosts: pa.ChunkedArray
) -> list[TraceFault]:
    begin, end = (
        _instants(rows.column(name), name, None, none)
        for name, none in zip(epoch, (_FIRST, ~_FIRST), strict=True)
    )
    faults = row_faults(
        begin >= end,
        f"the epoch ends before it begins: see {epoch[1]!r}",
        column=epoch[0],
        values=rows.column(epoch[0]),
    )
    order = np.lexsort((begin, codes))
    overlapping = np.zeros(len(order), np.bool_)
    overlapping[order[1:]] = (codes[order[1:]] == codes[order[:-1]]) & (begin[order[1:]] < end[order[:-1]])
    return faults + row_faults(
        overlapping & (codes >= 0), "this epoch of the host overlaps another", column=epoch[0], values=hosts
    )
