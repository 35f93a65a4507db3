"""Random small cases of the linear language: Kleene, negation, every strategy; as text and for the oracle."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

import uncertain_cep as uc
from tests import oracle
from tests.cases.cases import Trace
from tests.cases.comparison import Row, assert_answer, assert_same
from tests.cases.sampling import sampled_from
from uncertain_cep.testing.model import (
    And,
    Component,
    Event,
    Key,
    Match,
    Option,
    Or,
    Pattern,
    Predicate,
    Query,
    Repeat,
    Seq,
    Strategy,
    Value,
    where,
)
from uncertain_cep.testing.patterns import components

STRATEGIES: tuple[Strategy, ...] = (
    "skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity",
)  # fmt: skip

_TYPES = [("A",), ("B",), ("A", "B"), ("A", "B"), ("A", "B"), (), ()]
RELATIONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": lambda x, y: x < y,
    "<=": lambda x, y: x <= y,
    "=": lambda x, y: x == y,
    "!=": lambda x, y: x != y,
    ">": lambda x, y: x > y,
}


_EQUATED = re.compile(r"(\w+)(\[i\])?\.x = (?!\1\b)\w+(\[i\])?\.x")


@dataclass(frozen=True, slots=True)
class Asked:
    """A condition as text and for the oracle."""

    text: str
    predicate: Predicate


@dataclass(frozen=True, slots=True)
class PatternCase:
    """A trace and a query; ``chained`` is equated across all components by conditions."""

    trace: Trace
    pattern: Pattern
    asked: tuple[Asked, ...]
    strategy: Strategy
    window: int
    agree: tuple[str, ...]
    chained: tuple[str, ...]
    times: tuple[Asked, ...] = ()

    @property
    def positives(self) -> list[Component]:
        """The components that take events, in pattern order."""
        return [component for component in components(self.pattern) if not component.negated]

    def text(self, tail: str = "") -> str:
        """Return the query in the query language."""
        listed = ", ".join(f"{component.variable}{'[]' * component.kleene}" for component in self.positives)
        asked_for = [f"[{name}]" for name in self.agree] + [f"({condition.text})" for condition in self.asked]
        asked_for += [condition.text for condition in self.times]
        pattern = self.pattern if not isinstance(self.pattern, Component) else Seq((self.pattern,))
        return (
            f"PATTERN {_text(pattern)} WHERE {self.strategy}({listed}) {{ {' AND '.join(asked_for)} }} "
            f"WITHIN {self.window} {tail}"
        )

    def query(self) -> Query:
        """Return the query as the oracle takes it."""
        return Query(
            self.pattern,
            self.window,
            tuple(condition.predicate for condition in self.asked),
            strategy=self.strategy,
            agree=self.agree,
            chained=self.chained,
            times=tuple(condition.predicate for condition in self.times),
        )

    def answer(self) -> list[Match]:
        """Return the oracle's answer."""
        return oracle.answer(self.query(), self.trace.events)

    def rows(self, table: pa.Table) -> dict[Key, Row]:
        """Return the rows of a result by partition and signature."""
        partition = self.query().partition
        rows: dict[Key, Row] = {}
        for record in table.to_pylist():
            values: tuple[Value, ...] = tuple(record[name] for name in partition)
            signature = tuple(
                (component.variable, entry(record[component.variable])) for component in self.positives
            )
            assert (values, signature) not in rows, f"returned twice: {signature}"
            rows[values, signature] = Row(
                record["range_lower"], record["range_upper"], record.get("confidence")
            )
        return rows

    def check(self, **options: Any) -> None:
        """Assert that the engine gives the oracle's answer."""
        assert_answer(self.rows(uc.match(self.trace.table(), self.text(), **options)), self.answer())

    def check_batches(self, batch_rows: int) -> None:
        """Assert that batches of at most so many rows hold the rows of the whole."""
        table = self.trace.table()
        whole = uc.match(table, self.text())
        batches = list(uc.iter_matches(table, self.text(), batch_rows=batch_rows))
        assert all(batch.num_rows <= batch_rows for batch in batches)
        assert_same(self.rows(pa.Table.from_batches(batches, whole.schema)), self.rows(whole))


class LanguageCase(PatternCase):
    """A case of a sequence."""

    __slots__ = ()

    @property
    def components(self) -> tuple[Component, ...]:
        """The components of the sequence, in order."""
        return tuple(components(self.pattern))


def entry(value: Any) -> Any:
    """Return an id of a result, or a list of ids, as the oracle has it."""
    return tuple(value) if isinstance(value, list) else value


def _text(pattern: Pattern, by_iteration: bool = False) -> str:
    if isinstance(pattern, Component):
        if by_iteration and not pattern.negated:
            one = written(replace(pattern, kleene=False, most=None))
            return f"{one}[]"
        return written(pattern)
    if isinstance(pattern, Option):
        return f"{_text(pattern.items[0], by_iteration)}?"
    if isinstance(pattern, Repeat):
        fewest, largest = pattern.fewest, pattern.largest
        number = f"{fewest}" if fewest == largest else f"{fewest},{'' if largest is None else largest}"
        sign = ("*" if not fewest else "+") if largest is None and fewest < 2 else f"{{{number}}}"
        return f"{_text(pattern.items[0], True)}{sign}"
    name = {Seq: "SEQ", And: "AND", Or: "OR"}[type(pattern)]
    items: list[str] = []
    for joint, same in groupby(pattern.items, lambda item: isinstance(item, Component) and item.joint):
        texts = [_text(item, by_iteration) for item in same]
        items += [f"!SEQ({', '.join(text[1:] for text in texts)})"] if joint else texts
    return f"{name}({', '.join(items)})"


def written(component: Component) -> str:
    """Return a component in the query language."""
    types = f"({'|'.join(component.types)})" if len(component.types) > 1 else (*component.types, "ANY")[0]
    least, most = component.least, component.most
    if component.kleene:
        sign = "+" if least else "*"
        if most is not None or least > 1:
            sign = f"{{{least}}}" if least == most else f"{{{least},{'' if most is None else most}}}"
        return f"{types}{sign} {component.variable}[]"
    if not least:
        return f"{types}? {component.variable}"
    return f"{'!' * component.negated}{types} {component.variable}"


_WRITTEN = {"distinct": "count(DISTINCT {0})", "squares": "sum({0} * {0} + 1)"}


def _aggregate(function: str, events: tuple[Event, ...]) -> Any:
    values: list[Any] = [event["x"] for event in events if event["x"] is not None]
    if function in ("count", "distinct"):
        return len(values if function == "count" else set(values))
    if not values:
        return None
    if function == "squares":
        return sum(value * value + 1 for value in values)
    if function == "avg":
        return Fraction(sum(values), len(values))
    return sum(values) if function == "sum" else min(values) if function == "min" else max(values)


@st.composite
def _side(draw: st.DrawFn, component: Component, ordered: bool) -> tuple[str, str, Callable[[Any], Any]]:
    """Draw a mention: as text, for the oracle, and how to get its value."""
    name = component.variable

    def attribute(event: Any) -> Any:
        return event["x"]

    if not component.kleene:
        return f"{name}.x", name, attribute
    kinds = ["current", "bare", "all"]
    more = ["first", "previous", "last", "before", "second", "third", "two back"]
    kind = draw(sampled_from([*kinds, *more] if ordered else kinds))
    if kind in ("all", "before"):
        span = "[]" if kind == "all" else "[..i-1]"
        function = draw(sampled_from([*_WRITTEN, "count", "sum", "min", "max", "avg", "elements"]))
        if function == "elements":
            return f"count({name}{span})", f"{name}{span}", len
        text = _WRITTEN.get(function, f"{function}({{0}})").format(f"{name}{span}.x")
        return text, f"{name}{span}", lambda events: _aggregate(function, events)
    index = {
        "second": "[2]",
        "third": "[3]",
        "two back": "[i-2]",
        "first": "[1]",
        "current": "[i]",
        "previous": "[i-1]",
        "last": f"[{name}.LEN]",
        "bare": "",
    }[kind]
    return f"{name}{index}.x", f"{name}{index}", attribute


@st.composite
def conditions(
    draw: st.DrawFn, components: tuple[Component, ...], sets: frozenset[str] = frozenset()
) -> Asked:
    """Draw a condition; the variables in ``sets`` are Kleene ones whose events have no order."""
    left_of = draw(st.sampled_from(components))
    further_mentions = [
        component
        for component in components
        if component is left_of or not (component.negated and left_of.negated)
    ]
    right_of = draw(st.sampled_from(further_mentions))
    relation = draw(sampled_from(sorted(RELATIONS)))
    test = RELATIONS[relation]
    choice = draw(st.integers(0, 8))
    if choice == 8 and left_of.kleene:
        return draw(_quantified(left_of.variable, relation))
    left_text, left_mention, left = draw(_side(left_of, left_of.variable not in sets))
    if choice < 3:
        number = draw(st.integers(0, 4))

        def compare(event: Any) -> bool | None:
            value = left(event)
            return None if value is None else test(value, number)

        condition = Asked(f"{left_text} {relation} {number}", where(left_mention, compare))
        return condition if choice else draw(_with_null(condition, left_text))
    right_text, right_mention, right = draw(_side(right_of, right_of.variable not in sets))

    is_text = choice == 3 and "(" not in left_text + right_text

    def relate(one: Any, other: Any) -> bool | None:
        values = left(one), right(other)
        if None in values:
            return None
        return str(values[1]) in str(7 * values[0]) if is_text else test(*values)

    if is_text:
        text = f"CONTAINS(CAST({left_text} * 7 AS VARCHAR), CAST({right_text} AS VARCHAR))"
        return Asked(text, where(f"{left_mention} {right_mention}", relate))
    return Asked(f"{left_text} {relation} {right_text}", where(f"{left_mention} {right_mention}", relate))


@st.composite
def _quantified(draw: st.DrawFn, name: str, relation: str) -> Asked:
    """Draw what holds of any, or of every, element of a Kleene variable."""
    function, number = draw(sampled_from(["any", "every"])), draw(st.integers(0, 4))

    def test(events: tuple[Event, ...]) -> bool | None:
        values: list[Any] = [event["x"] for event in events if event["x"] is not None]
        truths = [RELATIONS[relation](value, number) for value in values]
        return (any(truths) if function == "any" else all(truths)) if truths else None

    return Asked(f"{function}({name}[].x {relation} {number})", where(f"{name}[]", test))


@st.composite
def _with_null(draw: st.DrawFn, condition: Asked, value: str) -> Asked:
    """Draw a condition made of one, and of NULL beside a value that it speaks of."""
    text, test = condition.text, condition.predicate.test
    unknown = draw(sampled_from([f"{value} = NULL", f"{value} * NULL < 1", f"NULL / 2 != {value}"]))
    combined: dict[str, Callable[[Any], bool | None]] = {
        unknown: lambda _: None,
        f"NOT {unknown}": lambda _: None,
        f"{text} OR {unknown}": lambda event: test(event) or None,
        f"NOT ({text} AND {unknown})": lambda event: True if test(event) is False else None,
    }
    written_ = draw(sampled_from(list(combined)))
    return Asked(written_, replace(condition.predicate, test=combined[written_]))


def untied(drawn: Sequence[Asked]) -> tuple[Asked, ...]:
    """Return the conditions that do not equate two components: several might make a partition of a case."""
    return tuple(condition for condition in drawn if not _EQUATED.fullmatch(condition.text))


def equal(one: Component, other: Component) -> Asked:
    """Return the condition that two components agree on ``k``."""

    def same(left: Event, right: Event) -> bool | None:
        values = left["k"], right["k"]
        return None if None in values else values[0] == values[1]

    mentions = [
        f"{component.variable}[i]" if component.kleene else component.variable for component in (one, other)
    ]
    return Asked(f"{mentions[0]}.k = {mentions[1]}.k", where(" ".join(mentions), same))


@st.composite
def traces(draw: st.DrawFn, partition: tuple[str, ...], most: int) -> Trace:
    """Draw a few events that overlap, tie and touch a lot; now and then with an attribute of nulls alone."""
    absent = draw(sampled_from([*[None] * 6, "x", "x", "k"]))
    types: dict[str, pa.DataType] = {"x": pa.int64(), "k": pa.string(), "id": pa.int64()}
    if absent is not None and draw(st.booleans()):
        types[absent] = pa.null()
    certain = draw(st.integers(0, 3)) == 0
    kinds: list[list[Value]] = [["u"], ["u", "u", "v"], ["u", "u", "v", None]]
    keys = draw(sampled_from(kinds))
    used: dict[Value, int] = {}
    events = []
    for number in range(draw(sampled_from([most, most, most, *range(most)]))):
        lower = draw(st.integers(-1, 5))
        length = 1 if certain else draw(sampled_from([1, 2, 2, 3]))
        attributes: dict[str, Value] = {
            "x": draw(sampled_from([0, 1, 2, 2, 3, 3, 4, None])),
            "k": draw(sampled_from(keys)),
        }
        if absent is not None:
            attributes[absent] = None
        key = attributes["k"]
        id = number
        if partition and key is not None:
            used[key] = id = used.get(key, 100) + 1
        weights = draw(st.lists(st.integers(0, 2), min_size=length, max_size=length))
        pmf = None
        if any(weights) and draw(st.integers(0, 2)) == 0:
            pmf = tuple(Fraction(weight, sum(weights)) for weight in weights)
        kind = draw(sampled_from(["A", "A", "B", "B", "C"]))
        events.append(Event(kind, id, lower, lower + length - 1, pmf, attributes))
    return Trace(tuple(draw(st.permutations(events))), types)


@st.composite
def language_cases(
    draw: st.DrawFn,
    strategy: Strategy | None = None,
    most: int = 5,
    asked: bool = True,
    singles: int = 0,
) -> LanguageCase:
    """Draw a case with Kleene or negated components, or under contiguity; with some single ones at least."""
    chosen: Strategy = draw(sampled_from(STRATEGIES)) if strategy is None else strategy
    names = iter("abcdefgh")
    items: list[Component] = []
    positives = draw(sampled_from([1, 2, 2, 2, 3] if singles < 2 else [singles, singles + 1]))
    repeated = min(2, positives - singles)
    for place in range(positives + 1):
        if draw(st.integers(0, 2)) == 0 and sum(item.negated for item in items) < 2:
            items.append(Component(next(names), draw(sampled_from(_TYPES)), negated=True))
        if place < positives:
            kleene = draw(st.integers(0, 2)) > 0 and sum(item.kleene for item in items) < repeated
            items.append(Component(next(names), draw(sampled_from(_TYPES)), kleene=kleene))
    components = tuple(items)
    agree: tuple[str, ...] = ()
    chained: tuple[str, ...] = ()
    chain: list[Asked] = []
    keyed = draw(st.integers(0, 4))
    if keyed == 0:
        agree = ("k",)
    elif keyed == 1 and len(components) > 1:
        first = next(component for component in components if not component.negated)
        chain = [equal(first, other) for other in components if other is not first]
        if draw(st.integers(0, 3)) == 0:
            # One of them left out: no partition by it.
            chain.pop()
        elif positives > 1 or not first.kleene:
            # What a negated event must not equal does not make the events of a Kleene variable equal.
            chained = ("k",)
    most_conditions = draw(sampled_from([0, 1, 1, 2])) if asked else 0
    drawn = draw(st.lists(conditions(components), max_size=most_conditions))
    if chosen == "partition_contiguity":
        drawn = list(untied(drawn))
    return LanguageCase(
        draw(traces((*agree, *chained), most)),
        Seq(components),
        tuple(draw(st.permutations([*chain, *drawn]))),
        chosen,
        draw(sampled_from([2, 4, 5, 6, 8, 20])),
        agree,
        chained,
    )
