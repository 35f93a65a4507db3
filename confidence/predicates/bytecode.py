"""Predicates across components as bytecode for a stack machine, interpreted in the kernels that bind events.

The bytecode of a predicate is a range of (opcode, argument) rows. Kinds are settled when it is compiled, so
every opcode works on one kind; nulls travel beside the values and follow SQL's three-valued logic. One row is
enough for a predicate that compares two columns. Kernels that meet many candidates one after the other run
the first such row themselves, since a call costs more than the comparison.
"""

from __future__ import annotations

import enum
import math
from typing import Final

import numpy as np

from confidence.kernel import kernel
from confidence.predicates.text_relations import is_related

__all__ = [
    "SLOT_BITS",
    "STACK_DEPTH",
    "UNRELATED",
    "Function",
    "Opcode",
    "holds",
    "leading_comparison",
    "next_related",
    "related",
    "value_at",
]

STACK_DEPTH: Final = 64
"""Operands that a predicate may hold at once."""

SLOT_BITS: Final = 24
"""Of the argument that names two slots, those of the second one."""

SECOND_SLOT: Final = (1 << SLOT_BITS) - 1
"""Mask for the second one."""


class Opcode(enum.IntEnum):
    """The instructions of bytecode; ``_F`` works on float64, ``_N`` on numbers, the others on int64.

    A number is int64 where it fits, and NaN as float64; else it is float64.
    """

    LOAD = 0
    LOAD_F = 1
    CONSTANT = 2
    CONSTANT_F = 3
    NULL = 4
    TO_FLOAT = 5
    ADD = 6
    SUBTRACT = 7
    MULTIPLY = 8
    REMAINDER = 9
    NEGATE = 10
    ADD_F = 11
    SUBTRACT_F = 12
    MULTIPLY_F = 13
    DIVIDE_F = 14
    REMAINDER_F = 15
    NEGATE_F = 16
    EQUAL = 17
    NOT_EQUAL = 18
    LESS = 19
    LESS_EQUAL = 20
    EQUAL_F = 21
    NOT_EQUAL_F = 22
    LESS_F = 23
    LESS_EQUAL_F = 24
    AND = 25
    OR = 26
    NOT = 27
    IS_NULL = 28
    TO_WHOLE = 29
    FUNCTION_F = 30
    POWER_F = 31
    TO_NUMBER = 32
    TO_FLOAT_N = 33
    TO_WHOLE_N = 34
    NEGATE_N = 35
    # Of two texts by their ranks; the argument is where all texts stand among the integers.
    CONTAINS = 36
    STARTS_WITH = 37
    LIKE = 38
    SHARES = 39
    # Of a sum in int64, which wraps around, and the same in float64.
    SUM_N = 40
    ADD_N = 41
    SUBTRACT_N = 42
    MULTIPLY_N = 43
    REMAINDER_N = 44
    EQUAL_N = 45
    NOT_EQUAL_N = 46
    LESS_N = 47
    LESS_EQUAL_N = 48
    # Copies an operand below the last one, as far down as the argument says, on top.
    PICK = 49
    # The last ones leave one of their operands: the last, the last unless it is null, or the last but one if
    # the last is true and else the one below.
    NIP = 50
    OTHERWISE = 51
    SELECT = 52
    # Whole predicates: how the values of two slots compare. The argument is both of their numbers.
    ARE_EQUAL = 53
    ARE_NOT_EQUAL = 54
    IS_LESS = 55
    IS_LESS_EQUAL = 56
    ARE_EQUAL_F = 57
    ARE_NOT_EQUAL_F = 58
    IS_LESS_F = 59
    IS_LESS_EQUAL_F = 60


class Function(enum.IntEnum):
    """The functions of float64 that FUNCTION_F applies."""

    FLOOR = 0
    ROUND = 1
    SQRT = 2
    LN = 3
    EXP = 4


# Kernels take plain numbers.
(
    LOAD, LOAD_F, CONSTANT, CONSTANT_F, NULL, TO_FLOAT, ADD, SUBTRACT, MULTIPLY, REMAINDER, NEGATE, ADD_F,
    SUBTRACT_F, MULTIPLY_F, DIVIDE_F, REMAINDER_F, NEGATE_F, EQUAL, NOT_EQUAL, LESS, LESS_EQUAL, EQUAL_F,
    NOT_EQUAL_F, LESS_F, LESS_EQUAL_F, AND, OR, NOT, IS_NULL, TO_WHOLE, FUNCTION_F, POWER_F, TO_NUMBER,
    TO_FLOAT_N, TO_WHOLE_N, NEGATE_N, CONTAINS, STARTS_WITH, LIKE, SHARES, SUM_N, ADD_N, SUBTRACT_N,
    MULTIPLY_N, REMAINDER_N, EQUAL_N, NOT_EQUAL_N, LESS_N, LESS_EQUAL_N, PICK, NIP, OTHERWISE, SELECT,
    ARE_EQUAL, ARE_NOT_EQUAL, IS_LESS, IS_LESS_EQUAL, ARE_EQUAL_F, ARE_NOT_EQUAL_F, IS_LESS_F,
    IS_LESS_EQUAL_F,
) = map(int, Opcode)  # fmt: skip
FLOOR, ROUND, SQRT, LN, EXP = map(int, Function)

UNRELATED: Final = -1
"""Instead of a relation, where the first row of some bytecode compares no column of a component."""

# How a value compares with another: as the opcodes, and the other way round.
SAME, OTHER, BELOW, NOT_ABOVE, ABOVE, NOT_BELOW = range(6)

LARGEST_EXPONENT: Final = 709.782712893384
"""Above it exp is beyond float64."""


WHOLE: Final = 2.0**52
"""From here on every float64 is whole."""


# Written out, for NumPy's functions of one number are dear to compile. Python's would refuse some arguments.
@kernel
def _applied(function, x):
    """Return a function's value, NaN if it has none."""
    if function in (FLOOR, ROUND):
        size = abs(x)
        if not size < WHOLE:
            return x
        whole = float(int(size))
        if function == ROUND:
            whole += 1.0 if size - whole >= 0.5 else 0.0
        elif x < 0.0 and whole < size:
            whole += 1.0
        return -whole if x < 0.0 else whole
    if function == SQRT:
        return math.sqrt(x) if x >= 0.0 else np.nan
    if function == LN:
        if x > 0.0:
            return math.log(x)
        return -np.inf if x == 0.0 else np.nan
    return math.exp(x) if x <= LARGEST_EXPONENT else x * np.inf


LEAST: Final = -(2**63)
MOST: Final = 2**63 - 1
HALF: Final = 2.0**32
LIMIT: Final = 2.0**63
"""Above every int64."""


@kernel
def _remainder(x, y):
    """Return the rest of a division by what is not 0, with the sign of ``x``."""
    if y == -1:
        # The smallest number has no quotient by it.
        return 0
    modulus = x % y
    return modulus - y if modulus != 0 and (x < 0) != (y < 0) else modulus


@kernel
def _exact(op, x, y):
    """Return whether an operation on whole numbers stays in 64 bits, and its result if so.

    A comparison gives 0 or 1. Nothing here wraps around: compilers take it that nothing does.
    """
    if op == ADD_N:
        fits = x <= MOST - y if y >= 0 else x >= LEAST - y
        return fits, x + y if fits else 0
    if op == SUBTRACT_N:
        fits = x >= LEAST + y if y >= 0 else x <= MOST + y
        return fits, x - y if fits else 0
    if op == MULTIPLY_N:
        fits = _has_product(x, y)
        return fits, x * y if fits else 0
    if op == REMAINDER_N:
        return True, _remainder(x, y)
    if op == EQUAL_N:
        return True, int(x == y)
    if op == NOT_EQUAL_N:
        return True, int(x != y)
    return True, int(x < y if op == LESS_N else x <= y)


@kernel
def _has_product(x, y):
    """Return whether the product of two whole numbers has 64 bits."""
    size = abs(float(x) * float(y))
    if size < 0.5 * LIMIT or size >= 2.0 * LIMIT:
        return size < LIMIT
    # Neither is 0 from here on.
    if x == -1 or y == -1:
        return x != LEAST and y != LEAST
    if x == LEAST or y == LEAST:
        return x == 1 or y == 1
    if (x < 0) == (y < 0):
        return abs(x) <= MOST // abs(y)
    above, below = max(x, y), min(x, y)
    # The quotient is rounded down.
    return below >= LEAST // above + (LEAST % above != 0)


@kernel
def _with_numbers(op, x, p, y, q):
    """Return an operation on two numbers: the number as int64 and as float64, and whether it is null.

    A comparison gives 0 or 1, as int64.
    """
    if op == SUM_N:
        # The float64 is off by less than 2^63, so that it tells how often the sum wrapped around.
        turns = math.floor((q - float(x)) / (2.0 * LIMIT) + 0.5)
        # Rounded once: both parts are exact.
        total = (turns * HALF + float(x >> 32)) * HALF + float(x & 0xFFFFFFFF)
        return x, np.nan if turns == 0.0 else total, False
    if p != p and q != q:
        if op == REMAINDER_N and y == 0:
            return 0, np.nan, True
        fits, number = _exact(op, x, y)
        if fits:
            return number, np.nan, False
    p = float(x) if p != p else p
    q = float(y) if q != q else q
    if op == EQUAL_N:
        return int(p == q), np.nan, False
    if op == NOT_EQUAL_N:
        return int(p != q), np.nan, False
    if op == LESS_N:
        return int(p < q), np.nan, False
    if op == LESS_EQUAL_N:
        return int(p <= q), np.nan, False
    if op == ADD_N:
        real = p + q
    elif op == SUBTRACT_N:
        real = p - q
    elif op == MULTIPLY_N:
        real = p * q
    else:
        real = np.nan if q == 0.0 else np.fmod(p, q)
    # Infinity less itself, or times 0, is no number.
    return 0, real, real != real


@kernel(inline=True)
def value_at(real, at, null_at, ints, floats, nulls):
    """Return whether there is a value at a place, and the value as int64 and as float64, one of them 0."""
    if nulls[null_at]:
        return False, 0, 0.0
    if real:
        return True, 0, floats[at]
    return True, ints[at], 0.0


@kernel(inline=True)
def _meets(relation, below, same, above):
    """Return whether two values that compare in a way compare as a relation says."""
    if relation == BELOW:
        return below
    if relation == NOT_ABOVE:
        return below or same
    if relation == ABOVE:
        return above
    if relation == NOT_BELOW:
        return above or same
    return same == (relation == SAME)


@kernel(inline=True)
def related(relation, real, at, null_at, ints, floats, nulls, y, q):
    """Return whether the value at a place, if there is one, compares with ``y``, or ``q`` if it is real."""
    if nulls[null_at]:
        return False
    if real:
        p = floats[at]
        return _meets(relation, p < q, p == q, p > q)
    x = ints[at]
    return _meets(relation, x < y, x == y, x > y)


@kernel
def leading_comparison(code, row, row_stop, slots, component):
    """Return the comparison of the first row, if that is of columns of two components.

    Returns
    -------
    relation : int64
        How the component's value compares with the other, :data:`UNRELATED` if the row does not say so.
    real : bool
        Whether they are float64.
    own, other : int64
        The slots of both.
    """
    if row == row_stop or code[row, 0] < ARE_EQUAL:
        return UNRELATED, False, 0, 0
    left_slot, right = code[row, 1] >> SLOT_BITS, code[row, 1] & SECOND_SLOT
    real = code[row, 0] >= ARE_EQUAL_F
    relation = code[row, 0] - (ARE_EQUAL_F if real else ARE_EQUAL)
    if slots[left_slot, 0] == component:
        return relation, real, left_slot, right
    if slots[right, 0] == component:
        return relation + (2 if relation >= BELOW else 0), real, right, left_slot
    return UNRELATED, False, 0, 0


@kernel
def next_related(
    relation, real, ints, floats, nulls, shift, null_shift, number, real_number, start, stop
):  # fmt: skip
    """Return the first of some candidates whose value compares with another as asked, ``stop`` if none does.

    The value of candidate i is at ``shift + i``, whether it is null at ``null_shift + i``.
    """
    for i in range(start, stop):
        if related(relation, real, shift + i, null_shift + i, ints, floats, nulls, number, real_number):
            return i
    return stop


@kernel
def holds(code, start, stop, ints, floats, nulls, slots, chosen, whole, real, absent):
    """Return whether the predicates in rows ``start..stop-1`` are all true.

    Parameters
    ----------
    code : (r, 2) int64
        Opcode and argument; opcode -1 ends a predicate that is none of a single row.
    ints, floats : (n,) int64 / float64
        Attribute values, slot after slot; integer and float constants at their front.
    nulls : (n,) bool
        Whether the value at that place of ``ints`` (or, behind them, of ``floats``) is null.
    slots : (s, 3) int64
        Component, first place of its values in ``ints`` or ``floats``, first place in ``nulls``.
    chosen : (l,) int64
        The candidate chosen for each component, as an index within the component; -1: none, and null.
    whole, real, absent : (STACK_DEPTH,) int64, float64, bool
        Work arrays.
    """
    top = -1
    for row in range(start, stop):
        op = code[row, 0]
        argument = code[row, 1]
        if op >= ARE_EQUAL:
            first, second = argument >> SLOT_BITS, argument & SECOND_SLOT
            i, j = chosen[slots[first, 0]], chosen[slots[second, 0]]
            if i < 0 or j < 0:
                return False
            reals = op >= ARE_EQUAL_F
            relation = op - (ARE_EQUAL_F if reals else ARE_EQUAL)
            i, null_i = slots[first, 1] + i, slots[first, 2] + i
            is_known, y, q = value_at(reals, slots[second, 1] + j, slots[second, 2] + j, ints, floats, nulls)
            if not (is_known and related(relation, reals, i, null_i, ints, floats, nulls, y, q)):
                return False
        elif op < 0:
            if absent[top] or whole[top] == 0:
                return False
            top = -1
        elif op == LOAD:
            top += 1
            at = chosen[slots[argument, 0]]
            if at < 0:
                absent[top] = True
            else:
                whole[top] = ints[slots[argument, 1] + at]
                absent[top] = nulls[slots[argument, 2] + at]
        elif op == LOAD_F:
            top += 1
            at = chosen[slots[argument, 0]]
            if at < 0:
                absent[top] = True
            else:
                real[top] = floats[slots[argument, 1] + at]
                absent[top] = nulls[slots[argument, 2] + at]
        elif op == CONSTANT:
            top += 1
            whole[top] = ints[argument]
            absent[top] = False
        elif op == CONSTANT_F:
            top += 1
            real[top] = floats[argument]
            absent[top] = False
        elif op == NULL:
            top += 1
            whole[top] = 0
            real[top] = 0.0
            absent[top] = True
        elif op == TO_FLOAT:
            real[top] = float(whole[top])
        elif op == NEGATE:
            whole[top] = -whole[top]
        elif op == NEGATE_F:
            real[top] = -real[top]
        elif op == NOT:
            whole[top] = 1 - whole[top]
        elif op == IS_NULL:
            whole[top] = absent[top]
            absent[top] = False
        elif op == TO_NUMBER:
            real[top] = np.nan
        elif op == TO_FLOAT_N:
            if real[top] != real[top]:
                real[top] = float(whole[top])
        elif op == NEGATE_N:
            if real[top] == real[top]:
                real[top] = -real[top]
            elif whole[top] == LEAST:
                real[top] = LIMIT
            else:
                whole[top] = -whole[top]
        elif op == TO_WHOLE or (op == TO_WHOLE_N and real[top] == real[top]):
            p = real[top]
            if abs(p) < WHOLE:
                # The nearest whole number, the even one of two: no other fits into the sum.
                p = (p + WHOLE) - WHOLE if p >= 0.0 else (p - WHOLE) + WHOLE
            if -(2.0**63) <= p < 2.0**63:
                whole[top] = int(p)
            else:
                absent[top] = True
        elif op == TO_WHOLE_N:
            # It is one.
            continue
        elif op == FUNCTION_F:
            real[top] = _applied(argument, real[top])
            absent[top] = absent[top] or real[top] != real[top]
        elif op >= PICK:
            source = top - argument
            taken = True
            if op == PICK:
                top += 1
            else:
                source = top
                top -= 1
                taken = op == NIP or not absent[source]
                if op == SELECT:
                    taken = taken and whole[source] != 0
                    source -= 1
                    top -= 1
            if taken:
                whole[top] = whole[source]
                real[top] = real[source]
                absent[top] = absent[source]
        else:
            top -= 1
            x = whole[top]
            y = whole[top + 1]
            p = real[top]
            q = real[top + 1]
            if op in (AND, OR):
                decided = 0 if op == AND else 1
                left_true = not absent[top] and x == decided
                right = not absent[top + 1] and y == decided
                absent[top] = (absent[top] or absent[top + 1]) and not (left_true or right)
                whole[top] = decided if left_true or right else 1 - decided
                continue
            absent[top] = absent[top] or absent[top + 1]
            if op >= SUM_N:
                if not absent[top]:
                    whole[top], real[top], absent[top] = _with_numbers(op, x, p, y, q)
            elif op >= CONTAINS:
                if not absent[top]:
                    whole[top] = is_related(op - CONTAINS, ints, argument, x, y)
            elif op == EQUAL:
                whole[top] = x == y
            elif op == NOT_EQUAL:
                whole[top] = x != y
            elif op == LESS:
                whole[top] = x < y
            elif op == LESS_EQUAL:
                whole[top] = x <= y
            elif op == EQUAL_F:
                whole[top] = p == q
            elif op == NOT_EQUAL_F:
                whole[top] = p != q
            elif op == LESS_F:
                whole[top] = p < q
            elif op == LESS_EQUAL_F:
                whole[top] = p <= q
            elif op == ADD:
                whole[top] = x + y
            elif op == SUBTRACT:
                whole[top] = x - y
            elif op == MULTIPLY:
                whole[top] = x * y
            elif op == REMAINDER:
                if y == 0:
                    absent[top] = True
                else:
                    whole[top] = _remainder(x, y)
            elif op == ADD_F:
                real[top] = p + q
            elif op == SUBTRACT_F:
                real[top] = p - q
            elif op == MULTIPLY_F:
                real[top] = p * q
            elif op == DIVIDE_F:
                if q == 0.0:
                    absent[top] = True
                else:
                    real[top] = p / q
            elif op == REMAINDER_F:
                if q == 0.0:
                    absent[top] = True
                else:
                    real[top] = np.fmod(p, q)
            elif op == POWER_F:
                real[top] = p**q
                absent[top] = absent[top] or real[top] != real[top]
    return True
