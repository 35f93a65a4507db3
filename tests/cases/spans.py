"""Random events that last, with queries on them: as text, and by enumerating worlds with exact fractions.

Nothing of the engine is used: a world fixes an offset of each clock, whether each event happened, and ticks
``b <= e`` of each that meet all bounds that are given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise, permutations, product
from typing import Any, Literal

import pyarrow as pa
from hypothesis import assume
from hypothesis import strategies as st

from tests.cases.sampling import sampled_from

__all__ = ["RELATIONS", "Answer", "Condition", "Lasting", "Pair", "SpanCase", "events_table", "span_cases"]

Pair = tuple[int, int]
Law = tuple[Fraction, ...]
Ticks = Mapping[str, Pair]
"""Begin and end of the event of each variable."""
Answer = dict[tuple[int, ...], tuple[int, int, Fraction]]

_BOUNDS = ("begin", "end", "length")


@dataclass(frozen=True, slots=True)
class Lasting:
    """An event: a span by two of its pairs of bounds at least, or a point at ``whole``; by its own clock."""

    type: str
    id: int
    begin: Pair | None = None
    end: Pair | None = None
    length: Pair | None = None
    point: Pair | None = None
    clock: str | None = None
    probability: Fraction = Fraction(1)
    x: int | None = 0
    laws: tuple[tuple[str, tuple[Fraction, ...]], ...] = ()
    """Of begin, end or length: a probability for each tick of its bounds."""

    def law(self) -> dict[Pair, Fraction]:
        """Return the probability of each pair of begin and end."""
        weights = self.weights()
        total = sum(weights.values(), Fraction(0))
        return {pair: weight / total for pair, weight in weights.items() if weight}

    def weights(self) -> dict[Pair, Fraction]:
        """Return the product of the laws that are given for each pair of begin and end."""
        weights = {}
        for begin, end in self.pairs():
            weight = Fraction(1)
            for name, law in self.laws:
                tick = {"begin": begin, "end": end, "length": end - begin}[name]
                weight *= law[tick - self._known(getattr(self, name))[0]]
            weights[begin, end] = weight
        return weights

    def pairs(self) -> list[Pair]:
        """Return the begins and ends that the event can have by its clock."""
        if self.point is not None:
            return [(tick, tick) for tick in range(self.point[0], self.point[1] + 1)]
        begin = self.begin or (
            self._known(self.end)[0] - self._known(self.length)[1],
            self._known(self.end)[1],
        )
        end = self.end or (begin[0], begin[1] + self._known(self.length)[1])
        length = self.length or (0, end[1] - begin[0])
        return [
            (b, e)
            for b, e in product(range(begin[0], begin[1] + 1), range(end[0], end[1] + 1))
            if b <= e and length[0] <= e - b <= length[1]
        ]

    @staticmethod
    def _known(bounds: Pair | None) -> Pair:
        assert bounds is not None
        return bounds


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition as text, and on the begins and ends of its variables."""

    text: str
    variables: tuple[str, ...]
    holds: Callable[..., bool]

    def of(self, ticks: Ticks) -> bool:
        """Return whether it holds of some ticks."""
        return self.holds(*(ticks[name] for name in self.variables))


def events_table(
    events: tuple[Lasting, ...], clocks: Mapping[str, Pair], offset_laws: Mapping[str, Law] | None = None
) -> pa.Table:
    """Return events as an engine takes them."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for event in events:
        low, high = clocks[event.clock] if event.clock is not None else (0, 0)
        pairs = event.pairs()
        columns["type"].append(event.type)
        columns["id"].append(event.id)
        columns["lower"].append(min((b for b, _ in pairs), default=0) + low)
        columns["upper"].append(max((e for _, e in pairs), default=0) + high)
        for name in _BOUNDS:
            bounds: Pair | None = getattr(event, name)
            moved = name != "length"
            for side, offset in enumerate((low, high)):
                value = None if bounds is None else bounds[side] + (offset if moved else 0)
                columns[f"{name}_{('lower', 'upper')[side]}"].append(value)
        for name in _BOUNDS:
            law = dict(event.laws).get(name)
            columns[f"{name}_pmf"].append(None if law is None else [float(weight) for weight in law])
        columns["x"].append(event.x)
        columns["probability"].append(float(event.probability))
        columns["source"].append(event.clock)
        columns["offset_lower"].append(None if event.clock is None else low)
        columns["offset_upper"].append(None if event.clock is None else high)
        law = (offset_laws or {}).get(event.clock or "")
        columns["offset_pmf"].append(None if law is None else [float(weight) for weight in law])
    if not clocks:
        for name in ("source", "offset_lower", "offset_upper"):
            del columns[name]
    if not offset_laws:
        del columns["offset_pmf"]
    text = ("type", "source")
    types = {name: pa.string() if name in text else pa.int64() for name in columns}
    types["probability"] = pa.float64()
    if offset_laws:
        types["offset_pmf"] = pa.list_(pa.float64())
    for name in _BOUNDS:
        types[f"{name}_pmf"] = pa.list_(pa.float64())
        if not any(columns[f"{name}_pmf"]):
            del columns[f"{name}_pmf"]
    return pa.table({name: pa.array(values, types[name]) for name, values in columns.items()})


@dataclass(frozen=True, slots=True)
class SpanCase:
    """Events and a query: variables with their types, one of them perhaps negated."""

    events: tuple[Lasting, ...]
    clocks: Mapping[str, Pair]
    kind: Literal["SEQ", "AND"]
    variables: tuple[tuple[str, str], ...]
    conditions: tuple[Condition, ...] = ()
    window: int = 100
    negated: tuple[str, str, int] | None = None
    """A variable, its type, and how many components stand before it."""
    offset_laws: Mapping[str, Law] = field(default_factory=dict)
    """Of clocks whose offsets are not alike likely: a probability for each tick."""

    def text(self, tail: str = "") -> str:
        """Return the query in the query language."""
        items = [f"{type_} {name}" for name, type_ in self.variables]
        if self.negated is not None:
            items.insert(self.negated[2], f"!{self.negated[1]} {self.negated[0]}")
        where = " AND ".join(condition.text for condition in self.conditions)
        return (
            f"PATTERN {self.kind}({', '.join(items)}) {'WHERE ' if where else ''}{where} "
            f"WITHIN {self.window} {tail}"
        )

    def table(self) -> pa.Table:
        """Return the events as an engine takes them."""
        return events_table(self.events, self.clocks, self.offset_laws)

    def worlds(self) -> Iterator[tuple[Fraction, dict[Lasting, Pair]]]:
        """Yield the worlds: their probability, and begin and end of each event that happened."""
        names = sorted(self.clocks)
        states: list[list[tuple[Fraction, Pair | None]]] = []
        for event in self.events:
            happened = event.probability
            absent = [(1 - happened, None)] if happened < 1 else []
            states.append(
                [*((happened * weight, pair) for pair, weight in event.law().items() if happened), *absent]
            )
        for offsets in product(
            *(range(low, high + 1) for low, high in (self.clocks[name] for name in names))
        ):
            moved = dict(zip(names, offsets, strict=True))
            share = Fraction(1)
            for name in names:
                low, high = self.clocks[name]
                law = self.offset_laws.get(name)
                share *= Fraction(1, high - low + 1) if law is None else law[moved[name] - low]
            if not share:
                continue
            for choice in product(*states):
                weight, world = share, {}
                for event, (chance, pair) in zip(self.events, choice, strict=True):
                    weight *= chance
                    if pair is not None:
                        by = moved[event.clock] if event.clock is not None else 0
                        world[event] = (pair[0] + by, pair[1] + by)
                yield weight, world

    def answer(self) -> Answer:
        """Return the matches by enumeration: ids, range and probability."""
        rows: dict[tuple[int, ...], tuple[int, int, Fraction]] = {}
        for weight, world in self.worlds():
            for key, span in self.matches(world):
                low, high, total = rows.get(key, (*span, Fraction(0)))
                rows[key] = min(low, span[0]), max(high, span[1]), total + weight
        return {key: row for key, row in rows.items() if row[2]}

    def bucketed(self, every: int) -> dict[int, Fraction]:
        """Return the expected number of matches that begin in each bucket, by the first tick of it."""
        counts: dict[int, Fraction] = defaultdict(Fraction)
        for weight, world in self.worlds():
            for _, (first, _) in self.matches(world):
                counts[first // every * every] += weight
        return dict(counts)

    def probability(self, at_least: int, by: int | None = None) -> dict[int | None, Fraction]:
        """Return P(at least so many matches) by the id of a variable, by its number; None: of all matches."""
        chances: dict[int | None, Fraction] = defaultdict(Fraction)
        for weight, world in self.worlds():
            groups: dict[int | None, int] = defaultdict(int)
            for key, _ in self.matches(world):
                groups[None if by is None else key[by]] += 1
            for group, count in groups.items():
                if count >= at_least:
                    chances[group] += weight
        return dict(chances)

    def bucketed_probability(self, every: int) -> dict[int, Fraction]:
        """Return P(a match begins in it) of each bucket, by the first tick."""
        chances: dict[int, Fraction] = defaultdict(Fraction)
        for weight, world in self.worlds():
            for bucket in {first // every * every for _, (first, _) in self.matches(world)}:
                chances[bucket] += weight
        return dict(chances)

    def matches(self, world: Mapping[Lasting, Pair]) -> Iterator[tuple[tuple[int, ...], Pair]]:
        """Yield the matches of a world: their ids, first and last tick."""
        for chosen in permutations(world, len(self.variables)):
            span = self._span(world, chosen)
            if span is not None:
                yield tuple(event.id for event in chosen), span

    def _span(self, world: Mapping[Lasting, Pair], chosen: tuple[Lasting, ...]) -> Pair | None:
        """Return first and last tick of some events if they are a match in a world."""
        ticks: dict[str, Pair] = {}
        for event, (name, type_) in zip(chosen, self.variables, strict=True):
            if type_ not in (event.type, "ANY"):
                return None
            ticks[name] = world[event]
        in_order = [ticks[name] for name, _ in self.variables]
        follows = all(one[1] < other[0] for one, other in pairwise(in_order))
        if self.kind == "SEQ" and not follows:
            return None
        first, last = min(b for b, _ in in_order), max(e for _, e in in_order)
        if last - first > self.window - 1:
            return None
        n = None if self.negated is None else self.negated[0]
        if not all(one.of(ticks) for one in self.conditions if n not in one.variables):
            return None
        for event, pair in world.items():
            if event not in chosen and self._forbids(event, pair, ticks, in_order, (first, last)):
                return None
        return first, last

    def _forbids(
        self, event: Lasting, pair: Pair, ticks: dict[str, Pair], in_order: list[Pair], span: Pair
    ) -> bool:
        if self.negated is None or event.type != self.negated[1]:
            return False
        name, _, after = self.negated
        if not all(one.of({**ticks, name: pair}) for one in self.conditions if name in one.variables):
            return False
        if self.kind == "AND":
            return True
        low = in_order[after - 1][1] if after else span[1] - self.window
        high = in_order[after][0] if after < len(in_order) else span[0] + self.window
        return low < pair[0] and pair[1] < high


def _overlaps(x: Pair, y: Pair) -> bool:
    return x[0] <= y[1] and y[0] <= x[1]


RELATIONS: dict[str, Callable[[Pair, Pair], bool]] = {
    "OVERLAPS": _overlaps,
    "CONTAINS": lambda x, y: x[0] <= y[0] and y[1] <= x[1],
    "DURING": lambda x, y: y[0] <= x[0] and x[1] <= y[1],
    "BEFORE": lambda x, y: x[1] < y[0],
    "AFTER": lambda x, y: y[1] < x[0],
}
_SIGNS: dict[str, Callable[[int, int], bool]] = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    "=": lambda x, y: x == y,
    ">=": lambda x, y: x >= y,
}


@st.composite
def _conditions(draw: st.DrawFn, names: list[str], tied: str | None = None) -> Condition:
    """Draw a relation, a bound of a length, or of ends; ``tied`` is one of the variables."""
    one = draw(st.sampled_from(names)) if tied is None else tied
    other = draw(st.sampled_from([name for name in names if name != one] or [one]))
    kind = draw(sampled_from(["relation", "relation", "times", "length"]))
    if one == other or (kind == "length" and tied is None):
        sign, bound = draw(sampled_from(sorted(_SIGNS))), draw(st.integers(0, 4))
        text = f"DURATION({one}) {sign} {bound}"
        return Condition(text, (one,), lambda x: _SIGNS[sign](x[1] - x[0], bound))
    if kind == "relation":
        relation = draw(sampled_from(sorted(RELATIONS)))
        if tied is None and relation == "OVERLAPS" and draw(st.booleans()):
            text = f"NOT ({one} OVERLAPS {other})"
            return Condition(text, (one, other), lambda x, y: not _overlaps(x, y))
        return Condition(f"{one} {relation} {other}", (one, other), RELATIONS[relation])
    sign, bound = draw(sampled_from(sorted(_SIGNS))), draw(st.integers(-2, 3))
    parts = draw(sampled_from([("begin", "end"), ("end", "begin"), ("end", "end"), ("begin", "begin")]))
    left, right = (part == "end" for part in parts)
    text = f"TIME({one}.{parts[0]}) - TIME({other}.{parts[1]}) {sign} {bound}"
    return Condition(text, (one, other), lambda x, y: _SIGNS[sign](x[left] - y[right], bound))


@st.composite
def _laws(draw: st.DrawFn, event: Lasting) -> Lasting:
    """Draw probabilities of some of the bounds of a span."""
    laws = []
    for name in _BOUNDS:
        bounds: Pair | None = getattr(event, name)
        if bounds is None or not draw(st.booleans()):
            continue
        weights = draw(
            st.lists(
                st.integers(0, 3), min_size=bounds[1] - bounds[0] + 1, max_size=bounds[1] - bounds[0] + 1
            )
        )
        assume(sum(weights))
        laws.append((name, tuple(Fraction(weight, sum(weights)) for weight in weights)))
    weighed = replace(event, laws=tuple(laws))
    assume(not laws or any(weighed.weights().values()))
    return weighed


@st.composite
def _events(
    draw: st.DrawFn, type_: str, number: int, clocks: list[str | None], *, with_laws: bool = False
) -> Lasting:
    """Draw an event; of type P a point."""
    clock = draw(sampled_from(clocks))
    chance = draw(sampled_from([Fraction(1), Fraction(1), Fraction(1, 2)]))
    lower = draw(st.integers(0, 4))
    if type_ == "P" or not draw(st.integers(0, 5)):
        point = (lower, lower + draw(st.integers(0, 2)))
        return Lasting(type_, number, point=point, clock=clock, probability=chance)
    begin = (lower, lower + draw(st.integers(0, 2)))
    ends = lower + draw(st.integers(0, 3))
    end = (ends, ends + draw(st.integers(0, 2)))
    shortest = draw(st.integers(0, 2))
    length = (shortest, shortest + draw(st.integers(0, 2)))
    named = draw(sampled_from([(1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1)]))
    one, two, three = (
        bounds if is_named else None for bounds, is_named in zip((begin, end, length), named, strict=True)
    )
    event = Lasting(type_, number, one, two, three, clock=clock, probability=chance)
    assume(event.pairs())
    return draw(_laws(event)) if with_laws else event


@st.composite
def span_cases(
    draw: st.DrawFn,
    *,
    with_clocks: bool = False,
    negating: bool = False,
    with_laws: bool = False,
    kinds: tuple[Literal["SEQ", "AND"], ...] = ("SEQ", "AND"),
    spare: int = 1,
    negated_lasts: bool = False,
) -> SpanCase:
    """Draw a case of a SEQ or a set of up to three events that may last; negated ones if it is asked for."""
    clocks: dict[str, Pair] = {}
    offset_laws: dict[str, Law] = {}
    if with_clocks:
        for name in ("g", "h"):
            low = draw(st.integers(-1, 0))
            clocks[name] = (low, low + draw(st.integers(0, 2)))
            if with_laws and draw(st.booleans()):
                size = clocks[name][1] - low + 1
                weights = draw(st.lists(st.integers(0, 3), min_size=size, max_size=size).filter(any))
                offset_laws[name] = tuple(Fraction(weight, sum(weights)) for weight in weights)
    choices = [None, *clocks, *clocks]
    count = (
        draw(sampled_from([1, 2, 2, 3])) if not negating and not with_clocks else draw(sampled_from([1, 2]))
    )
    types = ["A", "B", "P"]
    variables = tuple((name, draw(sampled_from([*types, "ANY"]))) for name in "abc"[:count])
    of_events = [draw(sampled_from(types)) if type_ == "ANY" else type_ for _, type_ in variables]
    if draw(st.booleans()) and count < 3:
        of_events += draw(st.lists(sampled_from(types), min_size=1, max_size=spare))
    negated = None
    kind: Literal["SEQ", "AND"] = draw(sampled_from(kinds))
    names = [name for name, _ in variables]
    conditions = draw(st.lists(_conditions(names), max_size=2))
    if negating:
        negated = ("n", "N", draw(st.integers(0, count)))
        of_events += ["N"]
        conditions += draw(
            st.lists(_conditions([*names, "n"], "n"), min_size=1 if kind == "AND" else 0, max_size=1)
        )
    events = tuple(
        draw(_events("P" if type_ == "N" else type_, number, choices, with_laws=with_laws))
        for number, type_ in enumerate(of_events)
    )
    if negating:
        last = events[-1]
        where: dict[str, Any] = {"point": last.point}
        if negated_lasts and last.point is not None and draw(st.integers(0, 3)):
            length = draw(st.integers(0, 3))
            low, high = last.point
            of_end = low + length, high + length
            where = {"begin": last.point, "length": (length, length)}
            kind_of_span = draw(sampled_from(["length", "end", "certain", "any", "any"]))
            if kind_of_span == "end":
                where = {"end": of_end, "length": (length, length)}
            elif kind_of_span == "any":
                last_length = length + draw(st.integers(0, 2))
                where = {"begin": last.point, "end": (low, high + last_length)}
                where |= draw(sampled_from([{}, {"length": (length, last_length)}]))
            elif kind_of_span == "certain":
                where = {"begin": (low, low), "end": (low + length, low + length)}
        negative = Lasting("N", last.id, **where, clock=last.clock, probability=last.probability)
        if with_laws:
            negative = draw(_laws(negative))
        events = (*events[:-1], negative)
    window = draw(sampled_from([3, 5, 8, 100, 100]))
    return SpanCase(events, clocks, kind, variables, tuple(conditions), window, negated, offset_laws)
