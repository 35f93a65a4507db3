"""Which of many whole numbers leave some remainder by one divisor, without a division."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from confidence.kernel import kernel

__all__ = ["Division", "division_of", "leave_remainder"]

_BITS: Final = 64
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


class Division(NamedTuple):
    """What :func:`leave_remainder` multiplies by and compares with."""

    inverse: np.uint64
    offset: np.uint64
    right: np.uint64
    left: np.uint64
    """How far a product is turned to the right, and to the left, bits."""
    bound: np.uint64
    least: np.int64
    most: np.int64
    """The numbers that have the sign of the remainder."""


def division_of(divisor: int, remainder: int) -> Division | None:
    """Return what tells the numbers v with ``v - divisor * trunc(v / divisor) == remainder``.

    None if no number leaves it. O(1).

    Parameters
    ----------
    divisor : int
        At least 1, below 2^63.
    remainder : int

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
    if abs(remainder) >= divisor:
        return None
    zeros = (divisor & -divisor).bit_length() - 1
    inverse = pow(divisor >> zeros, -1, 2**_BITS)
    below = 2**63 // divisor
    return Division(
        inverse=np.uint64(inverse),
        offset=np.uint64(((below << zeros) - remainder * inverse) % 2**_BITS),
        right=np.uint64(zeros),
        left=np.uint64(-zeros % _BITS),
        bound=np.uint64(below + _MOST // divisor),
        least=np.int64(remainder if remainder > 0 else _LEAST),
        most=np.int64(remainder if remainder < 0 else _MOST),
    )


@kernel
def leave_remainder(values, division, found):
    """Find which numbers leave a remainder. O(n), and nothing branches.

    Parameters
    ----------
    values : (n,) int64
    division : Division
    found : (n,) bool
        Overwritten.
    """
    inverse, offset, right, left = division.inverse, division.offset, division.right, division.left
    bound, least, most = division.bound, division.least, division.most
    for i in range(values.shape[0]):
        value = values[i]
        product = np.uint64(value) * inverse + offset
        product = product >> right | product << left
        found[i] = (product <= bound) & (value >= least) & (value <= most)
