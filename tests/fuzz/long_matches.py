"""Long lists of dense events, where one match may be dear: named queries, and drawn ones of all constructs.

``python -m tests.fuzz.long_matches [NAME...]`` lets them explode as :mod:`tests.fuzz.bombs` does.
"""

from __future__ import annotations

import random
import sys
from functools import partial
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tests.fuzz.bombs import Bomb, main

__all__ = ["DRAWN", "LONG"]


def dense(
    count: int,
    *,
    types: str = "A",
    width: int = 5,
    step: int = 1,
    pmf: int = 0,
    clocks: int = 0,
    doubtful: bool = False,
    ordered: bool = False,
) -> pa.Table:
    """Return events ``step`` ticks apart, each with ``width`` ticks beside one, or with a pmf of so many."""
    rng = np.random.default_rng(1)
    lower = step * np.arange(count)
    off = 3 if clocks else 0
    columns: dict[str, Any] = {
        "type": np.array(list(types))[rng.integers(0, len(types), count)],
        "id": np.arange(count),
        "lower": lower,
        "upper": lower + (pmf - 1 if pmf else width) + 2 * off,
    }
    if pmf:
        columns["pmf"] = pa.array([[1.0 / pmf] * pmf] * count)
    if clocks:
        columns["source"] = np.array([f"clock {n}" for n in range(clocks)])[rng.integers(0, clocks, count)]
        columns["offset_lower"], columns["offset_upper"] = np.full(count, -off), np.full(count, off)
    if doubtful:
        columns["probability"] = rng.uniform(0.3, 1.0, count)
    if ordered:
        columns["sequence"], columns["ordered"] = np.arange(count), np.full(count, True)
    return pa.table(columns)


CLOCKED: Final = partial(dense, types="ABCD", width=300, clocks=5)

LONG: Final = {
    "one long match": Bomb("PATTERN SEQ(A+ b[]) WITHIN 100000", dense, 10_000),
    "one long match till the next": Bomb(
        "PATTERN SEQ(A a, A+ b[], A c) WHERE skip_till_next_match(a, b[], c) WITHIN 100000", dense, 10_000
    ),
    "one long match with pmfs": Bomb(
        "PATTERN SEQ(A a, A+ b[], A c) WHERE skip_till_next_match(a, b[], c) WITHIN 100000",
        partial(dense, pmf=101),
        3_000,
    ),
    "one long match with a bound of its length": Bomb(
        "PATTERN SEQ(A+ b[]) WHERE TIME(b[b.LEN]) - TIME(b[1]) >= 3 WITHIN 100000", dense, 10_000
    ),
    "one long match with bounds of neighbours": Bomb(
        "PATTERN SEQ(A a, A+ b[], A c) WHERE skip_till_next_match(a, b[], c) AND "
        "TIME(b[i]) - TIME(b[i-1]) <= 4 WITHIN 100000",
        dense,
        10_000,
    ),
    "thousands that may be next": Bomb(
        "PATTERN SEQ(A a, B b) WHERE TIME(b) - TIME(a) >= 3 AND skip_till_next_match(a, b) WITHIN 5000",
        partial(dense, types="AB", width=2000),
        10_000,
    ),
    "thousands by clocks": Bomb("PATTERN SEQ(A a, !B n, C c, !D m) WITHIN 5000", CLOCKED, 20_000),
    "thousands by clocks, counted": Bomb(
        "PATTERN SEQ(A a, !B n, C c, !D m) WITHIN 5000 RETURN EXPECTED COUNT EVERY 10 ticks", CLOCKED, 20_000
    ),
    "thousands by clocks that may be next": Bomb(
        "PATTERN SEQ(A a, B b) WHERE TIME(b) - TIME(a) >= 3 AND skip_till_next_match(a, b) WITHIN 5000",
        CLOCKED,
        20_000,
    ),
    "a stream with one long match": Bomb("PATTERN SEQ(A+ b[]) WITHIN 100000", dense, 10_000, call="push"),
}

_PATTERNS: Final = (
    ("SEQ(A a, B b)", ("a", "b")),
    ("SEQ(A a, A b, A c)", ("a", "b", "c")),
    ("SEQ(A a, A+ b[], A c)", ("a", "b[]", "c")),
    ("SEQ(A+ b[])", ("b[]",)),
    ("SEQ(A a, !B n, C c, !D m)", ("a", "c")),
    ("SEQ(!D m, A a, !B n, A+ b[], C c)", ("a", "b[]", "c")),
    ("AND(A a, B b, C c)", ("a", "b", "c")),
    ("SEQ(A a, AND(B+ b[], C c), !A n, D d)", ("a", "d")),
)

_STRATEGIES: Final = ("skip_till_any_match", "skip_till_next_match", "strict_contiguity")

_TIMES: Final = ("", ">= 3", "BETWEEN 2 AND 400")

_ENDS: Final = (
    "",
    "RETURN EXPECTED COUNT EVERY 10 ticks",
    "HAVING CONFIDENCE >= 0.5",
    "ORDER BY CONFIDENCE DESC LIMIT 10",
)

_EVENTS: Final = (
    (partial(dense), 10_000),
    (partial(dense, types="ABCD", width=2000), 10_000),
    (CLOCKED, 20_000),
    (partial(dense, types="AB", pmf=101), 3_000),
    (partial(dense, types="ABC", width=50, doubtful=True), 20_000),
    (partial(dense, types="ABCD", width=100, clocks=5, ordered=True), 10_000),
    (partial(dense, types="ABCD", pmf=61, clocks=3), 5_000),
    (partial(dense, types="AB", step=3), 20_000),
)


def drawn(seed: int) -> Bomb:
    """Return a query of drawn constructs over drawn events; not all are supported together."""
    draw = random.Random(seed)
    pattern, variables = draw.choice(_PATTERNS)
    conditions = []
    if "AND" not in pattern:
        conditions.append(f"{draw.choice(_STRATEGIES)}({', '.join(variables)})")
    singles = [name for name in variables if not name.endswith("[]")]
    if len(singles) > 1 and (times := draw.choice(_TIMES)):
        conditions.append(f"TIME({singles[-1]}) - TIME({singles[0]}) {times}")
    where = f"WHERE {' AND '.join(conditions)}" if conditions else ""
    within = draw.choice([50, 1000, 5000, 100_000])
    events, count = draw.choice(_EVENTS)
    query = f"PATTERN {pattern} {where} WITHIN {within} {draw.choice(_ENDS)}"
    call = draw.choice(["match", "match", "iterate", "push"])
    if call == "push" and ("ORDER BY" in query or "COUNT" in query):
        call = "match"
    options: dict[str, Any] = {} if call == "push" else {"threads": draw.choice([1, 2])}
    return Bomb(query, events, count, options, call=call)


DRAWN: Final = {f"drawn {seed}": drawn(seed) for seed in range(80)}


if __name__ == "__main__":
    main(sys.argv[1:] or [*LONG, *DRAWN], LONG | DRAWN)
