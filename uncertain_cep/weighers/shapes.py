"""Constraints on the times of matches of one shape: order, window, conditions, gaps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate as running_totals
from typing import Final

import numpy as np
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.predicates.conditions import Conditions
from confidence.timed.bounds import UNBOUND, Bounds
from confidence.timed.forbidden_spans import Span
from eventbased.gaps.gap_events import GapRules
from eventbased.gaps.shape_rules import ShapeRules
from uncertain_cep.plan import EvaluationPlan
from uncertain_cep.weighers.templates import OTHER, OTHER_END, Alike, Instance, TimeTemplates

__all__ = ["Rule", "Shape", "Shapes"]

Int64 = NDArray[np.int64]

_MOST_KNOWN: Final = 1 << 16
"""Events of all shapes that are kept: each takes a kilobyte or so, and a Kleene component has one shape for
each length."""


_ANYWHERE: Final = Span((), (), {})


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule that forbids events in a gap of a match: a pool, a span, and conditions."""

    pool: int
    span: Span
    conditions: tuple[int, int, int, int]
    """Place of the event, begin and end of what is evaluated for it, and the newest component."""
    component: int
    stop: int
    instances: list[Instance]
    reach: Span = _ANYWHERE
    """Where its events can be by conditions besides: more than these allow."""
    is_lasting: bool = False
    """Whether the last tick of the span is about the ends of its events, which may last."""

    @property
    def ends(self) -> int:
        """How many ends its gap has."""
        return len(self.span.lowers) + len(self.span.uppers)


@dataclass(frozen=True, slots=True)
class Shape:
    """The literals and rules of matches with the same numbers of events."""

    order: Bounds
    """Order and window."""
    ends: NDArray[np.bool_]
    """(2, l) bool. Which events can be the first, and which the last."""
    own: list[Instance]
    own_alike: tuple[Alike, ...]
    """The same in groups, by their numbers."""
    rules: list[Rule]
    rules_alike: tuple[tuple[int, tuple[Alike, ...]], ...]
    """The conditions of rules in groups, by the numbers of the rules; those of each column of constraints."""
    total: int
    """How many events there are."""
    is_chain: bool
    """Whether they happen one after the other."""
    shape_rules: ShapeRules
    """What finds the events that the rules forbid; negations have the places -2, -3 .."""
    constraints: tuple[Int64, Int64, Int64, Int64]
    """The sides of the rules' constraints, how many each rule has, and the bounds of the gaps alone, of the
    shapes (k, c, 2), (k,) and (k, c), as of :class:`confidence.timed.forbidden_tables.Others`."""
    of_end: Int64
    """(k, c) int64. 1 where a constraint's first time is the end of the forbidden event, -1 where its second
    is: its length is taken off the bounds, or added. 0: neither, or both."""
    lasting: tuple[int, ...] = ()
    """The events that last; the times of their ends are behind those of all events."""

    @property
    def times(self) -> int:
        """How many times there are."""
        return self.total + len(self.lasting)

    def by_place(self, scale: int, longest: int) -> ShapeRules:
        """Return the rules among events that have places instead of ticks, so many to a tick.

        An event can be up to ``longest`` ticks behind the one that its place is in.
        """
        return _shape_rules(self.rules, scale, (longest + 1) * scale - 1)


class Shapes:
    """The shapes of the matches of a plan, whose window, in ticks, is no more than the candidates ask for."""

    def __init__(
        self,
        plan: EvaluationPlan,
        templates: TimeTemplates,
        gaps: GapRules,
        conditions: Conditions | None,
        window: int,
        lasting: tuple[int, ...] = (),
    ) -> None:
        self._lasting = lasting
        self._plan, self._templates, self._gaps = plan, templates, gaps
        self._conditions, self._window = conditions, window
        self._known: dict[tuple[int, ...], Shape] = {}
        self._events = 0

    def of(self, counts: tuple[int, ...]) -> Shape:
        """Return the shape of matches with so many events of each component."""
        known = self._known.get(counts)
        if known is None:
            checkpoint()
            self._events += sum(counts)
            if self._events > _MOST_KNOWN:
                self._known, self._events = {}, sum(counts)
            known = self._known[counts] = self._shape(counts)
        return known

    def _shape(self, counts: tuple[int, ...]) -> Shape:
        pattern_order, window = self._plan.event_order, self._window
        start = [0, *running_totals(counts)]
        total = start[-1]
        order: Bounds = {}
        has_before, has_behind = set[int](), set[int]()

        end_of = {start[j]: total + number for number, j in enumerate(self._lasting)}
        for early, late in pattern_order.precedences(start):
            order[late, end_of.get(early, early)] = (1, UNBOUND)
            has_before.add(late)
            has_behind.add(early)
        firsts = [event for event in range(total) if event not in has_before]
        lasts = [end_of.get(event, event) for event in range(total) if event not in has_behind]
        for first in firsts:
            for last in lasts:
                if first != last:
                    low, high = order.get((last, first), (-UNBOUND, UNBOUND))
                    order[last, first] = max(low, 1 - window), min(high, window - 1)
                    order.pop((first, last), None)
        rules = list(self._rules_of(counts, start, firsts, lasts, end_of))
        instances = self._templates.own(counts)
        ends = np.zeros((2, total + len(end_of)), dtype=np.bool_)
        ends[0, firsts], ends[1, lasts] = True, True
        return Shape(
            order, ends, instances, Alike.of(enumerate(instances)), rules, _alike(rules), total,
            pattern_order.is_chain and not end_of, _shape_rules(rules), _constraints(rules), _of_ends(rules),
            tuple(end_of),
        )  # fmt: skip

    def _rules_of(
        self,
        counts: tuple[int, ...],
        start: Sequence[int],
        firsts: list[int],
        lasts: list[int],
        end_of: Mapping[int, int],
    ) -> Iterator[Rule]:
        plan, conditions, window = self._plan, self._conditions, self._window
        if conditions is None:
            return
        for j, part in enumerate(plan.components):
            for event in range(max(start[j], 1), start[j + 1]):
                span = Span(((event - 1, 1),), ((event, -1),), {})
                number = event - start[j]
                if (pool := int(self._gaps.taking[j])) >= 0:
                    begin = int(conditions.stages[j, 0 if number == 0 else 1])
                    evaluated = (event, begin, int(conditions.stages[j, 2]), j)
                    known = (*counts[:j], number + 1)
                    instances = self._templates.of_next(known, part.variable, number)
                    yield Rule(pool, span, evaluated, j, event + 1, instances)
                elif self._gaps.between >= 0:
                    yield Rule(self._gaps.between, span, (-1, 0, 0, -1), -1, 0, [])
        length = len(counts)
        for k, negation in enumerate(plan.negations):
            evaluated = (-2 - k, int(conditions.negated[k]), int(conditions.negated[k + 1]), -1)
            instances = self._templates.of_negated(counts, negation.component.variable)
            pool = int(self._gaps.negated[k])
            if plan.event_order.is_beside(k):
                span, instances = self._templates.between(instances)
                reach = self._templates.reach(instances)
                yield Rule(pool, span, evaluated, -1, length + k, instances, reach, is_lasting=True)
                continue
            behind, ahead = plan.event_order.gap_ends(k, start)
            behind = [end_of.get(event, event) for event in behind]
            lowers = tuple((event, 1) for event in behind) or tuple((event, 1 - window) for event in lasts)
            uppers = tuple((event, -1) for event in ahead) or tuple((event, window - 1) for event in firsts)
            yield Rule(pool, Span(lowers, uppers, {}), evaluated, -1, length + k, instances, is_lasting=True)


def _alike(rules: Sequence[Rule]) -> tuple[tuple[int, tuple[Alike, ...]], ...]:
    """Return the conditions of some rules, see :attr:`Shape.rules_alike`."""
    columns: dict[int, list[tuple[int, Instance]]] = {}
    for k, rule in enumerate(rules):
        for c, instance in enumerate(rule.instances, start=rule.ends):
            columns.setdefault(c, []).append((k, instance))
    return tuple((c, Alike.of(instances)) for c, instances in columns.items())


def _shape_rules(rules: Sequence[Rule], scale: int = 1, slack: int = 0) -> ShapeRules:
    """Return some rules in the form that kernels take, with so many places to a tick, give or take some."""
    rule_rows = [(rule.pool, 0, 0, *rule.conditions, rule.component, rule.stop) for rule in rules]
    ends = []
    for rule in rules:
        span, reach = rule.span, rule.reach
        lowers = (*span.lowers, *((event, low * scale - slack) for event, low in reach.lowers))
        uppers = (*span.uppers, *((event, high * scale + slack) for event, high in reach.uppers))
        ends.append([*((*end, 1) for end in lowers), *((*end, 0) for end in uppers)])
    return ShapeRules(
        np.array(rule_rows, dtype=np.int64).reshape(-1, 9),
        np.cumsum([0, *map(len, ends)]),
        np.array([end for own in ends for end in own], dtype=np.int64).reshape(-1, 3),
    )


def _constraints(rules: Sequence[Rule]) -> tuple[Int64, Int64, Int64, Int64]:
    """Return the constraints of some rules, see :attr:`Shape.constraints`."""
    count = np.array([rule.ends + len(rule.instances) for rule in rules], dtype=np.int64)
    shape = len(rules), int(count.max(initial=1))
    sides = np.zeros((*shape, 2), dtype=np.int64)
    low, high = np.full(shape, -UNBOUND), np.full(shape, UNBOUND)
    for k, rule in enumerate(rules):
        own: list[tuple[int, int]] = []
        for event, offset in rule.span.lowers:
            low[k, len(own)] = offset
            own.append((OTHER, event))
        for event, offset in rule.span.uppers:
            high[k, len(own)] = offset
            own.append((OTHER, event))
        own += [(instance.later, instance.earlier) for instance in rule.instances]
        sides[k, : len(own)] = own
    # The end is the begin and the length of the event.
    sides[sides == OTHER_END] = OTHER
    return sides, count, low, high


def _of_ends(rules: Sequence[Rule]) -> Int64:
    """Return marks of the constraints that are about ends, see :attr:`Shape.of_end`."""
    of_end = np.zeros_like(_constraints(rules)[2])
    for k, rule in enumerate(rules):
        if rule.is_lasting:
            of_end[k, len(rule.span.lowers) : rule.ends] = 1
        for c, instance in enumerate(rule.instances, start=rule.ends):
            of_end[k, c] = int(instance.later == OTHER_END) - int(instance.earlier == OTHER_END)
    return of_end
