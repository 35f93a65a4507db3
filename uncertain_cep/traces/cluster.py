"""A simulated hour of a Hadoop-like cluster, with uncertain times whose truth is kept aside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from uncertain_cep.errors import OptionError
from uncertain_cep.files.atomic_output import written_aside
from uncertain_cep.traces.cluster_simulation import (
    SECOND,
    Attempts,
    Fetches,
    Metrics,
    measure,
    schedule_maps,
    schedule_reduces,
    submit_jobs,
)

__all__ = ["ClusterTrace", "cluster_trace", "write_cluster"]

Ints = npt.NDArray[np.int64]

START: Final = 1_767_600_000_000
"""The first ms of the simulation: 2026-01-05 08:00 UTC."""
LARGEST_OFFSET: Final = 2 * SECOND
BOUND_SLACK: Final = (50, 400)
"""How far a node's offset is known to lie from either of its bounds, ms."""
TIME: Final = pa.timestamp("ms", "UTC")
_FILES: Final = ("tasks.parquet", "metrics.parquet", "clock_offsets.csv", "_truth")


@dataclass(frozen=True, slots=True)
class ClusterTrace:
    """A simulated trace, as a monitoring system would have it, and what really happened."""

    tasks: pa.Table
    """The log of all nodes, one event a row in the order of its stamps: ``type``, ``id`` int64, ``time`` (ms,
    by the clock of the node that logged it), ``nodeId``, ``jobId``, ``taskId``, ``attempt`` int64, and for
    copies of map output ``bytes`` int64 and ``sourceNode``.
    """
    metrics: pa.Table
    """``type`` (Cpu, LoadAvg, Memory, Network), ``id`` int64, ``time`` (of the reference clock), ``nodeId``,
    ``value`` float64. A value stamped T is the maximum over (T - 15 s, T]. Cpu and Memory are shares of what
    the node has, LoadAvg tasks, Network bytes a second.
    """
    clock_offsets: pa.Table
    """``nodeId``, ``lower_ms``, ``upper_ms``: reference time minus the node's time is constant and within."""
    truth: pa.Table
    """``id``, ``true_time`` (of the reference clock) of every event of both. No part of the trace."""


@dataclass(frozen=True, slots=True)
class _Logged:
    """Events of one type as the log has them; ``row`` says which attempt of `attempts` each belongs to."""

    type: str
    attempts: Attempts
    is_map: bool
    row: Ints
    time: Ints
    bytes: Ints | None = None
    source: Ints | None = None


def _logged(rng: np.random.Generator, maps: Attempts, reduces: Attempts, fetches: Fetches) -> list[_Logged]:
    every_map = np.arange(len(maps.node))
    succeeded = every_map[~maps.failed]
    every_reduce = np.arange(len(reduces.node))
    spilling = np.repeat(succeeded, rng.integers(1, 4, len(succeeded), endpoint=True))
    lasted = (maps.end - maps.start)[spilling]
    spilled = maps.start[spilling] + (rng.uniform(0.1, 0.95, len(spilling)) * lasted).astype(np.int64)
    return [
        _Logged("TaskStart", maps, True, every_map, maps.start),
        _Logged("MapSpill", maps, True, spilling, spilled),
        _Logged("MapFinish", maps, True, succeeded, maps.end[succeeded]),
        _Logged("TaskFailed", maps, True, every_map[maps.failed], maps.end[maps.failed]),
        _Logged("TaskStart", reduces, False, every_reduce, reduces.start),
        _Logged("ShuffleStart", reduces, False, every_reduce, reduces.start + 10),
        _Logged("Fetch", reduces, False, fetches.attempt, fetches.end, fetches.bytes, fetches.source),
        _Logged("ShuffleEnd", reduces, False, every_reduce, reduces.merge),
        _Logged("MergeStart", reduces, False, every_reduce, reduces.merge + 5),
        _Logged("MergeEnd", reduces, False, every_reduce, reduces.reduce),
        _Logged("ReduceFinish", reduces, False, every_reduce, reduces.end),
    ]


def _names(names: Sequence[str], index: Ints, valid: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    mask = None if valid is None else ~valid
    return pa.DictionaryArray.from_arrays(
        pa.array(index, mask=mask), pa.array(names, pa.string())
    ).dictionary_decode()


def _task_names(blocks: Sequence[_Logged]) -> pa.Array:
    parts = []
    for block in blocks:
        kind = "m" if block.is_map else "r"
        pairs = zip(block.attempts.job.tolist(), block.attempts.task.tolist(), strict=True)
        parts.append(_names([f"task_{job:04d}_{kind}_{task:06d}" for job, task in pairs], block.row))
    return pa.concat_arrays(parts)


def _times(milliseconds: Ints) -> pa.Array:
    return pa.array(START + milliseconds).cast(TIME)


def _task_log(
    blocks: Sequence[_Logged], node_names: Sequence[str], offset: Ints, duration: int
) -> tuple[pa.Table, Ints]:
    """Return the log in the order of its stamps, and the true time of each event (ms)."""
    true_time = np.concatenate([block.time for block in blocks])
    node = np.concatenate([block.attempts.node[block.row] for block in blocks])
    job = np.concatenate([block.attempts.job[block.row] for block in blocks])
    number = np.concatenate([block.attempts.number[block.row] for block in blocks])
    lengths = [len(block.row) for block in blocks]
    types = sorted({block.type for block in blocks})
    type_index = np.repeat([types.index(block.type) for block in blocks], lengths)
    is_fetch = np.repeat([block.bytes is not None for block in blocks], lengths)
    size = np.zeros(len(node), np.int64)
    source = np.zeros(len(node), np.int64)
    size[is_fetch] = np.concatenate([block.bytes for block in blocks if block.bytes is not None])
    source[is_fetch] = np.concatenate([block.source for block in blocks if block.source is not None])

    stamp = true_time - offset[node]
    in_time = np.flatnonzero(true_time < duration)
    order = in_time[np.argsort(stamp[in_time], kind="stable")]
    table = pa.table(
        {
            "type": _names(types, type_index[order]),
            "id": np.arange(len(order)),
            "time": _times(stamp[order]),
            "nodeId": _names(node_names, node[order]),
            "jobId": _names([f"job_{number:04d}" for number in range(int(job.max()) + 1)], job[order]),
            "taskId": _task_names(blocks).take(pa.array(order)),
            "attempt": number[order],
            "bytes": pa.array(size[order], mask=~is_fetch[order]),
            "sourceNode": _names(node_names, source[order], is_fetch[order]),
        }
    )
    return table, true_time[order]


def _metric_log(metrics: Metrics, order: Ints, node_names: list[str], first_id: int) -> pa.Table:
    """Return the metrics as events, in an order, with ids from one on."""
    names = np.unique(metrics.name)
    return pa.table(
        {
            "type": _names(names.tolist(), np.searchsorted(names, metrics.name[order])),
            "id": first_id + np.arange(len(order)),
            "time": _times(metrics.time[order]),
            "nodeId": _names(node_names, metrics.node[order]),
            "value": metrics.value[order],
        }
    )


def cluster_trace(minutes: int = 60, nodes: int = 10, seed: int = 2010) -> ClusterTrace:
    """Simulate a cluster that runs MapReduce jobs while it is monitored, after the paper's case study.

    Jobs arrive at random; their map tasks take the nodes' map slots, first come, first served; some
    attempts fail, after filling their node's memory, and are tried again on another node. A reduce task
    starts when some maps of its job have finished, copies the output of every map, merges and reduces.
    The load of a node follows from what runs on it. Each node logs by its own clock, up to 2 s off; the
    offsets are known only within bounds. Metrics tell the peak of 15 seconds, not when it was.

    Parameters
    ----------
    minutes : int
        Length of the trace, 1 or more. Events that happened later are not in it.
    nodes : int
        Number of nodes, 1 or more; the number of events grows in proportion (about 230,000 for an hour
        of ten nodes).
    seed : int
        The same seed gives the same trace.

    Returns
    -------
    ClusterTrace

    Raises
    ------
    OptionError
        If a parameter is out of range.

    Notes
    -----
    Source of the setting: Zhang, Diao, Immerman, PVLDB 3(1), 2010, section 5.2.
    """
    for name, value, smallest in (("minutes", minutes, 1), ("nodes", nodes, 1), ("seed", seed, 0)):
        if value < smallest:
            raise OptionError(f"{name} must be {smallest} or more, not {value}")
    duration = minutes * 60 * SECOND
    rng = np.random.default_rng(seed)
    jobs = submit_jobs(rng, duration, nodes)
    maps = schedule_maps(rng, jobs, nodes)
    reduces, fetches = schedule_reduces(rng, jobs, maps, nodes)
    metrics = measure(rng, maps, reduces, fetches, nodes, duration)

    offset = rng.integers(-LARGEST_OFFSET, LARGEST_OFFSET, nodes, endpoint=True)
    node_names = [f"node{number:0{max(2, len(str(nodes)))}d}" for number in range(1, nodes + 1)]
    tasks, task_times = _task_log(_logged(rng, maps, reduces, fetches), node_names, offset, duration)
    order = np.lexsort((metrics.node, metrics.name, metrics.time))
    return ClusterTrace(
        tasks=tasks,
        metrics=_metric_log(metrics, order, node_names, len(tasks)),
        clock_offsets=pa.table(
            {
                "nodeId": pa.array(node_names, pa.string()),
                "lower_ms": offset - rng.integers(*BOUND_SLACK, nodes, endpoint=True),
                "upper_ms": offset + rng.integers(*BOUND_SLACK, nodes, endpoint=True),
            }
        ),
        truth=pa.table(
            {
                "id": np.arange(len(tasks) + len(order)),
                "true_time": _times(np.concatenate([task_times, metrics.peak[order]])),
            }
        ),
    )


def write_cluster(folder: str | Path, trace: ClusterTrace, *, overwrite: bool = False) -> None:
    """Write a trace as ``tasks.parquet``, ``metrics.parquet`` and ``clock_offsets.csv``, all or nothing.

    The truth goes to ``_truth/truth.parquet``, which reading the folder as a trace passes over. With
    ``overwrite`` a trace written before is replaced; a folder that holds anything else never is
    (OptionError).
    """

    def check(target: Path) -> bool:
        if target.exists():
            if not target.is_dir():
                raise OptionError(f"{target} is a file: name a folder")
            present = {entry.name for entry in target.iterdir()}
            if other := present - set(_FILES):
                raise OptionError(
                    f"{target} holds other files, such as {min(other)}: name a new or empty folder"
                )
            if present and not overwrite:
                raise OptionError(
                    f"{target} holds a trace already: name a new folder, or ask to overwrite it"
                )
        return overwrite

    with written_aside(Path(folder), check) as fresh:
        (fresh / "_truth").mkdir(parents=True)
        pq.write_table(trace.tasks, fresh / "tasks.parquet")
        pq.write_table(trace.metrics, fresh / "metrics.parquet")
        pa_csv.write_csv(trace.clock_offsets, fresh / "clock_offsets.csv")
        pq.write_table(trace.truth, fresh / "_truth" / "truth.parquet")
