"""Events that last, with hidden times drawn anew: of what is said with probability p, p happens."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

import uncertain_cep as uc

Int64 = NDArray[np.int64]

PAIRS = 3_000
APART = 1_000
"""Ticks between the pairs of events, none of which meets another pair."""


class Drawn:
    """Pairs of spans A and B whose stamps are cut to a unit, and their true times."""

    def __init__(self, seed: int, *, with_length: bool, clocked: bool) -> None:
        random = np.random.default_rng(seed)
        count = 2 * PAIRS
        pair = np.arange(count) // 2
        unit = random.choice([1, 5, 20, 50], count)
        # Bounds come first, and times are drawn within them: whatever bounds there are, that is the law.
        stamp = pair * APART + random.integers(0, 60, count) // unit * unit
        ending = stamp + random.integers(0, 30, count) // unit * unit
        length = random.integers(0, 40, count)
        offset = random.integers(-9, 10, count) if clocked else np.zeros(count, np.int64)
        self.begin, self.end = np.zeros(count, np.int64), np.zeros(count, np.int64)
        for n in range(count):
            begins = random.integers(stamp[n], stamp[n] + unit[n], 4_000)
            ends = (
                begins + length[n] if with_length else random.integers(ending[n], ending[n] + unit[n], 4_000)
            )
            (possible,) = np.nonzero(begins <= ends)
            self.begin[n] = begins[possible[0]] + offset[n]
            self.end[n] = ends[possible[0]] + offset[n]
        low, high = (-9, 9) if clocked else (0, 0)
        columns: dict[str, Any] = {
            "type": np.where(np.arange(count) % 2, "B", "A"), "id": np.arange(count), "pair": pair,
            "begin_lower": stamp + low, "begin_upper": stamp + unit - 1 + high,
        }  # fmt: skip
        if with_length:
            columns |= {"length_lower": length, "length_upper": length}
            last = stamp + unit - 1 + length
        else:
            last = ending + unit - 1
            columns |= {"end_lower": ending + low, "end_upper": last + high}
        columns |= {"lower": stamp + low, "upper": last + high}
        if clocked:
            columns |= {
                "source": np.char.add("c", np.arange(count).astype(str)),
                "offset_lower": np.full(count, low), "offset_upper": np.full(count, high),
            }  # fmt: skip
        self.events = pa.table(columns)

    def happened(self, relation: str) -> NDArray[np.bool_]:
        """Return in which pairs A is in a relation with B."""
        (b_x, e_x), (b_y, e_y) = ((self.begin[n::2], self.end[n::2]) for n in (0, 1))
        return np.asarray(
            {
                "OVERLAPS": (b_x <= e_y) & (b_y <= e_x),
                "CONTAINS": (b_x <= b_y) & (e_y <= e_x),
                "BEFORE": e_x < b_y,
            }[relation]
        )


@pytest.mark.parametrize("relation", ["OVERLAPS", "CONTAINS", "BEFORE"])
@pytest.mark.parametrize(
    ("with_length", "clocked"),
    [(True, False), (False, False), (True, True)],
    ids=["length", "stamps", "clocks"],
)
def test_of_what_is_said_so_much_happens(relation: str, with_length: bool, clocked: bool) -> None:
    drawn = Drawn(7, with_length=with_length, clocked=clocked)
    query = f"PATTERN AND(A a, B b) WHERE [pair] AND a {relation} b WITHIN 900"
    matches = uc.match(drawn.events, query)
    claimed = np.zeros(PAIRS)
    claimed[np.array(matches["a"]) // 2] = np.array(matches["confidence"])
    happened = drawn.happened(relation)
    # What is impossible or certain is so, without exception.
    assert not happened[claimed == 0].any()
    assert happened[claimed > 1 - 1e-12].all()
    open_pairs = (claimed > 0) & (claimed < 1 - 1e-12)
    assert open_pairs.sum() > 200
    for low, high in [(0, 1), (0, 0.3), (0.3, 0.7), (0.7, 1)]:
        chosen = open_pairs & (claimed >= low) & (claimed <= high)
        chances = claimed[chosen]
        error = np.sqrt((chances * (1 - chances)).sum())
        assert abs(happened[chosen].sum() - chances.sum()) <= 4 * error + 1e-9


def test_ends_alone_say_too_little_of_short_events() -> None:
    """Stamps in one unit give a triangular length; of events that are far shorter that is no law."""
    random = np.random.default_rng(3)
    count = 2 * PAIRS
    begin = np.arange(count) // 2 * APART + random.integers(0, 100, count)
    end = begin + random.integers(0, 5, count)
    cut = begin // 100 * 100, end // 100 * 100
    events = pa.table(
        {
            "type": np.where(np.arange(count) % 2, "B", "A"), "id": np.arange(count),
            "pair": np.arange(count) // 2, "lower": cut[0], "upper": cut[1] + 99,
            "begin_lower": cut[0], "begin_upper": cut[0] + 99, "end_lower": cut[1], "end_upper": cut[1] + 99,
        }
    )  # fmt: skip
    query = "PATTERN AND(A a, B b) WHERE [pair] AND a OVERLAPS b WITHIN 900 RETURN EXPECTED COUNT"
    ((by_stamps,),) = (row.values() for row in uc.match(events, query).to_pylist())
    length = pa.array(end - begin)
    with_lengths = events.append_column("length_lower", length).append_column("length_upper", length)
    ((by_length,),) = (row.values() for row in uc.match(with_lengths, query).to_pylist())
    true = int(((begin[::2] <= end[1::2]) & (begin[1::2] <= end[::2])).sum())
    assert by_stamps > 5 * true
    assert by_length == pytest.approx(true, abs=4 * true**0.5)
