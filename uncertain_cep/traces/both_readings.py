"""Events at one of two times, as where clocks that were set back showed an hour twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.config.limits import MOST_TICKS_OF_READINGS
from uncertain_cep.errors import TraceError
from uncertain_cep.timeline.durations import format_duration
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, row_faults
from uncertain_cep.traces.instants import Grid
from uncertain_cep.traces.stamp_remarks import Remark, say
from uncertain_cep.traces.uncertain_stamps import Intervals

__all__ = ["of_both_readings"]


def of_both_readings(first: Intervals, second: Intervals, grid: Grid) -> Intervals:
    """Return the intervals of events that happened in those of the first reading or of the second one.

    Each reading is as likely as the other: a pmf has half of the probabilities of both, and a hole between
    them. Where the pmfs would have more than `MOST_TICKS_OF_READINGS` ticks in all, such an event is uniform
    over all ticks from the first reading to the second one, and a warning says so. A TraceError names events
    whose readings are in two epochs of a clock. O(ticks of these events).
    """
    twice = (first.lower != second.lower) | (first.upper != second.upper)
    for gap in first.missing:
        twice &= ~gap.rows
    rows = np.flatnonzero(twice)
    if not len(rows):
        return first
    _check_clocks(first, second, twice)
    lower, upper = first.lower.copy(), first.upper.copy()
    lower[rows] = np.minimum(first.lower[rows], second.lower[rows])
    upper[rows] = np.maximum(first.upper[rows], second.upper[rows])
    total = int((upper[rows] - lower[rows] + 1).sum())
    pmf = first.pmf
    if total > MOST_TICKS_OF_READINGS:
        tick = "" if grid.tick is None else f" of {format_duration(grid.tick)}"
        say(Remark(_spread_message, (tick,), (len(rows), total)))
        pmf = None if pmf is None else _with_lists(pmf, rows, [None] * len(rows))
    else:
        lists = [_halves(first, second, row) for row in rows.tolist()]
        pmf = _with_lists(pa.nulls(len(lower), pa.list_(pa.float64())) if pmf is None else pmf, rows, lists)
    return replace(first, lower=lower, upper=upper, pmf=pmf)


def _spread_message(tick: str, events: int, probabilities: int) -> str:
    return (
        f"{events:,} events with two possible times would have {probabilities:,} probabilities of ticks{tick}"
        ": each is taken to be anywhere from the one to the other, equally likely; give a longer tick to "
        "have both alone"
    )


def _halves(first: Intervals, second: Intervals, row: int) -> list[float]:
    """Return the probabilities of the ticks of an event, by its clock if it has one."""
    ranges = [_own(reading, row) for reading in (first, second)]
    begin = min(low for low, _ in ranges)
    weights_of_ticks = np.zeros(max(high for _, high in ranges) - begin + 1)
    for reading, (low, high) in zip((first, second), ranges, strict=True):
        size = high - low + 1
        pmf = None if reading.pmf is None else reading.pmf[row].as_py()
        weights = np.full(size, 1 / size) if pmf is None else np.asarray(pmf, np.float64)
        weights_of_ticks[low - begin : low - begin + size] += 0.5 * weights
    return weights_of_ticks.tolist()


def _own(reading: Intervals, row: int) -> tuple[int, int]:
    low, high = int(reading.lower[row]), int(reading.upper[row])
    if reading.clocks is not None and reading.clocks.source[row].is_valid:
        return low - int(reading.clocks.lower[row]), high - int(reading.clocks.upper[row])
    return low, high


def _with_lists(pmf: pa.Array, rows: IntArray, lists: Sequence[list[float] | None]) -> pa.Array:
    """Return lists of which some are others."""
    whole = pa.concat_arrays([pmf, pa.array(lists, pa.list_(pa.float64()))])
    places = np.arange(len(pmf))
    places[rows] = len(pmf) + np.arange(len(rows))
    return whole.take(pa.array(places))


def _check_clocks(first: Intervals, second: Intervals, twice: BoolArray) -> None:
    if first.clocks is None or second.clocks is None:
        return
    one, other = first.clocks, second.clocks
    differ = np.asarray(pc.not_equal(one.source, other.source).fill_null(False))
    differ |= (one.lower != other.lower) | (one.upper != other.upper)
    bad = differ & twice
    if bad.any():
        message = (
            "its two readings, an hour apart, are in two epochs of its clock: write an offset such as +02:00 "
            "in the stamps, or let no epoch begin in that hour"
        )
        raise TraceError(row_faults(bad, message, values=one.source))
