"""Comparisons of a remainder by a constant with another constant: the commonest use of ``%``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.large_arrays import empty
from confidence.predicates.remainders import divisions_of, leave_remainders
from uncertain_cep.expressions.kernel_calls import is_worth_a_kernel, read_only
from uncertain_cep.query.typed import Apply, Constant, TypedExpression

__all__ = ["ComparedRemainder", "by_kernel", "compared_remainder"]

Masks = NDArray[np.bool_]

_MOST_DIVISOR: Final = 2**63 - 1


class ComparedRemainder(NamedTuple):
    """A comparison of ``dividend % divisor`` with ``remainder``."""

    dividend: TypedExpression
    divisor: int
    """At least 1, below 2^63."""
    remainder: int


def compared_remainder(expression: Apply) -> ComparedRemainder | None:
    """Return the remainder that ``x % c = r`` or ``x % c != r`` compares; None of other expressions."""
    if expression.operator not in ("equal", "not_equal"):
        return None
    for one, other in (expression.operands, expression.operands[::-1]):
        if isinstance(one, Apply) and one.operator == "remainder" and one.kind == "int":
            dividend, divisor = one.operands
            by, remainder = _whole(divisor), _whole(other)
            if by is not None and remainder is not None and 0 < abs(by) <= _MOST_DIVISOR:
                # The remainder has the sign of the dividend, whatever that of the divisor.
                return ComparedRemainder(dividend, abs(by), remainder)
    return None


def _whole(expression: TypedExpression) -> int | None:
    if isinstance(expression, Constant) and expression.kind == "int" and isinstance(expression.value, int):
        return expression.value
    return None


def by_kernel(values: Any, compared: Sequence[ComparedRemainder]) -> Masks | None:
    """Mark which of many whole numbers, (n,), leave each of k remainders: (k, n) bool.

    None if NumPy finds that sooner. O(k n).
    """
    if not is_worth_a_kernel(np.size(values)) or np.ndim(values) != 1:
        return None
    masks: Masks = empty((len(compared), len(values)), np.bool_)
    numbers = read_only(np.ascontiguousarray(values, dtype=np.int64))
    divisions = _divisions(tuple((part.divisor, part.remainder) for part in compared))
    leave_remainders(numbers, divisions, masks)
    return masks


_divisions: Final = lru_cache(maxsize=64)(divisions_of)
