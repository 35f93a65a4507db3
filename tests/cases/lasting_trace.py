"""A trace of events that last, and of moments."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

__all__ = ["trace"]


def trace(count: int, *, clocks: bool = False, seed: int = 0) -> pa.Table:
    """Return events by begin and length, a third of them moments; bounds of the whole are wide."""
    draw = np.random.default_rng(seed)
    begin, length = draw.integers(-20, 150, count), draw.integers(0, 6, count)
    last, longest = begin + draw.integers(1, 4, count), length + draw.integers(0, 3, count)
    source = draw.integers(0, 3, count) if clocks else np.zeros(count, np.int64)
    # The offset of clock k is between -k and 0.
    begin = begin - source
    is_moment = draw.random(count) < 0.3

    def bounds(values: np.ndarray) -> pa.Array:
        return pa.array(values, mask=is_moment)

    columns = {
        "type": draw.choice(["A", "B", "N"], count).tolist(),
        "id": draw.permutation(count),
        "key": draw.integers(0, 3, count),
        "lower": begin - draw.integers(0, 5, count),
        "upper": last + longest + draw.integers(0, 4, count),
        "begin_lower": bounds(begin),
        "begin_upper": bounds(last),
        "length_lower": bounds(length),
        "length_upper": bounds(longest),
    }
    if clocks:
        columns |= {
            "source": [f"clock {number}" for number in source],
            "offset_lower": -source,
            "offset_upper": np.zeros(count, np.int64),
        }
    return pa.table(columns)
