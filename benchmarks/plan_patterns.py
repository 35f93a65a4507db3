"""Patterns of three to seven components whose types are of very different frequency."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import pyarrow as pa

from benchmarks.figures import Options
from uncertain_cep.traces import load_schema, read_traces
from uncertain_cep.traces.cluster import cluster_trace, write_cluster

__all__ = ["CLUSTER", "KEYED", "REAL", "cluster_events", "real_events"]

_DATASETS: Final = Path(__file__).parents[1] / "datasets"
_SHARED: Final = Path(__file__).parents[2] / "shared" / "data"
_MINUTES: Final = 60
_NODES: Final = 10

_NEAR_FAILURE: Final = (
    "a.taskId = e.taskId AND b.nodeId = e.nodeId AND c.nodeId = e.nodeId AND d.nodeId = e.nodeId"
)

CLUSTER: Final = {
    "3: fetches before a failure": """
        PATTERN SEQ(Fetch a, TaskStart b, TaskFailed c)
        WHERE b.taskId = c.taskId AND a.nodeId = c.nodeId WITHIN 20 seconds
    """,
    "3: spills before a failure": """
        PATTERN SEQ(TaskStart a, MapSpill b, TaskFailed c)
        WHERE a.taskId = c.taskId AND b.nodeId = c.nodeId WITHIN 60 seconds
    """,
    "4: full memory before a failure": """
        PATTERN SEQ(TaskStart a, Fetch b, Memory c, TaskFailed d)
        WHERE a.taskId = d.taskId AND b.nodeId = d.nodeId AND c.nodeId = d.nodeId AND c.value > 80%
        WITHIN 15 seconds
    """,
    "4: a map beside a retry": """
        PATTERN SEQ(MapSpill a, MapFinish b, TaskFailed c, TaskStart d)
        WHERE b.taskId = a.taskId AND b.nodeId = c.nodeId
              AND d.taskId = c.taskId AND d.attempt = c.attempt + 1
        WITHIN 30 seconds
    """,
    "5: load before a failure": f"""
        PATTERN SEQ(TaskStart a, MapSpill b, Cpu c, Memory d, TaskFailed e)
        WHERE {_NEAR_FAILURE} AND d.value > 70% WITHIN 15 seconds
    """,
    "6: load before a retry": f"""
        PATTERN SEQ(TaskStart a, MapSpill b, Cpu c, Memory d, TaskFailed e, TaskStart f)
        WHERE {_NEAR_FAILURE} AND f.taskId = e.taskId AND f.attempt = e.attempt + 1 WITHIN 12 seconds
    """,
    "7: load around a retry": f"""
        PATTERN SEQ(TaskStart a, MapSpill b, Cpu c, Memory d, TaskFailed e, TaskStart f, MapSpill g)
        WHERE {_NEAR_FAILURE} AND f.taskId = e.taskId AND f.attempt = e.attempt + 1 AND g.nodeId = f.nodeId
        WITHIN 12 seconds
    """,
}

KEYED: Final = {
    "4: a busy node goes idle": """
        PATTERN SEQ(TaskStart a, Cpu b, MapFinish c, Cpu d)
        WHERE [nodeId] AND c.taskId = a.taskId AND b.value > 95% AND d.value <= 70% WITHIN 30 seconds
    """,
    "4: a merge wakes a node": """
        PATTERN SEQ(Cpu a, MergeStart b, Cpu c, MergeEnd d)
        WHERE [nodeId] AND d.taskId = b.taskId AND a.value <= 50% AND c.value > 80% WITHIN 45 seconds
    """,
}
"""Patterns with a key of all components and with conditions on single events."""


@dataclass(frozen=True, slots=True)
class _Real:
    files: tuple[str, ...]
    schema: str
    query: str


REAL: Final = {
    "yahoo, 3: another map before a retry": _Real(
        ("yahoo_hadoop_2009_skew",),
        "yahoo_hadoop/schema.toml",
        """
        PATTERN SEQ(MapFinish a, AttemptFailed b, AttemptStart c)
        WHERE a.host = b.host AND c.task_id = b.task_id AND c.attempt = b.attempt + 1 WITHIN 60 seconds
        """,
    ),
    "yahoo, 4: a shuffle beside a retry": _Real(
        ("yahoo_hadoop_2009_skew",),
        "yahoo_hadoop/schema.toml",
        """
        PATTERN SEQ(MapFinish a, ShuffleEnd b, AttemptFailed c, AttemptStart d)
        WHERE a.host = c.host AND b.job_id = c.job_id AND d.task_id = c.task_id AND d.host != c.host
        WITHIN 60 seconds
        """,
    ),
    "spark, 4: a task after a failed one": _Real(
        ("spark_eventlogs/raw/gpu_oom_eventlog.zstd",),
        "spark_eventlogs/schema.toml",
        """
        PATTERN SEQ(TaskStart a, TaskEnd b, TaskStart c, TaskEnd d)
        WHERE b.task_id = a.task_id AND d.task_id = c.task_id AND c.executor = b.executor AND b.failed = TRUE
        WITHIN 30 seconds
        """,
    ),
}


def cluster_events(options: Options) -> pa.Table:
    """Return the events of a simulated cluster with uncertain times."""
    minutes = max(5, int(_MINUTES * options.scale))
    with TemporaryDirectory() as folder:
        write_cluster(Path(folder) / "trace", cluster_trace(minutes, _NODES, 2010))
        schema = load_schema(_DATASETS / "cluster" / "schema.toml")
        events: pa.Table = read_traces([Path(folder) / "trace"], schema)
    return events


def real_events() -> Iterator[tuple[str, pa.Table, str]]:
    """Yield the name of each pattern over real traces, its events and its text; none without the traces."""
    if not _SHARED.is_dir():
        return
    for name, real in REAL.items():
        files = [_SHARED / file for file in real.files]
        yield name, read_traces(files, load_schema(_DATASETS / real.schema)), real.query
