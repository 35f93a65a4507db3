"""The simulated cluster: what it logs is sound, and what happens in it has its causes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

from uncertain_cep.errors import OptionError
from uncertain_cep.traces.cluster import ClusterTrace, cluster_trace, write_cluster

TYPES = {
    "TaskStart", "MapSpill", "MapFinish", "TaskFailed", "ShuffleStart", "Fetch", "ShuffleEnd", "MergeStart",
    "MergeEnd", "ReduceFinish",
}  # fmt: skip
WINDOW = 15_000


@pytest.fixture(scope="module")
def cluster() -> ClusterTrace:
    return cluster_trace()


@pytest.fixture(scope="module")
def true_times(cluster: ClusterTrace) -> npt.NDArray[np.int64]:
    return _milliseconds(cluster.truth["true_time"])


def _milliseconds(column: pa.ChunkedArray) -> npt.NDArray[np.int64]:
    return np.asarray(column.cast(pa.int64()))


def _attempts(table: pa.Table, true_times: npt.NDArray[np.int64], kind: str) -> dict[tuple[str, int], int]:
    chosen = table.filter(pc.equal(table["type"], kind))
    names = zip(chosen["taskId"].to_pylist(), chosen["attempt"].to_pylist(), strict=True)
    return dict(zip(names, true_times[np.asarray(chosen["id"])].tolist(), strict=True))


def test_the_same_seed_gives_the_same_trace() -> None:
    assert cluster_trace(5, 3, seed=1) == cluster_trace(5, 3, seed=1)
    assert cluster_trace(5, 3, seed=1).tasks != cluster_trace(5, 3, seed=2).tasks


def test_an_hour_of_ten_nodes_has_the_stated_size(cluster: ClusterTrace) -> None:
    assert 100_000 < cluster.tasks.num_rows < 300_000
    assert set(cluster.tasks["type"].unique().to_pylist()) == TYPES
    assert 10 * 4 * 239 <= cluster.metrics.num_rows <= 10 * 4 * 240
    assert cluster.metrics["type"].value_counts().field("counts").unique().to_pylist() in ([2391], [2392])


@pytest.mark.parametrize(("minutes", "nodes"), [(1, 1), (2, 150), (30, 2)])
def test_any_size_works(minutes: int, nodes: int) -> None:
    trace = cluster_trace(minutes, nodes)
    assert trace.clock_offsets.num_rows == nodes
    assert trace.tasks.num_rows > 0
    assert trace.truth.num_rows == trace.tasks.num_rows + trace.metrics.num_rows
    assert set(trace.tasks["nodeId"].unique().to_pylist()) <= set(trace.clock_offsets["nodeId"].to_pylist())


def test_every_id_is_used_once_and_has_its_truth(cluster: ClusterTrace) -> None:
    ids = cluster.tasks["id"].to_pylist() + cluster.metrics["id"].to_pylist()
    assert ids == cluster.truth["id"].to_pylist() == list(range(len(ids)))
    assert "true_time" not in cluster.tasks.column_names + cluster.metrics.column_names


def test_the_log_is_in_the_order_of_its_stamps_and_not_of_the_truth(
    cluster: ClusterTrace, true_times: npt.NDArray[np.int64]
) -> None:
    assert (np.diff(_milliseconds(cluster.tasks["time"])) >= 0).all()
    assert (np.diff(true_times[: cluster.tasks.num_rows]) < 0).any()


def test_clock_bounds_contain_the_true_time_of_every_event(
    cluster: ClusterTrace, true_times: npt.NDArray[np.int64]
) -> None:
    hosts = cluster.clock_offsets["nodeId"].to_pylist()
    row = np.asarray(pc.index_in(cluster.tasks["nodeId"], pa.array(hosts)))
    lower = np.asarray(cluster.clock_offsets["lower_ms"])
    upper = np.asarray(cluster.clock_offsets["upper_ms"])
    stamps = _milliseconds(cluster.tasks["time"])
    truth = true_times[: len(stamps)]
    assert (stamps + lower[row] <= truth).all()
    assert (truth <= stamps + upper[row]).all()
    assert ((upper - lower >= 100) & (upper - lower <= 800)).all()
    offset = truth - stamps
    assert all(len(np.unique(offset[row == number])) == 1 for number in range(len(hosts)))
    assert (np.abs(offset) <= 2000).all()
    assert (np.abs(offset) > 1000).any()


def test_the_hidden_peak_lies_in_its_window_and_windows_do_not_overlap(
    cluster: ClusterTrace, true_times: npt.NDArray[np.int64]
) -> None:
    metrics = cluster.metrics
    end = _milliseconds(metrics["time"])
    peak = true_times[cluster.tasks.num_rows :]
    assert (end - WINDOW < peak).all()
    assert (peak <= end).all()
    frame = pa.table({"type": metrics["type"], "nodeId": metrics["nodeId"], "end": end})
    grouped = frame.group_by(["type", "nodeId"], use_threads=False).aggregate([("end", "list")])
    for ends in grouped["end_list"].to_pylist():
        assert set(np.diff(ends).tolist()) == {WINDOW}
    assert len(np.unique((end - peak) // 1000)) == WINDOW // 1000


def test_tasks_start_and_end_once_and_in_order(
    cluster: ClusterTrace, true_times: npt.NDArray[np.int64]
) -> None:
    started = _attempts(cluster.tasks, true_times, "TaskStart")
    assert len(started) == pc.sum(pc.equal(cluster.tasks["type"], "TaskStart")).as_py()
    for kind in ("MapFinish", "TaskFailed", "ReduceFinish"):
        ended = _attempts(cluster.tasks, true_times, kind)
        assert ended
        assert all(started[attempt] < time for attempt, time in ended.items())


def test_a_failed_attempt_is_tried_again_on_another_node(
    cluster: ClusterTrace, true_times: npt.NDArray[np.int64]
) -> None:
    tasks = cluster.tasks
    starts = tasks.filter(pc.equal(tasks["type"], "TaskStart"))
    names = zip(starts["taskId"].to_pylist(), starts["attempt"].to_pylist(), strict=True)
    node = dict(zip(names, starts["nodeId"].to_pylist(), strict=True))
    started = _attempts(tasks, true_times, "TaskStart")
    failed = _attempts(tasks, true_times, "TaskFailed")
    retried = [(task, number) for task, number in failed if (task, number + 1) in started]
    assert len(retried) >= 0.95 * len(failed) > 50
    for task, number in retried:
        assert failed[task, number] < started[task, number + 1]
        assert node[task, number] != node[task, number + 1]


def test_a_shuffle_ends_after_the_last_map_of_its_job(
    cluster: ClusterTrace, true_times: npt.NDArray[np.int64]
) -> None:
    last_map: dict[str, int] = {}
    for (task, _), time in _attempts(cluster.tasks, true_times, "MapFinish").items():
        job = task[: len("task_0000")]
        last_map[job] = max(last_map.get(job, time), time)
    shuffled = _attempts(cluster.tasks, true_times, "ShuffleEnd")
    assert all(last_map[task[: len("task_0000")]] < time for (task, _), time in shuffled.items())


def test_no_node_runs_more_maps_than_it_has_slots(
    cluster: ClusterTrace, true_times: npt.NDArray[np.int64]
) -> None:
    tasks = cluster.tasks
    is_map = pc.match_substring(tasks["taskId"], "_m_")
    change = np.zeros(tasks.num_rows, np.int64)
    change[np.asarray(pc.and_(is_map, pc.equal(tasks["type"], "TaskStart")))] = 1
    change[np.asarray(pc.is_in(tasks["type"], pa.array(["MapFinish", "TaskFailed"])))] = -1
    for node in cluster.clock_offsets["nodeId"].to_pylist():
        here = np.flatnonzero(np.asarray(pc.equal(tasks["nodeId"], node)))
        order = here[np.lexsort((change[here], true_times[here]))]
        running = np.cumsum(change[order])
        assert running.max() == 8
        assert running.min() >= 0


def test_load_follows_from_what_runs(cluster: ClusterTrace, true_times: npt.NDArray[np.int64]) -> None:
    """A node is busy when maps start on it, and its memory is full when an attempt fails."""
    tasks, metrics = cluster.tasks, cluster.metrics

    def metric_at(name: str, kind: str) -> npt.NDArray[np.float64]:
        values = []
        for node in cluster.clock_offsets["nodeId"].to_pylist():
            metric = metrics.filter(
                pc.and_(pc.equal(metrics["type"], name), pc.equal(metrics["nodeId"], node))
            )
            chosen = tasks.filter(pc.and_(pc.equal(tasks["type"], kind), pc.equal(tasks["nodeId"], node)))
            window = np.searchsorted(_milliseconds(metric["time"]), true_times[np.asarray(chosen["id"])])
            values.append(np.asarray(metric["value"])[window[window < metric.num_rows]])
        return np.concatenate(values)

    everywhere = np.asarray(metrics.filter(pc.equal(metrics["type"], "Cpu"))["value"])
    assert np.median(metric_at("Cpu", "MapSpill")) > 0.9 > np.quantile(everywhere, 0.4)
    memory = np.asarray(metrics.filter(pc.equal(metrics["type"], "Memory"))["value"])
    assert np.median(metric_at("Memory", "TaskFailed")) > 0.85 > np.quantile(memory, 0.9)
    for name in ("Cpu", "Memory"):
        values = np.asarray(metrics.filter(pc.equal(metrics["type"], name))["value"])
        assert ((values > 0) & (values < 1)).all()


@pytest.mark.parametrize("options", [{"minutes": 0}, {"nodes": 0}, {"seed": -1}])
def test_an_option_out_of_range_is_refused(options: dict[str, int]) -> None:
    with pytest.raises(OptionError, match=f"{next(iter(options))} must be"):
        cluster_trace(**options)


def test_a_trace_is_written_whole_with_the_truth_aside(tmp_path: Path) -> None:
    trace = cluster_trace(1, 2)
    folder = tmp_path / "new" / "cluster"
    write_cluster(folder, trace)
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) == [
        "_truth", "_truth/truth.parquet", "clock_offsets.csv", "metrics.parquet", "tasks.parquet",
    ]  # fmt: skip
    assert [path.name for path in folder.parent.iterdir()] == ["cluster"]
    assert pq.read_table(folder / "tasks.parquet") == trace.tasks
    assert pq.read_table(folder / "metrics.parquet") == trace.metrics
    assert pq.read_table(folder / "_truth" / "truth.parquet") == trace.truth
    assert pa_csv.read_csv(folder / "clock_offsets.csv") == trace.clock_offsets


def test_only_a_former_trace_is_replaced_and_only_when_asked(tmp_path: Path) -> None:
    first, second = cluster_trace(1, 2, seed=1), cluster_trace(1, 2, seed=2)
    write_cluster(tmp_path / "cluster", first)
    with pytest.raises(OptionError, match="holds a trace already"):
        write_cluster(tmp_path / "cluster", second)
    assert pq.read_table(tmp_path / "cluster" / "tasks.parquet") == first.tasks
    write_cluster(tmp_path / "cluster", second, overwrite=True)
    assert pq.read_table(tmp_path / "cluster" / "tasks.parquet") == second.tasks

    (tmp_path / "cluster" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(OptionError, match=r"holds other files, such as notes\.txt"):
        write_cluster(tmp_path / "cluster", first, overwrite=True)
    with pytest.raises(OptionError, match="is a file"):
        write_cluster(tmp_path / "cluster" / "notes.txt", first)
    assert [path.name for path in tmp_path.iterdir()] == ["cluster"]
