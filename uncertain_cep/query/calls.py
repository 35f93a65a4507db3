"""Functions and operators like IN, applied to typed operands: their kinds, and constants in range."""

from __future__ import annotations

from dataclasses import replace
from typing import Final, cast

from uncertain_cep.plurals import counted
from uncertain_cep.query import syntax
from uncertain_cep.query.checker import did_you_mean
from uncertain_cep.query.functions import (
    DATE_PARTS,
    FUNCTIONS,
    MOST_DIGITS,
    TYPES,
    ZONED,
    Function,
    Parameter,
)
from uncertain_cep.query.kinds import NUMBERS, Kinds, as_text, remedy, shown, text_columns
from uncertain_cep.query.text_patterns import groups_of, like_regex, regex_fault
from uncertain_cep.query.typed import KIND_NAMES, Apply, Constant, Kind, Operator, TypedExpression
from uncertain_cep.timeline.zones import known_zone

__all__ = ["Calls"]

_TYPE_NAMES: Final = "BIGINT, DOUBLE, VARCHAR, BOOLEAN"


class Calls(Kinds):
    """Knows the functions besides."""

    __slots__ = ()

    def _called(self, call: syntax.Call, operands: list[TypedExpression]) -> TypedExpression | None:
        """Return a call of typed operands; None, with faults noted, if it has no meaning."""
        function, position = call.function, call.position
        beside = next((operand for operand in operands if operand.kind in ("string", "time")), None)
        if beside is not None:
            pairs = zip(call.arguments, operands, strict=True)
            operands = [as_text(argument, operand, beside) for argument, operand in pairs]
        if function == "is_null":
            return Apply("is_null", tuple(operands), "bool")
        if function == "case":
            return self._case(call, operands)
        if function in ("in", "between"):
            alike = self._alike(call, operands)
            if alike is not None and function == "between" and alike[1] == "bool":
                self.refuse("true and false have no order: BETWEEN needs something else", position)
                return None
            return None if alike is None else Apply(cast("Operator", function), alike[0], "bool")
        if function in ("like", "ilike", "regexp"):
            return self._matching(call, operands)
        return self._function(call, operands, FUNCTIONS[function])

    def _alike(
        self, call: syntax.Call, operands: list[TypedExpression]
    ) -> tuple[tuple[TypedExpression, ...], Kind] | None:
        """Return operands with texts beside times as times, and the kind that they have in common."""
        time = next((operand for operand in operands if operand.kind == "time"), None)
        if time is not None:
            pairs = zip(operands, call.arguments, strict=True)
            timed = [self._timed(operand, time, argument.position) for operand, argument in pairs]
            if None in timed:
                return None
            operands = [operand for operand in timed if operand is not None]
        kinds = dict.fromkeys(operand.kind for operand in operands if operand.kind != "null")
        kind: Kind = next(iter(kinds), "null")
        if kinds.keys() <= NUMBERS:
            kind = "float" if "float" in kinds else kind
        elif len(kinds) > 1:
            first = {operand.kind: operand for operand in reversed(operands)}
            one, other = (first[kind] for kind in list(kinds)[:2])
            self.refuse(
                f"{shown(one)} is {KIND_NAMES[one.kind]} and {shown(other)} {KIND_NAMES[other.kind]}: "
                f"{_spelled(call)} needs values of one kind{remedy(one, other) or remedy(other, one)}",
                call.position,
                text_columns(*operands) if kinds.keys() & NUMBERS else (),
            )
            return None
        return tuple(operands), kind

    def _case(self, call: syntax.Call, operands: list[TypedExpression]) -> TypedExpression | None:
        conditions = zip(operands[:-1:2], call.arguments[:-1:2], strict=True)
        met = [self._boolean(typed, written.position) for typed, written in conditions]
        values = [*range(1, len(operands), 2), len(operands) - 1]
        chosen = replace(call, arguments=tuple(call.arguments[place] for place in values))
        alike = self._alike(chosen, [operands[place] for place in values])
        if None in met or alike is None:
            return None
        for place, value in zip(values, alike[0], strict=True):
            operands[place] = value
        return Apply("case", tuple(operands), alike[1])

    def _cast(self, call: syntax.Call, operand: TypedExpression | None) -> TypedExpression | None:
        type_ = cast("syntax.Literal", call.arguments[1])
        name = str(type_.value)
        kind = TYPES.get(name.lower())
        if kind is None:
            hint = did_you_mean(name.upper(), [type_name.upper() for type_name in TYPES])
            if name.lower() in ("timestamp", "date"):
                hint = f": write {name.upper()} '2024-05-01'"
            self.refuse(
                f"CAST knows no type {name}{hint or ': the types are ' + _TYPE_NAMES}", type_.position
            )
            return None
        if operand is None:
            return None
        if operand.kind in ("time", "duration"):
            self.refuse(
                f"{shown(operand)} is {KIND_NAMES[operand.kind]}: CAST takes numbers, strings and booleans",
                call.position,
            )
            return None
        return Apply("cast", (operand,), "null" if operand.kind == "null" else kind)

    def _matching(self, call: syntax.Call, operands: list[TypedExpression]) -> TypedExpression | None:
        sign = _spelled(call)
        if not self._takes(sign, "text", operands[0], call.arguments[0].position):
            return None
        by_column = call.function != "regexp" and len(operands) == 2
        needed: Parameter = "text" if by_column else "text constant"
        for operand, argument in zip(operands[1:], call.arguments[1:], strict=True):
            if not self._takes(sign, needed, operand, argument.position):
                return None
        function = cast("Operator", call.function)
        if "null" in [operand.kind for operand in operands]:
            return Apply(function, tuple(operands), "null")
        if not isinstance(operands[1], Constant):
            if function == "ilike":
                operands = [Apply("lower", (operand,), "string") for operand in operands]
            return Apply("like", tuple(operands), "bool")
        pattern, *escape = (str(cast("Constant", operand).value) for operand in operands[1:])
        if escape and (call.function == "regexp" or len(escape[0]) != 1):
            message = "ESCAPE takes one character, and belongs to LIKE: LIKE '100!%' ESCAPE '!'"
            self.refuse(message, call.arguments[2].position)
            return None
        if call.function != "regexp":
            try:
                pattern = like_regex(pattern, *escape, any_case=call.function == "ilike")
            except ValueError as error:
                self.refuse(f"{error}: double it", call.arguments[1].position)
                return None
        return Apply(function, tuple(operands), "bool") if self._is_regex(pattern, call) else None

    def _is_regex(self, pattern: str, call: syntax.Call) -> bool:
        fault = regex_fault(pattern)
        if fault is not None:
            message = f"{_spelled(call)} takes a regular expression of RE2, and this is none: {fault}"
            self.refuse(message, call.arguments[1].position)
        return fault is None

    def _function(
        self, call: syntax.Call, operands: list[TypedExpression], function: Function
    ) -> TypedExpression | None:
        name_of_zone = self.zone if call.function in ZONED else None
        if name_of_zone is not None and len(operands) == ZONED[call.function]:
            operands = [*operands, Constant(name_of_zone, "string")]
            call = replace(call, arguments=(*call.arguments, call.arguments[-1]))
        takes = list(function.takes[: len(operands)])
        takes += takes[-1:] * (len(operands) - len(takes))
        sign, name = _spelled(call), cast("Operator", call.function)
        met = []
        for place, parameter in enumerate(takes):
            position = call.arguments[place].position
            if parameter == "time":
                # A text is a time where one is needed.
                timed = self._timed(operands[place], Constant(0, "time"), position)
                if timed is None:
                    return None
                operands[place] = timed
            met.append(self._takes(sign, parameter, operands[place], position))
        if not all(met):
            return None
        if "any" in takes and name != "concat":
            return self._choosing(call, operands)
        if name != "concat" and any(operand.kind == "null" for operand in operands):
            return Apply(name, tuple(operands), "null")
        if not self._constants_fit(call, operands):
            return None
        if function.gives is not None:
            return Apply(name, tuple(operands), function.gives)
        whole = operands[0].kind == "int"
        if name == "round" and len(operands) > 1 and whole and int(_value(operands[1]) or 0) < 0:
            whole = False
        elif name in ("round", "floor", "ceil") and whole:
            return operands[0]
        return Apply(name, tuple(operands), "int" if whole else "float")

    def _choosing(self, call: syntax.Call, operands: list[TypedExpression]) -> TypedExpression | None:
        """Return a function that gives one of its operands."""
        alike = self._alike(call, operands)
        if alike is None:
            return None
        name, (operands_, kind) = cast("Operator", call.function), alike
        if name in ("least", "greatest") and kind == "bool":
            self.refuse(f"true and false have no order: {_spelled(call)} needs something else", call.position)
            return None
        return Apply(name, operands_, operands_[0].kind if name == "nullif" else kind)

    def _constants_fit(self, call: syntax.Call, operands: list[TypedExpression]) -> bool:
        """Return whether the constants that a function needs are in range; note a fault if one is not."""
        position = call.arguments[-1].position
        values = [_value(operand) for operand in operands]
        match call.function:
            case "round" if len(values) > 1 and abs(int(values[1] or 0)) > MOST_DIGITS:
                self.refuse(f"ROUND keeps or drops at most {MOST_DIGITS} digits", position)
            case "substring" if len(values) > 2 and int(values[2] or 0) < 0:
                self.refuse("the length of a SUBSTRING cannot be negative", position)
            case "date_trunc" if str(values[0]).lower().removesuffix("s") not in DATE_PARTS:
                self.refuse(
                    f"DATE_TRUNC knows these parts: {', '.join(DATE_PARTS)}", call.arguments[0].position
                )
            case "date_trunc" | "hour" | "dayofweek":
                zone = values[ZONED[call.function] :]
                if not zone or known_zone(str(zone[0])):
                    return True
                self.refuse(f"there is no time zone {zone[0]!r}: write one such as 'Europe/Prague'", position)
            case "regexp_extract":
                if not self._is_regex(str(values[1]), call):
                    return False
                group_count = groups_of(str(values[1]))
                if len(values) < 3 or 0 <= int(values[2] or 0) <= group_count:
                    return True
                self.refuse(f"this regular expression has {counted(group_count, 'group')}", position)
            case _:
                return True
        return False


def _value(typed: TypedExpression) -> int | float | str | bool | None:
    return typed.value if isinstance(typed, Constant) else None


def _spelled(call: syntax.Call) -> str:
    """Return a function's name as a query writes it."""
    return call.function.upper()
