"""The columns of a schema, and the kinds of values that the parts of an expression may have."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

import pyarrow as pa

from uncertain_cep.errors import Fault, warn
from uncertain_cep.plurals import first_few, shortened
from uncertain_cep.query import syntax
from uncertain_cep.query.checker import did_you_mean
from uncertain_cep.query.expression_text import format_expression, quote_name
from uncertain_cep.query.functions import Parameter
from uncertain_cep.query.syntax import Expression, Position
from uncertain_cep.query.typed import (
    KIND_NAMES,
    Apply,
    Column,
    Constant,
    Kind,
    TypedExpression,
    columns_in,
    format_time,
    is_list,
    is_local,
    kind_of,
    parse_time,
)
from uncertain_cep.timeline.domain import Names, type_text
from uncertain_cep.timeline.zones import moments_of

__all__ = ["NUMBERS", "Kinds", "as_text", "remedy", "shown", "text_columns", "time_between"]

NUMBERS: Final[frozenset[Kind]] = frozenset({"int", "float"})
_PARTS_OF_AN_EVENT: Final = ("type", "id", "lower", "upper", "pmf", "probability")
_NUMERAL: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?")
_TIMES: Final = ("time", "timestamp", "ts", "datetime", "when", "eventtime", "occurred")
"""What an attribute may be called by who means when its event happened."""
_SEPARATORS: Final = re.compile(r"[\W_]+")
_SHOWN_COLUMNS: Final = 20
_SHOWN_LENGTH: Final = 40


@dataclass(slots=True)
class Kinds:
    """Knows one schema, and collects the faults met on the way.

    By ``names``, ``a.type`` finds the type column whatever the trace calls it. ``kleene`` variables mean each
    of their events where they have no index.
    """

    schema: pa.Schema
    names: Names
    kleene: frozenset[str] = frozenset()
    faults: list[Fault] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    """What to warn of."""
    zone: str | None = None
    """The time zone of functions of times, and of times that tell none; None: UTC."""

    def refuse(self, message: str, position: Position, text_columns: Iterable[str] = ()) -> None:
        """Note a fault, and which columns are text where numbers are asked for."""
        columns = tuple(dict.fromkeys(text_columns))
        self.faults.append(Fault(message, position.line, position.column, columns))

    def warn(self) -> None:
        """Warn of what is valid and hardly meant."""
        for remark in dict.fromkeys(self.remarks):
            warn(remark)

    @property
    def attributes(self) -> list[str]:
        """The columns that are attributes, and not parts of the model."""
        parts = (*_PARTS_OF_AN_EVENT, "tick")
        return [
            name for name in self.schema.names if name not in {getattr(self.names, part) for part in parts}
        ]

    def column(self, name: str, position: Position, variable: str = "") -> tuple[str, Kind] | None:
        """Return the column an attribute stands for and its kind; None, with a fault noted, if none.

        ``variable`` is the one that the attribute is of, if it is one's.
        """
        columns = self.schema.names
        if name not in columns and name in _PARTS_OF_AN_EVENT:
            name = getattr(self.names, name)
        if name not in columns:
            hint = did_you_mean(name, columns) or f": the trace has {first_few(columns, _SHOWN_COLUMNS)}"
            if variable and _SEPARATORS.sub("", name).lower() in _TIMES:
                hint += f"; when the event happened is TIME({variable})"
            self.refuse(f"unknown attribute {name}{hint}", position)
            return None
        if columns.count(name) > 1:
            self.refuse(f"the trace has several columns named {name}: rename them", position)
            return None
        if name == self.names.tick:
            rename = 'rename the column, or map names={"tick": "..."}, to use an attribute of that name'
            self.refuse(
                f"{name} says how long a tick of the trace is, and is no attribute: {rename}", position
            )
            return None
        type_ = self.schema.field(name).type
        kind = kind_of(type_)
        if kind is None and is_list(type_):
            mention = f"{variable or 'a'}.{quote_name(name)}"
            self.refuse(
                f"attribute {name} is a list ({type_text(type_)}): ask for its elements, x IN {mention} or "
                f"SHARES({mention}, b.{quote_name(name)})",
                position,
            )
            return None
        if kind is None:
            usable = "numbers, strings, true/false and times"
            self.refuse(
                f"attribute {name} is of type {type_text(type_)}: only {usable} can be used", position
            )
            return None
        return name, kind

    def list_column(self, name: str, position: Position, variable: str) -> tuple[str, Kind] | None:
        """Return the column of lists that an attribute stands for, and the kind of their elements.

        It is float for all numbers. None, with a fault noted, if it is none.
        """
        columns = self.schema.names
        if columns.count(name) == 1 and is_list(type_ := self.schema.field(name).type):
            kind = kind_of(type_.value_type)
            if kind in ("int", "float", "string", "bool", "null"):
                return name, "float" if kind in NUMBERS else kind
            self.refuse(
                f"the elements of {name} are of type {type_text(type_.value_type)}: only lists of numbers, "
                "strings and true/false are asked for elements",
                position,
            )
            return None
        column = self.column(name, position, variable)
        if column is not None:
            self.refuse(
                f"{name} is {KIND_NAMES[column[1]]}, not a list: write values in parentheses, IN (1, 2), or "
                "compare with =",
                position,
            )
        return None

    def _boolean(self, typed: TypedExpression, position: Position) -> TypedExpression | None:
        if typed.kind in ("bool", "null"):
            return typed
        self.refuse(
            f"{shown(typed)} is {KIND_NAMES[typed.kind]}, not a condition: compare it with something",
            position,
        )
        return None

    def _number(self, typed: TypedExpression, sign: str, position: Position) -> bool:
        if typed.kind in NUMBERS or typed.kind == "null":
            return True
        self.refuse(
            f"{sign} needs numbers, but {shown(typed)} is {KIND_NAMES[typed.kind]}",
            position,
            text_columns(typed),
        )
        return False

    def _timed(
        self, constant: TypedExpression, other: TypedExpression, position: Position
    ) -> TypedExpression | None:
        """Return a text beside a time as a time, and all else as it is; None with a fault noted."""
        if other.kind != "time" or not isinstance(constant, Constant) or constant.kind != "string":
            return constant
        nanoseconds = parse_time(str(constant.value))
        if nanoseconds is None:
            message = "is no time: write ISO 8601, such as '2024-05-01T12:00:00Z' or '2024-05-01'"
            self.refuse(f"{shown(constant)} {message}", position)
            return None
        if is_local(str(constant.value)):
            moment = self.moment(nanoseconds, position)
            if moment is None:
                return None
            nanoseconds = moment
        return replace(constant, value=nanoseconds, kind="time")

    def moment(self, local: int, position: Position) -> int | None:
        """Return when clocks of the zone show a time, nanoseconds since 1970; None with a fault noted."""
        if self.zone is None:
            return local
        first, last = (int(one[0]) for one in moments_of(pa.array([local], pa.timestamp("ns")), self.zone))
        if first == last:
            return first
        shown_time = format_time(local)
        how_often = "never" if last - first == 1 else "twice"
        self.refuse(
            f"clocks of {self.zone} show {shown_time} {how_often}: write an offset, as in {shown_time}+01:00",
            position,
        )
        return None

    def _takes(self, sign: str, parameter: Parameter, typed: TypedExpression, position: Position) -> bool:
        """Return whether a function takes an operand; note a fault if it does not."""
        if parameter == "any":
            return True
        needed = parameter.removesuffix(" constant")
        if needed == "number":
            return self._number(typed, sign, position)
        words = {"text": "text", "time": "a time", "whole": "a whole number"}[needed]
        kind: Kind = {"text": "string", "time": "time", "whole": "int"}[needed]  # type: ignore[assignment]
        if parameter != needed and not isinstance(typed, Constant):
            words = f"{words} written out"
        elif typed.kind in (kind, "null"):
            return True
        self.refuse(f"{sign} needs {words}, but {shown(typed)} is {KIND_NAMES[typed.kind]}", position)
        return False


def as_text(expression: Expression, typed: TypedExpression, other: TypedExpression) -> TypedExpression:
    """Return a literal that may be a number or text as text beside text and times."""
    beside = other.kind in ("string", "time")
    if beside and isinstance(expression, syntax.Literal) and isinstance(expression.value, syntax.Untyped):
        return Constant(str(expression.value), "string", expression.parameter)
    return typed


def text_columns(*operands: TypedExpression) -> Iterator[str]:
    """Yield the columns of text that text among some operands is made of."""
    for operand in operands:
        yield from (part.name for part in columns_in(operand) if part.kind == operand.kind == "string")


def remedy(one: TypedExpression, other: TypedExpression) -> str:
    """Return how to make a constant one of another kind, as the end of a message; empty if it is unclear."""
    if not isinstance(other, Constant):
        return ""
    if one.kind == "duration" and other.kind in NUMBERS:
        return f", write {shown(other)} seconds or another unit"
    if one.kind == "time":
        return ", write the time as ISO 8601 text such as '2024-05-01T12:00:00Z'"
    if one.kind == "bool":
        return ", write TRUE or FALSE"
    if one.kind == "string" and other.kind in NUMBERS:
        return f", write '{shown(other)}'"
    if one.kind in NUMBERS and isinstance(other.value, str) and _NUMERAL.fullmatch(other.value):
        return f", write {other.value} without quotes"
    return ""


def time_between(one: TypedExpression, other: TypedExpression) -> str:
    """Return how to compare times of events, if attributes of two are compared with a length of time."""
    if other.kind != "duration" or not isinstance(one, Apply) or one.operator != "subtract":
        return ""
    later, earlier = one.operands
    if not isinstance(later, Column) or not isinstance(earlier, Column) or later.variable == earlier.variable:
        return ""
    return f", for the time between the events write TIME({later.variable}) - TIME({earlier.variable})"


def shown(typed: TypedExpression) -> str:
    """Return an expression as messages quote it."""
    return shortened(format_expression(typed), _SHOWN_LENGTH)
