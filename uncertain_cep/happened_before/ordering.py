"""``uc.order``: the earlier one of two events, and how sure that is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError, TraceError, absent_columns
from uncertain_cep.executor.checked_events import names_of
from uncertain_cep.happened_before.ordered_events import OrderedEvents
from uncertain_cep.happened_before.pair_probabilities import pair_probabilities
from uncertain_cep.plan import MatchOptions
from uncertain_cep.plan.lengths import ticks_in
from uncertain_cep.running.resource_limits import looked_at
from uncertain_cep.running.threads import threads_or_all
from uncertain_cep.timeline.domain import Names
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.traces.frames import event_table, library_of, like

__all__ = ["PAIRS", "order", "ordered_pairs"]

PAIRS: Final = ("open", "all", "cover")
"""The pairs of events that may be asked for."""

_RESULT: Final = ("x", "y", "before", "after", "neither")


@public
def order(
    events: Any,
    by: str | Sequence[str] | None = None,
    within: Duration | int | None = None,
    pairs: str = "open",
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    sources: bool = True,
    threads: int | None = None,
    timeout: float | None = None,
    memory_limit: str | int | None = None,
) -> Any:
    """Return pairs of events with how likely each of the two happened first.

    Parameters
    ----------
    events : pyarrow.Table or RecordBatchReader, pandas or Polars DataFrame
        As for :func:`uncertain_cep.match`, moments or such that last. Types do not matter.
    by : str or sequence of str, optional
        Put only events in order that have equal values in these columns; a null is equal to none.
    within : str, timedelta or int, optional
        Only pairs that can happen so close to each other: a length such as ``"5s"``, or ticks.
    pairs : {"open", "all", "cover"}
        ``open``: pairs in no certain order. ``all``: every pair. ``cover``: pairs in certain order with no
        event between them in certain order, which are the edges of a drawing: all other certain orders
        follow.
    names, tick, sources, threads, timeout, memory_limit
        As for :func:`uncertain_cep.match`.

    Returns
    -------
    the same kind of frame as the events
        The columns of ``by``; ``x`` and ``y``, the ids of the two events; ``before``, ``after`` and
        ``neither``, the probabilities, float64, that x is before y, that y is before x, and that both have a
        tick in common and no sequence tells them apart. They sum to 1. Pairs that are most in doubt come
        first, by ``before * after``; with ``cover`` those that begin first do.

    Raises
    ------
    OptionError
        If ``by``, ``within`` or ``pairs`` has no such value, or if records of an ordered source overlap.
    TraceError, TimeLimitError, MemoryLimitError
        As of :func:`uncertain_cep.match`.

    Notes
    -----
    All is said given that both events happened. One that lasts is before another one if it ends before that
    begins. Exact, in O(n log n + rows) for uniform times; each row whose times have probabilities of their
    own, or are those of two clocks with jitter, or of an event that lasts and may be first or last, costs a
    few confidences.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["A", "B", "C"], "id": [1, 2, 3], "lower": [0, 2, 5], "upper": [2, 4, 6]})
    >>> uc.order(events).to_pylist()
    [{'x': 1, 'y': 2, 'before': 0.8888888888888888, 'after': 0.0, 'neither': 0.1111111111111111}]
    >>> [(row["x"], row["y"]) for row in uc.order(events, pairs="cover").to_pylist()]
    [(1, 3), (2, 3)]
    """
    options = MatchOptions.among(locals())
    if library_of(events) == "pyspark":
        raise OptionError("order reads frames in this process: collect the events, with toArrow()")
    keys = names_of(by)
    return like(ordered_pairs(event_table(events, options.names), keys, within, pairs, options), events)


def ordered_pairs(
    table: pa.Table, by: Sequence[str], within: Duration | int | None, pairs: str, options: MatchOptions
) -> pa.Table:
    """Do what :func:`order` does for a table of events, with its options in one."""
    if pairs not in PAIRS:
        raise OptionError(f"pairs={pairs!r} is unknown: use {', '.join(PAIRS)}")
    if absent := [name for name in by if name not in table.column_names]:
        raise TraceError(absent_columns(absent, table.column_names, advice="by= names columns of the events"))
    if taken := [name for name in by if name in _RESULT]:
        raise OptionError(f"by={taken[0]!r} is the name of a column of the result: rename it")
    with looked_at(options.limit):
        events = OrderedEvents.of(table, by, options)
        slack = None if within is None else ticks_in(within, events.events.plan.domain, "within")
        return _rows(events, by, pairs, slack, options)


def _rows(
    events: OrderedEvents, by: Sequence[str], pairs: str, slack: int | None, options: MatchOptions
) -> pa.Table:
    order_ = events.order
    if pairs == "cover":
        x, y = order_.covers()
        if slack is not None:
            near = order_.lower[y] - order_.upper[x] <= slack
            x, y = x[near], y[near]
    else:
        x, y = order_.open_pairs() if pairs == "open" else order_.pairs_within(slack)
    threads = threads_or_all(options.threads)
    # Where only one order is certain, it is x that is before y.
    turned = order_.is_before(y, x)
    x, y = np.where(turned, y, x), np.where(turned, x, y)
    before, after, neither = pair_probabilities(events, (x, y), threads)
    place = np.lexsort((order_.upper[x], order_.lower[x]))
    if pairs != "cover":
        place = place[np.argsort(-(before * after)[place], kind="stable")]
    table = events.events.table
    ids = table.column(events.events.plan.names.id)
    columns = {name: table.column(name).take(pa.array(x[place])) for name in by}
    columns |= {"x": ids.take(pa.array(x[place])), "y": ids.take(pa.array(y[place]))}
    probabilities = zip(_RESULT[2:], (before, after, neither), strict=True)
    return pa.table(columns | {name: pa.array(values[place]) for name, values in probabilities})
