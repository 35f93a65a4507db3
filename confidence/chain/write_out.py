"""Writes ``written_out.py``: ``python -m confidence.chain.write_out``.

Each kernel is the sum of :mod:`confidence.chain.uniform` over the cycle of inequalities, for one length and
without a loop or a branch, so that the compiler computes several chains at a time in vectors.

A sum is trusted by a bound on its absolute terms instead of those themselves. The strictly decreasing values
of an arc of s positions lie in all of its tight intervals, so that there are at most ``prod n_j / s!`` of
them, n_j being the ticks of each; and all terms together are at most ``C prod n_j``, where C is the sum of
``prod 1 / s!`` over the ways to cut the cycle into arcs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Final

__all__ = ["LENGTHS", "PLACE", "written_out"]

LENGTHS: Final = range(2, 9)
"""Numbers of events that there is a kernel for: longer ones take over a second each to compile."""

PLACE: Final = Path(__file__).with_name("written_out.py")

_WIDTH: Final = 110 - 8
"""Characters of a statement."""

_HEAD: Final = '''"""Confidences of chains side by side, written by :mod:`confidence.chain.write_out`."""

from __future__ import annotations

import numpy as np

from confidence.config import MOST_EXACT_TICKS, WORST_CANCELLATION
from confidence.kernel import kernel

__all__ = [{names}]

REACH = float(MOST_EXACT_TICKS // 2)
'''

_KERNEL: Final = '''

@kernel
def chains_of_{length}(bounds, w, chains, place, values, out):
    """Fill the confidences of chains of {length} events; return how many are NaN.

    See :mod:`confidence.chain.side_by_side`.
    """
    least = {bound!r} / WORST_CANCELLATION
    for n in range(chains):
{body}
    lost = 0
    for n in range(chains):
        out[place[n]] = values[n]
        lost += values[n] != values[n]
    return lost
'''


def _terms_bound(length: int) -> float:
    """Return C, see above."""
    total = 0.0
    for cuts in range(1, length + 1):
        for chosen in combinations(range(length), cuts):
            ends = (*chosen[1:], chosen[0] + length)
            sizes = [end - begin for begin, end in zip(chosen, ends, strict=True)]
            total += math.prod(1.0 / math.factorial(size) for size in sizes)
    return total


def _falling(size: int) -> str:
    """Return ``r (r - 1) ... (r - size + 1) / size!``, exactly 0 at ``r = size - 1``, in few operations."""
    if size == 2:
        return "0.5 * r * (r - 1.0)"
    scale = f"{1 / math.factorial(size)!r}"
    if size % 2:
        return f"{scale} * c * " + " * ".join(f"(s - {float(k * k)})" for k in range(1, size // 2 + 1))
    return f"{scale} * q * " + " * ".join(f"(q + {float(k * (size - 1 - k))})" for k in range(1, size // 2))


def _arcs(length: int) -> Iterator[str]:
    """Yield statements for ``t{i}{size}``, the number of strictly decreasing values from position i on."""
    for i in range(length):
        yield f"end = b{i} + 1.0"
        yield f"t{i}1 = end - a{i}"
        for size in range(2, length + 1):
            last = i + size - 1
            if last == length:
                yield "end -= w"
            yield f"r = max(end - a{last % length}, {size - 1}.0)"
            if size > 2 and size % 2:
                yield f"c = r - {size // 2}.0"
                yield "s = c * c"
            elif size > 2:
                yield f"q = r * (r - {size - 1}.0)"
            yield f"t{i}{size} = {_falling(size)}"


def _sum(name: str, terms: list[tuple[int, str]]) -> Iterator[str]:
    """Yield statements that add up signed terms, the first of which is positive."""
    line = f"{name} = {terms[0][1]}"
    for sign, term in terms[1:]:
        if len(line) + len(term) + 3 > _WIDTH:
            yield line
            line = f"{name} = {name}"
        line += f" {'+' if sign > 0 else '-'} {term}"
    yield line


def _term(arc: str, chains: str | None) -> str:
    return arc if chains is None else f"{arc} * {chains}"


def _sums(length: int) -> Iterator[str]:
    """Yield statements for the number of chains."""
    total = []
    for back in range(length):
        start, last = (length - back) % length, length - 1 - back
        for k in range(last, 0, -1):
            terms = [
                ((-1) ** (end - k), _term(f"t{k}{end - k + 1}", f"d{end + 1}" if end < last else None))
                for end in range(k, last + 1)
            ]
            yield from _sum(f"d{k}", terms)
        for end in range(back, length):
            k = end - back + 1
            total.append(((-1) ** end, _term(f"t{start}{end + 1}", f"d{k}" if k <= last else None)))
        yield from _sum("count", [(1, "count"), *total] if back else total)
        total.clear()


def _body(length: int) -> Iterator[str]:
    last = length - 1
    for j in range(length):
        yield f"l{j}, h{j} = bounds[{2 * j}, n], bounds[{2 * j + 1}, n]"
    # Of the bounds as they are given: what float64 rounds must not be taken for empty.
    yield "low, high = l0, h0"
    for j in range(1, length):
        yield f"low, high = min(low, l{j}), max(high, h{j})"
    yield "sizes = h0 - l0 + 1.0"
    for j in range(1, length):
        yield f"sizes *= h{j} - l{j} + 1.0"
    for j in range(1, length):
        yield f"l{j} = max(l{j - 1}, l{j})"
    for j in range(last - 1, -1, -1):
        yield f"h{j} = min(h{j + 1}, h{j})"
    yield f"first, last = l{last} - w, h0 + w"
    for j in range(length):
        yield f"a{j} = " + (f"max(l{j}, first)" if j < last else f"l{j}")
        yield f"b{j} = " + (f"min(h{j}, last)" if j > 0 else f"h{j}")
    yield from _arcs(length)
    yield from _sums(length)
    yield "everything, fewest = t01, t01"
    for j in range(1, length):
        yield f"everything *= t{j}1"
        yield f"fewest = min(fewest, t{j}1)"
    # Sums of float64 may end a little above all there are.
    yield "value = min(count, sizes) / sizes if count >= least * everything else np.nan"
    yield "value = value if fewest >= 1.0 else 0.0"
    yield "values[n] = value if max(high, -low) <= REACH else np.nan"


def written_out() -> str:
    """Return the text of ``written_out.py``."""
    names = [f"chains_of_{length}" for length in LENGTHS]
    text = _HEAD.format(names="\n" + "".join(f'    "{name}",\n' for name in names))
    for length in LENGTHS:
        body = "\n".join(f"        {line}" for line in _body(length))
        text += _KERNEL.format(length=length, bound=_terms_bound(length), body=body)
    return text


if __name__ == "__main__":
    PLACE.write_text(written_out())
