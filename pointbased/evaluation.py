"""The point-based framework as a whole (Zhang et al., section 3): expansion, matching, collapsing."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

import pointbased.columns as col
from confidence.budget import checkpoint, steps_per_call
from confidence.config import EVER
from confidence.pools import AttributeValues, grown
from confidence.predicates.conditions import scratch
from pointbased.automaton import Automaton
from pointbased.collapse import NO_MATCHES, Collapse, PointMatches
from pointbased.columns import NONE
from pointbased.compaction import compact
from pointbased.config import LEAST_ROWS, MOST_PREFIXES, MOST_RUNS
from pointbased.expansion import expand, next_step
from pointbased.match_buffer import new_buffer, with_room
from pointbased.run_loop import DEEPER, PAUSED, match_points
from pointbased.runs import gaps_for
from pointbased.store import Arrivals, CandidateStore, WaitingEvents
from pointbased.witnesses import index_witnesses, set_limits

__all__ = ["PointEvaluation"]

Int64 = NDArray[np.int64]
Float64 = NDArray[np.float64]


class PointEvaluation:
    """An evaluation of one automaton over a stream, event by event or in batches.

    Push events in any order that keeps the promise of :meth:`advance`; over the life of the evaluation every
    match comes out once, whatever the batches. Where all times are certain (``lower == upper``) it is a
    SASE engine: every event has one point, and skip till next takes the first event that it can.

    Parameters
    ----------
    automaton : Automaton
    merging : bool
        Whether runs with the same computation state are merged. It changes no answer.
    nelt : bool
        Whether prefixes are left alone behind their NELT. It changes no answer.
    most_steps : float
        Most multiplications to spend on the confidence of one signature whose gaps are coupled.
    std_error : float
        Standard error of an estimate where the exact value takes more; 0: none is wanted.
    seed : int
        The same seed gives the same estimates.

    Notes
    -----
    A signature costs O(l * U**2) under skip till any and O(l * U**3) under skip till next, for l components
    and U ticks in an interval; without merging O(U**l). State is bounded by the runs that the window reaches.
    """

    def __init__(
        self,
        automaton: Automaton,
        *,
        merging: bool = True,
        nelt: bool = True,
        most_steps: float = math.inf,
        std_error: float = 0.0,
        seed: int = 0,
    ) -> None:
        self._automaton = automaton
        self._rules = automaton.rules(merging=merging, nelt=nelt)
        self._waiting = WaitingEvents()
        self._store = CandidateStore(automaton)
        self._witnesses = index_witnesses(self._store.candidates, 0, automaton.components, automaton.pools)
        self._indexed = self._store.version
        self._buffer = new_buffer(0, 0, np.zeros(0, dtype=np.int64))
        self._collapse = Collapse(automaton, most_steps, std_error, seed)
        self._gaps = gaps_for(1)
        self._depth = automaton.components
        self._work = scratch(self._store.conditions, self._depth)
        self._safe: int | None = None
        # The last ticks of what has been pushed, and of what has been expanded in part at least.
        self._last: int | None = None
        self._begun: int | None = None
        self._due = 0

    @property
    def size(self) -> int:
        """Rows held: candidates, prefixes and runs, those not yet swept included."""
        return self._waiting.count + self._swept_size

    @property
    def _swept_size(self) -> int:
        return self._store.count + int(self._buffer.counts[col.NODES] + self._buffer.counts[col.RUNS])

    def push(
        self,
        component: Int64,
        partition: Int64,
        lower: Int64,
        upper: Int64,
        event: Int64,
        pmf_offset: Int64 | None = None,
        values: AttributeValues | None = None,
        pmf: Float64 | None = None,
        group: Int64 | None = None,
    ) -> PointMatches:
        """Take events in: one row for each event and component that it can fill, all of an event at once.

        Parameters
        ----------
        component : (k,) int64
            Whose type and conditions on one event hold. A witness of a pool, see
            :class:`pointbased.automaton.Automaton`, has its number behind those of the components.
        partition : (k,) int64
            Dense numbers from 0, the same for events that agree on the partition attributes; for a witness
            those of the groups of its pool.
        lower, upper : (k,) int64
            Ticks, inclusive; with an explicit pmf best without ticks of probability 0 at the ends.
        event : (k,) int64
            Serial number; an event is used at most once in a match.
        pmf_offset : (k,) int64 or None
            Where the probabilities of the interval start in ``pmf``; -1 or None: uniform.
        values : AttributeValues or None
            What the formulas read; None if there are none.
        pmf : (m,) float64 or None
        group : (k, pools) int64 or None
            For each candidate the group of the witnesses of each pool that are forbidden in the matches that
            begin with it; -1: none. None if there are no pools. Only contiguity looks at those of later
            components, to prune.

        Returns
        -------
        PointMatches
            None of them: matches come out as time advances.

        Raises
        ------
        ValueError
            If an event begins before a tick that :meth:`advance` was told to be safe.
        """
        if len(component):
            if self._safe is not None and int(lower.min()) < self._safe:
                raise ValueError(f"an event begins at {int(lower.min())}, before the safe tick {self._safe}")
            self._last = _latest(self._last, upper)
            count = len(component)
            if pmf_offset is None or pmf is None:
                pmf_offset, pmf = np.full(count, NONE), np.zeros(0)
            values = self._no_values(count) if values is None else values
            if group is None:
                group = np.full((count, self._automaton.pools), NONE)
            self._waiting.add(
                Arrivals(component, partition, lower, upper, event, pmf_offset, group, values, pmf)
            )
            self._make_room(int(partition.max()) + 1, int((upper - lower).max()) + 1)
        return NO_MATCHES

    def _no_values(self, count: int) -> AttributeValues:
        """Return values for formulas that read none."""
        columns = self._store.values.values
        return AttributeValues._make(np.zeros((len(held), count), dtype=held.dtype) for held in columns)

    def _make_room(self, partitions: int, longest: int) -> None:
        heads = self._buffer.heads
        heads_before = len(heads)
        if partitions * self._rules.states > heads_before:
            heads = grown(heads, partitions * self._rules.states)
            heads[heads_before:] = NONE
            self._buffer = self._buffer._replace(heads=heads)
        if longest > len(self._gaps.weight):
            self._gaps = gaps_for(2 * longest)

    def advance(self, safe: int) -> PointMatches:
        """Move time on.

        Parameters
        ----------
        safe : int
            No event to come has a smaller lower bound, ticks: ``t_emit`` of the paper. A tick before the last
            one is no news.

        Returns
        -------
        PointMatches
            Those whose last event, and every gap that has to stay free, is over by then.

        Raises
        ------
        ValueError
            If there are more than ``MOST_RUNS`` runs, or ``MOST_PREFIXES`` prefixes.
        CostlySignatureError
            If events couple the gaps of a match so much that its confidence takes more than ``most_steps``,
            and it is not left to estimate.
        """
        if self._safe is not None and safe <= self._safe:
            return NO_MATCHES
        begun = self._waiting.due(safe)
        for arrivals in begun:
            self._store.add(arrivals)
            self._begun = _latest(self._begun, arrivals.upper)
        if not begun and self._settled:
            self._safe = safe
            return NO_MATCHES
        matches = []
        while self._safe is None or self._safe < safe:
            step = next_step(self._store.candidates, self._store.count, safe)
            if step is not None:
                self._feed(step)
            self._safe = safe if step is None else step
            matches.append(self._release(self._safe))
        return PointMatches.joined(matches)

    @property
    def _settled(self) -> bool:
        """Whether every point of the events that have begun was matched, and no match waits."""
        over = self._begun is None or (self._safe is not None and self._begun < self._safe)
        return over and not self._buffer.counts[col.COMPLETES]

    def close(self) -> PointMatches:
        """Return all matches that are left: there are no more events."""
        ticks = [tick for tick in (self._last, self._safe) if tick is not None]
        if not ticks:
            return NO_MATCHES
        # What is left then waits for what could come in the gap behind its last event.
        return PointMatches.joined([self.advance(max(ticks) + 1), self._release(EVER)])

    def _feed(self, stop: int) -> None:
        """Expand and match the points before a tick."""
        automaton = self._automaton
        if automaton.contiguous:
            self._index()
        partitions = len(self._buffer.heads) // self._rules.states
        points = expand(self._store.candidates, self._store.count, stop, automaton.components, partitions)
        cursor = np.array([0, 0, NONE, NONE, 0], dtype=np.int64)
        while room_needed := match_points(
            points, cursor, self._store.candidates, self._buffer, self._rules, self._store.conditions,
            self._work, self._gaps, steps_per_call(),
        ):  # fmt: skip
            checkpoint()
            if room_needed == PAUSED:
                continue
            if room_needed == DEEPER:
                self._depth *= 2
                self._work = scratch(self._store.conditions, self._depth)
                continue
            self._buffer = with_room(self._buffer, room_needed)
            if self._buffer.counts[col.RUNS] > MOST_RUNS:
                raise ValueError(f"there are more than {MOST_RUNS:,} runs at a time: intervals are too long")
            if self._buffer.counts[col.NODES] > MOST_PREFIXES:
                raise ValueError(
                    f"there are more than {MOST_PREFIXES:,} beginnings of matches at a time: choose a "
                    "shorter WITHIN, or predicates that leave fewer events"
                )

    def _index(self) -> None:
        """Bring the index of the witnesses, and what contiguity makes of it, up to the candidates held."""
        store, automaton = self._store, self._automaton
        if not automaton.pools or self._indexed == store.version:
            return
        self._indexed = store.version
        self._witnesses = index_witnesses(
            store.candidates, store.count, automaton.components, automaton.pools
        )
        if automaton.contiguous:
            set_limits(
                store.candidates, store.count, automaton.components, self._witnesses, automaton.pools - 1
            )

    def _release(self, safe: int) -> PointMatches:
        store = self._store
        if self._buffer.counts[col.COMPLETES]:
            self._index()
        matches = self._collapse.release(
            store.candidates, self._buffer, store.conditions, self._work, self._witnesses, safe
        )
        if self._swept_size > self._due:
            number, self._buffer = compact(store.candidates, store.count, self._buffer, self._automaton, safe)
            store.keep(number)
            # Sweeping when the state has doubled makes a sweep O(1) a row.
            self._due = 2 * self._swept_size + LEAST_ROWS
        return matches


def _latest(latest_before: int | None, upper: Int64) -> int:
    """Return the latest of a tick and some others, of at least one."""
    latest = int(upper.max())
    return latest if latest_before is None else max(latest_before, latest)
