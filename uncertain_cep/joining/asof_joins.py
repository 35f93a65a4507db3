"""``uc.join_asof``: the event of another table that was the nearest one at the time of each event.

Of the right events that are not later than the left one, its partner is the latest. For the left event l at t
and a right event r at s that is ``s <= t - k`` (k is 1 without exact matches), and no other right event n of
the same values is in ``[s + c, t - k]``, with c = 0 where n stands behind r in its table and wins a tie, else
1. Where times are uniform and independent these are sums of polynomials (`uniform_partners`). Else the engine
is asked: they are conditions on differences of times, group by group.

**Candidates.** Let a right event surely have happened, and be in reach of l in every world: not later, and
within the tolerance. Let s be the largest of the lower bounds of such events. A right event that ends before
s is not the partner of l: the sure one is later than it, and in reach. Nor need anyone ask whether it is
between two others: if it is, so is the sure one, which forbids as much. So the candidates of l are those
whose intervals reach from s (or from l's lower bound less the tolerance) to l's upper bound. Forward is the
mirror image.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from uncertain_cep.boundary import public
from uncertain_cep.errors import OptionError
from uncertain_cep.executor.checked_events import names_of
from uncertain_cep.joining.joined_rows import are_on_spark, joined_rows, two_tables
from uncertain_cep.joining.near_intervals import Intervals, overlapping
from uncertain_cep.joining.times_of_ends import ENDS
from uncertain_cep.joining.two_sides import Part, TwoSides
from uncertain_cep.joining.uniform_partners import Reach, are_uniform, uniform_partners
from uncertain_cep.plan import MatchOptions
from uncertain_cep.plan.lengths import ticks_in
from uncertain_cep.query.time_conditions import FAR
from uncertain_cep.running.resource_limits import looked_at
from uncertain_cep.timeline.domain import Names, TimeDomain
from uncertain_cep.timeline.durations import Duration
from uncertain_cep.traces.frames import like

__all__ = ["PartnerOptions", "join_asof", "joined_asof"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]

DIRECTIONS: Final = ("backward", "forward", "nearest")
TIES: Final = ("one", "all")


@public
def join_asof(
    left: Any,
    right: Any,
    by: str | Sequence[str] | None = None,
    direction: str = "backward",
    allow_exact_matches: bool = True,
    tolerance: Duration | int | None = None,
    ties: str = "one",
    left_at: str = "begin",
    right_at: str = "end",
    *,
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
    sources: bool = True,
    threads: int | None = None,
    timeout: float | None = None,
    memory_limit: str | int | None = None,
) -> Any:
    """Return for each event of one table the last one of another that was before it, and how sure that is.

    Parameters
    ----------
    left, right : pyarrow.Table or RecordBatchReader, pandas, Polars or Spark DataFrame
        Events as for :func:`uncertain_cep.match`, moments or such that last. Types do not matter. Of Spark
        both, with a ``tolerance``: its rows have no order, so of tied ones those with larger ids come later.
    by : str or sequence of str, optional
        Columns of both in which the two rows have equal values; a null is equal to none.
    direction : {"backward", "forward", "nearest"}
        Whether the partner is the last right event that is not later, the first that is not earlier, or the
        nearer one of both, of which the earlier one wins a tie. ``nearest`` takes uniform times: no pmf, no
        end that depends on the other one, and no two of a left event and its candidates by one clock.
    allow_exact_matches : bool
        Whether a right event at the same tick can be the partner.
    tolerance : str, timedelta or int, optional
        The most that may lie between the two: a length such as ``"5s"``, or ticks.
    ties : {"one", "all"}
        Of several right events that are as near: ``one`` takes the last row of ``right`` backward and the
        first one forward, as pandas does, where sequences of their source do not say otherwise; ``all`` takes
        all.
    left_at, right_at : {"begin", "end"}
        At which end each event that lasts is.
    names, tick, sources, threads, timeout, memory_limit
        As for :func:`uncertain_cep.match`.

    Returns
    -------
    the same kind of frame as ``left``
        For each left event a row for each right one that can be its partner, and one with nulls for the case
        that there is none, if it is possible: columns as of :func:`uncertain_cep.join`. The probabilities of
        the rows of an event sum to the probability that it happened (1, if its table does not say), but for
        ``ties="all"``.

    Raises
    ------
    OptionError
        If an option has no such value, if columns or ticks of the sides do not go together, if records of an
        ordered source overlap, or if ``nearest`` is asked of times that are not uniform and independent.
    TraceError, ConfidenceCostError, TimeLimitError, MemoryLimitError
        As of :func:`uncertain_cep.match`.

    Notes
    -----
    Certain times give what ``pandas.merge_asof`` gives. Exact, as confidences are; events of one clock move
    together. O((n + m) log m + rows), and a probability for each row. Where times are uniform, and no two
    of a left event and its candidates have one clock, its cost grows with the candidates and not with ticks.
    Else it grows with the ticks of both intervals: choose a tick that is not finer than the times are.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> task = pa.table({"type": ["Task"], "id": ["t"], "lower": [5], "upper": [5]})
    >>> samples = pa.table({
    ...     "type": ["Cpu"] * 2, "id": [2, 3], "lower": [3, 4], "upper": [6, 5], "load": [0.9, 0.2]
    ... })
    >>> for row in uc.join_asof(task, samples).to_pylist():
    ...     print(row)
    {'left_id': 't', 'right_id': 2, 'load': 0.9, 'probability': 0.125}
    {'left_id': 't', 'right_id': 3, 'load': 0.2, 'probability': 0.875}
    """
    options = MatchOptions.among(locals())
    partner = PartnerOptions(direction, allow_exact_matches, tolerance, ties, left_at, right_at)
    if are_on_spark(left, right, options):
        from uncertain_cep.joining.spark_joins import joined_frames

        partner.refuse_order_of_rows(right.columns, options)
        compute = partial(joined_asof, by=names_of(by), partner=partner)
        return joined_frames(left, right, names_of(by), partner.reach, compute, options)
    return like(joined_asof(*two_tables(left, right, options), names_of(by), partner, options), left)


class PartnerOptions(NamedTuple):
    """The options of :func:`join_asof` that say which right event is the partner."""

    direction: str = "backward"
    allow_exact_matches: bool = True
    tolerance: Duration | int | None = None
    ties: str = "one"
    left_at: str = "begin"
    right_at: str = "end"

    def refuse_order_of_rows(self, columns: Sequence[str], options: MatchOptions) -> None:
        """Raise OptionError if rows of a Spark frame would be ordered by a sequence."""
        names = options.names
        if self.ties == "one" and options.sources and {names.source, names.sequence} <= {*columns}:
            raise OptionError(
                f"rows of a Spark frame have no order beside a column {names.sequence!r}: take all of those "
                "that tie, ties='all', or drop the column"
            )

    def reach(self, domain: TimeDomain) -> tuple[int, int]:
        """Return how many ticks before a left event and behind it a partner may be; OptionError if any."""
        if self.tolerance is None:
            raise OptionError(
                "join_asof of Spark frames needs a tolerance, such as tolerance='1h': without one every "
                "earlier row could be the partner, and all rows would have to be in one place"
            )
        ticks = ticks_in(self.tolerance, domain, "tolerance")
        return 0 if self.direction == "forward" else ticks, 0 if self.direction == "backward" else ticks


def joined_asof(
    left: pa.Table, right: pa.Table, by: Sequence[str], partner: PartnerOptions, options: MatchOptions
) -> pa.Table:
    """Do what :func:`join_asof` does for tables of events, with its options in two."""
    for name, allowed in (
        ("direction", DIRECTIONS), ("ties", TIES), ("left_at", ENDS), ("right_at", ENDS),
    ):  # fmt: skip
        value = getattr(partner, name)
        if value not in allowed:
            raise OptionError(f"{name}={value!r} is unknown: use one of {', '.join(allowed)}")
    with looked_at(options.limit):
        sides = TwoSides.of(left, right, by, options, (partner.left_at, partner.right_at))
        tolerance, domain = partner.tolerance, sides.events.plan.domain
        reach = None if tolerance is None else ticks_in(tolerance, domain, "tolerance")
        gap = int(not partner.allow_exact_matches)
        asof = _AsOf(sides, partner.direction, gap, reach, partner.ties == "all")
        rows = asof.nearest() if partner.direction == "nearest" else asof.rows(options.threads)
        return joined_rows(sides, options.names, by, *rows)


@dataclass(frozen=True)
class _AsOf:
    """The partners of left events in one direction; ticks at least ``gap`` and at most ``reach`` apart."""

    sides: TwoSides
    direction: str
    gap: int
    reach: int | None
    takes_all: bool

    @property
    def forward(self) -> bool:
        """Whether a partner is not earlier."""
        return self.direction == "forward"

    def rows(self, threads: int | None) -> tuple[Int64, Int64, Float64]:
        """Return the left and right rows, -1 for none, and the probabilities of all partners."""
        x, y, has_sure = self._candidates()
        early, late = ("l", "{}") if self.forward else ("{}", "l")

        def apart(other: str) -> list[str]:
            difference = f"TIME({late.format(other)}) - TIME({early.format(other)})"
            return [f"{difference} >= {self.gap}"] + (
                [] if self.reach is None else [f"{difference} <= {self.reach}"]
            )

        # How far a right event must be from the partner to be nearer to l: nothing, if it wins a tie.
        wins = "n.place - r.place" if self.forward else "r.place - n.place"
        further = "1" if self.takes_all else f"LEAST(1, GREATEST(0, {wins}))"
        nearer = "TIME(r) - TIME(n)" if self.forward else "TIME(n) - TIME(r)"
        between = [f"{nearer} >= {further}", apart("n")[0]]
        where = " AND ".join(["[part]", *apart("r"), *between])
        count = self.sides.left.num_rows
        is_uniform = are_uniform(self.sides.events, x, y + count, count)
        parts = [self._uniform(np.flatnonzero(is_uniform), x[is_uniform[x]], y[is_uniform[x]])]
        searched = np.flatnonzero(~is_uniform)
        x, y = x[~is_uniform[x]], y[~is_uniform[x]]
        pairs = Part(searched, searched, y, x)
        parts += self.sides.confidences(
            pairs, f"PATTERN AND(left l, right r, !right n) WHERE {where}", threads
        )
        unsure = searched[~has_sure[searched]]
        alone = ~has_sure[x]
        where = " AND ".join(["[part]", *apart("n")])
        parts += self.sides.confidences(
            Part(unsure, unsure, y[alone], x[alone]), f"PATTERN AND(left l, !right n) WHERE {where}", threads
        )
        left, right, probability = (np.concatenate(columns) for columns in zip(*parts, strict=True))
        return left, right, probability

    def _uniform(self, left: Int64, x: Int64, y: Int64) -> tuple[Int64, Int64, Float64]:
        """Return the partners of left events whose times, and those of their candidates, are uniform."""
        sides = self.sides
        place = sides.place[sides.of_right][y]
        order = np.lexsort((-place if self.forward else place, x))
        x, y = x[order], y[order]
        low, high = sides.events.times.lower, sides.events.times.upper
        if self.forward:
            low, high = -high, -low
        width = None if self.reach is None else self.reach - self.gap
        partner, alone = uniform_partners(
            Reach(low, high, self.gap, width, self.takes_all, self.direction == "nearest"),
            left,
            x,
            y + sides.left.num_rows,
            sides.events.probability,
        )
        with_one, without = partner > 0.0, alone > 0.0
        return (
            np.concatenate((x[with_one], left[without])),
            np.concatenate((y[with_one], np.full(int(without.sum()), -1))),
            np.concatenate((partner[with_one], alone[without])),
        )

    def nearest(self) -> tuple[Int64, Int64, Float64]:
        """Return the same as :meth:`rows` of partners on either side.

        An OptionError says that times are not uniform and independent.
        """
        sides = self.sides
        x, y = self._near_candidates()
        count = sides.left.num_rows
        is_uniform = are_uniform(sides.events, x, y + count, count)
        if (refused := np.flatnonzero(~is_uniform)).size:
            raise OptionError(
                f"direction='nearest' takes uniform times: row {refused[0] + 1} of the left table, or a "
                "row of the right one near it, has a pmf, or an end that is not uniform, or two of them are "
                "by one clock: join both ways"
            )
        return self._uniform(np.arange(count), x, y)

    def _near_candidates(self) -> tuple[Int64, Int64]:
        """Return the rows of pairs that may be nearest: none is further away than a sure one can be."""
        sides, times = self.sides, self.sides.events.times
        left, right = sides.of_left, sides.of_right
        group, lower, upper = sides.group, times.lower, times.upper
        certain = (sides.events.probability[right] >= 1.0) & (group[right] >= 0)
        groups, low, high = group[right][certain], lower[right][certain], upper[right][certain]
        before = _largest_lower(group[left], lower[left] - self.gap, groups, low, high)
        behind = -_largest_lower(group[left], -upper[left] - self.gap, groups, -high, -low)
        furthest = np.where(before > -FAR, upper[left] - before, FAR)
        furthest = np.minimum(furthest, np.where(behind < FAR, behind - lower[left], FAR))
        if self.reach is not None:
            furthest = np.minimum(furthest, self.reach)
        reach = Intervals(group[left], lower[left] - furthest, upper[left] + furthest)
        return overlapping(reach, Intervals(group[right], lower[right], upper[right]))

    def _candidates(self) -> tuple[Int64, Int64, NDArray[np.bool_]]:
        """Return the rows of pairs that may be partners, and which left rows surely have one."""
        sides, times = self.sides, self.sides.events.times
        lower, upper = (times.upper, times.lower) if self.forward else (times.lower, times.upper)
        if self.forward:
            lower, upper = -lower, -upper
        left, right = sides.of_left, sides.of_right
        group = sides.group
        certain = (sides.events.probability[right] >= 1.0) & (group[right] >= 0)
        sure = _largest_lower(
            group[left],
            lower[left] - self.gap,
            group[right][certain],
            lower[right][certain],
            upper[right][certain],
        )
        has_sure = sure > -FAR
        if self.reach is not None:
            has_sure &= sure >= upper[left] - self.reach
        furthest = np.full_like(sure, -FAR) if self.reach is None else lower[left] - self.reach
        reach = Intervals(
            group[left], np.where(has_sure, np.maximum(sure, furthest), furthest), upper[left] - self.gap
        )
        x, y = overlapping(reach, Intervals(group[right], lower[right], upper[right]))
        return x, y, has_sure


def _largest_lower(group: Int64, bound: Int64, groups: Int64, lower: Int64, upper: Int64) -> Int64:
    """Return the largest lower of the group's intervals with ``upper <= bound``; -FAR if there are none.

    O((n + m) log m).
    """
    if not len(groups):
        return np.full(len(group), -FAR)
    order = np.lexsort((upper, groups))
    groups, lower, upper = groups[order], lower[order], upper[order]
    scale, rank = np.unique(upper, return_inverse=True)
    steps = len(scale) + 1
    keys = groups * steps + rank.reshape(-1)
    place = np.searchsorted(keys, group * steps + np.searchsorted(scale, bound, side="right")) - 1
    # A later group begins anew: all that it has is larger than what stands before it.
    lows, low_rank = np.unique(lower, return_inverse=True)
    running = np.maximum.accumulate(groups * len(lows) + low_rank.reshape(-1)) % len(lows)
    is_there = (place >= 0) & (groups[np.maximum(place, 0)] == group)
    return np.where(is_there, lows[running[np.maximum(place, 0)]], -FAR)
