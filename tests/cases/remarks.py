"""Sound queries that may not be meant so, on a few events, and what every engine says of each."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

__all__ = ["REMARKS", "TRACE"]

TRACE: Final = pa.table(
    {
        "type": ["Start", "CPU", "CPU", "Stop"],
        "id": [1, 2, 3, 4],
        "lower": [0, 1, 2, 9],
        "upper": [0, 2, 3, 9],
        "value": [None, 50.0, 97.5, None],
        "share": [0.1, 0.5, 1.5, None],
        "host": pa.array([None] * 4, pa.string()),
        "seen": pa.array([0, 1, 2, 9], pa.timestamp("us")),
        "sent": pa.array([0, 1, 2, 9], pa.timestamp("us", "UTC")),
    }
)

REMARKS: Final[list[tuple[str, list[str]]]] = [
    ("SEQ(Start a, CPU b, !Stop n) WHERE b.value > 60 AND n.id > 0", []),
    ("SEQ(Strat a, CPU b)", ["no event of type Strat; did you mean Start?"]),
    ("SEQ(start a, CPU b)", ["no event of type start; did you mean Start?"]),
    ("SEQ(Start a, !cpu b, CPU c)", ["no event of type cpu; did you mean CPU?"]),
    ("SEQ(Start a, (CPU|Memory) b)", ["no event of type Memory; the types are CPU, Start, Stop"]),
    (
        "SEQ(Start a, OR(CPU b, Stpo c, `Sto p` d)) WHERE b.value > 1",
        ["no event of type Stpo; did you mean Stop?", "no event of type `Sto p`; did you mean Stop?"],
    ),
    (
        "SEQ(Start a, OR(CPU b, Stop c)) WHERE a.value > 1",
        ["no event can be a: none of type Start meets a.value > 1: check its type and conditions"],
    ),
    (
        "SEQ(ANY a, CPU+ b[]) WHERE b[i].value > 100 AND b[i].id > 0",
        [
            "no event can be b: none of type CPU meets b[i].value > 100 and meets b[i].id > 0: "
            "check its type and conditions"
        ],
    ),
    (
        "SEQ(Start a, !CPU n, Stop b) WHERE n.value > 100",
        ["no event can be n: none of type CPU meets n.value > 100, so that the negation forbids nothing"],
    ),
    (
        "SEQ(Start a, Stop b) WHERE [host]",
        [
            "no event can be a: none of type Start has a value of host: check its type and conditions",
            "no event can be b: none of type Stop has a value of host: check its type and conditions",
        ],
    ),
    (
        "SEQ(Start a, CPU b) WHERE b.value > 95%",
        ["95% is 0.95, but b.value goes up to 97.5: if it counts in percent, compare it with 95"],
    ),
    (
        "SEQ(Start a, CPU+ b[], CPU+ c[]) WHERE 5% < b[i].value AND avg(c[].value) >= 7% AND b.id > 200%",
        [
            "5% is 0.05, but b.value goes up to 97.5: if it counts in percent, compare it with 5",
            "200% is 2, but b.id goes up to 3: if it counts in percent, compare it with 200",
        ],
    ),
    # What is never true keeps every event out, and is said once.
    ("SEQ(Start a, CPU b) WHERE b.value = NULL", ["b.value = NULL is never true: write b.value IS NULL"]),
    (
        "SEQ(Start a, !CPU n, Stop b) WHERE NULL != n.value AND n.id > 0",
        ["NULL != n.value is never true: write n.value IS NOT NULL"],
    ),
    # Times with a zone and without.
    (
        "SEQ(Start a, CPU b) WHERE a.seen <= b.sent",
        ["no time zone in a.seen, and UTC in b.sent: what has none is read as UTC; give all a zone, or none"],
    ),
    ("SEQ(Start a, CPU b) WHERE a.seen <= b.seen AND a.sent <= b.sent", []),
    # Written as a number, of other events, as a factor, or not beyond what a share can be.
    ("SEQ(Start a, CPU b) WHERE b.value > 0.95", []),
    ("SEQ(Stop a) WHERE a.value > 95% OR a.id = 4", []),
    ("SEQ(CPU a, CPU b) WHERE b.value > 95% * a.value", []),
    ("SEQ(Start a, CPU b) WHERE b.share > 95%", []),
    ("SEQ(CPU a, CPU b) WHERE b.value > 0%", []),
]
