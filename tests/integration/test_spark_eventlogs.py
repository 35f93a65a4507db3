"""Tasks of a Spark application by the driver's clock, with the slack that the executors leave."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.integration.chains import Answer, Interval, Signature, assert_matches, chain, dataset
from tests.integration.raw import rows
from uncertain_cep.traces import load_schema, read_traces

WINDOW = 30_000
APPLICATIONS = {"gpu_oom": 1815, "nds_q72": 0, "eks": 0}
"""How many matches each of the three traces has: only one of them has failures."""


def _intervals(task: dict[str, str]) -> tuple[Interval, Interval]:
    launch, finish, slack = int(task["launch_ms"]), int(task["finish_ms"]), int(task["slack_ms"])
    return (launch, launch + slack), (finish - slack, finish)


def _brute_force(tasks: list[dict[str, str]]) -> dict[Signature, Answer]:
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
                    first, second = failed["task_id"], following["task_id"]
                    expected[f"{first}:start", f"{first}:end", f"{second}:start", f"{second}:end"] = answer
    return expected


@pytest.mark.parametrize("application", APPLICATIONS)
def test_a_task_ran_after_another_of_its_stage_failed(shared_data: Path, application: str) -> None:
    file = shared_data / "spark_eventlogs" / f"tasks_{application}.csv.gz"
    trace: pa.Table = read_traces([file], load_schema(dataset("spark_eventlogs", "schema.toml")))
    tasks = rows(file)
    assert trace.num_rows == 2 * len(tasks)
    text = dataset("spark_eventlogs", "task_after_failure.query").read_text(encoding="utf-8")
    expected = _brute_force(tasks)
    assert_matches(uc.match(trace, text), "abcd", expected)
    assert len(expected) == APPLICATIONS[application]
