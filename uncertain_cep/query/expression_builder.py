"""The rules of the grammar that make expressions."""

from __future__ import annotations

import math
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from itertools import islice, zip_longest
from typing import Any, Final, Literal, NoReturn

from lark import Token, Transformer_NonRecursive

from uncertain_cep.errors import QuerySyntaxError
from uncertain_cep.plurals import counted
from uncertain_cep.query import syntax
from uncertain_cep.query.foreign import as_written_here
from uncertain_cep.query.functions import FUNCTIONS, function_name, nearest_function
from uncertain_cep.query.span_relations import apart, duration_of, related
from uncertain_cep.query.spelling import unit_meant
from uncertain_cep.query.syntax import Expression, Position, children_of, expressions_in
from uncertain_cep.query.typed import (
    is_local,
    parse_time,
)
from uncertain_cep.query.walks import with_leaves
from uncertain_cep.timeline.durations import UNIT_NANOSECONDS, falls, unit_nanoseconds

__all__ = [
    "MAX_DEPTH",
    "MOST_INDEX",
    "ExpressionBuilder",
    "OpenDuration",
    "StrategyCall",
    "name_in",
    "place_of",
]

MAX_DEPTH: Final = 100
"""Levels of nesting allowed in an expression or a pattern (parentheses alone do not count)."""

MOST_INDEX: Final = 10_000
"""Of an event of a Kleene component, and most events that it takes where that is bounded."""

_COMPARISONS: Final = {"==": "=", "<>": "!="}
_MAX_DIGITS: Final = 400
_MOST_COPIES: Final = 10_000


@dataclass(frozen=True, slots=True)
class StrategyCall:
    """A selection strategy and what it lists."""

    strategy: syntax.SelectionStrategy
    variables: tuple[syntax.ListedVariable, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class OpenDuration:
    """A length of time that a parameter will be."""

    parameter: syntax.Parameter
    unit: str | None


@dataclass(frozen=True, slots=True)
class _Branch:
    condition: Expression
    value: Expression
    position: Position


def _at_index(expression: Expression, index: Literal["first", "last"]) -> Expression:
    """Return an expression over ``c[].x`` as that of the first or the last element."""

    def at(leaf: Expression) -> Expression:
        return replace(leaf, index=index) if isinstance(leaf, syntax.Attribute) else leaf

    return with_leaves(expression, at)


def place_of(token: Token) -> Position:
    """Return where a token stands."""
    return Position(token.line or 1, token.column or 1)


def name_in(token: Token) -> str:
    """Return the name that a token is, without its quotes."""
    return token[1:-1].replace("``", "`") if token.type == "QUOTED" else str(token)


class ExpressionBuilder(Transformer_NonRecursive[Token, Any]):
    """One method a grammar rule, called bottom up and without recursion."""

    def __init__(self, text: str) -> None:
        super().__init__(visit_tokens=False)
        self._text = text
        self._copies = 0
        self._overlapping: dict[int, tuple[Expression, str, str]] = {}
        """Conditions with OVERLAPS by their identities, and the two variables."""

    def _refuse(self, message: str, position: Position, expected: SequenceOf[str] = ()) -> NoReturn:
        raise QuerySyntaxError(
            message, text=self._text, line=position.line, column=position.column, expected=expected
        )

    def alternatives(self, children: list[Any]) -> Expression:
        return self._balanced("or", children[::2], children[1::2])

    def conjuncts(self, children: list[Any]) -> Expression:
        return self._balanced("and", children[::2], children[1::2])

    def _balanced(
        self, operator: Literal["and", "or"], operands: list[Expression], tokens: list[Token]
    ) -> Expression:
        # AND and OR are associative: a balanced tree keeps a chain of hundreds shallow.
        if len(operands) == 1:
            return operands[0]
        middle = len(operands) // 2
        left = self._balanced(operator, operands[:middle], tokens[: middle - 1])
        right = self._balanced(operator, operands[middle:], tokens[middle:])
        return syntax.Binary(operator, left, right, place_of(tokens[middle - 1]))

    def negation(self, children: list[Any]) -> Expression:
        overlapping = self._overlapping.get(id(children[1]))
        if overlapping is not None:
            _, first, second = overlapping
            return apart(first, second, place_of(children[0]))
        return syntax.Unary("not", children[1], place_of(children[0]))

    def comparison(self, children: list[Any]) -> Expression:
        left, token, right = children
        operator: Any = _COMPARISONS.get(token, str(token))
        return syntax.Binary(operator, left, right, place_of(token))

    arithmetic = comparison

    def null_test(self, children: list[Any]) -> Expression:
        return self._unless(children, syntax.Call("is_null", (children[0],), place_of(children[1])))

    def membership(self, children: list[Any]) -> Expression:
        return self._predicate("in", children)

    def membership_of_list(self, children: list[Any]) -> Expression:
        return self._predicate("in_list", children)

    def membership_of_attribute(self, children: list[Any]) -> Expression:
        return self._predicate("has_item", children)

    def between(self, children: list[Any]) -> Expression:
        return self._predicate("between", children)

    def text_match(self, children: list[Any]) -> Expression:
        named = next(token for token in children if isinstance(token, Token) and token.type != "NOT")
        return self._predicate(named.lower(), children)

    def _predicate(self, function: str, children: list[Any]) -> Expression:
        tokens = [child for child in children if isinstance(child, Token)]
        operands = tuple(child for child in children if not isinstance(child, Token))
        return self._unless(children, syntax.Call(function, operands, place_of(tokens[0])))

    def _unless(self, children: list[Any], call: syntax.Call) -> Expression:
        """Return a condition, or its opposite if it is written with NOT."""
        said = (child for child in children if isinstance(child, Token) and child.type == "NOT")
        token = next(said, None)
        return call if token is None else syntax.Unary("not", call, place_of(token))

    def call(self, children: list[Any]) -> Expression:
        token, count = children[0], len(children) - 1
        name, position = function_name(token), place_of(token)
        function = FUNCTIONS.get(name)
        if name == "duration":
            length = duration_of(children[1:], position)
            if length is not None:
                return length
            self._refuse("DURATION takes an event, or two: DURATION(a), DURATION(a, b.end)", position)
        if function is None:
            hint = as_written_here(self._text, token.start_pos or 0) or nearest_function(token)
            self._refuse(f"unknown function {token}{hint}", position)
        most_values = len(function.takes)
        if count < function.needed or (count > most_values and not function.repeats):
            way, number = ("least", function.needed) if count < function.needed else ("most", most_values)
            bound = counted(number, "value")
            self._refuse(f"{function.written} takes at {way} {bound}, not {count}", position)
        return syntax.Call(name, tuple(children[1:]), position)

    def cast(self, children: list[Any]) -> Expression:
        type_ = syntax.Literal(str(children[3]), place_of(children[3]))
        return syntax.Call("cast", (children[1], type_), place_of(children[0]))

    def case(self, children: list[Any]) -> Expression:
        position = place_of(children[0])
        written = [child for child in children if not isinstance(child, Token)]
        branches = [child for child in written if isinstance(child, _Branch)]
        operands = [child for child in written if not isinstance(child, _Branch)]
        last: Expression = syntax.Literal(None, position)
        if any(isinstance(child, Token) and child.type == "ELSE" for child in children):
            last = operands.pop()
        # CASE x WHEN y asks whether x is y. Nested, the copies of x would be too many to look at.
        if operands:
            size = sum(1 for _ in islice(expressions_in(operands[0]), _MOST_COPIES))
            self._copies += size * (len(branches) - 1)
            if self._copies > _MOST_COPIES:
                self._refuse("CASE x WHEN y is too large here: write CASE WHEN x = y", position)
        conditions = [
            syntax.Binary("=", operands[0], branch.condition, branch.position)
            if operands
            else branch.condition
            for branch in branches
        ]
        values = [branch.value for branch in branches]
        pairs = [part for pair in zip(conditions, values, strict=True) for part in pair]
        return syntax.Call("case", (*pairs, last), position)

    def when(self, children: list[Any]) -> _Branch:
        return _Branch(children[1], children[3], place_of(children[0]))

    def length(self, children: list[Token]) -> Expression:
        duration = self.duration(children)
        assert isinstance(duration, syntax.Duration)
        if duration.nanoseconds is None:
            if not isinstance(duration.amount, int):
                self._refuse("ticks are counted in whole numbers", duration.position)
            return syntax.Literal(duration.amount, duration.position, kind="ticks")
        if duration.nanoseconds >= 2**63:
            self._refuse("a length of time is at most 292 years", duration.position)
        return syntax.Literal(duration.nanoseconds, duration.position, kind="duration")

    def moment(self, children: list[Token]) -> Expression:
        keyword, text = children[0].upper(), children[1][1:-1]
        nanoseconds = parse_time(text)
        if nanoseconds is None or (keyword == "DATE" and len(text.strip()) != len("2024-05-01")):
            example = "2024-05-01" if keyword == "DATE" else "2024-05-01T12:00:00Z"
            self._refuse(f"this is no {keyword.lower()}: write {keyword} '{example}'", place_of(children[1]))
        return syntax.Literal(nanoseconds, place_of(children[0]), kind="time", local=is_local(text))

    def minus(self, children: list[Any]) -> Expression:
        position, operand = place_of(children[0]), children[1]
        value = operand.value if isinstance(operand, syntax.Literal) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return syntax.Literal(-value, position, percent=operand.percent, kind=operand.kind)
        return syntax.Unary("-", operand, position)

    def number(self, children: list[Token]) -> Expression:
        token = children[0]
        return syntax.Literal(self._number(token), place_of(token), token.type == "PERCENT")

    def string(self, children: list[Token]) -> Expression:
        quote = children[0][0]
        return syntax.Literal(children[0][1:-1].replace(quote * 2, quote), place_of(children[0]))

    def time(self, children: list[Any]) -> Expression:
        variable = children[1]
        index = self._index(variable, children[2]) if len(children) > 2 else None
        return syntax.Time(str(variable), index, place_of(children[0]))

    def time_of_end(self, children: list[Any]) -> Expression:
        part: Any = name_in(children[2]).lower()
        if part not in ("begin", "end"):
            variable = children[1]
            message = f"an event has a begin and an end: write TIME({variable}.begin) or TIME({variable}.end)"
            self._refuse(message, place_of(children[2]))
        return syntax.Time(str(children[1]), None, place_of(children[0]), part)

    def relation(self, children: list[Any]) -> Expression:
        left, token, right = children
        if not isinstance(left, syntax.Variable) or not isinstance(right, syntax.Variable):
            message = f"{token.upper()} is between two variables, such as a {token.upper()} b"
            self._refuse(message, place_of(token))
        condition = related(left.name, token.lower(), right.name, place_of(token))
        if token.lower() == "overlaps":
            self._overlapping[id(condition)] = condition, left.name, right.name
        return condition

    def constant(self, children: list[Token]) -> Expression:
        value = {"TRUE": True, "FALSE": False, "NULL": None}[children[0].type]
        return syntax.Literal(value, place_of(children[0]))

    def parameter(self, children: list[Token]) -> Expression:
        return syntax.Parameter(children[0][1:], place_of(children[0]))

    def attribute(self, children: list[Any]) -> Expression:
        variable, name = children[0], children[-1]
        index = self._index(variable, children[1]) if len(children) > 2 else None
        return syntax.Attribute(str(variable), name_in(name), index, place_of(variable))

    def variable(self, children: list[Token]) -> Expression:
        return syntax.Variable(name_in(children[0]), place_of(children[0]))

    def aggregate(self, children: list[Any]) -> Expression:
        function: Any = children[0].lower()
        position = place_of(children[0])
        if isinstance(children[1], Token) and children[1].type != "DISTINCT":
            variable = children[1]
            if function != "count":
                self._refuse(f"{function} needs an attribute: {function}({variable}[].name)", position)
            return syntax.Aggregate(
                "count", str(variable), None, self._index(variable, children[2]), position
            )
        operand: Expression = children[-1]
        if len(children) > 2:
            if function != "count":
                self._refuse(f"DISTINCT is for count(DISTINCT c[].x), not for {function}", position)
            function = "distinct"
        return self._over(function, operand, position)

    def percentile(self, children: list[Any]) -> Expression:
        position, fraction = place_of(children[0]), children[2]
        value = fraction.value if isinstance(fraction, syntax.Literal) else None
        if not _is_share(value):
            self._refuse(
                "percentile takes values and a number from 0 to 1 with up to nine digits, "
                "percentile(c[].x, 95%)",
                position,
            )
        over = self._over("percentile", children[1], position)
        return replace(over, fraction=float(value or 0)) if isinstance(over, syntax.Aggregate) else over

    def _over(self, function: Any, operand: Expression, position: Position) -> Expression:
        """Return an aggregate over the values that an expression has for each element."""
        spoken = [part for part in expressions_in(operand) if isinstance(part, syntax.Attribute)]
        forbidden = (syntax.Aggregate, syntax.Variable, syntax.Equivalence, StrategyCall)
        if any(isinstance(part, forbidden) for part in expressions_in(operand)) or not spoken:
            self._refuse(
                f"{function} takes an expression over attributes of events, {function}(c[].x)", position
            )
        first = spoken[0]
        for other in spoken:
            if (other.variable, other.index) != (first.variable, first.index):
                self._refuse(
                    f"{function} is over the events of one variable: every attribute in it is one of "
                    f"{first.variable}[], or every one of {first.variable}[..i-1]",
                    other.position,
                )
        fraction = 0.5 if function == "median" else None
        # What is no span of events, the checker refuses.
        index: syntax.Index = "current" if first.index is None else first.index
        if function in ("first", "last"):
            if index != "all":
                message = f"{function} takes all events: {function}({first.variable}[].{first.name})"
                self._refuse(message, position)
            return _at_index(operand, function)
        name = operand.name if isinstance(operand, syntax.Attribute) else None
        kept = None if name is not None and function not in ("any", "every") else operand
        return syntax.Aggregate(
            "percentile" if function == "median" else function,
            first.variable,
            None if kept is not None else name,
            index,
            position,
            kept,
            fraction,
        )

    def index(self, children: list[Token]) -> Token | None:
        return children[0] if children else None

    def _index(self, variable: Token, token: Token | None) -> syntax.Index:
        if token is None:
            return "all"
        if token.type == "INDEX_LAST" and token.partition(".")[0].strip() != variable:
            self._refuse(
                f"write {variable}[{variable}.LEN]: an index refers to its own variable", place_of(token)
            )
        index: Any = token.type.removeprefix("INDEX_").lower()
        if index in ("first", "previous"):
            number = int(token.rpartition("-")[2])
            if not 1 <= number <= MOST_INDEX:
                self._refuse(f"events are numbered from 1 to {MOST_INDEX}", place_of(token))
            if number > 1:
                return number if index == "first" else -number
        return index  # type: ignore[no-any-return]

    def equivalence(self, children: list[Token]) -> Expression:
        equivalences: list[Expression] = [
            syntax.Equivalence(name_in(token), place_of(token)) for token in children
        ]
        return self._balanced("and", equivalences, children[1:])

    def strategy(self, children: list[Any]) -> StrategyCall:
        strategy: Any = children[0].lower()
        return StrategyCall(strategy, tuple(children[1:]), place_of(children[0]))

    def listed(self, children: list[Token]) -> syntax.ListedVariable:
        return syntax.ListedVariable(str(children[0]), len(children) > 1, place_of(children[0]))

    def _number(self, token: Token) -> int | float:
        text = token.replace("_", "")
        mantissa, _, exponent = text.removesuffix("%").lower().partition("e")
        if len(text) > _MAX_DIGITS or len(exponent) > len("+000"):
            self._refuse("this number is out of range", place_of(token))
        if token.type == "PERCENT":
            value = float(f"{mantissa}e{int(exponent or 0) - 2}")
        elif mantissa.isdecimal() and not exponent:
            return int(mantissa)
        else:
            value = float(text)
        if math.isinf(value):
            self._refuse("this number is out of range", place_of(token))
        return value

    def _check_expression(self, expression: Expression) -> None:
        stack: list[tuple[Any, int]] = [(expression, 1)]
        while stack:
            part, depth = stack.pop()
            if isinstance(part, StrategyCall):
                message = "must be a condition of WHERE by itself, given once and joined to the others by AND"
                self._refuse(f"{part.strategy}(...) {message}", part.position)
            if depth > MAX_DEPTH:
                self._refuse(f"the expression is nested more than {MAX_DEPTH} levels deep", part.position)
            stack.extend((child, depth + 1) for child in children_of(part))

    def duration(self, children: list[Any]) -> syntax.Duration | OpenDuration:
        units = [str(unit) for unit in children[1::2]]
        for unit, token in zip(units, children[1::2], strict=True):
            if unit.lower() not in ("tick", "ticks") and unit_nanoseconds(unit) is None:
                hint = unit_meant(unit) or as_written_here(self._text, token.start_pos or 0, farthest=0)
                self._refuse(
                    f"unknown unit of time '{unit}'{hint}", place_of(token), (*UNIT_NANOSECONDS, "ticks")
                )
        if isinstance(children[0], syntax.Parameter):
            return OpenDuration(children[0], units[0] if units else None)
        position = place_of(children[0])
        numbers = list(map(self._number, children[::2]))
        parts = [syntax.duration_of(number, unit, position) for number, unit in zip_longest(numbers, units)]
        if len(parts) == 1:
            return parts[0] or self._refuse("this is not a whole number of nanoseconds", position)
        lengths = [unit_nanoseconds(unit) for unit in units]
        total = sum((part.nanoseconds or 0) for part in parts if part is not None)
        if None in parts or not falls(lengths):
            self._refuse(
                "a length of several units goes from the longest to the shortest, each once: 1 min 30 s",
                position,
            )
        # In the last unit, as a message gives it.
        last = lengths[-1] or 1
        amount = total // last if total % last == 0 else total / last
        return syntax.Duration(amount, units[-1], total, position)


def _is_share(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 <= value <= 1 and round(value, 9) == value
