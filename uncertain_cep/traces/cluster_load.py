"""The load of a simulated cluster's nodes, and the metrics that a monitor reports of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from uncertain_cep.traces.cluster_tasks import SECOND, Attempts, Fetches

__all__ = ["CELL", "METRIC_WINDOW", "Metrics", "measure"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CELL: Final = 100
"""Milliseconds for which the load of a node is taken as constant; cell c is the time (c, c+1] * CELL."""
METRIC_WINDOW: Final = 15 * SECOND
METRICS: Final = ("Cpu", "LoadAvg", "Memory", "Network")
CORES: Final = 8
MEMORY_LEAK: Final = 4 * SECOND
"""How long before its end an attempt that is going to fail starts to fill the memory."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """One metric value per element; ``time`` is the end of its window, ``peak`` the hidden moment, in ms."""

    name: npt.NDArray[np.str_]
    node: Ints
    time: Ints
    peak: Ints
    value: Floats


class _Load:
    """The sum of demands on each node over time, kept as its changes from cell to cell."""

    def __init__(self, nodes: int, cells: int) -> None:
        self._changes = np.zeros((nodes, cells + 1))

    def add(self, node: Ints, start: Ints, end: Ints, demand: Floats | float) -> None:
        """Add a demand on a node from one time to another (ms), for each element."""
        last = self._changes.shape[1] - 1
        np.add.at(self._changes, (node, np.clip(start // CELL, 0, last)), demand)
        np.subtract.at(self._changes, (node, np.clip(end // CELL, 0, last)), demand)

    def per_cell(self) -> Floats:
        """Return the load, ``(nodes, cells)``."""
        return np.cumsum(self._changes[:, :-1], axis=1)


def _trailing_mean(series: Floats, cells: int) -> Floats:
    """Return the mean of the last `cells` cells (fewer at the start) at each cell, row by row."""
    total = np.cumsum(series, axis=1)
    mean = total.copy()
    mean[:, cells:] -= total[:, :-cells]
    return mean / np.minimum(np.arange(1, series.shape[1] + 1), cells)


def _saturate(demand: Floats) -> Floats:
    """Return demand as a share of what there is: nearly all of it below 80%, never quite 1."""
    return demand / (1 + demand**8) ** (1 / 8)


def _load_of_nodes(
    rng: np.random.Generator, maps: Attempts, reduces: Attempts, fetches: Fetches, nodes: int, cells: int
) -> dict[str, Floats]:
    def noise(scale: float) -> Floats:
        # The slow part is what a node does besides tasks; the fast part keeps two cells from tying.
        white = rng.standard_normal((nodes, cells))
        return scale * (4 * _trailing_mean(white, 20) + 0.2 * white)

    cores = _Load(nodes, cells)
    cores.add(maps.node, maps.start, maps.end, rng.uniform(0.7, 1.2, len(maps.node)))
    cores.add(reduces.node, reduces.start, reduces.merge, 0.2)
    cores.add(reduces.node, reduces.merge, reduces.reduce, 2.0)
    cores.add(reduces.node, reduces.reduce, reduces.end, 0.9)
    busy = cores.per_cell()

    memory = _Load(nodes, cells)
    memory.add(maps.node, maps.start, maps.end, 0.04)
    memory.add(reduces.node, reduces.start, reduces.end, 0.05)
    memory.add(reduces.node, reduces.merge, reduces.reduce, 0.05)
    leaking = maps.failed
    leak_start = np.maximum(maps.start, maps.end - MEMORY_LEAK)[leaking]
    memory.add(maps.node[leaking], leak_start, maps.end[leaking], 0.5)

    traffic = _Load(nodes, cells)
    receiver = reduces.node[fetches.attempt]
    rate = fetches.bytes / (CELL / SECOND)
    for side in (receiver, fetches.source):
        remote = receiver != fetches.source
        traffic.add(side[remote], fetches.end[remote] - CELL, fetches.end[remote], rate[remote])

    return {
        "Cpu": _saturate(np.maximum(0.01, 0.06 + busy / CORES + noise(0.02))),
        "LoadAvg": np.maximum(0.0, _trailing_mean(busy, 60 * SECOND // CELL) + noise(0.05)),
        "Memory": _saturate(np.maximum(0.01, 0.15 + memory.per_cell() + noise(0.005))),
        "Network": np.maximum(0.0, _trailing_mean(traffic.per_cell(), SECOND // CELL) + noise(2e4) + 1e5),
    }


def measure(
    rng: np.random.Generator, maps: Attempts, reduces: Attempts, fetches: Fetches, nodes: int, duration: int
) -> Metrics:
    """Return what the monitor reports: the maximum of each metric over each window of each node.

    A node's windows follow each other without a gap, from a phase of its own (whole seconds).
    """
    cells = duration // CELL
    of_window = METRIC_WINDOW // CELL
    load = _load_of_nodes(rng, maps, reduces, fetches, nodes, cells)
    phase = rng.integers(0, METRIC_WINDOW // SECOND, nodes) * SECOND
    windows = (duration - phase) // METRIC_WINDOW
    node = np.repeat(np.arange(nodes), windows)
    index = np.arange(len(node)) - np.repeat(np.cumsum(windows) - windows, windows)
    begin = phase[node] + index * METRIC_WINDOW
    window_cells = (begin // CELL)[:, np.newaxis] + np.arange(of_window)

    peaks, values = [], []
    for name in METRICS:
        of_metric = load[name][node[:, np.newaxis], window_cells]
        highest = of_metric.argmax(axis=1)
        values.append(of_metric[np.arange(len(node)), highest])
        peaks.append(begin + highest * CELL + rng.integers(1, CELL, len(node), endpoint=True))
    return Metrics(
        name=np.repeat(np.array(METRICS), len(node)),
        node=np.tile(node, len(METRICS)),
        time=np.tile(begin + METRIC_WINDOW, len(METRICS)),
        peak=np.concatenate(peaks),
        value=np.concatenate(values).round(4),
    )
