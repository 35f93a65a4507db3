"""Sound queries and stamps that may not be meant so, and what every engine says of each."""

from __future__ import annotations

from typing import Any, Final

import pyarrow as pa

import uncertain_cep as uc

__all__ = ["REMARKS", "STAMPS", "TRACE", "stamped"]

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

STAMPS: Final[list[tuple[list[Any], dict[str, Any], list[str]]]] = [
    (["2026-01-05 08:00:00", "2026-01-05 08:00:01"], {"tick": "1s"}, []),
    (["2026-01-05 08:00:00", "2026-01-05 08:00:00"], {"tick": "1s"}, []),
    (
        # The middle ones are of one tick wherever the rows are cut.
        [f"2026-01-05 08:00:0{second}" for second in ("0", "3.1", "3.2", "3.9", "5", "6")],
        {"tick": "1s"},
        [
            "3 certain times share a tick of 1s with different ones: none of these is before the other, so "
            "that they never follow each other in a match; give a shorter tick, or say how uncertain the "
            "times are"
        ],
    ),
    (
        ["2026-01-05 08:00:00.1", "2026-01-05 08:00:00.2"],
        {"uncertainty": uc.plus_minus("1s"), "tick": "1s"},
        [],
    ),
    (
        ["2016-12-31 23:59:60", "2016-12-31 23:59:59", "2016-12-31 23:59:60"],
        {},
        ["at: 2 leap seconds, :60, read as the beginning of the next minute"],
    ),
    (
        # Either hour is in order.
        ["2026-10-25 02:10:00", "2026-10-25 02:20:00", "2026-10-25 02:30:00", "2026-10-25 04:00:00"],
        {"time_zone": "Europe/Berlin", "tick": "1min"},
        [
            "3 stamps of at stand for two times, as clocks of Europe/Berlin were set back: each has both "
            "times, equally likely"
        ],
    ),
    (
        ["2026-10-25 02:10:00", "2026-10-25 02:20:00", "2026-10-25 02:30:00"],
        {"time_zone": "Europe/Berlin", "tick": "1us"},
        [
            "3 stamps of at stand for two times, as clocks of Europe/Berlin were set back: each has both "
            "times, equally likely",
            "3 events with two possible times would have 10,800,000,003 probabilities of ticks of 1us: each "
            "is taken to be anywhere from the one to the other, equally likely; give a longer tick to have "
            "both alone",
        ],
    ),
]
"""Stamps of a column ``at``, options of `to_intervals`, and the warnings about the stamps."""


def stamped(stamps: list[Any]) -> pa.Table:
    """Return rows with these stamps."""
    return pa.table({"type": ["A"] * len(stamps), "id": range(len(stamps)), "at": stamps})
