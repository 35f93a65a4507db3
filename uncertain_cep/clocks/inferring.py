"""Bounds of clocks from what cannot be otherwise: a retry starts after the failure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from uncertain_cep.boundary import public
from uncertain_cep.clocks.claims import Claims, ClockedEvents, claims_of, ticks_in
from uncertain_cep.clocks.differences import (
    ORIGIN,
    UNBOUNDED,
    Differences,
    bounds_from_origin,
    first_contradiction,
)
from uncertain_cep.config.limits import FAULT_LIMIT, MAX_TICK
from uncertain_cep.errors import OptionError, TraceError, TraceFault, absent_columns, warn
from uncertain_cep.expressions.codes import places_in
from uncertain_cep.timeline.domain import Names, TimeDomain, lengths_in_ticks
from uncertain_cep.timeline.durations import Duration, format_duration
from uncertain_cep.traces.checks import check_intervals
from uncertain_cep.traces.constraints import AllBefore, Causal, Constraint, Encloses, given_length
from uncertain_cep.traces.faulty_rows import BoolArray, IntArray, row_faults
from uncertain_cep.traces.frames import event_table, library_of, like
from uncertain_cep.traces.offsets import ClockOffset

__all__ = ["infer_offsets"]

Contradictions = Literal["error", "drop"]


@public
def infer_offsets(
    events: Any,
    constraints: Sequence[Constraint],
    *,
    prior: ClockOffset | Duration | int | None,
    reference: str | None = None,
    contradictions: Contradictions = "error",
    epochs: bool = False,
    source: str = "source",
    names: Names | Mapping[str, str] | None = None,
    tick: Duration | None = None,
) -> Any:
    """Return bounds of the offsets of the clocks of events, from constraints that cannot be broken.

    Parameters
    ----------
    events : frame
        As for :func:`match`, with a column that names the clock of each event (null: the times are true);
        ``lower`` and ``upper`` are the times by that clock. Ids are not needed.
    constraints : sequence of constraints
        What `causal`, `encloses` and `all_before` return.
    prior : ClockOffset, str, timedelta, int or None
        What is known beforehand: the most by which any clock is off, such as ``"10min"``, or a number of
        ticks; or what `clock_offset` returns, where a clock that it does not know, and for which it has
        no default, has no bounds yet; or nothing.
    reference : str, optional
        The clock that is right. Without one, and without events of true times, only the prior ties offsets
        to true time.
    contradictions : {"error", "drop"}
        What to do with a constraint on two events that contradicts those before it, in the order of the
        constraints and, in each, of the later events' rows: stop, or leave it out and warn.
    epochs : bool
        Whether a clock that contradicts itself was set or drifted in between. Constraints then count in the
        order of their times, and each contradiction ends an epoch of the clocks it is about.
    source : str
        The column of clocks.
    names, tick
        As for :func:`match`.

    Returns
    -------
    the same kind of frame (a Table for a reader)
        A row for each clock, by name: the column of clocks; with epochs ``from`` and ``until``, the times by
        the clock, of the events' type, at which the epoch begins and the next one does, null for the first
        and the last; ``offset_lo`` and ``offset_hi``, the least and the most that can be added to its times
        to get true ones, null without a bound: durations, or int64 where ticks have no length. `clock_offset`
        takes it as it is, with ``host=`` the column of clocks.

    Raises
    ------
    TraceError
        If the events are not as described; if constraints, or they and the prior, contradict each other:
        with a fault for each of the constraints and its rows.
    QueryError
        If a pattern cannot be asked of the events.
    OptionError
        If an option has no such value.

    Warns
    -----
    UncertainCepWarning
        If a constraint was left out, or is about no event.

    Notes
    -----
    Longest paths in a graph with a node for each clock. Every bound is the tightest that prior and
    constraints imply for the clock alone. Offsets of different clocks are then taken as independent, so a
    confidence under them is an approximation; what is certain or impossible is not.

    Examples
    --------
    >>> import pyarrow as pa
    >>> import uncertain_cep as uc
    >>> events = pa.table({"type": ["Send", "Get", "Send", "Get"], "message": [1, 1, 2, 2],
    ...     "host": [None, "h", "h", None], "lower": [10, 4, 20, 31], "upper": [10, 4, 20, 31]})
    >>> sent = uc.causal("SEQ(Send a, Get b) WHERE a.message = b.message")
    >>> uc.infer_offsets(events, [sent], prior=100, source="host").to_pylist()
    [{'host': 'h', 'offset_lo': 6, 'offset_hi': 11}]
    """
    _check_options(constraints, contradictions, epochs)
    read = _events(events, Names.of(names), tick, source)
    if reference is not None and reference not in read.sources:
        clocks = ", ".join(read.sources[:FAULT_LIMIT]) or "none"
        raise OptionError(f"reference={reference!r}: no event has this clock; the clocks are {clocks}")
    claims = claims_of(read, constraints)
    texts = [str(constraint) for constraint in constraints]
    for number in np.setdiff1d(np.arange(len(texts)), claims.of).tolist():
        warn(f"no two events fit the constraint {texts[number]}: check its types and columns")
    if epochs:
        latest = np.maximum(*(np.where(rows >= 0, read.lower[rows], -MAX_TICK) for rows in claims[:2]))
        claims = Claims(*(column[np.argsort(latest, kind="stable")] for column in claims))
    system = _System(read, claims, _prior(read, prior, reference), reference)
    lower, upper = system.solved(epochs, contradictions == "drop", texts)
    return like(_table(system, lower, upper, source, epochs), events)


def _check_options(constraints: Any, contradictions: str, epochs: Any) -> None:
    if contradictions not in ("error", "drop"):
        raise OptionError(f"contradictions={contradictions!r}: write 'error' or 'drop'")
    if not isinstance(epochs, bool):
        raise OptionError(f"epochs={epochs!r}: write True or False")
    listed = isinstance(constraints, Sequence) and not isinstance(constraints, str)
    if not listed or not all(isinstance(one, Causal | Encloses | AllBefore) for one in constraints):
        raise OptionError("constraints are a list of what causal, encloses and all_before return")


def _events(frame: Any, names: Names, tick: Duration | None, source: str) -> ClockedEvents:
    if library_of(frame) == "pyspark":
        raise OptionError(
            "infer_offsets reads frames in this process: collect what the constraints are about"
        )
    table = event_table(frame, names)
    domain = TimeDomain.of(table.schema, names, tick)
    absent = [name for name in (source, names.type) if name not in table.column_names]
    if absent:
        advice = "The column of clocks can be named, source="
        raise TraceError(absent_columns(absent, table.column_names, of="events", advice=advice))
    faults = []
    for name in (names.lower, names.upper):
        nulls = np.asarray(table.column(name).is_null())
        faults += row_faults(nulls, "an event needs a time: fill it in, or leave the row out", column=name)
    faults = faults or check_intervals(table, names, domain)
    if faults:
        raise TraceError(faults)
    clocks = table.column(source).cast(pa.string())
    sources = sorted(name for name in clocks.unique().to_pylist() if name is not None)
    lower, upper = (domain.ticks(table.column(name)) for name in (names.lower, names.upper))
    start = int(lower.min(initial=MAX_TICK)) if len(lower) else 0
    return ClockedEvents(
        table,
        names,
        domain,
        sources,
        places_in(clocks, pa.array(sources, pa.string())),
        lower - start,
        upper - start,
        start,
    )


def _prior(events: ClockedEvents, prior: Any, reference: str | None) -> tuple[IntArray, IntArray]:
    """Return the bounds of each clock's offset known beforehand, ticks, (k,) int64 each."""
    count = len(events.sources)
    if isinstance(prior, ClockOffset):
        place = places_in(pa.array(events.sources, pa.string()), prior.hosts)
        has_prior = place >= 0
        scale = 1 if prior.in_ticks else events.domain.tick_nanoseconds
        if scale is None:
            raise OptionError(
                'prior: its offsets are lengths of time, but the times are plain ticks: say tick="1ms"'
            )
        bounds = [np.full(count, UNBOUNDED), np.full(count, ~UNBOUNDED)]
        for bound, prior_bound, sign in zip(bounds, (prior.lower, prior.upper), (1, -1), strict=True):
            # Outward where they are no whole ticks.
            bound[has_prior] = sign * (sign * np.asarray(prior_bound)[place[has_prior]] // scale)
            if prior.default is not None:
                bound[~has_prior] = sign * (-prior.default // scale)
        low, high = bounds
    elif prior is None:
        low, high = np.full(count, UNBOUNDED), np.full(count, ~UNBOUNDED)
    else:
        largest = ticks_in(events.domain, given_length(prior, "prior"), "prior")
        low, high = np.full(count, -largest), np.full(count, largest)
    if reference is not None:
        right = events.sources.index(reference)
        if low[right] > 0 or high[right] < 0:
            raise OptionError(f"reference={reference!r}: by the prior this clock is not right")
        low[right] = high[right] = 0
    return low, high


@dataclass(slots=True)
class _System:
    """The constraints on clocks, given the epochs found so far.

    The nodes are the origin; the clocks, one for each epoch; events that are uncertain by their own clock and
    stand on both sides of claims; groups.
    """

    events: ClockedEvents
    claims: Claims
    prior: tuple[IntArray, IntArray]
    reference: str | None
    cuts: dict[int, list[int]] = field(default_factory=dict)
    """For each clock the times at which a new epoch begins, ticks, less the events' start, ascending."""

    @property
    def first_nodes(self) -> IntArray:
        """The node of each clock's first epoch, and the one behind the last, (k + 1,) int64."""
        epochs = [1 + len(self.cuts.get(clock, ())) for clock in range(len(self.events.sources))]
        return np.cumsum([1, *epochs])

    def clock_nodes(self) -> IntArray:
        """Return the node of the clock that stamped each event, (n,) int64."""
        events = self.events
        nodes = np.where(events.source >= 0, self.first_nodes[events.source], ORIGIN)
        for clock, times in self.cuts.items():
            rows = np.flatnonzero(events.source == clock)
            nodes[rows] += np.searchsorted(times, events.lower[rows], side="right")
        return nodes

    def differences(self) -> tuple[Differences, Differences, IntArray, int]:
        """Return the facts, the claims, the facts' events (-1: none), and the number of nodes."""
        events, claims, clock = self.events, self.claims, self.clock_nodes()
        firsts = self.first_nodes
        count = int(firsts[-1])
        on_both = np.intersect1d(claims.first, claims.then)
        loose = on_both[(on_both >= 0) & (events.lower[on_both] < events.upper[on_both])]
        node, low, high = clock.copy(), events.lower.copy(), events.upper.copy()
        node[loose], low[loose], high[loose] = count + np.arange(len(loose)), 0, 0
        groups = count + len(loose)
        members, has_first, has_then = groups + claims.group, claims.first >= 0, claims.then >= 0
        claimed = Differences(
            np.where(has_first, node[claims.first], members),
            np.where(has_then, node[claims.then], members),
            claims.delay
            + np.where(has_first, low[claims.first], 0)
            - np.where(has_then, high[claims.then], 0),
        )
        epochs = np.repeat(np.arange(len(firsts) - 1), np.diff(firsts))
        places = np.arange(1, count)
        lowest, highest = (bounds[epochs] for bounds in self.prior)
        is_low, is_high = lowest != UNBOUNDED, highest != ~UNBOUNDED
        facts = Differences.of(
            (ORIGIN, places[is_low], lowest[is_low]),
            (places[is_high], ORIGIN, -highest[is_high]),
            (clock[loose], node[loose], events.lower[loose]),
            (node[loose], clock[loose], -events.upper[loose]),
        )
        about = np.concatenate([np.full(int(is_low.sum() + is_high.sum()), -1), loose, loose])
        return facts, claimed, about, groups + 1 + int(claims.group.max(initial=-1))

    def solved(self, epochs: bool, drop: bool, texts: Sequence[str]) -> tuple[IntArray, IntArray]:
        """Return the bounds of each epoch's offset, ticks, (e,) int64 each.

        `UNBOUNDED` and its complement stand for none. A TraceError says what contradicts what.
        """
        kept = np.ones(len(self.claims.of), np.bool_)
        facts, claimed, about, nodes = self.differences()
        solution = np.zeros(nodes, np.int64)
        while True:
            cycle, solution = first_contradiction(facts, claimed, kept, solution)
            if cycle is None:
                break
            if epochs and self._cut(cycle, claimed, facts, about):
                facts, claimed, about, nodes = self.differences()
                solution = np.zeros(nodes, np.int64)
                continue
            in_claims = cycle[cycle < len(kept)]
            if not drop:
                excess = int(np.append(claimed.weight, facts.weight)[cycle].sum())
                raise TraceError(self._faults(in_claims, excess, texts))
            kept[in_claims.max()] = False
        self._warn_of_dropped(kept, texts)
        system = Differences.of(claimed.those(kept), facts)
        lower, upper = bounds_from_origin(system, nodes)
        ends = slice(1, int(self.first_nodes[-1]))
        return lower[ends], upper[ends]

    def _cut(self, cycle: IntArray, claimed: Differences, facts: Differences, about: IntArray) -> bool:
        """Begin a new epoch of each clock that a cycle enters and leaves at different times; tell if any."""
        claims, lower = self.claims, self.events.lower
        clocks = np.searchsorted(self.first_nodes, np.arange(self.first_nodes[-1]), side="right") - 1
        right = -1 if self.reference is None else self.events.sources.index(self.reference)
        nodes = np.append(claimed.head, facts.head)[cycle]
        into = np.append(claims.then, about)[cycle]
        out = np.roll(np.append(claims.first, about)[cycle], -1)
        is_cut = False
        for node, one, other in zip(nodes.tolist(), into.tolist(), out.tolist(), strict=True):
            if not 0 < node < len(clocks) or min(one, other) < 0 or clocks[node] == right:
                continue
            if lower[one] != lower[other]:
                times = self.cuts.setdefault(int(clocks[node]), [])
                times.append(int(max(lower[one], lower[other])))
                times.sort()
                is_cut = True
        return is_cut

    def _faults(self, rows: IntArray, excess: int, texts: Sequence[str]) -> list[TraceFault]:
        nanoseconds = self.events.domain.tick_nanoseconds
        by = f"{excess} ticks" if nanoseconds is None else format_duration(excess * nanoseconds)
        head = TraceFault(
            f"constraints contradict each other, or the prior, by {by}: leave out the one that is wrong, or "
            "the row; or, if a clock was set or drifted, let it have several epochs, epochs=True; or leave "
            'out what contradicts what stands before it, contradictions="drop"'
        )
        return [head, *(self._fault(row, texts) for row in rows[:FAULT_LIMIT].tolist())]

    def _fault(self, claim: int, texts: Sequence[str]) -> TraceFault:
        claims = self.claims
        first, then, text = int(claims.first[claim]), int(claims.then[claim]), texts[claims.of[claim]]
        if min(first, then) < 0:
            return TraceFault(f"it takes part in: {text}", row=max(first, then) + 1)
        delay = int(claims.delay[claim])
        if delay >= 0:
            return TraceFault(f"it is not after row {then + 1}, by: {text}", row=first + 1)
        tick = self.events.domain.tick_nanoseconds
        limit = f"{-delay} ticks" if tick is None else format_duration(-delay * tick)
        return TraceFault(f"it is at most {limit} after row {then + 1}, by: {text}", row=first + 1)

    def _warn_of_dropped(self, kept: BoolArray, texts: Sequence[str]) -> None:
        for number, text in enumerate(texts):
            ours = self.claims.of == number
            rows = np.flatnonzero(ours & ~kept)
            if len(rows):
                shown = [
                    " and ".join(
                        str(row + 1)
                        for row in (self.claims.first[claim], self.claims.then[claim])
                        if row >= 0
                    )
                    for claim in rows[:FAULT_LIMIT].tolist()
                ]
                more = ", ..." if len(rows) > FAULT_LIMIT else ""
                warn(
                    f"{len(rows):,} of {int(ours.sum()):,} pairs of the constraint {text} contradict what "
                    f"stands before them and were left out: rows {', '.join(shown)}{more}"
                )


def _table(system: _System, lower: IntArray, upper: IntArray, source: str, epochs: bool) -> pa.Table:
    events = system.events
    domain = events.domain
    counts = np.diff(system.first_nodes)
    columns = {source: pa.array(np.repeat(np.array(events.sources, object), counts).tolist(), pa.string())}
    if epochs:
        cuts = [[time + events.start for time in system.cuts.get(clock, ())] for clock in range(len(counts))]
        for name, padded in (
            ("from", [time for times in cuts for time in (None, *times)]),
            ("until", [time for times in cuts for time in (*times, None)]),
        ):
            held = np.array([time is not None for time in padded], np.bool_)
            times = domain.times(np.array([time or 0 for time in padded], np.int64))
            columns[name] = _masked(times, held)
    for name, bounds, none in (("offset_lo", lower, UNBOUNDED), ("offset_hi", upper, ~UNBOUNDED)):
        held = bounds != none
        columns[name] = _masked(lengths_in_ticks(np.where(held, bounds, 0), domain.tick_nanoseconds), held)
    return pa.table(columns)


def _masked(values: pa.Array, held: BoolArray) -> pa.Array:
    return pc.if_else(pa.array(held), values, pa.scalar(None, values.type))
