"""Job histories of Hadoop 0.20: records split by columns are those read one by one."""

from __future__ import annotations

import io
import re
from typing import Any, Final

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.sampling import sampled_from
from uncertain_cep.errors import TraceError
from uncertain_cep.traces.readers import hadoop_history, read_events
from uncertain_cep.traces.readers.source import Source

KINDS: Final = ("Job", "Task", "MapAttempt", "ReduceAttempt", "Meta", "Other")
KEYS: Final = (
    "JOBID", "TASKID", "TASK_ATTEMPT_ID", "START_TIME", "LAUNCH_TIME", "FINISH_TIME", "TRACKER_NAME",
    "HOSTNAME", "JOBNAME", "JOB_STATUS", "TASK_STATUS", "TASK_TYPE", "ERROR",
)  # fmt: skip
VALUES: Final = (
    "", "7", "1240335962848", "-1", "0", "x", "/r/n1\\.x", "tracker_n1\\.x:localhost/127\\.0\\.0\\.1:54153",
    'a \\"b\\" c', "\\\\", '\\\\\\"', "java\\.io \n\tat x\\.\n \n at y\\.", "task_5_0001_m_000000",
    "attempt_5_0001_m_000000_0", "job_5_0001", "ü", "\1", str(2**62),
)  # fmt: skip
IDENTIFIERS: Final = 'JOBID="job_1_1" TASKID="task_1_1_m_1" TASK_ATTEMPT_ID="attempt_1_1_m_1_0"'


@st.composite
def records(draw: st.DrawFn) -> str:
    kind = draw(sampled_from(KINDS))
    pairs = draw(st.lists(st.tuples(sampled_from(KEYS), sampled_from(VALUES)), max_size=4))
    attributes = " ".join(f'{key}="{value}"' for key, value in pairs)
    identifiers = f"{IDENTIFIERS} " if draw(st.integers(0, 9)) else ""
    end = draw(sampled_from((" .\n", " .\n", " .\r\n", " .\n\n", ".\n", "")))
    return f"{kind} {identifiers}{attributes}{end if attributes or identifiers else ' .' + end}"


def said(text: str) -> Any:
    try:
        return read_events("hadoop-history", io.BytesIO(text.encode()), "file", frozenset())
    except TraceError as error:
        return str(error)


@given(st.lists(records(), min_size=1, max_size=6))
def test_records_split_by_columns(found: list[str]) -> None:
    text = 'Meta VERSION="1" .\n' + "".join(found)
    by_columns = said(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hadoop_history, "_split", lambda _: None)
        one_by_one = said(text)
    if isinstance(one_by_one, str):
        assert by_columns == one_by_one
    else:
        assert by_columns.equals(one_by_one), text


def test_blocks_are_whole_records(monkeypatch: pytest.MonkeyPatch) -> None:
    record = f'MapAttempt {IDENTIFIERS} START_TIME="7" ERROR="x\\.\n\tat y\\.\n" .\n'
    text = ('Meta VERSION="1" .\n' + record * 500).encode()
    whole = pa.Table.from_batches(hadoop_history.events(Source(io.BytesIO(text), "file", frozenset())))
    assert whole.num_rows == 500
    for size in (1, 64, 1000):
        monkeypatch.setattr("uncertain_cep.traces.readers.source._BLOCK", size)
        source = Source(io.BytesIO(text), "file", frozenset())
        batches = list(hadoop_history.events(source))
        assert len(batches) > 2
        assert pa.Table.from_batches(batches).equals(whole)
    with pytest.raises(TraceError) as caught:
        list(hadoop_history.events(Source(io.BytesIO(text + b"Foo"), "file", frozenset())))
    assert re.search(r"row 1,?502\b", str(caught.value))
