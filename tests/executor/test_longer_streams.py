"""Streams that are cut into parts as users' are: one thread and several find the same, whatever is asked."""

from __future__ import annotations

from functools import cache

import numpy as np
import pyarrow as pa
import pytest

import uncertain_cep as uc

pytestmark = pytest.mark.compiled

EVENTS = 60_000

QUERIES = {
    "sequence": "SEQ(A a, B b, C c) WHERE [k] WITHIN 200",
    "condition": "SEQ(A a, B b, C c) WHERE a.v < b.v AND c.v < 4 WITHIN 60",
    "having": "SEQ(A a, B b, C c, D d) WHERE [k] WITHIN 300 HAVING CONFIDENCE >= 0.5",
    "best": "SEQ(A a, B b, C c) WHERE a.v < b.v WITHIN 100 ORDER BY CONFIDENCE DESC LIMIT 1000",
    "best by more": "SEQ(A a, B b) WHERE [k] WITHIN 100 ORDER BY CONFIDENCE DESC, b LIMIT 300",
    "best under next": (
        "SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) WITHIN 100 ORDER BY CONFIDENCE DESC LIMIT 300"
    ),
    "best of a set": "AND(A a, B b, C c) WHERE [k] WITHIN 200 ORDER BY CONFIDENCE DESC LIMIT 300",
    "best without": "SEQ(A a, !D d, B b) WHERE [k] WITHIN 300 ORDER BY CONFIDENCE DESC LIMIT 300",
    "best of several": (
        "SEQ(A a, B+ b[], C c) WHERE [k] AND b[i].v < 20 WITHIN 200 ORDER BY CONFIDENCE DESC LIMIT 100"
    ),
    "next": "SEQ(A a, B b, C c) WHERE skip_till_next_match(a, b, c) AND [k] WITHIN 300",
    "several": "SEQ(A a, B+ b[], C c) WHERE [k] AND b[i].v < 20 WITHIN 200",
    "branches": "OR(SEQ(A a, B b), SEQ(C c, D d)) WHERE [k] WITHIN 60",
    "not overlapping": "SEQ(A a, B b, C c) WHERE [k] WITHIN 200 OUTPUT NON OVERLAPPING",
    "in time": "SEQ(A a, B b, C c) WHERE [k] AND TIME(b) - TIME(a) <= 20 WITHIN 200",
    "counts": "SEQ(A a, B b) WHERE [k] WITHIN 60 RETURN EXPECTED COUNT BY k",
    "counts over time": "SEQ(A a, B b) WHERE [k] WITHIN 60 RETURN EXPECTED COUNT EVERY 1000",
}


@cache
def stream() -> pa.Table:
    """Return events of five types, in no order of time or of ids, busier at first: in four parts a thread."""
    rng = np.random.default_rng(5)
    middle = rng.integers(0, np.where(rng.random(EVENTS) < 0.5, EVENTS, 4 * EVENTS))
    return pa.table(
        {
            "type": rng.choice(list("ABCDE"), EVENTS),
            "id": rng.permutation(EVENTS),
            "lower": middle - rng.integers(0, 12, EVENTS),
            "upper": middle + rng.integers(0, 12, EVENTS),
            "v": rng.integers(0, 40, EVENTS),
            "k": rng.integers(0, 10, EVENTS),
        }
    )


def _sorted(found: pa.Table) -> tuple[list[str], list[float]]:
    """Return rows but for their last column, sorted, and that column, the confidence or the number."""
    rows = sorted((repr(values), last) for *values, last in (row.values() for row in found.to_pylist()))
    return [values for values, _ in rows], [last for _, last in rows]


@pytest.mark.parametrize("name", QUERIES)
def test_several_threads_find_what_one_does(name: str) -> None:
    query = f"PATTERN {QUERIES[name]}"
    one = uc.match(stream(), query, threads=1)
    assert one.num_rows > 5
    for threads in (2, 5):
        found = uc.match(stream(), query, threads=threads)
        if "ORDER BY" in query:
            assert found.equals(one)
            continue
        rows, numbers = _sorted(found)
        expected_rows, expected = _sorted(one)
        assert rows == expected_rows
        # The last digits of sums depend on the number of threads.
        assert numbers == pytest.approx(expected, rel=1e-12)
