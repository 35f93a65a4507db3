"""The times of chosen events: what order, window, conditions and clocks ask of them, as constraints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.timed.bounds import UNBOUND
from uncertain_cep.errors import OptionError
from uncertain_cep.misses.difference_bounds import ZERO, Constraint, least_move
from uncertain_cep.misses.questions import Question
from uncertain_cep.misses.span_ends import Side
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.weighers.shapes import Shapes
from uncertain_cep.weighers.templates import Instance, TimeTemplates

__all__ = ["ChoiceTimes", "EventTimes", "Placed"]

Int64 = NDArray[np.int64]

_STRICT: Final = 1
"""Ticks by which an event is behind another one at least, unless a sequence breaks the tie."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A time of an event of a choice: its row, its variable, and its place in a list; else 0.

    An event that lasts has two, each with its ``side``.
    """

    row: int
    variable: str
    position: int
    side: Side = ""

    @property
    def mention(self) -> str:
        """The time as a query would write it."""
        return f"{self.event}.{self.side}" if self.side else self.event

    @property
    def event(self) -> str:
        """The variable as a query would write this event of it."""
        return self.variable if not self.position else f"{self.variable}[{self.position}]"


class EventTimes:
    """Constraints on the times of single events: bounds, clocks, and the orders of sources."""

    def __init__(self, question: Question) -> None:
        self._question = question
        self._tight: dict[int, tuple[Int64, Int64, Int64]] = {}

    def clock_of(self, row: int) -> int:
        """Return the clock of an event whose offset is not certain; -1 if it has none."""
        offsets = self._question.offsets
        if offsets is None:
            return -1
        clock = int(offsets.clock[row])
        return clock if clock >= 0 and offsets.low[clock] < offsets.high[clock] else -1

    def bounds(self, row: int, side: Side = "") -> tuple[int, int]:
        """Return the first and the last tick of an event: by its clock if the offset of that is uncertain.

        ``side`` says which time of an event that lasts; without one it is its first and its last tick.
        """
        question = self._question
        if side and question.ends is not None:
            return self.by_clock(row, *question.ends.bounds(side, row))
        lower, upper = (int(bound[row]) for bound in question.times)
        return self.by_clock(row, *self._in_order(row, lower, upper))

    def by_clock(self, row: int, lower: int, upper: int) -> tuple[int, int]:
        """Return bounds of a time as bounds by the event's clock."""
        clock, offsets = self.clock_of(row), self._question.offsets
        if clock < 0 or offsets is None:
            return lower, upper
        return lower - int(offsets.low[clock]), upper - int(offsets.high[clock])

    def lasts(self, row: int) -> bool:
        """Return whether an event has a begin and an end."""
        ends = self._question.ends
        return ends is not None and bool(ends.lasts[row])

    def constraints(self, node: int, row: int, node_of_clock: int, side: Side = "") -> Iterator[Constraint]:
        """Yield the bounds of an event's time; ``node_of_clock`` is `ZERO` where no clock is uncertain.

        Of a begin or an end those that are given: what follows from the other one and the length need not
        be said.
        """
        bounds: tuple[int, int] | None
        if side and self._question.ends is not None:
            stated = self._question.ends.stated(side, row)
            bounds = None if stated is None else self.by_clock(row, *stated)
        else:
            bounds = self.bounds(row)
        if bounds is not None:
            yield Constraint(node_of_clock, node, bounds[0], "lower", event=node)
            yield Constraint(node, node_of_clock, -bounds[1], "upper", event=node)

    def of_length(self, begin: int, end: int, row: int) -> Iterator[Constraint]:
        """Yield the bounds of the length of an event that lasts, between the nodes of its begin and end."""
        ends = self._question.ends
        assert ends is not None
        stated = ends.stated("length", row)
        yield Constraint(begin, end, 0, "end")
        if stated is not None:
            yield Constraint(begin, end, stated[0], "shortest", event=begin)
            yield Constraint(end, begin, -stated[1], "longest", event=begin)

    def of_clock(self, node: int, clock: int) -> Iterator[Constraint]:
        """Yield the bounds of the offset of a clock."""
        offsets = self._question.offsets
        assert offsets is not None
        yield Constraint(ZERO, node, int(offsets.low[clock]), "offset lower", str(clock))
        yield Constraint(node, ZERO, -int(offsets.high[clock]), "offset upper", str(clock))

    @cached_property
    def _sequences(self) -> tuple[Int64, NDArray[np.bool_]]:
        """The sequences of all events, 0 where there is none, and where there is one that tells an order."""
        name, table = self._question.plan.clock_names.sequence, self._question.table
        if name is None:
            return np.zeros(table.num_rows, dtype=np.int64), np.zeros(table.num_rows, dtype=np.bool_)
        column = table.column(name)
        return np.asarray(pc.fill_null(column, 0)).astype(np.int64), np.asarray(column.is_valid())

    def can_tie(self, early: int, late: int) -> bool:
        """Return whether an event is before another one at the same tick, by their sequences."""
        question = self._question
        if question.offsets is None:
            return False
        clocks = question.offsets.clock
        sequence, has_sequence = self._sequences
        if (
            clocks[early] < 0
            or clocks[early] != clocks[late]
            or not (has_sequence[early] and has_sequence[late])
        ):
            return False
        return bool(sequence[early] < sequence[late])

    def ordered(self, placed: list[Placed]) -> Iterator[tuple[int, int]]:
        """Yield pairs of the events of a choice, by number, that the order of their source puts in order."""
        question = self._question
        if question.offsets is None:
            return
        clocks, (sequence, _) = question.offsets.clock, self._sequences
        groups: dict[int, list[int]] = {}
        for number, event in enumerate(placed):
            if self._is_ordered[event.row]:
                groups.setdefault(int(clocks[event.row]), []).append(number)
        for numbers in groups.values():
            for one in numbers:
                for other in numbers:
                    if sequence[placed[one].row] < sequence[placed[other].row]:
                        yield one, other

    def is_bound_by_others(self, row: int) -> bool:
        """Return whether an event is of an ordered source, whose other events bound its time, too."""
        return bool(self._is_ordered[row])

    @cached_property
    def _is_ordered(self) -> NDArray[np.bool_]:
        question = self._question
        name = question.plan.clock_names.ordered
        if name is None or question.offsets is None:
            return np.zeros(question.table.num_rows, dtype=np.bool_)
        column = pc.fill_null(question.table.column(name), False)
        return np.asarray(column).astype(np.bool_) & (question.offsets.clock >= 0) & self._sequences[1]

    def _in_order(self, row: int, lower: int, upper: int) -> tuple[int, int]:
        """Return the bounds of an event's time that the order of its source leaves."""
        question = self._question
        if not self._is_ordered[row] or question.offsets is None:
            return lower, upper
        clock = int(question.offsets.clock[row])
        if clock not in self._tight:
            rows = np.flatnonzero(self._is_ordered & (question.offsets.clock == clock))
            self._tight[clock] = rows, *self._tightened(rows)
        rows, first, last = self._tight[clock]
        place = int(np.searchsorted(rows, row))
        return int(first[place]), int(last[place])

    def _tightened(self, rows: Int64) -> tuple[Int64, Int64]:
        """Return the bounds that the order of a source leaves each of its events."""
        sequence = self._sequences[0][rows]
        lower, upper = (bound[rows].copy() for bound in self._question.times)
        ranks = np.unique(sequence, return_inverse=True)[1].reshape(-1)
        count = int(ranks.max(initial=-1)) + 1
        low, high = np.full(count, -UNBOUND), np.full(count, UNBOUND)
        np.maximum.at(low, ranks, lower)
        np.minimum.at(high, ranks, upper)
        for before, rank in pairwise(range(count)):
            low[rank] = max(low[rank], low[before])
        for after, rank in pairwise(reversed(range(count))):
            high[rank] = min(high[rank], high[after])
        # Events of one rank are in no order: what is ahead are those of lower ranks.
        ahead = np.concatenate(([-UNBOUND], low[:-1]))[ranks]
        behind = np.concatenate((high[1:], [UNBOUND]))[ranks]
        return np.maximum(lower, ahead), np.minimum(upper, behind)


class ChoiceTimes:
    """The constraints on the times of the events of one choice.

    Nodes are tick 0, then the events in the order of the components, then the ends of those that last, then
    the clocks.

    Attributes
    ----------
    placed : list of Placed
        The time of each node from 1 on.
    choice : list of int
        The rows of the events.
    lasting : tuple of int
        The components whose event lasts.
    end_of : dict of int to int
        The node of the end of each of them.
    constraints : list of Constraint
    nodes : int
    null : list of str
        Conditions on times that compare with null.
    """

    def __init__(
        self, question: Question, events: EventTimes, branch: EvaluationPlan, rows: list[tuple[int, ...]]
    ) -> None:
        self.question, self.branch, self.events = question, branch, events
        self.placed = [
            Placed(row, part.variable, place + 1 if part.kleene else 0, "begin" if events.lasts(row) else "")
            for part, chosen in zip(branch.components, rows, strict=True)
            for place, row in enumerate(chosen)
        ]
        self.choice = [event.row for event in self.placed]
        self.lasting = tuple(j for j, chosen in enumerate(rows) if any(map(events.lasts, chosen)))
        self.end_of = {j: len(self.placed) + number for number, j in enumerate(self.lasting, 1)}
        for j in self.lasting:
            part, chosen = branch.components[j], rows[j]
            if part.kleene:
                raise OptionError(f"{part.variable} takes several events, and they last: name single ones")
            self.placed.append(Placed(chosen[0], part.variable, 0, "end"))
        self.null: list[str] = []
        self.constraints: list[Constraint] = []
        self.clocks = list(
            dict.fromkeys(clock for event in self.placed if (clock := events.clock_of(event.row)) >= 0)
        )
        self._counts = counts = tuple(map(len, rows))
        self._literals(counts)
        self.literals = len(self.constraints)
        for node, event in enumerate(self.placed, 1):
            at = self.node_of_clock(event.row)
            self.constraints += events.constraints(node, event.row, at, event.side)
        for j in self.lasting:
            begin, end = self.begin_of(j), self.end_of[j]
            self.constraints += events.of_length(begin, end, self.placed[end - 1].row)
        for clock in self.clocks:
            self.constraints += events.of_clock(self.node_of(clock), clock)

    @property
    def nodes(self) -> int:
        """How many times there are: tick 0, those of events, and clocks."""
        return 1 + len(self.placed) + len(self.clocks)

    def node_of(self, clock: int) -> int:
        """Return the node of a clock, the next free one for a clock that no event of the choice has."""
        place = self.clocks.index(clock) if clock in self.clocks else len(self.clocks)
        return 1 + len(self.placed) + place

    def node_of_clock(self, row: int) -> int:
        """Return the node of an event's clock; `ZERO` if its offset is certain."""
        clock = self.events.clock_of(row)
        return ZERO if clock < 0 else self.node_of(clock)

    def begin_of(self, component: int) -> int:
        """Return the node of the first event of a component."""
        return 1 + sum(self._counts[:component])

    def bounds_of(self, node: int) -> tuple[int, int]:
        """Return the first and the last tick of a time of the choice, the offset of its clock included."""
        row = self.placed[node - 1].row
        lower, upper = self.events.bounds(row, self.placed[node - 1].side)
        clock, offsets = self.events.clock_of(row), self.question.offsets
        if clock < 0 or offsets is None:
            return lower, upper
        return lower + int(offsets.low[clock]), upper + int(offsets.high[clock])

    def distance(self) -> int | None:
        """Return the ticks by which all bounds from above have to be later; None if that never helps.

        Those are the upper bounds of the events, and conditions that a single time is at most something.
        """
        if self.null:
            return None
        eased = [k for k, part in enumerate(self.constraints) if self.is_upper(k, part)]
        return least_move(self.constraints, self.nodes, eased)

    def is_upper(self, k: int, part: Constraint) -> bool:
        """Return whether a constraint bounds a single time from above."""
        return part.kind == "upper" or (k < self.literals and part.later == ZERO)

    def _literals(self, counts: tuple[int, ...]) -> None:
        """Add order, window, conditions on times and the orders of sources."""
        self.templates = templates = TimeTemplates(self.branch, self.question.table, self.lasting)
        shapes: Shapes = Shapes(self.branch, templates, None, None, self.question.window, self.lasting)  # type: ignore[arg-type]
        shape = shapes.of(counts)
        for (late, early), (low, high) in shape.order.items():
            if low > -UNBOUND:
                is_order = low == _STRICT
                if is_order and self.events.can_tie(self.placed[early].row, self.placed[late].row):
                    low = 0
                self._add(early, late, low, "order" if is_order else "window")
            if high < UNBOUND:
                self._add(late, early, -high, "window")
        for instance in shape.own:
            self._time_condition(templates, instance, self.choice)
        for one, other in self.events.ordered(self.placed):
            self._add(one, other, 0, "source order")

    def _time_condition(self, templates: TimeTemplates, instance: Instance, rows: list[int]) -> None:
        name = templates.conditions[instance.condition].text(self.question.plan.domain)
        bounds = templates.bounds(instance, rows)
        if bounds is None:
            self.null.append(name)
            return
        low, high = bounds
        if low > -UNBOUND:
            self._add(instance.earlier, instance.later, low, "time", name)
        if high < UNBOUND:
            self._add(instance.later, instance.earlier, -high, "time", name)

    def _add(self, earlier: int, later: int, ticks: int, kind: str, name: str = "") -> None:
        """Add a constraint on events by number, -1 for tick 0."""
        self.constraints.append(Constraint(earlier + 1, later + 1, ticks, kind, name))
