"""A log in order whose stamps are cut to the minute: what its order tells of times, beside the true ones."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

import uncertain_cep as uc
from tests.conftest import ROOT
from tests.integration.chains import dataset
from tests.integration.raw import rows

Record = tuple[int, int, str, str, str]
"""True time in ms, 0 for ends and 1 for starts, event, attempt and host: records in this order."""


@pytest.fixture(scope="module")
def records(shared_data: Path) -> list[Record]:
    """Starts and ends as the JobTracker saw them; of one millisecond ends come first."""
    records_found = []
    for row in rows(shared_data / "yahoo_hadoop_2009_skew" / "attempts_19jobs.csv.gz"):
        for event, is_start, column in (("End", 0, "jt_finish_ms"), ("Start", 1, "jt_start_ms")):
            if int(row[column]) > 0:
                records_found.append((int(row[column]), is_start, event, row["attempt_id"], row["host"]))
    return sorted(records_found)


def _truth(records: list[Record]) -> int:
    """Return how many starts follow an end on their host within five ticks of a second."""
    ends: dict[str, list[int]] = {}
    count = 0
    for true_ms, is_start, _, _, host in records:
        if is_start:
            count += sum(true_ms // 1000 - end // 1000 < 5 for end in ends.get(host, ()))
        else:
            ends.setdefault(host, []).append(true_ms)
    return count


def test_the_order_tells_times_within_the_minute(records: list[Record], tmp_path: Path) -> None:
    with (tmp_path / "minutes.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["at", "event", "attempt", "host", "true_ms"])
        out.writerows((ms // 60_000, event, attempt, host, ms) for ms, _, event, attempt, host in records)
    events = uc.read_traces(tmp_path / "minutes.csv", dataset("yahoo_hadoop", "minutes.toml"))
    assert events.num_rows == len(records) == 22_477
    place = {row["id"]: n for n, row in enumerate(events.select(["id"]).to_pylist())}
    query = dataset("yahoo_hadoop", "refilled.query").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "known-order.md").read_text(encoding="utf-8")
    for sources in (True, False):
        matches = uc.match(events, query, sources=sources)
        confidence = np.asarray(matches["confidence"].to_numpy())
        ended, started = (np.asarray(matches[name].to_numpy()) // 1000 for name in ("ended", "started"))
        pairs = zip(matches["a"].to_pylist(), matches["b"].to_pylist(), strict=True)
        happened = (started - ended < 5) & np.array([place[a] < place[b] for a, b in pairs])
        assert happened.sum() == _truth(records) == 1_396
        likely = confidence >= 0.9
        of_likely = f"{happened[likely].mean():.3f}" if likely.any() else "-"
        counts = f"{len(confidence):,} | {confidence.sum():,.0f} | {happened.sum():,} | {likely.sum():,}"
        answers = f"{counts} | {of_likely} |"
        assert answers in page, answers
