"""Queries as readable text, for goldens: expressions in prefix form, so that nothing is left to guess."""

from __future__ import annotations

from uncertain_cep.query import syntax
from uncertain_cep.query.binder import BoundQuery
from uncertain_cep.query.expression_text import format_expression
from uncertain_cep.query.typed import Column, Constant, TypedExpression, speaks_of_each_event

_INDEXES = {
    "first": "[1]",
    "current": "[i]",
    "previous": "[i-1]",
    "last": "[LEN]",
    "all": "[]",
    "before": "[..i-1]",
}


def dump_query(query: syntax.Query) -> str:
    lines = ["pattern", *_pattern(query.pattern, 1)]
    listed = ", ".join(variable.name + "[]" * variable.kleene for variable in query.strategy_variables)
    lines.append(f"strategy {query.strategy}({listed})")
    lines += [f"where {dump(condition)}" for condition in query.where]
    if query.window is not None:
        lines.append(f"within {_duration(query.window)}")
    if query.min_confidence is not None:
        lines.append(f"having {query.min_confidence!r}")
    lines += [f"return {item.name!r} is {dump(item.expression)}" for item in query.returns]
    if query.expected_count is not None:
        every = query.expected_count.every
        lines.append(f"expected count by {list(query.expected_count.by)}")
        lines += [] if every is None else [f"every {_duration(every)}"]
    lines += ["non overlapping"] * query.non_overlapping + ["order by confidence"] * query.order_by_confidence
    lines += [] if query.limit is None else [f"limit {query.limit}"]
    return "\n".join(lines)


def _pattern(pattern: syntax.Pattern, level: int) -> list[str]:
    indent = "  " * level
    if isinstance(pattern, syntax.Component):
        sign = "not " * pattern.negated + "one or more " * pattern.kleene
        types = " or ".join(repr(name) for name in pattern.types) or "any type"
        return [f"{indent}{sign}{types} as {pattern.variable}"]
    lines = [f"{indent}{type(pattern).__name__}"]
    for item in pattern.items:
        lines += _pattern(item, level + 1)
    return lines


def _duration(duration: syntax.Duration) -> str:
    if duration.unit is None:
        return f"{duration.amount!r} ticks"
    return f"{duration.amount!r} {duration.unit}, {duration.nanoseconds} ns"


def dump(expression: syntax.Expression) -> str:
    match expression:
        case syntax.Literal():
            return repr(expression.value)
        case syntax.Variable():
            return expression.name
        case syntax.Parameter():
            return f"${expression.name}"
        case syntax.AllAttributes():
            return f"{expression.variable}.*"
        case syntax.Attribute():
            index = "" if expression.index is None else _index(expression.index)
            return f"{expression.variable}{index}.{expression.name}"
        case syntax.Equivalence():
            return f"[{expression.name}]"
        case syntax.Time():
            index = "" if expression.index is None else _index(expression.index)
            return f"time({expression.variable}{index})"
        case syntax.Aggregate():
            name = "" if expression.name is None else f".{expression.name}"
            if expression.operand is not None:
                return f"{expression.function}({dump(expression.operand)})"
            return f"{expression.function}({expression.variable}{_index(expression.index)}{name})"
        case syntax.Call():
            return f"({expression.function} {' '.join(map(dump, expression.arguments))})"
        case syntax.Unary():
            return f"({expression.operator} {dump(expression.operand)})"
        case syntax.Binary():
            return f"({expression.operator} {' '.join(dump(operand) for operand in _chain(expression))})"


def _index(index: syntax.Index) -> str:
    if isinstance(index, int):
        return f"[{index}]" if index > 0 else f"[i{index}]"
    return _INDEXES[index]


def _chain(expression: syntax.Binary) -> list[syntax.Expression]:
    # AND and OR are associative: how the parser pairs their operands is of no interest.
    operands: list[syntax.Expression] = []
    for operand in (expression.left, expression.right):
        same = isinstance(operand, syntax.Binary) and operand.operator == expression.operator
        if same and expression.operator in ("and", "or"):
            assert isinstance(operand, syntax.Binary)
            operands += _chain(operand)
        else:
            operands.append(operand)
    return operands


def dump_typed(expression: TypedExpression) -> str:
    if isinstance(expression, Column) and not speaks_of_each_event(expression):
        return f"{format_expression(expression)}:{expression.kind}"
    if isinstance(expression, Column):
        return f"{expression.variable}.{expression.name}:{expression.kind}"
    if isinstance(expression, Constant):
        return f"{expression.value!r}:{expression.kind}"
    operands = [dump_typed(operand) for operand in _typed_chain(expression)]
    return f"({expression.operator} {' '.join(operands)}):{expression.kind}"


def _typed_chain(expression: TypedExpression) -> list[TypedExpression]:
    if isinstance(expression, Column | Constant):
        return [expression]
    operands: list[TypedExpression] = []
    for operand in expression.operands:
        same = not isinstance(operand, Column | Constant) and operand.operator == expression.operator
        operands += _typed_chain(operand) if same and expression.operator in ("and", "or") else [operand]
    return operands


def dump_bound(bound: BoundQuery) -> str:
    lines = [
        f"{'no ' * part.negated}{'|'.join(part.types) or 'any'}{'+' * part.kleene} as {part.variable}"
        for part in bound.components
    ]
    for predicate in bound.predicates:
        lines += [f"where {format_expression(predicate)}", f"      {dump_typed(predicate)}"]
    lines += [f"same {name}" for name in bound.equivalences]
    lines.append(f"window {bound.window}")
    for item in bound.returns:
        value = item.variable if item.expression is None else dump_typed(item.expression)
        lines.append(f"return {item.name!r} is {value}")
    lines += [f"by {name}" for name in bound.by]
    lines += [] if bound.every is None else [f"every {bound.every}"]
    return "\n".join(lines)
