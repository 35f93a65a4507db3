"""From lark's parse tree to the values of :mod:`uncertain_cep.query.syntax`."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence as SequenceOf
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final, Literal, NoReturn

from lark import ParseTree, Token, Transformer_NonRecursive, v_args
from lark.exceptions import VisitError
from lark.tree import Meta

from uncertain_cep.durations import UNIT_NANOSECONDS, unit_nanoseconds
from uncertain_cep.errors import QuerySyntaxError
from uncertain_cep.query import syntax
from uncertain_cep.query.foreign import as_written_here
from uncertain_cep.query.functions import FUNCTIONS, function_name, nearest_function
from uncertain_cep.query.syntax import (
    Expression,
    Position,
    children_of,
    components_of,
    conjuncts_of,
    expressions_in,
    with_leaves,
)
from uncertain_cep.query.typed import parse_time

__all__ = ["MAX_DEPTH", "build"]

MAX_DEPTH: Final = 100
"""Levels of nesting allowed in an expression or a pattern (parentheses alone do not count)."""

_COMPARISONS: Final = {"==": "=", "<>": "!="}
_MAX_DIGITS: Final = 400
_MOST_COPIES: Final = 10_000
_MOST_INDEX: Final = 10_000

# White space and comments between words; what is quoted is kept as it is (group 1).
_GAP: Final = re.compile(r"""('[^'\n]*'|"[^"\n]*"|`[^`\n]*`)|(?:\s|--[^\n]*\n)+""")


@dataclass(frozen=True, slots=True)
class _StrategyCall:
    strategy: syntax.SelectionStrategy
    variables: tuple[syntax.ListedVariable, ...]
    position: Position


@dataclass(frozen=True, slots=True)
class _OpenDuration:
    parameter: syntax.Parameter
    unit: str | None


@dataclass(frozen=True, slots=True)
class _Branch:
    condition: Expression
    value: Expression
    position: Position


@dataclass(frozen=True, slots=True)
class _Clause:
    keyword: str
    position: Position
    fields: dict[str, Any]


def _is_confidence(expression: Expression) -> bool:
    return isinstance(expression, syntax.Variable) and expression.name.lower() == "confidence"


def _least_confidence(condition: Expression) -> syntax.Literal | syntax.Parameter | None:
    """Return the bound of a condition ``CONFIDENCE >= number``, or None if it is another."""
    match condition:
        case syntax.Binary(">=", left, syntax.Parameter() as bound) if _is_confidence(left):
            return bound
        case syntax.Binary(">=", left, syntax.Literal(value=int() | float() as value) as bound) if (
            _is_confidence(left) and not isinstance(value, bool)
        ):
            return bound
    return None


def _is_of_gaps(call: _StrategyCall, pattern: syntax.Pattern) -> bool:
    """Return whether a strategy names neighbours of a pattern, and not all that it takes."""
    taken = [component.variable for component in components_of(pattern) if not component.negated]
    listed = [variable.name for variable in call.variables]
    length = len(listed)
    return 1 < length < len(taken) and any(
        taken[k : k + length] == listed for k in range(len(taken) - length + 1)
    )


def _at_index(expression: Expression, index: Literal["first", "last"]) -> Expression:
    """Return an expression over ``c[].x`` as that of the first or the last element."""

    def at(leaf: Expression) -> Expression:
        return replace(leaf, index=index) if isinstance(leaf, syntax.Attribute) else leaf

    return with_leaves(expression, at)


def _at(token: Token) -> Position:
    return Position(token.line or 1, token.column or 1)


def _name(token: Token) -> str:
    return token[1:-1].replace("``", "`") if token.type == "QUOTED" else str(token)


def build(tree: ParseTree, text: str) -> syntax.Query | Expression:
    """Return the value of a parse tree: a query or an expression, as its start rule says.

    ``text`` is what was parsed, for excerpts in errors and for output names as written. A QuerySyntaxError
    tells what the grammar cannot say, such as a number out of range or nesting out of bounds.
    """
    try:
        return _Builder(text).transform(tree)  # type: ignore[no-any-return]
    except VisitError as error:
        raise error.orig_exc from None


class _Builder(Transformer_NonRecursive[Token, Any]):
    """One method a grammar rule, called bottom up and without recursion."""

    def __init__(self, text: str) -> None:
        super().__init__(visit_tokens=False)
        self._text = text
        self._copies = 0

    def _refuse(self, message: str, position: Position, expected: SequenceOf[str] = ()) -> NoReturn:
        raise QuerySyntaxError(
            message, text=self._text, line=position.line, column=position.column, expected=expected
        )

    # Starting points

    def query(self, clauses: list[_Clause]) -> syntax.Query:
        fields: dict[str, Any] = {
            "where": (), "strategy": "skip_till_any_match", "strategy_position": None, "window": None,
            "min_confidence": None, "returns": (), "expected_count": None, "order_by_confidence": False,
            "having": None, "order_by": (), "limit": None, "non_overlapping": False,
        }  # fmt: skip
        opened: list[syntax.OpenClause] = []
        for clause in clauses:
            fields |= clause.fields
            opened += fields.pop("open_clauses", ())
        calls: list[_StrategyCall] = fields.pop("calls", [])
        if len(calls) > 1 or any(_is_of_gaps(call, fields["pattern"]) for call in calls):
            fields["gap_strategies"] = tuple(
                syntax.GapStrategy(call.strategy, call.variables, call.position) for call in calls
            )
        elif calls:
            fields |= {
                "strategy": calls[0].strategy,
                "strategy_position": calls[0].position,
                "strategy_variables": calls[0].variables,
            }
        positions = tuple((clause.keyword, clause.position) for clause in clauses)
        return syntax.Query(**fields, text=self._text, clause_positions=positions, open_clauses=tuple(opened))

    def row_condition(self, children: list[Expression]) -> Expression:
        self._check_expression(children[0])
        return children[0]

    # PATTERN

    def pattern_clause(self, children: list[Any]) -> _Clause:
        pattern: syntax.Pattern = children[1]
        level: list[syntax.Pattern] = [pattern]
        for _ in range(MAX_DEPTH):
            level = [
                item for found in level if not isinstance(found, syntax.Component) for item in found.items
            ]
        if level:
            self._refuse(f"the pattern is nested more than {MAX_DEPTH} levels deep", level[0].position)
        return _Clause("PATTERN", _at(children[0]), {"pattern": pattern})

    def sequence(self, children: list[Any]) -> syntax.Sequence:
        return syntax.Sequence(tuple(children[1:]), _at(children[0]))

    def conjunction(self, children: list[Any]) -> syntax.Conjunction:
        return syntax.Conjunction(tuple(children[1:]), _at(children[0]))

    def any_of(self, children: list[Any]) -> syntax.Disjunction:
        return syntax.Disjunction(tuple(children[1:]), _at(children[0]))

    def kleene(self, children: list[Any]) -> syntax.Component:
        return self.component(children, kleene=True, most=None)

    def optional(self, children: list[Any]) -> syntax.Component:
        return self.component(children, least=0)

    def repeated(self, children: list[Any]) -> syntax.Component:
        times = children[-2]
        least, most = times if isinstance(times, tuple) else (0, None)
        taken = [child for child in children if child is not times]
        return self.component(taken, kleene=True, least=least, most=most)

    def times(self, children: list[Token]) -> tuple[int, int | None]:
        numbers = [self._number(token) for token in children if token.type == "NUMBER"]
        least, most = numbers[0], numbers[-1] if len(numbers) == len(children) // 2 + 1 else None
        if isinstance(least, float) or isinstance(most, float) or (most or least) > _MOST_INDEX:
            self._refuse(f"events are counted by whole numbers up to {_MOST_INDEX}", _at(children[0]))
        if most is not None and (most < 1 or least > most):
            self._refuse(
                f"from {least} to {most} events are none: write {{1,2}} or the like", _at(children[0])
            )
        return least, most

    def component(
        self, children: list[Any], *, kleene: bool = False, least: int = 1, most: int | None = 1
    ) -> syntax.Component:
        return syntax.Component(
            types=tuple(_name(token) for token in children if token.type in ("WORD", "QUOTED")),
            variable=str(children[-1]),
            kleene=kleene,
            negated=children[0].type == "NEGATION",
            position=_at(children[-1]),
            least=least,
            most=most,
        )

    # The other clauses

    def where_clause(self, children: list[Any]) -> _Clause:
        conditions: list[Any] = list(conjuncts_of(children[1]))
        calls = [condition for condition in conditions if isinstance(condition, _StrategyCall)]
        predicates = [condition for condition in conditions if not isinstance(condition, _StrategyCall)]
        return self._where(children[0], calls, predicates)

    def where_block(self, children: list[Any]) -> _Clause:
        predicates = list(conjuncts_of(children[2])) if len(children) > 2 else []
        return self._where(children[0], [children[1]], predicates)

    def _where(self, keyword: Token, calls: list[_StrategyCall], predicates: list[Expression]) -> _Clause:
        for predicate in predicates:
            self._check_expression(predicate)
        return _Clause("WHERE", _at(keyword), {"where": tuple(predicates), "calls": calls})

    def within_clause(self, children: list[Any]) -> _Clause:
        return self._valued("WITHIN", children[0], "window", children[1])

    def _valued(
        self, clause: Literal["WITHIN", "HAVING", "LIMIT"], keyword: Token, field: str, value: Any
    ) -> _Clause:
        """Return a clause of one value, which may be a parameter."""
        if isinstance(value, syntax.Parameter):
            value = _OpenDuration(value, None)
        if not isinstance(value, _OpenDuration):
            return _Clause(clause, _at(keyword), {field: value})
        opened = syntax.OpenClause(clause, value.parameter, value.unit)
        return _Clause(clause, _at(keyword), {"open_clauses": (opened,)})

    def duration(self, children: list[Any]) -> syntax.Duration | _OpenDuration:
        unit = str(children[1]) if len(children) > 1 else None
        if unit is not None and unit.lower() not in ("tick", "ticks") and unit_nanoseconds(unit) is None:
            self._refuse(f"unknown unit of time '{unit}'", _at(children[1]), (*UNIT_NANOSECONDS, "ticks"))
        if isinstance(children[0], syntax.Parameter):
            return _OpenDuration(children[0], unit)
        position = _at(children[0])
        found = syntax.duration_of(self._number(children[0]), unit, position)
        return found or self._refuse("this is not a whole number of nanoseconds", position)

    def having_clause(self, children: list[Any]) -> _Clause:
        expression, text, position = children[1]
        least: list[float] = []
        opened: list[syntax.OpenClause] = []
        rest: list[Expression] = []
        for condition in conjuncts_of(expression):
            value = _least_confidence(condition)
            if isinstance(value, syntax.Parameter) and not opened:
                opened.append(syntax.OpenClause("HAVING", value))
            elif isinstance(value, syntax.Literal):
                least.append(float(value.value or 0))
            else:
                rest.append(condition)
        fields: dict[str, Any] = {"min_confidence": max(least, default=None), "open_clauses": tuple(opened)}
        if rest:
            fields["having"] = syntax.Having(tuple(rest), text, position)
        return _Clause("HAVING", _at(children[0]), fields)

    def return_clause(self, children: list[Any]) -> _Clause:
        return _Clause("RETURN", _at(children[0]), {"returns": tuple(children[1:])})

    def return_item(self, children: list[Any]) -> syntax.ReturnItem:
        expression, written, position = children[0]
        name = _name(children[2]) if len(children) > 1 else written
        return syntax.ReturnItem(expression, name, position)

    def all_attributes(self, children: list[Token]) -> syntax.ReturnItem:
        variable, position = str(children[0]), _at(children[0])
        return syntax.ReturnItem(syntax.AllAttributes(variable, position), f"{variable}.*", position)

    @v_args(meta=True)
    def written(self, meta: Meta, children: list[Expression]) -> tuple[Expression, str, Position]:
        self._check_expression(children[0])
        text = _GAP.sub(lambda gap: gap[1] or " ", self._text[meta.start_pos : meta.end_pos])
        return children[0], text, Position(meta.line, meta.column)

    def expected_clause(self, children: list[Any]) -> _Clause:
        tokens = [child for child in children if isinstance(child, Token)]
        by = tuple(_name(token) for token in tokens if token.type in ("WORD", "QUOTED"))
        last = children[-1]
        every = last if isinstance(last, syntax.Duration) else None
        fields: dict[str, Any] = {"expected_count": syntax.ExpectedCount(by, every, _at(children[1]))}
        if isinstance(last, _OpenDuration):
            fields["open_clauses"] = (syntax.OpenClause("EVERY", last.parameter, last.unit),)
        return _Clause("RETURN", _at(children[0]), fields)

    def output_clause(self, children: list[Token]) -> _Clause:
        return _Clause("OUTPUT", _at(children[0]), {"non_overlapping": True})

    def order_clause(self, children: list[Any]) -> _Clause:
        items: tuple[syntax.OrderItem, ...] = tuple(children[2:])
        if len(items) == 1 and items[0].descending and _is_confidence(items[0].expression):
            return _Clause("ORDER BY", _at(children[0]), {"order_by_confidence": True})
        return _Clause("ORDER BY", _at(children[0]), {"order_by": items})

    def order_item(self, children: list[Any]) -> syntax.OrderItem:
        expression, text, position = children[0]
        descending = len(children) > 1 and children[1].type == "DESC"
        return syntax.OrderItem(expression, descending, text, position)

    def limit_clause(self, children: list[Any]) -> _Clause:
        limit = children[1] if isinstance(children[1], syntax.Parameter) else self._number(children[1])
        if isinstance(limit, float):
            self._refuse("LIMIT takes a whole number", _at(children[1]))
        return self._valued("LIMIT", children[0], "limit", limit)

    # Expressions

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
        return syntax.Binary(operator, left, right, _at(tokens[middle - 1]))

    def negation(self, children: list[Any]) -> Expression:
        return syntax.Unary("not", children[1], _at(children[0]))

    def comparison(self, children: list[Any]) -> Expression:
        left, token, right = children
        operator: Any = _COMPARISONS.get(token, str(token))
        return syntax.Binary(operator, left, right, _at(token))

    arithmetic = comparison

    def null_test(self, children: list[Any]) -> Expression:
        return self._unless(children, syntax.Call("is_null", (children[0],), _at(children[1])))

    def membership(self, children: list[Any]) -> Expression:
        return self._predicate("in", children)

    def membership_of_list(self, children: list[Any]) -> Expression:
        return self._predicate("in_list", children)

    def between(self, children: list[Any]) -> Expression:
        return self._predicate("between", children)

    def text_match(self, children: list[Any]) -> Expression:
        named = next(token for token in children if isinstance(token, Token) and token.type != "NOT")
        return self._predicate(named.lower(), children)

    def _predicate(self, function: str, children: list[Any]) -> Expression:
        tokens = [child for child in children if isinstance(child, Token)]
        operands = tuple(child for child in children if not isinstance(child, Token))
        return self._unless(children, syntax.Call(function, operands, _at(tokens[0])))

    def _unless(self, children: list[Any], call: syntax.Call) -> Expression:
        """Return a condition, or its opposite if it is written with NOT."""
        said = (child for child in children if isinstance(child, Token) and child.type == "NOT")
        token = next(said, None)
        return call if token is None else syntax.Unary("not", call, _at(token))

    def call(self, children: list[Any]) -> Expression:
        token, count = children[0], len(children) - 1
        name, position = function_name(token), _at(token)
        function = FUNCTIONS.get(name)
        if function is None:
            hint = as_written_here(self._text, token.start_pos or 0) or nearest_function(token)
            self._refuse(f"unknown function {token}{hint}", position)
        most = len(function.takes)
        if count < function.least or (count > most and not function.repeats):
            some = "more" if count < function.least else "fewer"
            self._refuse(f"{function.written} takes {some} values than these {count}", position)
        return syntax.Call(name, tuple(children[1:]), position)

    def cast(self, children: list[Any]) -> Expression:
        type_ = syntax.Literal(str(children[3]), _at(children[3]))
        return syntax.Call("cast", (children[1], type_), _at(children[0]))

    def case(self, children: list[Any]) -> Expression:
        position = _at(children[0])
        written = [child for child in children if not isinstance(child, Token)]
        branches = [child for child in written if isinstance(child, _Branch)]
        others = [child for child in written if not isinstance(child, _Branch)]
        last: Expression = syntax.Literal(None, position)
        if any(isinstance(child, Token) and child.type == "ELSE" for child in children):
            last = others.pop()
        # CASE x WHEN y asks whether x is y. Nested, the copies of x would be too many to look at.
        if others:
            size = sum(1 for _ in islice(expressions_in(others[0]), _MOST_COPIES))
            self._copies += size * (len(branches) - 1)
            if self._copies > _MOST_COPIES:
                self._refuse("CASE x WHEN y is too large here: write CASE WHEN x = y", position)
        conditions = [
            syntax.Binary("=", others[0], branch.condition, branch.position) if others else branch.condition
            for branch in branches
        ]
        values = [branch.value for branch in branches]
        pairs = [part for pair in zip(conditions, values, strict=True) for part in pair]
        return syntax.Call("case", (*pairs, last), position)

    def when(self, children: list[Any]) -> _Branch:
        return _Branch(children[1], children[3], _at(children[0]))

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
            self._refuse(f"this is no {keyword.lower()}: write {keyword} '{example}'", _at(children[1]))
        return syntax.Literal(nanoseconds, _at(children[0]), kind="time")

    def minus(self, children: list[Any]) -> Expression:
        position, operand = _at(children[0]), children[1]
        value = operand.value if isinstance(operand, syntax.Literal) else None
        if isinstance(value, int | float) and not isinstance(value, bool):
            return syntax.Literal(-value, position, percent=operand.percent, kind=operand.kind)
        return syntax.Unary("-", operand, position)

    def number(self, children: list[Token]) -> Expression:
        token = children[0]
        return syntax.Literal(self._number(token), _at(token), token.type == "PERCENT")

    def string(self, children: list[Token]) -> Expression:
        quote = children[0][0]
        return syntax.Literal(children[0][1:-1].replace(quote * 2, quote), _at(children[0]))

    def time(self, children: list[Any]) -> Expression:
        variable = children[1]
        index = self._index(variable, children[2]) if len(children) > 2 else None
        return syntax.Time(str(variable), index, _at(children[0]))

    def constant(self, children: list[Token]) -> Expression:
        value = {"TRUE": True, "FALSE": False, "NULL": None}[children[0].type]
        return syntax.Literal(value, _at(children[0]))

    def parameter(self, children: list[Token]) -> Expression:
        return syntax.Parameter(children[0][1:], _at(children[0]))

    def attribute(self, children: list[Any]) -> Expression:
        variable, name = children[0], children[-1]
        index = self._index(variable, children[1]) if len(children) > 2 else None
        return syntax.Attribute(str(variable), _name(name), index, _at(variable))

    def variable(self, children: list[Token]) -> Expression:
        return syntax.Variable(_name(children[0]), _at(children[0]))

    def aggregate(self, children: list[Any]) -> Expression:
        function: Any = children[0].lower()
        position = _at(children[0])
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

    def _over(self, function: Any, operand: Expression, position: Position) -> Expression:
        """Return an aggregate over the values that an expression has for each element."""
        spoken = [part for part in expressions_in(operand) if isinstance(part, syntax.Attribute)]
        others = (syntax.Aggregate, syntax.Variable, syntax.Equivalence, _StrategyCall)
        if any(isinstance(part, others) for part in expressions_in(operand)) or not spoken:
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
            function, first.variable, None if kept is not None else name, index, position, kept
        )

    def index(self, children: list[Token]) -> Token | None:
        return children[0] if children else None

    def _index(self, variable: Token, token: Token | None) -> syntax.Index:
        if token is None:
            return "all"
        if token.type == "INDEX_LAST" and token.partition(".")[0].strip() != variable:
            self._refuse(f"write {variable}[{variable}.LEN]: an index refers to its own variable", _at(token))
        index: Any = token.type.removeprefix("INDEX_").lower()
        if index in ("first", "previous"):
            number = int(token.rpartition("-")[2])
            if not 1 <= number <= _MOST_INDEX:
                self._refuse(f"events are numbered from 1 to {_MOST_INDEX}", _at(token))
            if number > 1:
                return number if index == "first" else -number
        return index  # type: ignore[no-any-return]

    def equivalence(self, children: list[Token]) -> Expression:
        found: list[Expression] = [syntax.Equivalence(_name(token), _at(token)) for token in children]
        return self._balanced("and", found, children[1:])

    def strategy(self, children: list[Any]) -> _StrategyCall:
        strategy: Any = children[0].lower()
        return _StrategyCall(strategy, tuple(children[1:]), _at(children[0]))

    def listed(self, children: list[Token]) -> syntax.ListedVariable:
        return syntax.ListedVariable(str(children[0]), len(children) > 1, _at(children[0]))

    # What holds for every number and every expression

    def _number(self, token: Token) -> int | float:
        text = token.replace("_", "")
        mantissa, _, exponent = text.removesuffix("%").lower().partition("e")
        if len(text) > _MAX_DIGITS or len(exponent) > len("+000"):
            self._refuse("this number is out of range", _at(token))
        if token.type == "PERCENT":
            value = float(f"{mantissa}e{int(exponent or 0) - 2}")
        elif mantissa.isdecimal() and not exponent:
            return int(mantissa)
        else:
            value = float(text)
        if math.isinf(value):
            self._refuse("this number is out of range", _at(token))
        return value

    def _check_expression(self, expression: Expression) -> None:
        stack: list[tuple[Any, int]] = [(expression, 1)]
        while stack:
            found, depth = stack.pop()
            if isinstance(found, _StrategyCall):
                message = "must be a condition of WHERE by itself, given once and joined to the others by AND"
                self._refuse(f"{found.strategy}(...) {message}", found.position)
            if depth > MAX_DEPTH:
                self._refuse(f"the expression is nested more than {MAX_DEPTH} levels deep", found.position)
            stack.extend((child, depth + 1) for child in children_of(found))
