"""Tasks of a Spark application by the driver's clock, with the slack that the executors leave."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest

import uncertain_cep as uc
from tests.integration.chains import Answer, Interval, Signature, assert_matches, chain, dataset
from tests.integration.raw import rows
from uncertain_cep.traces import load_schema, read_traces

WINDOW = 30_000
APPLICATIONS = {
    "gpu_oom": ("gpu_oom_eventlog.zstd", 1815),
    "nds_q72": ("nds_q72_dataproc_2_2.zstd", 0),
    "eks": ("eks_spark-cc4d115f011443d787f03a71a476a745.jsonl.gz", 0),
}
"""The log of each of the three, and how many matches it has: only one of them has failures."""


def _intervals(task: dict[str, str]) -> tuple[Interval, Interval]:
    launch, finish, slack = int(task["launch_ms"]), int(task["finish_ms"]), int(task["slack_ms"])
    return (launch, launch + slack), (finish - slack, finish)


def _brute_force(tasks: list[dict[str, str]], app: str) -> dict[Signature, Answer]:
    together: dict[tuple[str, ...], list[dict[str, str]]] = defaultdict(list)
    for task in tasks:
        together[task["stage_id"], task["stage_attempt"], task["executor"]].append(task)
    expected: dict[Signature, Answer] = {}
    for group in together.values():
        for failed in group:
            if failed["failed"] != "1":
                continue
            for following in group:
                if following is failed:
                    continue
                intervals = [*_intervals(failed), *_intervals(following)]
                if intervals[2][1] <= intervals[1][0] or intervals[3][0] - intervals[0][1] >= WINDOW:
                    continue
                answer = chain(intervals, WINDOW)
                if answer is not None:
                    names = [f"{app}:task:{task['task_id']}" for task in (failed, following)]
                    ids = tuple(f"{name}:{end}" for name in names for end in ("start", "end"))
                    expected[ids] = answer
    return expected


@pytest.mark.parametrize("application", APPLICATIONS)
def test_a_task_ran_after_another_of_its_stage_failed(shared_data: Path, application: str) -> None:
    folder = shared_data / "spark_eventlogs"
    log, count = APPLICATIONS[application]
    trace: pa.Table = read_traces(
        [folder / "raw" / log], load_schema(dataset("spark_eventlogs", "schema.toml"))
    )
    tasks = rows(folder / f"tasks_{application}.csv.gz")
    assert pc.sum(pc.equal(trace.column("type"), "TaskEnd")).as_py() == len(tasks)
    app = trace.column("app")[0].as_py()
    text = dataset("spark_eventlogs", "task_after_failure.query").read_text(encoding="utf-8")
    expected = _brute_force(tasks, app)
    assert_matches(uc.match(trace, text), "abcd", expected)
    assert len(expected) == count
