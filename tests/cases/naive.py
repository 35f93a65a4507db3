"""A plain and obvious twin of the engine for skip till any, on traces too large for possible worlds.

A signature is possible iff its intervals are feasible, and its confidence is a dynamic program
over ticks in exact integers. No structure is clever: a partial match is tried against every event.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise
from math import comb, lcm, prod

from uncertain_cep.testing.model import Component, Event, Key, Predicate, Query, Seq


@dataclass(frozen=True, slots=True)
class Row:
    """Range and exact confidence of a match."""

    range_lower: int
    range_upper: int
    confidence: Fraction


def feasible(intervals: Sequence[tuple[int, int]], window: int) -> bool:
    """Tell whether increasing ticks within a window can be chosen from intervals, one from each."""
    last = len(intervals) - 1
    ordered = all(
        intervals[i][0] + (j - i) <= intervals[j][1]
        for i in range(len(intervals))
        for j in range(i, len(intervals))
    )
    earliest_end = max(lower + last - j for j, (lower, _) in enumerate(intervals))
    latest_start = min(upper - i for i, (_, upper) in enumerate(intervals))
    return ordered and window - 1 >= last and earliest_end <= window - 1 + latest_start


def chain_mass(events: Sequence[Event], window: int) -> Row | None:
    """Return the probability that the events happen in order within a window, and the support of its ends.

    For each first tick the weights are summed component by component over prefix sums; the weights are
    integers over one denominator for each event, so nothing is rounded. None if it is impossible.
    """
    weights: list[dict[int, int]] = []
    denominators: list[int] = []
    for event in events:
        ticks = event.ticks()
        denominator = lcm(*(weight.denominator for _, weight in ticks))
        denominators.append(denominator)
        weights.append({tick: int(weight * denominator) for tick, weight in ticks})
    total = 0
    firsts: list[int] = []
    lasts: list[int] = []
    for start, weight in weights[0].items():
        reached = {start: weight}
        for following in weights[1:]:
            extended: dict[int, int] = {}
            below = 0
            earlier = iter(sorted(reached.items()))
            pending = next(earlier, None)
            for tick in sorted(following):
                if tick > start + window - 1:
                    break
                while pending is not None and pending[0] < tick:
                    below += pending[1]
                    pending = next(earlier, None)
                if below:
                    extended[tick] = below * following[tick]
            reached = extended
        if reached:
            total += sum(reached.values())
            firsts.append(start)
            lasts.append(max(reached))
    if not total:
        return None
    return Row(min(firsts), max(lasts), Fraction(total, prod(denominators)))


def signatures(query: Query, events: Sequence[Event]) -> Iterator[tuple[Event, ...]]:
    """Yield the events of every match whose intervals are feasible (a pmf with zeros may yet rule it out)."""
    components = components_of(query)
    due: list[list[Predicate]] = [[] for _ in components]
    place = {component.variable: position for position, component in enumerate(components)}
    for predicate in query.where:
        due[max((place[name] for name in predicate.variables()), default=0)].append(predicate)

    def fits(component: Component, event: Event) -> bool:
        return (not component.types or event.type in component.types) and all(
            predicate.test(*(event for _ in predicate.mentions)) is True
            for predicate in query.where
            if predicate.variables() == {component.variable}
        )

    # What an event alone decides, once for each component.
    pools = [[event for event in events if fits(component, event)] for component in components]

    def extend(chosen: tuple[Event, ...]) -> Iterator[tuple[Event, ...]]:
        position = len(chosen)
        if position == len(components):
            yield chosen
            return
        for event in pools[position]:
            if event in chosen:
                continue
            extended = (*chosen, event)
            if any(event[name] is None or event[name] != extended[0][name] for name in query.agree):
                continue
            if not feasible([(e.lower, e.upper) for e in extended], query.window):
                continue
            if all(
                predicate.test(*(extended[place[mention.variable]] for mention in predicate.mentions)) is True
                for predicate in due[position]
            ):
                yield from extend(extended)

    yield from extend(())


def components_of(query: Query) -> list[Component]:
    """Return the components of a SEQ of single positive ones.

    Raises
    ------
    ValueError
        For any other query.
    """
    items = query.pattern.items if isinstance(query.pattern, Seq) else (query.pattern,)
    components = [item for item in items if isinstance(item, Component)]
    if len(components) < len(items) or any(c.kleene or c.negated for c in components):
        raise ValueError("only SEQ of single positive components")
    if query.strategy != "skip_till_any_match":
        raise ValueError("only skip_till_any_match")
    return components


def naive_answer(query: Query, events: Sequence[Event]) -> dict[Key, Row]:
    """Return the exact answer by partition and signature."""
    variables = [component.variable for component in components_of(query)]
    rows: dict[Key, Row] = {}
    for chosen in signatures(query, events):
        row = chain_mass(chosen, query.window)
        if row is not None:
            ids = tuple((variable, event.id) for variable, event in zip(variables, chosen, strict=True))
            rows[tuple(chosen[0][name] for name in query.partition), ids] = row
    return rows


def increasing_count(intervals: Sequence[tuple[int, int]]) -> int:
    """Return the number of strictly increasing ticks, one from each interval, by Steck's determinant."""
    lows: list[int] = []
    for position, (lower, _) in enumerate(intervals):
        lows.append(max(lower - position, lows[-1] if lows else lower))
    highs: list[int] = []
    for position, (_, upper) in reversed(list(enumerate(intervals))):
        highs.insert(0, min(upper - position, highs[0] if highs else upper - position))
    if any(high < low for low, high in zip(lows, highs, strict=True)):
        return 0
    counts = [1]
    for n in range(len(intervals)):
        counts.append(
            sum(
                (-1) ** (n - i) * comb(max(highs[i] - lows[n] + 1, 0), n - i + 1) * counts[i]
                for i in range(n + 1)
            )
        )
    return counts[-1]


def uniform_chain_mass(intervals: Sequence[tuple[int, int]], window: int) -> Fraction:
    """Return the confidence of uniform intervals of any length, exactly.

    With the first tick fixed the window only cuts the other intervals. As a function of the first tick
    the count is a polynomial between a few breakpoints, so a long piece is summed by the
    polynomial through its first few prefix sums.
    """
    length = len(intervals)
    first, last = intervals[0]

    def count(start: int) -> int:
        return increasing_count(
            [(max(lower, start + 1), min(upper, start + window - 1)) for lower, upper in intervals[1:]]
        )

    nearby = range(-length - 1, length + 2)
    bounds = [bound - cut for interval in intervals for bound in interval for cut in (0, window)]
    breaks = sorted({bound + offset for bound in bounds for offset in nearby} | {first, last + 1})
    total = 0
    for start, stop in pairwise(point for point in breaks if first <= point <= last + 1):
        counts = list(accumulate(count(start + offset) for offset in range(min(stop - start, length + 2))))
        total += counts[-1] if stop - start <= len(counts) else _extrapolated(counts, stop - start - 1)
    return Fraction(total, prod(upper - lower + 1 for lower, upper in intervals))


def _extrapolated(values: Sequence[int], place: int) -> int:
    """Return at ``place`` the polynomial that takes the values at 0, 1, 2, ... (Newton's forward form)."""
    total, differences = 0, list(values)
    for order in range(len(values)):
        total += comb(place, order) * differences[0]
        differences = [later - earlier for earlier, later in pairwise(differences)]
    return total
