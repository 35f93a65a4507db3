"""The state of a stream between batches, in Spark's state store: one key for each part of the state.

Spark starts a Python process for each query that begins, which only declares the variables of the state. So
what only batches need is imported when it is used, and packed until then.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pyspark import cloudpickle
from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

if TYPE_CHECKING:
    import pandas as pd

    from uncertain_cep.streaming.held_slices import Report, StateParts

__all__ = ["BLOB", "CHANGED_AT", "EVENTS", "INDEX", "RULE_PLACE", "StreamState", "rows_of"]

BLOB = "blob"
INDEX, EVENTS = "index", "events"
"""The variables of the state."""

RULE_PLACE = "rule_place"
CHANGED_AT = "changed_at"


class _SparkStore:
    """The state of a key in Spark: a text, blobs by slice and part, and a timer."""

    def __init__(self, handle: StatefulProcessorHandle) -> None:
        self._handle = handle
        self._index = handle.getValueState(INDEX, "text string")
        self._blobs = handle.getMapState(EVENTS, "slice bigint, part bigint", "blob binary")
        self._timer = handle.getValueState("timer", "at bigint")

    def read_index(self) -> str | None:
        row = self._index.get()
        return None if row is None else str(row[0])

    def write_index(self, index: str) -> None:
        self._index.update((index,))

    def clear(self) -> None:
        self._index.clear()
        self._blobs.clear()
        before = self._timer.get()
        if before is not None:
            self._handle.deleteTimer(int(before[0]))
        self._timer.clear()

    def read(self, slice: int, part: int) -> bytes:
        row = self._blobs.getValue((slice, part))
        if row is None:
            raise AssertionError(f"part {part} of slice {slice} is not in the state")
        return bytes(row[0])

    def write(self, slice: int, part: int, blob: bytes) -> None:
        self._blobs.updateValue((slice, part), (blob,))

    def remove(self, slice: int, part: int) -> None:
        self._blobs.removeKey((slice, part))

    def set_timer(self, at: int) -> None:
        """Set the timer to a time in milliseconds since 1970, in place of an earlier one."""
        before = self._timer.get()
        if before is not None:
            self._handle.deleteTimer(int(before[0]))
        self._handle.registerTimer(at)
        self._timer.update((at,))


class StreamState(StatefulProcessor):
    """Hands the pieces of a batch to their part of the state."""

    def __init__(self, parts: StateParts) -> None:
        self._packed: bytes = cloudpickle.dumps(parts)  # type: ignore[no-untyped-call]
        self._store: _SparkStore | None = None

    @cached_property
    def _parts(self) -> StateParts:
        parts: StateParts = cloudpickle.loads(self._packed)
        return parts

    def init(self, handle: StatefulProcessorHandle) -> None:  # noqa: D102
        self._store = _SparkStore(handle)

    def handleInputRows(  # noqa: D102, N802
        self,
        key: Any,
        rows: Iterator[pd.DataFrame],
        timerValues: Any,  # noqa: N803
    ) -> Iterator[pd.DataFrame]:
        assert self._store is not None
        pieces = (row for frame in rows for row in frame.to_dict("records"))
        report = self._parts.take(int(key[0]), self._store, pieces)
        self._wait(timerValues)
        return iter([rows_of(report)])

    def close(self) -> None:  # noqa: D102
        from uncertain_cep.spark.python_tasks import leave_modules_out

        leave_modules_out()

    def handleExpiredTimer(  # noqa: D102, N802
        self,
        key: Any,
        timerValues: Any,  # noqa: N803
        expiredTimerInfo: Any,  # noqa: ARG002, N803
    ) -> Iterator[pd.DataFrame]:
        assert self._store is not None
        report = self._parts.pass_time(int(key[0]), self._store)
        self._wait(timerValues)
        return iter([rows_of(report)])

    def _wait(self, timers: Any) -> None:
        if self._parts.idle is None or self._store is None:
            return
        # A part that has ended waits for nothing.
        if self._store.read_index() is not None:
            self._store.set_timer(timers.getCurrentProcessingTimeInMs() + self._parts.idle[0])


def rows_of(report: Report) -> pd.DataFrame:
    """Return the blobs of a report as rows, the first one with the counters."""
    import pandas as pd

    from uncertain_cep.streaming.held_slices import COUNTED

    blobs: list[bytes | None] = [*report.blobs] or [None]
    columns: dict[str, Any] = {BLOB: blobs}
    for name in COUNTED:
        columns[name] = pd.array([report.counts[name]] + [None] * (len(blobs) - 1), dtype="Int64")
    for name, value in ((RULE_PLACE, report.rule), (CHANGED_AT, report.since)):
        columns[name] = pd.array([value] + [None] * (len(blobs) - 1), dtype="Int64")
    return pd.DataFrame(columns)
