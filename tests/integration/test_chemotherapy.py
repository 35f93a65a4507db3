"""Treatments known to the day: a set of medications before a blood count, counted from the raw file."""

from __future__ import annotations

import csv
from fractions import Fraction
from itertools import combinations
from math import isclose, prod

import uncertain_cep as uc
from tests.integration.chains import dataset
from uncertain_cep.traces import load_schema, read_traces

HOURS = 24
WINDOW = 15 * HOURS

Row = tuple[int, int, Fraction]


def _first_hour(row: dict[str, str]) -> int:
    month, day = int(row["day"][5:7]), int(row["day"][8:10])
    # All of July, August and September 2010: what counts is the distance.
    return HOURS * ((31 if month > 7 else 0) + (31 if month > 8 else 0) + day)


def _probability(medications: list[int], count: int) -> Row | None:
    """Return range and probability of all medications before the blood count, which is the last event."""
    total, first, last = Fraction(0), 10**9, -1
    for end in range(count, count + HOURS):
        earliest = end - WINDOW + 1
        ticks = [(max(start, earliest), min(start + HOURS, end)) for start in medications]
        chance = prod((Fraction(max(stop - start, 0), HOURS) for start, stop in ticks), start=Fraction(1))
        if chance:
            total += chance / HOURS
            first, last = min(first, *(start for start, _ in ticks)), end
    return (first, last, total) if total else None


def _brute_force(events: list[dict[str, str]]) -> dict[tuple[str, tuple[str, ...], str], Row]:
    expected = {}
    for patient in {row["patient"] for row in events}:
        rows_of_patient = [row for row in events if row["patient"] == patient]
        doses = [row for row in rows_of_patient if row["kind"] == "Prednisone" and float(row["value"]) >= 60]
        for drug in (row for row in rows_of_patient if row["kind"] == "Ciclofosfamide"):
            for count in (
                row for row in rows_of_patient if row["kind"] == "BloodCount" and float(row["value"]) < 3500
            ):
                for size in range(1, len(doses) + 1):
                    for chosen in combinations(doses, size):
                        starts = [_first_hour(row) for row in (drug, *chosen)]
                        answer = _probability(starts, _first_hour(count))
                        if answer is not None:
                            ids = tuple(sorted(row["event"] for row in chosen))
                            expected[drug["event"], ids, count["event"]] = answer
    return expected


def test_medications_in_any_order_before_a_low_blood_count() -> None:
    file = dataset("chemotherapy", "treatments.csv")
    trace = read_traces([file], load_schema(dataset("chemotherapy", "schema.toml")))
    text = dataset("chemotherapy", "low_blood_count.query").read_text(encoding="utf-8")
    matches = uc.match(trace, text)
    with file.open(encoding="utf-8", newline="") as lines:
        events = list(csv.DictReader(lines))
    expected = _brute_force(events)
    values = {row["event"]: float(row["value"]) for row in events}
    assert matches.num_rows == len(expected) == 98
    origin = trace.column("lower")[0].as_py()
    uncertain = 0
    for match in matches.to_pylist():
        first, last, confidence = expected[match["c"], tuple(match["p"]), match["b"]]
        hours = [
            _first_hour(events[0]) + int((match[name] - origin).total_seconds()) // 3600
            for name in ("range_lower", "range_upper")
        ]
        assert hours == [first, last]
        assert isclose(match["confidence"], confidence, rel_tol=1e-9)
        assert match["prednisone"] == sum(values[dose] for dose in match["p"])
        assert match["doses"] == len(match["p"])
        uncertain += confidence < 1
    assert uncertain == 5
