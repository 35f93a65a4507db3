"""Calibration: of the matches with a confidence near x, a share of x is true.

True times are drawn anew for every event, from its interval, many times over. The simulated cluster's own
hidden times would not do: the events of a host share one clock offset there, while the model, and so the
confidences, take events as independent. The events are the cluster's, and which matches are true is decided
here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import uncertain_cep as uc
from tests.properties.strategies import STRATEGIES
from uncertain_cep.traces.cluster import cluster_trace

WINDOW = 300
WORLDS = 400
BINS = 10

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@pytest.fixture(scope="module")
def events() -> pa.Table:
    """A quarter of an hour of four nodes, in ticks of 100 ms."""
    cluster = cluster_trace(minutes=15, nodes=4, seed=5)
    offsets = uc.clock_offset(
        cluster.clock_offsets, key="nodeId", host="nodeId", lower="lower_ms", upper="upper_ms", unit="ms"
    )
    parts = [
        uc.to_intervals(cluster.tasks, time="time", uncertainty=offsets, tick="100ms"),
        uc.to_intervals(cluster.metrics, time="time", uncertainty=uc.window("15s"), tick="100ms"),
    ]
    return pa.concat_tables(parts, promote_options="default")


@dataclass(frozen=True)
class Matches:
    """Matches as rows of the events, a column for each variable, and their confidences."""

    rows: Ints
    confidence: Floats


def find(events: pa.Table, strategy: str) -> Matches:
    query = f"""
        PATTERN SEQ(TaskStart a, Cpu b, (MapFinish|ReduceFinish) c)
        WHERE {strategy}(a, b, c) {{ [nodeId] AND c.taskId = a.taskId AND b.value > 60% }} WITHIN {WINDOW}
    """
    found = uc.match(events, query, tick="100ms")
    rows = [pc.index_in(found[name], events["id"]).to_numpy() for name in "abc"]
    return Matches(np.stack(rows).astype(np.int64), found["confidence"].to_numpy())


def worlds(events: pa.Table) -> Ints:
    """Draw a tick for each event, uniformly from its interval: (worlds, events)."""
    lower, upper = (
        np.asarray(events[name].cast(pa.timestamp("ms", "UTC")).cast(pa.int64())) // 100
        for name in ("lower", "upper")
    )
    return np.random.default_rng(17).integers(lower, upper + 1, (WORLDS, len(lower)))


def true_matches(events: pa.Table, matches: Matches, times: Ints, strategy: str) -> npt.NDArray[np.bool_]:
    """Return in which worlds each match is one: (worlds, matches)."""
    a, b, c = (times[:, rows] for rows in matches.rows)
    true = (a < b) & (b < c) & (c - a <= WINDOW - 1)
    if strategy == "skip_till_any_match":
        return true
    kind, node, task = (
        np.array(events[name].to_pylist(), dtype=object) for name in ("type", "nodeId", "taskId")
    )
    high = np.array([value is not None and value > 0.6 for value in events["value"].to_pylist()])
    ends = np.isin(kind, ["MapFinish", "ReduceFinish"])
    for m, (start, busy, end) in enumerate(matches.rows.T):
        same = node == node[start]
        for others, own, s, t in (
            ((kind == "Cpu") & high & same, busy, a[:, m], b[:, m]),
            (ends & same & (task == task[start]), end, b[:, m], c[:, m]),
        ):
            rows = np.flatnonzero(others)
            between = times[:, rows[rows != own]]
            true[:, m] &= ~((between > s[:, None]) & (between < t[:, None])).any(axis=1)
    return true


def deviations(confidence: Floats, true: npt.NDArray[np.bool_]) -> Floats:
    """Return how far the share of true matches of each bin is from what it should be, in standard errors.

    Matches share events, so how much a share varies is taken from how it differs from world to world.
    """
    found = []
    for k in range(BINS):
        inside = (confidence >= k / BINS) & (confidence < (k + 1) / BINS)
        if not inside.any():
            continue
        shares = true[:, inside].mean(axis=1)
        error = shares.std(ddof=1) / np.sqrt(WORLDS)
        found.append((shares.mean() - confidence[inside].mean()) / max(error, 1e-12))
    return np.array(found)


@STRATEGIES
def test_confidences_are_the_share_of_worlds(events: pa.Table, strategy: str) -> None:
    matches = find(events, strategy)
    true = true_matches(events, matches, worlds(events), strategy)
    found = deviations(matches.confidence, true)
    assert len(found) >= 6
    assert np.abs(found).max() < 4.5
    # A bin's share is known to well under a percent, so that this can fail.
    assert np.abs(deviations(matches.confidence * 0.95, true)).max() > 4.5
