"""When matches happened, each given that it did: the law of their last or first time, or of one event's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.flat_lists import end_to_end, starts_of
from uncertain_cep.candidates.existence import existence
from uncertain_cep.config.limits import MOST_TICKS_OF_A_LAW
from uncertain_cep.errors import OptionError
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.results.box_parts import Boxes, Confidences, Events, pieces_of
from uncertain_cep.results.boxes import weighed_matches
from uncertain_cep.results.matched_events import MatchedEvents

__all__ = ["BucketShares", "MatchTimes", "first_times_by_bucket", "match_times"]

Int64 = NDArray[np.int64]


class MatchTimes(NamedTuple):
    """The laws of the times of matches, in their order.

    Attributes
    ----------
    lower, upper : pyarrow.Array
        First and last time that is possible, of the type of the events' times.
    pmf : pyarrow.Array of list of double
    """

    lower: pa.Array
    upper: pa.Array
    pmf: pa.Array


class BucketShares(NamedTuple):
    """P(match and its first time is in a bucket), for each match and each bucket where it can be.

    Attributes
    ----------
    match : (n,) int64
    bucket : (n,) int64
        First tick of the bucket; one starts at every multiple of its length.
    expected : (n,) float64
    """

    match: Int64
    bucket: Int64
    expected: NDArray[np.float64]


def first_times_by_bucket(
    plan: EvaluationPlan, table: pa.Table, matches: pa.Table, every: int
) -> BucketShares:
    """Return how likely each match began in each bucket of so many ticks.

    Raises
    ------
    OptionError
        If any of several events can be the first one, or as :func:`uncertain_cep.posteriors` does.
    ConfidenceCostError, TraceError
        If a confidence takes too many steps.

    Notes
    -----
    A confidence for each match and bucket. Summed over matches these are the expected counts of
    ``RETURN EXPECTED COUNT EVERY``.
    """
    parts: list[tuple[Int64, Int64, NDArray[np.float64]]] = []
    exists = existence(table, plan.names.probability)
    for found, events, groups in weighed_matches(plan, table, matches):
        if not len(found.match):
            continue
        # Boxes are of times alone, given that all events of the match happened.
        happened = np.ones(len(events.start) - 1)
        if exists is not None:
            happened = np.multiply.reduceat(exists.probability[found.row], events.start[:-1])
        chosen = _chosen(found, "first")
        for some, confidences in groups:
            event = chosen[some]
            begin = events.lower[event] // every
            sizes = events.upper[event] // every - begin + 1
            for part in pieces_of(sizes):
                each, which = np.repeat(some[part], sizes[part]), np.repeat(event[part], sizes[part])
                bucket = (end_to_end(begin[part], sizes[part])[0]) * every
                first = np.maximum(bucket, events.lower[which])
                last = np.minimum(bucket + (every - 1), events.upper[which])
                expected = confidences.of(Boxes(each, which, first, last)) * happened[each]
                parts.append((found.match[events.start[each]], bucket, expected))
    none = np.zeros(0, dtype=np.int64)
    match, bucket, expected = (
        np.concatenate(columns) for columns in zip((none, none, np.zeros(0)), *parts, strict=True)
    )
    there = expected > 0.0
    return BucketShares(match[there], bucket[there], expected[there])


def match_times(plan: EvaluationPlan, table: pa.Table, matches: pa.Table, at: str) -> MatchTimes:
    """Return when each match happened, given that it did.

    Parameters
    ----------
    plan : EvaluationPlan
    table : pyarrow.Table
        The events that were matched, of the model.
    matches : pyarrow.Table
    at : str
        ``last`` or ``first`` time of the match, or the variable of an event; of one that lasts with
        ``.begin`` or ``.end``.

    Raises
    ------
    OptionError
        If no single event tells the time, if it can be at more than ``MOST_TICKS_OF_A_LAW`` ticks, or as
        :func:`uncertain_cep.posteriors` does.
    ConfidenceCostError, TraceError
        If a confidence takes too many steps.
    """
    laws: list[tuple[int, NDArray[np.float64]]] = [(0, np.ones(1))] * matches.num_rows
    for found, events, groups in weighed_matches(plan, table, matches):
        if not len(found.match):
            continue
        name, end = _end_of(found.plan, at)
        chosen, sides = _chosen(found, name), events.sides
        _check_end_named(events, chosen, at, end)
        at_end = end == "end" and len(sides) > 1
        times = sides[at_end][0]
        _check_countable(times, chosen, found, at)
        for some, confidences in groups:
            of_time = confidences.at_ends() if at_end else confidences
            for match, first, law in _laws(times, chosen, some, of_time):
                number = int(found.match[events.start[match]])
                if not law.any():
                    raise OptionError(f"row {number} of the matches is no match of the query in any world")
                laws[number] = first, law
    # Where the columns hold whole units of several ticks, an interval is of whole units.
    unit = plan.domain.per_unit
    lower, upper = np.zeros((2, len(laws)), dtype=np.int64)
    for number, (first, law) in enumerate(laws):
        support = np.flatnonzero(law > 0.0)
        lower[number] = (first + int(support[0])) // unit * unit
        upper[number] = -(-(first + int(support[-1])) // unit) * unit
    sizes = upper - lower + 1
    starts = starts_of(sizes)
    checkpoint(8 * int(starts[-1]))
    values = np.zeros(int(starts[-1]))
    for number, (first, law) in enumerate(laws):
        support = np.flatnonzero(law > 0.0)
        kept = law[support[0] : support[-1] + 1]
        begin = int(starts[number] + first + support[0] - lower[number])
        values[begin : begin + len(kept)] = kept / kept.sum()
    lists = pa.LargeListArray.from_arrays(pa.array(starts), pa.array(values))
    return MatchTimes(
        plan.domain.times(lower),
        plan.domain.times(upper),
        lists.cast(pa.list_(pa.float64())) if starts[-1] < 2**31 else lists,
    )


def _end_of(plan: EvaluationPlan, at: str) -> tuple[str, str]:
    """Return the event that tells a time, and the end of it if it lasts; "" for none."""
    if at in ("first", "last"):
        return at, "begin" if at == "first" else "end"
    name, _, end = at.partition(".")
    is_end = plan.lasting and end in ("begin", "end")
    return (name, end) if is_end else (at, "")


def _check_end_named(events: Events, chosen: Int64, at: str, end: str) -> None:
    """Raise OptionError if one of some events lasts, and no end is named."""
    if not end and events.ends is not None and events.ends.lasts[chosen].any():
        raise OptionError(f'at="{at}": the events of {at} last, so which end? Name {at}.begin or {at}.end')


def _chosen(found: MatchedEvents, at: str) -> Int64:
    """Return the place of the event that tells the time of each match of one branch, (k,) int64."""
    plan = found.plan
    variables = list(found.variables)
    if at in ("first", "last"):
        component = _end(plan, at)
    elif at in variables:
        component = variables.index(at)
        if plan.components[component].kleene:
            raise OptionError(
                f'at="{at}": {at} takes several events. Name a variable of one event, or say at="last" or '
                'at="first"'
            )
    else:
        raise OptionError(f'at="{at}": a match of the pattern without {at} has no such time')
    places = np.flatnonzero(found.component == component)
    begins = np.flatnonzero(np.diff(found.match[places], prepend=-1))
    # The events of a component stand one behind the other.
    return places[begins if at == "first" else np.append(begins[1:], len(places)) - 1]


def _end(plan: EvaluationPlan, at: str) -> int:
    """Return the component whose first or last event is that of every match."""
    count, before = len(plan.components), plan.event_order.before
    ahead = 0
    for bits in before:
        ahead |= bits
    ends = [j for j in range(count) if not (before[j] if at == "first" else ahead >> j & 1)]
    if len(ends) > 1 or plan.takes_set[ends[0]]:
        raise OptionError(
            f'at="{at}": any of several events of AND(...) can be the {at} one. Name a variable, or leave '
            "at= out"
        )
    return ends[0]


def _check_countable(events: Events, chosen: Int64, found: MatchedEvents, at: str) -> None:
    ticks = events.upper[chosen] - events.lower[chosen] + 1
    if len(ticks) and int(ticks.max()) > MOST_TICKS_OF_A_LAW:
        number = int(found.match[events.start[int(ticks.argmax())]])
        raise OptionError(
            f'at="{at}": the time of row {number} of the matches has {int(ticks.max()):,} ticks, and at most '
            f"{MOST_TICKS_OF_A_LAW:,} are listed with their probabilities. Make the intervals with a longer "
            'tick, such as tick="1s", name a variable whose time is more certain, or leave at= out'
        )


def _laws(
    events: Events, chosen: Int64, some: Int64, confidences: Confidences
) -> Iterator[tuple[int, int, NDArray[np.float64]]]:
    """Yield for some matches the number, the first tick of its time, and P(match and time) for each tick."""
    event = chosen[some]
    sizes = events.upper[event] - events.lower[event] + 1
    for part in pieces_of(sizes):
        own, which, ticks = some[part], event[part], sizes[part]
        at = end_to_end(events.lower[which], ticks)[0]
        law = confidences.of(Boxes(np.repeat(own, ticks), np.repeat(which, ticks), at, at))
        each = np.split(law, np.cumsum(ticks)[:-1])
        yield from zip(own.tolist(), events.lower[which].tolist(), each, strict=True)
