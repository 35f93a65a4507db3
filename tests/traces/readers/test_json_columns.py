"""Formats of JSON read as columns: the events, or the faults, that reading record by record gives."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from hypothesis import event, example, given
from hypothesis import strategies as st

from tests.traces.readers.samples import SAMPLES
from uncertain_cep.errors import TraceError
from uncertain_cep.traces.readers import (
    hadoop_jhist,
    json_columns,
    otlp,
    otlp_columns,
    source,
    spark_eventlog,
    spark_tasks,
)
from uncertain_cep.traces.readers.json_columns import Paths, Tree
from uncertain_cep.traces.readers.registry import read_events

_HISTORY: Final = "org.apache.hadoop.mapreduce.jobhistory"
_SPARK: Final = tuple(SAMPLES["spark-eventlog"].splitlines())
_JHIST: Final = (
    *SAMPLES["hadoop-jhist"].splitlines()[3:],
    f'{{"type":"MAP_ATTEMPT_FAILED","event":{{"{_HISTORY}.TaskAttemptUnsuccessfulCompletion":{{"taskid":'
    '"task_5_0001_m_000001","taskType":"MAP","attemptId":"attempt_5_0001_m_000001_0","finishTime":1600,'
    '"hostname":{"string":"/r/n2"},"status":{"string":"KILLED"},"error":"\\u0041\\n"}}}',
    f'{{"type":"TASK_UPDATED","event":{{"{_HISTORY}.TaskUpdated":{{"taskid":"task_5_0001_m_000001",'
    '"finishTime":-1}}}',
    '{"type":"JOB_FINISHED","event":{"x":{"jobid":"job_5_0001","finishTime":1700,"totalCounters":{"a":[1,{}]}}}}',
)
_OTLP: Final = (
    '{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}},'
    '{"key":"args","value":{"arrayValue":{"values":[{"stringValue":"x"}]}}}]},"scopeSpans":[{"spans":['
    '{"traceId":"5b","spanId":"1","parentSpanId":"","name":"pay","kind":2,"startTimeUnixNano":"1000",'
    '"endTimeUnixNano":"2000","attributes":[{"key":"code","value":{"intValue":"500"}},{"key":"on",'
    '"value":{"boolValue":true}},{"key":"part","value":{"doubleValue":0.5}}],"events":[{"timeUnixNano":"1500",'
    '"name":"log"},{"timeUnixNano":1600}]},{"traceId":"5b","spanId":"2","parentSpanId":"1",'
    '"name":"é \\u00e9",'
    '"kind":"SPAN_KIND_SERVER","startTimeUnixNano":"1100","endTimeUnixNano":"0","attributes":[{"key":"code",'
    '"value":{"intValue":7}},{"key":"code","value":{"intValue":"8"}},{"key":"nothing","value":{}}]}]}]}]}',
    '{"resourceSpans":[{"scopeSpans":[{"scope":{"name":"s"},"spans":[{"traceId":"6","spanId":"3",'
    '"startTimeUnixNano":5,"endTimeUnixNano":"9","kind":9,"attributes":[{"key":"name","value":'
    '{"stringValue":"a\\"b"}},{"key":"x"}]}]},{"spans":[]}]},{"resource":{},"scopeSpans":[]}]}',
    '{"resourceMetrics":[{"a":1}]}',
    '{"resourceSpans":[]}',
)
_BEGINS: Final = {"hadoop-jhist": 'Avro-Json\n{"type":"record"}\n'}
_LINES: Final = {"spark-eventlog": _SPARK, "hadoop-jhist": _JHIST, "otlp": _OTLP}

_VALUE: Final = re.compile(r'(?<=:)(?:"(?:[^"\\]|\\.)*"|-?[0-9.]+|true|false|null)')
_MEMBER: Final = re.compile(r'"(?:[^"\\]|\\.)*":(?:"(?:[^"\\]|\\.)*"|-?[0-9.]+|true|false|null),')
_VALUES: Final = (
    *(
        "0",
        "-1",
        "-0",
        "1.5",
        "1e3",
        "01",
        "9223372036854775807",
        "9223372036854775808",
        "4611686018427387905",
    ),
    *('"x"', '""', '"12"', '"012"', r'"a\u00e9\n"', r'"\ud834"', r'"\u12g4"', '"\t"', "true", "null", "nul"),
    *("{}", "[]", "[1,]", '{"string":"y"}', '{"string":""}', '{"a":1}', '[{"a":[true,{}]}]', "x", ""),
)


def _changed(draw: st.DrawFn, line: str) -> str:
    """Return a line with something in it that is not usual."""
    change = draw(st.integers(0, 6))
    if change == 0 and (places := list(_VALUE.finditer(line))):
        place = draw(st.sampled_from(places))
        return line[: place.start()] + draw(st.sampled_from(_VALUES)) + line[place.end() :]
    if change == 1 and (places := list(_MEMBER.finditer(line))):
        place = draw(st.sampled_from(places))
        return line[: place.start()] + place[0] * draw(st.sampled_from([0, 2])) + line[place.end() :]
    if change == 2:
        at = draw(st.integers(0, len(line) - 1))
        return line[:at] + line[at + 1 :]
    if change == 3:
        at = draw(st.integers(0, len(line) - 1))
        return (
            line[:at] + draw(st.sampled_from([" ", "\t", "\n", "\r", "\\", '"', "é", "{", ","])) + line[at:]
        )
    if change == 4:
        return draw(
            st.sampled_from(["", " ", "null", "[]", line + line, line + " " + line, line[: len(line) // 2]])
        )
    if change == 5:
        return line.replace(":", " :  ").replace(",", " ,\t")
    return line.replace(draw(st.sampled_from(["null", "Task", "value", "taskid", "event"])), "X", 1)


@st.composite
def _files(draw: st.DrawFn) -> tuple[str, bytes]:
    name = draw(st.sampled_from(sorted(_LINES)))
    lines = draw(st.lists(st.sampled_from(_LINES[name]), min_size=1, max_size=8))
    if draw(st.booleans()):
        place = draw(st.integers(0, len(lines) - 1))
        lines[place] = _changed(draw, lines[place])
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = _BEGINS.get(name, "") + end.join(lines) + draw(st.sampled_from(["", end]))
    return name, text.encode() + draw(st.sampled_from([b"", b"", b"", b"\xff"]))


def _read(name: str, data: bytes, block: int, threads: int, *, compiled: bool) -> Any:
    """Return the rows of a file, or its faults, read as columns or record by record."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "_BLOCK", block)
        patch.setattr(json_columns, "compiled_for_reading", lambda: compiled)
        for module in (hadoop_jhist, otlp, spark_eventlog):
            patch.setattr(module, "reading_threads", lambda: threads)
        try:
            table = read_events(name, io.BytesIO(data), "a.inprogress" if len(data) % 2 else "a")
        except TraceError as error:
            return error.faults
        return table.to_pylist(), table.schema if block > len(data) else None


@given(_files(), st.sampled_from([1 << 21, 1 << 21, 700, 64]), st.sampled_from([1, 2]))
@example(("spark-eventlog", "\n".join(_SPARK).encode()), 1 << 21, 2)
@example(("otlp", b"\n".join(line.encode() for line in _OTLP)), 64, 2)
@example(("otlp", b'{"resourceSpans":\n[{"scopeSpans":[]}]}{"resourceSpans":null}'), 20, 1)
def test_columns_are_the_events_of_records(file: tuple[str, bytes], block: int, threads: int) -> None:
    name, data = file
    expected = _read(name, data, block, 1, compiled=False)
    event(
        f"{name}: {'faults' if isinstance(expected[0], tuple) or not isinstance(expected, tuple) else 'rows'}"
    )
    assert _read(name, data, block, threads, compiled=True) == expected


@pytest.mark.parametrize(
    ("paths", "columns", "lines"),
    [
        (spark_tasks._PATHS, spark_tasks._is_usual, _SPARK),
        (hadoop_jhist._PATHS, hadoop_jhist._columns, _JHIST),
        # A request without anything is refused or is none, which one by one tells.
        (otlp_columns.PATHS, lambda tree: otlp_columns.spans_of(tree, None, str), _OTLP[:-1]),
    ],
)
def test_usual_lines_are_read_as_columns(
    paths: Paths, columns: Callable[[Tree], Any], lines: Sequence[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_columns, "compiled_for_reading", lambda: True)
    for line in lines:
        tree = paths.read(line.encode() + b"\n")
        assert tree is not None
        assert columns(tree), line
