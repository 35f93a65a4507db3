"""Tests of many whole numbers for remainders by constant divisors, without a division."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from confidence.kernel import POSITIVE, kernel

__all__ = ["Divisions", "divisions_of", "leave_remainders"]

_BITS: Final = 64
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1

_BLOCK: Final = 2048
"""Numbers that stay in the fastest cache while they are compared with all remainders."""


class Divisions(NamedTuple):
    """The multipliers and bounds of :func:`leave_remainders`, for each of k remainders."""

    inverse: NDArray[np.uint64]
    offset: NDArray[np.uint64]
    right: NDArray[np.uint64]
    left: NDArray[np.uint64]
    """How far a product is turned to the right, and to the left, bits."""
    bound: NDArray[np.uint64]
    """All above (k,) uint64."""
    least: NDArray[np.int64]
    most: NDArray[np.int64]
    """(k,) int64. The numbers that have the sign of the remainder; none if no number leaves it."""


def divisions_of(pairs: Sequence[tuple[int, int]]) -> Divisions:
    """Return a test for the numbers v with ``v - divisor * trunc(v / divisor) == remainder``. O(k).

    Parameters
    ----------
    pairs : sequence of tuple of int
        Each a divisor, at least 1 and below 2^63, and a remainder.

    Notes
    -----
    Let the divisor be c = 2^k o, o odd. A number leaves the remainder r if it is 0 or has the sign of r, and
    c divides d = v - r, which stays in int64 then. Multiplication by the inverse of o modulo 2^64 maps these
    one to one to themselves, multiples of o to their quotient, and keeps the number of zeros at the end. So c
    divides d if and only if y = d / o modulo 2^64 ends with k zeros and is in [-2^63 / o, (2^63 - 1) / o].
    Such y are the multiples of 2^k from -A to M, A = 2^k floor(2^63 / c), M = 2^k floor((2^63 - 1) / c), and
    A + M < 2^64. Turned to the right by k bits, y + A is at most (A + M) / 2^k < 2^(64 - k) for these, and
    above for all others: those that end with another bit are at least 2^(64 - k). (Granlund and Montgomery,
    "Division by Invariant Integers using Multiplication", PLDI 1994, section 9, for signed multiples of any
    divisor.)
    """
    columns = list(zip(*(_division_of(*pair) for pair in pairs), strict=True)) or [()] * len(_TYPES)
    arrays: Any = (np.array(column, dtype) for column, dtype in zip(columns, _TYPES, strict=True))
    return Divisions(*arrays)


_TYPES: Final = (*[np.uint64] * 5, *[np.int64] * 2)


def _division_of(divisor: int, remainder: int) -> tuple[int, int, int, int, int, int, int]:
    """Return the entry of :class:`Divisions` for one remainder."""
    if abs(remainder) >= divisor:
        return 1, 0, 0, 0, 0, 1, 0
    zeros = (divisor & -divisor).bit_length() - 1
    inverse = pow(divisor >> zeros, -1, 2**_BITS)
    below = 2**63 // divisor
    return (
        inverse,
        ((below << zeros) - remainder * inverse) % 2**_BITS,
        zeros,
        -zeros % _BITS,
        below + _MOST // divisor,
        remainder if remainder > 0 else _LEAST,
        remainder if remainder < 0 else _MOST,
    )


@kernel
def leave_remainders(values, divisions, matching):
    """Find which numbers leave each of some remainders. O(k n), and nothing branches.

    Parameters
    ----------
    values : (n,) int64
    divisions : Divisions
    matching : (k, n) bool
        Overwritten.

    Notes
    -----
    Block by block, so that each number is read from memory once.
    """
    for first in range(0, values.shape[0], _BLOCK):
        stop = min(first + _BLOCK, values.shape[0])
        for j in range(matching.shape[0]):
            inverse, offset = divisions.inverse[j], divisions.offset[j]
            right, left_factor, bound = divisions.right[j], divisions.left[j], divisions.bound[j]
            lowest, highest = divisions.least[j], divisions.most[j]
            for i in range(first, stop):
                i &= POSITIVE
                value = values[i]
                product = np.uint64(value) * inverse + offset
                product = product >> right | product << left_factor
                matching[j, i] = (product <= bound) & (value >= lowest) & (value <= highest)
