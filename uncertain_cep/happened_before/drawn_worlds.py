"""``uc.draw_worlds``: events with certain times, drawn as likely as the model says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.boundary import guarded, public
from uncertain_cep.candidates.event_times import event_times
from uncertain_cep.candidates.sequenced import sequenced
from uncertain_cep.candidates.span_times import with_ends
from uncertain_cep.candidates.ticks_at_random import DrawnTimes
from uncertain_cep.errors import OptionError
from uncertain_cep.executor.checked_events import CheckedEvents
from uncertain_cep.plan import MatchOptions
from uncertain_cep.plan.lasting import with_all_bounds
from uncertain_cep.plan.options import is_whole
from uncertain_cep.running.resource_limits import looked_at
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.timeline.lasting_columns import SPAN_COLUMNS, SPAN_LAWS, has_spans
from uncertain_cep.traces.frames import event_table, library_of, like

__all__ = ["draw_worlds"]

Int64 = NDArray[np.int64]


@public
def draw_worlds(
    events: Any,
    n: int,
    seed: int,
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    timeout: float | None = None,
    memory_limit: str | int | None = None,
) -> Iterator[Any]:
    """Return an iterator over frames with certain times, each a possible world drawn at random.

    Any engine that knows certain times, or your own code, can answer a question in each of them. The share of
    worlds in which something is so estimates its probability p with the standard error
    ``sqrt(p * (1 - p) / n)``, at most 0.016 for 1,000 worlds.

    Parameters
    ----------
    events : pyarrow.Table or RecordBatchReader, pandas or Polars DataFrame
        As for :func:`uncertain_cep.match`.
    n : int
        The number of worlds, at least 1. They are drawn as the iterator is asked for them.
    seed : int
        At least 0. The same seed gives the same worlds; the first ones do not depend on ``n``.
    names, tick
        As for :func:`uncertain_cep.match`.
    timeout, memory_limit
        As for :func:`uncertain_cep.match`, until the first world is drawn.

    Returns
    -------
    iterator of the same kind of frame as the events
        Each has a row for each event that happened in its world, in the order of time; at one tick the
        events of a source are in the order of their sequences. ``lower`` and ``upper`` are the tick at which
        it happened; of events that last, begin and end, in their columns, too. Columns of the model that say
        nothing more are left out: ``pmf``, ``probability``, ``ordered``, the offset of the clock, lengths.
        ``source`` and ``sequence`` stay: they tell which of two events at one tick is the earlier.

    Raises
    ------
    OptionError
        If ``n`` or ``seed`` is no such number, or the frame is one of Spark.
    TraceError
        With every fault, if the events are not those of the model.
    ConfidenceCostError
        If records of an ordered source that overlap have too many ticks.

    Notes
    -----
    A world costs O(m log m) for m events. Every pair of events of one clock moves together, and records of an
    ordered source are drawn in their order, not drawn until they are in it.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B"], "id": [1, 2], "lower": [0, 2], "upper": [3, 5]})
    >>> query = "PATTERN SEQ(A a, B b) WITHIN 9"
    >>> worlds = list(uc.draw_worlds(events, 200, seed=7))
    >>> sum(uc.match(world, query).num_rows for world in worlds) / 200
    0.77
    >>> uc.match(events, query)["confidence"].to_pylist()
    [0.8125]
    """
    options = replace(MatchOptions.among(locals()), takes_spans=True)
    if library_of(events) == "pyspark":
        raise OptionError("draw_worlds reads frames in this process: collect the events, with toArrow()")
    for name, value, fewest in (("n", n, 1), ("seed", seed, 0)):
        if not is_whole(value) or value < fewest:
            raise OptionError(f"{name}={value!r}: it must be a whole number, at least {fewest}")
    with looked_at(options.limit):
        table = with_all_bounds(event_table(events, options.names), options.names.lower)
        worlds = _Worlds(CheckedEvents.of(table, options))
    generator = np.random.default_rng(int(seed))
    return guarded(like(worlds.draw(generator), events) for _ in range(int(n)))


class _Worlds:
    """The worlds of checked events."""

    def __init__(self, events: CheckedEvents) -> None:
        plan, table = events.plan, events.table
        self._events, self._names = events, plan.names
        self._lasting = has_spans(table.column_names)
        times, order, spans = events.times, None, None
        if self._lasting:
            plan, both, spans = with_ends(plan, table)
            times = event_times(plan, both)
        else:
            order = sequenced(plan, table, times.pmfs, times.lower, times.upper)
        self._times = DrawnTimes(times, order, spans)
        self._rank = np.full(table.num_rows, -1) if order is None else order.rank
        self._source = np.full(table.num_rows, -1) if times.offsets is None else times.offsets.clock
        names = self._names
        spare = {names.pmf, names.probability, names.ordered, names.offset_lower, names.offset_upper,
                 names.offset_pmf, *((*SPAN_COLUMNS, *SPAN_LAWS) if self._lasting else ())}  # fmt: skip
        self._kept = table.drop_columns([name for name in table.column_names if name in spare])

    def draw(self, generator: np.random.Generator) -> pa.Table:
        """Return the events of a world."""
        begin, end = self._times.draw(generator)
        happened = np.flatnonzero(generator.random(len(begin)) < self._events.probability)
        source = self._source[: len(begin)]
        keys = (self._rank[happened], source[happened], end[happened], begin[happened])
        rows = happened[np.lexsort(keys)]
        world = self._kept.take(pa.array(rows))
        times = self._events.plan.domain.times
        bounds = {self._names.lower: begin, self._names.upper: end}
        if self._lasting:
            bounds |= dict(zip(SPAN_COLUMNS, (begin, begin, end, end), strict=False))
        for name, ticks in bounds.items():
            column = times(ticks[rows])
            at = world.schema.get_field_index(name)
            world = world.append_column(name, column) if at < 0 else world.set_column(at, name, column)
        return world
