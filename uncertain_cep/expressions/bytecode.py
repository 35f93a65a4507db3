"""Predicates across components compiled to the bytecode that the join kernel interprets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from confidence.budget import checkpoint
from confidence.predicates.bytecode import SLOT_BITS, STACK_DEPTH, Function, Opcode
from confidence.predicates.text_relations import text_words
from eventbased.joins.join_state import JoinBytecode
from uncertain_cep.errors import Fault, QueryError
from uncertain_cep.expressions.beyond_int64 import is_beyond_int64
from uncertain_cep.expressions.codes import places_in, sorted_strings
from uncertain_cep.expressions.vectorised import Values, evaluate
from uncertain_cep.expressions.whole_numbers import may_leave_int64, with_checks
from uncertain_cep.query.expression_text import OPERATOR_SIGNS
from uncertain_cep.query.functions import BETWEEN_EVENTS, PERIODS, date_part
from uncertain_cep.query.typed import (
    Aggregated,
    Apply,
    Column,
    Constant,
    Kind,
    TypedExpression,
    leaves_of,
    variables_of,
)

__all__ = [
    "BytecodeCompiler",
    "PreparedPredicates",
    "Ranks",
    "binding_orders",
    "compile_bytecode",
    "rank_strings",
    "strings_in",
    "sums_of",
]

_MIRRORED: Final = {"greater": "less", "greater_equal": "less_equal"}
_COMPARED: Final = {
    "equal": Opcode.ARE_EQUAL, "not_equal": Opcode.ARE_NOT_EQUAL, "less": Opcode.IS_LESS,
    "less_equal": Opcode.IS_LESS_EQUAL,
}  # fmt: skip
_ARITHMETIC: Final = frozenset({"add", "subtract", "multiply", "divide", "remainder", "negate"})

Form = Literal["", "_F", "_N"]
"""How a value stands on the stack: as int64, as float64, or as a number that is int64 where it fits."""

_CONVERSIONS: Final[dict[tuple[Form, Form], Opcode]] = {
    ("", "_F"): Opcode.TO_FLOAT, ("", "_N"): Opcode.TO_NUMBER, ("_N", "_F"): Opcode.TO_FLOAT_N,
}  # fmt: skip


def binding_orders(length: int) -> NDArray[np.int64]:
    """Return for each pivot component the order in which the components are bound: (l, l) int64."""
    orders = [[p, *range(p - 1, -1, -1), *range(p + 1, length)] for p in range(length)]
    return np.array(orders, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Ranks:
    """The ranks of texts among all in play."""

    of_constants: Mapping[str, int]
    texts: pa.Array | None
    """(t,) large_string, by rank; None: no predicate has any."""

    def words(self) -> NDArray[np.int64]:
        """Return all texts as bytecode reads them."""
        if self.texts is None:
            return text_words(np.zeros(1, np.int64), np.zeros(0, np.uint8))
        texts = self.texts.combine_chunks() if isinstance(self.texts, pa.ChunkedArray) else self.texts
        checkpoint(2 * texts.nbytes)
        _, offsets, data = texts.cast(pa.large_string()).buffers()
        begin = np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        letters = np.zeros(0, np.uint8) if data is None else np.frombuffer(data, np.uint8)
        return text_words(begin - begin[0], letters[begin[0] : begin[-1]])


@dataclass(slots=True)
class BytecodeCompiler:
    """Collects values, constants and rows of code while predicates are compiled."""

    components: Mapping[str, int]
    first: NDArray[np.int64]
    values: Mapping[Column, Values]
    ranks: Ranks
    rows: list[tuple[int, int]] = field(default_factory=list)
    ints: list[NDArray[np.int64]] = field(default_factory=list)
    floats: list[NDArray[np.float64]] = field(default_factory=list)
    nulls: list[NDArray[np.bool_]] = field(default_factory=list)
    slots: list[tuple[int, int, int]] = field(default_factory=list)
    places: dict[Column, int] = field(default_factory=dict)
    computes: bool = False
    """Whether what one component's columns give is computed once for each candidate, and has a slot."""
    computed: dict[tuple[TypedExpression, bool], int | None] = field(default_factory=dict)
    texts: int | None = None
    """Where all texts stand among the integers; None: no predicate reads them."""
    int_count: int = 0
    float_count: int = 0
    null_count: int = 0
    depth: int = 0

    def _emit(self, opcode: Opcode, argument: int = 0, *, pushes: int = 0) -> None:
        self.rows.append((int(opcode), argument))
        self.depth += pushes
        if self.depth > STACK_DEPTH:
            raise QueryError(
                [Fault(f"a predicate nests more than {STACK_DEPTH} operands deep: split it", 1, 1)]
            )

    def _keep(self, data: NDArray[Any], real: bool) -> int:
        if real:
            self.floats.append(np.asarray(data, dtype=np.float64))
            self.float_count += len(data)
            return self.float_count - len(data)
        self.ints.append(np.asarray(data, dtype=np.int64))
        self.int_count += len(data)
        return self.int_count - len(data)

    def _keep_nulls(self, values: Values) -> int:
        size = len(values.data)
        self.nulls.append(np.zeros(size, dtype=np.bool_) if values.valid is None else ~values.valid)
        self.null_count += size
        return self.null_count - size

    def slot(self, column: Column) -> int:
        """Return the number of a column's slot, a new one if there is none yet."""
        if column not in self.places:
            values = self.values[column]
            self.places[column] = self._new_slot(column.variable, values, column.kind == "float")
        return self.places[column]

    def _new_slot(self, variable: str, values: Values, real: bool) -> int:
        component = self.components[variable]
        origin = int(self.first[component])
        self.slots.append(
            (component, self._keep(values.data, real) - origin, self._keep_nulls(values) - origin)
        )
        return len(self.slots) - 1

    def operand(self, expression: TypedExpression, *, real: bool) -> int | None:
        """Return the number of the slot with the values of an expression, None if it has none."""
        if isinstance(expression, Column) and (expression.kind == "float") == real:
            return None if may_leave_int64(expression) else self.slot(expression)
        key = expression, real
        if self.computes and key not in self.computed and (variable := _of_one_component(expression)):
            values = evaluate(expression, self.values.__getitem__)
            fits = real or not is_beyond_int64(values)
            self.computed[key] = self._new_slot(variable, values, real) if fits else None
        return self.computed.get(key)

    def push(self, expression: TypedExpression, form: Form) -> None:
        """Emit code that leaves a value on the stack in a form; what is float64 always stands as that."""
        if expression.kind == "float":
            form = "_F"
        if form != "_N":
            slot = self.operand(expression, real=form == "_F")
            if slot is not None:
                self._emit(Opcode.LOAD_F if form else Opcode.LOAD, slot, pushes=1)
                return
        stands = self._stand(expression)
        if stands != form:
            self._emit(_CONVERSIONS[stands, form])

    def _stand(self, expression: TypedExpression) -> Form:
        """Emit code that leaves a value on the stack; return the form in which it stands there."""
        whole = None if expression.kind == "float" else self.operand(expression, real=False)
        if whole is not None:
            self._emit(Opcode.LOAD, whole, pushes=1)
            return ""
        if isinstance(expression, Constant):
            return self._constant(expression)
        if isinstance(expression, Aggregated) and expression.checked:
            wrapped, real = sums_of(expression)
            self._emit(Opcode.LOAD, self.slot(wrapped), pushes=1)
            self._emit(Opcode.LOAD_F, self.slot(real), pushes=1)
            self._emit(Opcode.SUM_N, pushes=-1)
            return "_N"
        if isinstance(expression, Column):
            opcode = Opcode.LOAD_F if expression.kind == "float" else Opcode.LOAD
            self._emit(opcode, self.slot(expression), pushes=1)
        elif expression.operator in OPERATOR_SIGNS:
            self._apply(expression)
        else:
            self._function(expression)
        return _form_of(expression)

    def _constant(self, constant: Constant) -> Form:
        value = constant.value
        if value is None:
            # It is as null in one form as in another.
            self._emit(Opcode.NULL, pushes=1)
            return ""
        is_real = isinstance(value, float)
        number = self.ranks.of_constants[value] if isinstance(value, str) else value
        place = self._keep(np.array([number]), is_real)
        self._emit(Opcode.CONSTANT_F if is_real else Opcode.CONSTANT, place, pushes=1)
        return "_F" if is_real else ""

    def _apply(self, expression: Apply) -> None:
        operands = expression.operands
        operator: str = expression.operator
        if operator in _MIRRORED:
            operator, operands = _MIRRORED[operator], operands[::-1]
        form: Form = ""
        if operator == "divide":
            # There is none of integers: where an operand is null, the kind does not say that it is real.
            form = "_F"
        elif operator not in ("and", "or", "not"):
            form = _common_form(expression, *operands)
        for part in operands:
            self.push(part, form)
        self._emit(Opcode[operator.upper() + form], pushes=1 - len(operands))

    def _number(self, value: float, form: Form) -> None:
        """Emit code that leaves a number on the stack."""
        self.push(Constant(float(value), "float") if form == "_F" else Constant(int(value), "int"), form)

    def _pick(self, depth: int) -> None:
        """Emit code that leaves a copy of an operand on the stack, 0 for the last."""
        self._emit(Opcode.PICK, depth, pushes=1)

    def _function(self, expression: Apply) -> None:
        """Emit code for a function; one that takes an operand several times works it out once."""
        for emit in (self._of_texts, self._test, self._choice, self._of_time, self._of_number):
            if emit(expression):
                return

    def _of_texts(self, expression: Apply) -> bool:
        """Emit code for how two texts are related; return False for other functions."""
        if expression.operator not in BETWEEN_EVENTS:
            return False
        if expression.kind == "null":
            self._emit(Opcode.NULL, pushes=1)
            return True
        if self.texts is None:
            self.texts = self._keep(self.ranks.words(), False)
        for operand in expression.operands:
            self.push(operand, "")
        # A list is a text that contains those of its elements.
        relation = "contains" if expression.operator == "has_item" else expression.operator
        self._emit(Opcode[relation.upper()], self.texts, pushes=-1)
        return True

    def _test(self, expression: Apply) -> bool:
        """Emit code for what is true or false of the first operand; return False for other functions."""
        operator, operands = expression.operator, expression.operands
        form = _common_form(expression, *operands)
        binary = partial(self._emit, pushes=-1)
        match operator:
            case "is_null":
                self.push(operands[0], _form_of(operands[0]))
                self._emit(Opcode.IS_NULL)
            case "in":
                self.push(operands[0], form)
                for place, operand in enumerate(operands[1:]):
                    self.push(operand, form)
                    self._pick(2 if place else 1)
                    binary(Opcode["EQUAL" + form])
                    if place:
                        binary(Opcode.OR)
                binary(Opcode.NIP)
            case "between":
                self.push(operands[0], form)
                self.push(operands[1], form)
                self._pick(1)
                binary(Opcode["LESS_EQUAL" + form])
                self._pick(1)
                self.push(operands[2], form)
                binary(Opcode["LESS_EQUAL" + form])
                binary(Opcode.AND)
                binary(Opcode.NIP)
            case _:
                return False
        return True

    def _choice(self, expression: Apply) -> bool:
        """Emit code for one of the operands, or null; return False for other functions."""
        operator, operands = expression.operator, expression.operands
        form = _common_form(expression, *operands)
        binary = partial(self._emit, pushes=-1)
        match operator:
            case "case":
                form = _form_of(expression)
                self.push(operands[-1], form)
                for place in range(len(operands) - 3, -1, -2):
                    self.push(operands[place + 1], form)
                    self.push(operands[place], "")
                    self._emit(Opcode.SELECT, pushes=-2)
            case "coalesce":
                form = _form_of(expression)
                self.push(operands[-1], form)
                for operand in operands[-2::-1]:
                    self.push(operand, form)
                    binary(Opcode.OTHERWISE)
            case "nullif":
                stands = _form_of(expression)
                self.push(operands[0], stands)
                self._emit(Opcode.NULL, pushes=1)
                self._pick(1)
                if form != stands:
                    self._emit(_CONVERSIONS[stands, form])
                self.push(operands[1], form)
                binary(Opcode["EQUAL" + form])
                self._emit(Opcode.SELECT, pushes=-2)
            case "least" | "greatest":
                form = _form_of(expression)
                self.push(operands[0], form)
                for operand in operands[1:]:
                    self.push(operand, form)
                    # The new one if it is better, else the old one; if that is null, the new one.
                    for depth in (1, 1, 0, 2) if operator == "least" else (1, 1, 1, 1):
                        self._pick(depth)
                    binary(Opcode["LESS" + form])
                    self._emit(Opcode.SELECT, pushes=-2)
                    binary(Opcode.OTHERWISE)
                    binary(Opcode.NIP)
            case _:
                return False
        return True

    def _of_time(self, expression: Apply) -> bool:
        """Emit code for a part of a time; return False for other functions."""
        operator, operands = expression.operator, expression.operands
        match operator:
            case "hour":
                self._since(operands[0], PERIODS["day"], 0)
                self._parts(PERIODS["hour"])
            case "dayofweek":
                # The first of January 1970 was a Thursday.
                self._since(operands[0], PERIODS["week"], 4 * PERIODS["day"])
                self._parts(PERIODS["day"])
            case "date_trunc":
                part = date_part(expression)
                self._push_whole(operands[1])
                self._since(None, PERIODS[part], 3 * PERIODS["day"] if part == "week" else 0)
                self._emit(Opcode.SUBTRACT, pushes=-1)
            case _:
                return False
        return True

    def _of_number(self, expression: Apply) -> bool:
        """Emit code for a function of numbers."""
        operator, operands = expression.operator, expression.operands
        form = _common_form(expression, *operands)
        binary = partial(self._emit, pushes=-1)
        match operator:
            case "abs":
                self.push(operands[0], form)
                self._pick(0)
                self._emit(Opcode["NEGATE" + form])
                self._pick(1)
                self._number(0, form)
                binary(Opcode["LESS" + form])
                self._emit(Opcode.SELECT, pushes=-2)
            case "sign":
                self.push(operands[0], form)
                self._number(0, form)
                self._pick(1)
                binary(Opcode["LESS" + form])
                self._pick(1)
                self._number(0, form)
                binary(Opcode["LESS" + form])
                binary(Opcode.SUBTRACT)
                binary(Opcode.NIP)
            case "power":
                self.push(operands[0], "_F")
                self.push(operands[1], "_F")
                binary(Opcode.POWER_F)
            case "cast":
                self._cast(operands[0], expression.kind)
            case "ceil":
                self.push(operands[0], "_F")
                self._emit(Opcode.NEGATE_F)
                self._emit(Opcode.FUNCTION_F, Function.FLOOR)
                self._emit(Opcode.NEGATE_F)
            case "round" if len(operands) > 1:
                self._round(operands[0], operands[1])
            case _:
                self.push(operands[0], "_F")
                self._emit(Opcode.FUNCTION_F, Function[operator.upper()])
        return True

    def _since(self, time: TypedExpression | None, period: int, shift: int) -> None:
        """Emit code for how long ago a period began; of the last operand, which stays, if no time is given.

        ``shift`` is how far 1970 began into its period.
        """
        if time is None:
            self._pick(0)
        else:
            self._push_whole(time)
        for number, opcode in (
            (period, Opcode.REMAINDER), (period + shift, Opcode.ADD), (period, Opcode.REMAINDER)
        ):  # fmt: skip
            self._number(number, "")
            self._emit(opcode, pushes=-1)

    def _push_whole(self, expression: TypedExpression) -> None:
        """Emit code that leaves a whole number on the stack, null for one of more than 64 bits."""
        self.push(expression, _form_of(expression))
        if may_leave_int64(expression):
            self._emit(Opcode.TO_WHOLE_N)

    def _parts(self, length: int) -> None:
        """Emit code for how many lengths of time, whole ones, the last operand holds."""
        self._emit(Opcode.TO_FLOAT)
        self._number(length, "_F")
        self._emit(Opcode.DIVIDE_F, pushes=-1)
        self._emit(Opcode.FUNCTION_F, Function.FLOOR)
        self._emit(Opcode.TO_WHOLE)

    def _round(self, operand: TypedExpression, digits: TypedExpression) -> None:
        """Emit code for the rounded value; for the value itself where that is beyond float64."""
        assert isinstance(digits, Constant)
        places = int(digits.value or 0)
        there, back = (Opcode.MULTIPLY_F, Opcode.DIVIDE_F)[:: 1 if places >= 0 else -1]
        self.push(operand, "_F")
        self._pick(0)
        self._number(10.0 ** abs(places), "_F")
        self._emit(there, pushes=-1)
        self._emit(Opcode.FUNCTION_F, Function.ROUND)
        self._number(10.0 ** abs(places), "_F")
        self._emit(back, pushes=-1)
        self._pick(0)
        self._pick(0)
        self._emit(Opcode.SUBTRACT_F, pushes=-1)
        self._number(0, "_F")
        self._emit(Opcode.EQUAL_F, pushes=-1)
        self._emit(Opcode.SELECT, pushes=-2)

    def _cast(self, operand: TypedExpression, kind: Kind) -> None:
        stands: Form = "_F" if kind == "float" else _form_of(operand)
        self.push(operand, stands)
        if kind == "int" and stands:
            self._emit(Opcode.TO_WHOLE if stands == "_F" else Opcode.TO_WHOLE_N)
        elif kind == "bool" and operand.kind in ("int", "float"):
            self._number(0, stands)
            self._emit(Opcode["NOT_EQUAL" + stands], pushes=-1)

    def comparison(self, expression: TypedExpression) -> tuple[int, int] | None:
        """Return the row of a predicate that compares slots of two components, None of any other."""
        if not isinstance(expression, Apply):
            return None
        operator: str = expression.operator
        operands = expression.operands
        if operator in _MIRRORED:
            operator, operands = _MIRRORED[operator], operands[::-1]
        if operator not in _COMPARED:
            return None
        real = any(part.kind == "float" for part in operands)
        left, right = (self.operand(part, real=real) for part in operands)
        # Who looks for events by such a row knows one of the two already.
        if left is None or right is None or self.slots[left][0] == self.slots[right][0]:
            return None
        return int(Opcode[_COMPARED[operator].name + ("_F" if real else "")]), left << SLOT_BITS | right

    def predicate(self, expression: TypedExpression) -> None:
        """Emit a whole predicate."""
        compared = self.comparison(expression)
        if compared is not None:
            self.rows.append(compared)
            return
        self.depth = 0
        self.push(expression, "")
        self.rows.append((-1, 0))

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Return the arrays of :func:`confidence.predicates.bytecode.holds` by their names."""
        return {
            "code": np.array(self.rows, dtype=np.int64).reshape(-1, 2),
            "ints": np.concatenate([np.zeros(0, dtype=np.int64), *self.ints]),
            "floats": np.concatenate([np.zeros(0), *self.floats]),
            "nulls": np.concatenate([np.zeros(0, dtype=np.bool_), *self.nulls]),
            "slots": np.array(self.slots, dtype=np.int64).reshape(-1, 3),
        }


def sums_of(column: Column) -> list[Aggregated]:
    """Return the aggregates by which one is worked out; none of what is none.

    For a sum that may leave int64: that in int64, which wraps around, and that in float64, which tells
    whether it did.
    """
    if not isinstance(column, Aggregated):
        return []
    whole = replace(column, checked=False)
    return [whole, replace(whole, kind="float")] if column.checked else [whole]


def _form_of(expression: TypedExpression) -> Form:
    """Return the form in which an expression's value can be told exactly."""
    return "_F" if expression.kind == "float" else "_N" if may_leave_int64(expression) else ""


def _common_form(*expressions: TypedExpression) -> Form:
    """Return the form that the values of some expressions are worked out in together."""
    forms = {_form_of(expression) for expression in expressions}
    return "_F" if "_F" in forms else "_N" if "_N" in forms else ""


def _of_one_component(expression: TypedExpression) -> str | None:
    """Return the variable of arithmetic over the numbers of one event, None of anything else."""
    if isinstance(expression, Column):
        return None if expression.kind in ("string", "null") else expression.variable
    if (
        isinstance(expression, Constant)
        or expression.operator not in _ARITHMETIC
        or expression.kind == "null"
    ):
        return None
    parts = [operand for operand in expression.operands if not isinstance(operand, Constant)]
    variables = {_of_one_component(operand) for operand in parts}
    return variables.pop() if len(variables) == 1 else None


def strings_in(predicates: Iterable[TypedExpression]) -> list[str]:
    """Return the different strings among the constants of some predicates."""
    leaves = (leaf for predicate in predicates for leaf in leaves_of(predicate))
    texts = (leaf.value for leaf in leaves if isinstance(leaf, Constant))
    return list(dict.fromkeys(text for text in texts if isinstance(text, str)))


NO_RANKS: Final = Ranks({}, None)


def rank_strings(values: dict[Column, Values], predicates: Iterable[TypedExpression]) -> Ranks:
    """Replace strings in ``values`` by their ranks among all in play, and return these."""
    constants = strings_in(predicates)
    texts = {column: texts_of_column for column, texts_of_column in values.items() if column.kind == "string"}
    if not constants and not texts:
        return NO_RANKS
    constant_array = pa.array(constants, pa.large_string())
    distinct = sorted_strings([constant_array, *(texts_of_column.data for texts_of_column in texts.values())])
    for column, texts_of_column in texts.items():
        # The rank of a null is never looked at.
        values[column] = Values(
            np.maximum(places_in(texts_of_column.data, distinct), 0), texts_of_column.valid
        )
    return Ranks(dict(zip(constants, places_in(constant_array, distinct).tolist(), strict=True)), distinct)


class PreparedPredicates:
    """Predicates over a layout of candidates, and the bytecode that they are compiled to.

    Parameters
    ----------
    predicates : sequence of TypedExpression
        Each mentions at least two variables.
    variables : sequence of str
        In pattern order.
    first : (l + 1,) int64
        Where each component's candidates start.
    load : callable
        ``load(column) -> Values``, one value for each candidate of the column's component.

    Attributes
    ----------
    predicates : list of TypedExpression
        The same, operations that could leave int64 checked.
    values : dict of Column to Values
        Of all columns that they mention; strings are replaced by their ranks among all strings.
    """

    def __init__(
        self,
        predicates: Sequence[TypedExpression],
        variables: Sequence[str],
        first: NDArray[np.int64],
        load: Callable[[Column], Values],
    ) -> None:
        parts = [part for predicate in predicates for part in leaves_of(predicate)]
        values: dict[Column, Values] = {part: load(part) for part in parts if isinstance(part, Column)}
        ranks = rank_strings(values, predicates)

        self.values = values
        self.predicates = [
            with_checks(predicate, lambda column: values[column].extremes) for predicate in predicates
        ]
        components = {variable: j for j, variable in enumerate(variables)}
        self._variables = variables
        self._compiler = BytecodeCompiler(components, first, values, ranks, computes=True)

    def rows(self, predicates: Sequence[TypedExpression]) -> tuple[int, int]:
        """Compile some of the predicates; return the first row of their bytecode and that behind the last.

        Comparisons of two slots, which are cheapest, come first.
        """
        first = len(self._compiler.rows)
        for predicate in sorted(predicates, key=lambda part: self._compiler.comparison(part) is None):
            self._compiler.predicate(predicate)
        return first, len(self._compiler.rows)

    def in_orders(self, orders: NDArray[np.int64]) -> NDArray[np.int64]:
        """Compile the predicates for (k, l) int64 orders of binding, each as soon as it can be run.

        Returns the first row of the bytecode of each order and step, (k, l + 1) int64.
        """
        length = len(self._variables)
        start = np.zeros((len(orders), length + 1), dtype=np.int64)
        for p, order in enumerate(orders.tolist()):
            bound: set[str] = {self._variables[order[0]]}
            start[p, 0] = start[p, 1] = len(self._compiler.rows)
            waiting = list(self.predicates)
            for step in range(1, length):
                bound.add(self._variables[order[step]])
                ready = [part for part in waiting if variables_of(part) <= bound]
                waiting = [part for part in waiting if not variables_of(part) <= bound]
                start[p, step + 1] = self.rows(ready)[1]
        return start

    def bytecode(self, start: NDArray[np.int64]) -> JoinBytecode:
        """Return all that was compiled."""
        return JoinBytecode(start=start, **self._compiler.arrays())


def compile_bytecode(
    predicates: Sequence[TypedExpression],
    variables: Sequence[str],
    first: NDArray[np.int64],
    load: Callable[[Column], Values],
) -> JoinBytecode:
    """Compile predicates for a layout, as :class:`PreparedPredicates` has it, and a search from any pivot."""
    if not predicates:
        return _no_bytecode(len(variables))
    prepared = PreparedPredicates(predicates, variables, first, load)
    return prepared.bytecode(prepared.in_orders(binding_orders(len(variables))))


@cache
def _no_bytecode(length: int) -> JoinBytecode:
    """Return the bytecode of a pattern of some components without predicates."""
    compiler = BytecodeCompiler({}, np.zeros(1, dtype=np.int64), {}, NO_RANKS)
    return JoinBytecode(start=np.zeros((length, length + 1), dtype=np.int64), **compiler.arrays())
