"""Spans of a benchmark application on Kubernetes against the CPU metrics of the same pods."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import uncertain_cep as uc
from tests.integration.chains import Answer, Signature, assert_matches, dataset
from tests.integration.raw import rows
from uncertain_cep.traces import load_schema, read_traces

MINUTES = ("03_54", "04_36", "05_20", "07_02", "07_27")
"""Minutes that do not adjoin: the files of neighbouring ones both have the spans across."""


@pytest.fixture(scope="module")
def files(shared_data: Path) -> tuple[list[Path], list[Path]]:
    day = shared_data / "nezha_onlineboutique_2022" / "2022-08-22"
    spans = [day / "trace" / f"{minute}_trace.csv.gz" for minute in MINUTES]
    return spans, sorted((day / "metric").glob("*_metric.csv.gz"))


@pytest.fixture(scope="module")
def trace(files: tuple[list[Path], list[Path]]) -> pa.Table:
    spans, metrics = files
    return read_traces([*spans, *metrics], load_schema(dataset("nezha", "schema.toml")))


def test_clocks_of_pods_from_their_spans(files: tuple[list[Path], list[Path]]) -> None:
    """One minute bounds every clock by milliseconds; half an hour later that of adservice has drifted."""
    schema = load_schema(dataset("nezha", "clocks.toml"))
    morning = next(file for file in files[0] if "07_02" in file.name)
    constraints = schema.constraints
    events = read_traces([morning, morning.with_name("07_26_trace.csv.gz")], schema)
    front = next(pod for pod in events.column("PodName").unique().to_pylist() if pod.startswith("frontend"))

    def inferred(table: pa.Table, **options: Any) -> list[dict[str, Any]]:
        bounds = uc.infer_offsets(
            table, constraints, prior="10s", reference=front, source="PodName", **options
        )
        rows: list[dict[str, Any]] = bounds.to_pandas().to_dict("records")
        return rows

    def microseconds(row: dict[str, Any]) -> tuple[int, int]:
        return row["offset_lo"].value // 1000, row["offset_hi"].value // 1000

    early = inferred(read_traces([morning], schema))
    widths = {row["PodName"]: (row["offset_hi"] - row["offset_lo"]).value for row in early}
    assert len(widths) == 10
    assert max(widths.values()) < 8_000_000
    with pytest.raises(uc.TraceError, match="contradict each other, or the prior, by 47099ns"):
        inferred(events)
    ads = [row for row in inferred(events, epochs=True) if row["PodName"].startswith("adservice")]
    assert [microseconds(row) for row in ads] == [(479, 557), (605, 988)]
    steady = [row for row in inferred(events, epochs=True) if not row["PodName"].startswith("adservice")]
    assert len(steady) == 9


def _around(nanoseconds: str) -> range:
    millisecond = int(nanoseconds) // 1_000_000
    return range(millisecond - 1, millisecond + 2)


def test_a_slow_span_ran_in_a_busy_minute(files: tuple[list[Path], list[Path]], trace: pa.Table) -> None:
    """An average is about all of its minute: begins and ends are counted that have a tick in it."""
    span_files, metric_files = files
    spans = [span for file in span_files for span in rows(file)]
    metrics = [metric for file in metric_files for metric in rows(file)]
    readable = [metric for metric in metrics if metric["TimeStamp"].startswith("16")]
    assert len(metrics) - len(readable) == 1209
    assert trace.num_rows == len(spans) + len(readable)

    busy: dict[str, list[int]] = defaultdict(list)
    for metric in readable:
        if float(metric["CpuUsageRate(%)"]) > 80:
            busy[metric["PodName"]].append(int(metric["TimeStamp"]))
    expected: dict[Signature, Answer] = {}
    for span in spans:
        if int(span["Duration"]) < 500_000:
            continue
        begins, ends = _around(span["StartTimeUnixNano"]), _around(span["EndTimeUnixNano"])
        pairs = [(begin, end) for begin, end in product(begins, ends) if begin <= end]
        for stamp in busy[span["PodName"]]:
            first, last = stamp * 1000 - 59_999, stamp * 1000
            shared = [(begin, end) for begin, end in pairs if begin <= last and first <= end]
            if shared:
                low, high = min(min(shared)[0], first), max(last, *(end for _, end in shared))
                chance = Fraction(len(shared), len(pairs))
                expected[f"{span['PodName']}:{stamp}", span["SpanID"]] = Answer(chance, low, high)
    text = dataset("nezha", "slow_span_in_busy_minute.query").read_text(encoding="utf-8")
    assert_matches(uc.match(trace, text), "ms", expected)
    assert len(expected) == 275
    assert {answer.confidence for answer in expected.values()} == {1}
