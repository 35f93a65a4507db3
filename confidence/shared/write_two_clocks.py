"""Writes ``two_clocks_written_out.py``: ``python -m confidence.shared.write_two_clocks``.

Each kernel weighs matches of one length without a loop over events or a branch, so that the compiler computes
several at a time in vectors (:mod:`confidence.shared.two_clocks`).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from confidence.chain.side_by_side import LENGTHS
from confidence.shared.two_clocks import COLUMNS

__all__ = ["PLACE", "written_out"]

PLACE: Final = Path(__file__).with_name("two_clocks_written_out.py")

_HEAD: Final = '''"""Matches of at most two clocks, written by :mod:`confidence.shared.write_two_clocks`."""

from __future__ import annotations

import numpy as np

from confidence.chain.written_out import (
{chains}
)
from confidence.kernel import kernel
from confidence.shared.two_clocks import EXACT, ROOM, gather, lay_out, line, part_tied, write

__all__ = [
{names}
]
'''

_KERNEL: Final = '''

@kernel
def _weigh_{length}(columns, window, size, begins, ends, values):
    for n in range(size):
{body}


@kernel
def two_clocks_of_{length}(matches, stride, events, window, with_confidence, part, room, waiting, out):
    """Weigh matches of {length} events; see :mod:`confidence.shared.two_clocks`."""
    columns, weighed, chains = room.events, room.weighed, room.chains
    confidence = out[2]
    waits = lost = 0
    for begin in range(part[0], part[1], ROOM):
        end = min(begin + ROOM, part[1])
        gather({length}, matches, stride, events, begin, end - begin, columns)
        _weigh_{length}(columns, window, end - begin, weighed[0], weighed[1], weighed[2])
        before = waits
        waits = write(begin, end, weighed, events.origin, waiting, waits, out)
        alone, waits = part_tied({length}, columns, begin, waiting, before, waits, chains.place)
        if with_confidence:
            lay_out({length}, columns, begin, alone, chains)
            w = window - {last}
            lost += chains_of_{length}(chains.bounds, w, alone, chains.place, chains.values, confidence)
    return waits, lost
'''


def _statements(length: int) -> Iterator[str]:
    """Yield the statements that weigh match n."""
    for j in range(length):
        at = COLUMNS * j
        yield f"c{j}, l{j}, w{j} = columns[{at}, n], columns[{at + 1}, n], columns[{at + 2}, n]"
    yield from ("o1 = 1.0 if c1 != c0 else 0.0", "wide = w1 if o1 != 0.0 else 0.0")
    if length == 2:
        yield "is_more = o1 != 0.0"
    else:
        yield "is_more, other = False, c1"
    for j in range(2, length):
        yield f"o{j} = 1.0 if c{j} != c0 else 0.0"
        yield f"is_more |= (o{j} != 0.0) & (other != c0) & (c{j} != other)"
        yield f"wide = w{j} if o{j} != 0.0 else wide"
        if j < length - 1:
            yield f"other = c{j} if o{j} != 0.0 else other"
    # Which of the conditions of two neighbours is one depends on their clocks.
    yield from ("lowest, highest = -w0, wide", "ahead = l0 - l1 + 1.0")
    yield from ("late = ahead if o1 == 0.0 else 0.0", "lowest = max(lowest, ahead if o1 != 0.0 else lowest)")
    for j in range(2, length):
        yield f"ahead, change = l{j - 1} - l{j} + 1.0, o{j} - o{j - 1}"
        yield "late = max(late, ahead if change == 0.0 else 0.0)"
        yield "lowest = max(lowest, ahead if change > 0.0 else lowest)"
        yield "highest = min(highest, -ahead if change < 0.0 else highest)"
    last = length - 1
    yield f"ahead = l{last} - l0 - window"
    yield f"late = max(late, ahead if o{last} == 0.0 else 0.0)"
    yield f"highest = min(highest, -ahead if o{last} != 0.0 else highest)"
    yield "near, far = min(0.0, wide - w0), max(0.0, wide - w0)"
    yield "count = line(lowest, min(highest, near), w0, wide)"
    yield "count += line(max(lowest, near + 1.0), min(highest, far), w0, wide)"
    yield "count += line(max(lowest, far + 1.0), highest, w0, wide)"
    yield "can_be = (late <= 0.0) & (lowest <= highest)"
    yield "value = count / ((w0 + 1.0) * (wide + 1.0)) if can_be else 0.0"
    yield "values[n] = np.nan if is_more else value"
    yield "begins[n] = max(l0, l0 - highest)"
    yield f"bound = min(w0, wide - lowest) if o{last} == 0.0 else min(wide, w0 + highest)"
    yield f"ends[n] = l{last} + bound if can_be else float(-8 * EXACT)"


def written_out() -> str:
    """Return the text of ``two_clocks_written_out.py``."""
    names = "\n".join(f'    "two_clocks_of_{length}",' for length in LENGTHS)
    chains = "\n".join(f"    chains_of_{length}," for length in LENGTHS)
    text = _HEAD.format(names=names, chains=chains)
    for length in LENGTHS:
        body = "\n".join(" " * 8 + statement for statement in _statements(length))
        text += _KERNEL.format(length=length, last=float(length - 1), body=body)
    return text


if __name__ == "__main__":
    PLACE.write_text(written_out())
