"""Predicates across components compiled to the stack programs that the join kernel interprets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from confidence.predicates.bytecode import STACK_DEPTH, Opcode
from eventbased.joins.pivot_join import JoinBytecode
from uncertain_cep.errors import Fault, QueryError
from uncertain_cep.expressions.vectorised import Values, within_int64
from uncertain_cep.query.typed import Apply, Column, Constant, TypedExpression, variables_of

__all__ = [
    "BytecodeCompiler",
    "PreparedPredicates",
    "binding_orders",
    "compile_programs",
    "leaves_of",
    "rank_strings",
]

_PLAIN: Final = {
    "add": Opcode.ADD, "subtract": Opcode.SUBTRACT, "multiply": Opcode.MULTIPLY,
    "remainder": Opcode.REMAINDER, "negate": Opcode.NEGATE, "equal": Opcode.EQUAL,
    "not_equal": Opcode.NOT_EQUAL, "less": Opcode.LESS, "less_equal": Opcode.LESS_EQUAL,
    "and": Opcode.AND, "or": Opcode.OR, "not": Opcode.NOT,
}  # fmt: skip
_FLOAT: Final = {
    "add": Opcode.ADD_F, "subtract": Opcode.SUBTRACT_F, "multiply": Opcode.MULTIPLY_F,
    "divide": Opcode.DIVIDE_F, "remainder": Opcode.REMAINDER_F, "negate": Opcode.NEGATE_F,
    "equal": Opcode.EQUAL_F, "not_equal": Opcode.NOT_EQUAL_F, "less": Opcode.LESS_F,
    "less_equal": Opcode.LESS_EQUAL_F,
}  # fmt: skip
_MIRRORED: Final = {"greater": "less", "greater_equal": "less_equal"}


def binding_orders(length: int) -> NDArray[np.int64]:
    """Return for each pivot component the order in which the components are bound: (l, l) int64."""
    orders = [[p, *range(p - 1, -1, -1), *range(p + 1, length)] for p in range(length)]
    return np.array(orders, dtype=np.int64)


@dataclass(slots=True)
class BytecodeCompiler:
    """Collects values, constants and rows of code while predicates are compiled."""

    components: Mapping[str, int]
    first: NDArray[np.int64]
    values: Mapping[Column, Values]
    ranks: Mapping[str, int]
    rows: list[tuple[int, int]] = field(default_factory=list)
    ints: list[NDArray[np.int64]] = field(default_factory=list)
    floats: list[NDArray[np.float64]] = field(default_factory=list)
    nulls: list[NDArray[np.bool_]] = field(default_factory=list)
    slots: list[tuple[int, int, int]] = field(default_factory=list)
    places: dict[Column, int] = field(default_factory=dict)
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

    def slot(self, column: Column) -> int:
        """Return the number of a column's slot, a new one if there is none yet."""
        if column not in self.places:
            component = self.components[column.variable]
            found = self.values[column]
            size = len(found.data)
            offset = self._keep(found.data, column.kind == "float")
            self.nulls.append(np.zeros(size, dtype=np.bool_) if found.valid is None else ~found.valid)
            origin = int(self.first[component])
            self.slots.append((component, offset - origin, self.null_count - origin))
            self.null_count += size
            self.places[column] = len(self.slots) - 1
        return self.places[column]

    def push(self, expression: TypedExpression, *, real: bool) -> None:
        """Emit code that leaves the value on the stack, as float64 if ``real``."""
        if isinstance(expression, Column):
            is_real = expression.kind == "float"
            self._emit(Opcode.LOAD_F if is_real else Opcode.LOAD, self.slot(expression), pushes=1)
        elif isinstance(expression, Constant):
            value = expression.value
            is_real = isinstance(value, float)
            if value is None:
                self._emit(Opcode.NULL, pushes=1)
                return
            number = self.ranks[value] if isinstance(value, str) else value
            place = self._keep(np.array([number]), is_real)
            self._emit(Opcode.CONSTANT_F if is_real else Opcode.CONSTANT, place, pushes=1)
        else:
            is_real = self._apply(expression)
        if real and not is_real:
            self._emit(Opcode.TO_FLOAT)

    def _apply(self, expression: Apply) -> bool:
        operands = expression.operands
        operator: str = expression.operator
        if operator in _MIRRORED:
            operator, operands = _MIRRORED[operator], operands[::-1]
        logical = operator in ("and", "or", "not")
        # There is no division of integers: where an operand is null, the kind does not say that it is real.
        real = not logical and (
            operator == "divide"
            or expression.kind == "float"
            or any(part.kind == "float" for part in operands)
        )
        for part in operands:
            self.push(part, real=real)
        self._emit((_FLOAT if real else _PLAIN)[operator], pushes=1 - len(operands))
        return expression.kind == "float"

    def predicate(self, expression: TypedExpression) -> None:
        """Emit a whole predicate."""
        self.depth = 0
        self.push(expression, real=False)
        self.rows.append((-1, 0))


def rank_strings(values: dict[Column, Values], constants: Sequence[str]) -> dict[str, int]:
    """Replace strings in ``values`` by their ranks among all in play, and return that of each constant."""
    arrays = [found.data.unique() for column, found in values.items() if column.kind == "string"]
    if not arrays and not constants:
        return {}
    arrays.append(pa.array(constants, pa.large_string()))
    distinct = pa.chunked_array(arrays).unique().drop_null()
    distinct = distinct.take(pc.sort_indices(distinct))
    for column, found in values.items():
        if column.kind == "string":
            rank = pc.index_in(found.data, distinct).fill_null(0).to_numpy(zero_copy_only=False)
            values[column] = Values(np.asarray(rank, dtype=np.int64), found.valid)
    ranks = pc.index_in(pa.array(constants, pa.large_string()), distinct).to_pylist()
    return dict(zip(constants, ranks, strict=True))


def leaves_of(expression: TypedExpression) -> list[Column | Constant]:
    """Return the columns and constants of an expression, from left to right."""
    if isinstance(expression, Apply):
        return [part for operand in expression.operands for part in leaves_of(operand)]
    return [expression]


class PreparedPredicates:
    """Predicates over a layout of candidates, and the programs that are compiled of them.

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
        The same, with operations that could leave int64 done in float64.
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
        constants = list(
            dict.fromkeys(
                part.value for part in parts if isinstance(part, Constant) and isinstance(part.value, str)
            )
        )
        ranks = rank_strings(values, constants)

        def extremes(column: Column) -> tuple[int, int]:
            data = values[column].data
            return (int(data.min()), int(data.max())) if len(data) else (0, 0)

        self.values = values
        self.predicates = [within_int64(predicate, extremes) for predicate in predicates]
        components = {variable: j for j, variable in enumerate(variables)}
        self._variables = variables
        self._compiler = BytecodeCompiler(components, first, values, ranks)

    def rows(self, predicates: Sequence[TypedExpression]) -> tuple[int, int]:
        """Compile some of the predicates; return the first row of their programs and that behind the last."""
        first = len(self._compiler.rows)
        for predicate in predicates:
            self._compiler.predicate(predicate)
        return first, len(self._compiler.rows)

    def in_orders(self, orders: NDArray[np.int64]) -> NDArray[np.int64]:
        """Compile the predicates for orders in which components are bound, each as soon as it can be run.

        Parameters
        ----------
        orders : (k, l) int64

        Returns
        -------
        (k, l + 1) int64
            For each order and step the first row of its programs.
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

    def programs(self, start: NDArray[np.int64]) -> JoinBytecode:
        """Return all that was compiled."""

        def joined(arrays: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
            return np.concatenate(arrays) if arrays else np.zeros(0, dtype=dtype)

        compiler = self._compiler
        return JoinBytecode(
            start=start,
            code=np.array(compiler.rows, dtype=np.int64).reshape(-1, 2),
            ints=joined(compiler.ints, np.int64),
            floats=joined(compiler.floats, np.float64),
            nulls=joined(compiler.nulls, np.bool_),
            slots=np.array(compiler.slots, dtype=np.int64).reshape(-1, 3),
        )


def compile_programs(
    predicates: Sequence[TypedExpression],
    variables: Sequence[str],
    first: NDArray[np.int64],
    load: Callable[[Column], Values],
) -> JoinBytecode:
    """Compile predicates for a layout of candidates and a search from any pivot component.

    Parameters
    ----------
    predicates, variables, first, load
        See :class:`PreparedPredicates`.
    """
    prepared = PreparedPredicates(predicates, variables, first, load)
    return prepared.programs(prepared.in_orders(binding_orders(len(variables))))
