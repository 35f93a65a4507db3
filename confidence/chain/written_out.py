"""Confidences of chains side by side, written by :mod:`confidence.chain.write_out`."""

from __future__ import annotations

import numpy as np

from confidence.config import MOST_EXACT_TICKS, WORST_CANCELLATION
from confidence.kernel import kernel

__all__ = [
    "chains_of_2",
    "chains_of_3",
    "chains_of_4",
    "chains_of_5",
    "chains_of_6",
    "chains_of_7",
    "chains_of_8",
]

REACH = float(MOST_EXACT_TICKS // 2)


@kernel
def chains_of_2(bounds, w, chains, place, values, out):
    """Fill the confidences of chains of 2 events; return how many are NaN.

    See :mod:`confidence.chain.side_by_side`.
    """
    least = 2.0 / WORST_CANCELLATION
    for n in range(chains):
        l0, h0 = bounds[0, n], bounds[1, n]
        l1, h1 = bounds[2, n], bounds[3, n]
        low, high = l0, h0
        low, high = min(low, l1), max(high, h1)
        sizes = h0 - l0 + 1.0
        sizes *= h1 - l1 + 1.0
        l1 = max(l0, l1)
        h0 = min(h1, h0)
        first, last = l1 - w, h0 + w
        a0 = max(l0, first)
        b0 = h0
        a1 = l1
        b1 = min(h1, last)
        end = b0 + 1.0
        t01 = end - a0
        r = max(end - a1, 1.0)
        t02 = 0.5 * r * (r - 1.0)
        end = b1 + 1.0
        t11 = end - a1
        end -= w
        r = max(end - a0, 1.0)
        t12 = 0.5 * r * (r - 1.0)
        d1 = t11
        count = t01 * d1 - t02
        count = count - t12
        everything, fewest = t01, t01
        everything *= t11
        fewest = min(fewest, t11)
        value = min(count, sizes) / sizes if count >= least * everything else np.nan
        value = value if fewest >= 1.0 else 0.0
        values[n] = value if max(high, -low) <= REACH else np.nan
    lost = 0
    for n in range(chains):
        out[place[n]] = values[n]
        lost += values[n] != values[n]
    return lost


@kernel
def chains_of_3(bounds, w, chains, place, values, out):
    """Fill the confidences of chains of 3 events; return how many are NaN.

    See :mod:`confidence.chain.side_by_side`.
    """
    least = 3.0 / WORST_CANCELLATION
    for n in range(chains):
        l0, h0 = bounds[0, n], bounds[1, n]
        l1, h1 = bounds[2, n], bounds[3, n]
        l2, h2 = bounds[4, n], bounds[5, n]
        low, high = l0, h0
        low, high = min(low, l1), max(high, h1)
        low, high = min(low, l2), max(high, h2)
        sizes = h0 - l0 + 1.0
        sizes *= h1 - l1 + 1.0
        sizes *= h2 - l2 + 1.0
        l1 = max(l0, l1)
        l2 = max(l1, l2)
        h1 = min(h2, h1)
        h0 = min(h1, h0)
        first, last = l2 - w, h0 + w
        a0 = max(l0, first)
        b0 = h0
        a1 = max(l1, first)
        b1 = min(h1, last)
        a2 = l2
        b2 = min(h2, last)
        end = b0 + 1.0
        t01 = end - a0
        r = max(end - a1, 1.0)
        t02 = 0.5 * r * (r - 1.0)
        r = max(end - a2, 2.0)
        c = r - 1.0
        s = c * c
        t03 = 0.16666666666666666 * c * (s - 1.0)
        end = b1 + 1.0
        t11 = end - a1
        r = max(end - a2, 1.0)
        t12 = 0.5 * r * (r - 1.0)
        end -= w
        r = max(end - a0, 2.0)
        c = r - 1.0
        s = c * c
        t13 = 0.16666666666666666 * c * (s - 1.0)
        end = b2 + 1.0
        t21 = end - a2
        end -= w
        r = max(end - a0, 1.0)
        t22 = 0.5 * r * (r - 1.0)
        r = max(end - a1, 2.0)
        c = r - 1.0
        s = c * c
        t23 = 0.16666666666666666 * c * (s - 1.0)
        d2 = t21
        d1 = t11 * d2 - t12
        count = t01 * d1 - t02 * d2 + t03
        d1 = t11
        count = count - t22 * d1 + t23
        count = count + t13
        everything, fewest = t01, t01
        everything *= t11
        fewest = min(fewest, t11)
        everything *= t21
        fewest = min(fewest, t21)
        value = min(count, sizes) / sizes if count >= least * everything else np.nan
        value = value if fewest >= 1.0 else 0.0
        values[n] = value if max(high, -low) <= REACH else np.nan
    lost = 0
    for n in range(chains):
        out[place[n]] = values[n]
        lost += values[n] != values[n]
    return lost


@kernel
def chains_of_4(bounds, w, chains, place, values, out):
    """Fill the confidences of chains of 4 events; return how many are NaN.

    See :mod:`confidence.chain.side_by_side`.
    """
    least = 4.333333333333333 / WORST_CANCELLATION
    for n in range(chains):
        l0, h0 = bounds[0, n], bounds[1, n]
        l1, h1 = bounds[2, n], bounds[3, n]
        l2, h2 = bounds[4, n], bounds[5, n]
        l3, h3 = bounds[6, n], bounds[7, n]
        low, high = l0, h0
        low, high = min(low, l1), max(high, h1)
        low, high = min(low, l2), max(high, h2)
        low, high = min(low, l3), max(high, h3)
        sizes = h0 - l0 + 1.0
        sizes *= h1 - l1 + 1.0
        sizes *= h2 - l2 + 1.0
        sizes *= h3 - l3 + 1.0
        l1 = max(l0, l1)
        l2 = max(l1, l2)
        l3 = max(l2, l3)
        h2 = min(h3, h2)
        h1 = min(h2, h1)
        h0 = min(h1, h0)
        first, last = l3 - w, h0 + w
        a0 = max(l0, first)
        b0 = h0
        a1 = max(l1, first)
        b1 = min(h1, last)
        a2 = max(l2, first)
        b2 = min(h2, last)
        a3 = l3
        b3 = min(h3, last)
        end = b0 + 1.0
        t01 = end - a0
        r = max(end - a1, 1.0)
        t02 = 0.5 * r * (r - 1.0)
        r = max(end - a2, 2.0)
        c = r - 1.0
        s = c * c
        t03 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a3, 3.0)
        q = r * (r - 3.0)
        t04 = 0.041666666666666664 * q * (q + 2.0)
        end = b1 + 1.0
        t11 = end - a1
        r = max(end - a2, 1.0)
        t12 = 0.5 * r * (r - 1.0)
        r = max(end - a3, 2.0)
        c = r - 1.0
        s = c * c
        t13 = 0.16666666666666666 * c * (s - 1.0)
        end -= w
        r = max(end - a0, 3.0)
        q = r * (r - 3.0)
        t14 = 0.041666666666666664 * q * (q + 2.0)
        end = b2 + 1.0
        t21 = end - a2
        r = max(end - a3, 1.0)
        t22 = 0.5 * r * (r - 1.0)
        end -= w
        r = max(end - a0, 2.0)
        c = r - 1.0
        s = c * c
        t23 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a1, 3.0)
        q = r * (r - 3.0)
        t24 = 0.041666666666666664 * q * (q + 2.0)
        end = b3 + 1.0
        t31 = end - a3
        end -= w
        r = max(end - a0, 1.0)
        t32 = 0.5 * r * (r - 1.0)
        r = max(end - a1, 2.0)
        c = r - 1.0
        s = c * c
        t33 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a2, 3.0)
        q = r * (r - 3.0)
        t34 = 0.041666666666666664 * q * (q + 2.0)
        d3 = t31
        d2 = t21 * d3 - t22
        d1 = t11 * d2 - t12 * d3 + t13
        count = t01 * d1 - t02 * d2 + t03 * d3 - t04
        d2 = t21
        d1 = t11 * d2 - t12
        count = count - t32 * d1 + t33 * d2 - t34
        d1 = t11
        count = count + t23 * d1 - t24
        count = count - t14
        everything, fewest = t01, t01
        everything *= t11
        fewest = min(fewest, t11)
        everything *= t21
        fewest = min(fewest, t21)
        everything *= t31
        fewest = min(fewest, t31)
        value = min(count, sizes) / sizes if count >= least * everything else np.nan
        value = value if fewest >= 1.0 else 0.0
        values[n] = value if max(high, -low) <= REACH else np.nan
    lost = 0
    for n in range(chains):
        out[place[n]] = values[n]
        lost += values[n] != values[n]
    return lost


@kernel
def chains_of_5(bounds, w, chains, place, values, out):
    """Fill the confidences of chains of 5 events; return how many are NaN.

    See :mod:`confidence.chain.side_by_side`.
    """
    least = 6.25 / WORST_CANCELLATION
    for n in range(chains):
        l0, h0 = bounds[0, n], bounds[1, n]
        l1, h1 = bounds[2, n], bounds[3, n]
        l2, h2 = bounds[4, n], bounds[5, n]
        l3, h3 = bounds[6, n], bounds[7, n]
        l4, h4 = bounds[8, n], bounds[9, n]
        low, high = l0, h0
        low, high = min(low, l1), max(high, h1)
        low, high = min(low, l2), max(high, h2)
        low, high = min(low, l3), max(high, h3)
        low, high = min(low, l4), max(high, h4)
        sizes = h0 - l0 + 1.0
        sizes *= h1 - l1 + 1.0
        sizes *= h2 - l2 + 1.0
        sizes *= h3 - l3 + 1.0
        sizes *= h4 - l4 + 1.0
        l1 = max(l0, l1)
        l2 = max(l1, l2)
        l3 = max(l2, l3)
        l4 = max(l3, l4)
        h3 = min(h4, h3)
        h2 = min(h3, h2)
        h1 = min(h2, h1)
        h0 = min(h1, h0)
        first, last = l4 - w, h0 + w
        a0 = max(l0, first)
        b0 = h0
        a1 = max(l1, first)
        b1 = min(h1, last)
        a2 = max(l2, first)
        b2 = min(h2, last)
        a3 = max(l3, first)
        b3 = min(h3, last)
        a4 = l4
        b4 = min(h4, last)
        end = b0 + 1.0
        t01 = end - a0
        r = max(end - a1, 1.0)
        t02 = 0.5 * r * (r - 1.0)
        r = max(end - a2, 2.0)
        c = r - 1.0
        s = c * c
        t03 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a3, 3.0)
        q = r * (r - 3.0)
        t04 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a4, 4.0)
        c = r - 2.0
        s = c * c
        t05 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        end = b1 + 1.0
        t11 = end - a1
        r = max(end - a2, 1.0)
        t12 = 0.5 * r * (r - 1.0)
        r = max(end - a3, 2.0)
        c = r - 1.0
        s = c * c
        t13 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a4, 3.0)
        q = r * (r - 3.0)
        t14 = 0.041666666666666664 * q * (q + 2.0)
        end -= w
        r = max(end - a0, 4.0)
        c = r - 2.0
        s = c * c
        t15 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        end = b2 + 1.0
        t21 = end - a2
        r = max(end - a3, 1.0)
        t22 = 0.5 * r * (r - 1.0)
        r = max(end - a4, 2.0)
        c = r - 1.0
        s = c * c
        t23 = 0.16666666666666666 * c * (s - 1.0)
        end -= w
        r = max(end - a0, 3.0)
        q = r * (r - 3.0)
        t24 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a1, 4.0)
        c = r - 2.0
        s = c * c
        t25 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        end = b3 + 1.0
        t31 = end - a3
        r = max(end - a4, 1.0)
        t32 = 0.5 * r * (r - 1.0)
        end -= w
        r = max(end - a0, 2.0)
        c = r - 1.0
        s = c * c
        t33 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a1, 3.0)
        q = r * (r - 3.0)
        t34 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a2, 4.0)
        c = r - 2.0
        s = c * c
        t35 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        end = b4 + 1.0
        t41 = end - a4
        end -= w
        r = max(end - a0, 1.0)
        t42 = 0.5 * r * (r - 1.0)
        r = max(end - a1, 2.0)
        c = r - 1.0
        s = c * c
        t43 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a2, 3.0)
        q = r * (r - 3.0)
        t44 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a3, 4.0)
        c = r - 2.0
        s = c * c
        t45 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        d4 = t41
        d3 = t31 * d4 - t32
        d2 = t21 * d3 - t22 * d4 + t23
        d1 = t11 * d2 - t12 * d3 + t13 * d4 - t14
        count = t01 * d1 - t02 * d2 + t03 * d3 - t04 * d4 + t05
        d3 = t31
        d2 = t21 * d3 - t22
        d1 = t11 * d2 - t12 * d3 + t13
        count = count - t42 * d1 + t43 * d2 - t44 * d3 + t45
        d2 = t21
        d1 = t11 * d2 - t12
        count = count + t33 * d1 - t34 * d2 + t35
        d1 = t11
        count = count - t24 * d1 + t25
        count = count + t15
        everything, fewest = t01, t01
        everything *= t11
        fewest = min(fewest, t11)
        everything *= t21
        fewest = min(fewest, t21)
        everything *= t31
        fewest = min(fewest, t31)
        everything *= t41
        fewest = min(fewest, t41)
        value = min(count, sizes) / sizes if count >= least * everything else np.nan
        value = value if fewest >= 1.0 else 0.0
        values[n] = value if max(high, -low) <= REACH else np.nan
    lost = 0
    for n in range(chains):
        out[place[n]] = values[n]
        lost += values[n] != values[n]
    return lost


@kernel
def chains_of_6(bounds, w, chains, place, values, out):
    """Fill the confidences of chains of 6 events; return how many are NaN.

    See :mod:`confidence.chain.side_by_side`.
    """
    least = 9.016666666666666 / WORST_CANCELLATION
    for n in range(chains):
        l0, h0 = bounds[0, n], bounds[1, n]
        l1, h1 = bounds[2, n], bounds[3, n]
        l2, h2 = bounds[4, n], bounds[5, n]
        l3, h3 = bounds[6, n], bounds[7, n]
        l4, h4 = bounds[8, n], bounds[9, n]
        l5, h5 = bounds[10, n], bounds[11, n]
        low, high = l0, h0
        low, high = min(low, l1), max(high, h1)
        low, high = min(low, l2), max(high, h2)
        low, high = min(low, l3), max(high, h3)
        low, high = min(low, l4), max(high, h4)
        low, high = min(low, l5), max(high, h5)
        sizes = h0 - l0 + 1.0
        sizes *= h1 - l1 + 1.0
        sizes *= h2 - l2 + 1.0
        sizes *= h3 - l3 + 1.0
        sizes *= h4 - l4 + 1.0
        sizes *= h5 - l5 + 1.0
        l1 = max(l0, l1)
        l2 = max(l1, l2)
        l3 = max(l2, l3)
        l4 = max(l3, l4)
        l5 = max(l4, l5)
        h4 = min(h5, h4)
        h3 = min(h4, h3)
        h2 = min(h3, h2)
        h1 = min(h2, h1)
        h0 = min(h1, h0)
        first, last = l5 - w, h0 + w
        a0 = max(l0, first)
        b0 = h0
        a1 = max(l1, first)
        b1 = min(h1, last)
        a2 = max(l2, first)
        b2 = min(h2, last)
        a3 = max(l3, first)
        b3 = min(h3, last)
        a4 = max(l4, first)
        b4 = min(h4, last)
        a5 = l5
        b5 = min(h5, last)
        end = b0 + 1.0
        t01 = end - a0
        r = max(end - a1, 1.0)
        t02 = 0.5 * r * (r - 1.0)
        r = max(end - a2, 2.0)
        c = r - 1.0
        s = c * c
        t03 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a3, 3.0)
        q = r * (r - 3.0)
        t04 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a4, 4.0)
        c = r - 2.0
        s = c * c
        t05 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a5, 5.0)
        q = r * (r - 5.0)
        t06 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        end = b1 + 1.0
        t11 = end - a1
        r = max(end - a2, 1.0)
        t12 = 0.5 * r * (r - 1.0)
        r = max(end - a3, 2.0)
        c = r - 1.0
        s = c * c
        t13 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a4, 3.0)
        q = r * (r - 3.0)
        t14 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a5, 4.0)
        c = r - 2.0
        s = c * c
        t15 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        end -= w
        r = max(end - a0, 5.0)
        q = r * (r - 5.0)
        t16 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        end = b2 + 1.0
        t21 = end - a2
        r = max(end - a3, 1.0)
        t22 = 0.5 * r * (r - 1.0)
        r = max(end - a4, 2.0)
        c = r - 1.0
        s = c * c
        t23 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a5, 3.0)
        q = r * (r - 3.0)
        t24 = 0.041666666666666664 * q * (q + 2.0)
        end -= w
        r = max(end - a0, 4.0)
        c = r - 2.0
        s = c * c
        t25 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a1, 5.0)
        q = r * (r - 5.0)
        t26 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        end = b3 + 1.0
        t31 = end - a3
        r = max(end - a4, 1.0)
        t32 = 0.5 * r * (r - 1.0)
        r = max(end - a5, 2.0)
        c = r - 1.0
        s = c * c
        t33 = 0.16666666666666666 * c * (s - 1.0)
        end -= w
        r = max(end - a0, 3.0)
        q = r * (r - 3.0)
        t34 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a1, 4.0)
        c = r - 2.0
        s = c * c
        t35 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a2, 5.0)
        q = r * (r - 5.0)
        t36 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        end = b4 + 1.0
        t41 = end - a4
        r = max(end - a5, 1.0)
        t42 = 0.5 * r * (r - 1.0)
        end -= w
        r = max(end - a0, 2.0)
        c = r - 1.0
        s = c * c
        t43 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a1, 3.0)
        q = r * (r - 3.0)
        t44 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a2, 4.0)
        c = r - 2.0
        s = c * c
        t45 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a3, 5.0)
        q = r * (r - 5.0)
        t46 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        end = b5 + 1.0
        t51 = end - a5
        end -= w
        r = max(end - a0, 1.0)
        t52 = 0.5 * r * (r - 1.0)
        r = max(end - a1, 2.0)
        c = r - 1.0
        s = c * c
        t53 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a2, 3.0)
        q = r * (r - 3.0)
        t54 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a3, 4.0)
        c = r - 2.0
        s = c * c
        t55 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a4, 5.0)
        q = r * (r - 5.0)
        t56 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        d5 = t51
        d4 = t41 * d5 - t42
        d3 = t31 * d4 - t32 * d5 + t33
        d2 = t21 * d3 - t22 * d4 + t23 * d5 - t24
        d1 = t11 * d2 - t12 * d3 + t13 * d4 - t14 * d5 + t15
        count = t01 * d1 - t02 * d2 + t03 * d3 - t04 * d4 + t05 * d5 - t06
        d4 = t41
        d3 = t31 * d4 - t32
        d2 = t21 * d3 - t22 * d4 + t23
        d1 = t11 * d2 - t12 * d3 + t13 * d4 - t14
        count = count - t52 * d1 + t53 * d2 - t54 * d3 + t55 * d4 - t56
        d3 = t31
        d2 = t21 * d3 - t22
        d1 = t11 * d2 - t12 * d3 + t13
        count = count + t43 * d1 - t44 * d2 + t45 * d3 - t46
        d2 = t21
        d1 = t11 * d2 - t12
        count = count - t34 * d1 + t35 * d2 - t36
        d1 = t11
        count = count + t25 * d1 - t26
        count = count - t16
        everything, fewest = t01, t01
        everything *= t11
        fewest = min(fewest, t11)
        everything *= t21
        fewest = min(fewest, t21)
        everything *= t31
        fewest = min(fewest, t31)
        everything *= t41
        fewest = min(fewest, t41)
        everything *= t51
        fewest = min(fewest, t51)
        value = min(count, sizes) / sizes if count >= least * everything else np.nan
        value = value if fewest >= 1.0 else 0.0
        values[n] = value if max(high, -low) <= REACH else np.nan
    lost = 0
    for n in range(chains):
        out[place[n]] = values[n]
        lost += values[n] != values[n]
    return lost


@kernel
def chains_of_7(bounds, w, chains, place, values, out):
    """Fill the confidences of chains of 7 events; return how many are NaN.

    See :mod:`confidence.chain.side_by_side`.
    """
    least = 13.008333333333335 / WORST_CANCELLATION
    for n in range(chains):
        l0, h0 = bounds[0, n], bounds[1, n]
        l1, h1 = bounds[2, n], bounds[3, n]
        l2, h2 = bounds[4, n], bounds[5, n]
        l3, h3 = bounds[6, n], bounds[7, n]
        l4, h4 = bounds[8, n], bounds[9, n]
        l5, h5 = bounds[10, n], bounds[11, n]
        l6, h6 = bounds[12, n], bounds[13, n]
        low, high = l0, h0
        low, high = min(low, l1), max(high, h1)
        low, high = min(low, l2), max(high, h2)
        low, high = min(low, l3), max(high, h3)
        low, high = min(low, l4), max(high, h4)
        low, high = min(low, l5), max(high, h5)
        low, high = min(low, l6), max(high, h6)
        sizes = h0 - l0 + 1.0
        sizes *= h1 - l1 + 1.0
        sizes *= h2 - l2 + 1.0
        sizes *= h3 - l3 + 1.0
        sizes *= h4 - l4 + 1.0
        sizes *= h5 - l5 + 1.0
        sizes *= h6 - l6 + 1.0
        l1 = max(l0, l1)
        l2 = max(l1, l2)
        l3 = max(l2, l3)
        l4 = max(l3, l4)
        l5 = max(l4, l5)
        l6 = max(l5, l6)
        h5 = min(h6, h5)
        h4 = min(h5, h4)
        h3 = min(h4, h3)
        h2 = min(h3, h2)
        h1 = min(h2, h1)
        h0 = min(h1, h0)
        first, last = l6 - w, h0 + w
        a0 = max(l0, first)
        b0 = h0
        a1 = max(l1, first)
        b1 = min(h1, last)
        a2 = max(l2, first)
        b2 = min(h2, last)
        a3 = max(l3, first)
        b3 = min(h3, last)
        a4 = max(l4, first)
        b4 = min(h4, last)
        a5 = max(l5, first)
        b5 = min(h5, last)
        a6 = l6
        b6 = min(h6, last)
        end = b0 + 1.0
        t01 = end - a0
        r = max(end - a1, 1.0)
        t02 = 0.5 * r * (r - 1.0)
        r = max(end - a2, 2.0)
        c = r - 1.0
        s = c * c
        t03 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a3, 3.0)
        q = r * (r - 3.0)
        t04 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a4, 4.0)
        c = r - 2.0
        s = c * c
        t05 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a5, 5.0)
        q = r * (r - 5.0)
        t06 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a6, 6.0)
        c = r - 3.0
        s = c * c
        t07 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        end = b1 + 1.0
        t11 = end - a1
        r = max(end - a2, 1.0)
        t12 = 0.5 * r * (r - 1.0)
        r = max(end - a3, 2.0)
        c = r - 1.0
        s = c * c
        t13 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a4, 3.0)
        q = r * (r - 3.0)
        t14 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a5, 4.0)
        c = r - 2.0
        s = c * c
        t15 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a6, 5.0)
        q = r * (r - 5.0)
        t16 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        end -= w
        r = max(end - a0, 6.0)
        c = r - 3.0
        s = c * c
        t17 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        end = b2 + 1.0
        t21 = end - a2
        r = max(end - a3, 1.0)
        t22 = 0.5 * r * (r - 1.0)
        r = max(end - a4, 2.0)
        c = r - 1.0
        s = c * c
        t23 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a5, 3.0)
        q = r * (r - 3.0)
        t24 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a6, 4.0)
        c = r - 2.0
        s = c * c
        t25 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        end -= w
        r = max(end - a0, 5.0)
        q = r * (r - 5.0)
        t26 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a1, 6.0)
        c = r - 3.0
        s = c * c
        t27 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        end = b3 + 1.0
        t31 = end - a3
        r = max(end - a4, 1.0)
        t32 = 0.5 * r * (r - 1.0)
        r = max(end - a5, 2.0)
        c = r - 1.0
        s = c * c
        t33 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a6, 3.0)
        q = r * (r - 3.0)
        t34 = 0.041666666666666664 * q * (q + 2.0)
        end -= w
        r = max(end - a0, 4.0)
        c = r - 2.0
        s = c * c
        t35 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a1, 5.0)
        q = r * (r - 5.0)
        t36 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a2, 6.0)
        c = r - 3.0
        s = c * c
        t37 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        end = b4 + 1.0
        t41 = end - a4
        r = max(end - a5, 1.0)
        t42 = 0.5 * r * (r - 1.0)
        r = max(end - a6, 2.0)
        c = r - 1.0
        s = c * c
        t43 = 0.16666666666666666 * c * (s - 1.0)
        end -= w
        r = max(end - a0, 3.0)
        q = r * (r - 3.0)
        t44 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a1, 4.0)
        c = r - 2.0
        s = c * c
        t45 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a2, 5.0)
        q = r * (r - 5.0)
        t46 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a3, 6.0)
        c = r - 3.0
        s = c * c
        t47 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        end = b5 + 1.0
        t51 = end - a5
        r = max(end - a6, 1.0)
        t52 = 0.5 * r * (r - 1.0)
        end -= w
        r = max(end - a0, 2.0)
        c = r - 1.0
        s = c * c
        t53 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a1, 3.0)
        q = r * (r - 3.0)
        t54 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a2, 4.0)
        c = r - 2.0
        s = c * c
        t55 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a3, 5.0)
        q = r * (r - 5.0)
        t56 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a4, 6.0)
        c = r - 3.0
        s = c * c
        t57 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        end = b6 + 1.0
        t61 = end - a6
        end -= w
        r = max(end - a0, 1.0)
        t62 = 0.5 * r * (r - 1.0)
        r = max(end - a1, 2.0)
        c = r - 1.0
        s = c * c
        t63 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a2, 3.0)
        q = r * (r - 3.0)
        t64 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a3, 4.0)
        c = r - 2.0
        s = c * c
        t65 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a4, 5.0)
        q = r * (r - 5.0)
        t66 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a5, 6.0)
        c = r - 3.0
        s = c * c
        t67 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        d6 = t61
        d5 = t51 * d6 - t52
        d4 = t41 * d5 - t42 * d6 + t43
        d3 = t31 * d4 - t32 * d5 + t33 * d6 - t34
        d2 = t21 * d3 - t22 * d4 + t23 * d5 - t24 * d6 + t25
        d1 = t11 * d2 - t12 * d3 + t13 * d4 - t14 * d5 + t15 * d6 - t16
        count = t01 * d1 - t02 * d2 + t03 * d3 - t04 * d4 + t05 * d5 - t06 * d6 + t07
        d5 = t51
        d4 = t41 * d5 - t42
        d3 = t31 * d4 - t32 * d5 + t33
        d2 = t21 * d3 - t22 * d4 + t23 * d5 - t24
        d1 = t11 * d2 - t12 * d3 + t13 * d4 - t14 * d5 + t15
        count = count - t62 * d1 + t63 * d2 - t64 * d3 + t65 * d4 - t66 * d5 + t67
        d4 = t41
        d3 = t31 * d4 - t32
        d2 = t21 * d3 - t22 * d4 + t23
        d1 = t11 * d2 - t12 * d3 + t13 * d4 - t14
        count = count + t53 * d1 - t54 * d2 + t55 * d3 - t56 * d4 + t57
        d3 = t31
        d2 = t21 * d3 - t22
        d1 = t11 * d2 - t12 * d3 + t13
        count = count - t44 * d1 + t45 * d2 - t46 * d3 + t47
        d2 = t21
        d1 = t11 * d2 - t12
        count = count + t35 * d1 - t36 * d2 + t37
        d1 = t11
        count = count - t26 * d1 + t27
        count = count + t17
        everything, fewest = t01, t01
        everything *= t11
        fewest = min(fewest, t11)
        everything *= t21
        fewest = min(fewest, t21)
        everything *= t31
        fewest = min(fewest, t31)
        everything *= t41
        fewest = min(fewest, t41)
        everything *= t51
        fewest = min(fewest, t51)
        everything *= t61
        fewest = min(fewest, t61)
        value = min(count, sizes) / sizes if count >= least * everything else np.nan
        value = value if fewest >= 1.0 else 0.0
        values[n] = value if max(high, -low) <= REACH else np.nan
    lost = 0
    for n in range(chains):
        out[place[n]] = values[n]
        lost += values[n] != values[n]
    return lost


@kernel
def chains_of_8(bounds, w, chains, place, values, out):
    """Fill the confidences of chains of 8 events; return how many are NaN.

    See :mod:`confidence.chain.side_by_side`.
    """
    least = 18.767063492063485 / WORST_CANCELLATION
    for n in range(chains):
        l0, h0 = bounds[0, n], bounds[1, n]
        l1, h1 = bounds[2, n], bounds[3, n]
        l2, h2 = bounds[4, n], bounds[5, n]
        l3, h3 = bounds[6, n], bounds[7, n]
        l4, h4 = bounds[8, n], bounds[9, n]
        l5, h5 = bounds[10, n], bounds[11, n]
        l6, h6 = bounds[12, n], bounds[13, n]
        l7, h7 = bounds[14, n], bounds[15, n]
        low, high = l0, h0
        low, high = min(low, l1), max(high, h1)
        low, high = min(low, l2), max(high, h2)
        low, high = min(low, l3), max(high, h3)
        low, high = min(low, l4), max(high, h4)
        low, high = min(low, l5), max(high, h5)
        low, high = min(low, l6), max(high, h6)
        low, high = min(low, l7), max(high, h7)
        sizes = h0 - l0 + 1.0
        sizes *= h1 - l1 + 1.0
        sizes *= h2 - l2 + 1.0
        sizes *= h3 - l3 + 1.0
        sizes *= h4 - l4 + 1.0
        sizes *= h5 - l5 + 1.0
        sizes *= h6 - l6 + 1.0
        sizes *= h7 - l7 + 1.0
        l1 = max(l0, l1)
        l2 = max(l1, l2)
        l3 = max(l2, l3)
        l4 = max(l3, l4)
        l5 = max(l4, l5)
        l6 = max(l5, l6)
        l7 = max(l6, l7)
        h6 = min(h7, h6)
        h5 = min(h6, h5)
        h4 = min(h5, h4)
        h3 = min(h4, h3)
        h2 = min(h3, h2)
        h1 = min(h2, h1)
        h0 = min(h1, h0)
        first, last = l7 - w, h0 + w
        a0 = max(l0, first)
        b0 = h0
        a1 = max(l1, first)
        b1 = min(h1, last)
        a2 = max(l2, first)
        b2 = min(h2, last)
        a3 = max(l3, first)
        b3 = min(h3, last)
        a4 = max(l4, first)
        b4 = min(h4, last)
        a5 = max(l5, first)
        b5 = min(h5, last)
        a6 = max(l6, first)
        b6 = min(h6, last)
        a7 = l7
        b7 = min(h7, last)
        end = b0 + 1.0
        t01 = end - a0
        r = max(end - a1, 1.0)
        t02 = 0.5 * r * (r - 1.0)
        r = max(end - a2, 2.0)
        c = r - 1.0
        s = c * c
        t03 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a3, 3.0)
        q = r * (r - 3.0)
        t04 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a4, 4.0)
        c = r - 2.0
        s = c * c
        t05 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a5, 5.0)
        q = r * (r - 5.0)
        t06 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a6, 6.0)
        c = r - 3.0
        s = c * c
        t07 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        r = max(end - a7, 7.0)
        q = r * (r - 7.0)
        t08 = 2.48015873015873e-05 * q * (q + 6.0) * (q + 10.0) * (q + 12.0)
        end = b1 + 1.0
        t11 = end - a1
        r = max(end - a2, 1.0)
        t12 = 0.5 * r * (r - 1.0)
        r = max(end - a3, 2.0)
        c = r - 1.0
        s = c * c
        t13 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a4, 3.0)
        q = r * (r - 3.0)
        t14 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a5, 4.0)
        c = r - 2.0
        s = c * c
        t15 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a6, 5.0)
        q = r * (r - 5.0)
        t16 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a7, 6.0)
        c = r - 3.0
        s = c * c
        t17 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        end -= w
        r = max(end - a0, 7.0)
        q = r * (r - 7.0)
        t18 = 2.48015873015873e-05 * q * (q + 6.0) * (q + 10.0) * (q + 12.0)
        end = b2 + 1.0
        t21 = end - a2
        r = max(end - a3, 1.0)
        t22 = 0.5 * r * (r - 1.0)
        r = max(end - a4, 2.0)
        c = r - 1.0
        s = c * c
        t23 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a5, 3.0)
        q = r * (r - 3.0)
        t24 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a6, 4.0)
        c = r - 2.0
        s = c * c
        t25 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a7, 5.0)
        q = r * (r - 5.0)
        t26 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        end -= w
        r = max(end - a0, 6.0)
        c = r - 3.0
        s = c * c
        t27 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        r = max(end - a1, 7.0)
        q = r * (r - 7.0)
        t28 = 2.48015873015873e-05 * q * (q + 6.0) * (q + 10.0) * (q + 12.0)
        end = b3 + 1.0
        t31 = end - a3
        r = max(end - a4, 1.0)
        t32 = 0.5 * r * (r - 1.0)
        r = max(end - a5, 2.0)
        c = r - 1.0
        s = c * c
        t33 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a6, 3.0)
        q = r * (r - 3.0)
        t34 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a7, 4.0)
        c = r - 2.0
        s = c * c
        t35 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        end -= w
        r = max(end - a0, 5.0)
        q = r * (r - 5.0)
        t36 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a1, 6.0)
        c = r - 3.0
        s = c * c
        t37 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        r = max(end - a2, 7.0)
        q = r * (r - 7.0)
        t38 = 2.48015873015873e-05 * q * (q + 6.0) * (q + 10.0) * (q + 12.0)
        end = b4 + 1.0
        t41 = end - a4
        r = max(end - a5, 1.0)
        t42 = 0.5 * r * (r - 1.0)
        r = max(end - a6, 2.0)
        c = r - 1.0
        s = c * c
        t43 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a7, 3.0)
        q = r * (r - 3.0)
        t44 = 0.041666666666666664 * q * (q + 2.0)
        end -= w
        r = max(end - a0, 4.0)
        c = r - 2.0
        s = c * c
        t45 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a1, 5.0)
        q = r * (r - 5.0)
        t46 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a2, 6.0)
        c = r - 3.0
        s = c * c
        t47 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        r = max(end - a3, 7.0)
        q = r * (r - 7.0)
        t48 = 2.48015873015873e-05 * q * (q + 6.0) * (q + 10.0) * (q + 12.0)
        end = b5 + 1.0
        t51 = end - a5
        r = max(end - a6, 1.0)
        t52 = 0.5 * r * (r - 1.0)
        r = max(end - a7, 2.0)
        c = r - 1.0
        s = c * c
        t53 = 0.16666666666666666 * c * (s - 1.0)
        end -= w
        r = max(end - a0, 3.0)
        q = r * (r - 3.0)
        t54 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a1, 4.0)
        c = r - 2.0
        s = c * c
        t55 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a2, 5.0)
        q = r * (r - 5.0)
        t56 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a3, 6.0)
        c = r - 3.0
        s = c * c
        t57 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        r = max(end - a4, 7.0)
        q = r * (r - 7.0)
        t58 = 2.48015873015873e-05 * q * (q + 6.0) * (q + 10.0) * (q + 12.0)
        end = b6 + 1.0
        t61 = end - a6
        r = max(end - a7, 1.0)
        t62 = 0.5 * r * (r - 1.0)
        end -= w
        r = max(end - a0, 2.0)
        c = r - 1.0
        s = c * c
        t63 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a1, 3.0)
        q = r * (r - 3.0)
        t64 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a2, 4.0)
        c = r - 2.0
        s = c * c
        t65 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a3, 5.0)
        q = r * (r - 5.0)
        t66 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a4, 6.0)
        c = r - 3.0
        s = c * c
        t67 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        r = max(end - a5, 7.0)
        q = r * (r - 7.0)
        t68 = 2.48015873015873e-05 * q * (q + 6.0) * (q + 10.0) * (q + 12.0)
        end = b7 + 1.0
        t71 = end - a7
        end -= w
        r = max(end - a0, 1.0)
        t72 = 0.5 * r * (r - 1.0)
        r = max(end - a1, 2.0)
        c = r - 1.0
        s = c * c
        t73 = 0.16666666666666666 * c * (s - 1.0)
        r = max(end - a2, 3.0)
        q = r * (r - 3.0)
        t74 = 0.041666666666666664 * q * (q + 2.0)
        r = max(end - a3, 4.0)
        c = r - 2.0
        s = c * c
        t75 = 0.008333333333333333 * c * (s - 1.0) * (s - 4.0)
        r = max(end - a4, 5.0)
        q = r * (r - 5.0)
        t76 = 0.001388888888888889 * q * (q + 4.0) * (q + 6.0)
        r = max(end - a5, 6.0)
        c = r - 3.0
        s = c * c
        t77 = 0.0001984126984126984 * c * (s - 1.0) * (s - 4.0) * (s - 9.0)
        r = max(end - a6, 7.0)
        q = r * (r - 7.0)
        t78 = 2.48015873015873e-05 * q * (q + 6.0) * (q + 10.0) * (q + 12.0)
        d7 = t71
        d6 = t61 * d7 - t62
        d5 = t51 * d6 - t52 * d7 + t53
        d4 = t41 * d5 - t42 * d6 + t43 * d7 - t44
        d3 = t31 * d4 - t32 * d5 + t33 * d6 - t34 * d7 + t35
        d2 = t21 * d3 - t22 * d4 + t23 * d5 - t24 * d6 + t25 * d7 - t26
        d1 = t11 * d2 - t12 * d3 + t13 * d4 - t14 * d5 + t15 * d6 - t16 * d7 + t17
        count = t01 * d1 - t02 * d2 + t03 * d3 - t04 * d4 + t05 * d5 - t06 * d6 + t07 * d7 - t08
        d6 = t61
        d5 = t51 * d6 - t52
        d4 = t41 * d5 - t42 * d6 + t43
        d3 = t31 * d4 - t32 * d5 + t33 * d6 - t34
        d2 = t21 * d3 - t22 * d4 + t23 * d5 - t24 * d6 + t25
        d1 = t11 * d2 - t12 * d3 + t13 * d4 - t14 * d5 + t15 * d6 - t16
        count = count - t72 * d1 + t73 * d2 - t74 * d3 + t75 * d4 - t76 * d5 + t77 * d6 - t78
        d5 = t51
        d4 = t41 * d5 - t42
        d3 = t31 * d4 - t32 * d5 + t33
        d2 = t21 * d3 - t22 * d4 + t23 * d5 - t24
        d1 = t11 * d2 - t12 * d3 + t13 * d4 - t14 * d5 + t15
        count = count + t63 * d1 - t64 * d2 + t65 * d3 - t66 * d4 + t67 * d5 - t68
        d4 = t41
        d3 = t31 * d4 - t32
        d2 = t21 * d3 - t22 * d4 + t23
        d1 = t11 * d2 - t12 * d3 + t13 * d4 - t14
        count = count - t54 * d1 + t55 * d2 - t56 * d3 + t57 * d4 - t58
        d3 = t31
        d2 = t21 * d3 - t22
        d1 = t11 * d2 - t12 * d3 + t13
        count = count + t45 * d1 - t46 * d2 + t47 * d3 - t48
        d2 = t21
        d1 = t11 * d2 - t12
        count = count - t36 * d1 + t37 * d2 - t38
        d1 = t11
        count = count + t27 * d1 - t28
        count = count - t18
        everything, fewest = t01, t01
        everything *= t11
        fewest = min(fewest, t11)
        everything *= t21
        fewest = min(fewest, t21)
        everything *= t31
        fewest = min(fewest, t31)
        everything *= t41
        fewest = min(fewest, t41)
        everything *= t51
        fewest = min(fewest, t51)
        everything *= t61
        fewest = min(fewest, t61)
        everything *= t71
        fewest = min(fewest, t71)
        value = min(count, sizes) / sizes if count >= least * everything else np.nan
        value = value if fewest >= 1.0 else 0.0
        values[n] = value if max(high, -low) <= REACH else np.nan
    lost = 0
    for n in range(chains):
        out[place[n]] = values[n]
        lost += values[n] != values[n]
    return lost
