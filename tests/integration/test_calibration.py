"""Confidences say how often matches are true: of those around 0.7, seven in ten happened.

A *world* says when everything happened. What is true in it is found by a literal search; a match that is
found has to be in the engine's answer, and of the matches with confidence in [x, x + 0.1) that share has to
be true. Matches share events, so they are not independent: the error of a share comes from how it varies
between groups that are, not from the number of matches. Seeds are fixed; the bound is four standard errors.

The clock errors of the simulated cluster are not what the model says: all events of a node share one, it is
rarely near its bounds, and load peaks because of the tasks that run. So the truth is taken in two ways.

- The trace as it is, every true time drawn from the event's interval: the model holds exactly.
- The simulation's own hidden times, each at a random place of an interval put around it. Given the interval,
  the time is uniform as far as the density of such events does not change within it, and independent as far
  as events do not cause each other: those of different nodes.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import uncertain_cep as uc
from tests.conftest import ROOT
from uncertain_cep.traces.cluster import ClusterTrace, cluster_trace

TICK_MS = 250
METRIC_WINDOW_MS = 15_000
BOUND = 4.0
"""Standard errors."""
BINS = 10
STRATEGIES = ("skip_till_any_match", "skip_till_next_match")

Row = dict[str, Any]
Signature = tuple[int, ...]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Pattern:
    """A query, and once more as Python: what fits each component, and after which events it does."""

    text: str
    window: int
    fits: tuple[Callable[[Row], bool], ...]
    agrees: Callable[[Row, Sequence[Row]], bool]

    @property
    def variables(self) -> str:
        return "abcd"[: len(self.fits)]

    def query(self, strategy: str) -> str:
        return f"{self.text} AND {strategy}({', '.join(self.variables)})\nWITHIN {self.window}"


def same_node_and_task(row: Row, taken: Sequence[Row]) -> bool:
    if row["nodeId"] != taken[0]["nodeId"]:
        return False
    return len(taken) != 2 or row["taskId"] == taken[0]["taskId"]


def same_node_other_task(row: Row, taken: Sequence[Row]) -> bool:
    return bool(
        row["nodeId"] == taken[0]["nodeId"] and (len(taken) != 1 or row["taskId"] != taken[0]["taskId"])
    )


MAXED_OUT = Pattern(
    "PATTERN SEQ(TaskStart a, Cpu b, (MapFinish|ReduceFinish) c, Cpu d)\n"
    "WHERE [nodeId] AND c.taskId = a.taskId AND b.value > 90% AND d.value <= 99%",
    120,
    (
        lambda row: row["type"] == "TaskStart",
        lambda row: row["type"] == "Cpu" and row["value"] > 0.9,
        lambda row: row["type"] in {"MapFinish", "ReduceFinish"},
        lambda row: row["type"] == "Cpu" and row["value"] <= 0.99,
    ),
    same_node_and_task,
)

MAP_STEPS = Pattern(
    "PATTERN SEQ(TaskStart a, MapSpill b, MapFinish c)\nWHERE [nodeId] AND b.taskId != a.taskId",
    12,
    (
        lambda row: row["type"] == "TaskStart",
        lambda row: row["type"] == "MapSpill",
        lambda row: row["type"] == "MapFinish",
    ),
    same_node_other_task,
)

ELSEWHERE = Pattern(
    "PATTERN SEQ(MapFinish a, MapSpill b, MapFinish c)\n"
    "WHERE a.nodeId = 'node01' AND b.nodeId = 'node02' AND c.nodeId = 'node03'",
    16,
    (
        lambda row: row["type"] == "MapFinish" and row["nodeId"] == "node01",
        lambda row: row["type"] == "MapSpill" and row["nodeId"] == "node02",
        lambda row: row["type"] == "MapFinish" and row["nodeId"] == "node03",
    ),
    lambda row, taken: True,
)


def true_matches(
    pattern: Pattern, strategy: str, candidates: Sequence[Sequence[Row]], times: Sequence[int]
) -> Iterator[Signature]:
    """Search a world for what the pattern means there; ``times`` is indexed by id."""
    ordered = [sorted(rows, key=lambda row: times[row["id"]]) for rows in candidates]
    in_order = [[times[row["id"]] for row in rows] for rows in ordered]

    def following(taken: list[Row]) -> Iterator[Signature]:
        place = len(taken)
        if place == len(pattern.fits):
            yield tuple(row["id"] for row in taken)
            return
        next_time = None
        for row in ordered[place][bisect_right(in_order[place], times[taken[-1]["id"]]) :]:
            time = times[row["id"]]
            if time - times[taken[0]["id"]] >= pattern.window or (next_time is not None and time > next_time):
                return
            if pattern.agrees(row, taken):
                # Whatever else could be taken later was not next; what happened at the same tick was.
                if strategy == "skip_till_next_match":
                    next_time = time
                yield from following([*taken, row])

    for first in ordered[0]:
        yield from following([first])


def interval_events(trace: ClusterTrace) -> pa.Table:
    """Return the cluster's events with the intervals that its clock bounds and metric windows give."""
    offsets = trace.clock_offsets
    node = np.asarray(pc.index_in(trace.tasks["nodeId"], offsets["nodeId"].combine_chunks()))
    stamp, end = milliseconds(trace.tasks["time"]), milliseconds(trace.metrics["time"])
    return pa.concat_tables(
        [
            with_interval(trace.tasks, stamp + np.asarray(offsets["lower_ms"])[node],
                          stamp + np.asarray(offsets["upper_ms"])[node]),
            with_interval(trace.metrics, end - METRIC_WINDOW_MS + 1, end),
        ],
        promote_options="default",
    )  # fmt: skip


def milliseconds(column: pa.ChunkedArray) -> Ints:
    return np.asarray(column.cast(pa.int64()))


def with_interval(table: pa.Table, lower: Ints, upper: Ints) -> pa.Table:
    ticks = {"lower": pa.array(lower // TICK_MS), "upper": pa.array(upper // TICK_MS)}
    table = table.drop_columns(["time"])
    for name, values in ticks.items():
        table = table.append_column(name, values)
    return table


@dataclass(frozen=True, slots=True)
class Outcome:
    """The matches of the engine, and which of them happened in each world.

    Attributes
    ----------
    signatures : (m,) tuple
    confidence : (m,) float64
    happened : (w, m) bool
    """

    signatures: tuple[Signature, ...]
    confidence: Floats
    happened: npt.NDArray[np.bool_]


def outcome(events: pa.Table, pattern: Pattern, strategy: str, worlds: Ints) -> Outcome:
    """Match events whose ids are 0 to n - 1, and look for the matches in worlds ``(w, n)``."""
    matches = uc.match(events, pattern.query(strategy))
    columns = (matches[variable].to_pylist() for variable in pattern.variables)
    place = {signature: number for number, signature in enumerate(zip(*columns, strict=True))}
    rows = events.to_pylist()
    candidates = [[row for row in rows if fits(row)] for fits in pattern.fits]
    happened = np.zeros((len(worlds), len(place)), dtype=np.bool_)
    for world, times in enumerate(worlds.tolist()):
        for signature in true_matches(pattern, strategy, candidates, times):
            assert signature in place
            happened[world, place[signature]] = True
    return Outcome(tuple(place), np.asarray(matches["confidence"]), happened)


@dataclass(frozen=True, slots=True)
class Calibration:
    """The bins of confidence that hold enough matches to judge.

    Attributes
    ----------
    bins : (b,) int64
        Bin i is [i / 10, (i + 1) / 10), the last one with 1.
    share, error : (b,) float64
        How many of a bin's matches happened, and the standard error of that.
    said : (b,) float64
        Their mean confidence.
    """

    bins: Ints
    share: Floats
    error: Floats
    said: Floats

    @property
    def deviation(self) -> Floats:
        """How far each share is from what was said, in standard errors."""
        return np.abs(self.share - self.said) / self.error


def calibration(outcomes: Sequence[Outcome]) -> Calibration:
    """Compare shares with confidences; every world of every outcome is a group, independent of the others."""
    matches, said, happened = [], [], []
    for observed in outcomes:
        number = np.minimum((observed.confidence * BINS).astype(np.int64), BINS - 1)
        of_bin = number == np.arange(BINS)[:, np.newaxis]
        worlds = len(observed.happened)
        matches.append(np.tile(of_bin.sum(axis=1), (worlds, 1)))
        said.append(np.tile(of_bin @ observed.confidence, (worlds, 1)))
        happened.append(observed.happened.astype(np.int64) @ of_bin.T)
    of_group, total = np.concatenate(happened), np.concatenate(matches).sum(axis=0)
    excess = of_group - np.concatenate(said)
    # A share near 0 or 1 is normally distributed only if both outcomes are not rare.
    judged = np.flatnonzero(np.minimum(of_group.sum(axis=0), total - of_group.sum(axis=0)) >= 50)
    error = excess.std(axis=0, ddof=1) * np.sqrt(len(excess))
    return Calibration(
        judged,
        (of_group.sum(axis=0) / np.maximum(total, 1))[judged],
        (error / np.maximum(total, 1))[judged],
        (np.concatenate(said).sum(axis=0) / np.maximum(total, 1))[judged],
    )


WORLDS = 300
SEEDS = 40
LONGEST_TICKS = 8


@cache
def drawn(pattern: Pattern, strategy: str) -> Outcome:
    """Return the outcome of the cluster as it is when every true time is drawn from its interval."""
    events = interval_events(cluster_trace(2, 3, seed=5))
    lower, upper = np.asarray(events["lower"]), np.asarray(events["upper"])
    draws = np.random.default_rng(1).integers(lower, upper, size=(WORLDS, len(lower)), endpoint=True)
    return outcome(events, pattern, strategy, draws)


@cache
def simulated(strategy: str) -> tuple[Outcome, ...]:
    """Return the outcome of several clusters by their own hidden times, with intervals put around these."""
    outcomes = []
    for seed in range(SEEDS):
        rng = np.random.default_rng(seed)
        trace = cluster_trace(2, 3, seed=seed)
        truth = milliseconds(trace.truth["true_time"]) // TICK_MS
        longer = rng.integers(0, LONGEST_TICKS, len(truth), endpoint=True)
        lower = truth - rng.integers(0, longer, endpoint=True)
        both = pa.concat_tables([trace.tasks, trace.metrics], promote_options="default")
        events = with_interval(both, lower * TICK_MS, (lower + longer) * TICK_MS)
        outcomes.append(outcome(events, ELSEWHERE, strategy, truth[np.newaxis]))
    return tuple(outcomes)


def assert_calibrated(result: Calibration, least_bins: int) -> None:
    assert len(result.bins) >= least_bins
    assert (result.deviation <= BOUND).all()
    lower = result.bins / BINS
    assert (result.share >= lower - BOUND * result.error).all()
    assert (result.share <= lower + 1 / BINS + BOUND * result.error).all()


PATTERNS = pytest.mark.parametrize(
    "pattern", [pytest.param(MAXED_OUT, id="maxed out"), pytest.param(MAP_STEPS, id="map steps")]
)


@PATTERNS
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_matches_happen_as_often_as_said(pattern: Pattern, strategy: str) -> None:
    assert_calibrated(calibration([drawn(pattern, strategy)]), least_bins=8)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_matches_happened_in_the_simulation_as_often_as_said(strategy: str) -> None:
    assert_calibrated(calibration(simulated(strategy)), least_bins=6)


@PATTERNS
@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("factor", [0.95, 1.05])
def test_confidences_that_are_a_little_off_are_noticed(
    pattern: Pattern, strategy: str, factor: float
) -> None:
    observed = drawn(pattern, strategy)
    wrong = calibration([replace(observed, confidence=np.minimum(observed.confidence * factor, 1.0))])
    assert wrong.deviation.max() > BOUND


@PATTERNS
def test_forgetting_the_events_in_between_is_noticed(pattern: Pattern) -> None:
    any_match, next_match = (drawn(pattern, strategy) for strategy in STRATEGIES)
    assert calibration([said_of_any(next_match, any_match)]).deviation.max() > BOUND


def test_forgetting_them_in_the_simulation_is_noticed() -> None:
    wrong = [
        said_of_any(next_match, any_match)
        for any_match, next_match in zip(*(simulated(strategy) for strategy in STRATEGIES), strict=True)
    ]
    assert calibration(wrong).deviation.max() > BOUND


BETWEEN = """
    PATTERN SEQ(MapFinish a, MapFinish b, MapFinish c)
    WHERE a.nodeId = c.nodeId AND b.nodeId != a.nodeId
    WITHIN 500 ms
"""
CLUSTERS = 20
EDGES = (0.0, 0.1, 0.2, 0.3, 0.5, 1.0)


def test_shared_clocks_happen_as_often_as_said() -> None:
    """By the simulation's hidden times; the page on clocks shows two bands."""
    said: dict[bool, list[Floats]] = {False: [], True: []}
    happened: dict[bool, list[npt.NDArray[np.bool_]]] = {False: [], True: []}
    for seed in range(CLUSTERS):
        trace = cluster_trace(2, 3, seed=seed)
        rows = trace.clock_offsets.to_pylist()
        bounds = {row["nodeId"]: (row["lower_ms"], row["upper_ms"]) for row in rows}
        rule = uc.clock_offset(bounds, unit="ms", key="nodeId", shared=True)
        events = uc.to_intervals(trace.tasks, time="time", uncertainty=rule, tick="1ms")
        truth = milliseconds(trace.truth["true_time"])
        for sources in said:
            matches = uc.match(events, BETWEEN, sources=sources)
            a, b, c = (truth[np.asarray(matches[name])] for name in "abc")
            said[sources].append(np.asarray(matches["confidence"]))
            happened[sources].append((a < b) & (b < c) & (c - a < 500))
    lines = [[f"{low:g} to {high:g}"] for low, high in pairwise(EDGES)]
    errors = {}
    for sources in said:
        confidence, came = np.concatenate(said[sources]), np.concatenate(happened[sources])
        assert came.sum() == 198
        assert confidence.sum() == pytest.approx(199.7, abs=0.1)
        errors[sources] = float(((confidence - came) ** 2).sum())
        place = np.searchsorted(EDGES[1:-1], confidence, side="right")
        for number, line in enumerate(lines):
            of_component = place == number
            line += [
                f"{of_component.sum():,}",
                f"{confidence[of_component].mean():.2f}",
                f"{came[of_component].mean():.2f}",
            ]
    assert errors[True] < 0.8 * errors[False]
    table = "".join(f"| {' | '.join(line)} |\n" for line in lines[2:4])
    assert table in (ROOT / "docs" / "clocks.md").read_text(encoding="utf-8")


def said_of_any(next_match: Outcome, any_match: Outcome) -> Outcome:
    """Return an outcome of skip till next with the confidences of skip till any."""
    said = dict(zip(any_match.signatures, any_match.confidence.tolist(), strict=True))
    return replace(next_match, confidence=np.array([said[match] for match in next_match.signatures]))
