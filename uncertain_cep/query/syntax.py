"""The syntax tree of a query: immutable values, nothing resolved against a trace yet.

No walk over it recurses, so a tree of any depth is safe.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from html import escape
from itertools import pairwise
from typing import Final
from typing import Literal as Choice

from uncertain_cep.query.typed import format_time
from uncertain_cep.timeline.durations import unit_nanoseconds

__all__ = [
    "Aggregate",
    "AllAttributes",
    "Attribute",
    "Binary",
    "Call",
    "Component",
    "Conjunction",
    "Disjunction",
    "Duration",
    "Equivalence",
    "ExpectedCount",
    "Expression",
    "GapStrategy",
    "Having",
    "Index",
    "Instant",
    "Iteration",
    "LeftOut",
    "ListedVariable",
    "Literal",
    "OpenClause",
    "Option",
    "OrderItem",
    "Parameter",
    "Pattern",
    "Position",
    "Query",
    "Repeated",
    "ReturnItem",
    "SelectionStrategy",
    "Sequence",
    "Time",
    "Unary",
    "Untyped",
    "Variable",
    "children_of",
    "duration_of",
    "expressions_in",
    "spoken_in",
    "times_in_words",
]

SHOWN_TEXT: Final = 70
"""Characters of a query's text that its ``repr`` shows."""

SelectionStrategy = Choice[
    "skip_till_any_match", "skip_till_next_match", "partition_contiguity", "strict_contiguity"
]


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the query text, 1-based."""

    line: int
    column: int


class Instant(int):
    """A time: nanoseconds since 1970."""


class Untyped(str):
    """Text that is a number, a time, a truth value or text, as the place where it stands tells."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant: a whole number, a decimal number (``95%`` is 0.95), a string, TRUE/FALSE or NULL.

    ``percent`` tells that a number was written with a percent sign, ``parameter`` which one it is the value
    of. With a kind it is the nanoseconds of a ``time`` (since 1970) or of a ``duration``, or a number of
    ``ticks``.
    """

    value: int | float | str | bool | None
    position: Position
    percent: bool = False
    parameter: str | None = None
    kind: Choice["time", "duration", "ticks"] | None = None
    local: bool = False
    """Whether a time tells no offset: then its nanoseconds are those that clocks of the query's zone show."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """``$name``: a value that is given beside the text."""

    name: str
    position: Position


Index = Choice["first", "current", "previous", "last", "all", "before"] | int
"""Which element of a Kleene variable: ``c[1]``, ``c[i]``, ``c[i-1]``, ``c[c.LEN]``, ``c[]``, ``c[..i-1]``;
2 and so on for ``c[2]``, -2 and so on for ``c[i-2]``."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """``v.name`` or, for an element of a Kleene variable, ``v[index].name``."""

    variable: str
    name: str
    index: Index | None
    position: Position


@dataclass(frozen=True, slots=True)
class Variable:
    """A variable alone, as in ``RETURN a``."""

    name: str
    position: Position


@dataclass(frozen=True, slots=True)
class AllAttributes:
    """``v.*`` in RETURN: every attribute of an event, or of each event of a Kleene variable."""

    variable: str
    position: Position


@dataclass(frozen=True, slots=True)
class Aggregate:
    """An aggregate over the elements of a Kleene variable.

    ``name`` is the attribute, None for ``count(c[])`` and for an ``operand``: an expression over the
    attributes ``c[].x`` of each element.
    """

    function: Choice["avg", "sum", "min", "max", "count", "distinct", "stddev", "percentile", "any", "every"]
    variable: str
    name: str | None
    index: Index
    position: Position
    operand: Expression | None = None
    fraction: float | None = None
    """Of a percentile the share of values below it, 0.5 for the median."""


@dataclass(frozen=True, slots=True)
class Time:
    """``TIME(v)`` or, of an element of a Kleene variable, ``TIME(v[index])``: when it happened.

    Of an event that lasts, ``part`` names one of its ends: ``TIME(v.begin)``.
    """

    variable: str
    index: Index | None
    position: Position
    part: Choice["begin", "end"] | None = None


@dataclass(frozen=True, slots=True)
class Duration:
    """``15 seconds`` or, with ``unit`` None, a number of ticks. ``nanoseconds`` is None without a unit."""

    amount: float | int
    unit: str | None
    nanoseconds: int | None
    position: Position


@dataclass(frozen=True, slots=True)
class Unary:
    """``-x`` (operator ``-``) or ``NOT x`` (operator ``not``)."""

    operator: Choice["-", "not"]
    operand: Expression
    position: Position


@dataclass(frozen=True, slots=True)
class Binary:
    """An operator between two expressions; ``==`` and ``<>`` are read as ``=`` and ``!=``."""

    operator: Choice["+", "-", "*", "/", "%", "=", "!=", "<", "<=", ">", ">=", "and", "or"]
    left: Expression
    right: Expression
    position: Position


@dataclass(frozen=True, slots=True)
class Equivalence:
    """``[name]``: the events of all components agree on the attribute."""

    name: str
    position: Position


@dataclass(frozen=True, slots=True)
class Call:
    """A function, named in lower case, or what is written otherwise and takes as many operands.

    ``IS NULL`` is ``is_null``; ``in``, ``between``, ``like``, ``ilike`` and ``regexp`` have first what stands
    to their left; ``case`` has conditions, each with its value, and at last the value of ELSE; ``cast`` has
    the name of a type as its second argument.
    """

    function: str
    arguments: tuple[Expression, ...]
    position: Position


Expression = (
    Literal
    | Parameter
    | Attribute
    | Variable
    | AllAttributes
    | Aggregate
    | Time
    | Unary
    | Binary
    | Call
    | Equivalence
)


@dataclass(frozen=True, slots=True)
class Component:
    """One component of a pattern; ``types`` is empty for ``ANY``.

    It takes from ``least`` to ``most`` events (None: any number), as a list if ``kleene``. A negated one
    counts only in readings that have all variables of ``needs``.
    """

    types: tuple[str, ...]
    variable: str
    kleene: bool
    negated: bool
    position: Position
    least: int = 1
    most: int | None = 1
    needs: frozenset[str] = frozenset()
    by_iteration: bool = False
    """Whether it stands in a repeated group: its list has one place for each time that the group stands."""
    joint: str = ""
    """The negated group that it stands in, by the variable of its first component: only events of all of its
    components, one after the other, forbid. Empty for none."""

    @property
    def times(self) -> str:
        """How many events it takes, in words; empty for one."""
        if not self.kleene:
            return "" if self.least else "none or one"
        if self.by_iteration:
            return "one an iteration" if self.least else "none or one an iteration"
        return times_in_words(self.least, self.most)


def times_in_words(fewest: int, largest: int | None) -> str:
    """Return how often something stands, from ``fewest`` to ``largest`` times (None: any number)."""
    if largest is None:
        return {0: "none or more", 1: "one or more"}.get(fewest, f"{fewest} or more")
    return f"{fewest}" if fewest == largest else f"{fewest} to {largest}"


@dataclass(frozen=True, slots=True)
class _Compound:
    items: tuple[Pattern, ...]
    position: Position


class Sequence(_Compound):
    """``SEQ(...)``: every event of an item is before every event of the next."""

    __slots__ = ()


class Conjunction(_Compound):
    """``AND(...)``: all items, in any order."""

    __slots__ = ()


class Disjunction(_Compound):
    """``OR(...)``: one of the items."""

    __slots__ = ()


class Option(_Compound):
    """``SEQ(...)?`` or ``OR(...)?``: the one item, or nothing in its place."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Repeated(_Compound):
    """``SEQ(...)+``, ``OR(...){1,3}``, ...: the one item so often in a row, each time with an event."""

    fewest: int = 1
    largest: int | None = None


class Iteration(_Compound):
    """One of the times that a repeated group stands in a reading: the one item, with an event at least."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class LeftOut(_Compound):
    """A repeated group in a reading where it does not stand: without items, and its lists are empty."""

    lists: tuple[str, ...] = ()


Pattern = Component | Sequence | Conjunction | Disjunction | Option | Repeated | Iteration | LeftOut


@dataclass(frozen=True, slots=True)
class OpenClause:
    """A clause that a parameter belongs to: WITHIN, HAVING, EVERY or LIMIT; ``unit`` as of a duration."""

    clause: Choice["WITHIN", "HAVING", "EVERY", "LIMIT"]
    parameter: Parameter
    unit: str | None = None


@dataclass(frozen=True, slots=True)
class ListedVariable:
    """A variable in the list of a selection strategy; ``kleene`` if written ``a[]``."""

    name: str
    kleene: bool
    position: Position


@dataclass(frozen=True, slots=True)
class GapStrategy:
    """A strategy between some neighbours of a pattern: ``strict_contiguity(b, c)``."""

    strategy: SelectionStrategy
    variables: tuple[ListedVariable, ...]
    position: Position

    @property
    def text(self) -> str:
        """The strategy and its variables, as written."""
        return f"{self.strategy}({', '.join(variable.name for variable in self.variables)})"

    @property
    def gaps(self) -> tuple[tuple[str, str], ...]:
        """The variables on both sides of each gap."""
        return tuple(pairwise(variable.name for variable in self.variables))


@dataclass(frozen=True, slots=True)
class ReturnItem:
    """One output expression, or ``v.*``; ``name`` is the alias, or the text as written."""

    expression: Expression
    name: str
    position: Position


@dataclass(frozen=True, slots=True)
class Having:
    """The conditions of HAVING that AND joins, but for ``CONFIDENCE >= x``, and all of it as written."""

    conditions: tuple[Expression, ...]
    text: str
    position: Position


@dataclass(frozen=True, slots=True)
class OrderItem:
    """A column of the result to order by, and how it is written."""

    expression: Expression
    descending: bool
    text: str
    position: Position


@dataclass(frozen=True, slots=True)
class ExpectedCount:
    """``RETURN EXPECTED COUNT [BY attr, ...] [EVERY n unit]``."""

    by: tuple[str, ...]
    every: Duration | None
    position: Position


@dataclass(frozen=True, slots=True)
class GroupName:
    """A name of BY: of an attribute, of a variable, or of a variable and an attribute of its event."""

    variable: str | None
    """Before a dot."""
    name: str
    position: Position

    @property
    def text(self) -> str:
        """The name as a column has it."""
        return self.name if self.variable is None else f"{self.variable}.{self.name}"


@dataclass(frozen=True, slots=True)
class CountedEvents:
    """At least so many events of a variable next to the event of another one, behind or before it."""

    variable: str
    anchor: str
    least: int
    is_behind: bool


@dataclass(frozen=True, slots=True)
class Probability:
    """``RETURN PROBABILITY [OF AT LEAST k MATCHES] [AS name] [BY x, ...] [EVERY n unit]``."""

    at_least: int
    name: str
    by: tuple[GroupName, ...]
    every: Duration | None
    position: Position
    counted: CountedEvents | None = None
    """Of a query whose matches are pairs, see :func:`uncertain_cep.query.counted_set.as_pairs`."""
    reads_any: bool = False
    """Whether skip till next match is read as skip till any match."""
    reads_fewer: bool = False
    """Whether fewer events are read in place of repeated and optional ones."""


@dataclass(frozen=True, slots=True, repr=False)
class Query:
    """A parsed query, which `parse` returns and `match` takes in place of the text.

    >>> import uncertain_cep as uc
    >>> query = uc.parse("PATTERN SEQ(A a, B b) WITHIN 9 LIMIT 3")
    >>> query, query.limit
    (<Query PATTERN SEQ(A a, B b) WITHIN 9 LIMIT 3>, 3)
    """

    pattern: Pattern
    where: tuple[Expression, ...]
    """The conjuncts of WHERE, without the selection strategy."""
    strategy: SelectionStrategy
    strategy_position: Position | None
    window: Duration | None
    """None if WITHIN is missing (a fault that the checker reports) or open."""
    min_confidence: float | None
    """``CONFIDENCE >= x``, alone in HAVING or joined to the rest by AND."""
    returns: tuple[ReturnItem, ...]
    """Empty without RETURN: every positive variable."""
    expected_count: ExpectedCount | None
    order_by_confidence: bool
    """``ORDER BY CONFIDENCE DESC`` alone."""
    limit: int | None
    non_overlapping: bool
    """``OUTPUT NON OVERLAPPING``."""
    text: str
    """The text it was parsed from."""
    strategy_variables: tuple[ListedVariable, ...] = ()
    """The list in ``skip_till_any_match(a, b)``; empty if no strategy of all is written."""
    gap_strategies: tuple[GapStrategy, ...] = ()
    """Strategies of single gaps; all others, and then ``strategy``, skip till any match."""
    clause_positions: tuple[tuple[str, Position], ...] = ()
    """The first keyword of each clause in the text, such as ``WITHIN``, and where it stands."""
    having: Having | None = None
    """The rest of HAVING."""
    order_by: tuple[OrderItem, ...] = ()
    """What ORDER BY names, but for ``CONFIDENCE DESC`` alone, which is ``order_by_confidence``."""
    open_clauses: tuple[OpenClause, ...] = ()
    """Clauses whose values are parameters without a value yet; their fields are None."""
    values: tuple[tuple[str, object], ...] = ()
    """Those of parameters, by name."""
    probability: Probability | None = None
    zone: str | None = None
    """The time zone of HOUR, DAYOFWEEK, DATE_TRUNC, EVERY, and of times that tell none; None: UTC."""

    def __repr__(self) -> str:
        text = " ".join(self.text.split())
        return f"<Query {text if len(text) <= SHOWN_TEXT else f'{text[: SHOWN_TEXT - 4]} ...'}>"

    def _repr_html_(self) -> str:
        """Return the text for a notebook."""
        return f"<pre>{escape(self.text.strip())}</pre>"

    @property
    def is_ordered(self) -> bool:
        """Whether the result has an order."""
        return self.order_by_confidence or bool(self.order_by)

    @property
    def planning_parameters(self) -> frozenset[str]:
        """The names of the parameters whose values, and not kinds alone, decide how the query is planned."""
        times = [
            condition
            for condition in self.where
            if any(isinstance(part, Time) for part in expressions_in(condition))
        ]
        calls = [part for part in spoken_in(self) if isinstance(part, Call)]
        names = [
            part.name
            for each in (*times, *calls)
            for part in expressions_in(each)
            if isinstance(part, Parameter)
        ]
        return frozenset(names + [opened.parameter.name for opened in self.open_clauses])

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters that have no value yet, in the order of the text."""
        parameters = [clause.parameter for clause in self.open_clauses]
        conditions = () if self.having is None else self.having.conditions
        for expression in (*self.where, *(item.expression for item in self.returns), *conditions):
            parameters += [part for part in _all_in(expression) if isinstance(part, Parameter)]
        parameters.sort(key=lambda one: (one.position.line, one.position.column))
        return tuple(dict.fromkeys(one.name for one in parameters))

    @property
    def text_with_values(self) -> str:
        """The text and, as comments below it, the values of parameters: texts in quotes, times as such."""
        values = (f"-- ${name} = {_shown(value)}" for name, value in self.values)
        return "\n".join((self.text.strip(), *values))

    def position_of(self, clause: str) -> Position:
        """Return where a clause begins, or the pattern's place if the text has no such clause."""
        return dict(self.clause_positions).get(clause, self.pattern.position)


def _shown(value: object) -> str:
    """Return a parameter's value in one line, so that values of different kinds differ."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))})"
    if isinstance(value, Instant):
        return f"TIMESTAMP '{format_time(value)}'"
    # What the command line gave is a number or text, as its place tells.
    is_text = isinstance(value, str) and not (isinstance(value, Untyped) and value.isprintable())
    return str.__repr__(value) if is_text else str(value)


def duration_of(amount: float | int, unit: str | None, position: Position) -> Duration | None:
    """Return a length in a known unit, or in ticks; None if it is no whole number of nanoseconds."""
    length = None if unit is None else unit_nanoseconds(unit)
    if length is None:
        return Duration(amount, None, None, position)
    # The shortest text of the float is what the user wrote: 0.1 s is exactly 100 ms.
    nanoseconds = Fraction(str(amount)) * length
    return Duration(amount, unit, int(nanoseconds), position) if nanoseconds.denominator == 1 else None


def children_of(expression: Expression) -> tuple[Expression, ...]:
    """Return the operands of an expression, left to right."""
    if isinstance(expression, Binary):
        return (expression.left, expression.right)
    if isinstance(expression, Call):
        return expression.arguments
    return (expression.operand,) if isinstance(expression, Unary) else ()


def expressions_in(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and everything below it, in the order of the text."""
    stack = [expression]
    while stack:
        part = stack.pop()
        yield part
        stack.extend(reversed(children_of(part)))


def _all_in(expression: Expression) -> Iterator[Expression]:
    """Yield an expression and everything below it, see :func:`expressions_in`, and operands of aggregates."""
    for part in expressions_in(expression):
        yield part
        if isinstance(part, Aggregate) and part.operand is not None:
            yield from expressions_in(part.operand)


def spoken_in(query: Query) -> list[Expression]:
    """Return all that WHERE and RETURN say, part by part."""
    expressions = (*query.where, *(item.expression for item in query.returns))
    return [part for expression in expressions for part in _all_in(expression)]
